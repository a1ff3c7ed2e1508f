"""Calls that the service ran itself, and answers in the background (WIRE.md, Responses server tools)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.errors import StreamInterruptedError
from interlingua.plugins import RequestContext, WireResponse
from interlingua.types.blocks import OpaqueBlock, ToolUseBlock
from interlingua.types.factories import user
from interlingua.types.messages import Message, MessageStatus, StopReason
from interlingua_cli.lint import lint_request
from tests.plugins.openai.wire import PROVIDER, body_of, context, events_of, request, response, said, sse, streamed

MODEL = "grok-4.6"
SEARCHED = {
    "id": "ctc_1", "type": "custom_tool_call", "status": "completed", "call_id": "xs_call_1",
    "name": "x_keyword_search", "input": '{"query":"from:xai"}',
}  # fmt: skip
PATCHED = SEARCHED | {"id": "ctc_2", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin Patch"}
DEEP = SEARCHED | {"id": "ctc_3", "call_id": "call_3", "name": "sql", "input": "select 1"}
TOOLS = [
    {"type": "x_search"}, {"type": "custom", "name": "apply_patch"},
    {"type": "namespace", "name": "db", "tools": [{"type": "custom", "name": "sql"}]},
]  # fmt: skip


def _context(tools: Any) -> RequestContext:
    """Return the context of an answer to a request with these tools of the service's own."""
    options = {"provider_options": {"tools": tools}} if tools else {}
    return attrs.evolve(context(MODEL), echo=request([user("go")], model=MODEL, **options).echo)


def _events(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a response, its custom calls with deltas of their input."""
    events = []
    for event in events_of(dict(body)):
        item = event.get("item") or {}
        if event["type"] == "response.output_item.added" and item.get("type") == "custom_tool_call":
            at = {"output_index": event["output_index"], "item_id": item["id"]}
            events += [
                event | {"item": item | {"input": "", "status": "in_progress"}},
                {"type": "response.custom_tool_call_input.delta", **at, "delta": item["input"]},
                {"type": "response.custom_tool_call_input.done", **at, "input": item["input"]},
            ]
        else:
            events.append(event)
    return events


def _read(body: dict[str, Any], tools: Any, *, stream: bool) -> Message:
    about = _context(tools)
    if not stream:
        return PROVIDER.from_wire_response(WireResponse(body=json.dumps(body).encode()), about)
    decoder = StreamDecoder(PROVIDER, framer("sse"), about)
    decoder.feed(sse(_events(body)))
    decoder.end()
    return decoder.message()


streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@streams
def test_an_answer_behind_a_search_of_the_service_waits_for_nothing(stream: bool) -> None:
    answer = _read(response(SEARCHED, said("Found.")), TOOLS, stream=stream)

    assert [type(block).__name__ for block in answer.content] == ["OpaqueBlock", "TextBlock"]
    opaque = answer.content[0]
    assert isinstance(opaque, OpaqueBlock)
    assert opaque.data == SEARCHED
    assert answer.metadata.stop_reason is StopReason.END_TURN
    assert answer.tool_calls == []


@streams
def test_what_the_service_ran_does_not_go_back(stream: bool) -> None:
    answer = _read(response(SEARCHED, said("Found.")), TOOLS, stream=stream)
    history = [user("go"), answer, user("more")]
    for model in (MODEL, "gpt-5.5"):
        made = request(history, model=model)
        items = json.loads(made.body)["input"]

        assert [item.get("role") for item in items] == ["user", "assistant", "user"]
        assert [(loss.path, loss.verdict) for loss in made.losses] == [("messages[1].content[0]", "dropped")]
        assert not lint_request(PROVIDER, made)
    assert "xs_call_1" not in str(body_of(history, model=MODEL, api="chat"))


@streams
@pytest.mark.parametrize("tools", [TOOLS, None], ids=["declared", "no-tools"])
@pytest.mark.parametrize("item", [PATCHED, DEEP], ids=["custom", "in-a-namespace"])
def test_a_custom_tool_of_the_caller_is_called(item: dict[str, Any], tools: Any, stream: bool) -> None:
    answer = _read(response(item), tools, stream=stream)

    (call,) = answer.tool_calls
    assert isinstance(call, ToolUseBlock)
    assert call.name == item["name"]
    assert dict(call.input) == {"input": item["input"]}
    assert answer.metadata.stop_reason is StopReason.TOOL_USE


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_an_answer_in_the_background_is_not_complete(status: str) -> None:
    waiting = _read(response(status=status, usage=None), None, stream=False)

    assert waiting.metadata.status is MessageStatus.PARTIAL
    assert waiting.content == ()
    assert waiting.metadata.usage is None
    raw = waiting.metadata.provider_raw
    assert raw is not None
    assert (raw["trace"]["id"], raw["trace"]["status"]) == ("resp_1", status)
    assert [item["role"] for item in body_of([user("go"), waiting, user("well?")])["input"]] == ["user", "user"]


def test_an_answer_that_a_stream_brought_from_the_background_is_complete() -> None:
    events = _events(response(said("Done.")))
    events.insert(1, {"type": "response.queued", "response": response(status="queued")})
    decoder = StreamDecoder(PROVIDER, framer("sse"), context())
    decoder.feed(sse(events))
    decoder.end()

    assert decoder.message().metadata.status is MessageStatus.COMPLETE
    assert decoder.message().text == "Done."


def _broken_off(*events: dict[str, Any]) -> OpaqueBlock:
    """Return the only block of a stream that breaks off after these events."""
    with pytest.raises(StreamInterruptedError) as caught:
        streamed(events)
    [block] = caught.value.partial.content
    assert isinstance(block, OpaqueBlock)
    return block


@pytest.mark.parametrize(
    ("kind", "member", "event"),
    [
        ("code_interpreter_call", "code", "response.code_interpreter_call_code.delta"),
        ("mcp_call", "arguments", "response.mcp_call_arguments.delta"),
    ],
)
def test_a_broken_stream_keeps_the_pieces_of_a_call_of_the_service(kind: str, member: str, event: str) -> None:
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"type": kind, "id": "i", member: ""}}
    piece = {"type": event, "output_index": 0, "item_id": "i", "delta": "a1 "}
    block = _broken_off(added, *[piece] * 3000)

    assert block.data[member] == "a1 " * 3000


@pytest.mark.parametrize(("at", "place"), [(0, 0), (2, 2), (-1, 0), (10**9, 1000)])
def test_a_broken_stream_keeps_what_commands_wrote(at: int, place: int) -> None:
    item = {"type": "shell_call_output", "id": "i", "call_id": "c", "output": []}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    piece = {"type": "response.shell_call_output_content.delta", "output_index": 0, "item_id": "i", "command_index": at}
    first, second = piece | {"delta": {"stdout": "one "}}, piece | {"delta": {"stdout": "two", "stderr": "oh"}}
    outputs = _broken_off(added, first, second).data["output"]

    assert outputs[place] == {"stdout": "one two", "stderr": "oh"}
    assert not any(outputs[:place])
