"""The cost of an answer is what OpenRouter charged for it: recorded charges and cases of each part."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from interlingua._pricing import cost_fields
from interlingua.errors import InterlinguaError
from interlingua.types.messages import Message, MessageStatus
from tests.plugins.openrouter.asking import OPENROUTER, answer, context, read
from tests.support import driving
from tests.support.chat_merge import chunks_of
from tests.support.corpus import Corpus

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
COUNTS = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
MODEL = "anthropic/claude-opus-5.5"


def _cost(message: Message, model: str = MODEL) -> dict[str, Any]:
    usage, info = message.metadata.usage, OPENROUTER.model(model)
    assert usage is not None
    return cost_fields(usage, info, AT, OPENROUTER.cost_of(message=message, model=info))


@pytest.mark.parametrize("model", [MODEL, "nobody/lists-this", f"{MODEL}:nitro"])
@pytest.mark.parametrize(
    ("usage", "total", "parts"),
    [
        ({"cost": 0}, "0", ("0", "0", "0")),
        ({"cost": 0.005}, "0.005", ("0", "0", "0.005")),
        (
            {
                "cost": 0.0145516,
                "cost_details": {
                    "upstream_inference_prompt_cost": 0.00015,
                    "upstream_inference_completions_cost": 0.00003,
                },
            },
            "0.0145516",  # a search of the service's own is in it
            ("0.00015", "0.00003", "0.0143716"),
        ),
        (
            {
                "cost": 0.0001,
                "is_byok": True,
                "cost_details": {
                    "upstream_inference_cost": 0.002,
                    "upstream_inference_prompt_cost": 0.0015,
                    "upstream_inference_completions_cost": 0.0005,
                },
            },
            "0.0021",
            ("0.0015", "0.0005", "0.0001"),
        ),
    ],
    ids=["free", "total alone", "own tool", "own key"],
)
def test_the_charge_and_its_parts(usage: dict[str, Any], total: str, parts: tuple[str, ...], model: str) -> None:
    found = _cost(read(answer({"content": "Hi"}, usage=COUNTS | usage)), model)
    cost = found["cost"]
    assert (found["cost_usd"], found["pricing_version"], found["cost_note"]) == (Decimal(total), "reported", None)
    assert (cost.input, cost.output, cost.other) == tuple(map(Decimal, parts))


def test_an_answer_without_a_charge_has_the_list_price() -> None:
    found = _cost(read(answer({"content": "Hi"}, usage=COUNTS)))
    assert found["cost_usd"] == Decimal("0.005")  # 1,000 tokens at 4 USD and 50 at 20 USD a million
    assert found["pricing_version"].startswith("genai-prices")


def test_every_recorded_charge_is_the_cost(corpus: Corpus) -> None:
    table: Counter[str] = Counter()
    for kind in ("json", "sse"):
        for name, raw in corpus.answers("openrouter-chat", kind):
            found = _recorded(kind, raw)
            if found is None:
                continue
            message, usage = found
            charge = Decimal(str(usage["cost"]))
            if usage.get("is_byok"):
                charge += Decimal(str(usage["cost_details"]["upstream_inference_cost"]))
            cost = _cost(message)
            same = cost["cost_usd"] == charge and cost["pricing_version"] == "reported"
            table["the same" if same else f"differs: {name}"] += 1
    assert set(table) == {"the same"}, table
    assert table["the same"] >= 380


def _recorded(kind: str, raw: bytes) -> tuple[Message, dict[str, Any]] | None:
    """Return a complete answer and its usage, or None if it reports no charge."""
    bodies = [json.loads(raw)] if kind == "json" else chunks_of(raw)
    usages = [body["usage"] for body in bodies if isinstance(body.get("usage"), dict)]
    if not usages or usages[-1].get("cost") is None:
        return None
    try:
        message = (driving.whole if kind == "json" else driving.streamed)(OPENROUTER, raw, context("m"))
    except InterlinguaError:
        return None
    return (message, usages[-1]) if message.metadata.status is MessageStatus.COMPLETE else None
