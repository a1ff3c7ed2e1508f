"""The chain's order, its constraints, its refusals and its fallback, through sessions in a real store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua_sessions import Store, open_store
from interlingua_sessions.routing.policy import (
    NoRouteError,
    RouteCondition,
    RoutingPolicy,
    RoutingRule,
    SwapRefusedError,
)
from interlingua_sessions.routing.router import Delegation, Recommendation, RoutedTurn
from interlingua_sessions.session import Session
from tests.sessions.talking import Counting, Watching, client, registry
from tests.support.fake_provider import CAPABLE, Got, Reply, Server, served

EMPTY = {"type": "object", "properties": {}}
LOOK = il.ToolDefinition(name="look", description="", input_schema=EMPTY, side_effects=il.SideEffects.READ)
ELSEWHERE = il.user("", images=["https://example.org/a"]).content[0]
PICTURE = il.ImageBlock(source=il.types.MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
NAMES = ("one", "two", "three")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "sessions.db") as opened:
        yield opened


@pytest.fixture
def watching() -> Watching:
    return Watching()


@pytest.fixture
def server() -> Iterator[Server]:
    with served() as running:
        yield running


Open = Callable[..., Session]


@pytest.fixture
def opened(store: Store, watching: Watching) -> Iterator[Open]:
    """Open sessions over three providers; `limits` takes capabilities from some of them."""
    with ExitStack() as clients:

        def open_session(server: Server, model: str | None = None, /, **asked: Any) -> Session:
            limits: dict[str, dict[str, Any]] = asked.pop("limits", {})
            fakes = {name: Counting(attrs.evolve(CAPABLE, **limits.get(name, {}))) for name in NAMES}
            made = clients.enter_context(client(server, registry([watching], **fakes), model))
            return Session.open(store, "s", client=made, **asked)

        yield open_session


def route(message: il.Message) -> tuple[str, str, str]:
    routing = message.metadata.routing
    assert routing is not None
    assert message.metadata.model == routing.chosen_model
    return routing.mode.value, routing.chosen_model, routing.reason


POLICY = RoutingPolicy(
    rules=[RoutingRule(name="code", model="two:rule", when=RouteCondition(text="bug"))],
    workspace_default="one:workspace",
    global_default="one:global",
)


def recommending(turn: RoutedTurn) -> Recommendation | None:
    return Recommendation(model="three:pattern", confidence=0.8, reason="last time") if "again" in turn.text else None


def test_each_link_of_the_chain_in_its_order(store: Store, server: Server, watching: Watching, opened: Open) -> None:
    session = opened(server, "two:client", policy=POLICY, patterns=recommending)
    everything = "the bug again"

    assert route(session.send("hi")) == ("default", "one:workspace", "workspace default")
    assert route(session.send("hi", delegate="three:planned"))[:2] == ("delegate", "three:planned")
    by_pattern = session.send("again", delegate=Delegation(model="three:planned"))
    assert route(by_pattern) == ("pattern", "three:pattern", "last time")
    by_rule = session.send(everything, delegate="three:planned")
    assert route(by_rule) == ("rule", "two:rule", "rule 'code' matched")
    session.switch("three:sticky", reason="user swap via /model command")
    by_hand = session.send(everything, delegate="three:planned")
    assert route(by_hand) == ("manual", "three:sticky", "user swap via /model command")
    assert route(session.send(everything, model="one:override"))[:2] == ("override", "one:override")
    assert session.switch(None) is None
    assert route(session.send(everything))[0] == "rule"

    routings = [one.metadata.routing for one in (by_pattern, by_rule)]
    assert [(one.confidence, one.rule_name) for one in routings if one] == [(0.8, None), (None, "code")]
    assert [event["policy"] for event in watching.of("route.decided")] == [
        "workspace_default", "delegate_request", "pattern", "rule", "manual_sticky", "per_message_override", "rule",
    ]  # fmt: skip
    assert list(store.verify()) == []


def test_defaults_come_in_their_order(server: Server, opened: Open) -> None:
    policy = RoutingPolicy(global_default="one:global")
    assert route(opened(server, policy=policy).send("a"))[1:] == ("one:global", "global default")
    last = opened(server, "two:client", policy=RoutingPolicy())
    assert route(last.send("a"))[1:] == ("two:client", "global default")


def test_without_any_model_it_says_what_to_do(store: Store, server: Server, opened: Open) -> None:
    with pytest.raises(NoRouteError, match="switch the session to one"):
        opened(server).send("hi")
    assert store.count_messages("s") == 0


def test_an_unsure_pattern_is_not_followed(server: Server, opened: Open) -> None:
    policy = RoutingPolicy(workspace_default="one:workspace", min_confidence=0.9)
    session = opened(server, policy=policy, patterns=recommending)

    assert route(session.send("again"))[0] == "default"


@pytest.mark.parametrize(
    ("when", "matches"),
    [
        (RouteCondition(), True),
        (RouteCondition(images=True), True),
        (RouteCondition(images=False), False),
        (RouteCondition(tools=True), True),
        (RouteCondition(tools=False), False),
        (RouteCondition(min_tokens=10), True),
        (RouteCondition(min_tokens=11), False),
        (RouteCondition(max_tokens=10), True),
        (RouteCondition(max_tokens=9), False),
        (RouteCondition(text="TEN"), True),
        (RouteCondition(text="^letters"), False),
    ],
)
def test_conditions_of_a_rule(server: Server, when: RouteCondition, matches: bool, opened: Open) -> None:
    policy = RoutingPolicy(
        rules=[RoutingRule(name="r", model="two:rule", when=when)], workspace_default="one:workspace"
    )
    session = opened(server, policy=policy)
    answer = session.send([il.TextBlock(text="ten letter"), PICTURE], tools=[LOOK])

    assert route(answer)[0] == ("rule" if matches else "default")


IMAGES = {"supports_images": False}
FALL = [
    (IMAGES, {"content": [PICTURE]}, "supports_images", "session contains images that this model can't process"),
    (IMAGES, {"content": [ELSEWHERE]}, "supports_images", "session contains images that this model can't process"),
    (
        {"accepted_image_media_types": ("image/gif",)},
        {"content": [PICTURE]},
        "accepted_image_media_types",
        "session contains images of type image/png that this model can't process",
    ),
    (
        {"supports_tools": False},
        {"content": "hi", "tools": [LOOK]},
        "supports_tools",
        "this turn offers tools that this model can't call",
    ),
    (
        {"supports_system_prompt": False},
        {"content": il.system("Be brief.")},
        "supports_system_prompt",
        "session has a system prompt that this model can't take",
    ),
    (
        {"supports_structured_output": False},
        {"content": "hi", "response_schema": {"type": "object"}},
        "supports_structured_output",
        "this turn asks for structured output that this model can't produce",
    ),
    (
        {"max_context_tokens": 10},
        {"content": "eleven lett"},
        "max_context_tokens",
        "session needs about 11 tokens and this model's context holds 10",
    ),
]


@pytest.mark.parametrize(("limit", "asked", "capability", "why"), FALL, ids=range(len(FALL)))
def test_a_proposal_that_cannot_answer_is_passed_over(
    server: Server, watching: Watching, limit: Any, asked: Any, capability: str, why: str, opened: Open
) -> None:
    """A turn that needs what a model lacks falls through, and does not fail at the adapter."""
    able = {"supports_structured_output": True, "supports_image_urls": True}
    policy = RoutingPolicy(workspace_default="one:small", global_default="two:large", manual_reason="mine")
    session = opened(server, policy=policy, limits={"one": able | limit, "two": able})
    answer = session.send(**asked)

    assert route(answer) == ("default", "two:large", f"global default; not one:small: {why}")
    assert answer.metadata.routing is not None
    assert answer.metadata.routing.alternatives_considered == ("one:small",)
    failed = watching.of("routing_constraint_failure")
    assert {event["model"] for event in failed} == {"one:small"}
    assert failed[0]["failures"] == [{"capability": capability, "reason": why}]
    (decided,) = watching.of("route.decided")
    assert [(link["model"], link["refused"]) for link in decided["chain"]] == [("one:small", why), ("two:large", None)]


def test_an_image_behind_an_address_is_not_refused_for_its_type(server: Server, opened: Open) -> None:
    gifs = {"one": {"accepted_image_media_types": ("image/gif",), "supports_image_urls": True}}
    assert route(opened(server, "one:a", limits=gifs).send([ELSEWHERE]))[1] == "one:a"


def test_a_swap_away_from_tool_calls_is_refused(server: Server, opened: Open) -> None:
    session = opened(server, "one:a", limits={"two": {"supports_tools": False}})
    call = il.ToolUseBlock(id=il.types.new_tool_use_id(), name="look", input={})
    session.add(il.user("hi"))
    session.add(il.assistant([call]))

    with pytest.raises(SwapRefusedError) as refused:
        session.switch("two:plain")
    why = "session contains tool calls that this model can't process"
    assert str(refused.value) == f"Cannot swap to two:plain: {why}. Active model unchanged."
    assert session.active_model is None


def test_an_override_that_cannot_work_is_refused_and_stores_nothing(
    store: Store, server: Server, watching: Watching, opened: Open
) -> None:
    session = opened(server, "one:a", limits={"two": IMAGES})
    session.switch("one:sticky")
    with pytest.raises(il.CapabilityError, match=r"two:text cannot read the image .* in block 0") as caught:
        session.send([PICTURE], model="two:text")

    assert "models that can: one:known, three:known" in caught.value.hint
    assert (store.count_messages("s"), server.got) == (0, [])
    (event,) = watching.of("routing_constraint_failure")
    assert (event["policy"], event["active_model"]) == ("per_message_override", "one:sticky")


def test_a_model_of_no_catalogue_is_never_refused(server: Server, opened: Open) -> None:
    """Assumed capabilities are no ground for a refusal."""
    session = opened(server, "one:a", limits={"two": IMAGES | {"assumed": True}})
    session.send([PICTURE])

    assert session.switch("two:unheard-of") == "two:unheard-of"


def test_a_swap_to_what_is_not_installed_changes_nothing(server: Server, opened: Open) -> None:
    session = opened(server, "one:a")
    session.switch("one:sticky")
    with pytest.raises(il.errors.UnknownProviderError):
        session.switch("four:x")
    with pytest.raises(il.CallerError, match="has no provider"):
        session.switch("nonsense")

    assert session.active_model == "one:sticky"


def test_a_default_that_is_not_installed_is_passed_over(server: Server, opened: Open) -> None:
    policy = RoutingPolicy(workspace_default="four:x", global_default="one:a")
    answer = opened(server, policy=policy).send("hi")

    assert route(answer)[1] == "one:a"
    assert "four:x" in route(answer)[2]


def by_model(**replies: Reply) -> Any:
    def choose(got: Got) -> Reply:
        return replies.get(json.loads(got.body)["model"], Reply())

    return choose


BUSY = Reply(status=429, body=[b"slow down"])


@pytest.mark.parametrize("streamed", [False, True], ids=["send", "stream"])
@pytest.mark.parametrize("status", [429, 503, 529])
def test_an_overloaded_service_is_left_for_the_next_allowed_model(
    store: Store, watching: Watching, status: int, streamed: bool, opened: Open
) -> None:
    policy = RoutingPolicy(workspace_default="one:a", fallbacks=["one:a", "two:text", "three:b", "three:c"])
    failing = Reply(status=status, body=[b"slow down"])
    with served(choose=by_model(a=failing)) as server:
        session = opened(server, policy=policy, limits={"two": IMAGES})
        if streamed:
            with session.stream([PICTURE]) as stream:
                answer = stream.message
        else:
            answer = session.send([PICTURE])

    mode, model, reason = route(answer)
    assert (mode, model) == ("default", "three:b")
    assert "fallback" in reason
    assert "one:a" in reason
    assert answer.metadata.routing is not None
    assert answer.metadata.routing.alternatives_considered == ("one:a", "two:text")
    assert [event["chosen_model"] for event in watching.of("route.decided")] == ["one:a", "three:b"]
    assert store.count_messages("s") == 2


def test_without_an_allowed_model_the_failure_stands(opened: Open) -> None:
    with served(BUSY) as server:
        with pytest.raises(il.errors.RateLimitError):
            opened(server, "one:a").send("hi")
        policy = RoutingPolicy(workspace_default="one:a", fallbacks=["two:b"])
        with pytest.raises(il.errors.RateLimitError):
            opened(server, policy=policy).send("hi")

    assert [json.loads(got.body)["model"] for got in server.got] == ["a", "a", "b"]


def test_other_failures_do_not_fall_back(opened: Open) -> None:
    policy = RoutingPolicy(workspace_default="one:a", fallbacks=["two:b"])
    with served(Reply(status=401, body=[b"who?"])) as server, pytest.raises(il.errors.AuthenticationError):
        opened(server, policy=policy).send("hi")

    assert len(server.got) == 1


def test_a_turn_keeps_its_model_while_that_can_carry_it(server: Server, opened: Open) -> None:
    """A tool that returns an image moves a turn off a model that takes none; everything else does not."""
    policy = RoutingPolicy(workspace_default="one:a", global_default="two:b")
    session = opened(server, policy=policy, limits={"one": IMAGES})
    turn = session.turn("hi", tools=[LOOK])
    assert turn.ask([LOOK]).metadata.model == "one:a"
    turn.add(il.user("more"))
    assert turn.ask([LOOK]).metadata.model == "one:a"
    turn.add(il.user([PICTURE]))
    assert turn.ask([LOOK]).metadata.model == "two:b"
    assert (turn.model, turn.window, turn.estimate([il.user("four")])) == ("two:b", 0, 4)


def test_aliases_are_resolved_and_said_as_they_were(store: Store, server: Server) -> None:
    with client(server) as c:
        session = Session.open(store, "s", client=c)
        assert session.switch("fk") == "fake:known"
        assert store.session("s").active_model == "fake:known"


SHELL = il.ToolDefinition(name="shell", description="", input_schema=EMPTY, side_effects=il.SideEffects.EXECUTE)


def test_a_rule_may_ask_for_side_effects_and_the_decision_says_which_are_offered(
    server: Server, watching: Watching, opened: Open
) -> None:
    careful = RoutingRule(name="careful", model="two:careful", when=RouteCondition(side_effects=["execute", "network"]))
    session = opened(server, "one:a", policy=RoutingPolicy(rules=[careful]))

    assert route(session.send("a"))[1] == "one:a"
    assert route(session.send("b", tools=[LOOK]))[1] == "one:a"
    assert route(session.send("c", tools=[SHELL, LOOK]))[1] == "two:careful"
    assert [event["side_effects"] for event in watching.of("route.decided")] == [[], ["read"], ["read", "execute"]]


def test_a_policy_leaves_tools_of_a_class_to_some_models(
    store: Store, server: Server, watching: Watching, opened: Open
) -> None:
    policy = RoutingPolicy(workspace_default="one:a", global_default="two:b", tool_models={"execute": ["two:*"]})
    session = opened(server, "three:c", policy=policy)
    why = "this turn offers tools with side effects execute, which the policy leaves to two:*"

    assert route(session.send("a", tools=[LOOK]))[1] == "one:a"
    assert route(session.send("b", tools=[SHELL]))[1:] == ("two:b", f"global default; not one:a: {why}")
    (failure,) = watching.of("routing_constraint_failure")
    assert failure["failures"] == [{"capability": "side_effects", "reason": why}]
    with pytest.raises(SwapRefusedError, match="Cannot swap to three:c: this turn offers tools"):
        session.send("c", tools=[SHELL], model="three:c")
    assert route(session.send("d", model="three:c"))[1] == "three:c"
    nobody = opened(server, policy=RoutingPolicy(workspace_default="one:a", tool_models={"execute": []}))
    with pytest.raises(NoRouteError, match="leaves to no model"):
        nobody.send("e", tools=[SHELL])
