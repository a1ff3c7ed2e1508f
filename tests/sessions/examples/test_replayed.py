"""Four worked examples through a real store, the services answering from cassettes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua._catalogue import ModelInfo
from interlingua._http.client import Client
from interlingua._plugins.hookspecs import hookimpl
from interlingua._plugins.registry import Registry
from interlingua.testing import MemoryTransport
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock
from interlingua.types.messages import Role, RoutingMode
from interlingua.types.options import ModelCapabilities, RequestOptions
from interlingua_anthropic.models import capabilities_of
from interlingua_anthropic.plugin import _Anthropic
from interlingua_cli.demo.replay import RecordedAnswers
from interlingua_cli.demo.session import recorded_scenario
from interlingua_sessions import Store, open_store
from interlingua_sessions.routing.policy import RoutingPolicy, SwapRefusedError
from interlingua_sessions.session import Session
from tests.sessions.examples.course import SWAP, check_tool_turn, opened, read_a_file
from tests.support.cassettes import FOLDER, load_exchanges
from tests.tools.record.wires import LOCAL, WIRES


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "sessions.db") as opened_store:
        yield opened_store


def replaying(cassette: str, **given: Any) -> Client:
    return Client(transport=MemoryTransport(RecordedAnswers(FOLDER / cassette)), environ={}, retry=0, **given)


def test_example_1_a_question_and_its_answer(store: Store) -> None:
    wire = WIRES["messages"]
    (exchange,) = load_exchanges(wire.cassette("text"))
    model = f"anthropic:{LOCAL.model}"
    policy = RoutingPolicy(workspace_default=model)
    with replaying(wire.cassette("text"), settings=wire.settings("http://recorded")) as client:
        Session.open(store, "sess_42", client=client, policy=policy, options=LOCAL.options).send("Say hello.")

    question, answer = store.messages("sess_42")
    said = json.loads(exchange.body)
    assert (question.role, question.text) == (Role.USER, "Say hello.")
    assert (answer.role, answer.text) == (Role.ASSISTANT, said["content"][0]["text"])
    assert question.id < answer.id
    assert (answer.metadata.model, answer.metadata.provider) == (model, "anthropic")
    routing, usage = answer.metadata.routing, answer.metadata.usage
    assert routing is not None
    assert (routing.mode, routing.chosen_model, routing.reason) == (RoutingMode.DEFAULT, model, "workspace default")
    assert usage is not None
    counts = said["usage"]
    assert (usage.input_tokens, usage.output_tokens) == (counts["input_tokens"], counts["output_tokens"])
    assert usage.latency_ms is not None
    assert list(store.verify()) == []


def test_examples_2_and_3_a_tool_then_a_swap_in_mid_session(store: Store, tmp_path: Path) -> None:
    """Each request must be the recorded one, byte for byte but for ids minted anew: the cassette refuses others."""
    cast = recorded_scenario()
    assert cast.cassette is not None
    first, second, third = (turn.text for turn in cast.turns)
    one, other = cast.models
    cassette = str(cast.cassette.relative_to(FOLDER))
    keys = {key: {**settings, "api_key": "k"} for key, settings in cast.settings.items()}
    with replaying(cassette, settings=keys) as client:
        session = opened(store, client, cast)
        read_a_file(session, first, cached=True)
        check_tool_turn(store, session, one, mode=RoutingMode.DEFAULT)

        assert session.switch(other, reason=SWAP) == other
        moved = tmp_path / "elsewhere.db"  # the rest is played on another machine
        store.close()
        shutil.copy(tmp_path / "sessions.db", moved)
        with open_store(moved) as copied:
            resumed = Session.open(copied, "sess_42", client=client, options=cast.options)
            assert resumed.active_model == other
            answer = read_a_file(resumed, second)
            check_tool_turn(copied, resumed, other, mode=RoutingMode.MANUAL)
            assert answer.metadata.routing is not None
            assert answer.metadata.routing.reason == SWAP
            check_foreign_ids(resumed)

            resumed.switch(one, reason=SWAP)
            read_a_file(resumed, third)
            assert [entry.check for entry in copied.verify() if not entry.repairable] == []


def check_foreign_ids(session: Session) -> None:
    """The other provider's calls in tool_calls with JSON text, their results as tool messages of the same id."""
    body = json.loads(session.build_request("and?", api="chat").body)
    called = [call for message in body["messages"] for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    ids = [call["id"] for call in called]
    assert ids[: len(answered)] == answered
    assert len(set(ids)) == len(ids) >= 2
    assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in called)


class WithTextOnly(_Anthropic):
    """The service's own plugin, with a hypothetical model in its catalogue."""

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return [*super().models(), ModelInfo(id="claude-haiku-4-5-text-only")]

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        found = super().capabilities(model, options)
        return attrs.evolve(found, supports_images=False, assumed=False) if model.endswith("text-only") else found


class Watching:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    @hookimpl
    def observe(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)


def test_example_4_a_swap_that_cannot_work_is_refused(store: Store) -> None:
    cassette = "anthropic/image.yaml"
    (exchange,) = load_exchanges(cassette)
    text, image = exchange.request["messages"][0]["content"]
    picture = ImageBlock(
        source=MediaSource(kind="base64", data=image["source"]["data"]), media_type=image["source"]["media_type"]
    )
    watching = Watching()
    registry = Registry(
        [watching],
        providers={"anthropic": WithTextOnly(capabilities_of)},
        aliases={"Haiku-text-only": "anthropic:claude-haiku-4-5-text-only"},
        entry_points=[],
    )
    model = f"anthropic:{exchange.request['model']}"
    keys = {"anthropic": {"api_key": "k"}}
    with replaying(cassette, registry=registry, settings=keys) as client:
        session = Session.open(store, "sess_42", client=client, options={"max_tokens": 1024})
        session.switch(model)
        session.send([TextBlock(text=text["text"]), picture])
        with pytest.raises(SwapRefusedError) as refused:
            session.switch("Haiku-text-only")

    sentence = "Cannot swap to Haiku-text-only: session contains images that this model can't process."
    assert str(refused.value) == f"{sentence} Active model unchanged."
    assert store.session("sess_42").active_model == session.active_model == model
    (event,) = [event for event in watching.events if event["type"] == "routing_constraint_failure"]
    assert event["model"] == "anthropic:claude-haiku-4-5-text-only"
    assert event["active_model"] == model
    assert [failure["capability"] for failure in event["failures"]] == ["supports_images"]
    assert store.count_messages("sess_42") == 2
