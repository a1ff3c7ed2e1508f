"""The shipped providers under their own contract, each in the few lines that a third party writes."""

from __future__ import annotations

from interlingua_contract.suite import ProviderContract
from tests.support import counts, tree

CASSETTES = tree.ROOT / "cassettes"


class TestAnthropic(ProviderContract):
    provider = "anthropic"
    cassettes = CASSETTES / "anthropic"
    examples = counts.examples(20)


class TestOpenai(ProviderContract):
    provider = "openai"
    cassettes = CASSETTES / "openai"
    examples = counts.examples(20)


class TestCompatibleRow(ProviderContract):
    provider = "llamacpp"
    cassettes = CASSETTES / "llamacpp"
    examples = counts.examples(20)


class TestOllama(ProviderContract):
    provider = "ollama"
    cassettes = CASSETTES / "ollama"
    examples = counts.examples(20)


class TestMistral(ProviderContract):
    provider = "mistral"
    cassettes = CASSETTES / "mistral"
    examples = counts.examples(20)


class TestGoogle(ProviderContract):
    provider = "google"
    cassettes = CASSETTES / "google"
    examples = counts.examples(20)


class TestCohere(ProviderContract):
    provider = "cohere"
    cassettes = CASSETTES / "cohere"
    examples = counts.examples(20)


class TestBedrock(ProviderContract):
    provider = "bedrock"
    cassettes = CASSETTES / "bedrock"
    examples = counts.examples(20)


class TestOpenrouter(ProviderContract):
    provider = "openrouter"
    cassettes = CASSETTES / "openrouter"
    examples = counts.examples(20)


class TestZai(ProviderContract):
    provider = "zai"
    cassettes = CASSETTES / "zai"
    examples = counts.examples(20)


class TestGroq(ProviderContract):
    provider = "groq"
    cassettes = CASSETTES / "groq"
    examples = counts.examples(20)


class TestDeepseek(ProviderContract):
    provider = "deepseek"
    cassettes = CASSETTES / "deepseek"
    examples = counts.examples(20)


class TestXai(ProviderContract):
    provider = "xai"
    cassettes = CASSETTES / "xai"
    examples = counts.examples(20)


class TestTogether(ProviderContract):
    provider = "together"
    cassettes = CASSETTES / "together"
    examples = counts.examples(10)


class TestFireworks(ProviderContract):
    provider = "fireworks"
    cassettes = CASSETTES / "fireworks"
    examples = counts.examples(10)


class TestCerebras(ProviderContract):
    provider = "cerebras"
    cassettes = CASSETTES / "cerebras"
    examples = counts.examples(10)


class TestMoonshot(ProviderContract):
    provider = "moonshot"
    cassettes = CASSETTES / "moonshot"
    examples = counts.examples(10)


class TestLmstudio(ProviderContract):
    provider = "lmstudio"
    cassettes = CASSETTES / "lmstudio"
    examples = counts.examples(10)


class TestVllm(ProviderContract):
    provider = "vllm"
    cassettes = CASSETTES / "vllm"
    examples = counts.examples(10)


class TestAzure(ProviderContract):
    provider = "azure"
    cassettes = CASSETTES / "azure"
    examples = counts.examples(20)


class TestVertex(ProviderContract):
    provider = "vertex"
    cassettes = CASSETTES / "vertex"
    examples = counts.examples(20)
