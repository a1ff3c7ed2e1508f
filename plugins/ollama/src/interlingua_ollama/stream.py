"""Lines of an answer -> canonical events; a whole body is one line (WIRE.md, Streaming)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireChunk, dumps, loads, loads_lossy
from interlingua.types import (
    BlockEnd,
    ErrorEvent,
    ImageBlock,
    MediaSource,
    MessageComplete,
    OpaqueBlock,
    RawUpdate,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
    UsageUpdate,
    read_tool_input,
)
from interlingua_ollama.errors import error_from_body
from interlingua_ollama.messages import FOREIGN_CALL

THINKING = 0
TEXT = 1
CALLS = 2  # calls are in order of appearance
IMAGES = 1_000_000  # behind any number of calls
_STOPS = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "load": StopReason.PAUSE_TURN,  # the model was loaded and nothing generated: ask again
}
# `response` and `thinking` are at the top level in the older generate API, which some clients still use
_READ = frozenset(("message", "response", "thinking", "done", "error"))
_READ_OF_MESSAGE = frozenset(("role", "content", "thinking", "tool_calls", "images"))


async def stream_response(source: AsyncIterator[WireChunk], context: RequestContext) -> AsyncIterator[StreamEvent]:
    """Translate lines; without `done` the message is incomplete."""
    reader = OllamaAnswerReader(context)
    async for chunk in source:
        line = _load(chunk.data)
        # most lines carry a piece of text and nothing else
        try:
            message = line["message"]
            text = message["content"]
            if (
                text.__class__ is str
                and len(message) == 2
                and "role" in message
                and len(line) == 4
                and line["done"] is False
                and "created_at" in line
                and "model" in line
            ):
                if text:
                    yield TextDelta(index=TEXT, text=text)
                continue
        except (KeyError, TypeError):
            pass
        if not isinstance(line, dict):
            continue
        for event in reader.read(line):
            yield event
        if line.get("error"):
            for event in reader.end(complete=False):
                yield event
            yield ErrorEvent(error=error_from_body(line))
            return
        if reader.done:
            break
    for event in reader.end(complete=bool(reader.done)):
        yield event


def _load(data: bytes) -> Any:
    try:
        return loads(data) if b'"tool_calls"' in data else loads_lossy(data)
    except ValueError as error:
        raise MalformedResponseError(f"a line is not JSON: {error}") from error


class OllamaAnswerReader:
    """Reads the lines of one answer."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._calls = 0
        self._images = 0
        self._called = False
        self._trace: dict[str, Any] = {}
        self.done: str | bool = False

    def read(self, line: Mapping[str, Any]) -> list[StreamEvent]:
        """Read one line, or the whole body."""
        out: list[StreamEvent] = []
        message = line.get("message")
        if isinstance(message, dict):
            self._message(message, "content", out)
            for key, value in message.items():
                if key not in _READ_OF_MESSAGE and value is not None:
                    self._keep(key, value)
        else:
            self._message(line, "response", out)
        usage = _usage(line)
        if usage is not None:
            out.append(UsageUpdate(usage=usage))
        if line.get("done"):
            reason = line.get("done_reason")
            self.done = reason if isinstance(reason, str) and reason else True
        for key, value in line.items():
            if key not in _READ and value is not None:
                self._keep(key, value)
        return out

    def end(self, *, complete: bool) -> list[StreamEvent]:
        """Return the last events; `complete` if the wire marked the answer as complete."""
        out: list[StreamEvent] = [RawUpdate(trace=self._trace)] if self._trace else []
        if complete:
            raw = self.done if isinstance(self.done, str) else None
            reason = _STOPS.get(raw or "", StopReason.OTHER)
            if self._called and reason in (StopReason.END_TURN, StopReason.OTHER):
                reason = StopReason.TOOL_USE  # calls end with `stop` too
            out.append(MessageComplete(stop_reason=reason, stop_reason_raw=raw))
        return out

    def _message(self, message: Mapping[str, Any], content: str, out: list[StreamEvent]) -> None:
        thought, text = message.get("thinking"), message.get(content)
        if isinstance(thought, str) and thought:
            out.append(ThinkingDelta(index=THINKING, text=thought))
        if isinstance(text, str) and text:
            out.append(TextDelta(index=TEXT, text=text))
        for call in _list(message.get("tool_calls")):
            self._call(call, out)
        for data in _list(message.get("images")):
            if isinstance(data, str):
                image = ImageBlock(source=MediaSource(kind="base64", data=data))
                out.append(BlockEnd(index=IMAGES + self._images, block=image))
                self._images += 1

    def _call(self, call: Any, out: list[StreamEvent]) -> None:
        index = CALLS + self._calls
        self._calls += 1
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            block = OpaqueBlock(provider=self._context.origin.provider, kind=FOREIGN_CALL, data=call)
            out.append(BlockEnd(index=index, block=block))
            return
        self._called = True
        issued = call.get("id")
        whole = _whole_call(
            function.get("arguments"),
            self._context.mint_tool_use_id(),
            self._context.tool_name(function["name"]),
            issued if isinstance(issued, str) and issued else None,
        )
        out += (
            ToolUseStart(
                index=index, id=whole.id, name=whole.name, provider_id=whole.provider_id, keep_raw=False
            ),
            ToolUseInputDelta(index=index, partial_json=whole.input_json),
            ToolUseEnd(index=index, block=whole),
        )  # fmt: skip

    def _keep(self, key: str, value: Any) -> None:
        if key == "logprobs" and isinstance(value, list):
            self._trace[key] = [*self._trace.get(key, ()), *value]
        else:
            self._trace[key] = value


def _whole_call(arguments: Any, minted: str, name: str, issued: str | None) -> ToolUseBlock:
    """Return a call; arguments that are not an object are kept as a string, with the parse error."""
    if arguments is None or isinstance(arguments, dict):
        return ToolUseBlock(id=minted, name=name, input=arguments, provider_id=issued)
    raw = arguments if isinstance(arguments, str) else dumps(arguments).decode()
    value, error = read_tool_input(raw)
    return ToolUseBlock(
        id=minted, name=name, input=value, provider_id=issued, raw_input=raw if error else None, parse_error=error
    )


def _usage(line: Mapping[str, Any]) -> Usage | None:
    """Read the counts; this wire leaves zeros out, so an absent count is unknown."""
    read, written = _count(line.get("prompt_eval_count")), _count(line.get("eval_count"))
    return None if read is None and written is None else Usage(input_tokens=read, output_tokens=written)


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
