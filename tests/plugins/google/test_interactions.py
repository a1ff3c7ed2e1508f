"""Interactions beside the cassettes: boundaries of steps, state at the service, agents, and every chunking."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua.errors import CapabilityError, ServerError, StreamInterruptedError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import MediaSource, OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message, MessageStatus, StopReason
from tests.plugins.google.test_interactions_cassettes import ADAPTER, AGENT, GOOGLE, QUESTION, STREAMED, asked
from tests.plugins.google.wire import NEW, OLD
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import load_exchanges

SIGNED = "c2lnbmVk"
STATEFUL = {"stateful": True}


def _answer(*steps: dict[str, Any], status: str = "completed", **facts: Any) -> dict[str, Any]:
    return {"object": "interaction", "status": status, "steps": list(steps), **facts}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _input(*messages: Message, **options: Any) -> Any:
    return json.loads(asked(list(messages), **options).body)["input"]


def _stored(name: str, *history: Message) -> Message:
    """Return an answer that the service stored, to this history."""
    echo = asked(list(history), [READ], connection=STATEFUL).echo
    body = _answer({"type": "model_output", "content": [_text("yes")]}, id=name)
    return driving.whole(GOOGLE, json.dumps(body).encode(), attrs.evolve(ADAPTER.context(), echo=echo))


def test_each_summary_and_each_thought_keeps_its_bounds() -> None:
    steps = [
        {
            "type": "thought",
            "summary": [_text("one"), {"type": "image", "data": "AA=="}, _text("two")],
            "signature": SIGNED,
        },
        {"type": "thought", "signature": "b3RoZXI="},
        {"type": "model_output", "content": [_text("a"), _text("b")], "error": {"code": 1, "message": "m"}},
        {"type": "model_output", "content": [_text("c")]},
    ]
    answer = ADAPTER.read(_answer(*steps))

    assert answer.content[:2] == (
        ThinkingBlock(text="one\n\ntwo", signature=SIGNED),
        ThinkingBlock(text="", signature="b3RoZXI="),
    )
    assert _input(QUESTION, answer, user("n"))[1:-1] == steps


def test_an_edited_answer_is_written_by_its_blocks() -> None:
    steps = [
        {"type": "thought", "summary": [_text("one"), _text("two")], "signature": SIGNED},
        {"type": "model_output", "content": [_text("a")]},
    ]
    answer = ADAPTER.read(_answer(*steps))
    shorter = attrs.evolve(answer, content=answer.content[1:])
    other = attrs.evolve(answer, content=(attrs.evolve(answer.content[0], text="else"), answer.content[1]))

    assert _input(QUESTION, shorter, user("n"))[1:-1] == steps[1:]
    assert _input(QUESTION, other, user("n"))[1] == {"type": "thought", "signature": SIGNED, "summary": [_text("else")]}


def test_a_signature_goes_to_its_own_model_only() -> None:
    call = {
        "type": "code_execution_call",
        "id": "c1",
        "arguments": {"code": "1", "language": "python"},
        "signature": "AA==",
    }
    answer = ADAPTER.read(_answer({"type": "thought", "signature": SIGNED}, call))
    request = asked([QUESTION, answer, user("n")], model=OLD)

    assert json.loads(request.body)["input"][1] == {name: call[name] for name in call if name != "signature"}
    assert [loss.block_type for loss in request.losses] == ["thinking", "opaque"]


def test_foreign_calls_and_results_are_steps() -> None:
    call = ToolUseBlock(id="tu_01KAKDPZ000000000000000001", name="read_file", input={"path": "a"})
    answer = ADAPTER.answer(TextBlock(text="Look."), call, provider="openai", api="responses", model="gpt-5")
    sent = _input(QUESTION, answer, tool_result(call, "one", is_error=True))

    assert sent[1:] == [
        {"type": "model_output", "content": [_text("Look.")]},
        {"type": "function_call", "id": call.id, "name": "read_file", "arguments": {"path": "a"}},
        {"type": "function_result", "call_id": call.id, "name": "read_file", "result": "one", "is_error": True},
    ]


def test_unknown_steps_and_contents_are_kept_whole() -> None:
    steps = [
        {"type": "dream_call", "id": "d1", "of": [1, 2.50, {"a": None}]},
        {"type": "model_output", "content": [_text("a"), {"type": "hologram", "data": {"x": 1}}]},
    ]
    answer = ADAPTER.read(_answer(*steps))

    assert [block.kind for block in answer.content if isinstance(block, OpaqueBlock)] == ["dream_call", "hologram"]
    assert _input(QUESTION, answer, user("n"))[1:-1] == steps


def test_media_by_address_are_urls_or_files() -> None:
    uris = ("https://example.com/a.png", "https://generativelanguage.googleapis.com/v1beta/files/1", "gs://b/c.png")
    content = [{"type": "image", "uri": uri, "mime_type": "image/png"} for uri in uris]
    answer = ADAPTER.read(_answer({"type": "model_output", "content": content}))

    assert [block.source for block in answer.content] == [  # type: ignore[union-attr]
        MediaSource(kind=kind, data=uri) for kind, uri in zip(("url", "file_id", "file_id"), uris, strict=True)
    ]


@pytest.mark.parametrize("name", STREAMED)
def test_streams_are_the_same_at_every_chunking(name: str) -> None:
    ADAPTER.streamed(load_exchanges(f"google/interactions_{name}.yaml")[0].body)


def test_a_stream_that_breaks_off_keeps_what_came() -> None:
    body = load_exchanges("google/interactions_calls_streamed.yaml")[0].body
    cut = body[: body.index(b"event: step.delta", body.index(b'"index":2'))]
    with pytest.raises(StreamInterruptedError) as caught:
        driving.streamed(GOOGLE, cut, ADAPTER.context())
    partial = caught.value.partial

    assert [call.name for call in partial.tool_calls] == ["read_file", "read_file"]
    assert partial.thinking_blocks[0].signature == "YXV0aG9yZWQtY2FsbHM="
    assert [step["type"] for step in _input(QUESTION, partial, user("n"))] == ["user_input", "thought", "user_input"]


# ---- state at the service


def test_the_service_gets_only_what_is_new() -> None:
    first = _stored("v1_a", QUESTION)
    second = _stored("v1_b", QUESTION, first, user("And c.txt?"))
    request = asked(
        [system("Be brief."), QUESTION, first, user("And c.txt?"), second, user("Why?")], connection=STATEFUL
    )
    body = json.loads(request.body)

    assert body["previous_interaction_id"] == "v1_b"
    assert body["input"] == [{"type": "user_input", "content": [_text("Why?")]}]
    assert body["system_instruction"] == "Be brief."
    assert "store" not in body


@pytest.mark.parametrize("change", ["the question", "the answer", "the model", "nothing stored"])
def test_a_changed_history_is_sent_whole(change: str) -> None:
    answer = _stored("" if change == "nothing stored" else "v1_a", QUESTION)
    if change == "the answer":
        answer = attrs.evolve(answer, content=(TextBlock(text="no"),))
    before = user("Else?") if change == "the question" else QUESTION
    model = OLD if change == "the model" else NEW
    body = json.loads(asked([before, answer, user("Why?")], connection=STATEFUL, model=model).body)

    assert "previous_interaction_id" not in body
    assert [step["type"] for step in body["input"]] == ["user_input", "model_output", "user_input"]


def test_an_interaction_can_be_named() -> None:
    answer = _stored("v1_a", QUESTION)
    history = [QUESTION, answer, user("Why?")]
    named = json.loads(asked(history, provider_options={"previous_interaction_id": "v1_a"}).body)
    other = json.loads(asked([QUESTION], provider_options={"previous_interaction_id": "v1_z"}).body)

    assert len(named["input"]) == len(other["input"]) == 1
    assert named["previous_interaction_id"] == "v1_a"


def test_what_runs_in_the_background_is_stored_and_not_streamed() -> None:
    request = asked([QUESTION], stream=True, provider_options={"background": True})
    body = json.loads(request.body)

    assert (request.stream, body["background"], request.echo) == (False, True, {"stream": True})
    assert not {"store", "stream"} & body.keys()
    with pytest.raises(CapabilityError):
        asked([QUESTION], provider_options={"background": True, "store": False})


def test_an_unfinished_interaction_is_cancelled_by_its_id() -> None:
    body = json.dumps({"id": "v1/a b", "status": "queued"}).encode()
    found = GOOGLE.follow_up(WireResponse(body=body), ADAPTER.context())

    assert found is not None
    assert (found.request.method, found.request.path) == ("GET", "/interactions/v1%2Fa%20b")
    assert found.cancel is not None
    assert (found.cancel.method, found.cancel.path) == ("POST", "/interactions/v1%2Fa%20b/cancel")
    assert (
        GOOGLE.from_wire_response(WireResponse(body=body), ADAPTER.context()).metadata.status is MessageStatus.PARTIAL
    )


def test_a_job_that_failed_is_an_error_of_the_provider() -> None:
    body = json.dumps(_answer(status="failed", id="v1_a")).encode()

    assert GOOGLE.follow_up(WireResponse(body=body), ADAPTER.context()) is None
    with pytest.raises(ServerError):
        GOOGLE.from_wire_response(WireResponse(body=body), ADAPTER.context())


def test_an_unknown_status_is_kept() -> None:
    answer = ADAPTER.read(_answer({"type": "model_output", "content": [_text("a")]}, status="daydreaming"))

    assert (answer.metadata.stop_reason, answer.metadata.stop_reason_raw) == (StopReason.OTHER, "daydreaming")


# ---- models and agents


def test_an_agent_gets_no_settings_of_models() -> None:
    request = asked([QUESTION], model=AGENT, api=None, temperature=0.5, effort="low")
    body = json.loads(request.body)

    assert (body["agent"], body["background"], "model" in body, "generation_config" in body) == (
        AGENT,
        True,
        False,
        False,
    )
    assert [loss.path for loss in request.losses] == ["options.temperature", "options.effort"]


def test_a_model_of_one_api_is_asked_there() -> None:
    assert asked([QUESTION], model="lyria-3-pro-preview", api=None).api == "interactions"
    assert asked([QUESTION], model=NEW, api=None).api == "generate"
    with pytest.raises(CapabilityError, match="interactions"):
        asked([QUESTION], model="lyria-3-pro-preview", api="generate")
    with pytest.raises(CapabilityError, match="generate, interactions"):
        asked([QUESTION], api="chat")


def test_a_batch_holds_no_interactions() -> None:
    request = asked([QUESTION])
    with pytest.raises(CapabilityError, match="generateContent"):
        GOOGLE.auxiliary_request("batch_create", {"requests": [("r1", request)], "name": "n"})


def test_an_authored_answer_is_an_output() -> None:
    assert _input(QUESTION, assistant("yes"), user("n"))[1] == {"type": "model_output", "content": [_text("yes")]}
