"""A provider with a tiny wire of its own, and a server that speaks it, for tests of what stands between them.

The wire: `{"say": text, "calls": [[id, name, arguments]], "end": reason, "in": n, "out": n}` whole; streamed,
server-sent events of one key each: `t` text, `call` a call, `use` counts, `end` the terminal one, `error` a failure.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from interlingua._catalogue import ModelInfo
from interlingua._plugins.hookspecs import hookimpl
from interlingua._plugins.registry import Registry
from interlingua.errors import OverloadedError, ProviderError
from interlingua.plugins import Connection, ConnectionSettings, RequestContext, WireChunk, WireRequest, WireResponse
from interlingua.types.blocks import ContentBlock, TextBlock, ToolUseBlock
from interlingua.types.events import ErrorEvent, MessageComplete, StreamEvent, TextDelta, UsageUpdate
from interlingua.types.messages import Message, StopReason, Usage
from interlingua.types.options import ModelCapabilities, RequestOptions
from interlingua.types.tools import ToolDefinition
from tests.support.loopback import LoopbackHandler, LoopbackServer

CAPABLE = ModelCapabilities(
    supports_tools=True, supports_images=True, supports_system_prompt=True, supports_streaming=True, api="say"
)


class Fake:
    """The provider; its capabilities may be set per test."""

    def __init__(self, capabilities: ModelCapabilities = CAPABLE, **connection: Any) -> None:
        self._capabilities = capabilities
        self._connection = connection

    @hookimpl
    def capabilities(self, model: str) -> ModelCapabilities:
        return self._capabilities

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return [ModelInfo(id="known")]

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        key = settings.api_key or settings.environ.get("FAKE_KEY", "")
        return Connection(
            base_url=settings.base_url or "http://127.0.0.1:9",
            auth=lambda _request: {"X-Key": key},
            headers={"X-From": "connection", "X-Version": "1"},
            env_vars=("FAKE_KEY",),
            has_key=bool(key),
            **self._connection,
        )

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        images = [block.source.data for one in messages for block in one.content if block.type == "image"]
        body = {"model": options.model, "texts": [one.text for one in messages], "images": images}
        return WireRequest(
            path="/say", body=json.dumps(body).encode(), api="say", stream=options.stream, headers={"x-version": "2"}
        )

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        body = json.loads(response.body)
        if "error" in body:
            raise OverloadedError(body["error"])
        calls = [
            ToolUseBlock(id=context.mint_tool_use_id(), name=name, input=value, provider_id=given)
            for given, name, value in body.get("calls", [])
        ]
        usage = Usage(input_tokens=body.get("in"), output_tokens=body.get("out"))
        content: list[ContentBlock] = [TextBlock(text=body["say"]), *calls]
        return context.message(content, stop_reason=StopReason(body["end"]), usage=usage)

    @hookimpl
    async def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        async for chunk in response_stream:
            event = json.loads(chunk.data)
            if "t" in event:
                yield TextDelta(index=0, text=event["t"])
            elif "use" in event:
                yield UsageUpdate(usage=Usage(input_tokens=event["use"][0], output_tokens=event["use"][1]))
            elif "error" in event:
                yield ErrorEvent(error=OverloadedError(event["error"]))
                return
            elif "end" in event:
                yield MessageComplete(stop_reason=StopReason(event["end"]))

    @hookimpl
    def from_wire_error(self, response: WireResponse) -> ProviderError | None:
        return None

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        if kind == "count_tokens":
            return WireRequest(path="/count", body=arguments["request"].body, api="say")
        return WireRequest(method="GET", path="/models", body=b"", api="say") if kind == "models" else None

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return json.loads(response.body)[kind]


def registry(fake: Fake | None = None, plugins: Sequence[Any] = ()) -> Registry:
    """Return a registry with the fake provider alone."""
    return Registry(plugins, providers={"fake": fake or Fake()}, entry_points=[])


def sse(*events: dict[str, Any]) -> list[bytes]:
    """Write events, one HTTP chunk each."""
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]


WHOLE = json.dumps({"say": "hello", "end": "end_turn", "in": 3, "out": 2}).encode()
STREAM = sse({"t": "hel"}, {"t": "lo"}, {"use": [3, 2]}, {"end": "end_turn"})


@attrs.define
class Reply:
    """What the server does with one request.

    Attributes:
        status: HTTP status.
        body: chunks; a number is seconds to wait, None cuts the connection.
        headers: beside the usual ones.
        wait: seconds before the status line.
    """

    body: Sequence[bytes | float | None] = (WHOLE,)
    status: int = 200
    headers: dict[str, str] = attrs.field(factory=dict)
    wait: float = 0.0
    cut: bool = False


@attrs.define
class Got:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


@attrs.define
class Server:
    """A server on this machine; `replies` are used up in order, the last one again and again."""

    url: str
    replies: list[Reply]
    got: list[Got] = attrs.field(factory=list)


@contextmanager
def served(*replies: Reply, choose: Callable[[Got], Reply] | None = None) -> Iterator[Server]:
    """Run a server for one test."""
    server = Server("", list(replies) or [Reply()])
    lock = threading.Lock()

    class Handler(LoopbackHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.read_body()
            got = Got(self.path, {name.lower(): text for name, text in self.headers.items()}, body)
            with lock:
                server.got.append(got)
                reply = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
            try:
                self._answer(choose(got) if choose else reply)
            except OSError:
                self.close_connection = True

        def _answer(self, reply: Reply) -> None:
            time.sleep(reply.wait)
            if reply.cut:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, text in reply.headers.items():
                self.send_header(name, text)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in reply.body:
                if chunk is None:
                    self.close_connection = True
                    return
                if isinstance(chunk, float):
                    time.sleep(chunk)
                else:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")

    with LoopbackServer(Handler) as http:
        server.url = http.url
        yield server
