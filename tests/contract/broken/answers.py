"""Adapters that read answers, errors and counts wrongly, whole or streamed or both."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import attrs

from interlingua.errors import BadRequestError, ContextWindowExceededError, RateLimitError, ServerError
from interlingua.types.events import (
    BlockEnd,
    MessageComplete,
    RawUpdate,
    StreamEvent,
    TextDelta,
    ToolUseEnd,
    ToolUseStart,
    UsageUpdate,
)
from interlingua.types.messages import MessageStatus, StopReason, Usage
from tests.contract.broken.machine import Mutant, in_data, in_events, in_message, in_stream


def _meta(message: Any, **facts: Any) -> Any:
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, **facts))


def _content(message: Any, keep: Callable[[Any], Any]) -> Any:
    made = [new for block in message.content if (new := keep(block)) is not None]
    return attrs.evolve(message, content=tuple(made))


def _calls(**facts: Any) -> Callable[[Any], Any]:
    return lambda message: _content(
        message, lambda block: attrs.evolve(block, **facts) if block.type == "tool_use" else block
    )


def _without_unknown(message: Any) -> Any:
    return _meta(_content(message, lambda block: None if block.type == "opaque" else block), provider_raw=None)


def _usage(**facts: Any) -> Callable[[Any], Any]:
    return lambda message: _meta(message, usage=attrs.evolve(message.metadata.usage, **facts))


def _zeros(message: Any) -> Any:
    usage = message.metadata.usage or Usage()
    return _meta(message, usage=attrs.evolve(usage, input_tokens=usage.input_tokens or 0))


def _exclusive(message: Any) -> Any:
    usage = message.metadata.usage
    if usage is None or not usage.cached_input_tokens or usage.input_tokens is None:
        return message
    return _meta(message, usage=attrs.evolve(usage, input_tokens=usage.input_tokens - usage.cached_input_tokens))


def _strict(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
    body = json.loads(response.body)
    known = {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "stop_details",
             "container", "context_management", "error", "request_id"}  # fmt: skip
    if set(body) - known:
        raise RuntimeError("unknown field")
    return inner()


def _key_error(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
    body = json.loads(response.body)
    reasons = {"end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "stop_sequence"}
    if isinstance(body, dict) and body.get("stop_reason") not in reasons and "error" not in body:
        raise ValueError(body.get("stop_reason"))
    return inner()


def _forgiving(inner: Callable[..., Any], response: Any, context: Any) -> Any:
    try:
        return inner()
    except Exception:
        return context.message([], stop_reason=StopReason.END_TURN)


def _end_turn(message: Any) -> Any:
    reason = StopReason.END_TURN if message.metadata.stop_reason is StopReason.OTHER else message.metadata.stop_reason
    return _meta(message, stop_reason=reason)


def _stop_with_calls(message: Any) -> Any:
    return _meta(message, stop_reason=StopReason.END_TURN) if message.tool_calls else message


def _retry_all(inner: Callable[..., Any], **_: Any) -> Any:
    error = inner()
    error.retryable = True
    return error


def _no_wait(inner: Callable[..., Any], **_: Any) -> Any:
    error = inner()
    error.retry_after = None
    return error


def _all_invalid(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
    return BadRequestError("failed", status=response.status)


def _all_server(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
    return ServerError("failed", status=response.status) if b"error" in response.body else inner()


_stored: list[Any] = []


def _first_again(message: Any) -> Any:
    _stored.append(message)
    return _stored[-2] if len(_stored) % 3 == 0 else message


def meta(message: Any, **facts: Any) -> Any:
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, **facts))


def contents(message: Any, change: Callable[[Any], Any]) -> Any:
    made = [new for block in message.content if (new := change(block)) is not None]
    return attrs.evolve(message, content=tuple(made))


def both_usages(change: Callable[[Any], Any]) -> dict[str, Any]:
    """Count wrongly on both roads."""

    def events(event: StreamEvent) -> Iterator[StreamEvent]:
        yield attrs.evolve(event, usage=change(event.usage)) if isinstance(event, UsageUpdate) else event

    def message(found: Any) -> Any:
        usage = found.metadata.usage
        return found if usage is None else meta(found, usage=change(usage))

    return {**in_message(message), **in_events(events)}


def both_stops(wrong: dict[StopReason, StopReason]) -> dict[str, Any]:
    """Call a stop reason another on both roads."""

    def events(event: StreamEvent) -> Iterator[StreamEvent]:
        if isinstance(event, MessageComplete) and event.stop_reason in wrong:
            event = attrs.evolve(event, stop_reason=wrong[event.stop_reason])
        yield event

    def message(found: Any) -> Any:
        reason = found.metadata.stop_reason
        return meta(found, stop_reason=wrong[reason]) if reason in wrong else found

    return {**in_message(message), **in_events(events)}


def both_blocks(change: Callable[[Any], Any]) -> dict[str, Any]:
    """Change finished blocks on both roads; a call's block is the one at its end."""

    def events(event: StreamEvent) -> Iterator[StreamEvent]:
        if isinstance(event, (BlockEnd, ToolUseEnd)) and event.block is not None:
            event = attrs.evolve(event, block=change(event.block))
        yield event

    return {**in_message(lambda found: contents(found, change)), **in_events(events)}


