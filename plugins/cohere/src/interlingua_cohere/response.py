"""A whole answer -> canonical message, by the reader of streams; usage; auxiliary answers (WIRE.md, Answers)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.plugins import MessageAssembler, RequestContext, WireResponse, loads
from interlingua.types import Message, MessageStatus
from interlingua_cohere.errors import error_from_body
from interlingua_cohere.stream import CohereAnswerReader

_READ = frozenset(("message", "finish_reason", "usage", "logprobs"))


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Return the message of an answer.

    Raises:
        ProviderError: the generation failed, or an error inside a 200.
        MalformedResponseError: not an answer of this wire.
    """
    try:
        body = loads(response.body)
    except ValueError as error:
        raise MalformedResponseError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise MalformedResponseError(f"the body is a JSON {type(body).__name__}, not an object")
    message = body.get("message")
    if isinstance(message, str):
        raise error_from_body(body, headers=response.headers)
    if not isinstance(message, dict):
        raise MalformedResponseError("the answer holds no message", path="/message")
    reader = CohereAnswerReader(context)
    events = _read(reader, message)
    for key, value in body.items():
        if key not in _READ:
            reader.trace[key] = value
    if isinstance(body.get("logprobs"), list):
        reader.trace["logprobs"] = body["logprobs"]
    events += reader.read_end(body)
    if reader.error is not None:
        raise reader.error
    assembler = MessageAssembler(context)
    finished = body.get("finish_reason") is not None
    assembler.feed(events + reader.end(complete=finished))
    return assembler.message(MessageStatus.COMPLETE if finished else MessageStatus.PARTIAL)


def _read(reader: CohereAnswerReader, message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    events: list[Any] = []
    for at, item in enumerate(content or ()):
        events += reader.read_content(at, item)
    events += reader.read_plan(message.get("tool_plan"))
    for at, call in enumerate(message.get("tool_calls") or ()):
        events += [*reader.start_call(at, call), *reader.end_call(at)]
    for citation in message.get("citations") or ():
        reader.read_citation(citation)
    return events


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model names for `models`, the number of tokens for `tokenize`."""
    body = loads(response.body)
    if kind == "models":
        return [model["name"] for model in body["models"]]
    return len(body["tokens"]) if kind == "tokenize" else None
