"""The prefix law and the format's rules, over generated conversations with two origins in them."""

from __future__ import annotations

import attrs

from tests.plugins.chat_completions import checker
from tests.plugins.openrouter.asking import ADAPTER
from tests.support.request_laws import RequestLaws


class TestModel(RequestLaws):
    adapter = ADAPTER
    examples = 40
    elements = staticmethod(checker.elements)
    broken_rules = staticmethod(checker.broken_rules)


class TestModelWithNarrowIds(TestModel):
    """The upstream takes ids of nine characters only."""

    adapter = attrs.evolve(ADAPTER, model="mistralai/mistral-large-2512")
