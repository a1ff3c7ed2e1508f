"""Agents as applications use them, for type checkers: checked by `test_typing`, never run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypedDict, assert_type

from interlingua import AsyncClient, Client, Message
from interlingua_agents import Agent, AsyncRunStream, RunResult, RunStream, Tool, tool
from interlingua_output import Output


@dataclass
class Moon:
    name: str


@dataclass
class Refusal:
    why: str


class Color(Enum):
    RED = "red"


class Entry(TypedDict):
    word: str


assert_type(Agent("m").run_sync("x"), RunResult[str])
assert_type(Agent("m", output=Moon).run_sync("x").value, Moon)
assert_type(Agent("m", output=list[Moon]).run_sync("x").value, list[Moon])
assert_type(Agent("m", output=Color).run_sync("x").value, Color)
assert_type(Agent("m", output=Entry).run_sync("x").value, Entry)
assert_type(Agent("m", output=Output(Moon, mode="prompt")).run_sync("x").value, Moon)
assert_type(Client("m").send("x", output=Output(Moon)).value, Moon)
assert_type(Agent("m").stream_sync("x"), RunStream[str])
assert_type(Agent("m", output=Moon).stream("x"), AsyncRunStream[Moon])
assert_type(Agent("m", output=Moon | Refusal).run_sync("x").value, Moon | Refusal)
assert_type(Agent("m", output=Literal["a", "b"]).run_sync("x").value, Literal["a", "b"])


@tool
def change(count: int) -> str:
    return str(count)


@tool(side_effects="read", timeout=3)
async def look(kind: Literal["a"], places: Sequence[int] = ()) -> Moon:
    return Moon(f"{kind} {places}")


class Shelf:
    @tool(side_effects="read")
    def take(self, book: str) -> str:
        return book


assert_type(change(3), str)
change("3")  # type: ignore[arg-type]
change(counts=3)  # type: ignore[call-arg]
as_tool: Tool = change
assert_type(Shelf().take, Tool)


async def looks() -> None:
    assert_type(await look("a", places=[1]), Moon)
    await look("b")  # type: ignore[arg-type]


def goes_on(agent: Agent[Moon], client: Client) -> Moon:
    history: list[Message] = []
    run = agent.run_sync("x", client=client, history=history)
    history += run.messages
    with agent.stream_sync("x", client=client) as events:
        for event in events:
            match event.type:
                case "text_delta":
                    assert_type(event.text, str)
                case "tool_end":
                    assert_type(event.call.name, str)
    return run.value


async def goes_on_async(agent: Agent[str], client: AsyncClient) -> str:
    async with agent.stream("x", client=client) as events:
        async for text in events.text_stream:
            assert_type(text, str)
        return (await events.result).value
