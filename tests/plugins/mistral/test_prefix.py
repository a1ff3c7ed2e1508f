"""The prefix law and the rules of WIRE.md, over generated conversations with two origins in them."""

from __future__ import annotations

from tests.plugins.mistral import checker
from tests.plugins.mistral.wire import ADAPTER
from tests.support.request_laws import RequestLaws


def _broken_rules(raw: bytes) -> list[str]:
    """Leave out what the ledger tells: that an answer stands last, behind which nothing is put that nobody said."""
    return [rule for rule in checker.broken_rules(raw) if rule != "the assistant stands last without prefix"]


class TestRequests(RequestLaws):
    adapter = ADAPTER
    elements = staticmethod(checker.plain_elements)
    broken_rules = staticmethod(_broken_rules)
