"""Spans of agents' runs and their tool calls: parents, threads, failures, sums; blocking, asynchronous, streamed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

import interlingua as il
from interlingua.testing import AsyncMemoryTransport, MemoryTransport
from interlingua_agents import Agent, McpServer, ToolOutput, tool
from interlingua_agents.loop import AgentLoop
from tests.agents.scripted import MODEL, Say, Theatre, call, playing, registry
from tests.otel.conftest import Telemetry
from tests.support.tree import ROOT

CANARY = "CANARY-91bc"


def _theatre() -> Theatre:
    calls = [call("look", {"at": "Io"}), call("look_async", {"at": "Io"}), call("fail", {"why": CANARY})]
    return Theatre(Say(parts=[f"So. {CANARY}", *calls]), f"Done. {CANARY}")


def _tools(seen: dict[str, Any], telemetry: Telemetry) -> list[Any]:
    """Tools that note the span they run in; one makes its own span."""
    tracer = telemetry.tracers.get_tracer("tools")

    @tool(side_effects="none")
    def look(at: str) -> str:
        """Look at a moon."""
        with tracer.start_as_current_span("inside"):
            seen["look"] = trace.get_current_span().get_span_context().span_id
        return CANARY

    @tool(side_effects="none")
    async def look_async(at: str) -> str:
        """Look, without blocking."""
        await asyncio.sleep(0)
        with tracer.start_as_current_span("inside async"):
            return CANARY

    @tool(side_effects="none")
    def fail(why: str) -> str:
        """Fail."""
        raise ValueError(why)

    return [look, look_async, fail]


def _run(agent: Agent[str], theatre: Theatre, telemetry: Telemetry, way: str, **settings: Any) -> None:
    found = registry([telemetry.plugin(**settings)])

    async def asynchronous() -> None:
        async with il.AsyncClient(MODEL, registry=found, transport=AsyncMemoryTransport(theatre)) as client:
            if way == "async":
                await agent.run(CANARY, client=client)
                return
            async with agent.stream(CANARY, client=client) as events:
                async for _ in events:
                    assert trace.get_current_span() is trace.INVALID_SPAN

    if way in ("async", "stream"):
        asyncio.run(asynchronous())
        return
    with il.Client(MODEL, registry=found, transport=MemoryTransport(theatre)) as client:
        if way == "blocking":
            agent.run_sync(CANARY, client=client)
            return
        with agent.stream_sync(CANARY, client=client) as events:
            for _ in events:
                assert trace.get_current_span() is trace.INVALID_SPAN


def _by_name(telemetry: Telemetry) -> dict[str, list[ReadableSpan]]:
    found: dict[str, list[ReadableSpan]] = {}
    for span in telemetry.spans:
        found.setdefault(span.name, []).append(span)
    return found


def _is_child(span: ReadableSpan, of: ReadableSpan) -> bool:
    return span.parent is not None and span.parent.span_id == of.context.span_id


@pytest.mark.parametrize("way", ["blocking", "async", "stream", "stream_sync"])
def test_a_run_holds_its_requests_and_calls(telemetry: Telemetry, way: str) -> None:
    tools = _tools({}, telemetry)
    agent = Agent(MODEL, tools=tools, name="moons", description="Knows moons.", instructions="Be short.")
    _run(agent, _theatre(), telemetry, way)

    spans = _by_name(telemetry)
    assert {name: len(found) for name, found in spans.items()} == {
        "invoke_agent moons": 1, "chat dear": 2, "execute_tool look": 1, "execute_tool look_async": 1,
        "execute_tool fail": 1, "inside": 1, "inside async": 1,
    }  # fmt: skip
    [run] = spans["invoke_agent moons"]
    for name in ("chat dear", "execute_tool look", "execute_tool look_async", "execute_tool fail"):
        assert all(_is_child(span, run) for span in spans[name])
    assert _is_child(spans["inside"][0], spans["execute_tool look"][0])
    assert _is_child(spans["inside async"][0], spans["execute_tool look_async"][0])
    assert dict(run.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.request.model": "dear",
        "gen_ai.agent.name": "moons",
        "gen_ai.agent.description": "Knows moons.",
        "gen_ai.usage.input_tokens": 2000,
        "gen_ai.usage.output_tokens": 200,
        "gen_ai.response.finish_reasons": ("end_turn",),
        "interlingua.cost_usd": (run.attributes or {})["interlingua.cost_usd"],
    }
    assert CANARY not in telemetry.everything()


def test_a_tools_span_says_how_it_went(telemetry: Telemetry) -> None:
    _run(Agent(MODEL, tools=_tools({}, telemetry)), _theatre(), telemetry, "blocking")

    spans = _by_name(telemetry)
    [good], [bad] = spans["execute_tool look"], spans["execute_tool fail"]
    attributes = dict(good.attributes or {})
    assert attributes.pop("gen_ai.tool.call.id", "")
    assert attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Look at a moon.",
    }
    assert (good.status.status_code, bad.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)
    assert (dict(bad.attributes or {})["error.type"], bad.status.description) == ("ValueError", None)


def test_a_result_that_is_an_error_is_a_tool_error(telemetry: Telemetry) -> None:
    @tool(side_effects="none")
    def refuse() -> ToolOutput:
        """Refuse."""
        return ToolOutput(content=CANARY, is_error=True)

    _run(Agent(MODEL, tools=[refuse]), Theatre(Say(parts=[call("refuse")]), "Done."), telemetry, "blocking")

    [span] = _by_name(telemetry)["execute_tool refuse"]
    assert dict(span.attributes or {})["error.type"] == "tool_error"


def test_metrics_of_runs_and_calls(telemetry: Telemetry) -> None:
    _run(Agent(MODEL, tools=_tools({}, telemetry), name="moons"), _theatre(), telemetry, "blocking")

    found = telemetry.points()
    [run] = found["gen_ai.invoke_agent.duration"]
    common = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "moons", "gen_ai.request.model": "dear"}
    assert (dict(run.attributes), run.explicit_bounds[-1]) == (common, pytest.approx(409.6))
    assert [point.sum for point in found["gen_ai.invoke_agent.inference_calls"]] == [2]
    assert [point.sum for point in found["gen_ai.invoke_agent.tool_calls"]] == [3]
    calls = {dict(point.attributes)["gen_ai.tool.name"]: dict(point.attributes) for point in
             found["gen_ai.execute_tool.duration"]}  # fmt: skip
    assert set(calls) == {"look", "look_async", "fail"}
    assert calls["fail"]["error.type"] == "ValueError"


@pytest.mark.parametrize("way", ["blocking", "async", "stream", "stream_sync"])
def test_a_run_that_fails_ends_its_span(telemetry: Telemetry, way: str) -> None:
    theatre = Theatre(Say(fail=(401, CANARY)))
    with pytest.raises(il.errors.AuthenticationError):
        _run(Agent(MODEL, name="moons"), theatre, telemetry, way)

    [run] = _by_name(telemetry)["invoke_agent moons"]
    assert dict(run.attributes or {})["error.type"] == "AuthenticationError"
    assert dict(run.attributes or {})["gen_ai.response.finish_reasons"] == ("error",)
    assert CANARY not in telemetry.everything()


def test_content_of_runs_and_calls_where_it_is_asked_for(telemetry: Telemetry) -> None:
    agent = Agent(MODEL, tools=_tools({}, telemetry), instructions="Be short.")
    _run(agent, _theatre(), telemetry, "blocking", capture="SPAN_ONLY")

    spans = _by_name(telemetry)
    called = dict(spans["execute_tool look"][0].attributes or {})
    assert called["gen_ai.tool.call.arguments"] == '{"at":"Io"}'
    assert called["gen_ai.tool.call.result"] == f'"{CANARY}"'
    run = dict(spans["invoke_agent"][0].attributes or {})
    assert "Done." in str(run["gen_ai.output.messages"])
    assert "look_async" in str(run["gen_ai.tool.definitions"])


def test_a_session_is_the_runs_conversation(telemetry: Telemetry, tmp_path: Path) -> None:
    with playing(_theatre(), tmp_path / "s.db", plugins=[telemetry.plugin()]) as session:
        session.send("hi", tools=AgentLoop(_tools({}, telemetry)))

    spans = _by_name(telemetry)
    for span in (*spans["invoke_agent"], *spans["chat dear"]):
        assert dict(span.attributes or {})["gen_ai.conversation.id"] == "s"


def test_a_sub_agent_is_inside_the_tool_that_asks_it(telemetry: Telemetry) -> None:
    theatre = Theatre(Say(parts=[call("ask", {"what": CANARY})]), f"Inner {CANARY}", "Done.")
    inner = Agent(MODEL, name="inner")
    client: list[il.AsyncClient] = []

    @tool(side_effects="none")
    async def ask(what: str) -> str:
        """Ask another agent."""
        return (await inner.run(what, client=client[0])).value

    async def run() -> None:
        async with il.AsyncClient(
            MODEL, registry=registry([telemetry.plugin()]), transport=AsyncMemoryTransport(theatre)
        ) as used:
            client.append(used)
            await Agent(MODEL, tools=[ask], name="outer").run(CANARY, client=used)

    asyncio.run(run())
    spans = _by_name(telemetry)
    [outer], [nested], [called] = spans["invoke_agent outer"], spans["invoke_agent inner"], spans["execute_tool ask"]
    assert _is_child(called, outer)
    assert _is_child(nested, called)
    assert CANARY not in telemetry.everything()


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_the_client_span_of_an_mcp_library_is_inside_the_call(
    telemetry: Telemetry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.shared._otel._tracer", telemetry.tracers.get_tracer("mcp"))
    theatre = Theatre(Say(parts=[call("web_echo", {"text": CANARY})]), "Done.")
    command = [sys.executable, "-m", "tests.agents.mcp_stdio", str(tmp_path / "log")]
    transport = MemoryTransport(theatre)
    with (
        McpServer(command, env={"PYTHONPATH": str(ROOT)}, prefix="web", trust=True) as web,
        il.Client(MODEL, registry=registry([telemetry.plugin()]), transport=transport) as client,
    ):
        Agent(MODEL, tools=web.tools).run_sync(CANARY, client=client)

    [called] = _by_name(telemetry)["execute_tool web_echo"]
    below = [span for span in telemetry.spans if _is_child(span, called)]
    assert [span.name for span in below] == ["MCP send tools/call echo"]
    assert CANARY in str(theatre.asked[-1])
    assert CANARY not in telemetry.everything()
