"""Turns a stream of canonical events into assistant events, and writes events and replies as JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeAlias

import attrs

from interlingua import InterlinguaError
from interlingua.plugins import Assembler, RequestContext
from interlingua.types import (
    AudioBlock,
    BlockEnd,
    BlockStart,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageStatus,
    Origin,
    Role,
    StopReason,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
    VideoBlock,
)
from interlingua.types import TextDelta as CanonicalText
from interlingua.types import ThinkingDelta as CanonicalThinking
from interlingua_agents.events import (
    AgentEvent,
    AssistantMessageEvent,
    AssistantStopReason,
    Done,
    Error,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua_agents.protocols import AsyncCanonicalStream, CanonicalStream


class BlockAccumulator:
    """The events of one answer, and the places of the blocks that are shown.

    Args:
        basis: gives the answer as a message at any moment; its id, origin and time are taken from there.
    """

    def __init__(self, basis: Callable[[], Message]) -> None:
        self.events: list[StreamEvent] = []
        self.places: dict[int, int] = {}
        self._basis = basis
        self._context: RequestContext | None = None

    def at(self, seen: int) -> Message:
        """Return the answer after its first `seen` events: the shown blocks in the order they began."""
        assembler = Assembler(self._known_context())
        assembler.feed(self._shown(seen))
        return assembler.message()

    def _shown(self, seen: int) -> Iterator[StreamEvent]:
        for event in self.events[:seen]:
            index = getattr(event, "index", None)
            if index is None:
                yield event
            elif (place := self.places.get(index)) is not None:
                yield attrs.evolve(event, index=place)  # type: ignore[arg-type]  # it has one: `index` says so

    def _known_context(self) -> RequestContext:
        if self._context is None:
            basis = self._basis()
            known = basis.metadata
            self._context = RequestContext(
                origin=known.origin or Origin("", "", ""),
                message_id=basis.id,
                session_id=basis.session_id,
                clock=lambda: basis.created_at,
                routing=known.routing,
                user_id=known.user_id,
                team_id=known.team_id,
            )
        return self._context


_Makers: TypeAlias = dict[type, Callable[..., AssistantMessageEvent]]
_STARTS: _Makers = {TextBlock: TextStart, ThinkingBlock: ThinkingStart, ToolUseBlock: ToolCallStart}
_DELTAS: _Makers = {TextBlock: TextDelta, ThinkingBlock: ThinkingDelta, ToolUseBlock: ToolCallDelta}
_ENDS: _Makers = {TextBlock: TextEnd, ThinkingBlock: ThinkingEnd, ToolUseBlock: ToolCallEnd}

_REASONS: dict[StopReason, AssistantStopReason] = {
    StopReason.TOOL_USE: "toolUse",
    StopReason.MAX_TOKENS: "length",
    StopReason.CONTEXT_WINDOW: "length",
    StopReason.REFUSAL: "error",
    StopReason.ERROR: "error",
}


def assistant_stop_reason(message: Message) -> AssistantStopReason:
    """Return why a message ended, in the events' words; what they have no word for is `stop`."""
    metadata = message.metadata
    if metadata.status is MessageStatus.ERROR:
        return "error"
    if metadata.status is not MessageStatus.COMPLETE:
        return "aborted"
    return _REASONS.get(metadata.stop_reason, "stop") if metadata.stop_reason else "stop"


