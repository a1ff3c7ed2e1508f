"""What type checkers say of typed answers as applications use them; checked by `test_typing`, never run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypedDict, assert_type

from interlingua import Answer, AsyncClient, Client, Message, MessageStream, Output, Partial
from interlingua_output import AsyncOutputStream, OutputPlan, OutputStream


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


client = Client("m")
assert_type(client.send("x"), Message)
assert_type(client.stream("x"), MessageStream)
assert_type(client.send("x", output=Moon), Answer[Moon])
assert_type(client.send("x", output=list[Moon]).output, list[Moon])
assert_type(client.send("x", output=Color).output, Color)
assert_type(client.send("x", output=Entry).output, Entry)
assert_type(client.send("x", output=Output(Moon, mode="tool")).output, Moon)
assert_type(client.stream("x", output=Moon), OutputStream[Moon])

# What is no class is of any type, unless the program says which.
assert_type(client.send("x", output=Moon | Refusal), Answer[Any])
assert_type(client.send("x", output={"type": "object"}), Answer[Any])
assert_type(Output({"type": "object"}, name="found"), Output[Any])
assert_type(client.send("x", output=Output(Moon | Refusal, mode="tool")), Answer[Any])
either: Answer[Moon | Refusal] = client.send("x", output=Moon | Refusal)
assert_type(either.output, Moon | Refusal)
wanted: Output[Literal["a", "b"]] = Output(Literal["a", "b"], description="one of two")
assert_type(client.send("x", output=wanted).output, Literal["a", "b"])

with client.stream("x", output=Moon) as stream:
    for part in stream.partials:
        assert_type(part, Partial)
    assert_type(stream.answer.output, Moon)

plan: OutputPlan[Moon] = client.plan_output(Moon)
message = client.attempt(client.prepare("x", output=plan))
assert_type(plan.answer(message, ()), Answer[Moon])


async def ask(client: AsyncClient) -> Moon:
    assert_type(await client.send("x"), Message)
    async with client.stream("x", output=Moon) as stream:
        assert_type(stream, AsyncOutputStream[Moon])
        async for part in stream.partials:
            assert_type(part, Partial)
        assert_type((await stream.answer).output, Moon)
    return (await client.send("x", output=Moon)).output
