"""Answers of every provider, written in Responses, Gemini's APIs and Ollama's chat: as in `test_answers`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua.errors import RateLimitError, ServerError
from interlingua.plugins import EMPTY, WireRequest
from interlingua.types import (
    ErrorEvent,
    Message,
    OpaqueBlock,
    Origin,
    RedactedThinkingBlock,
    Role,
    StopReason,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    read_tool_input,
)
from interlingua_contract.scenes import assistant_turn
from interlingua_contract.served import whole_answers
from interlingua_contract.strategies import conversations
from interlingua_serving import ServeContext, answer_events, find_serving_plugin
from tests.oracle import google_sdk, interactions_sdk, openai_sdk
from tests.serving import lint_interactions, lint_others
from tests.serving.answers import context, recorded
from tests.serving.compare import REGISTRY
from tests.support.counts import FULL, chosen, examples

ORIGINS = (Origin("elsewhere", "chat", "m-1"), Origin("faraway", "messages", "m-2"))
MEDIA = {"image", "audio", "video", "document"}


@attrs.frozen
class Api:
    """A served API: its provider, its SDK, our linters, and how callers send an answer back."""

    key: str
    api: str
    whole: Callable[[bytes], dict[str, Any]]
    streamed: Callable[..., dict[str, Any]]
    facts: Callable[[dict[str, Any]], Any]
    lint_whole: Callable[..., list[str]]
    lint: Callable[..., list[str]]
    sent_back: Callable[[dict[str, Any]], dict[str, Any]]
    path: str = "/"


def _response_facts(response: dict[str, Any]) -> Any:
    items = response["output"]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    thoughts = [part for item in items if item["type"] == "reasoning" for part in item.get("summary") or ()]
    calls = [(name, read_tool_input(text)[0]) for name, text in openai_sdk.read_response(response).calls]
    said = "".join(part.get("text", part.get("refusal")) or "" for part in parts)
    return said, "".join(part["text"] for part in thoughts), calls


def _generate_facts(answer: dict[str, Any]) -> Any:
    parts = answer["candidates"][0].get("content", {}).get("parts", ())
    texts = [
        "".join(part.get("text", "") for part in parts if bool(part.get("thought")) is kind) for kind in (False, True)
    ]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return *texts, [(call["name"], call["args"]) for call in calls]


def _interaction_facts(interaction: dict[str, Any]) -> Any:
    steps = interaction["steps"]
    contents = [item for step in steps if step["type"] == "model_output" for item in step.get("content") or ()]
    thoughts = [[item["text"] for item in step.get("summary") or ()] for step in steps if step["type"] == "thought"]
    calls = [(step["name"], step["arguments"]) for step in steps if step["type"] == "function_call"]
    said = "".join(item["text"] for item in contents if item["type"] == "text")
    return said, "".join("\n\n".join(summaries) for summaries in thoughts), calls


def _ollama_facts(answer: dict[str, Any]) -> Any:
    message = answer["message"]
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    said = message.get("content") or "", message.get("thinking") or ""
    return *said, [(call["name"], call["arguments"]) for call in calls]


def _streamed_response(body: bytes, size: int = 0) -> dict[str, Any]:
    if size == 1 and b"event: response.completed" in body:  # what an application calls: once in a while, it takes long
        with (
            openai_sdk.client(body, headers={"content-type": "text/event-stream"}) as sdk,
            sdk.responses.stream(**openai_sdk.RESPONSES) as stream,
        ):
            final: dict[str, Any] = stream.get_final_response().to_dict(mode="json", warnings=False)
            return final
    return openai_sdk.streamed_response(body)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


RESPONSES = Api(
    "openai", "responses", openai_sdk.whole_response, _streamed_response, _response_facts,
    lint_others.lint_responses_body, lint_others.lint_responses_stream,
    lambda response: {"model": "asked-for", "input": [_user("q"), *response["output"]]},
)  # fmt: skip
GENERATE = Api(
    "google", "generate", google_sdk.whole_generate, google_sdk.streamed_generate, _generate_facts,
    lint_others.lint_generate_body, lint_others.lint_generate_stream,
    lambda answer: {"contents": [{"role": "user", "parts": [{"text": "q"}]}, answer["candidates"][0].get("content")]},
    "/v1beta/models/asked-for:generateContent",
)  # fmt: skip
INTERACTIONS = Api(
    "google", "interactions", interactions_sdk.whole, interactions_sdk.streamed, _interaction_facts,
    lint_interactions.lint_body, lint_interactions.lint_stream,
    lambda answer: {"model": "asked-for", "input": [
        {"type": "user_input", "content": [{"type": "text", "text": "q"}]}, *answer["steps"]]},
)  # fmt: skip
OLLAMA = Api(
    "ollama", "chat-native", google_sdk.whole_ollama, google_sdk.streamed_ollama, _ollama_facts,
    lint_others.lint_ollama_body, lint_others.lint_ollama_stream,
    lambda answer: {"model": "asked-for", "messages": [_user("q"), answer["message"]]},
)  # fmt: skip
APIS = pytest.mark.parametrize("api", [RESPONSES, GENERATE, INTERACTIONS, OLLAMA], ids=lambda api: api.api)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def _same(message: Message, found: Any) -> None:
    calls = [(call.name, call.input) for call in message.tool_calls]
    wanted = message.text, "".join([block.text for block in message.thinking_blocks]), calls
    if any(call.parse_error for call in message.tool_calls):
        wanted, found = wanted[:2], found[:2]  # type: ignore[assignment]
    assert found == wanted


def _state(message: Message) -> list[Any]:
    return [
        (block.type, getattr(block, "signature", None) or None, getattr(block, "provider_id", None),
         getattr(block, "data", None))
        for block in message.content
        if block.type not in MEDIA and (getattr(block, "text", None) != "" or getattr(block, "signature", None))
    ]  # fmt: skip


def _read_answers(api: Api, request: dict[str, Any], asked: ServeContext) -> list[Message]:
    """Return the answers that an API reads in a caller's request."""
    wire = WireRequest(path=api.path, body=json.dumps(request).encode(), api=api.api)
    read = find_serving_plugin(REGISTRY, api.key).from_wire_request(wire, asked)
    return [message for message in read.messages if message.role is Role.ASSISTANT]


