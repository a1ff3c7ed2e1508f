"""The framed events of a recorded stream as separate byte strings, so that a rule can break one of them.

Never decodes an event's meaning; of a framing of the provider's own it knows only where an event is complete.
The rules on streams come in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from interlingua.response.framing import framer
from interlingua_cli.cassettes import Exchange
from interlingua_contract.reading import framing_of
from interlingua_contract.subject import Subject

_GAPS = {"sse": b"\n\n", "ndjson": b"\n"}


class Frames:
    """A stream cut into its events."""

    def __init__(self, subject: Subject, exchange: Exchange) -> None:
        framing = framing_of(subject, exchange)
        self._make = framing
        self.framing = framing if isinstance(framing, str) else "own"
        self._gap = _GAPS.get(self.framing, b"")
        if self._gap:
            body = exchange.body.replace(b"\r\n", b"\n")
            self.events: list[bytes] = [event for event in body.split(self._gap) if event.strip()]
        else:
            self.events = list(_complete(framer(framing), exchange.body))

    def join(self, events: Sequence[bytes]) -> bytes:
        """Put events together again."""
        return b"".join(event + self._gap for event in events)

    def event(self, data: bytes, name: str = "") -> bytes:
        """Write an event of this framing."""
        if self.framing != "sse":
            return data
        lines = b"\n".join(b"data: " + line for line in data.split(b"\n"))
        return b"event: " + name.encode() + b"\n" + lines if name else lines

    def data(self, event: bytes) -> Any:
        """Return an event's JSON, or None where it has none."""
        raw = event
        if self.framing == "own":
            made = framer(self._make)
            raw = next((chunk.data for chunk in [*made.feed(event), *made.close()]), b"")
        elif self.framing == "sse":
            raw = b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
        try:
            return json.loads(raw)
        except ValueError:
            return None

    def with_data(self, event: bytes, data: Any) -> bytes:
        """Return the event with another payload."""
        raw = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        if self.framing == "ndjson":
            return raw
        if self.framing == "own":
            made = framer(self._make)
            old = next((chunk.data for chunk in [*made.feed(event), *made.close()]), b"")
            return event.replace(old, raw)  # a framing that counts its bytes cannot be changed so
        kept = [line for line in event.split(b"\n") if not line.startswith(b"data:")]
        return b"\n".join([*kept, b"data: " + raw])

    def changed(self, change: Callable[[Any], Any]) -> bytes:
        """Return the stream with every JSON payload passed through `change`."""
        events = []
        for event in self.events:
            data = self.data(event)
            new = data if data is None else change(data)
            events.append(event if new is data else self.with_data(event, new))
        return self.join(events)


def _complete(made: Any, body: bytes) -> Iterator[bytes]:
    """Yield the bytes that each event takes: up to the one that completes it."""
    start = 0
    for at in range(len(body)):
        if made.feed(body[at : at + 1]):
            yield body[start : at + 1]
            start = at + 1
    if body[start:].strip():
        yield body[start:]
