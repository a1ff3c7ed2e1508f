"""Answers to be written in a served API: those of all cassettes, and drawn ones; as messages and as events."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import attrs

from interlingua._response.decode import StreamDecoder
from interlingua.plugins import Registry
from interlingua.types import Message, Origin, StreamEvent
from interlingua_contract.recordings import make_decoder, read_whole
from interlingua_contract.subject import Subject
from interlingua_serving import ServeContext, answer_events
from tests.support import tree

CLOCK = datetime(2026, 11, 22, tzinfo=UTC)


@attrs.frozen
class Answer:
    """One answer: its origin, its message, and its events by read, made up if it arrived whole."""

    name: str
    origin: Origin
    message: Message
    reads: tuple[tuple[StreamEvent, ...], ...]
    streamed: bool = True


@cache
def recorded() -> tuple[Answer, ...]:
    """Return the good answers of all cassettes of all providers; a whole one with events that make it."""
    keys = sorted(path.name for path in (tree.ROOT / "cassettes").iterdir() if path.is_dir())
    return tuple(answer for key in keys if key in Registry().found() for answer in _of(key))


def _of(key: str) -> Iterator[Answer]:
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
            yield Answer(exchange.cassette, origin, read.message, (answer_events(read.message),), streamed=False)


def seal(state: Any) -> str:
    """Seal a state, with no secret: for tests, as URL-safe base64."""
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
