"""The size policy of `provider_raw`: what a replay needs stays, what is only good to know may go.

Never looks inside either part (only the adapter that wrote them does), it measures them.
The request context applies it to every new message; stores apply it again by size or age.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from interlingua.jsontext import dumps
from interlingua.messages.message import Message

TRACE_LIMIT = 65_536
"""Bytes of JSON that the trace of one message may take, by default."""


def capped_trace(trace: Mapping[str, Any], limit: int = TRACE_LIMIT) -> Mapping[str, Any]:
    """Return the trace, or, where it is larger than `limit` bytes of JSON, a note of its size in its place."""
    size = len(dumps(trace)) if trace else 0
    return trace if size <= limit else {"trimmed_bytes": size}


def trimmed(message: Message, *, limit: int = TRACE_LIMIT, before: datetime | None = None) -> Message:
    """Return the message with its trace trimmed by size or age; `replay` is never touched (DESIGN 3).

    Args:
        message: any message; one without `provider_raw`, or within the limits, comes back as the same object.
        limit: bytes of JSON that a trace may take; 0 keeps none.
        before: messages made before this moment keep no trace.
    """
    raw = message.metadata.provider_raw
    trace = raw.get("trace") if raw else None
    if not raw or not trace or "trimmed_bytes" in trace:
        return message
    old = before is not None and message.created_at < before
    kept = capped_trace(trace, 0 if old else limit)
    if kept is trace:
        return message
    metadata = attrs.evolve(message.metadata, provider_raw={**raw, "trace": kept})
    return attrs.evolve(message, metadata=metadata)
