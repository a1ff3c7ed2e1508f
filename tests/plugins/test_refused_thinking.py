"""A refusal of earlier thinking that belongs to another conversation: asked once more without it, at every host of
Claude; and blocks that the service says it dropped are rows of the answer.

The words of the refusal and of the answer are recorded (WIRE.md, Thinking).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import attrs
import pytest

from interlingua import AsyncClient, Client, Registry
from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.codec import dumps_message, loads_message
from interlingua.errors import BadRequestError
from interlingua.plugins import HttpRequest, RequestContext, WireResponse
from interlingua.testing import AsyncMemoryTransport, MemoryReply, MemoryTransport
from interlingua.types import Message, Origin, Role, TextBlock, ThinkingBlock, ToolUseBlock, tool_result, user
from tests.support.adapter import READ, Adapter

WORDS = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    ' Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
REFUSED = {"type": "error", "error": {"type": "invalid_request_error", "message": WORDS}}
SAID = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Yes."}], "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Yes."}]}}, "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
}  # fmt: skip
CHAT = {"id": "c", "choices": [{"index": 0, "message": {"content": "Yes."}, "finish_reason": "stop"}]}
RAW = {
    "message": "Provider returned error",
    "code": 400,
    "metadata": {"provider_name": "Anthropic", "raw": json.dumps(REFUSED)},
}
# host -> API, model, refusal, answer; claude-opus-5 is not known to bind, so nothing is asked of the service in advance
HOSTS: dict[str, tuple[str, str, Any, Any]] = {
    "anthropic": ("messages", "claude-opus-5", REFUSED, SAID),
    "azure": ("messages", "claude-opus-5", REFUSED, SAID),
    "vertex": ("messages", "claude-opus-5", REFUSED, SAID),
    "bedrock": ("converse", "anthropic.claude-sonnet-4-5-20250929-v1:0",
                {"message": f"The model returned the following errors: {WORDS}"}, CONVERSE),
    "openrouter": ("chat", "anthropic/claude-sonnet-4.5", {"error": RAW}, CHAT),
}  # fmt: skip
OPTIONS = {"vertex": {"project": "p", "location": "global"}}
THOUGHT = ThinkingBlock(text="Hm.", signature="c2lnbmF0dXJl")
CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"})
pytestmark = pytest.mark.usefixtures("quiet")


def history(host: str) -> list[Message]:
    api, model, *_ = HOSTS[host]
    answers = [Adapter(host, api, model).answer(THOUGHT, *rest) for rest in ((TextBlock(text="a"),), (CALL,))]
    if host == "openrouter":  # what the service must get back unchanged is kept beside the blocks
        details = [
            {"type": "reasoning.text", "text": "Hm.", "signature": THOUGHT.signature, "format": "anthropic-claude-v1"}
        ]
        raw = {"origin": [host, api, model], "replay": {"reasoning_details": details}, "trace": {}}
        answers = [attrs.evolve(one, metadata=attrs.evolve(one.metadata, provider_raw=raw)) for one in answers]
    return [user("q"), answers[0], user("and?"), answers[1], tool_result(CALL, "t")]


def served(host: str, *, always: bool = False) -> tuple[MemoryTransport, dict[str, Any]]:
    """Return a service that refuses signed thinking, or everything, and the client's settings for it."""
    api, _, refusal, answer = HOSTS[host]

    def respond(request: HttpRequest) -> MemoryReply:
        refuse = always or b"c2lnbmF0dXJl" in request.body
        return MemoryReply(json.dumps(refusal if refuse else answer).encode(), status=400 if refuse else 200)

    settings = {"api_key": "k", "base_url": "https://host.example", "options": OPTIONS.get(host, {}), "api": api}
    return MemoryTransport(respond), {"settings": {host: settings}, "environ": {"AWS_REGION": "us-east-1"}}


@pytest.mark.parametrize("host", HOSTS)
def test_a_refusal_is_asked_once_more_without_the_thinking(host: str) -> None:
    transport, settings = served(host)
    with Client(f"{host}:{HOSTS[host][1]}", transport=transport, **settings) as client:
        answer = client.send(history(host), tools=[READ])

    assert answer.text == "Yes."
    assert [b"c2lnbmF0dXJl" in request.body for request in transport.requests] == [True, False]
    assert b"Hm." not in transport.requests[1].body
    rows = [loss for loss in answer.metadata.losses if loss.block_type == "thinking"]
    assert [(row.path, row.verdict) for row in rows] == [
        ("messages[1].content[0]", "dropped"), ("messages[3].content[0]", "dropped"),
    ]  # fmt: skip
    assert "the service refused it" in rows[0].reason


@pytest.mark.parametrize("host", HOSTS)
def test_the_async_client_does_the_same(host: str) -> None:
    transport, settings = served(host)

    waiting = AsyncMemoryTransport(transport._answer)

    async def ask() -> Message:
        async with AsyncClient(f"{host}:{HOSTS[host][1]}", transport=waiting, **settings) as client:
            return await client.send(history(host), tools=[READ])

    assert asyncio.run(ask()).text == "Yes."
    assert len(waiting.requests) == 2


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "stored"])
def test_later_turns_leave_out_what_was_refused_and_send_what_was_made_since(host: str, stored: bool) -> None:
    transport, settings = served(host)
    api, model, *_ = HOSTS[host]
    talk = history(host)
    with Client(f"{host}:{model}", transport=transport, **settings) as client:
        talk.append(client.send(talk, tools=[READ]))
        thought = Adapter(host, api, model).answer(ThinkingBlock(text="Since.", signature="bmV3"), TextBlock(text="b"))
        for said in (user("next"), thought, user("last")):
            talk.append(said)
            if stored:
                talk = [loads_message(dumps_message(message)) for message in talk]
            if said.role is Role.USER:
                client.send(talk, tools=[READ])

    assert len(transport.requests) == 4  # one refusal, and one request for each turn
    bodies = [request.body for request in transport.requests]
    assert [b"c2lnbmF0dXJl" in body for body in bodies] == [True, False, False, False]
    assert b"Since." in bodies[3] or host == "openrouter"  # which gets back what was kept beside the blocks


