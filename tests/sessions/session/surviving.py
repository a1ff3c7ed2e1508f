"""Runs of an agent that are killed at random places and continue in new processes: `python -m … FIRST COUNT FOLDER`.

Each run is made in a forked process that counts the lines of our packages that it executes, in all threads, and kills
itself with SIGKILL at a random one. A new process then continues from the store, until one ends. Write tools append a
line to a file, so that the file tells what took effect, how often.

In even runs pending calls are decided by what is in the file: every effect is there once. In odd runs nothing is
decided: no effect is there twice, and of a missing one the model was told that it is unknown.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from interlingua import ToolUseBlock
from interlingua.testing import ScriptedModel, SentRequest, call
from interlingua.types import MessageStatus
from interlingua_agents import DEFER, Agent, CallDecision, PendingCall, approve, reject, tool
from interlingua_agents.calls import UNKNOWN_EFFECT
from interlingua_sessions import AsyncSession, Session, open_store

COMPLETE = MessageStatus.COMPLETE
TURNS, CALLS = 3, 2
MOST_KILLS = 2
OURS = ("interlingua_agents", "interlingua_sessions", "surviving.py")


def answer(request: SentRequest) -> str | list[str | ToolUseBlock]:
    """Call `pay` twice in each of three turns, then end. Calls of an answer that broke off are not sent back."""
    turn = sum(bool(message.tool_calls) and message.status is COMPLETE for message in request.messages)
    if turn == TURNS:
        return "paid"
    return ["paying", *(call("pay", to=f"{turn}-{number}") for number in range(CALLS))]


def run(folder: Path, way: str, *, asks: bool) -> str:
    """Make or continue the run, decide about what is pending, and return the last answer."""
    effects = folder / "effects"

    @tool(side_effects="write")
    def pay(to: str) -> str:
        """Pay someone."""
        line = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(line, f"{to}\n".encode())
        os.close(line)
        return f"paid {to}"

    def decide(pending: PendingCall) -> CallDecision:
        done = effects.read_text().split() if effects.exists() else []
        return approve(pending) if pending.input["to"] not in done else reject(pending)

    agent = Agent("scripted:model", tools=[pay], confirm=DEFER if asks else lambda _: True)
    model, place = ScriptedModel(answer), str(folder / "store.db")
    if way == "async":

        async def main() -> str:
            async with model.async_client() as client, AsyncSession.open(place, "s", client=client) as session:
                result = await agent.run(None if session.messages else "pay all", session=session)
                while result.pending:
                    result = await agent.run(session=session, decisions=[decide(one) for one in result.pending])
                return result.value

        return asyncio.run(main())
    with model.client() as client, Session.open(place, "s", client=client) as session:
        prompt: str | None = None if session.messages else "pay all"
        decisions: list[CallDecision] = []
        while True:
            if way == "whole":
                result = agent.run_sync(prompt, session=session, decisions=decisions)
            else:
                with agent.stream_sync(prompt, session=session, decisions=decisions) as stream:
                    result = stream.result
            if not result.pending:
                return result.value
            prompt, decisions = None, [decide(one) for one in result.pending]


class Killer:
    """Kills this process at the n-th line that it executes in our packages; without n it only counts."""

    def __init__(self, at: int | None) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: Any, event: str, _argument: Any) -> Any:
        if event == "call" and not any(name in frame.f_code.co_filename for name in OURS):
            return None
        if event == "line":
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


def in_fork(folder: Path, way: str, *, asks: bool, at: int | None) -> tuple[bool, int]:
    """Run in a forked process; return whether it ended by itself, and how many lines it executed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        killer = Killer(at)
        threading.settrace(killer)
        sys.settrace(killer)
        try:
            ended = run(folder, way, asks=asks) == "paid"
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            ended = False
        sys.settrace(None)
        os.write(writing, str(killer.count).encode())
        os._exit(0 if ended else 1)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    count = int(os.read(reading, 20) or b"0")
    os.close(reading)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        raise SystemExit(f"{folder} {way}: a run failed instead of going on")
    return not killed, count


def survive(number: int, folder: Path, lines: dict[str, int]) -> int:
    """Kill one run at random places until it ends; check what took effect, and return how often it was killed."""
    chance = random.Random(number)
    way, asks = ("whole", "stream", "async")[number // 2 % 3], number % 2 == 0
    folder.mkdir()
    kills = 0
    while not in_fork(folder, way, asks=asks, at=chance.randint(1, lines[way]) if kills < MOST_KILLS else None)[0]:
        kills += 1
    paid = Counter((folder / "effects").read_text().split()) if (folder / "effects").exists() else Counter()
    wanted = {f"{turn}-{place}" for turn in range(TURNS) for place in range(CALLS)}
    with open_store(folder / "store.db") as store:
        assert not list(store.verify("s")), f"{folder}: the store has faults"
        messages = list(store.messages("s"))
    calls = {call.id: str(call.input["to"]) for message in messages for call in message.tool_calls}
    told = {
        calls[result.tool_use_id]
        for message in messages
        for result in message.tool_results
        if UNKNOWN_EFFECT in str(result.content)
    }
    assert not [to for to, times in paid.items() if times != 1], f"{folder} {way}: {paid}"
    missing = wanted - set(paid)
    assert missing <= (set() if asks else told), f"{folder} {way} asks={asks}: missing {missing}, told {told}"
    assert len(messages) == len({message.id for message in messages})
    return kills


def main(first: int, count: int, folder: Path) -> None:
    """Survive runs number `first` to `first + count - 1`."""
    lines = {}
    for way in ("whole", "stream", "async"):
        (folder / way).mkdir()
        lines[way] = in_fork(folder / way, way, asks=True, at=None)[1]
        assert lines[way] > 500, f"{way}: only {lines[way]} lines were counted"
    kills = [survive(number, folder / str(number), lines) for number in range(first, first + count)]
    print(f"{count} runs were killed {sum(kills)} times, {kills.count(0)} of them never")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
