"""Field cases that a stored session must survive; the number is in each name."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import attrs
import pytest

import interlingua as il
from interlingua_sessions import Store, ToolCallStatus, open_store
from interlingua_sessions.routing.policy import NoRouteError, RoutingPolicy
from interlingua_sessions.session import AsyncSession, Session
from tests.sessions.talking import Counting, async_client, client, registry
from tests.support.fake_provider import CAPABLE, Reply, served

LOOK = il.ToolDefinition(
    name="look", description="", input_schema={"type": "object", "properties": {}}, side_effects=il.SideEffects.READ
)
HOLOGRAM = [{"type": "hologram", "beam": 7}, {"type": "text", "text": "hi"}]
CALLING = Reply(body=[json.dumps({"say": "", "calls": [["c1", "look", {}]], "end": "tool_use"}).encode()])


def anthropic_body(session: Session) -> dict[str, object]:
    """What the session would send where calls and results have a form on the wire."""
    body: dict[str, object] = json.loads(session.build_request(model="anthropic:claude-haiku-4-5").body)
    return body


def test_case_07_a_call_without_a_result_is_answered_by_the_same_error_on_every_machine(
    store: Store, tmp_path: Path
) -> None:
    """The process died between the call and its result; the next turn sends a stand-in and stores none."""
    settings = {"anthropic": {"api_key": "k"}}
    call = il.ToolUseBlock(id=il.types.new_tool_use_id(), name="look", input={})
    with il.Client("anthropic:claude-haiku-4-5", settings=settings) as c:
        session = Session.open(store, "s", client=c)
        session.add(il.user("look!"))
        session.add(il.assistant([call]))
        session.add(il.user("well?"))
        first = session.build_request().body
        store.export_jsonl("s", tmp_path / "s.jsonl")
        with open_store(tmp_path / "other.db") as other, il.Client(settings=settings) as there:
            other.import_jsonl(tmp_path / "s.jsonl")
            moved = Session.open(other, "s", client=there, model="anthropic:claude-haiku-4-5")
            assert moved.build_request().body == first
            assert other.unanswered_tool_calls("s")[0].id == call.id

    sent = json.loads(first)["messages"]
    assert [block["type"] for message in sent for block in message["content"]] == [
        "text", "tool_use", "tool_result", "text",
    ]  # fmt: skip
    assert sent[2]["content"][0]["is_error"] is True
    assert store.tool_call(call.id).status is ToolCallStatus.PENDING
    assert store.count_messages("s") == 3


def test_case_10_call_ids_stay_the_same_over_turns_and_swaps(store: Store) -> None:
    with served(CALLING, Reply()) as server:
        c = il.Client(
            "fake:known",
            registry=il.Registry(providers={"fake": Counting()}),
            settings={"fake": {"api_key": "k", "base_url": server.url}, "anthropic": {"api_key": "k"}},
            retry=0,
        )
        with c:
            session = Session.open(store, "s", client=c)
            turn = session.turn("look", tools=[LOOK])
            (call,) = turn.ask([LOOK]).tool_calls
            turn.add(il.tool_result(call, "nothing"))
            before = anthropic_body(session)["messages"]
            turn.ask([LOOK])
            session.switch("anthropic:claude-haiku-4-5")
            after = anthropic_body(Session.open(store, "s", client=c))["messages"]

    assert isinstance(before, list)
    assert isinstance(after, list)
    assert after[: len(before)] == before
    ids = [block.get("id") or block.get("tool_use_id") for message in before[1:] for block in message["content"]]
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_case_26_an_overflow_is_no_overload_and_does_not_fall_back(store: Store) -> None:
    policy = RoutingPolicy(workspace_default="fake:a", fallbacks=["fake:b"])
    overflow = Reply(status=413, body=[b"too long"])
    with served(overflow) as server, client(server) as c, pytest.raises(il.errors.ContextWindowExceededError):
        Session.open(store, "s", client=c, policy=policy).send("hi")

    assert len(server.got) == 1


def test_case_28_a_session_of_a_newer_version_is_gone_on_with(store: Store, tmp_path: Path) -> None:
    """An unknown block and unknown fields stay as they were written, and the conversation goes on without them."""
    with served() as server, client(server) as c:
        newer = il.codec.decode_message({**il.codec.encode_message(il.user("hi")), "content": HOLOGRAM})
        Session.open(store, "s", client=c).add(newer)
        session = Session.open(store, "s", client=c)
        session.send("more")
        store.export_jsonl("s", tmp_path / "s.jsonl")

    assert isinstance(session.messages[0].content[0], il.types.UnknownBlock)
    assert '"beam":7' in (tmp_path / "s.jsonl").read_text().replace(" ", "")
    assert json.loads(server.got[0].body)["texts"] == ["hi", "more"]


def test_case_29_an_unknown_price_is_stored_as_unknown(store: Store) -> None:
    with served() as server, client(server) as c:
        Session.open(store, "s", client=c).send("hi")

    stored = store.last("s")
    assert stored is not None
    usage = stored.metadata.usage
    assert usage is not None
    assert usage.cost_usd is None
    assert usage.cost_note


def test_case_30_one_client_and_one_session_in_two_event_loops(store: Store) -> None:
    async def ask(text: str) -> str:
        return (await session.send(text)).text

    with served() as server:
        c = async_client(server)
        session = AsyncSession.open(store, "s", client=c)
        assert asyncio.run(ask("one")) == "hello"
        assert asyncio.run(ask("two")) == "hello"

    assert store.count_messages("s") == 4


def test_case_39_an_answer_of_reasoning_alone_is_kept_and_gone_on_with(store: Store) -> None:
    with served() as server, client(server) as c:
        session = Session.open(store, "s", client=c)
        session.add(il.user("hi"))
        mode = il.types.RoutingMode.DEFAULT
        chosen = il.types.RoutingDecision(mode=mode, chosen_model="other:m", reason="x")
        metadata = il.types.MessageMetadata(
            model="other:m", provider="other", stop_reason=il.StopReason.MAX_TOKENS, usage=il.Usage(output_tokens=9),
            provenance=il.types.Provenance.GENERATED,
            routing=chosen,
        )  # fmt: skip
        session.add(il.Message(role=il.Role.ASSISTANT, content=[il.ThinkingBlock(text="hm")], metadata=metadata))
        session.send("and?")

    assert json.loads(server.got[0].body)["texts"] == ["hi", "and?"]
    assert [entry for entry in store.verify() if not entry.repairable] == []


def test_a_window_too_small_is_told_before_sending(store: Store) -> None:
    found = registry(fake=Counting(attrs.evolve(CAPABLE, max_context_tokens=3)))
    with served() as server, client(server, found) as c, pytest.raises(NoRouteError, match="about 5 tokens"):
        Session.open(store, "s", client=c).send("fiver")

    assert server.got == []