def _read_back(api: Api, request: dict[str, Any], asked: ServeContext) -> Message:
    return _read_answers(api, request, asked)[0]


def _check_state(message: Message, back: Message, origin: Origin) -> None:
    """Compare an answer that a caller sent back with the answer of its origin."""
    replay = (message.metadata.provider_raw or EMPTY).get("replay")
    signed = [
        block
        for block in message.content
        if getattr(block, "signature", None) or (block.type == "thinking" and block.text)  # type: ignore[union-attr]
    ]
    if not signed and not replay:
        return
    assert back.metadata.origin == origin
    assert ((back.metadata.provider_raw or EMPTY).get("replay") or None) == (replay or None)
    if not MEDIA & {block.type for block in message.content}:
        assert _state(back) == _state(message)


def _check(api: Api, message: Message, origin: Origin, reads: list[list[StreamEvent]], size: int) -> None:
    asked = context(api.key, api.api, origin)
    plugin = find_serving_plugin(REGISTRY, api.key)
    body = plugin.to_wire_response(message, asked).body
    empty = not any(getattr(block, "text", "x") for block in message.content)
    usage = message.metadata.usage
    counted = usage is not None and bool(usage.input_tokens or usage.output_tokens)
    if not empty:
        assert api.lint_whole(body, usage=counted) == []
    read = api.whole(body)
    _same(message, api.facts(read))
    events = [event for group in reads for event in group]
    bodies = []
    for grouped in (reads, [[event] for event in events], [events]):
        writer = plugin.stream_to_wire(asked)
        stream = b"".join([writer.feed(group) for group in grouped]) + writer.end()
        if not empty:
            assert api.lint(stream, usage=counted) == []
        streamed = api.streamed(stream, size and max(size, len(stream) // 500))
        _same(message, api.facts(streamed))
        bodies.append(stream)
    if api is OLLAMA or asked.is_own or empty:
        return
    for answer in (read, *[api.streamed(stream) for stream in bodies]):
        _check_state(message, _read_back(api, api.sent_back(answer), asked), origin)
    for at in {0, len(events) // 2, len(events) - 1}:  # broken off, silently and with an error
        for last in ([], [ErrorEvent(error=ServerError("it failed"))]):
            writer = plugin.stream_to_wire(asked)
            assert api.lint(writer.feed(events[:at]) + writer.feed(last) + writer.end(), failed=True) == []


@APIS
def test_recorded_answers_are_read_by_the_sdk(api: Api) -> None:
    answers = [answer for answer in recorded() if answer.message.metadata.stop_reason is not StopReason.ERROR]
    assert len(answers) > 300
    for at, answer in enumerate(answers):
        if chosen(f"{api.key} {answer.name}", 8):
            _check(api, answer.message, answer.origin, [list(read) for read in answer.reads], (0, 1, 7)[at % 3])


@APIS
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(history=conversations(ORIGINS, turns=2), size=st.sampled_from((0, 1, 3, 64)))
def test_drawn_answers_are_read_by_the_sdk(api: Api, history: list[Message], size: int) -> None:
    for message in whole_answers(history):
        origin = message.metadata.origin
        assert origin is not None
        _check(api, message, origin, [list(answer_events(message))], size)


@APIS
def test_hidden_blocks_come_back_in_their_order(api: Api) -> None:
    origin = ORIGINS[0]
    blocks = (
        ThinkingBlock(text="Shown.", signature="s1"),
        RedactedThinkingBlock(data="hidden"),
        OpaqueBlock(provider=origin.provider, kind="search", data={"type": "search"}),
        TextBlock(text="Said."),
    )
    for order in permutations(blocks):
        made = assistant_turn([*order], origin)
        _check(api, made, origin, [list(answer_events(made))], 0)


@pytest.mark.parametrize("stream", [False, True])
def test_chats_of_googles_sdk_send_all_back(stream: bool) -> None:
    checked = 0
    for answer in (one for one in recorded() if chosen(one.name, 4)):
        message, origin = answer.message, answer.origin
        spoken = any(block.type in ("text", "tool_use") and getattr(block, "text", "x") for block in message.content)
        if message.metadata.stop_reason is StopReason.ERROR or not spoken or origin.provider in ("google", "vertex"):
            continue
        asked = context("google", "generate", origin)
        plugin = find_serving_plugin(REGISTRY, "google")
        writer = plugin.stream_to_wire(asked)
        body = (
            writer.feed(answer_events(message)) + writer.end()
            if stream
            else plugin.to_wire_response(message, asked).body
        )
        back, *others = _read_answers(GENERATE, google_sdk.chat_again(body, stream=stream), asked)
        if stream and any(block.type in ("image", "audio") for block in message.content):
            said = [block for one in (back, *others) for block in one.content]  # the SDK keeps each chunk as an answer
            assert "".join(block.text for block in said if block.type == "text") == message.text
            media = [block for block in message.content if block.type in ("image", "audio")]
            assert [block for block in said if block.type in ("image", "audio")] == media
        else:
            assert (back.text, others) == (message.text, [])
        _check_state(message, back, origin)
        checked += 1

    assert checked > (200 if FULL else 40)


@APIS
def test_a_failure_is_the_sdks_error(api: Api) -> None:
    response = find_serving_plugin(REGISTRY, api.key).to_wire_error(
        RateLimitError("slow down", retry_after=3), context(api.key, api.api, None)
    )

    assert (response.status, response.headers["retry-after"]) == (429, "3")
    with pytest.raises(Exception, match="slow down"):
        _ask(api, response.body, response.status)


def _ask(api: Api, body: bytes, status: int) -> None:
    wire = google_sdk.Wire(body, status=status)
    if api is RESPONSES:
        with openai_sdk.client(body, status=status) as sdk:
            sdk.responses.create(**openai_sdk.RESPONSES)
    elif api is INTERACTIONS:
        interactions_sdk.client(interactions_sdk.Wire(body, status)).interactions.create(model="m", input="q")
    elif api is GENERATE:
        google_sdk.gemini(wire).models.generate_content(model="m", contents="q")
    else:
        google_sdk.ollama_client(wire).chat("m", [])
