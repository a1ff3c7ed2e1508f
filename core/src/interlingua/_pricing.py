"""The cost of an answer, computed from dated list prices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Context, Decimal
from typing import Any

from interlingua._catalogue import ModelInfo, Rates
from interlingua._values import replace
from interlingua.types.messages import CostParts, Usage

_EXACT = Context(prec=200)  # more digits than any product of a count and a list price: nothing is rounded
_NOTHING = Decimal(0)
_FREE = CostParts(input=_NOTHING, output=_NOTHING, cached_read=_NOTHING, cache_write=_NOTHING)
_FREE_NOTE = "runs on your own machines: its tokens have no price"

SELF_HOSTED = "self-hosted"
"""The `pricing_version` of a cost of 0 for a model that `Connection.self_hosted` matches."""


class _UnknownCostError(Exception):
    """Why a cost cannot be known; becomes the note."""


def cost_of(usage: Usage, model: ModelInfo | None, at: datetime) -> Usage:
    """Return the usage with its cost, or with the reason why it has none.

    The rules are in format.md, Pricing. A part without a price is not in the cost, and the note reports it.

    Args:
        usage: counts in tokens; the provider's tier in `service_tier`.
        model: catalogue row, or None when the catalogue does not know the model.
        at: when the request was made; a naive time is UTC.

    Returns:
        The usage with `cost_usd`, `cost` (USD) and `pricing_version` set, `cost_note` None or what is not in the cost;
        or those three None and `cost_note` the reason.
    """
    return replace(usage, **cost_fields(usage, model, at))


def cost_fields(
    usage: Usage, model: ModelInfo | None, at: datetime, parts: CostParts | tuple[CostParts, str] | None = None
) -> dict[str, Any]:
    """Return the four fields that `cost_of` sets; `parts` is the result of the hook `cost_of`."""
    name, version = (model.id, model.pricing_version) if model is not None else (None, None)
    if model is not None and model.pricing_version == SELF_HOSTED:
        return {"cost_usd": _NOTHING, "cost": _FREE, "pricing_version": SELF_HOSTED, "cost_note": _FREE_NOTE}
    try:
        missing: Sequence[str] = ()
        if isinstance(parts, tuple):
            parts, version = parts
        elif parts is None:
            if model is None:
                raise _UnknownCostError("model not in the catalogue")
            parts, missing = _parts(usage, _rates(usage, model, at))
    except _UnknownCostError as reason:
        return {"cost_usd": None, "cost": None, "pricing_version": None, "cost_note": str(reason)}
    total = _NOTHING
    for part in (parts.input, parts.cached_read, parts.cache_write, parts.output, parts.other):
        total = _EXACT.add(total, part)
    note = f"without {', '.join(missing)} of {name}: no price known" if missing else None
    return {"cost_usd": total, "cost": parts, "pricing_version": version, "cost_note": note}


def _rates(usage: Usage, model: ModelInfo, at: datetime) -> Rates:
    if usage.input_tokens is None or usage.output_tokens is None:
        missing = [name for name in ("input_tokens", "output_tokens") if getattr(usage, name) is None]
        raise _UnknownCostError(f"provider did not report {' and '.join(missing)}")
    price = model.price_at(at, usage.service_tier)
    if price is None and not model.prices:
        raise _UnknownCostError(f"no price known for {model.id}")
    if price is None:
        tier = usage.service_tier
        kind = "" if tier in (None, *model.standard_service_tiers) else f" for service tier {tier!r}"
        raise _UnknownCostError(f"no price known for {model.id}{kind} at {at.date().isoformat()}")
    return price.rates(usage.input_tokens)


def _parts(usage: Usage, rates: Rates) -> tuple[CostParts, list[str]]:
    """Return the cost of each part, and the parts that no price is known for."""
    total, output = usage.input_tokens or 0, usage.output_tokens or 0
    read, written = usage.cached_input_tokens or 0, usage.cache_creation_input_tokens or 0
    written_1h = usage.cache_creation_1h_input_tokens or 0
    audio, cached_audio = usage.audio_input_tokens or 0, usage.cached_audio_input_tokens or 0
    if not (read or written or written_1h or audio or cached_audio or usage.extra_units) and total >= 0 <= output:
        return CostParts(  # most requests: ten calls less
            input=_bill(total, rates.input_per_mtok_usd, "input"),
            cached_read=_NOTHING,
            cache_write=_NOTHING,
            output=_bill(output, rates.output_per_mtok_usd, "output"),
        ), []
    other, missing, own_output = _extra_parts(usage, rates)
    plain = total - read - written
    parts = (written - written_1h, read - cached_audio, plain - audio + cached_audio, output - own_output)
    if min(plain, *parts, audio - cached_audio, read, written, written_1h, cached_audio, output) < 0:
        raise _UnknownCostError("reported token counts contradict each other: the parts exceed their total")
    input_rate = rates.input_per_mtok_usd
    write_rate = _first(rates.cache_write_per_mtok_usd, input_rate)
    read_rate = _first(rates.cached_read_per_mtok_usd, input_rate)
    audio_rate, cached_audio_rate = rates.audio_input_per_mtok_usd, rates.cached_audio_read_per_mtok_usd
    if audio and audio_rate is None:  # audio is not text, and costs up to seven times as much
        missing.append(f"{audio} audio_input_tokens")
        audio_rate = cached_audio_rate = _NOTHING
    return CostParts(
        input=_EXACT.add(
            _bill(plain - audio + cached_audio, input_rate, "input"),
            _bill(audio - cached_audio, audio_rate, "audio input"),
        ),
        cached_read=_EXACT.add(
            _bill(read - cached_audio, read_rate, "cached input"),
            _bill(cached_audio, _first(cached_audio_rate, read_rate), "cached audio input"),
        ),
        cache_write=_EXACT.add(
            _bill(written - written_1h, write_rate, "cache write"),
            _bill(written_1h, _first(rates.cache_write_1h_per_mtok_usd, write_rate), "one-hour cache write"),
        ),
        output=_bill(output - own_output, rates.output_per_mtok_usd, "output"),
        other=other,
    ), missing


def _extra_parts(usage: Usage, rates: Rates) -> tuple[Decimal, list[str], int]:
    """Return the cost of the extra units, those without a price, and how many tokens of the output they are."""
    cost, missing, own_output = _NOTHING, [], 0
    for name, count in (usage.extra_units or {}).items():
        own_output += count if name.endswith("_output_tokens") else 0
        price = rates.units.get(name)
        if price is None:
            missing.append(f"{count} {name}")
        else:
            cost = _EXACT.add(cost, _EXACT.multiply(price, Decimal(count)))
    return cost, missing, own_output


def _first(own: Decimal | None, around: Decimal | None) -> Decimal | None:
    return around if own is None else own


def _bill(tokens: int, per_mtok: Decimal | None, kind: str) -> Decimal:
    if tokens == 0:
        return _NOTHING
    if per_mtok is None:
        raise _UnknownCostError(f"no price known for {kind} tokens")
    return _EXACT.multiply(per_mtok, Decimal(tokens)).scaleb(-6, _EXACT)
