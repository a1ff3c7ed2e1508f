"""Broken recordings of every wire give typed errors only, and keep the text that came before the break."""

from __future__ import annotations

import os
import random

import pytest

from tests.support import fuzz
from tests.support.corpus import Corpus
from tests.support.quiet import quiet_ledger

COUNT = int(os.environ.get("INTERLINGUA_FUZZ_COUNT", "300"))


@pytest.mark.parametrize("wire", sorted(fuzz.WIRES))
def test_only_typed_errors_and_nothing_received_is_lost(wire: str, corpus: Corpus) -> None:
    seed = int(os.environ.get("INTERLINGUA_FUZZ_SEED", random.randrange(2**32)))
    print(f"seed {seed}")
    with quiet_ledger():
        failures = list(fuzz.run(corpus, wire, COUNT, seed))

    assert not failures, f"seed {seed}: {failures[:5]}"