def without(*names: str) -> dict[str, Any]:
    """Do not see some fields of the wire, on both roads."""

    def drop(value: Any) -> None:
        for name in names:
            if isinstance(value, dict):
                value.pop(name, None)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            drop(inner)

    return in_data(drop)


def _doubled(usage: Any) -> Any:
    return attrs.evolve(usage, output_tokens=usage.output_tokens and usage.output_tokens * 2)


def _signature(block: Any) -> Any:
    return attrs.evolve(block, signature=None) if block.type == "thinking" else block


def _sorted_arguments(block: Any) -> Any:
    if block.type != "tool_use":
        return block
    return attrs.evolve(block, input=dict(sorted(block.input.items(), reverse=True)), raw_input=None)


def _same_id(event: StreamEvent) -> Iterator[StreamEvent]:
    if isinstance(event, ToolUseStart):
        event = attrs.evolve(event, id=f"tu_01KAKDPZ00000000000000000{event.index % 10}")
    yield event


def _fixed_ids(message: Any) -> Any:
    numbers = iter(range(10))
    return contents(message, lambda block: attrs.evolve(
        block, id=f"tu_01KAKDPZ00000000000000000{next(numbers)}") if block.type == "tool_use" else block)  # fmt: skip


def _provider_ids(message: Any) -> Any:
    return contents(
        message, lambda block: attrs.evolve(block, id=block.provider_id) if block.type == "tool_use" else block
    )


def _timed(inner: Callable[..., Any], **_: Any) -> Any:
    message = inner()
    return meta(message, provider_raw={**(message.metadata.provider_raw or {}), "trace": {"at": time.time()}})


def _error(change: Callable[[Any, Any], Any]) -> dict[str, Any]:
    return {"from_wire_error": lambda inner, response, **_: change(inner(), response)}


def _in_milliseconds(error: Any, response: Any) -> Any:
    if "retry-after-ms" in response.headers:
        error.retry_after = float(response.headers["retry-after-ms"])
    return error


def _seconds_only(error: Any, response: Any) -> Any:
    error.retry_after = float(text) if (text := response.headers.get("retry-after", "")).isdigit() else None
    return error


def _another_class(error: Any, response: Any) -> Any:
    if isinstance(error, RateLimitError):
        made = ServerError(str(error), status=error.status, retry_after=error.retry_after)
        made.body = error.body
        return made
    return error


def _all_caller(error: Any, response: Any) -> Any:
    if 400 <= response.status < 500 and not error.retryable:
        made = BadRequestError(str(error), status=error.status)
        made.body = error.body
        return made
    return error


def _no_overflow(error: Any, response: Any) -> Any:
    if isinstance(error, ContextWindowExceededError) and response.status == 400:
        made = BadRequestError(str(error), status=error.status)
        made.body = error.body
        return made
    return error


