"""Answers of every wire, written from the WIRE.md of its plugin: a text or a call, whole and streamed."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from interlingua.plugins import WireChunk
from interlingua_bedrock.event_stream import EventStreamFramer

JSON = {"content-type": ["application/json"]}
SSE = {"content-type": ["text/event-stream"]}


class Said(NamedTuple):
    """What an answer says: a text, or a call of a tool by its name with the text as its input."""

    model: str
    text: str
    tool: str = ""
    asked: int = 90  # input tokens

    def pieces(self) -> Iterator[str]:
        for at in range(0, len(self.text), 9):
            yield self.text[at : at + 9]


def whole(api: str, said: Said) -> dict[str, Any]:
    """Return the response of a cassette with the whole answer."""
    return _response(JSON, {"parsed_body": _WHOLE[api](said)})


def streamed(api: str, said: Said) -> dict[str, Any]:
    """Return the response of a cassette with the answer as a stream."""
    events = [*_STREAMED[api](said)]
    if api == "converse":
        framed = b"".join(EventStreamFramer.write(_chunk(name, data)) for name, data in events)
        return _response(
            {"content-type": ["application/vnd.amazon.eventstream"]}, {"base64": b64encode(framed).decode()}
        )
    if api == "chat-native":
        return _response(
            {"content-type": ["application/x-ndjson"]}, {"lines": [*(_json(data) for _, data in events), ""]}
        )
    lines = []
    for name, data in events:
        lines += [*([f"event: {name}"] if name else []), f"data: {data if isinstance(data, str) else _json(data)}", ""]
    return _response(SSE, {"lines": [*lines, ""]})


def _response(headers: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"code": 200, "message": "OK"}, "headers": headers, "body": body}


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


def _chunk(name: str, data: Any) -> WireChunk:
    head = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return WireChunk(name, _json(data).encode(), head)


# -- Messages -----------------------------------------------------------------------------------------------------


def _messages(said: Said) -> dict[str, Any]:
    block = (
        {"type": "tool_use", "id": "toolu_01A", "name": said.tool, "input": json.loads(said.text)}
        if said.tool
        else {"type": "text", "text": said.text}
    )
    return {
        "id": "msg_01A", "type": "message", "role": "assistant", "model": said.model, "content": [block],
        "stop_reason": "tool_use" if said.tool else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": said.asked, "output_tokens": 12},
    }  # fmt: skip


def _messages_streamed(said: Said) -> Iterator[tuple[str, Any]]:
    answer = _messages(said)
    (block,) = answer["content"]
    begun = {**block, **({"input": {}} if said.tool else {"text": ""})}
    kind, field = ("input_json_delta", "partial_json") if said.tool else ("text_delta", "text")
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: one}} for one in said.pieces()),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": answer["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 12},
        },
        {"type": "message_stop"},
    ]
    yield from ((event["type"], event) for event in events)


# -- Chat Completions ---------------------------------------------------------------------------------------------


def _chat(said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if said.tool else said.text}
    if said.tool:
        function = {"name": said.tool, "arguments": said.text}
        message["tool_calls"] = [{"id": "A1b2C3d4E", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if said.tool else "stop"}
    return {
        "id": "chatcmpl-A", "object": "chat.completion", "created": 1790000000, "model": said.model,
        "choices": [choice],
        "usage": {"prompt_tokens": said.asked, "completion_tokens": 12, "total_tokens": said.asked + 12},
    }  # fmt: skip


def _chat_streamed(said: Said) -> Iterator[tuple[str, Any]]:
    answer = _chat(said)
    head = {"id": "chatcmpl-A", "object": "chat.completion.chunk", "created": 1790000000, "model": said.model}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> tuple[str, Any]:
        return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": None if said.tool else ""})
    if said.tool:
        function = {"name": said.tool, "arguments": ""}
        yield chunk({"tool_calls": [{"index": 0, "id": "A1b2C3d4E", "type": "function", "function": function}]})
    for one in said.pieces():
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": one}}]} if said.tool else {"content": one})
    yield chunk({}, answer["choices"][0]["finish_reason"])
    yield "", {**head, "choices": [], "usage": answer["usage"]}
    yield "", "[DONE]"


# -- Responses ----------------------------------------------------------------------------------------------------


def _item(said: Said) -> dict[str, Any]:
    if said.tool:
        return {
            "id": "fc_A", "type": "function_call", "status": "completed", "call_id": "call_A", "name": said.tool,
            "arguments": said.text,
        }  # fmt: skip
    content = [{"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}]
    return {"id": "msg_A", "type": "message", "status": "completed", "role": "assistant", "content": content}


def _responses(said: Said) -> dict[str, Any]:
    usage = {
        "input_tokens": said.asked, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": said.asked + 12,
    }  # fmt: skip
    return {
        "id": "resp_A", "object": "response", "created_at": 1790000000, "status": "completed", "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "model": said.model, "output": [_item(said)],
        "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": usage,
    }  # fmt: skip


def _responses_streamed(said: Said) -> Iterator[tuple[str, Any]]:
    answer, item = _responses(said), _item(said)
    begun = {**item, "status": "in_progress", **({"arguments": ""} if said.tool else {"content": []})}
    at: dict[str, Any] = {"item_id": item["id"], "output_index": 0}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**answer, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
    ]
    if said.tool:
        kind = "response.function_call_arguments"
        events += [{"type": f"{kind}.delta", **at, "delta": one} for one in said.pieces()]
        events.append({"type": f"{kind}.done", **at, "name": said.tool, "arguments": said.text})
    else:
        at["content_index"] = 0
        events.append({"type": "response.content_part.added", **at, "part": part})
        events += [{"type": "response.output_text.delta", **at, "delta": one, "logprobs": []} for one in said.pieces()]
        events.append({"type": "response.output_text.done", **at, "text": said.text, "logprobs": []})
        events.append({"type": "response.content_part.done", **at, "part": {**part, "text": said.text}})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": answer})
    yield from ((event["type"], {**event, "sequence_number": at}) for at, event in enumerate(events))


# -- generateContent ----------------------------------------------------------------------------------------------


def _generate(said: Said) -> dict[str, Any]:
    part = {"functionCall": {"name": said.tool, "args": json.loads(said.text)}} if said.tool else {"text": said.text}
    return _generated(said, part, "STOP")


def _generated(said: Said, part: dict[str, Any], reason: str | None) -> dict[str, Any]:
    candidate = {"content": {"parts": [part], "role": "model"}, "index": 0}
    return {
        "candidates": [{**candidate, **({"finishReason": reason} if reason else {})}],
        "usageMetadata": {
            "promptTokenCount": said.asked,
            "candidatesTokenCount": 12,
            "totalTokenCount": said.asked + 12,
        },
        "modelVersion": said.model,
        "responseId": "authored1",
    }


def _generate_streamed(said: Said) -> Iterator[tuple[str, Any]]:
    if said.tool:
        yield "", _generate(said)
        return
    *first, last = said.pieces()
    yield from (("", _generated(said, {"text": one}, None)) for one in first)
    yield "", _generated(said, {"text": last}, "STOP")


# -- Converse -----------------------------------------------------------------------------------------------------


def _converse_usage(said: Said) -> dict[str, int]:
    return {"inputTokens": said.asked, "outputTokens": 12, "totalTokens": said.asked + 12}


def _converse(said: Said) -> dict[str, Any]:
    block: dict[str, Any] = (
        {"toolUse": {"toolUseId": "tooluse_A", "name": said.tool, "input": json.loads(said.text)}}
        if said.tool
        else {"text": said.text}
    )
    return {
        "metrics": {"latencyMs": 200},
        "output": {"message": {"role": "assistant", "content": [block]}},
        "stopReason": "tool_use" if said.tool else "end_turn",
        "usage": _converse_usage(said),
    }


def _converse_streamed(said: Said) -> Iterator[tuple[str, Any]]:
    yield "messageStart", {"role": "assistant"}
    if said.tool:
        start = {"toolUse": {"toolUseId": "tooluse_A", "name": said.tool}}
        yield "contentBlockStart", {"contentBlockIndex": 0, "start": start}
    for one in said.pieces():
        delta = {"toolUse": {"input": one}} if said.tool else {"text": one}
        yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}
    yield "contentBlockStop", {"contentBlockIndex": 0}
    yield "messageStop", {"stopReason": "tool_use" if said.tool else "end_turn"}
    yield "metadata", {"usage": _converse_usage(said), "metrics": {"latencyMs": 200}}


# -- Cohere -------------------------------------------------------------------------------------------------------


def _cohere_usage(said: Said) -> dict[str, Any]:
    tokens = {"input_tokens": said.asked, "output_tokens": 12}
    return {"billed_units": {"input_tokens": 14, "output_tokens": 8}, "tokens": tokens, "cached_tokens": 0}


def _cohere_call(said: Said, arguments: str) -> dict[str, Any]:
    return {"id": "city_A", "type": "function", "function": {"name": said.tool, "arguments": arguments}}


def _cohere(said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if said.tool:
        message |= {"tool_plan": "I will give the answer.", "tool_calls": [_cohere_call(said, said.text)]}
    else:
        message["content"] = [{"type": "text", "text": said.text}]
    reason = "TOOL_CALL" if said.tool else "COMPLETE"
    return {"id": "c1a5b0c2-0100", "message": message, "finish_reason": reason, "usage": _cohere_usage(said)}


def _cohere_streamed(said: Said) -> Iterator[tuple[str, Any]]:
    empty = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}

    def event(kind: str, message: Any) -> tuple[str, Any]:
        return kind, {"type": kind, "index": 0, "delta": {"message": message}}

    yield "message-start", {"id": "c1a5b0c2-0100", "type": "message-start", "delta": {"message": empty}}
    if said.tool:
        yield event("tool-call-start", {"tool_calls": _cohere_call(said, "")})
        for one in said.pieces():
            yield event("tool-call-delta", {"tool_calls": {"function": {"arguments": one}}})
        yield "tool-call-end", {"type": "tool-call-end", "index": 0}
    else:
        yield event("content-start", {"content": {"type": "text", "text": ""}})
        for one in said.pieces():
            yield event("content-delta", {"content": {"text": one}})
        yield "content-end", {"type": "content-end", "index": 0}
    reason = "TOOL_CALL" if said.tool else "COMPLETE"
    yield "message-end", {"type": "message-end", "delta": {"finish_reason": reason, "usage": _cohere_usage(said)}}
    yield "", "[DONE]"


# -- Ollama -------------------------------------------------------------------------------------------------------


def _ollama_end(said: Said) -> dict[str, Any]:
    return {
    "done": True, "done_reason": "stop", "total_duration": 5191566416, "load_duration": 2154458,
    "prompt_eval_count": said.asked, "prompt_eval_duration": 383809000, "eval_count": 12, "eval_duration": 4799921000,
}  # fmt: skip


def _ollama_message(said: Said, text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if said.tool:
        function = {"index": 0, "name": said.tool, "arguments": json.loads(said.text)}
        message |= {"content": "", "tool_calls": [{"id": "call_8x2kq0ab", "function": function}]}
    return {"model": said.model, "created_at": "2026-11-22T00:00:01.5Z", "message": message}


def _ollama(said: Said) -> dict[str, Any]:
    return {**_ollama_message(said, said.text), **_ollama_end(said)}


def _ollama_streamed(said: Said) -> Iterator[tuple[str, Any]]:
    for one in said.pieces() if not said.tool else [""]:
        yield "", {**_ollama_message(said, one), "done": False}
    yield "", {**_ollama_message(said._replace(tool=""), ""), **_ollama_end(said)}


_WHOLE: dict[str, Callable[[Said], dict[str, Any]]] = {
    "messages": _messages, "chat": _chat, "responses": _responses, "generate": _generate, "converse": _converse,
    "chat-v2": _cohere, "chat-native": _ollama,
}  # fmt: skip
_STREAMED: dict[str, Callable[[Said], Iterator[tuple[str, Any]]]] = {
    "messages": _messages_streamed, "chat": _chat_streamed, "responses": _responses_streamed,
    "generate": _generate_streamed, "converse": _converse_streamed, "chat-v2": _cohere_streamed,
    "chat-native": _ollama_streamed,
}  # fmt: skip
