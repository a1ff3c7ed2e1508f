"""A made-up provider with its own API, and the serving plugin that a third party would write for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from interlingua.errors import AuthenticationError, CallerError, InterlinguaError
from interlingua.plugins import Loss, WireRequest, WireResponse
from interlingua.types import ErrorEvent, Message, MessageComplete, RequestOptions, StreamEvent, TextDelta, user
from interlingua_serving import InboundRequest, ServeContext, ServedApi, ServedRoute, hookimpl
from tests.support.fake_provider import Fake

API = "talk"


class LineWriter:
    """Writes one line of JSON for each piece of text, and `.` at the end."""

    content_type = "application/x-ndjson"

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self._complete = False

    def feed(self, events: Iterable[StreamEvent]) -> bytes:
        lines = b""
        for event in events:
            if isinstance(event, TextDelta):
                lines += json.dumps({"acme": event.text}).encode() + b"\n"
            elif isinstance(event, ErrorEvent):
                lines += b'{"failed": true}\n'
            self._complete = self._complete or isinstance(event, MessageComplete)
        return lines

    def end(self) -> bytes:
        return b".\n" if self._complete else b""


class AcmeServing:
    """The serving plugin; `extra` are paths that another API has too."""

    serving_version = 1

    def __init__(self, extra: Sequence[ServedRoute] = ()) -> None:
        self._extra = tuple(extra)

    @hookimpl
    def served_apis(self) -> Sequence[ServedApi]:
        routes = (
            ServedRoute(path="/acme/{name}/talk"),
            ServedRoute(path="/acme/count", kind="count_tokens"),
            ServedRoute(path="/acme/models", kind="models", method="GET"),
            *self._extra,
        )
        return [
            ServedApi(
                name=API,
                routes=routes,
                references=("thread",),
                key_headers=("x-acme-key",),
                key_parameters=("acme_key",),
            )
        ]

    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        assert "x-acme-key" not in request.headers
        assert "acme_key" not in request.path
        body = json.loads(request.body)
        if "say" not in body:
            raise CallerError("say is missing")
        options = RequestOptions(model=body["model"], api=API, stream=body.get("stream", False))
        return InboundRequest(
            messages=(user(body["say"]),),
            options=options,
            extra={"thread": body.get("thread")},
            provider=context.provider,
        )

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        return _json({"acme": message.text, "model": context.model})

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> LineWriter:
        return LineWriter()

    @hookimpl
    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse:
        return _json({"wrong": error.message}, 401 if isinstance(error, AuthenticationError) else 400)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse:
        return _json({kind: value})


def _json(body: dict[str, Any], status: int = 200) -> WireResponse:
    return WireResponse(status=status, headers={"content-type": "application/json"}, body=json.dumps(body).encode())


provider = Fake()
plugin = AcmeServing()
shared = AcmeServing([ServedRoute(path="/v1/chat/completions")])
