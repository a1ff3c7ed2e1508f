"""What it costs when a provider's prompt cache no longer applies: another model, or a changed prefix (DESIGN 8).

Never guesses a price and never says 0 for what is unknown. The client's watch on prefixes and the CLI come in.
A count is the last answer's own report where it has one, else an estimate, and says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal

import attrs

from interlingua.catalogue import ModelInfo
from interlingua.messages import Message, Usage
from interlingua.pricing.cost import cost_of


@attrs.frozen(kw_only=True)
class LostCache:
    """A prompt cache that does not apply to a request, and what that costs.

    Attributes:
        tokens: input tokens that would have been read from it.
        source: who says so: the last answer's `usage`, or an `estimate` of the prefix that was sent before it.
        cost_usd: how much more the request costs than with the cache, in USD; None when unknown.
        cost_note: why the cost is unknown.
    """

    tokens: int
    source: Literal["usage", "estimate"]
    cost_usd: Decimal | None = None
    cost_note: str | None = None


def lost_cache(
    messages: Sequence[Message],
    input_tokens: int,
    model: ModelInfo | None,
    at: datetime,
    prefix_tokens: Callable[[Sequence[Message]], int],
    *,
    still: int = 0,
) -> LostCache:
    """Return what it costs to send a request where what was cached of a conversation no longer applies.

    Args:
        messages: the conversation as it was cached.
        input_tokens: of the request, an estimate of the adapter that sends it.
        model: catalogue row of the model it goes to, or None when the catalogue does not know it.
        at: when.
        prefix_tokens: estimates the tokens of messages; asked only where no answer reports its cache.
        still: tokens at the beginning that apply all the same.
    """
    tokens, source = _cached(messages, prefix_tokens)
    tokens = max(min(tokens, input_tokens) - still, 0)  # two models count differently
    note = _no_price(model, input_tokens, at)
    if note is not None:
        return LostCache(tokens=tokens, source=source, cost_note=note)
    cold = cost_of(Usage(input_tokens=input_tokens, output_tokens=0, cached_input_tokens=still), model, at)
    warm = cost_of(Usage(input_tokens=input_tokens, output_tokens=0, cached_input_tokens=still + tokens), model, at)
    if cold.cost_usd is None or warm.cost_usd is None:
        return LostCache(tokens=tokens, source=source, cost_note=cold.cost_note or warm.cost_note)
    return LostCache(tokens=tokens, source=source, cost_usd=cold.cost_usd - warm.cost_usd)


def _cached(
    messages: Sequence[Message], prefix_tokens: Callable[[Sequence[Message]], int]
) -> tuple[int, Literal["usage", "estimate"]]:
    for place in range(len(messages) - 1, -1, -1):
        usage = messages[place].metadata.usage
        if usage is None:
            continue
        read, written = usage.cached_input_tokens, usage.cache_creation_input_tokens
        if read is not None or written is not None:
            return (read or 0) + (written or 0), "usage"
        known = usage.input_tokens
        return (known if known is not None else prefix_tokens(messages[:place]) if place else 0), "estimate"
    return 0, "estimate"  # nobody answered yet, so nobody cached


def _no_price(model: ModelInfo | None, input_tokens: int, at: datetime) -> str | None:
    """Say why the price of cached input is unknown, or None; a cached price in the table is asked for by itself."""
    if model is None:
        return "model not in the catalogue"
    price = model.price_at(at)
    if price is None:
        return f"no price known for {model.id}"
    if price.rates(input_tokens).cached_read_per_mtok_usd is None:
        return f"no price known for cached input of {model.id}"
    return None
