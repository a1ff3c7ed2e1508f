"""The cost of an answer as the service reports it; `Usage.cost_usd` is computed from the price table instead."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from interlingua.types import Message


def reported_cost(message: Message) -> Decimal | None:
    """Return the US dollars charged for an answer, as its `usage.cost` has it (WIRE.md, Usage).

    It is in `provider_raw["trace"]["usage"]["cost"]` and is lost when a trace is trimmed. None if the message is not
    from this service or reports no cost; `generation_cost` asks the service again.
    """
    origin = message.metadata.origin
    if origin is None or origin.provider != "openrouter":
        return None
    usage = _trace(message).get("usage")
    return dollars(usage.get("cost")) if isinstance(usage, Mapping) else None


def generation_id(message: Message) -> str | None:
    """Return the service's id of an answer, for the generation endpoint; None if it is unknown."""
    found = _trace(message).get("id")
    return found if isinstance(found, str) and found else None


def dollars(value: Any) -> Decimal | None:
    """Read an amount; None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return Decimal(str(value))


def _trace(message: Message) -> Mapping[str, Any]:
    raw = message.metadata.provider_raw
    trace = raw.get("trace") if raw is not None else None
    return trace if isinstance(trace, Mapping) else {}
