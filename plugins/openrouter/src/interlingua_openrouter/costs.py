"""The cost of an answer as the service reports it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from interlingua.types import CostParts, Message

REPORTED = "reported"
_NOTHING = Decimal(0)


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


def charge_of(message: Message) -> tuple[CostParts, str] | None:
    """Return the charge in its parts, or None if the answer reports none (WIRE.md, Usage).

    With a key of the caller's at the upstream service, the charge is what that service takes and the router's fee.
    `other` has the rest, such as the service's tools.
    """
    usage = _trace(message).get("usage")
    if not isinstance(usage, Mapping) or (charged := dollars(usage.get("cost"))) is None:
        return None
    details = usage.get("cost_details") or {}
    if usage.get("is_byok") is True:
        charged += dollars(details.get("upstream_inference_cost")) or _NOTHING
    read, written = (dollars(details.get(f"upstream_inference_{part}_cost")) for part in ("prompt", "completions"))
    if read is None or written is None or read + written > charged:
        read, written = _NOTHING, _NOTHING
    other = charged - read - written
    return CostParts(input=read, output=written, cached_read=_NOTHING, cache_write=_NOTHING, other=other), REPORTED


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
