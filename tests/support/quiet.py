"""The ledger's log lines, silenced for a while: generated histories lose thousands of blocks on purpose."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_ledger() -> Iterator[None]:
    """Let the library log errors only."""
    logger = logging.getLogger("interlingua")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
