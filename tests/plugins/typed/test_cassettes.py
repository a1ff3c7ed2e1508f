"""Typed answers of every service over its authored cassette: chosen mode, a correction, a stream, the other modes."""

from __future__ import annotations

import json
import re
import tomllib
from functools import partial
from typing import Any

import anthropic.types
import cohere
import ollama
import openai.types.chat
import openai.types.responses
import pytest
from google.genai import types as google_types
from pydantic import BaseModel

from interlingua.plugins import WireRequest
from tests.oracle.test_request_bodies import REGISTRY, sdk_errors
from tests.plugins.typed.playing import CAST, GOOD, OSLO, Playback, Step, client_of, play, steps
from tests.plugins.typed.test_modes import MODES
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.support.tree import ROOT

# where an SDK's types are behind its service, with the reasons
_KNOWN = [
    *(one["error"] for one in tomllib.loads((ROOT / "tests/oracle/request_bodies.toml").read_text())["difference"]),
    r".*unknown to Property",
    r".*\.reasoning_content: unknown to ChatCompletionAssistantMessageParam",  # chat-completions/WIRE.md, DeepSeek
]
_ANSWERS: dict[str, type[BaseModel]] = {
    "messages": anthropic.types.Message,
    "chat": openai.types.chat.ChatCompletion,
    "responses": openai.types.responses.Response,
    "generate": google_types.GenerateContentResponse,
    "chat-v2": cohere.V2ChatResponse,
    "chat-native": ollama.ChatResponse,
}


def _play(cassette: str) -> tuple[dict[str, tuple[Step, Any, list[Any]]], Playback]:
    played = Playback(load_exchanges(f"{cassette}.yaml"))
    _, api = CAST[cassette]
    with client_of(cassette, played) as client:
        found = {step.name: (step, *play(client, api, step)) for step in steps(client, api)}
    return found, played


@pytest.mark.parametrize("cassette", CAST)
def test_every_mode_ends_in_the_value(cassette: str) -> None:
    found, played = _play(cassette)

    assert played.done
    assert not played.wrong
    for name, (_, answer, parts) in found.items():
        assert answer.value == OSLO, name
        assert len(answer.attempts) == (2 if name in ("chosen", "tool", "prompt") else 1)
        assert answer.usage.output_tokens == 12 * len(answer.attempts)
        if name.partition(" ")[0] in ("tool", "prompt"):
            assert answer.mode == name.partition(" ")[0]
        if name.endswith("stream"):
            assert parts[-1].value == json.loads(GOOD)
            assert parts[-1].closed == {"", "name", "people"}
            assert all(part.value.items() <= {"name": "Oslo", "people": 700_000}.items() or "name" not in part.closed
                       for part in parts)  # fmt: skip
    # these take no schema in a stream
    schema_alone = ("groq/typed", "groq-responses/typed", "cerebras/typed")
    assert found["chosen"][1].mode == found["stream"][1].mode or cassette in schema_alone


def test_every_provider_key_has_every_mode_that_it_can() -> None:
    """Native where a model takes schemas, a tool where it takes tools, words everywhere."""
    found: dict[str, set[str]] = {}
    for cassette in CAST:
        modes = {answer.mode for _, answer, _ in _play(cassette)[0].values()}
        found.setdefault(cassette.partition("/")[0], set()).update(modes)
    native = {model.partition(":")[0] for model, modes in MODES.items() if "native" in modes}
    assert found == {
        key.key: {"tool", "prompt", *(["native"] if key.key in native else [])} for key in REGISTRY.providers()
    }


@pytest.mark.parametrize("cassette", CAST)
def test_the_second_request_says_what_was_wrong_with_the_first_answer(cassette: str) -> None:
    first, second, *_ = load_exchanges(f"{cassette}.yaml")

    assert b"people: has to be of type integer, not string" in second.request_body
    assert len(second.request_body) < len(first.request_body) + 700
    same = {name for name in first.request if first.request[name] == second.request[name]}
    assert first.request.keys() - same <= {"messages", "contents", "input"}


@pytest.mark.parametrize("cassette", CAST)
def test_bodies_are_what_the_official_sdk_has_types_for(cassette: str) -> None:
    key, (_, api) = cassette.partition("/")[0], CAST[cassette]
    for exchange in load_exchanges(f"{cassette}.yaml"):
        request = partial(WireRequest, path="/", headers=dict(exchange.request_headers), api=api)
        errors = sdk_errors(key, api, request(body=exchange.request_body))
        assert not [one for one in errors if not any(re.fullmatch(known, f"type: {one}") for known in _KNOWN)]
        if api in _ANSWERS and not exchange.streamed:
            _ANSWERS[api].model_validate(_answer(exchange))


def _answer(exchange: RecordedExchange) -> Any:
    return json.loads(exchange.body)
