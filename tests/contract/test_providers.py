"""The shipped providers under their own contract, each in the few lines that a third party writes.

No provider's quirks stand here: they are beside the cassettes, where `interlingua check` reads them too.
pytest comes in.
"""

from __future__ import annotations

import pytest

from interlingua.contract import ProviderContract
from tests.support import tree

CASSETTES = tree.ROOT / "cassettes"


class TestAnthropic(ProviderContract):
    provider = "anthropic"
    cassettes = CASSETTES / "anthropic"
    examples = 20

    @pytest.mark.xfail(
        strict=True,
        reason="cassettes for schema, forced tool, documents, image URLs, image results are still to be made",
    )
    def test_c51_capabilities_have_evidence(self) -> None: ...


class TestOpenai(ProviderContract):
    provider = "openai"
    cassettes = CASSETTES / "openai"
    examples = 20

    @pytest.mark.xfail(strict=True, reason="cassettes for the same on both wires are still to be made")
    def test_c51_capabilities_have_evidence(self) -> None: ...


class TestCompatibleRow(ProviderContract):
    provider = "llamacpp"
    cassettes = CASSETTES / "llamacpp"
    examples = 20

    @pytest.mark.xfail(strict=True, reason="cassettes for thinking, images and audio are still to be made")
    def test_c51_capabilities_have_evidence(self) -> None: ...


class TestOllama(ProviderContract):
    provider = "ollama"
    cassettes = CASSETTES / "ollama"
    examples = 20


class TestMistral(ProviderContract):
    provider = "mistral"
    cassettes = CASSETTES / "mistral"
    examples = 20
