"""Blocking and asynchronous sessions offer the same, by the same names."""

from __future__ import annotations

import pytest

from interlingua_sessions.session import AsyncSession, AsyncSessionTurn, Session, SessionTurn
from interlingua_sessions.streams import AsyncSessionStream, SessionStream
from tests.support.parity import differences

PAIRS = [(Session, AsyncSession), (SessionStream, AsyncSessionStream), (SessionTurn, AsyncSessionTurn)]


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_both_offer_the_same(blocking: type, asynchronous: type) -> None:
    assert differences(blocking, asynchronous) == []
