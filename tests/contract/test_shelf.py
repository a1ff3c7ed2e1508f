"""Every broken adapter is caught by the rule it names; `make test` tries a fixed fourth of them."""

from __future__ import annotations

import gc
import sys

import pytest

from interlingua_contract.guard import read_settings, restore_settings
from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from tests.contract.broken import SHELF
from tests.contract.broken.declarations import WELL_PACKED, BrokenDistribution
from tests.contract.broken.machine import Mutant
from tests.support.counts import chosen

RULES = {rule.number: rule for rule in ALL}
TRIED = [mutant for mutant in SHELF if chosen(mutant.name, 4)]


# one adapter yields while it is closed, which Python reports once more when its generators are collected
@pytest.mark.filterwarnings("ignore:.*_yields_when_closed:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("mutant", TRIED, ids=[mutant.name.replace(" ", "-") for mutant in TRIED])
def test_a_broken_adapter_is_caught(mutant: Mutant | BrokenDistribution) -> None:
    settings = read_settings()
    try:
        result = check(mutant.subject(), RULES[mutant.rule], 1)
    finally:
        settings["the import path"] = list(sys.path)  # broken distributions are found there
        restore_settings(settings)  # some adapters change them
    if mutant.rule == "C30":
        gc.collect()  # generators left in cycles are reported here, not in a later test

    assert result.outcome == "fail", f"{mutant.rule} lets {mutant.name!r} pass: {result.reason}"


def test_the_shelf_is_large_and_its_names_differ() -> None:
    names = [mutant.name for mutant in SHELF]

    assert len(set(names)) == len(names) >= 150


@pytest.mark.parametrize("number", ["C48", "C49", "C50"])
def test_a_distribution_that_is_packed_well_is_not(number: str) -> None:
    result = check(WELL_PACKED.subject(), RULES[number], 1)

    assert result.outcome == "pass", result.findings