class AssistantView:
    """Turns the stream events of one answer into assistant events, one by one.

    Text, thinking and calls are shown; other blocks (media, opaque, redacted thinking) have no event. A
    block ends when its adapter says so, else with the answer: a wire may come back to a text after a call.

    Args:
        basis: gives the answer as a message at any moment, for the facts a partial needs; asked when one is read.
    """

    def __init__(self, basis: Callable[[], Message]) -> None:
        self._growth = BlockAccumulator(basis)
        self._open: dict[int, type] = {}
        self._spoken: set[int] = set()

    def start(self) -> Start:
        """Return the first event."""
        return Start(growing=self._growth, seen=0)

    def feed(self, event: StreamEvent) -> Iterator[AssistantMessageEvent]:
        """Take one stream event and yield the assistant events it is."""
        kind = type(event)
        if kind is CanonicalText or kind is CanonicalThinking:
            if event.index not in self._growth.places:  # type: ignore[union-attr]
                block = TextBlock if kind is CanonicalText else ThinkingBlock
                yield from self._begin(event.index, block)  # type: ignore[union-attr]
            yield self._delta(event, event.index, event.text)  # type: ignore[union-attr]
        elif isinstance(event, ToolUseInputDelta):
            yield self._delta(event, event.index, event.partial_json)
        elif isinstance(event, ToolUseStart):
            self._growth.events.append(event)
            yield from self._started(event.index, ToolUseBlock)
        elif isinstance(event, ToolUseEnd):
            yield from self._whole(event, event.index, event.block.input_json if event.block else "")
        elif isinstance(event, BlockStart | BlockEnd) and isinstance(event.block, TextBlock | ThinkingBlock):
            yield from self._begin(event.index, type(event.block))
            if isinstance(event, BlockEnd):
                yield from self._whole(event, event.index, event.block.text)
        else:
            self._growth.events.append(event)

    def finish(self, message: Message) -> Iterator[AssistantMessageEvent]:
        """Take the message and yield the last events: open blocks end, then `done`, or `error` if it is not whole."""
        for index in sorted(self._open, key=self._growth.places.__getitem__):
            yield from self._end(index)
        reason = assistant_stop_reason(message)
        if reason == "aborted":
            yield Error(reason="aborted", error=message)
        elif reason == "error":
            yield Error(reason="error", error=message)
        else:
            yield Done(reason=reason, message=message)

    def fail(self, error: InterlinguaError) -> Error:
        """Return the last event of an answer that failed."""
        partial = error.partial if isinstance(error.partial, Message) else self._growth.at(len(self._growth.events))
        return Error(reason="error", error=partial, cause=error)

    def _begin(self, index: int, block: type[TextBlock | ThinkingBlock]) -> Iterator[AssistantMessageEvent]:
        """Begin a block before its first words, so that nobody counts them twice."""
        if index not in self._growth.places:
            self._growth.events.append(BlockStart(index=index, block=block(text="")))
            yield from self._started(index, block)

    def _started(self, index: int, block: type) -> Iterator[AssistantMessageEvent]:
        growth = self._growth
        place = growth.places.setdefault(index, len(growth.places))
        self._open[index] = block
        yield _STARTS[block](growing=growth, seen=len(growth.events), content_index=place)

    def _delta(self, event: StreamEvent, index: int, delta: str) -> AssistantMessageEvent:
        growth = self._growth
        growth.events.append(event)
        self._spoken.add(index)
        made = _DELTAS[self._open[index]]
        return made(growing=growth, seen=len(growth.events), content_index=growth.places[index], delta=delta)

    def _whole(self, event: StreamEvent, index: int, content: str) -> Iterator[AssistantMessageEvent]:
        """End a block; what came in one piece is one delta."""
        if content and index not in self._spoken:
            yield self._delta(event, index, content)
        else:
            self._growth.events.append(event)
        yield from self._end(index)

    def _end(self, index: int) -> Iterator[AssistantMessageEvent]:
        growth = self._growth
        block = self._open.pop(index, None)
        if block is not None:
            yield _ENDS[block](growing=growth, seen=len(growth.events), content_index=growth.places[index])


def assistant_events(stream: CanonicalStream) -> Iterator[AssistantMessageEvent]:
    """Yield an open stream's events as assistant events; a failure is the last event and is not raised."""
    view = AssistantView(lambda: stream.partial)
    yield view.start()
    try:
        for event in stream:
            yield from view.feed(event)
        yield from view.finish(stream.message)
    except InterlinguaError as error:
        yield view.fail(error)


async def assistant_events_async(stream: AsyncCanonicalStream) -> AsyncIterator[AssistantMessageEvent]:
    """As `assistant_events`, for asynchronous code."""
    view = AssistantView(lambda: stream.partial)
    yield view.start()
    try:
        async for event in stream:
            for shown in view.feed(event):
                yield shown
        for shown in view.finish(await stream.message):
            yield shown
    except InterlinguaError as error:
        yield view.fail(error)


_SPELLING = {
    "content_index": "contentIndex",
    "assistant_message_event": "assistantMessageEvent",
    "tool_call": "toolCall",
    "tool_call_id": "toolCallId",
    "tool_name": "toolName",
    "tool_results": "toolResults",
    "partial_result": "partialResult",
    "is_error": "isError",
}

_READ = ("partial", "content", "tool_call", "message")
"""What events make when it is read: properties, not fields."""

_INTERNAL = frozenset({"growing", "seen", "cause"})


def to_wire_event(event: AssistantMessageEvent | AgentEvent) -> dict[str, Any]:
    """Return an event as a JSON object (docs/agents/events.md); a partial message is made for it."""
    names = [field.name for field in attrs.fields(type(event)) if field.name not in _INTERNAL]
    names += [name for name in _READ if isinstance(getattr(type(event), name, None), property)]
    written = {_SPELLING.get(name, name): _value(getattr(event, name)) for name in names}
    if isinstance(event, Error):
        written["error"]["stopReason"] = event.reason
    return {"type": event.type, **written}


def to_wire_message(message: Message) -> dict[str, Any]:
    """Return a message as the events' JSON writes it; blocks that it has no word for are left out.

    A system message is written with role `system`. That format has no unknown counts and no unknown price: both are 0.
    """
    role = "toolResult" if message.role is Role.TOOL else message.role.value
    written: dict[str, Any] = {"role": role, "content": _content(message)}
    metadata = message.metadata
    if message.role is Role.ASSISTANT:
        written |= {"api": metadata.api or "", "provider": metadata.provider or ""}
        written |= {"model": (metadata.model or "").partition(":")[2], "usage": _usage(metadata.usage or Usage())}
        written["stopReason"] = assistant_stop_reason(message)
        if metadata.error is not None:
            written["errorMessage"] = metadata.error.message
    elif message.role is Role.TOOL:
        written |= _result_fields(message.tool_results()[0])
    return written | {"timestamp": int(message.created_at.timestamp() * 1000)}


