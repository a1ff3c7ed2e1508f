"""The shipped providers under their own contract, each in the few lines that a third party writes.

`examples` in full is enough for three conversations with each model; in part a fixed share of the models is drawn for.
"""

from __future__ import annotations

from interlingua.plugins import Registry
from interlingua_contract.rules import ALL
from interlingua_contract.suite import ProviderContract
from tests.support import counts, tree

CASSETTES = tree.ROOT / "cassettes"
COMMON = {"C50", "C58", "C68", "C91", "C92", "C93"}  # of processes, environments, threads and pure hooks


class PresetContract(ProviderContract):
    """The contract of one more preset of a format: fewer drawn conversations, without the long rules about code.

    All presets are one package's code, which `TestCompatiblePreset` holds to every rule. In full every rule runs here.
    """

    __test__ = False
    examples = counts.examples(24, 4)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__test__ = True
        for rule in ALL:
            if rule.number in COMMON and not counts.FULL:
                setattr(cls, rule.test_name, None)  # pytest collects functions only


class TestAnthropic(ProviderContract):
    provider = "anthropic"
    cassettes = CASSETTES / "anthropic"
    examples = counts.examples(20)


class TestOpenai(ProviderContract):
    provider = "openai"
    cassettes = CASSETTES / "openai"
    examples = counts.examples(33, 12)


class TestCompatiblePreset(ProviderContract):
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
    examples = counts.examples(36, 12)


class TestOpenrouter(ProviderContract):
    provider = "openrouter"
    cassettes = CASSETTES / "openrouter"
    examples = counts.examples(30, 12)


class TestZai(ProviderContract):
    provider = "zai"
    cassettes = CASSETTES / "zai"
    examples = counts.examples(20)


class TestGroq(PresetContract):
    provider = "groq"
    cassettes = CASSETTES / "groq"


class TestDeepseek(PresetContract):
    provider = "deepseek"
    cassettes = CASSETTES / "deepseek"


class TestXai(PresetContract):
    provider = "xai"
    cassettes = CASSETTES / "xai"


class TestTogether(PresetContract):
    provider = "together"
    cassettes = CASSETTES / "together"


class TestFireworks(PresetContract):
    provider = "fireworks"
    cassettes = CASSETTES / "fireworks"


class TestCerebras(PresetContract):
    provider = "cerebras"
    cassettes = CASSETTES / "cerebras"


class TestMoonshot(PresetContract):
    provider = "moonshot"
    cassettes = CASSETTES / "moonshot"


class TestPerplexity(PresetContract):
    provider = "perplexity"
    cassettes = CASSETTES / "perplexity"


class TestNvidia(PresetContract):
    provider = "nvidia"
    cassettes = CASSETTES / "nvidia"


class TestHuggingface(PresetContract):
    provider = "huggingface"
    cassettes = CASSETTES / "huggingface"


class TestQwen(PresetContract):
    provider = "qwen"
    cassettes = CASSETTES / "qwen"


class TestMeta(PresetContract):
    provider = "meta"
    cassettes = CASSETTES / "meta"


class TestBaseten(PresetContract):
    provider = "baseten"
    cassettes = CASSETTES / "baseten"


class TestSambanova(PresetContract):
    provider = "sambanova"
    cassettes = CASSETTES / "sambanova"


class TestNebius(PresetContract):
    provider = "nebius"
    cassettes = CASSETTES / "nebius"


class TestNovita(PresetContract):
    provider = "novita"
    cassettes = CASSETTES / "novita"


class TestXaiResponses(ProviderContract):
    provider = "xai-responses"
    cassettes = CASSETTES / "xai-responses"


class TestOpenrouterResponses(ProviderContract):
    provider = "openrouter-responses"
    cassettes = CASSETTES / "openrouter-responses"


class TestMistralResponses(PresetContract):
    provider = "mistral-responses"
    cassettes = CASSETTES / "mistral-responses"


class TestGroqResponses(PresetContract):
    provider = "groq-responses"
    cassettes = CASSETTES / "groq-responses"


class TestDeepseekMessages(ProviderContract):
    provider = "deepseek-messages"
    cassettes = CASSETTES / "deepseek-messages"


class TestMinimaxMessages(ProviderContract):
    provider = "minimax-messages"
    cassettes = CASSETTES / "minimax-messages"


class TestLmstudio(PresetContract):
    provider = "lmstudio"
    cassettes = CASSETTES / "lmstudio"


class TestCompatible(PresetContract):
    provider = "compatible"
    cassettes = CASSETTES / "compatible"


class TestVllm(PresetContract):
    provider = "vllm"
    cassettes = CASSETTES / "vllm"


class TestAzure(ProviderContract):
    provider = "azure"
    cassettes = CASSETTES / "azure"
    examples = counts.examples(48, 12)


class TestVertex(ProviderContract):
    provider = "vertex"
    cassettes = CASSETTES / "vertex"
    examples = counts.examples(30, 12)


def test_every_installed_provider_is_held_to_the_contract() -> None:
    classes = [value for value in globals().values() if isinstance(value, type) and issubclass(value, ProviderContract)]

    assert set(Registry().found()) == {each.provider for each in classes if "provider" in vars(each)}
