"""Every answer of every provider, written in a served API: its official SDK reads it, our linter finds nothing.

Recorded answers (all cassettes) and drawn ones; whole and streamed, their events by read, one by one and
all at once; then sent back as the SDK returns them, and read with what only the origin can use.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from interlingua.errors import ServerError
from interlingua.plugins import EMPTY, RequestContext, WireRequest
from interlingua.types import (
    ErrorEvent,
    Message,
    Origin,
    StopReason,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    assistant,
    read_tool_input,
)
from interlingua_contract.served import whole_answers
from interlingua_contract.strategies import conversations
from interlingua_serving import ServeContext, answer_events, find_serving_plugin
from tests.oracle import anthropic_sdk, openai_sdk
from tests.serving.answers import Answer, context, recorded
from tests.serving.compare import REGISTRY
from tests.serving.lint import lint_chat, lint_messages
from tests.support.counts import chosen, examples

ORIGINS = (Origin("elsewhere", "chat", "m-1"), Origin("faraway", "messages", "m-2"))


@attrs.frozen
class Api:
    """A served API: its provider, its SDK, our linter, and how callers send an answer back."""

    key: str
    api: str
    whole: Callable[[bytes], dict[str, Any]]
    streamed: Callable[[bytes], dict[str, Any]]
    facts: Callable[[dict[str, Any]], Any]
    lint: Callable[..., list[str]]
    sent_back: Callable[[dict[str, Any]], dict[str, Any]]

    def writer(self, asked: ServeContext) -> Any:
        """Return a writer."""
        return find_serving_plugin(REGISTRY, self.key).stream_to_wire(asked)


def _message_facts(body: dict[str, Any]) -> Any:
    def join(kind: str, name: str) -> str:
        return "".join(block[name] for block in body["content"] if block["type"] == kind)

    calls = [(block["name"], block["input"]) for block in body["content"] if block["type"] == "tool_use"]
    return join("text", "text"), join("thinking", "thinking"), calls


def _chat_facts(body: dict[str, Any]) -> Any:
    message = body["choices"][0]["message"]
    functions = [call["function"] for call in message.get("tool_calls") or () if call.get("function")]
    calls = [(function["name"], read_tool_input(function["arguments"])[0]) for function in functions]
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    return (message.get("content") or "") + (message.get("refusal") or ""), thought, calls


MESSAGES = Api(
    "anthropic", "messages", anthropic_sdk.whole, anthropic_sdk.streamed, _message_facts, lint_messages,
    lambda body: {"max_tokens": 9, "messages": [{"role": "user", "content": "q"},
                                                {"role": "assistant", "content": body["content"]}]},
)  # fmt: skip
CHAT = Api(
    "openai", "chat", openai_sdk.whole_chat, openai_sdk.streamed_chat, _chat_facts, lint_chat,
    lambda body: {"messages": [{"role": "user", "content": "q"}, body["choices"][0]["message"]]},
)  # fmt: skip
ROUTER = attrs.evolve(CHAT, key="openrouter")
APIS = (MESSAGES, CHAT, ROUTER)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def _facts(message: Message) -> Any:
    calls = [(call.name, call.input) for call in message.tool_calls]
    return message.text, "".join([block.text for block in message.thinking_blocks]), calls


def _same(message: Message, found: Any) -> None:
    wanted = _facts(message)
    if any(call.parse_error for call in message.tool_calls):
        wanted, found = wanted[:2], found[:2]
    assert found == wanted


def _state(message: Message) -> list[Any]:
    """Return what only the origin can use of each block."""
    return [
        (block.type, getattr(block, "signature", None) or None, getattr(block, "provider_id", None),
         getattr(block, "data", None))
        for block in message.content
        if block.type not in ("image", "audio") and (getattr(block, "text", "x") or getattr(block, "signature", None))
    ]  # fmt: skip


def _read_back(api: Api, body: dict[str, Any], asked: ServeContext) -> Message:
    request = {"model": "asked-for", **api.sent_back(body)}
    wire = WireRequest(path="/", body=json.dumps(request).encode(), api=api.api)
    return find_serving_plugin(REGISTRY, api.key).from_wire_request(wire, asked).messages[-1]


def _check_whole(api: Api, message: Message, origin: Origin) -> None:
    asked = context(api.key, api.api, origin)
    body = find_serving_plugin(REGISTRY, api.key).to_wire_response(message, asked).body
    read = api.whole(body)
    _same(message, api.facts(read))
    assert read["model"] == "asked-for"
    back = _read_back(api, read, asked)
    if not asked.is_own and _states_all(message):
        assert _state(back) == _state(message)
        assert back.metadata.origin == origin
        assert _replay(back) == _replay(message)


def _states_all(message: Message) -> bool:
    """Return whether all state can ride: there is some, and all of it is before the last text or call."""
    kinds = [block.type for block in message.content]
    held = any(getattr(block, "signature", None) for block in message.content) or "thinking" in kinds
    return held and kinds[-1] in ("text", "tool_use") and not {"image", "audio"} & set(kinds)


def _replay(message: Message) -> Any:
    return (message.metadata.provider_raw or EMPTY).get("replay") or {}


def _check_stream(api: Api, message: Message, origin: Origin, reads: list[list[StreamEvent]]) -> None:
    asked = context(api.key, api.api, origin)
    events = [event for read in reads for event in read]
    bodies = []
    for grouped in (reads, [[event] for event in events], [events]):
        writer = api.writer(asked)
        body = b"".join([writer.feed(read) for read in grouped]) + writer.end()
        assert api.lint(body) == []
        bodies.append(api.streamed(body))
    assert bodies[0] == bodies[1] == bodies[2]
    _same(message, api.facts(bodies[0]))
    _read_back(api, bodies[0], asked)
    for at in {0, len(events) // 2, len(events) - 1}:  # broken off, silently and with an error
        for last in ([], [ErrorEvent(error=ServerError("it failed"))]):
            writer = api.writer(asked)
            body = writer.feed(events[:at]) + writer.feed(last) + writer.end()
            assert api.lint(body, failed=True) == []


@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.api}-{api.key}")
def test_recorded_answers_are_read_by_the_sdk(api: Api) -> None:
    answers: tuple[Answer, ...] = recorded()
    for answer in (one for one in answers if chosen(f"{api.key} {one.name}", 6)):
        if answer.message.metadata.stop_reason is StopReason.ERROR:
            continue
        _check_whole(api, answer.message, answer.origin)
        _check_stream(api, answer.message, answer.origin, [list(read) for read in answer.reads])

    assert len(answers) > 300


@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.api}-{api.key}")
@settings(
    max_examples=examples(400, 25), deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck)
)
@given(history=conversations(ORIGINS, turns=2))
def test_drawn_answers_are_read_by_the_sdk(api: Api, history: list[Message]) -> None:
    for message in whole_answers(history):
        origin = message.metadata.origin
        assert origin is not None
        _check_whole(api, message, origin)
        _check_stream(api, message, origin, [list(answer_events(message))])


@pytest.mark.parametrize("signed", [0, 1, 2])
@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.api}-{api.key}")
def test_a_signature_comes_back_to_its_own_of_equal_texts(api: Api, signed: int) -> None:
    texts = [TextBlock(text="Same.", signature="s" if at == signed else None) for at in range(3)]
    origin = Origin("elsewhere", "chat", "m-1")
    made = RequestContext(origin=origin, message_id=assistant("").id)
    message = made.message([ThinkingBlock(text="Hm."), *texts], stop_reason=StopReason.END_TURN)

    _check_whole(api, message, origin)
    _check_stream(api, message, origin, [list(answer_events(message))])


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.api}-{api.key}")
def test_the_sdk_reads_the_same_however_the_bytes_are_cut(api: Api, size: int) -> None:
    for answer in recorded()[:: 24 if size > 1 else 48]:
        writer = api.writer(context(api.key, api.api, answer.origin))
        body = b"".join([writer.feed(read) for read in answer.reads]) + writer.end()
        pieces: Any = (body[at : at + size] for at in range(0, len(body), size))

        assert api.streamed(pieces) == api.streamed(body)


@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.api}-{api.key}")
def test_a_failure_is_the_sdks_error(api: Api) -> None:
    asked = context(api.key, api.api, None)
    response = find_serving_plugin(REGISTRY, api.key).to_wire_error(ServerError("it failed"), asked)
    sdk = anthropic_sdk.client if api is MESSAGES else openai_sdk.client
    with (
        sdk(response.body, status=response.status, headers=dict(response.headers)) as made,
        pytest.raises(Exception, match="it failed") as caught,
    ):
        made.models.list()

    assert type(caught.value).__name__ == "InternalServerError"


def test_without_counts_asked_for_there_are_none() -> None:
    asked = context("openai", "chat", ORIGINS[0], echo={"include_usage": False})
    message = Message(role="assistant", content="Hi.")
    writer = CHAT.writer(asked)
    body = writer.feed(answer_events(message)) + writer.end()

    assert lint_chat(body, usage=False) == []
