"""A provider that says what a test wrote down, whole or streamed, and keeps what it was asked; nothing leaves memory.

No real provider's format lives here.

The wire: `{"parts": [["text", t], ["think", t], ["call", id, name, arguments]], "end": reason, "in": n, "out": n}`;
streamed, the same as server-sent events: a part in pieces, `{"at": index, …}`, then `{"end": …}`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs

import interlingua as il
from interlingua._catalogue import Price
from interlingua.testing import AsyncMemoryTransport, MemoryReply, MemoryTransport
from interlingua.transport import HttpRequest
from interlingua_sessions import open_store
from interlingua_sessions.session import AsyncSession, Session

MODEL = "script:dear"
CAPABLE = il.types.ModelCapabilities(
    supports_tools=True, supports_images=True, supports_system_prompt=True, supports_system_messages_in_list=True,
    supports_streaming=True, supports_streaming_tool_calls=True, supports_parallel_tool_calls=True,
    supports_thinking=True, accepts_unsigned_thinking=True, supports_tool_result_images=True,
    max_context_tokens=100_000, api="script",
)  # fmt: skip


@attrs.frozen(kw_only=True)
class Say:
    """One answer.

    Attributes:
        parts: strings, ("think", text) and ("call", name, arguments) in order; arguments may be raw text.
        end: stop reason; None: what the parts suggest.
        tokens: in and out.
        fail: instead of an answer, this failure (status, message).
        cut: a stream breaks off before its end.
    """

    parts: Sequence[Any] = ()
    end: str | None = None
    tokens: tuple[int, int] = (1_000, 100)
    fail: tuple[int, str] | None = None
    cut: bool = False

    @property
    def reason(self) -> str:
        calls = any(part[0] == "call" for part in self.parts if isinstance(part, tuple))
        return self.end or ("tool_use" if calls else "end_turn")


def call(name: str, arguments: Any = None) -> tuple[str, str, Any]:
    """One call, for the parts of an answer."""
    return ("call", name, {} if arguments is None else arguments)


class Script:
    """The provider's plugin: a tiny wire."""

    def __init__(self, capabilities: il.types.ModelCapabilities = CAPABLE) -> None:
        self._capabilities = capabilities

    @il.plugins.hookimpl
    def capabilities(self, model: str) -> il.types.ModelCapabilities:
        return self._capabilities

    @il.plugins.hookimpl
    def models(self) -> Sequence[il.plugins.ModelInfo]:
        price = Price(input_per_mtok_usd=Decimal(100), output_per_mtok_usd=Decimal(1_000))
        dear = il.plugins.ModelInfo(id="dear", prices=[price], pricing_version="test")
        return [dear, il.plugins.ModelInfo(id="unpriced")]

    @il.plugins.hookimpl
    def connection(self, settings: il.plugins.ConnectionSettings) -> il.plugins.Connection:
        return il.plugins.Connection(base_url="http://script.test")

    @il.plugins.hookimpl
    def estimate_input_tokens(self, messages: Sequence[il.Message], tools: Sequence[il.ToolDefinition]) -> int:
        return sum(len(json.dumps(_seen(message))) for message in messages) // 4

    @il.plugins.hookimpl
    def to_wire(
        self, messages: Sequence[il.Message], tools: Sequence[il.ToolDefinition], options: il.types.RequestOptions
    ) -> il.plugins.WireRequest:
        body = {
            "stream": options.stream,
            "tools": [tool.name for tool in tools],
            "messages": list(map(_seen, messages)),
        }
        if options.tool_choice is not None:
            body["choice"] = getattr(options.tool_choice, "name", options.tool_choice)
        if options.response_schema is not None:
            body["schema"] = il.plugins.thaw(options.response_schema)
        return il.plugins.WireRequest(path="/say", body=json.dumps(body).encode(), api="script", stream=options.stream)

    @il.plugins.hookimpl
    def from_wire_response(self, response: il.plugins.WireResponse, context: il.plugins.RequestContext) -> il.Message:
        body = json.loads(response.body)
        content = [_block(part, context) for part in body["parts"]]
        usage = il.Usage(input_tokens=body["in"], output_tokens=body["out"])
        return context.message(content, stop_reason=il.StopReason(body["end"]), usage=usage)

    @il.plugins.hookimpl
    async def stream_response(
        self, response_stream: AsyncIterator[il.plugins.WireChunk], context: il.plugins.RequestContext
    ) -> AsyncIterator[il.StreamEvent]:
        async for chunk in response_stream:
            event = json.loads(chunk.data)
            if "end" in event:
                yield il.types.UsageUpdate(usage=il.Usage(input_tokens=event["in"], output_tokens=event["out"]))
                yield il.MessageComplete(stop_reason=il.StopReason(event["end"]))
            elif "text" in event:
                yield il.TextDelta(index=event["at"], text=event["text"])
            elif "think" in event:
                yield il.ThinkingDelta(index=event["at"], text=event["think"])
            elif "name" in event:
                minted = context.mint_tool_use_id()
                yield il.types.ToolUseStart(index=event["at"], id=minted, name=event["name"], provider_id=event["id"])
            elif "json" in event:
                yield il.types.ToolUseInputDelta(index=event["at"], partial_json=event["json"])
            else:
                yield il.ToolUseEnd(index=event["at"])


