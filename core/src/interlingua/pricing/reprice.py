"""Pricing stored messages again, with newer or corrected price data (seed 003 §6.3).

Never changes a count, and never replaces a known cost by an unknown one.
Stores and the CLI come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

import attrs

from interlingua.catalogue import ModelInfo
from interlingua.messages import Message
from interlingua.pricing.cost import cost_of


def reprice(
    messages: Iterable[Message], lookup: Callable[[str], ModelInfo | None], at: datetime | None = None
) -> tuple[Message, ...]:
    """Return the messages with costs computed anew; a message whose cost stays the same is the same object.

    Args:
        messages: stored messages; those without usage or model pass through.
        lookup: finds the catalogue row of a canonical model id (`provider:model`), None when unknown.
        at: price all as if requested then; None prices each at its own `created_at`.
    """
    return tuple(_repriced(message, lookup, at) for message in messages)


def _repriced(message: Message, lookup: Callable[[str], ModelInfo | None], at: datetime | None) -> Message:
    usage, model_id = message.metadata.usage, message.metadata.model
    if usage is None or model_id is None:
        return message
    priced = cost_of(usage, lookup(model_id), at or message.created_at)
    if priced == usage or (priced.cost_usd is None and usage.cost_usd is not None):
        return message
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=priced))
