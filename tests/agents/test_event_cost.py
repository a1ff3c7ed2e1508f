"""The cost that an agent adds to each event of an answer, in Python calls: time on shared machines says little."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import interlingua as il
from interlingua.testing import MemoryTransport
from interlingua_agents import Agent, tool
from interlingua_agents.loop import AgentLoop
from tests.agents.scripted import MODEL, Say, Theatre, playing, registry


class LongAnswer(Theatre):
    """An answer of many small deltas, received in one read."""

    def answer(self, body: bytes) -> tuple[int, str, bytes]:
        status, kind, data = super().answer(body)
        first, rest = data.split(b"\n\n", 1)
        return status, kind, (first + b"\n\n") * 800 + rest


def calls_per_event(consume: Callable[[], int]) -> float:
    """Return how many calls of Python functions one event costs; resuming a generator is one."""
    consume()
    calls = 0

    def count(_frame: FrameType, what: str, _arg: object) -> None:
        nonlocal calls
        calls += what == "call"

    sys.setprofile(count)
    try:
        events = consume()
    finally:
        sys.setprofile(None)
    assert events > 500
    return calls / events


@tool(side_effects="read")
def look() -> str:
    """Look."""
    return "x"


@pytest.mark.parametrize("way", ["agent", "session"])
def test_an_event_is_handed_on_in_few_calls(way: str) -> None:
    """The events of one read go through the loop together; one by one through its layers, it was 22 and 34."""
    theatre = LongAnswer()
    transport = MemoryTransport(theatre)
    client = il.Client(MODEL, registry=registry(), transport=transport)

    def by_client() -> int:
        theatre.lines = [Say(parts=["word"])]
        with client.stream("hi") as stream:
            return sum(1 for _ in stream)

    def by_agent() -> int:
        theatre.lines = [Say(parts=["word"])]
        with Agent(tools=[look]).stream_sync("hi", client=client) as stream:
            return sum(1 for _ in stream)

    def by_session() -> int:
        with playing(LongAnswer("word"), ":memory:") as session, session.stream("hi", tools=AgentLoop([look])) as run:
            return sum(1 for _ in run)

    added = calls_per_event(by_agent if way == "agent" else by_session) - calls_per_event(by_client)
    assert added < 12
