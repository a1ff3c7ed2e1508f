"""The words of Anthropic's Messages API and of OpenAI's Responses API, from their SDKs' types."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anthropic
import anthropic.types.beta as messages
import httpx2
from anthropic.types.beta import message_create_params as messages_request
from openai.types import responses
from openai.types.responses import response_create_params as responses_request

from tests.tools.coverage.sdk_types import kinds, members
from tests.tools.coverage.wire import Event, Part, Wire

_DELTA_BLOCKS: dict[str, Event] = {
    "text_delta": {"type": "text", "text": ""},
    "citations_delta": {"type": "text", "text": "", "citations": []},
    "input_json_delta": {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "compaction_delta": {"type": "compaction", "content": None, "encrypted_content": ""},
}


# event -> the kind of the item, and the member in which the whole item has it again
_PIECES = {
    "response.code_interpreter_call_code.delta": ("code_interpreter_call", "code"),
    "response.code_interpreter_call_code.done": ("code_interpreter_call", "code"),
    "response.content_part.added": ("message", "content"),
    "response.content_part.done": ("message", "content"),
    "response.function_call_arguments.delta": ("function_call", "arguments"),
    "response.function_call_arguments.done": ("function_call", "arguments"),
    "response.shell_call_command.added": ("shell_call", "action"),
    "response.shell_call_command.delta": ("shell_call", "action"),
    "response.shell_call_command.done": ("shell_call", "action"),
    "response.shell_call_output_content.delta": ("shell_call_output", "output"),
    "response.shell_call_output_content.done": ("shell_call_output", "output"),
    "response.apply_patch_call_operation_diff.delta": ("apply_patch_call", "operation"),
    "response.apply_patch_call_operation_diff.done": ("apply_patch_call", "operation"),
    "response.reasoning_summary_part.added": ("reasoning", "summary"),
    "response.reasoning_summary_part.done": ("reasoning", "summary"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary"),
    "response.reasoning_summary_text.done": ("reasoning", "summary"),
    "response.reasoning_text.delta": ("reasoning", "content"),
    "response.reasoning_text.done": ("reasoning", "content"),
    "response.refusal.delta": ("message", "content"),
    "response.refusal.done": ("message", "content"),
    "response.image_generation_call.partial_image": ("image_generation_call", "result"),
    "response.mcp_call_arguments.delta": ("mcp_call", "arguments"),
    "response.mcp_call_arguments.done": ("mcp_call", "arguments"),
    "response.output_text.annotation.added": ("message", "content"),
    "response.custom_tool_call_input.delta": ("custom_tool_call", "input"),
    "response.custom_tool_call_input.done": ("custom_tool_call", "input"),
}
_ENDINGS = ("response.completed", "response.incomplete", "response.failed")


def _block_events(block: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": 1, "content_block": block},
        *({"type": "content_block_delta", "index": 1, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 1},
    ]


def _around(kind: str) -> Any:
    return lambda delta: _block_events(_DELTA_BLOCKS[kind], delta)


def messages_api() -> Wire:
    """Return the Messages API."""
    usage = {"input_tokens": 5, "output_tokens": 7}
    answer: Event = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": "Hello."}], "usage": usage,
    }  # fmt: skip
    start = {**answer, "content": [], "stop_reason": None, "usage": {"input_tokens": 5, "output_tokens": 1}}
    begun = _without(messages.BetaMessage, "content", "stop_reason", "usage")
    changed = members(messages.BetaRawMessageDeltaEvent)
    parameters = members(messages_request.MessageCreateParamsBase) | {"stream": bool}
    return Wire(
        name="Anthropic Messages", sdk="anthropic", key="anthropic", api="messages",
        models=("claude-opus-5", "claude-sonnet-4-5", "claude-opus-4-1"),
        parameters=parameters, headers=_headers(parameters),
        sent=kinds(messages.BetaContentBlockParam),
        tools=_tools(),
        answer=answer,
        parts=(Part("", (), members(messages.BetaMessage)), Part("usage", ("usage",), members(messages.BetaUsage))),
        blocks=kinds(messages.BetaContentBlock),
        content=("content",),
        stream=(
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ),
        event_at=-2,
        chunks=[(0, (
            Part("message_start.message", ("message",), begun),
            Part("message_start.message.usage", ("message", "usage"), members(messages.BetaUsage)),
        )), (4, (
            Part("message_delta", (), changed),
            Part("message_delta.delta", ("delta",), members(changed["delta"])),
            Part("message_delta.usage", ("usage",), members(messages.BetaMessageDeltaUsage)),
        ))],
        stream_block=_block_events,
        events=kinds(messages.BetaRawMessageStreamEvent),
        deltas={kind: (hint, _around(kind)) for kind, hint in kinds(messages.BetaRawContentBlockDelta).items()},
    )  # fmt: skip


def _headers(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the header of each parameter that the SDK sends as one, found by having it send them."""
    sent: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(400, json={})

    client = anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))
    needed: dict[str, Any] = {"model": "m", "max_tokens": 1, "messages": []}
    found: dict[str, str] = {}
    for name in parameters.keys() - {*needed, "stream"}:
        for value in ("zq7", ["zq7"]):
            with suppress(Exception):  # the answer, or a value that the SDK cannot write
                client.beta.messages.create(**{**needed, name: value})
            headers = sent.pop().headers.items() if sent else ()
            if header := next((header for header, text in headers if "zq7" in text), None):
                found[name] = header
    return found


