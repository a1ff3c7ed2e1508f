"""The serving plugin of services on this format, and those of the shipped presets.

`from interlingua_chat_completions.serving import groq` returns the plugin of the preset `groq`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from interlingua.errors import InterlinguaError
from interlingua.plugins import WireRequest, WireResponse, dumps
from interlingua.types import Message
from interlingua_chat_completions import errors, presets, serve_answer, serve_request
from interlingua_chat_completions.dialect import API, Dialect
from interlingua_serving import InboundRequest, ServeContext, ServedApi, StreamWriter, hookimpl


class ChatServing:
    """Reads and writes Chat Completions in the dialect of a service.

    It declares no paths: those of the format belong to the service that defined it.

    Args:
        dialect_of: returns the dialect of a model name; the same name must return the same object.
    """

    serving_version = 1

    def __init__(self, dialect_of: Callable[[str], Dialect]) -> None:
        self._dialect_of = dialect_of

    @hookimpl
    def served_apis(self) -> Sequence[ServedApi]:
        """Return the format, without paths."""
        return (ServedApi(name=API),)

    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        """Read a request."""
        return serve_request.from_wire_request(request, context, self._dialect_of)

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        """Write a complete answer."""
        return serve_answer.to_wire_response(message, context, self._dialect_of(context.model))

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> StreamWriter:
        """Return an object that writes a stream."""
        return serve_answer.ChatWriter(context, self._dialect_of(context.model))

    @hookimpl
    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse:
        """Write a failure."""
        return errors.to_wire_error(error)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        """Write a list of models, or one model."""
        if kind not in ("models", "model"):
            return None
        names = value if kind == "models" else [value.name]
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "interlingua"} for name in names]
        body = dumps({"object": "list", "data": data} if kind == "models" else data[0])
        return WireResponse(headers={"content-type": "application/json"}, body=body)


def __getattr__(key: str) -> ChatServing:
    if key.startswith("_"):
        raise AttributeError(key)
    return ChatServing(getattr(presets, key).dialect_of)
