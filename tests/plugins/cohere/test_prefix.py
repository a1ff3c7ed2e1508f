"""The prefix law and the rules of the wire, over generated conversations with two origins in them."""

from __future__ import annotations

from tests.plugins.cohere import checker
from tests.plugins.cohere.wire import ADAPTER
from tests.support.request_laws import RequestLaws


class TestRequests(RequestLaws):
    adapter = ADAPTER
    elements = staticmethod(checker.plain_elements)
    broken_rules = staticmethod(checker.broken_rules)