def _seen(message: il.Message) -> dict[str, Any]:
    """Return the parts of a message that a model sees, as JSON."""
    results = [{"error": one.is_error, "text": _text(one.content)} for one in message.tool_results]
    calls = [{"name": one.name, "json": one.input_json} for one in message.tool_calls]
    seen = {"role": message.role.value, "text": message.text, "calls": calls, "results": results}
    return {name: value for name, value in seen.items() if value}


def _text(content: Sequence[Any]) -> str:
    return "".join(block.text if block.type == "text" else f"({block.type})" for block in content)


def _block(part: Any, context: il.plugins.RequestContext) -> il.types.ContentBlock:
    if part[0] == "text":
        return il.TextBlock(text=part[1])
    if part[0] == "think":
        return il.ThinkingBlock(text=part[1])
    _, given, name, raw = part
    try:
        value, error = json.loads(raw), None
    except ValueError as broken:
        value, error = {}, f"arguments are not JSON: {broken}"
    minted = context.mint_tool_use_id()
    return il.ToolUseBlock(id=minted, name=name, input=value, provider_id=given, raw_input=raw, parse_error=error)


class Theatre:
    """Answers requests with the script's lines, in order; keeps the requests."""

    def __init__(self, *lines: Say | str) -> None:
        self.lines = [Say(parts=[line]) if isinstance(line, str) else line for line in lines]
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request: HttpRequest) -> MemoryReply:
        status, kind, body = self.answer(request.body)
        return MemoryReply(body, status=status, headers={"content-type": kind})

    def answer(self, body: bytes) -> tuple[int, str, bytes]:
        """Return status, content type and body of the next line."""
        asked = json.loads(body)
        self.asked.append(asked)
        line = self.lines.pop(0)
        if line.fail is not None:
            return line.fail[0], "application/json", line.fail[1].encode()
        parts = [_written(part, at) for at, part in enumerate(line.parts)]
        end = {"end": line.reason, "in": line.tokens[0], "out": line.tokens[1]}
        if not asked["stream"]:
            return 200, "application/json", json.dumps({"parts": parts, **end}).encode()
        events = [event for at, part in enumerate(parts) for event in _pieces(part, at)]
        events += [] if line.cut else [end]
        data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
        return 200, "text/event-stream", data

    @property
    def results(self) -> list[tuple[str, bool]]:
        """The tool results in the last request: text, and whether it is an error."""
        return [
            (one["text"], one["error"]) for message in self.asked[-1]["messages"] for one in message.get("results", [])
        ]


def _written(part: Any, at: int) -> list[Any]:
    if isinstance(part, str):
        return ["text", part]
    if part[0] == "call":
        raw = part[2] if isinstance(part[2], str) else json.dumps(part[2])
        return ["call", f"c{at}", part[1], raw]
    return list(part)


def _pieces(part: list[Any], at: int) -> Iterator[dict[str, Any]]:
    if part[0] == "call":
        half = len(part[3]) // 2
        yield {"at": at, "name": part[2], "id": part[1]}
        yield {"at": at, "json": part[3][:half]}
        yield {"at": at, "json": part[3][half:]}
        yield {"at": at, "whole": True}
        return
    half = len(part[1]) // 2
    yield {"at": at, part[0]: part[1][:half]}
    yield {"at": at, part[0]: part[1][half:]}


_OUTPUTS = entry_points(group="interlingua.outputs")


def registry(plugins: Sequence[Any] = (), script: Script | None = None) -> il.Registry:
    return il.Registry(plugins, providers={"script": script or Script()}, entry_points=_OUTPUTS)


@contextmanager
def playing(
    theatre: Theatre, place: Path | str, *, plugins: Sequence[Any] = (), script: Script | None = None, **more: Any
) -> Iterator[Session]:
    """Open a session whose models say the script's lines."""
    transport = MemoryTransport(theatre)
    more.setdefault("model", MODEL)
    used = il.Client(registry=registry(plugins, script), transport=transport, retry=0)
    with used, open_store(place) as store, Session.open(store, "s", client=used, **more) as session:
        yield session


def playing_async(
    theatre: Theatre, place: Path | str, *, plugins: Sequence[Any] = (), asked: str = MODEL, **more: Any
) -> AsyncSession:
    """As `playing`, asynchronous; the caller closes it."""

    used = il.AsyncClient(registry=registry(plugins), transport=AsyncMemoryTransport(theatre), retry=0)
    return AsyncSession.open(place, "s", client=used, model=asked, **more)