def to_wire_block(block: object) -> dict[str, Any] | None:
    """Return a block as the events' JSON writes it, or None where it has no word for it."""
    if isinstance(block, TextBlock):
        return _present({"type": "text", "text": block.text, "textSignature": block.signature})
    if isinstance(block, ThinkingBlock):
        return _present({"type": "thinking", "thinking": block.text, "thinkingSignature": block.signature})
    if isinstance(block, ToolUseBlock):
        fields = {"type": "toolCall", "id": block.id, "name": block.name, "arguments": dict(block.input)}
        return _present({**fields, "thoughtSignature": block.signature})
    if isinstance(block, ImageBlock) and block.source.kind == "base64":
        return {"type": "image", "data": block.source.data, "mimeType": block.media_type}
    return None


def _content(message: Message) -> Any:
    blocks: Any = message.content
    if message.role is Role.TOOL:
        blocks = message.tool_results()[0].content
    elif message.role in (Role.USER, Role.SYSTEM) and all(type(block) is TextBlock for block in blocks):
        return message.text_content()
    return [written for block in blocks if (written := to_wire_block(block)) is not None]


def _result_fields(result: ToolResultBlock) -> dict[str, Any]:
    fields = {"toolCallId": result.tool_use_id, "toolName": result.tool_name or "", "isError": result.is_error}
    return fields if result.details is None else {**fields, "details": dict(result.details)}


def _usage(usage: Usage) -> dict[str, Any]:
    buckets, cost = usage.buckets(), usage.cost
    output = usage.output_tokens or 0
    parts = (cost.input, cost.output, cost.cached_read, cost.cache_write) if cost else (0, 0, 0, 0)
    money = dict(zip(("input", "output", "cacheRead", "cacheWrite"), map(float, parts), strict=True))
    return {
        "input": buckets.uncached_input,
        "output": output,
        "cacheRead": buckets.cached_input,
        "cacheWrite": buckets.cache_creation_input,
        "totalTokens": buckets.uncached_input + output,  # that format's sum: input and output, without the cache
        "cost": {**money, "total": float(usage.cost_usd or 0)},
    }


def _value(value: Any) -> Any:
    if isinstance(value, Message):
        growing = value.metadata.status is MessageStatus.PARTIAL  # not aborted: that runtime says `stop` meanwhile
        return to_wire_message(value) | ({"stopReason": "stop"} if growing else {})
    if isinstance(value, ToolResultBlock):
        content = [written for block in value.content if (written := to_wire_block(block)) is not None]
        return _present({"content": content, "details": None if value.details is None else dict(value.details)})
    if isinstance(value, ToolUseBlock):
        return to_wire_block(value)
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return to_wire_event(value) if isinstance(value, AssistantMessageEvent) else value


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _urls(value: Any) -> tuple[str, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True)
class ReplyPayload:
    """What goes back to a channel (chat, mail, voice) after a run.

    Attributes:
        text: Markdown, or None.
        media_url: the one attachment, where there is one.
        media_urls: all attachments, where there are several.
        reply_to_id: id of the message this replies to.
        is_error: the run failed, and `text` says how.
    """

    text: str | None = None
    media_url: str | None = None
    media_urls: tuple[str, ...] = attrs.field(default=(), converter=_urls)
    reply_to_id: str | None = None
    is_error: bool = False


def reply_payload(message: Message, *, reply_to_id: str | None = None) -> ReplyPayload:
    """Make the payload of an answer: its text, and its media as addresses (`data:` where they came as data).

    Args:
        message: the last answer of a run.
        reply_to_id: id of the message it replies to, in the channel's own ids.
    """
    metadata = message.metadata
    failed = metadata.status is MessageStatus.ERROR
    text = message.text_content()
    if failed and not text:
        text = metadata.error.message if metadata.error else "the answer failed"
    urls = [url for block in message.content if (url := _url(block))]
    return ReplyPayload(
        text=text or None,
        media_url=urls[0] if len(urls) == 1 else None,
        media_urls=urls if len(urls) > 1 else (),
        reply_to_id=reply_to_id,
        is_error=failed,
    )


def to_wire_reply(payload: ReplyPayload) -> dict[str, Any]:
    """Return a payload as a JSON object; what is absent is left out."""
    return _present({
        "text": payload.text,
        "mediaUrl": payload.media_url,
        "mediaUrls": list(payload.media_urls) or None,
        "replyToId": payload.reply_to_id,
        "isError": payload.is_error or None,
    })  # fmt: skip


def _url(block: object) -> str | None:
    if not isinstance(block, ImageBlock | AudioBlock | VideoBlock | DocumentBlock):
        return None
    source = block.source
    if source.kind == "base64":
        return f"data:{block.media_type};base64,{source.data}"
    return source.data if source.kind == "url" else None
