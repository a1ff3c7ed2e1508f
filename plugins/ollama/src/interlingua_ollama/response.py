"""A whole answer -> canonical message, read as one line of a stream; and the list of models (WIRE.md, Answers)."""

from __future__ import annotations

from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.plugins import MessageAssembler, RequestContext, WireResponse, loads
from interlingua.types import Message, MessageStatus
from interlingua_ollama.errors import error_from_body
from interlingua_ollama.stream import OllamaAnswerReader


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Return the message of an answer.

    Raises:
        ProviderError: an error inside a 200.
        MalformedResponseError: not an answer of this wire.
    """
    try:
        body = loads(response.body)
    except ValueError as error:
        raise MalformedResponseError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise MalformedResponseError(f"the body is a JSON {type(body).__name__}, not an object")
    if body.get("error"):
        raise error_from_body(body, headers=response.headers)
    if not isinstance(body.get("message"), dict) and not isinstance(body.get("response"), str):
        raise MalformedResponseError("the answer holds no message", path="/message")
    reader = OllamaAnswerReader(context)
    assembler = MessageAssembler(context)
    assembler.feed(reader.read(body))
    assembler.feed(reader.end(complete=bool(reader.done)))
    return assembler.message(MessageStatus.COMPLETE if reader.done else MessageStatus.PARTIAL)


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model names for `models`."""
    return [model["model"] for model in loads(response.body)["models"]] if kind == "models" else None
