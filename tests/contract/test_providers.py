"""The shipped providers under their own contract, each in the few lines that a third party writes.

No provider's quirks stand here: they are beside the cassettes, where `interlingua check` reads them too.
pytest comes in.
"""

from __future__ import annotations

from interlingua.contract import ProviderContract
from tests.support import tree

CASSETTES = tree.ROOT / "cassettes"


class TestAnthropic(ProviderContract):
    provider = "anthropic"
    cassettes = CASSETTES / "anthropic"
    examples = 20


class TestOpenai(ProviderContract):
    provider = "openai"
    cassettes = CASSETTES / "openai"
    examples = 20


class TestCompatibleRow(ProviderContract):
    provider = "llamacpp"
    cassettes = CASSETTES / "llamacpp"
    examples = 20


class TestOllama(ProviderContract):
    provider = "ollama"
    cassettes = CASSETTES / "ollama"
    examples = 20


class TestMistral(ProviderContract):
    provider = "mistral"
    cassettes = CASSETTES / "mistral"
    examples = 20


class TestGoogle(ProviderContract):
    provider = "google"
    cassettes = CASSETTES / "google"
    examples = 20
