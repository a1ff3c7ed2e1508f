"""A writer killed at any point: what was acknowledged is there, nothing is there by halves."""

from __future__ import annotations

import random
import time

from interlingua.types.messages import Message, MessageStatus, Role
from interlingua_sessions import Store, open_store
from tests.support.store_writer import chunks_of, digest
from tests.support.store_writers import Writers

KILLS = 200
AT_ONCE = 4
LONGEST_LIFE = 0.8  # seconds: a turn takes 0.1 to 0.7
LOST_SECONDS = 0.25


def test_a_kill_loses_nothing_that_was_acknowledged(place: str) -> None:
    with open_store(place) as store:
        sessions = {store.create_session(f"s{number}").id: number for number in range(KILLS)}
    with Writers(place) as writers:
        _kill_all(writers, sessions)
    with open_store(place) as store:
        assert list(store.verify()) == []
        losses = [_judged(store, session, seed, writers.said[session]) for session, seed in sessions.items()]

    assert any(words[0] == "ack" for said in writers.said.values() for words in said)
    assert any(loss > 0 for loss in losses), "no writer was killed while it streamed"
    print(f"{KILLS} kills, {sum(loss > 0 for loss in losses)} while streaming, longest loss {max(losses):.3f} s")
    assert max(losses) <= LOST_SECONDS


def _kill_all(writers: Writers, sessions: dict[str, int]) -> None:
    waiting = list(sessions.items())
    alive: list[tuple[float, int]] = []
    while waiting or alive:
        while waiting and len(alive) < AT_ONCE:
            pid = writers.start("stream", *waiting.pop())
            alive.append((time.monotonic() + random.uniform(0, LONGEST_LIFE), pid))
        due, pid = min(alive)
        time.sleep(max(0.0, due - time.monotonic()))
        writers.kill(pid)
        alive.remove((due, pid))


def _judged(store: Store, session: str, seed: int, said: list[list[str]]) -> float:
    """Compare what a writer said with what is stored; return how many seconds of streamed text are lost."""
    messages = list(store.messages(session))
    stored = {message.id: digest(message) for message in messages}
    for kind, *words in said:
        if kind == "ack":
            assert stored[words[0]] == words[1]
    turns = [message for message in messages if message.role is Role.ASSISTANT]
    assert all(message.metadata.status is MessageStatus.COMPLETE for message in turns[:-1])
    for turn, message in enumerate(turns, 1):
        whole = "".join(chunks_of(seed, turn))
        if message.metadata.status is MessageStatus.COMPLETE:
            assert (message.text, len(message.tool_calls)) == (whole, 2)
        else:
            assert whole.startswith(message.text)
    return _lost(turns, [words for kind, *words in said if kind == "recv"])


def _lost(turns: list[Message], received: list[list[str]]) -> float:
    if not received:
        return 0.0
    turn, ended = int(received[-1][0]), float(received[-1][1])
    text = turns[turn - 1].text if len(turns) >= turn else ""
    unsaved = [float(when) for each, when, length in received if int(each) == turn and int(length) > len(text)]
    return ended - unsaved[0] if unsaved else 0.0
