"""`cache="auto"`: markers where the prompt repeats, at every host of Claude's models, and bytes that do not change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from interlingua import CacheHint, Client, Message, TextBlock, ToolDefinition, ToolUseBlock, Usage, user
from interlingua.testing import ScriptedModel
from interlingua.types import CostParts, assistant, system, tool_result
from interlingua_agents import Agent
from interlingua_sessions import open_store
from interlingua_sessions.session import Session

CLAUDE = (
    "anthropic:claude-opus-5-5",
    "azure:claude-opus-4-6",
    "bedrock:anthropic.claude-opus-4-6-v1",
    "openrouter:anthropic/claude-opus-5.5",
    "vertex:claude-opus-5-5",
)
THEIR_OWN = ("openai:gpt-5.6", "google:gemini-3.8-flash", "openrouter:openai/gpt-5.6", "groq:openai/gpt-oss-120b")
ENVIRON = {
    "ANTHROPIC_API_KEY": "none", "OPENROUTER_API_KEY": "none", "OPENAI_API_KEY": "none", "GEMINI_API_KEY": "none",
    "GROQ_API_KEY": "none", "AZURE_OPENAI_API_KEY": "none", "AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com",
    "AWS_BEARER_TOKEN_BEDROCK": "none", "AWS_REGION": "us-east-1", "GOOGLE_CLOUD_PROJECT": "p",
    "GOOGLE_CLOUD_LOCATION": "global",
}  # fmt: skip
MARKER = re.compile(rb',"cache_control":\{"type":"ephemeral"\}|,\{"cachePoint":\{"type":"default"\}\}')
READ = ToolDefinition(
    name="read", description="Read a file.", side_effects="read",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
)  # fmt: skip
FIND = ToolDefinition(name="find", description="Find files.", side_effects="read", input_schema={"type": "object"})


def turns(count: int) -> Iterator[list[Message]]:
    """Yield the conversation of each request: questions, and every second answer calls two tools."""
    messages = [system("You know these files."), user("Begin.")]
    for number in range(count):
        yield list(messages)
        if number % 3 == 2:
            messages += [assistant(f"Answer {number}."), user(f"Question {number}.")]
            continue
        calls = [ToolUseBlock(id=f"tu_{number}_{at}", name="read", input={"path": f"{at}"}) for at in range(2)]
        messages.append(assistant([TextBlock(text="I look."), *calls]))
        messages += [tool_result(call, f"result {number}") for call in calls]


def member(body: bytes, name: str) -> str:
    """Return the bytes of a member of the body, without markers."""
    text = MARKER.sub(b"", body).decode()
    begin = text.index(f'"{name}":') + len(name) + 3
    return text[begin : json.JSONDecoder().raw_decode(text, begin)[1]]


@pytest.mark.parametrize("model", CLAUDE)
def test_at_most_four_markers_and_each_request_begins_with_the_bytes_of_the_last(model: str) -> None:
    before: bytes | None = None
    with Client(model, environ=ENVIRON, cache="auto") as client:
        for messages in turns(10):
            wire = client.build_request(messages, tools=[READ, FIND])
            assert not wire.losses
            assert len(MARKER.findall(wire.body)) == (3 if before is None else 4)
            if before is not None:
                assert member(wire.body, "messages").startswith(member(before, "messages")[:-1])
                others = json.loads(MARKER.sub(b"", before)).keys() - {"messages"}
                assert others
                assert all(member(wire.body, name) == member(before, name) for name in others)
                last = member(before, "messages")[-40:-3]  # the end of the last request still has its marker
                marked = [wire.body[: found.start()] for found in MARKER.finditer(wire.body)]
                ends = [MARKER.sub(b"", part).decode().rstrip("]}")[-20:] for part in marked]
                assert any(end in last for end in ends)
            before = wire.body
            plain = client.build_request(messages, tools=[READ, FIND], cache=None)
            assert plain.body == wire.body  # None takes the client's default
    with Client(model, environ=ENVIRON) as client:
        assert not MARKER.search(client.build_request(messages, tools=[READ, FIND]).body)


@pytest.mark.parametrize("model", THEIR_OWN)
def test_services_that_cache_by_themselves_get_no_marker_and_no_row(model: str) -> None:
    with Client(model, environ=ENVIRON) as client:
        for messages in turns(3):
            auto = client.build_request(messages, tools=[READ], cache="auto")
            assert auto.body == client.build_request(messages, tools=[READ]).body
            assert not auto.losses


def test_the_callers_own_hints_stand() -> None:
    hour = CacheHint(ttl="1h")
    messages = [system("Rules."), user([TextBlock(text="Long.", cache=hour)]), assistant("Yes."), user("And?")]
    with Client(CLAUDE[0], environ=ENVIRON, cache="auto") as client:
        body = client.build_request(messages, tools=[READ]).body
        assert body.count(b'"ttl":"1h"') == 1
        assert len(MARKER.findall(body)) == 1  # behind the caller's, at the end
        assert json.loads(body)["messages"][-1]["content"][0]["cache_control"] == {"type": "ephemeral"}
        four = [user([TextBlock(text=f"{at}", cache=hour) for at in range(4)]), assistant("Yes."), user("And?")]
        wire = client.build_request(four)
        assert not MARKER.search(wire.body)
        assert wire.body.count(b'"ttl":"1h"') == 4
        assert not wire.losses


def test_requests_of_agents_and_sessions_are_marked(tmp_path: Path) -> None:
    model = ScriptedModel(["Hello."] * 3, supports_prompt_caching=True, max_cache_hints=4, caches_only_hints=True)
    with model.client() as client:
        Agent(instructions="Be short.", options={"cache": "auto"}).run_sync("Hello?", client=client)
    assert hints(model) == [CacheHint(), CacheHint()]
    with model.client(cache="auto") as client:
        Agent(instructions="Be short.").run_sync("Hello?", client=client)
        assert hints(model) == [CacheHint(), CacheHint()]
        with open_store(str(tmp_path / "s.db")) as store:
            Session.open(store, "s", client=client).send("Hello?")
            assert hints(model) == [CacheHint()]
            stored = [block for message in store.messages("s") for block in message.content]
            assert [block for block in stored if getattr(block, "cache", None)] == []


def hints(model: ScriptedModel) -> list[CacheHint | None]:
    return [block.cache for message in model.last.messages for block in message.content if isinstance(block, TextBlock)]


def test_the_saving_follows_from_the_usage_and_is_none_if_unknown() -> None:
    parts = CostParts(
        input=Decimal("0.0005"), output=Decimal(0), cached_read=Decimal("0.005"), cache_write=Decimal("0.00125")
    )  # 100 tokens at 5 USD a million, 10,000 read at 0.50, 200 written at 6.25
    usage = Usage(input_tokens=10_300, cached_input_tokens=10_000, cache_creation_input_tokens=200, cost=parts)
    assert usage.cache_saving_usd == Decimal("0.04475")  # (5 - 0.50) * 0.01 - (6.25 - 5) * 0.0002
    assert Usage(input_tokens=10, cached_input_tokens=5).cache_saving_usd is None
    whole = Usage(input_tokens=10_200, cached_input_tokens=10_000, cache_creation_input_tokens=200, cost=parts)
    assert whole.cache_saving_usd is None  # no plain token shows the price
    reported = Usage(input_tokens=10_300, cached_input_tokens=10_000, cost=parts, pricing_version="reported")
    assert reported.cache_saving_usd is None
