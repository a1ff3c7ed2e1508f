"""Stored messages priced again (format.md, Pricing)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import attrs

from interlingua._catalogue import ModelInfo, Price
from interlingua.types.factories import assistant, user
from interlingua.types.messages import Message, MessageMetadata, Usage
from interlingua_sessions.store.maintenance import reprice_message

OLD = Price(input_per_mtok_usd=Decimal(3), output_per_mtok_usd=Decimal(15))
NEW = attrs.evolve(OLD, since=date(2026, 6, 1), input_per_mtok_usd=Decimal(1))
MODEL = ModelInfo(id="m", prices=(OLD, NEW), pricing_version="v2")
COUNTS = Usage(input_tokens=1_000_000, output_tokens=0)


def _answer(created: datetime, usage: Usage | None, model: str | None = "acme:m") -> Message:
    return attrs.evolve(assistant("hi"), created_at=created, metadata=MessageMetadata(model=model, usage=usage))


def _lookup(name: str) -> ModelInfo | None:
    return MODEL if name == "acme:m" else None


def _cost(message: Message) -> tuple[Decimal | None, str | None]:
    usage = message.metadata.usage
    assert usage is not None
    return usage.cost_usd, usage.pricing_version


def repriced(messages: list[Message]) -> list[Message]:
    return [reprice_message(message, _lookup) for message in messages]


def test_each_message_is_priced_by_its_own_day() -> None:
    stored = [_answer(datetime(2026, month, 1, tzinfo=UTC), COUNTS) for month in (5, 7)]
    assert [_cost(message) for message in repriced(stored)] == [(Decimal(3), "v2"), (Decimal(1), "v2")]


def test_all_as_of_one_moment() -> None:
    stored = _answer(datetime(2026, 5, 1, tzinfo=UTC), COUNTS)
    assert _cost(reprice_message(stored, _lookup, at=datetime(2026, 7, 1, tzinfo=UTC))) == (Decimal(1), "v2")


def test_only_the_usage_changes() -> None:
    stored = _answer(datetime(2026, 5, 1, tzinfo=UTC), COUNTS)
    new = reprice_message(stored, _lookup)
    assert new.metadata.usage is not None
    bare = attrs.evolve(new.metadata.usage, cost_usd=None, cost=None, pricing_version=None)
    assert attrs.evolve(new, metadata=attrs.evolve(new.metadata, usage=bare)) == stored


def test_unchanged_messages_are_the_same_objects() -> None:
    day = datetime(2026, 5, 1, tzinfo=UTC)
    once = repriced([user("q"), _answer(day, COUNTS), _answer(day, None), _answer(day, COUNTS, None)])
    twice = repriced(once)
    assert all(new is old for new, old in zip(twice, once, strict=True))


def test_a_known_cost_survives_a_catalogue_that_lost_the_model() -> None:
    priced = attrs.evolve(COUNTS, cost_usd=Decimal(9), pricing_version="v1")
    stored = _answer(datetime(2026, 5, 1, tzinfo=UTC), priced, "acme:gone")
    assert reprice_message(stored, _lookup) is stored


def test_case_29_an_unknown_model_gets_its_reason() -> None:
    new = reprice_message(_answer(datetime(2026, 5, 1, tzinfo=UTC), COUNTS, "acme:gone"), _lookup)
    assert new.metadata.usage is not None
    assert new.metadata.usage.cost_usd is None
    assert new.metadata.usage.cost_note == "model not in the catalogue"


def test_a_cost_that_the_provider_computed_of_billed_units_is_kept() -> None:
    """The catalogue has no price of the units, so its cost would lack them."""
    usage = attrs.evolve(COUNTS, extra_units={"billed_input": 44}, cost_usd=Decimal("0.00011"), pricing_version="v1")
    stored = _answer(datetime(2026, 5, 1, tzinfo=UTC), usage)
    assert reprice_message(stored, _lookup) is stored


def test_the_charge_that_a_service_reported_is_kept() -> None:
    charged = attrs.evolve(COUNTS, cost_usd=Decimal(2), pricing_version="reported")
    stored = _answer(datetime(2026, 7, 1, tzinfo=UTC), charged)
    assert repriced([stored]) == [stored]
