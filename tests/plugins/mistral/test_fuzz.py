"""Broken recordings of this service give typed errors only, and keep the text that came before the break."""

from __future__ import annotations

import logging
import os
import random

from tests.support import fuzz
from tests.support.corpus import Corpus

COUNT = int(os.environ.get("INTERLINGUA_FUZZ_COUNT", "300"))


def test_only_typed_errors_and_nothing_received_is_lost(corpus: Corpus) -> None:
    seed = int(os.environ.get("INTERLINGUA_FUZZ_SEED", random.randrange(2**32)))
    print(f"seed {seed}")
    logger = logging.getLogger("interlingua")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        failures = list(fuzz.run(corpus, "mistral", COUNT, seed))
    finally:
        logger.setLevel(before)

    assert not failures, f"seed {seed}: {failures[:5]}"
