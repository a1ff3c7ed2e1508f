"""The rule files' closed lists against the official SDKs' request types: what a type allows, no rule refuses.

A list learnt from recorded traffic alone would refuse what nobody happened to record. Expected values: the literals and
field names of the SDKs.
"""

from __future__ import annotations

import inspect
import re
import tomllib
import typing
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import anthropic.types.beta as messages
import cohere
import cohere.v2.raw_client as cohere_client
import cohere.v2.types as cohere_types
import mistralai.client.models as mistral
import ollama
import pytest
from anthropic.types.beta import message_create_params as messages_request
from google.genai import types as google
from openai.types import chat, responses
from openai.types.chat import completion_create_params as chat_request
from openai.types.responses import response_create_params as responses_request
from openai.types.shared_params import Reasoning

from interlingua._plugins.registry import Registry

# headers of the service, which its SDK lists among the parameters
HEADERS = {"workspace_id", "user_profile_id", "betas"}
CALL = {"request_options"}  # of its function, not of the body


def hints(of: Any) -> dict[str, Any]:
    """Return the fields of a TypedDict or a pydantic model, by their wire names."""
    known = getattr(of, "model_fields", None)
    if known is not None:
        return {field.alias or name: field.annotation for name, field in known.items()}
    return typing.get_type_hints(of)


def words(hint: Any) -> set[Any]:
    """Return the literals in a type."""
    if typing.get_origin(hint) is typing.Literal:
        return set(typing.get_args(hint))
    return {word for argument in typing.get_args(hint) for word in words(argument)}


def kinds(union: Any, name: str = "type") -> set[Any]:
    """Return the words for this member in each object of a union."""
    if typing.get_origin(union) is not None:
        return {kind for member in typing.get_args(union) for kind in kinds(member, name)}
    return words(hints(union)[name]) if hasattr(union, "__required_keys__") and name in union.__annotations__ else set()


def kinds_of_models(union: Any, name: str = "type") -> set[Any]:
    """Return the words for this member in each pydantic model of a union."""
    return {word for member in typing.get_args(typing.get_args(union)[0]) for word in words(hints(member)[name])}


@cache
def rules(key: str) -> dict[str, dict[str, Any]]:
    """Return a provider's rules by id, without those whose id two of its APIs share."""
    texts = Registry().provider(key)._hook.wire_rules()
    found = [rule for text in texts for rule in tomllib.loads(text)["rule"]]
    once = {name for name, count in Counter(rule["id"] for rule in found).items() if count == 1}
    return {rule["id"]: rule for rule in found if rule["id"] in once}


CASES: list[tuple[str, str, Iterable[Any]]] = [
    ("openai", "openai-known-fields", hints(chat_request.CompletionCreateParamsBase)),
    ("openai", "openai-known-fields", ("stream",)),
    ("openai", "openai-effort", words(hints(chat_request.CompletionCreateParamsBase)["reasoning_effort"])),
    ("openai", "openai-verbosity", words(hints(chat_request.CompletionCreateParamsBase)["verbosity"])),
    ("openai", "openai-answer-format", kinds(hints(chat_request.CompletionCreateParamsBase)["response_format"])),
    ("openai", "openai-user-parts", kinds(chat.ChatCompletionContentPartParam)),
    ("openai", "openai-tool-types", kinds(chat.ChatCompletionToolUnionParam)),
    ("openai", "known-fields", hints(responses_request.ResponseCreateParamsBase)),
    ("openai", "include", words(responses.ResponseIncludable)),
    ("openai", "truncation", words(hints(responses_request.ResponseCreateParamsBase)["truncation"])),
    ("openai", "effort", words(hints(Reasoning)["effort"])),
    ("openai", "summary", words(hints(Reasoning)["summary"])),
    ("openai", "user-parts", kinds(responses.ResponseInputContentParam)),
    ("anthropic", "known-fields", set(hints(messages_request.MessageCreateParamsBase)) - HEADERS),
    ("anthropic", "service-tier", words(hints(messages_request.MessageCreateParamsBase)["service_tier"])),
    ("anthropic", "effort", words(hints(messages.BetaOutputConfigParam)["effort"])),
    ("anthropic", "thinking-type", kinds(messages.BetaThinkingConfigParam)),
    ("anthropic", "tool-choice", kinds(messages.BetaToolChoiceParam)),
    ("anthropic", "cache-ttl", words(hints(messages.BetaCacheControlEphemeralParam)["ttl"])),
    ("anthropic", "image-media-type", words(hints(messages.BetaBase64ImageSourceParam)["media_type"])),
    ("anthropic", "roles", kinds(messages.BetaMessageParam, "role")),
    ("mistral", "mistral-known-fields", hints(mistral.ChatCompletionRequest)),
    ("mistral", "mistral-answer-format", words(hints(mistral.ResponseFormat)["type"])),
    ("cohere", "known-fields", set(inspect.signature(cohere_client.RawV2Client.chat).parameters) - {"self", *CALL}),
    ("cohere", "tool-choice", words(cohere_types.V2ChatRequestToolChoice)),
    ("cohere", "safety-mode", words(cohere_types.V2ChatRequestSafetyMode)),
    ("cohere", "thinking", words(cohere.ThinkingType)),
    ("cohere", "roles", kinds_of_models(cohere.ChatMessageV2, "role")),
    ("cohere", "user-parts", kinds_of_models(cohere.Content)),
    ("cohere", "assistant-parts", kinds_of_models(cohere.AssistantMessageV2ContentOneItem)),
    ("cohere", "tool-parts", kinds_of_models(cohere.ToolContent)),
    ("cohere", "format", kinds_of_models(cohere.ResponseFormatV2)),
]  # fmt: skip


@pytest.mark.parametrize(("key", "rule", "allowed"), CASES, ids=[f"{key}-{rule}" for key, rule, _ in CASES])
def test_no_rule_refuses_what_the_type_allows(key: str, rule: str, allowed: Iterable[Any]) -> None:
    found = rules(key)[rule]
    listed = set(found.get("allows", found.get("one_of", ())))

    assert set(allowed) - {None}
    assert set(allowed) - {None} - listed == set()


def test_no_rule_refuses_a_block_the_types_have() -> None:
    pattern = rules("anthropic")["block-types"]["matches"]
    blocks = kinds(messages.BetaContentBlockParam)

    assert "mcp_tool_listing" in blocks
    assert [kind for kind in sorted(blocks) if re.fullmatch(pattern, kind) is None] == []


def test_no_rule_refuses_a_level_of_thinking_the_types_have() -> None:
    pattern = rules("google")["thinking-level"]["matches"]
    assert [level.value for level in google.ThinkingLevel if re.fullmatch(pattern, level.value) is None] == []


def test_no_rule_refuses_a_word_for_a_format_the_types_have() -> None:
    pattern = rules("ollama")["format-word"]["matches"]
    allowed = words(hints(ollama._types.ChatRequest)["format"])
    assert [word for word in sorted(set(allowed) - {None}) if re.fullmatch(pattern, word) is None] == []


def test_no_rule_refuses_a_mode_of_calling_the_types_have() -> None:
    pattern = rules("google")["mode"]["matches"]
    assert [mode.value for mode in google.FunctionCallingConfigMode if re.fullmatch(pattern, mode.value) is None] == []
