"""The cost of a request: exact, every part once, and never 0 for what is unknown."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal, localcontext

import attrs
import pytest

from interlingua._catalogue import ModelInfo, Price, PriceTier
from interlingua._json import FrozenDict
from interlingua._pricing import cost_of
from interlingua.types.messages import CostParts, Usage

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
PRICE = Price(
    input_per_mtok_usd=Decimal(3),
    output_per_mtok_usd=Decimal(15),
    cached_read_per_mtok_usd=Decimal("0.30"),
    cache_write_per_mtok_usd=Decimal("3.75"),
)
MODEL = ModelInfo(id="m", prices=(PRICE,), pricing_version="2026-05-08")


def test_an_example_by_hand() -> None:
    """8 input and 42 output tokens at 3 and 15 USD cost 0.000654 USD, priced by table 2026-05-08."""
    usage = cost_of(Usage(input_tokens=8, output_tokens=42, latency_ms=820), MODEL, AT)
    assert usage.cost_usd == Decimal("0.000654")
    assert usage.pricing_version == "2026-05-08"
    assert usage.cost_note is None
    assert usage.latency_ms == 820


def test_case_18_cached_tokens_are_billed_once() -> None:
    """Input is inclusive; 1000 = 500 plain + 300 read + 200 written, so plain input is 500."""
    usage = Usage(
        input_tokens=1000, output_tokens=0, cached_input_tokens=300, cache_creation_input_tokens=200, reasoning_tokens=0
    )
    priced = cost_of(usage, MODEL, AT)
    assert priced.cost == CostParts(
        input=Decimal("0.0015"), cached_read=Decimal("0.00009"), cache_write=Decimal("0.00075"), output=Decimal(0)
    )
    assert priced.cost_usd == Decimal("0.00234")


def test_audio_is_a_part_of_the_input_with_a_price_of_its_own() -> None:
    """A sub-count is carved out of its total; audio without a price of its own is not billed, and the note says so."""
    usage = Usage(
        input_tokens=1000,
        output_tokens=0,
        cached_input_tokens=300,
        audio_input_tokens=400,
        cached_audio_input_tokens=100,
    )  # plain text 400, plain audio 300, cached text 200, cached audio 100
    heard = attrs.evolve(
        PRICE,
        audio_input_per_mtok_usd=Decimal(10),
        cached_audio_read_per_mtok_usd=Decimal(1),
        cache_write_per_mtok_usd=None,
    )
    priced = cost_of(usage, attrs.evolve(MODEL, prices=(heard,)), AT)
    assert priced.cost is not None
    assert priced.cost.input == Decimal("0.0042")  # 400 at 3, 300 at 10
    assert priced.cost.cached_read == Decimal("0.00016")  # 200 at 0.30, 100 at 1
    unheard = cost_of(usage, MODEL, AT)
    assert unheard.cost_usd == Decimal("0.00126")  # 400 at 3, 200 at 0.30: the text alone
    assert unheard.cost_note == "without 400 audio_input_tokens of m: no price known"


def test_extra_units_are_billed_by_their_own_price() -> None:
    """Two searches at 10 USD per thousand; 300 of 1000 tokens of output are an image at 30 USD per million."""
    usage = Usage(
        input_tokens=1000, output_tokens=1000, extra_units={"web_search": 2, "image_output_tokens": 300, "shell": 1}
    )
    price = attrs.evolve(
        PRICE, units=FrozenDict({"web_search": Decimal("0.01"), "image_output_tokens": Decimal("0.00003")})
    )
    priced = cost_of(usage, attrs.evolve(MODEL, prices=(price,)), AT)
    assert priced.cost == CostParts(
        input=Decimal("0.003"),
        output=Decimal("0.0105"),
        cached_read=Decimal(0),
        cache_write=Decimal(0),
        other=Decimal("0.029"),
    )
    assert priced.cost_usd == Decimal("0.0425")
    assert priced.cost_note == "without 1 shell of m: no price known"


def test_extra_tokens_are_no_more_than_the_output() -> None:
    usage = Usage(input_tokens=1, output_tokens=10, extra_units={"image_output_tokens": 11})
    assert cost_of(usage, MODEL, AT).cost_note == (
        "reported token counts contradict each other: the parts exceed their total"
    )
    wrong = cost_of(attrs.evolve(usage, audio_input_tokens=900), MODEL, AT)
    assert wrong.cost_usd is None
    assert wrong.cost_note is not None
    assert "contradict" in wrong.cost_note


def test_case_18_reasoning_is_inside_output() -> None:
    """Reasoning is part of output, so it costs nothing on top."""
    without = cost_of(Usage(input_tokens=1, output_tokens=100), MODEL, AT)
    with_reasoning = cost_of(Usage(input_tokens=1, output_tokens=100, reasoning_tokens=90), MODEL, AT)
    assert with_reasoning.cost_usd == without.cost_usd


def test_case_29_unknown_model_has_no_cost() -> None:
    """None and the reason, never 0."""
    priced = cost_of(Usage(input_tokens=10, output_tokens=10), None, AT)
    assert (priced.cost_usd, priced.cost, priced.pricing_version) == (None, None, None)
    assert priced.cost_note == "model not in the catalogue"


def test_case_29_a_price_of_zero_is_a_price() -> None:
    """A local model listed at 0.0 is known to be free, which is not unknown."""
    free = ModelInfo(id="local", prices=(Price(input_per_mtok_usd=Decimal(0), output_per_mtok_usd=Decimal(0)),))
    assert cost_of(Usage(input_tokens=10, output_tokens=10), free, AT).cost_usd == Decimal(0)


@pytest.mark.parametrize(
    ("usage", "model", "note"),
    [
        (Usage(output_tokens=1), MODEL, "provider did not report input_tokens"),
        (Usage(input_tokens=1), MODEL, "provider did not report output_tokens"),
        (Usage(), MODEL, "provider did not report input_tokens and output_tokens"),
        (Usage(input_tokens=1, output_tokens=1), ModelInfo(id="m"), "no price known for m"),
        (
            Usage(input_tokens=1, output_tokens=1, service_tier="flex"),
            MODEL,
            "no price known for m for service tier 'flex' at 2026-11-21",
        ),
        (
            Usage(input_tokens=1, output_tokens=1),
            ModelInfo(id="m", prices=(attrs.evolve(PRICE, since=date(2027, 1, 1)),)),
            "no price known for m at 2026-11-21",
        ),
        (
            Usage(input_tokens=1, output_tokens=1),
            ModelInfo(id="m", prices=(attrs.evolve(PRICE, output_per_mtok_usd=None),)),
            "no price known for output tokens",
        ),
        (
            Usage(input_tokens=10, output_tokens=1, cached_input_tokens=8, cache_creation_input_tokens=3),
            MODEL,
            "reported token counts contradict each other: the parts exceed their total",
        ),
    ],
)
def test_case_29_every_unknown_says_why(usage: Usage, model: ModelInfo, note: str) -> None:
    """A repriced usage also loses the cost it had."""
    priced = cost_of(attrs.evolve(usage, cost_usd=Decimal(1), pricing_version="old"), model, AT)
    assert (priced.cost_usd, priced.cost, priced.pricing_version) == (None, None, None)
    assert priced.cost_note == note


@pytest.mark.parametrize("tier", [None, "default", "standard"])
def test_the_usual_tier_by_its_names(tier: str | None) -> None:
    priced = cost_of(Usage(input_tokens=8, output_tokens=42, service_tier=tier), MODEL, AT)
    assert priced.cost_usd == Decimal("0.000654")


def test_a_tier_with_prices_of_its_own() -> None:
    batch = attrs.evolve(
        PRICE, service_tier="batch", input_per_mtok_usd=Decimal("1.5"), output_per_mtok_usd=Decimal("7.5")
    )
    model = attrs.evolve(MODEL, prices=(PRICE, batch))
    priced = cost_of(Usage(input_tokens=8, output_tokens=42, service_tier="batch"), model, AT)
    assert priced.cost_usd == Decimal("0.000327")


def test_a_tier_bills_the_whole_request() -> None:
    """Sheet PRICES: past N tokens of input the whole request, output too, is billed at the tier's price."""
    dear = PriceTier(above_input_tokens=200_000, input_per_mtok_usd=Decimal(6), output_per_mtok_usd=Decimal("22.5"))
    model = attrs.evolve(MODEL, prices=(attrs.evolve(PRICE, tiers=(dear,)),))
    assert cost_of(Usage(input_tokens=200_000, output_tokens=1000), model, AT).cost_usd == Decimal("0.615")
    assert cost_of(Usage(input_tokens=200_001, output_tokens=1000), model, AT).cost_usd == Decimal("1.222506")


