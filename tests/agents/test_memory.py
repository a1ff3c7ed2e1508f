"""The loop over a plain list of messages and a client, no store: against a local HTTP server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

import interlingua as il
from interlingua_agents import RunStop, StopCause, ToolContext, ToolLimits, tool
from interlingua_agents import events as ev
from interlingua_agents.loop import AgentLoop
from interlingua_agents.memory import AsyncMemoryTurn, MemoryTurn
from tests.agents.scripted import MODEL, Say, Script, Theatre, call, registry
from tests.support.loopback import loopback, send_bytes


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@contextmanager
def serving(theatre: Theatre) -> Iterator[str]:
    """Serve the script's lines over HTTP on the loopback."""

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        send_bytes(handler, *theatre.answer(body))

    with loopback(answer) as url:
        yield url


class Served(Script):
    """The script's plugin at our address."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    @il.plugins.hookimpl
    def connection(self, settings: il.plugins.ConnectionSettings) -> il.plugins.Connection:
        return il.plugins.Connection(base_url=self._url)


def given(url: str) -> dict[str, Any]:
    return {"registry": registry(script=Served(url)), "retry": 0}


def script() -> Theatre:
    return Theatre(Say(parts=["I add.", call("add", {"a": 2, "b": 3})]), "It is 5.")


def roles(messages: list[il.Message]) -> list[str]:
    return [message.role.value for message in messages]


def test_a_list_grows_by_the_call_its_result_and_the_answer() -> None:
    theatre, messages = script(), [il.user("2 + 3?")]
    with serving(theatre) as url, il.Client(MODEL, **given(url)) as client:
        answer = AgentLoop([add]).run(MemoryTurn(client, messages))

    assert answer is messages[-1]
    assert answer.text == "It is 5."
    assert roles(messages) == ["user", "assistant", "tool", "assistant"]
    assert theatre.asked[1]["messages"][-1] == {"role": "tool", "results": [{"error": False, "text": "5"}]}
    assert not il.validate_conversation(messages)


def test_asynchronous_code_gets_the_same() -> None:
    messages = [il.user("2 + 3?")]

    async def run(url: str) -> il.Message:
        async with il.AsyncClient(MODEL, **given(url)) as client:
            return await AgentLoop([add]).run_async(AsyncMemoryTurn(client, messages))

    with serving(script()) as url:
        answer = asyncio.run(run(url))

    assert answer.text == "It is 5."
    assert roles(messages) == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("face", ["blocking", "asynchronous"])
def test_with_a_listener_answers_are_streamed(face: str) -> None:
    theatre, messages = script(), [il.user("2 + 3?")]
    told: list[ev.RunEvent] = []
    loop = AgentLoop([add], listen=told.append)

    async def run(url: str) -> None:
        async with il.AsyncClient(MODEL, **given(url)) as client:
            await loop.run_async(AsyncMemoryTurn(client, messages))

    with serving(theatre) as url:
        if face == "blocking":
            with il.Client(MODEL, **given(url)) as client:
                loop.run(MemoryTurn(client, messages))
        else:
            asyncio.run(run(url))

    assert [asked["stream"] for asked in theatre.asked] == [True, True]
    assert roles(messages) == ["user", "assistant", "tool", "assistant"]
    assert [event.message for event in told if isinstance(event, ev.MessageEnd)] == messages
    (end,) = [event for event in told if isinstance(event, ev.ToolEnd)]
    assert json.loads(end.result.content[0].text) == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("face", ["blocking", "asynchronous"])
def test_a_broken_stream_leaves_what_came(face: str) -> None:
    messages = [il.user("2 + 3?")]
    loop = AgentLoop([add], listen=lambda _event: None)

    async def run(url: str) -> None:
        async with il.AsyncClient(MODEL, **given(url)) as client:
            await loop.run_async(AsyncMemoryTurn(client, messages))

    def run_without_waiting(url: str) -> None:
        with il.Client(MODEL, **given(url)) as client:
            loop.run(MemoryTurn(client, messages))

    with serving(Theatre(Say(parts=["half of it"], cut=True))) as url, pytest.raises(il.InterlinguaError) as caught:
        run_without_waiting(url) if face == "blocking" else asyncio.run(run(url))

    assert caught.value.partial is messages[-1]
    assert messages[-1].text == "half of it"
    assert messages[-1].metadata.status is il.MessageStatus.ERROR


def test_a_failure_leaves_the_list_as_it_was() -> None:
    messages = [il.user("2 + 3?")]
    failing = Theatre(Say(fail=(500, "{}")))
    with serving(failing) as url, il.Client(MODEL, **given(url)) as client, pytest.raises(il.InterlinguaError):
        AgentLoop([add]).run(MemoryTurn(client, messages))

    assert roles(messages) == ["user"]


def test_calls_that_a_history_ends_with_are_run_first() -> None:
    """Calls that an earlier run left open are answered before the model is asked."""
    theatre, messages = script(), [il.user("2 + 3?")]
    with serving(theatre) as url, il.Client(MODEL, **given(url)) as client:
        messages.append(client.send(messages, tools=[add.definition]))
        AgentLoop([add]).run(MemoryTurn(client, messages))

    assert roles(messages) == ["user", "assistant", "tool", "assistant"]


def test_limits_hold_and_options_are_passed_on() -> None:
    theatre = Theatre(*[Say(parts=[call("add", {"a": 1, "b": number})]) for number in range(3)])
    messages, ended = [il.user("count")], []
    loop = AgentLoop([add], max_turns=2, limits=ToolLimits(timeout=5), on_stop=ended.append)
    with serving(theatre) as url, il.Client(None, **given(url)) as client:
        loop.run(MemoryTurn(client, messages, model=MODEL, max_tokens=9))

    (stopped,) = ended
    assert isinstance(stopped, RunStop)
    assert (stopped.cause, stopped.turns) == (StopCause.TURN_LIMIT, 2)
    assert roles(messages) == ["user", "assistant", "tool", "assistant", "tool"]


def test_a_shortened_result_is_kept_whole() -> None:
    @tool(side_effects="none", result_limit=10)
    def read() -> str:
        """Read a lot."""
        return "x" * 50

    messages = [il.user("read")]
    with serving(Theatre(Say(parts=[call("read")]), "Done.")) as url, il.Client(MODEL, **given(url)) as client:
        turn = MemoryTurn(client, messages)
        AgentLoop([read]).run(turn)

    (result,) = messages[2].tool_results
    assert "40 of 50 characters left out" in result.content[0].text  # type: ignore[union-attr]
    assert turn.kept_results[result.tool_use_id].content[0].text == "x" * 50  # type: ignore[union-attr]


def test_a_turn_without_a_model_is_refused() -> None:
    with il.Client(None, registry=registry()) as client, pytest.raises(il.CallerError, match="no model"):
        MemoryTurn(client, [il.user("hi")])


def test_it_needs_no_sessions() -> None:
    import subprocess
    import sys

    code = (
        "import sys, interlingua_agents as agents\n"
        "[getattr(agents, name) for name in agents.__all__]\n"
        "print(sorted({'interlingua_sessions', 'sqlite3', 'msgspec', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("clients", "turns", "found"), [(None, None, None), ("/a", None, "/a"), ("/a", "/b", "/b")])
@pytest.mark.parametrize("face", ["blocking", "asynchronous"])
def test_a_workspace_is_the_turns_own_or_the_clients(
    face: str, clients: str | None, turns: str | None, found: str | None
) -> None:
    seen: list[str] = []

    @tool(side_effects="none", requires_workspace=True)
    def look(context: ToolContext) -> str:
        """Look around."""
        seen.append(context.workspace)
        return "seen"

    theatre, messages = Theatre(Say(parts=[call("look")]), "Done."), [il.user("look")]

    async def run(url: str) -> None:
        async with il.AsyncClient(MODEL, **given(url), workspace=clients) as client:
            await AgentLoop([look]).run_async(AsyncMemoryTurn(client, messages, workspace=turns))

    with serving(theatre) as url:
        if face == "asynchronous":
            asyncio.run(run(url))
        else:
            with il.Client(MODEL, **given(url), workspace=clients) as client:
                AgentLoop([look]).run(MemoryTurn(client, messages, workspace=turns))

    (result,) = messages[2].tool_results
    assert (seen, result.is_error) == (([], True) if found is None else ([found], False))
