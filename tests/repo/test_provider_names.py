"""Core, serving and the gateway name no provider: a third party's plugin must be able to do all that ours can."""

from __future__ import annotations

import re

import pytest

from tests.support import tree

# Distinctive enough to be looked for inside longer words.
ANYWHERE = (
    "anthropic|openai|chatgpt|claude|gemini|deepmind|ollama|mistral|groq|deepseek|openrouter|llama|cohere|bedrock|vllm"
    "|lmstudio|fireworks|cerebras|moonshot|openclaw|attocode|perplexity|huggingface"
)
# Only as words of their own, or as parts of a name_like_this.
AS_WORDS = "gpt|google|xai|grok|glm|zai|kimi|qwen|vertex|azure|nvidia|sambanova"
NAMES = re.compile(rf"{ANYWHERE}|(?<![a-z])(?:{AS_WORDS})(?![a-z])", re.IGNORECASE)


@pytest.mark.parametrize("folder", ["core", "plugins/serving", "plugins/gateway"])
def test_no_provider_is_named(folder: str) -> None:
    source = tree.ROOT / folder / "src"
    found = [
        f"{path.relative_to(tree.ROOT)}:{number}: {match[0]}"
        for path in tree.tracked()
        if path.is_relative_to(source)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := NAMES.search(line))
    ]

    assert not found, "use a capability, a setting or a plugin's data, not a provider's name:\n" + "\n".join(found)


def test_the_pattern_sees_what_it_should() -> None:
    assert NAMES.search('if provider == "openai_chat"')
    assert NAMES.search("see GPT-5")
    assert NAMES.search("zai_key")
    assert not NAMES.search("vertexes, a glmish word, maxai")