def test_a_price_starts_on_its_utc_day() -> None:
    later = attrs.evolve(PRICE, since=date(2026, 8, 21), input_per_mtok_usd=Decimal(1), output_per_mtok_usd=Decimal(1))
    model = attrs.evolve(MODEL, prices=(PRICE, later))
    usage = Usage(input_tokens=1_000_000, output_tokens=0)
    assert cost_of(usage, model, datetime(2026, 8, 20, 23, 59, tzinfo=UTC)).cost_usd == 3
    assert cost_of(usage, model, datetime(2026, 8, 21, tzinfo=UTC)).cost_usd == 1
    eastern = datetime.fromisoformat("2026-08-21T01:00:00+02:00")  # still the day before in UTC
    assert cost_of(usage, model, eastern).cost_usd == 3


@pytest.mark.parametrize(("hour", "usd"), [(22, 3), (23, 1), (0, 1), (1, 3)])
def test_hours_past_midnight(hour: int, usd: int) -> None:
    night = attrs.evolve(PRICE, utc_hours=(time(23), time(1)), input_per_mtok_usd=Decimal(1))
    model = attrs.evolve(MODEL, prices=(PRICE, night))
    at = datetime(2026, 11, 21, hour, tzinfo=UTC)
    assert cost_of(Usage(input_tokens=1_000_000, output_tokens=0), model, at).cost_usd == usd


def test_no_rounding_under_a_narrow_decimal_context() -> None:
    """The caller's decimal context must not leak in: 123456789 x 0.0375 / 10^6 has ten significant digits."""
    model = attrs.evolve(MODEL, prices=(attrs.evolve(PRICE, input_per_mtok_usd=Decimal("0.0375")),))
    with localcontext() as narrow:
        narrow.prec = 3
        priced = cost_of(Usage(input_tokens=123_456_789, output_tokens=0), model, AT)
    assert priced.cost_usd == Decimal("4.6296295875")