def _without(hint: Any, *names: str) -> dict[str, Any]:
    """Return an object's members but those that other events of the stream fill."""
    return {name: one for name, one in members(hint).items() if name not in names}


def _tools() -> dict[str, Any]:
    found = kinds(messages.BetaToolUnionParam)
    return {("function" if kind == "custom" else kind): hint for kind, hint in found.items()}


def responses_api() -> Wire:
    """Return the Responses API."""
    message = {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
    }  # fmt: skip
    usage = {
        "input_tokens": 5, "output_tokens": 7, "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    answer: Event = {
        "id": "resp_1", "object": "response", "model": "gpt-6-sol", "status": "completed", "output": [message],
        "usage": usage,
    }  # fmt: skip
    opened = {**answer, "status": "in_progress", "output": [], "usage": None}
    return Wire(
        name="OpenAI Responses", sdk="openai", key="openai", api="responses",
        models=("gpt-6-sol", "gpt-4.1"),
        parameters=members(responses_request.ResponseCreateParamsBase) | {"stream": bool},
        sent=kinds(responses.ResponseInputItemParam) | kinds(responses.ResponseInputContentParam),
        tools=kinds(responses.ToolParam),
        answer=answer,
        parts=(Part("", (), members(responses.Response)), Part("usage", ("usage",), members(responses.ResponseUsage))),
        echoed=True,
        blocks=kinds(responses.ResponseOutputItem),
        content=("output",),
        stream=(
            {"type": "response.created", "response": opened, "sequence_number": 0},
            {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []},
             "sequence_number": 1},
            {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "item_id": "msg_1",
             "part": {"type": "output_text", "text": "", "annotations": []}, "sequence_number": 2},
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1",
             "delta": "Hello.", "sequence_number": 3},
            {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "item_id": "msg_1",
             "text": "Hello.", "sequence_number": 4},
            {"type": "response.output_item.done", "output_index": 0, "item": message, "sequence_number": 5},
            {"type": "response.completed", "response": answer, "sequence_number": 6},
        ),
        chunks=[(6, (Part("response.completed", ("response",), _without(responses.Response, "output")),))],
        pieces=_PIECES, endings={kind: {"response": {**answer, "status": kind.split(".")[1]}} for kind in _ENDINGS},
        stream_block=lambda item: [
            {"type": "response.output_item.added", "output_index": 1, "item": item, "sequence_number": 5},
            {"type": "response.output_item.done", "output_index": 1, "item": item, "sequence_number": 5},
        ],
        events=kinds(responses.ResponseStreamEvent),
    )  # fmt: skip
