"""Every request that the adversarial conversations make: the official SDK's types and the wire linter accept it.

A body that differs is in `request_bodies.toml` with the reason, or is a fault. Of the wider conversations each target
gets one in 24, which are the same in each run; `INTERLINGUA_BODIES=all` sends all, more than 100,000 bodies.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import anthropic.types.beta.message_create_params as anthropic_beta_params
import anthropic.types.message_create_params as anthropic_params
import botocore.session
import cohere.v2.raw_client as cohere_client
import google.genai.types as google_types
import groq.types.chat.completion_create_params as groq_params
import mistralai.client.models as mistral_models
import ollama._types as ollama_types
import openai.types.chat.completion_create_params as chat_params
import openai.types.responses.response_create_params as responses_params
import openrouter.components as openrouter_types
import pytest
from botocore.validate import ParamValidator
from zai.api_resource.chat.completions import Completions as ZaiCompletions

from interlingua._http.client import Client
from interlingua._plugins.registry import Registry
from interlingua.errors import CallerError
from interlingua.plugins import ConnectionSettings, WireRequest
from interlingua.types import Role
from interlingua_cli.lint import lint_request
from tests.oracle import interactions_sdk
from tests.oracle.adversarial import Conversation, conversations
from tests.oracle.request_types import type_errors
from tests.oracle.wider import wider
from tests.support import counts
from tests.support.quiet import quiet_ledger

REGISTRY = Registry()
CONVERSATIONS = conversations()
WIDER = tuple(wider())
ALL = os.environ.get("INTERLINGUA_BODIES") == "all"
PART = 24
LISTED = tomllib.loads(Path(__file__).with_name("request_bodies.toml").read_text(encoding="utf-8"))["difference"]

# What is asked of each provider: models whose rules differ, by API; of the others, one of no name.
MODELS: dict[str, dict[str, tuple[str, ...]]] = {
    "anthropic": {
        "messages": ("claude-opus-5", "claude-sonnet-4-5", "claude-opus-4-1", "claude-haiku-4-5", "unlisted")
    },
    "openai": {
        "responses": ("gpt-6-sol", "gpt-5.2", "o3", "gpt-4.1", "gpt-5-pro"),
        "chat": ("gpt-5.2", "gpt-5-mini", "o3", "gpt-4.1", "gpt-3.5-turbo"),
    },
    "google": {
        "generate": ("gemini-3-pro-preview", "gemini-2.5-flash", "gemini-2.0-flash", "unlisted"),
        "interactions": ("gemini-3-pro-preview", "gemini-2.5-flash"),
    },
    "deepseek-messages": {"messages": ("deepseek-flash", "deepseek-v4-pro")},
    "minimax-messages": {"messages": ("MiniMax-M2.7",)},
    "xai-responses": {"responses": ("grok-4.5",)},
    "openrouter-responses": {"responses": ("openai/gpt-5.2", "anthropic/claude-opus-5.5")},
    "mistral-responses": {"responses": ("mistral-large-latest", "mistral-medium-3-5")},
    "groq-responses": {"responses": ("openai/gpt-oss-120b",)},
    "mistral": {"chat": ("mistral-large-latest", "magistral-medium-latest", "mistral-small-latest")},
    "ollama": {"chat-native": ("gpt-oss:20b", "qwen3:8b")},
    "cohere": {"chat-v2": ("command-a-03-2025", "command-a-plus-05-2026", "command-r-08-2024", "unlisted")},
    "openrouter": {
        "chat": ("anthropic/claude-sonnet-4.5", "openai/gpt-5.2", "google/gemini-2.5-flash", "deepseek/deepseek-v3.2")
    },
    "zai": {"chat": ("glm-5", "glm-4.6", "glm-4.5v")},
    "deepseek": {"chat": ("deepseek-chat", "deepseek-reasoner", "deepseek-v4-pro")},
    "xai": {"chat": ("grok-4", "grok-3-mini")},
    "groq": {"chat": ("openai/gpt-oss-120b", "llama-3.3-70b-versatile", "qwen/qwen3-32b")},
    "moonshot": {"chat": ("kimi-k2-thinking", "kimi-k2.6")},
    "cerebras": {"chat": ("gpt-oss-120b", "zai-glm-4.7")},
}

# Models that only the wider conversations are sent to.
WIDER_MODELS: dict[str, dict[str, tuple[str, ...]]] = {
    "azure": {
        "responses": ("gpt-5.2", "gpt-4.1"),
        "chat": ("gpt-5-mini", "gpt-4.1"),
        "messages": ("claude-sonnet-4-5", "claude-opus-5"),
    },
    "vertex": {
        "generate": ("gemini-3-pro-preview", "gemini-2.5-flash-lite"),
        "interactions": ("gemini-3-pro-preview",),
        "messages": ("claude-sonnet-4-5", "claude-opus-5"),
    },
    "bedrock": {
        "converse": (
            *("anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-opus-5", "amazon.nova-pro-v1:0"),
            *("anthropic.claude-3-haiku-20240307-v1:0", "us.amazon.nova-2-lite-v1:0", "deepseek.r1-v1:0"),
            *("meta.llama3-1-70b-instruct-v1:0", "openai.gpt-oss-120b-1:0"),
        )
    },
    "together": {"chat": ("Qwen/Qwen3.7-Plus",)},
    "moonshot": {"chat": ("kimi-k3",)},
    "fireworks": {"chat": ("accounts/fireworks/models/kimi-k2p6", "accounts/fireworks/models/gpt-oss-120b")},
}


def _targets() -> Iterator[tuple[str, str, str]]:
    """Return provider key, API and model, for every installed provider and each of its APIs."""
    for provider in REGISTRY.providers():
        named = MODELS.get(provider.key, {})
        for api in provider.connection(ConnectionSettings(environ={})).endpoints:
            for model in (*named.get(api, ("a-model",)), *WIDER_MODELS.get(provider.key, {}).get(api, ())):
                yield provider.key, api, model


def _anthropic(body: dict[str, Any], request: WireRequest) -> list[str]:
    params: Any = anthropic_beta_params if "anthropic-beta" in request.headers else anthropic_params
    streamed = "MessageCreateParamsStreaming" if body.get("stream") else "MessageCreateParamsNonStreaming"
    return type_errors(body, getattr(params, streamed))


_GOOGLE: dict[str, Any] = {
    "contents": list[google_types.Content],
    "systemInstruction": google_types.Content,
    "tools": list[google_types.Tool],
    "toolConfig": google_types.ToolConfig,
    "safetySettings": list[google_types.SafetySetting],
    "generationConfig": google_types.GenerationConfig,
    "cachedContent": str,
}


def _google(body: dict[str, Any], _request: WireRequest) -> list[str]:
    """The SDK has no type of the whole body; these are its fields (https://ai.google.dev/api/generate-content)."""
    found = [f".{name}: unknown" for name in body.keys() - _GOOGLE.keys()]
    for name in body.keys() & _GOOGLE.keys():
        found += type_errors(body[name], _GOOGLE[name], f".{name}")
    return found


def _interactions(body: dict[str, Any], _request: WireRequest) -> list[str]:
    """The SDK writes a request from its types, without the members that it does not know."""
    wire = interactions_sdk.Wire(b'{"id": "i", "status": "completed", "steps": []}')
    with suppress(interactions_sdk.FAILURE):
        interactions_sdk.client(wire).interactions.create(**{**body, "stream": False})
    ours, theirs = ({**each, "stream": None} for each in (body, wire.sent))  # a whole answer is the one made above
    return [f".{path}: not as the SDK writes it" for path in _differences(ours, theirs)]


def _differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Yield the places where two JSON values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            yield from _differences(ours.get(name), theirs.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(one, other, f"{path}[{at}]")
    elif ours != theirs:
        yield path


def _zai(body: dict[str, Any], _request: WireRequest) -> list[str]:
    """The SDK has types for the answer only: its function's arguments are what a body may hold."""
    given = inspect.signature(ZaiCompletions.create).parameters.keys()
    known = given - {"self", "extra_headers", "extra_body", "timeout"}
    shape = {name: body[name] for name in ("messages", "tools") if name in body}
    found = [f".{name}: unknown" for name in body.keys() - known]
    return found + type_errors({"model": "m", **shape}, chat_params.CompletionCreateParamsNonStreaming)


def _by_stream(params: Any, name: str) -> Callable[[dict[str, Any], WireRequest], list[str]]:
    whole, streamed = (getattr(params, f"{name}Params{kind}") for kind in ("NonStreaming", "Streaming"))
    return lambda body, _request: type_errors(body, streamed if body.get("stream") else whole)


def _as(wanted: Any) -> Callable[[dict[str, Any], WireRequest], list[str]]:
    return lambda body, _request: type_errors(body, wanted)


_COHERE = {
    name: parameter.annotation
    for name, parameter in inspect.signature(cohere_client.RawV2Client.chat, eval_str=True).parameters.items()
    if name not in ("self", "request_options")
} | {"stream": bool}


def _cohere(body: dict[str, Any], _request: WireRequest) -> list[str]:
    """The SDK has types of a body's fields: they are its function's arguments."""
    found = [f".{name}: unknown" for name in body.keys() - _COHERE.keys()]
    for name in body.keys() & _COHERE.keys():
        found += type_errors(body[name], _COHERE[name], f".{name}")
    return found


def _vertex_messages(body: dict[str, Any], request: WireRequest) -> list[str]:
    """Google Cloud's form of the Messages API: the model is in the path, and the version in the body."""
    return _anthropic({"model": "m", **{name: body[name] for name in body.keys() - {"anthropic_version"}}}, request)


_BEDROCK = botocore.session.Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def _bedrock(body: dict[str, Any], _request: WireRequest) -> list[str]:
    """The SDK's service model; it does not check unknown members of a union."""
    report = ParamValidator().validate({**_decoded(body), "modelId": "m"}, _BEDROCK)
    return report.generate_report().splitlines() if report.has_errors() else []


def _decoded(value: Any) -> Any:
    """Return a body with its base64 decoded, as botocore takes it."""
    if isinstance(value, dict):
        blobs = ("bytes", "redactedContent")
        return {name: base64.b64decode(item) if name in blobs else _decoded(item) for name, item in value.items()}
    return [_decoded(item) for item in value] if isinstance(value, list) else value


CHECKS: dict[str, Callable[[dict[str, Any], WireRequest], list[str]]] = {
    "anthropic": _anthropic,
    "azure messages": _anthropic,
    "azure responses": _by_stream(responses_params, "ResponseCreate"),
    "bedrock": _bedrock,
    "vertex generate": _google,
    "vertex interactions": _interactions,
    "vertex messages": _vertex_messages,
    "cohere": _cohere,
    "google generate": _google,
    "google interactions": _interactions,
    "deepseek-messages": _anthropic,
    "minimax-messages": _anthropic,
    "xai-responses": _by_stream(responses_params, "ResponseCreate"),
    "openrouter-responses": _as(openrouter_types.ResponsesRequest),
    "mistral-responses": _as(mistral_models.CreateResponseRequest),
    "groq-responses": _by_stream(responses_params, "ResponseCreate"),
    "zai": _zai,
    "mistral": _as(mistral_models.ChatCompletionRequest),
    "ollama": _as(ollama_types.ChatRequest),
    "openrouter": _as(openrouter_types.ChatRequest),
    "groq": _as(groq_params.CompletionCreateParams),
    "openai responses": _by_stream(responses_params, "ResponseCreate"),
    "chat": _by_stream(chat_params, "CompletionCreate"),  # what these services call compatible
}


def sdk_errors(key: str, api: str, request: WireRequest) -> list[str]:
    """Return what the official SDK's types say of a request's body."""
    check = CHECKS.get(key) or CHECKS.get(f"{key} {api}") or CHECKS["chat"]
    return check(json.loads(request.body), request)


class Refused(NamedTuple):
    """A conversation that was refused before anything was sent."""

    name: str
    why: str


def read_target(key: str, api: str, model: str) -> tuple[dict[str, list[str]], list[Refused]]:
    """Return what is wrong with a target's bodies, by conversation, and what was refused."""
    wrong: dict[str, list[str]] = {}
    refused: list[Refused] = []
    known: dict[tuple[bytes, str], list[str]] = {}  # many conversations differ in what this target never gets
    provider = REGISTRY.provider(key)
    with quiet_ledger(), Client(f"{key}:{model}", registry=REGISTRY, environ={}) as client:
        for one in _conversations(f"{key} {api} {model}"):
            try:
                request = client.build_request(list(one.messages), tools=one.tools, api=api, **one.options)
            except CallerError as error:
                refused.append(Refused(one.name, f"{type(error).__name__}: {error}"))
                continue
            sent = request.body, str(request.headers)
            errors = known.get(sent)
            if errors is None:
                errors = [f"type: {error}" for error in sdk_errors(key, api, request)]
                errors += [f"lint: {finding.rule}" for finding in lint_request(provider, request)]
                known[sent] = errors
            found = (*errors, *law_errors(one, json.loads(request.body)))
            for error in dict.fromkeys(re.sub(r"\[\d+\]", "[*]", error) for error in found):
                wrong.setdefault(error, []).append(one.name)
    return wrong, refused


def _is_wider(key: str, api: str, model: str) -> bool:
    return model in WIDER_MODELS.get(key, {}).get(api, ())


def _conversations(target: str) -> list[Conversation]:
    """Return the conversations that a target is held to: a part, which differs by target, or all."""
    key, api, model = target.split(" ", 2)
    held = [] if _is_wider(key, api, model) and not ALL else CONVERSATIONS
    chosen = [one for one in held if ALL or counts.chosen(f"{target} {one.name}", 6)]
    return [*chosen, *[one for one in WIDER if ALL or _digest(f"{target} {one.name}") % PART == 0]]


def _digest(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def law_errors(one: Conversation, body: dict[str, Any]) -> list[str]:
    """Return what no body may do whatever the service: ask nothing, or have the model go on where a caller spoke."""
    turns: list[dict[str, Any]] = body.get("messages") or body.get("contents") or body.get("input") or []
    if not turns:
        return ["law: nothing is asked"]
    last = turns[-1]
    by_model = last.get("role") in ("assistant", "model") or last.get("type") in ("function_call", "reasoning")
    asks = one.messages[-1].role is not Role.ASSISTANT
    return ["law: the model continues its own words"] if by_model and asks else []


@pytest.mark.parametrize(("key", "api", "model"), list(_targets()))
def test_the_sdk_types_and_the_linter_accept_each_body(key: str, api: str, model: str) -> None:
    wrong, refused = read_target(key, api, model)
    target = f"{key} {api} {model}"
    rows = [row for row in LISTED if any(fnmatchcase(target, pattern) for pattern in row["targets"])]

    unlisted = {
        error: names[:3] for error, names in wrong.items() if not any(re.fullmatch(row["error"], error) for row in rows)
    }
    stale = [row["error"] for row in rows if not any(re.fullmatch(row["error"], error) for error in wrong)]

    assert not unlisted
    assert not stale or not counts.FULL or _is_wider(key, api, model), "listed, but no body has it"
    held = {one.name for one in _conversations(target)} & {one.name for one in CONVERSATIONS}
    usual = [one for one in refused if one.name in held]
    assert len(usual) <= len(held) // 5, usual  # a target refuses what it cannot do; refusing all would be no answer


def test_the_conversations_are_many_and_different() -> None:
    assert len(CONVERSATIONS) >= 200
    assert len({one.name for one in (*CONVERSATIONS, *WIDER)}) == len(CONVERSATIONS) + len(WIDER)
    assert (len(CONVERSATIONS) + len(WIDER)) * len(list(_targets())) > 60_000


def test_the_checker_sees_what_is_wrong() -> None:
    """A body with a fault of each kind: an unknown key, a missing one, a wrong word, a wrong type, deep in a union."""
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x", "colour": "red"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "ultra"}}]},
            {"role": "tool", "content": "42"},
        ],
        "temperature": "hot",
    }
    assert type_errors(body, chat_params.CompletionCreateParamsNonStreaming) == [
        ".messages[0].content[0].colour: unknown to ChatCompletionContentPartTextParam",
        ".messages[1].content[0].image_url.detail: 'ultra' is none of auto, low, high, original",
        ".messages[2].tool_call_id: required by ChatCompletionToolMessageParam",
        ".temperature: 'hot' is no float",
    ]