def test_another_service_is_not_affected_by_a_refusal() -> None:
    transport, settings = served("anthropic")
    with Client("anthropic:claude-opus-5", transport=transport, **settings) as client:
        answer = client.send(history("anthropic"), tools=[READ])
    own = Adapter("bedrock", "converse", HOSTS["bedrock"][1]).answer(THOUGHT, TextBlock(text="a"))

    transport, settings = served("bedrock")
    with Client(f"bedrock:{HOSTS['bedrock'][1]}", transport=transport, **settings) as client:
        client.send([user("q"), own, user("and?"), answer, user("now?")])
    assert b"c2lnbmF0dXJl" in transport.requests[0].body


@pytest.mark.parametrize("host", HOSTS)
def test_a_second_refusal_is_the_callers(host: str) -> None:
    transport, settings = served(host, always=True)
    with (
        Client(f"{host}:{HOSTS[host][1]}", transport=transport, **settings) as client,
        pytest.raises(BadRequestError),
    ):
        client.send(history(host), tools=[READ])
    assert len(transport.requests) == 2


def test_a_stream_is_begun_again() -> None:
    api, model, refusal, _ = HOSTS["anthropic"]
    events = [
        {"type": "message_start", "message": {**SAID, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Yes."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]

    def respond(request: HttpRequest) -> MemoryReply:
        if b"c2lnbmF0dXJl" in request.body:
            return MemoryReply(json.dumps(refusal).encode(), status=400)
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return MemoryReply(body.encode(), headers={"content-type": "text/event-stream"})

    transport = MemoryTransport(respond)
    with (
        Client(f"anthropic:{model}", api_key="k", environ={}, transport=transport) as client,
        client.stream(history("anthropic"), tools=[READ], api=api) as stream,
    ):
        message = stream.message

    assert message.text == "Yes."
    assert len(transport.requests) == 2


@pytest.mark.parametrize("host", ["anthropic", "vertex", "azure", "bedrock"])
def test_a_callers_own_setting_stands(host: str) -> None:
    own: dict[str, Any] = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}}
    options = {"additionalModelRequestFields": own} if host == "bedrock" else own
    transport, settings = served(host)
    with (
        Client(f"{host}:{HOSTS[host][1]}", transport=transport, **settings) as client,
        pytest.raises(BadRequestError, match="bound to a different conversation"),
    ):
        client.send(history(host), tools=[READ], provider_options=options)
    assert len(transport.requests) == 1


def test_other_refusals_are_not_asked_again() -> None:
    body = b'{"type":"error","error":{"type":"invalid_request_error","message":"temperature: range: 0..1"}}'
    transport = MemoryTransport(lambda _: MemoryReply(body, status=400))
    with (
        Client("anthropic:claude-opus-5", api_key="k", environ={}, transport=transport) as client,
        pytest.raises(BadRequestError),
    ):
        client.send(history("anthropic"), tools=[READ])
    assert len(transport.requests) == 1


DROPPED = [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}]
ROW = ("request.messages[1].content[0]", "thinking", "dropped", "the service dropped it: prefix_binding_mismatch")


def _context(host: str) -> RequestContext:
    return RequestContext(origin=Origin(host, "messages", "claude-opus-5-5"), message_id="01K000000000000000000000AA")


@pytest.mark.parametrize("host", ["anthropic", "vertex", "azure"])
def test_what_the_service_says_it_dropped_is_a_row_of_a_whole_answer(host: str) -> None:
    body = json.dumps({**SAID, "input_transformations": [*DROPPED, {"type": "thinking_mismatch_allowed"}]}).encode()
    message = Registry().provider(host).from_wire_response(WireResponse(body=body), _context(host))

    assert [(row.path, row.block_type, row.verdict, row.reason) for row in message.metadata.losses] == [ROW]


@pytest.mark.parametrize("host", ["anthropic", "vertex", "azure"])
@pytest.mark.parametrize(("last", "rows"), [({}, [ROW]), ({"input_transformations": []}, [])])
def test_what_the_service_says_it_dropped_is_a_row_of_a_stream(host: str, last: dict[str, Any], rows: Any) -> None:
    """Recorded: in the first event; the last one replaces it where it says anything."""
    begun = {**SAID, "content": [], "stop_reason": None, "input_transformations": DROPPED}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Yes."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **last},
        {"type": "message_stop"},
    ]
    decoder = StreamDecoder(Registry().provider(host), framer("sse"), _context(host))
    decoder.feed("".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode())
    decoder.end()

    found = decoder.message().metadata.losses
    assert [(row.path, row.block_type, row.verdict, row.reason) for row in found] == rows


def test_rows_of_the_request_and_of_the_answer_are_both_on_the_message() -> None:
    body = json.dumps({**SAID, "input_transformations": DROPPED}).encode()
    transport = MemoryTransport(lambda _: body)
    with Client("anthropic:claude-opus-5-5", api_key="k", environ={}, transport=transport) as client:
        message = client.send("q", seed=7)

    assert [row.path for row in message.metadata.losses] == ["options.seed", ROW[0]]
