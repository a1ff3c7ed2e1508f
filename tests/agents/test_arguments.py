"""Arguments that an `Agent` does not take: the error says where they belong."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from interlingua_agents import Agent, McpServer, ToolLimits, by_side_effects, shell_tool, tool, tool_of


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_tokens", r"it is an option of the requests: options=\{'max_tokens': …\}"),
        ("base_url", r"pass a client to the run: Client\(…, base_url=…\)"),
        ("system", "use instructions=…"),
        ("tool", r"did you mean tools\?"),
    ],
)
def test_an_argument_of_another_place_is_named(name: str, hint: str) -> None:
    arguments: Any = {name: 1}
    with pytest.raises(TypeError, match=rf"^Agent\(\) has no argument '{name}': {hint}$"):
        Agent("anthropic:claude-haiku-4-5", **arguments)


@pytest.mark.parametrize("method", ["run", "run_sync", "stream", "stream_sync"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_tokens", r"it is an option of the requests: Agent\(…, options=\{'max_tokens': …\}\)"),
        ("temperature", r"it is an option of the requests: Agent\(…, options=\{'temperature': …\}\)"),
        ("tools", r"set it on the agent: Agent\(…, tools=…\)"),
        ("model", r"set it on the agent: Agent\(…, model=…\)"),
        ("confirm", r"set it on the agent: Agent\(…, confirm=…\)"),
        ("system", r"set it on the agent: Agent\(…, instructions=…\)"),
        ("api_key", r"pass a client to the run: Client\(…, api_key=…\)"),
        ("messages", "pass history=…"),
        ("histroy", r"did you mean history\?"),
        ("zzz", "there are: prompt, history, session, client, decisions"),
    ],
)
def test_a_run_names_the_place_of_an_argument(method: str, name: str, hint: str) -> None:
    arguments: Any = {name: 1}
    with pytest.raises(TypeError, match=rf"^Agent\.{method}\(\) has no argument '{name}': {hint}$"):
        asyncio.run(_run(method, arguments))


async def _run(method: str, arguments: Any) -> None:
    run = getattr(Agent("anthropic:claude-haiku-4-5"), method)("hi", **arguments)
    if inspect.isawaitable(run):
        await run


@pytest.mark.parametrize(
    ("call", "name", "hint"),
    [
        (tool, "side_effect", r"did you mean side_effects\?"),
        (tool, "parameters", r"annotate the parameters, or use tool_of\(definition, function\)"),
        (tool_of, "time_out", r"did you mean timeout\?"),
        (ToolLimits, "max_turns", r"set it on the agent: Agent\(…, max_turns=…\)"),
        (ToolLimits, "parallel", "use side_by_side=…"),
        (McpServer, "command", "pass the command, as a list of words, or the URL first"),
        (McpServer, "headers", "pass a transport of the package mcp: .*"),
        (McpServer, "side_effect", r"did you mean side_effects\?"),
        (by_side_effects, "write", r"pass a dictionary: by_side_effects\(\{'write': …\}\)"),
        (shell_tool, "confirm", r"pass it to the agent: Agent\(…, confirm=…\)"),
    ],
)
def test_what_agents_are_made_of_names_the_right_argument(call: Any, name: str, hint: str) -> None:
    arguments: Any = {name: 1}
    with pytest.raises(TypeError, match=rf"^{call.__name__}\(\) has no argument '{name}': {hint}$"):
        call(**arguments)
