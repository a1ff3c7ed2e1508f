"""Names of a model that services list and clouds spell lead to its catalogue entry, its limits and its price."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from interlingua import Usage, cost_of
from interlingua._plugins.registry import Registry

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
USAGE = Usage(input_tokens=1_000_000, output_tokens=0)
REGISTRY = Registry()

# provider, name, id of the catalogue's entry, USD per million tokens of input, where the name is documented
NAMES = [
    # https://github.com/mistralai/platform-docs-public: src/schema/models/models/*.ts, `apiNames`
    ("mistral", "mistral-large-latest", "mistral-large-2512", "0.5"),
    ("mistral", "mistral-large-2407", "mistral-large-2411", "2"),
    ("mistral", "mistral-medium-latest", "mistral-medium-latest", "1.5"),
    ("mistral", "mistral-medium-3", "mistral-medium-3-5", "1.5"),
    ("mistral", "ministral-3b-latest", "ministral-3b-2512", "0.1"),
    ("mistral", "devstral-medium-latest", "devstral-2512", "0.4"),
    ("mistral", "codestral-latest", "codestral-2508", "0.3"),
    ("mistral", "zai-glm-latest", "zai-glm-5-3", "1.4"),
    # genai-prices 0.2.3, `match` of the models of google; litellm 1.109.1 has the same prices
    ("google", "gemini-flash-latest", "gemini-3.8-flash", "0.75"),
    ("google", "models/gemini-flash-latest", "gemini-3.8-flash", "0.75"),
    ("google", "gemini-flash-lite-latest", "gemini-3.5-flash-lite", "0.3"),
    ("google", "gemini-pro-latest", "gemini-3.1-pro-preview", "4"),
    ("google", "gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash", "0.3"),
    ("google", "gemini-2.5-flash-preview-05-20", "gemini-2.5-flash-preview-05-20", "0.15"),
    ("google", "models/gemini-2.5-pro-preview-06-05", "gemini-2.5-pro", "2.5"),
    ("google", "gemini-3.1-flash-lite-preview", "gemini-3.1-flash-lite", "0.25"),
    ("vertex", "gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash", "0.3"),
    ("vertex", "claude-opus-4-5@20251101", "claude-opus-4-5", "5"),
    ("vertex", "claude-opus-4-6@default", "claude-opus-4-6", "5"),
    ("azure", "gpt-35-turbo", "gpt-3.5-turbo", "0.5"),
    ("azure", "claude-opus-4-5-20251101", "claude-opus-4-5", "5"),
    # litellm 1.109.1, `bedrock_converse`: a region costs a tenth more than the global endpoint
    ("bedrock", "anthropic.claude-opus-4-5-20251101-v1:0", "anthropic.claude-opus-4-5-v1:0", "5.5"),
    ("bedrock", "us.anthropic.claude-opus-4-5-20251101-v1:0", "anthropic.claude-opus-4-5-v1:0", "5.5"),
    ("bedrock", "global.anthropic.claude-opus-4-5-20251101-v1:0", "global.anthropic.claude-opus-4-5-v1:0", "5"),
    ("bedrock", "global.anthropic.claude-opus-4-6-v1", "global.anthropic.claude-opus-4-6-v1:0", "5"),
    ("bedrock", "us-gov.anthropic.claude-opus-5", "anthropic.claude-opus-5", "5.5"),
    (
        "bedrock",
        "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-4-5-20251101-v1:0",
        "anthropic.claude-opus-4-5-v1:0",
        "5.5",
    ),
    (
        "bedrock",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/global.anthropic.claude-opus-5",
        "global.anthropic.claude-opus-5",
        "5",
    ),
    # https://developers.openai.com/api/docs/pricing: a fine-tuned model costs more than its base
    ("openai", "gpt-4o-2024-08-06", "gpt-4o", "2.5"),
    ("openai", "ft:gpt-4o-2024-08-06:acme::AbC123", "ft:gpt-4o", "3.75"),
    ("openai", "ft:gpt-4o-mini-2024-07-18:acme:support:AbC123", "ft:gpt-4o-mini", "0.3"),
    ("openai", "ft:gpt-4.1-nano-2025-04-14:acme::AbC123", "ft:gpt-4.1-nano", "0.2"),
    ("openai", "ft:o4-mini-2025-04-16:acme::AbC123", "ft:o4-mini", "4"),
]


@pytest.mark.parametrize(("key", "name", "expected", "usd"), NAMES, ids=[f"{row[0]}:{row[1]}" for row in NAMES])
def test_a_name_leads_to_its_model(key: str, name: str, expected: str, usd: str) -> None:
    provider = REGISTRY.provider(key)
    found = provider.model(name)
    assert found is not None
    assert found.id == expected
    assert cost_of(USAGE, found, AT).cost_usd == Decimal(usd)
    assert not provider.capabilities(name).assumed


def test_a_fine_tuned_model_without_a_known_price_costs_nothing_of_its_base() -> None:
    found = REGISTRY.provider("openai").model("ft:gpt-4-0613:acme::AbC123")
    assert found is not None
    assert found.max_context_tokens == 8_192
    priced = cost_of(USAGE, found, AT)
    assert (priced.cost_usd, priced.cost_note) == (None, "no price known for ft:gpt-4")


@pytest.mark.parametrize("name", ["mistral:mistral-large-latest", "google:gemini-flash-latest"])
def test_a_name_that_the_service_takes_is_sent_as_given(name: str) -> None:
    assert str(REGISTRY.resolve(name)) == name


def test_a_price_has_its_source() -> None:
    tuned = REGISTRY.provider("openai").model("ft:gpt-4.1-2025-04-14:acme::AbC123")
    listed = REGISTRY.provider("openai").model("gpt-4.1")
    assert tuned is not None
    assert listed is not None
    assert cost_of(USAGE, tuned, AT).pricing_version == tuned.pricing_version
    assert str(tuned.pricing_version).startswith("developers.openai.com/api/docs/pricing")
    assert str(listed.pricing_version).startswith("genai-prices 0.2.3, 2026-")
