"""Answers to be written in a served API: those of all cassettes, and drawn ones; as messages and as events."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import attrs

from interlingua.plugins import EMPTY, ServeContext
from interlingua.response.decode import StreamDecoder
from interlingua.response.framing import framer
from interlingua.types import (
    BlockEnd,
    Message,
    MessageComplete,
    MessageStatus,
    Origin,
    RawUpdate,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
)
from interlingua_contract.recordings import make_decoder, read_whole
from interlingua_contract.subject import Subject
from tests.support import tree

CLOCK = datetime(2026, 11, 22, tzinfo=UTC)


@attrs.frozen
class Answer:
    """One answer: who made it, its message, and its events as they came of each read."""

    name: str
    origin: Origin
    message: Message
    reads: tuple[tuple[StreamEvent, ...], ...]


@cache
def recorded() -> tuple[Answer, ...]:
    """Return the good answers of all cassettes of all providers; a whole one with the events that would give it."""
    return tuple(
        answer for key in sorted(path.name for path in (tree.ROOT / "cassettes").iterdir()) for answer in _of(key)
    )


def _of(key: str) -> Iterator[Answer]:
    if not (tree.ROOT / "cassettes" / key).is_dir() or key == "demo":
        return
    subject = Subject(key, tree.ROOT / "cassettes" / key)
    for exchange in subject.exchanges:
        if not exchange.good:
            continue
        origin = subject.context(exchange).origin
        if exchange.streamed:
            reads = []
            decoder: StreamDecoder = make_decoder(subject, exchange)
            for at in range(0, len(exchange.body), 512):
                reads.append(tuple(decoder.feed(exchange.body[at : at + 512])))
            reads.append(tuple(decoder.end()))
            if decoder.failed is None and decoder.complete:
                yield Answer(exchange.cassette, origin, decoder.message(), tuple(filter(None, reads)))
            continue
        read = read_whole(subject, exchange)
        if read.error is None and read.message is not None:
            yield Answer(exchange.cassette, origin, read.message, (events_of(read.message),))


def events_of(message: Message) -> tuple[StreamEvent, ...]:
    """Return events that give this message."""
    out: list[StreamEvent] = []
    raw: Mapping[str, Any] = message.metadata.provider_raw or EMPTY
    for index, block in enumerate(message.content):
        if isinstance(block, (TextBlock, ThinkingBlock)):
            kind = TextDelta if isinstance(block, TextBlock) else ThinkingDelta
            middle = len(block.text) // 2
            out += [kind(index=index, text=text) for text in (block.text[:middle], block.text[middle:]) if text]
            out.append(BlockEnd(index=index, block=attrs.evolve(block, text="" if block.text else block.text)))
        elif isinstance(block, ToolUseBlock):
            out.append(ToolUseStart(index=index, id=block.id, name=block.name, provider_id=block.provider_id))
            text = block.input_json
            middle = len(text) // 2
            out += [
                ToolUseInputDelta(index=index, partial_json=piece) for piece in (text[:middle], text[middle:]) if piece
            ]
            out.append(ToolUseEnd(index=index, block=block))
        else:
            out.append(BlockEnd(index=index, block=block))
    if raw:
        out.append(RawUpdate(replay=raw.get("replay"), trace=raw.get("trace")))
    if message.metadata.usage is not None:
        out.append(UsageUpdate(usage=message.metadata.usage))
    reason = message.metadata.stop_reason or StopReason.END_TURN
    out.append(MessageComplete(stop_reason=reason, stop_reason_raw=message.metadata.stop_reason_raw))
    return tuple(out)


def seal(state: Any) -> str:
    """Seal a state, with no secret: for tests, a text of URL-safe base64."""
    return base64.urlsafe_b64encode(b"test:" + json.dumps(state, default=_plain).encode()).decode()


def unseal(text: str) -> Any:
    """Give the state back."""
    try:
        data = base64.urlsafe_b64decode(text)
    except ValueError:
        return None
    return json.loads(data[5:]) if data.startswith(b"test:") else None


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)


def context(key: str, api: str, origin: Origin | None, **facts: Any) -> ServeContext:
    """Return a context whose ids and clock are the same each time."""
    fixed: dict[str, Any] = {
        "model": "asked-for",
        "answer_id": "01KAKDPZ0000000000000000AA",
        "clock": lambda: CLOCK,
        "seal": seal,
        "unseal": unseal,
        "echo": {"include_usage": True},
    }
    return ServeContext(provider=key, api=api, origin=origin, **(fixed | facts))


def decode(subject: Subject, api: str, body: bytes) -> StreamDecoder:
    """Read a stream with the adapter of its API."""
    decoder = StreamDecoder(
        subject.provider, framer("sse" if api != "ollama" else "ndjson"), subject.context_for(api, "asked-for")
    )
    decoder.feed(body)
    decoder.end()
    return decoder


def complete(messages: Sequence[Message]) -> list[Message]:
    """Return the answers among messages that are whole."""
    return [
        message
        for message in messages
        if message.role == "assistant" and message.metadata.status is MessageStatus.COMPLETE and message.metadata.model
    ]