async def _one_behind(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    """Keep the newest text back, and forget it at the end."""
    held: TextDelta | None = None
    async for event in events:
        if not isinstance(event, TextDelta):
            yield event
            continue
        if held is not None:
            yield held
        held = event


async def _summed(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    """Add counts up that the wire has already added up."""
    total = 0
    async for event in events:
        if isinstance(event, UsageUpdate) and event.usage.output_tokens is not None:
            total += event.usage.output_tokens
            yield attrs.evolve(event, usage=attrs.evolve(event.usage, output_tokens=total))
        else:
            yield event


async def _cancellation_ignored(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    try:
        async for event in events:
            yield event
    except asyncio.CancelledError:
        return


async def _closing_ignored(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    async for event in events:
        try:
            yield event
        except GeneratorExit:
            yield RawUpdate(trace={"closed": True})


async def _waits_at_a_cut(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    done = False
    async for event in events:
        done = done or event.type in ("message_complete", "error")
        yield event
    if not done:
        await asyncio.sleep(0)


async def _in_a_task(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    asyncio.get_running_loop()  # without one it fails here, before a step is begun that nobody awaits
    while True:
        try:
            yield await asyncio.ensure_future(anext(events))  # type: ignore[arg-type]
        except StopAsyncIteration:
            return


async def _slow(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    async for event in events:
        time.sleep(0)
        yield event


async def _calls_swapped(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    calls: list[int] = []
    async for event in events:
        if isinstance(event, ToolUseStart):
            calls.append(event.index)
        index = getattr(event, "index", -1)
        moved: Any = event
        yield attrs.evolve(moved, index=index + 100) if index in calls[:1] else event


async def _pieces_to_the_first(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    first: int | None = None
    async for event in events:
        if isinstance(event, ToolUseStart) and first is None:
            first = event.index
        moved: Any = event
        yield attrs.evolve(moved, index=first) if event.type == "tool_use_input_delta" else event


async def _one_text(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    """Gather the text of a block and yield it when something else comes."""
    text, index = "", 0
    async for event in events:
        if isinstance(event, TextDelta):
            text, index = text + event.text, event.index
            continue
        if text and event.type not in ("usage_update", "raw_update"):
            yield TextDelta(index=index, text=text)
            text = ""
        yield event


def _line_lost(inner: Callable[..., Any], **_: Any) -> Any:
    """Frame by lines, and forget an unfinished one; each piece is decoded by itself."""

    class Lines:
        def __init__(self) -> None:
            self.text = ""

        def feed(self, data: bytes) -> list[Any]:
            from interlingua.plugins import WireChunk

            *whole, self.text = (self.text + data.decode("utf-8", "replace")).split("\n")
            return [WireChunk("", line[5:].strip().encode()) for line in whole if line.startswith("data:")]

        def close(self) -> list[Any]:
            return []

    return attrs.evolve(inner(), framing=Lines)


ANSWERS = (
    Mutant("the issued call id thrown away", "C16", in_message(_calls(provider_id=None))),
    Mutant("text stripped", "C21", in_message(
        lambda message: _content(
            message,
            lambda block: attrs.evolve(block, text=block.text[1:]) if block.type == "text" else block))),
    Mutant("the last of parallel calls lost", "C28", {"from_wire_response": lambda inner, **_: _content(
        inner(), lambda block: None if block.type == "text" else block)}),
    Mutant("unknown content lost", "C27", in_message(_without_unknown)),
    Mutant("a new field is an error", "C27", {"from_wire_response": _strict}),
    Mutant("state kept between answers", "C29", in_message(_first_again)),
    Mutant("a broken body read as a good answer", "C35", {"from_wire_response": _forgiving}),
    Mutant("an unknown stop reason is an exception", "C36", {"from_wire_response": _key_error}),
    Mutant("an unknown stop reason is end_turn", "C36", in_message(_end_turn)),
    Mutant("the provider's word not kept", "C36", in_message(lambda message: _meta(message, stop_reason_raw=None))),
    Mutant("stop with calls", "C37", in_message(_stop_with_calls)),
    Mutant("cached tokens outside the total", "C38", in_message(_exclusive)),
    Mutant("cached tokens counted twice", "C38", in_message(_usage(input_tokens=99_999))),
    Mutant("not reported is 0", "C39", in_message(_zeros)),
    Mutant("every failure is retried", "C40", {"from_wire_error": _retry_all}),
    Mutant("retry-after ignored", "C41", {"from_wire_error": _no_wait}),
    Mutant("every failure is an invalid request", "C40", {"from_wire_error": _all_invalid}),
    Mutant("the provider's words thrown away", "C41", {"from_wire_error": _all_server}),
    Mutant("an estimate of nothing", "C42", {"estimate_input_tokens": lambda inner, **_: 1}),
    Mutant("an estimate in characters", "C42", {"estimate_input_tokens": lambda inner, messages, **_: sum(
        len(message.text) for message in messages)}),
    Mutant("cached tokens left out", "C38", both_usages(lambda usage: attrs.evolve(
        usage, cached_input_tokens=None, cache_creation_input_tokens=None))),
    Mutant("reasoning tokens left out", "C38", both_usages(lambda usage: attrs.evolve(usage, reasoning_tokens=None))),
    Mutant("output counted twice", "C38", both_usages(_doubled)),
    Mutant("counts of a stream added up", "C38", in_stream(_summed)),
    Mutant("a cut answer called finished", "C37", both_stops({StopReason.MAX_TOKENS: StopReason.END_TURN})),
    Mutant("a refusal called finished", "C37", both_stops({StopReason.REFUSAL: StopReason.END_TURN})),
    Mutant("signatures not read", "C28", both_blocks(_signature)),
    Mutant("encrypted thinking not read", "C28", both_blocks(
        lambda block: attrs.evolve(block, data="") if block.type == "redacted_thinking" else block)),
    Mutant("citations not read", "C28", both_blocks(
        lambda block: attrs.evolve(block, citations=()) if block.type == "text" else block)),
    Mutant("arguments in another order", "C28", both_blocks(_sorted_arguments)),
    Mutant("ids of calls used again in every answer", "C57", {**in_message(_fixed_ids), **in_events(_same_id)}),
    Mutant("the issued id taken for the call's own", "C57", in_message(_provider_ids)),
    Mutant("an answer credited to another model", "C56", in_message(lambda message: meta(
        message, model="anthropic:claude-0"))),
    Mutant("a good answer said to be partial", "C56", in_message(
        lambda message: meta(message, status=MessageStatus.PARTIAL))),
    Mutant("the clock read while reading", "C03", {"from_wire_response": _timed}),
    Mutant("the clock read while streaming", "C03", in_stream(_slow)),
    Mutant("milliseconds taken for seconds", "C41", _error(_in_milliseconds)),
    Mutant("a date to wait for not read", "C41", _error(_seconds_only)),
    Mutant("too many requests called a fault", "C40", _error(_another_class)),
    Mutant("every mistake an invalid request", "C40", _error(_all_caller)),
    Mutant("a full context called an invalid request", "C41", _error(_no_overflow)),
    Mutant("an estimate that overlooks system and results", "C42", {
        "estimate_input_tokens": lambda inner, messages, **_: inner(
            messages=[message for message in messages if message.role == "user"])}),
    Mutant("an estimate that fails on pictures", "C42", {"estimate_input_tokens": lambda inner, messages, **_:
        inner() + sum(len(block.text) * 0 for message in messages for block in message.content
                      if block.type not in ("tool_use", "tool_result"))}),
    Mutant("the newest text forgotten at the end", "C28", in_stream(_one_behind)),
    Mutant("cancelling swallowed", "C30", in_stream(_cancellation_ignored)),
    Mutant("yields after being closed", "C30", in_stream(_closing_ignored)),
    Mutant("waits when a stream is cut", "C32", in_stream(_waits_at_a_cut)),
    Mutant("a task for each event", "C30", in_stream(_in_a_task)),
    Mutant("parallel calls in another order", "C21", in_stream(_calls_swapped)),
    Mutant("all pieces given to the first call", "C24", in_stream(_pieces_to_the_first)),
    Mutant("text only when its block has ended", "C25", in_stream(_one_text)),
    Mutant("a framing that tears letters", "C22", {"connection": _line_lost}),
)  # fmt: skip
