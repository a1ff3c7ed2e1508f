"""The words of Anthropic's Messages API and of OpenAI's Responses API, from their SDKs' types."""

from __future__ import annotations

from typing import Any

import anthropic.types.beta as messages
import openai.types.responses as responses
from anthropic.types.beta import message_create_params as messages_request
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
    start = {**answer, "content": [], "stop_reason": None}
    headers = {"betas": "anthropic-beta", "user_profile_id": "anthropic-user-profile-id"}
    return Wire(
        name="Anthropic Messages", sdk="anthropic", key="anthropic", api="messages",
        models=("claude-opus-5", "claude-sonnet-4-5", "claude-opus-4-1"),
        parameters=members(messages_request.MessageCreateParamsBase) | {"stream": bool},
        headers={**headers, "workspace_id": "anthropic-workspace-id"},
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
        chunk=(4, (
            Part("message_delta", (), members(messages.BetaRawMessageDeltaEvent)),
            Part("message_delta.delta", ("delta",), members(kinds(messages.BetaRawMessageStreamEvent)["message_delta"].model_fields["delta"].annotation)),
            Part("message_delta.usage", ("usage",), members(messages.BetaMessageDeltaUsage)),
        )),
        stream_block=_block_events,
        events=kinds(messages.BetaRawMessageStreamEvent),
        deltas={kind: (hint, _around(kind)) for kind, hint in kinds(messages.BetaRawContentBlockDelta).items()},
    )  # fmt: skip


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
            {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}, "sequence_number": 1},
            {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "item_id": "msg_1",
             "part": {"type": "output_text", "text": "", "annotations": []}, "sequence_number": 2},
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1",
             "delta": "Hello.", "sequence_number": 3},
            {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "item_id": "msg_1",
             "text": "Hello.", "sequence_number": 4},
            {"type": "response.output_item.done", "output_index": 0, "item": message, "sequence_number": 5},
            {"type": "response.completed", "response": answer, "sequence_number": 6},
        ),
        chunk=(6, (Part("response.completed", ("response",), members(responses.Response)),)),
        stream_block=lambda item: [
            {"type": "response.output_item.added", "output_index": 1, "item": item, "sequence_number": 5},
            {"type": "response.output_item.done", "output_index": 1, "item": item, "sequence_number": 5},
        ],
        events=kinds(responses.ResponseStreamEvent),
    )  # fmt: skip
