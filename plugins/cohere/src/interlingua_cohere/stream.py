"""Events of a stream, or the parts of a whole answer, -> canonical events (WIRE.md, Answers and Streaming)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from interlingua.errors import MalformedResponseError, ProviderError, ServerError
from interlingua.plugins import RequestContext, WireChunk, dumps, loads_lossy, repair_surrogates
from interlingua.types import (
    BlockEnd,
    ErrorEvent,
    MessageComplete,
    OpaqueBlock,
    RawUpdate,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
    UsageUpdate,
)
from interlingua_cohere.errors import error_from_body
from interlingua_cohere.messages import FOREIGN_CALL, FOREIGN_CONTENT

DONE = b"[DONE]"
PLAN = 1_000_000  # behind any number of items of content
CALLS = 2_000_000
BILLED_INPUT, BILLED_OUTPUT = "billed_input", "billed_output"
_STOPS = {
    "COMPLETE": StopReason.END_TURN,
    "STOP_SEQUENCE": StopReason.STOP_SEQUENCE,
    "MAX_TOKENS": StopReason.MAX_TOKENS,
    "TOOL_CALL": StopReason.TOOL_USE,
}
_FAILURES = {"ERROR": "the generation failed", "TIMEOUT": "the generation took longer than the service allows"}
_OF_NO_TEXT = ("PLAN", "THINKING_CONTENT")
_KINDS = (("thinking", ThinkingDelta), ("text", TextDelta))


async def stream_response(source: AsyncIterator[WireChunk], context: RequestContext) -> AsyncIterator[StreamEvent]:
    """Translate events; without `message-end` the message is incomplete."""
    reader = CohereAnswerReader(context)
    async for chunk in source:
        if chunk.data == DONE:
            continue
        for event in reader.read(_load(chunk.data)):
            yield event
        if reader.error is not None:
            for event in reader.end(complete=False):
                yield event
            yield ErrorEvent(error=reader.error)
            return
    for event in reader.end(complete=reader.done):
        yield event


def _load(data: bytes) -> dict[str, Any]:
    try:
        line = loads_lossy(data)
    except ValueError as error:
        raise MalformedResponseError(f"an event is not JSON: {error}") from error
    if not isinstance(line, dict):
        raise MalformedResponseError(f"an event is a JSON {type(line).__name__}, not an object")
    return line


class CohereAnswerReader:
    """Reads one answer, event by event or part by part, so that both ways result in the same message.

    Attributes:
        trace: facts that help to understand the answer.
        done: the answer is complete.
        error: the error that ended the answer, if any.
    """

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._kinds: dict[int, str] = {}  # what arrived for an item of content
        self._foreign: dict[int, dict[str, Any]] = {}  # by index: what no block is for
        self._calls: set[int] = set()
        self._plan: list[str] = []
        self._citations: list[Mapping[str, Any]] = []
        self._stop: str | None = None
        self.trace: dict[str, Any] = {}
        self.done = False
        self.error: ProviderError | None = None

    def read(self, line: Mapping[str, Any]) -> list[StreamEvent]:
        """Read one event of a stream."""
        kind, delta = line.get("type"), _dict(line.get("delta"))
        if not isinstance(kind, str):
            if isinstance(line.get("message"), str):
                self.error = error_from_body(line)
            return []
        if self.done:
            return []  # an error may still arrive
        message = _dict(delta.get("message"))
        if line.get("logprobs"):
            self.trace.setdefault("logprobs", []).append(line["logprobs"])
        if kind in _INDEXED:
            field, read_part = _INDEXED[kind]
            return read_part(self, _index(line), message.get(field))
        if kind == "tool-plan-delta":
            return self.read_plan(message.get("tool_plan"))
        if kind == "message-end":
            return self.read_end(delta)
        if kind == "citation-start":
            self.read_citation(message.get("citations"))
        elif kind == "message-start":
            self.trace |= {"id": line["id"]} if "id" in line else {}
        elif kind not in _SILENT:
            self.trace.setdefault("events", []).append(line)
        return []

    def read_content(self, index: int, item: Any) -> list[StreamEvent]:
        """Read an item of content, its beginning or a piece of it."""
        item = _dict(item)
        if index in self._foreign:
            _merge(self._foreign[index], item)
            return []
        if item.get("type", "text") not in ("text", "thinking"):
            self._foreign[index] = dict(item)
            return []
        out: list[StreamEvent] = []
        for kind, made in _KINDS:
            text = item.get(kind)
            if not isinstance(text, str) or not text:
                continue
            if self._kinds.setdefault(index, kind) != kind:
                raise MalformedResponseError(f"{kind} for content {index}, which is {self._kinds[index]}")
            out.append(made(index=index, text=text))
        return out

    def read_plan(self, text: Any) -> list[StreamEvent]:
        """Read the plan before calls, or a piece of it."""
        if not isinstance(text, str) or not text:
            return []
        self._plan.append(text)
        return [ThinkingDelta(index=PLAN, text=text)]

    def start_call(self, index: int, call: Any) -> list[StreamEvent]:
        """Read a call, or its beginning."""
        at, call = CALLS + index, _dict(call)
        function = call.get("function")
        if at in self._calls or at in self._foreign:
            raise MalformedResponseError(f"call {index} begins twice")
        if call.get("type", "function") != "function" or not isinstance(_dict(function).get("name"), str):
            self._foreign[at] = dict(call)
            return []
        self._calls.add(at)
        issued = call.get("id")
        start = ToolUseStart(
            index=at,
            id=self._context.mint_tool_use_id(),
            name=self._context.tool_name(_dict(function)["name"]),
            provider_id=issued if isinstance(issued, str) and issued else None,
        )
        return [start, *self.continue_call(index, call)]

    def continue_call(self, index: int, call: Any) -> list[StreamEvent]:
        """Read further arguments of a call."""
        at, call = CALLS + index, _dict(call)
        if at in self._foreign:
            _merge(self._foreign[at], call)
            return []
        if at not in self._calls:
            raise MalformedResponseError(f"arguments for call {index}, which has not started")
        arguments = _dict(call.get("function")).get("arguments")
        if isinstance(arguments, dict):
            arguments = dumps(arguments).decode()
        return [ToolUseInputDelta(index=at, partial_json=arguments)] if isinstance(arguments, str) and arguments else []

    def end_call(self, index: int, _nothing: Any = None) -> list[StreamEvent]:
        """Read the end of a call."""
        return [ToolUseEnd(index=CALLS + index)] if CALLS + index in self._calls else []

    def read_citation(self, citation: Any) -> None:
        """Read one citation, or a list of citations."""
        self._citations += [one for one in (citation if isinstance(citation, list) else [citation]) if _dict(one)]

    def read_end(self, end: Mapping[str, Any]) -> list[StreamEvent]:
        """Read the stop reason and the usage from the last event or the whole body."""
        reason, error = end.get("finish_reason"), end.get("error")
        self._stop = reason if isinstance(reason, str) else None
        self.done = True
        if error or self._stop in _FAILURES:
            self.error = ServerError(error if isinstance(error, str) and error else _FAILURES.get(self._stop or "", ""))
        usage = _usage(end.get("usage"))
        return [] if usage is None else [UsageUpdate(usage=usage)]

    def end(self, *, complete: bool) -> list[StreamEvent]:
        """Return the last events; `complete` if the wire marked the answer as complete."""
        out: list[StreamEvent] = []
        placed: dict[int, list[Any]] = {}
        others: list[Any] = []
        for citation in self._citations:
            at = self._place(citation)
            (others if at is None else placed.setdefault(at, [])).append(citation)
        for at, citations in sorted(placed.items()):
            out.append(BlockEnd(index=at, block=TextBlock(text="", citations=tuple(citations))))
        for at, data in self._foreign.items():
            kind = FOREIGN_CALL if at >= CALLS else FOREIGN_CONTENT
            block = OpaqueBlock(provider=self._context.origin.provider, kind=kind, data=data)
            out.append(BlockEnd(index=at, block=block))
        replay: dict[str, Any] = {}
        if self._plan:
            replay["tool_plan"] = repair_surrogates("".join(self._plan))
        if others:
            replay["citations"] = others
        if replay or self.trace:
            out.append(RawUpdate(replay=replay, trace=self.trace))
        if complete:
            reason = _STOPS.get(self._stop or "", StopReason.OTHER)
            if self._calls and reason is StopReason.END_TURN:
                reason = StopReason.TOOL_USE
            out.append(MessageComplete(stop_reason=reason, stop_reason_raw=self._stop))
        return out

    def _place(self, citation: Mapping[str, Any]) -> int | None:
        """Return the index of the text that a citation belongs to, or None."""
        if citation.get("type") in _OF_NO_TEXT:
            return None
        texts = [at for at, kind in self._kinds.items() if kind == "text"]
        at = citation.get("content_index")
        if isinstance(at, int):
            return at if at in texts else None
        return min(texts, default=None)


_INDEXED: dict[str, tuple[str, Callable[[CohereAnswerReader, int, Any], list[StreamEvent]]]] = {
    "content-start": ("content", CohereAnswerReader.read_content),
    "content-delta": ("content", CohereAnswerReader.read_content),
    "tool-call-start": ("tool_calls", CohereAnswerReader.start_call),
    "tool-call-delta": ("tool_calls", CohereAnswerReader.continue_call),
    "tool-call-end": ("tool_calls", CohereAnswerReader.end_call),
}
_SILENT = ("content-end", "citation-end")


def _usage(usage: Any) -> Usage | None:
    """Read the counts of tokens, and the billed ones, which exclude the tokens that the service adds to a prompt."""
    if not isinstance(usage, dict):
        return None
    tokens, billed = _dict(usage.get("tokens")), _dict(usage.get("billed_units"))
    units = {
        BILLED_INPUT: _count(billed.get("input_tokens")),
        BILLED_OUTPUT: _count(billed.get("output_tokens")),
        "search_units": _count(billed.get("search_units")) or None,
        "classifications": _count(billed.get("classifications")) or None,
    }
    return Usage(
        input_tokens=_count(tokens.get("input_tokens")),
        output_tokens=_count(tokens.get("output_tokens")),
        reasoning_tokens=_count(tokens.get("reasoning_tokens")),
        cached_input_tokens=_count(usage.get("cached_tokens")),
        extra_units={name: count for name, count in units.items() if count is not None} or None,
    )


def _count(value: Any) -> int | None:
    """Return a count; the service's numbers may be written as floats."""
    whole = isinstance(value, float) and value.is_integer()
    return int(value) if (type(value) is int or whole) and value >= 0 else None


def _index(line: Mapping[str, Any]) -> int:
    index = line.get("index")
    if type(index) is not int or not 0 <= index < PLAN:
        raise MalformedResponseError("an event has no index", path="/index")
    return index


def _merge(whole: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Merge a piece into the members that belong to no block; strings are joined."""
    for name, value in piece.items():
        known = whole.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        else:
            whole[name] = known + value if isinstance(known, str) and isinstance(value, str) else value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
