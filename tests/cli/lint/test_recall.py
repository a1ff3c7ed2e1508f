"""The linters against recorded traffic: what services accepted passes, what they refused for a visible reason is found.

The expected values are the services' own answers and labels made by hand.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.cli.lint import recall
from tests.support.corpus import Corpus

APIS = sorted(recall.PROVIDERS)


@cache
def _measured(corpus: Corpus) -> dict[str, dict[str, Any]]:
    return dict(recall.rows(corpus))


@pytest.mark.parametrize("api", APIS)
def test_accepted_requests_pass(corpus: Corpus, api: str) -> None:
    row = _measured(corpus)[api]

    assert row["accepted"] >= 0.999 * row["requests"]
    assert set(row["refused"]) == set(recall.exceptions(api)), "exceptions are listed with their reasons"


@pytest.mark.parametrize("api", APIS)
def test_structural_refusals_are_found_label_by_label(corpus: Corpus, api: str) -> None:
    missed = {
        word: f"{found} of {of}"
        for word, (found, of, _) in _measured(corpus)[api]["recall"].items()
        if found < 0.8 * of
    }

    assert not missed


@pytest.mark.parametrize("api", APIS)
def test_every_recorded_400_has_one_label(corpus: Corpus, api: str) -> None:
    recorded = [entry["id"].partition("/")[2] for entry in corpus.entries(api) if entry["status"] == 400]
    labelled = [entry for label in recall.labels(api) for entry in label.entries]

    assert sorted(labelled) == sorted(recorded)


def test_the_stored_table_is_what_is_measured(corpus: Corpus) -> None:
    assert recall.as_toml(_measured(corpus)) == recall.STORED.read_text("utf-8"), "run python -m tests.cli.lint.recall"


def test_labels_and_exceptions_say_how() -> None:
    labels = [label for api in APIS for label in recall.labels(api)]

    assert all(len(label.how) > 10 and label.entries for label in labels)
    assert all(len(reason) > 30 for api in APIS for reason in recall.exceptions(api).values())


def test_the_stored_table_meets_the_bar_without_the_corpus_too() -> None:
    stored = recall.stored()

    assert sorted(stored) == APIS
    assert all(row["accepted"] >= 0.999 * row["requests"] for row in stored.values())
    assert all(found >= 0.8 * of for row in stored.values() for found, of, _ in row.get("recall", {}).values())
