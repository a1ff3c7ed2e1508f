"""The prefix law and the rules of WIRE.md for two compatible presets, over generated conversations."""

from __future__ import annotations

from functools import partial

from tests.plugins.chat_completions import checker
from tests.support.adapter import Adapter
from tests.support.request_laws import RequestLaws


class TestRowWhoseReasoningGoesBack(RequestLaws):
    adapter = Adapter("deepseek", "chat", "m")
    examples = 40
    elements = staticmethod(checker.elements)
    broken_rules = staticmethod(checker.broken_rules)


class TestRowWithOneSystemMessage(RequestLaws):
    adapter = Adapter("llamacpp", "chat", "m")
    examples = 40
    elements = staticmethod(checker.elements)
    broken_rules = staticmethod(partial(checker.broken_rules, one_system=True))
