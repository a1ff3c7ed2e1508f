"""The tool loop, streaming, with a real model on llama.cpp's server: it calls a tool and reads the result.

Skipped if the machine has no server or model.
"""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

import interlingua as il
from interlingua_agents.agent import Agent
from interlingua_agents.events import RunEnd, RunEvent, ToolEnd
from interlingua_agents.loop import AgentLoop
from interlingua_agents.results import RunStop, StopCause
from interlingua_agents.tools import tool_of
from interlingua_cli.demo.session import FILES, READ_FILE, local_scenario
from interlingua_sessions import Session, open_store
from tests.support import tree
from tests.tools.local_server import files
from tests.tools.local_server.server import LocalServer

ABSENT = files.missing()


@pytest.mark.skipif(ABSENT is not None, reason=ABSENT or "")
def test_a_real_model_calls_a_tool_in_a_streamed_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.ROOT)  # the demo's cast is found from there
    told: list[RunEvent] = []
    stops: list[RunStop] = []
    tool = tool_of(attrs.evolve(READ_FILE, requires_workspace=False), lambda path: FILES[path])
    loop = AgentLoop([tool], listen=told.append, on_stop=stops.append)
    with LocalServer() as server:
        cast = local_scenario(server.url)
        keys = {key: {**settings, "api_key": "k"} for key, settings in cast.settings.items()}
        with il.Client(settings=keys, environ={}) as client, open_store(tmp_path / "s.db") as store:
            session = Session.open(store, "s", client=client, model=cast.models[0], options=cast.options)
            answer = session.send(cast.turns[0].text, tools=loop)
            (call,) = store.tool_calls("s")
            findings = [finding for finding in store.verify("s") if not finding.repairable]

    assert (call.name, call.status.value) == ("read_file", "succeeded")
    assert answer.text
    assert stops[0].cause is StopCause.DONE
    assert stops[0].turns == 2
    assert findings == []
    kinds = [event.type for event in told]
    assert "toolcall_end" in kinds
    assert "text_delta" in kinds
    (end,) = [event for event in told if isinstance(event, ToolEnd)]
    assert end.result.content == (il.TextBlock(text=FILES["README.md"]),)


@attrs.frozen
class Licence:
    """A licence."""

    name: str
    years: int


@pytest.mark.skipif(ABSENT is not None, reason=ABSENT or "")
def test_an_agent_streams_calls_and_gives_a_typed_answer_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.ROOT)
    with LocalServer() as server:
        cast = local_scenario(server.url)
        keys = {key: {**settings, "api_key": "k"} for key, settings in cast.settings.items()}
        options = {**cast.options, "max_tokens": 300}
        with il.Client(settings=keys, environ={}) as client:
            agent = Agent(cast.models[0], tools=[tool_of(READ_FILE, lambda path: FILES[path])], options=options)
            with agent.stream_sync(cast.turns[0].text, client=client) as stream:
                events = list(stream)
        model = f"llamacpp:{cast.models[0].partition(':')[2]}"  # it forces the schema; so small a model needs that
        with il.Client(model, base_url=f"{server.url}/v1", environ={}) as client:
            typed = Agent(output=Licence, options={"max_tokens": 300})
            run = typed.run_sync("Invent a licence: its name, and for how many years it holds.", client=client)

    ended = events[-1]
    assert isinstance(ended, RunEnd)
    assert ended.result.stop.cause is StopCause.DONE
    kinds = [event.type for event in events]
    assert kinds.index("tool_end") < len(kinds) - 1 - kinds[::-1].index("text_delta")
    assert not il.validate_conversation(list(ended.result.messages))
    assert isinstance(run.value, Licence)
