"""The framed events of a recorded stream as separate byte strings, so that a rule can break one of them.

Never decodes an event's meaning; a framing that is neither SSE nor NDJSON is left alone.
The rules on streams come in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from interlingua.contract.reading import framing_of
from interlingua.contract.rule import NotApplicable
from interlingua.contract.subject import Subject
from interlingua.replay.cassettes import Exchange

_GAPS = {"sse": b"\n\n", "ndjson": b"\n"}


class Frames:
    """A stream cut into its events."""

    def __init__(self, subject: Subject, exchange: Exchange) -> None:
        framing = framing_of(subject, exchange)
        if not isinstance(framing, str) or framing not in _GAPS:
            raise NotApplicable("faults are injected into sse and ndjson streams only")
        self.framing = framing
        self._gap = _GAPS[framing]
        body = exchange.body.replace(b"\r\n", b"\n")
        self.events: list[bytes] = [event for event in body.split(self._gap) if event.strip()]

    def join(self, events: Sequence[bytes]) -> bytes:
        """Put events together again."""
        return b"".join(event + self._gap for event in events)

    def event(self, data: bytes, name: str = "") -> bytes:
        """Write an event of this framing."""
        if self.framing == "ndjson":
            return data
        lines = b"\n".join(b"data: " + line for line in data.split(b"\n"))
        return b"event: " + name.encode() + b"\n" + lines if name else lines

    def data(self, event: bytes) -> Any:
        """Return an event's JSON, or None where it has none."""
        raw = event
        if self.framing == "sse":
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
