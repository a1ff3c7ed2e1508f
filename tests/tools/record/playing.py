"""Play a scenario through a client: the same requests when it is recorded and when it is replayed.

A scenario is one generator, driven by blocking and by asynchronous code.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import attrs

from interlingua._http.client import AsyncClient, Client
from interlingua.types.factories import system, tool_result, user
from interlingua.types.messages import Message
from tests.tools.record.scenarios import Scenario
from tests.tools.record.wires import Cast, Wire


@attrs.frozen
class Ask:
    """One request: the conversation so far, and everything else `send` takes."""

    messages: list[Message]
    stream: bool
    options: dict[str, Any]


def course(scenario: Scenario, wire: Wire, cast: Cast) -> Generator[Ask, Message, None]:
    """Yield each request, given each answer."""
    history = [system(scenario.system)] if scenario.system else []
    options = {"model": f"{wire.provider}:{scenario.model or cast.model}", "tools": scenario.tools}
    options |= {**cast.options, **scenario.options}
    for text in scenario.says if cast.local else scenario.asks or scenario.says:
        history.append(user(text))
        answer = yield Ask(list(history), scenario.stream, options)
        history.append(answer)
        if scenario.result is not None and answer.tool_calls:
            history += [tool_result(call, scenario.result) for call in answer.tool_calls]
            history.append((yield Ask(list(history), scenario.stream, options)))


def play(client: Client, scenario: Scenario, wire: Wire, cast: Cast) -> list[Message]:
    """Play in blocking code; returns the answers, raises what the client raises."""
    steps, answers = course(scenario, wire, cast), list[Message]()
    ask = next(steps)
    while True:
        if ask.stream:
            with client.stream(ask.messages, **ask.options) as stream:
                answers.append(stream.message)
        else:
            answers.append(client.send(ask.messages, **ask.options))
        try:
            ask = steps.send(answers[-1])
        except StopIteration:
            return answers


async def play_async(client: AsyncClient, scenario: Scenario, wire: Wire, cast: Cast) -> list[Message]:
    """Play in asynchronous code; returns the answers, raises what the client raises."""
    steps, answers = course(scenario, wire, cast), list[Message]()
    ask = next(steps)
    while True:
        if ask.stream:
            async with client.stream(ask.messages, **ask.options) as stream:
                answers.append(await stream.message)
        else:
            answers.append(await client.send(ask.messages, **ask.options))
        try:
            ask = steps.send(answers[-1])
        except StopIteration:
            return answers
