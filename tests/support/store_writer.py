"""Processes that write to a store until they are killed or done, and tell what came back from it.

    python -m tests.support.store_writer PLACE

reads `stream SESSION SEED` or `append SESSION COUNT` lines and forks a writer for each: a new one costs nothing. Each
says its pid first; every line it writes is one `os.write` of less than a pipe's buffer, so a kill leaves none half.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from hashlib import sha256

import attrs

from interlingua.codec import encode_message
from interlingua.plugins import dumps
from interlingua.types.blocks import TextBlock, ToolUseBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Role
from interlingua_sessions import Store, open_store
from interlingua_sessions.streams import SnapshotThread

WORDS = ("alpha ", "béta ", "gamma\n", "δέλτα ", "epsilon ", "ζ")
CHUNK_EVERY = 0.004


def digest(message: Message) -> str:
    """Return what tells one message's content from another's."""
    return sha256(dumps(encode_message(message)["content"])).hexdigest()[:16]


def chunks_of(seed: int, turn: int) -> list[str]:
    """Return the chunks of one streamed answer; the last ends in a full stop."""
    chance = random.Random(f"{seed}/{turn}")
    return [f"{turn}:", *chance.choices(WORDS, k=chance.randrange(5, 150)), "."]


def answer(session_id: str, text: str, like: Message | None, status: MessageStatus, calls: int = 0) -> Message:
    """Return an answer as far as it came, under the id it was stored by; finished it asks for tools."""
    asked = [
        ToolUseBlock(id=f"tu_{session_id}_{text.partition(':')[0]}_{number}", name="read", provider_id=f"call_{number}")
        for number in range(calls)
    ]
    metadata = MessageMetadata(status=status)
    like = like or Message(role=Role.ASSISTANT, content=(), session_id=session_id)
    return attrs.evolve(like, content=(TextBlock(text=text), *asked), metadata=metadata)


class Writer:
    """One forked process."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session = session_id

    def say(self, *words: object) -> None:
        """Tell the parent, whole or not at all."""
        os.write(1, f"{' '.join(map(str, (self._session, *words)))}\n".encode())

    def acked(self, message: Message) -> Message:
        """Tell that the store has this message."""
        self.say("ack", message.id, digest(message))
        return message

    def stream(self, seed: int) -> None:
        """Take turns for ever: a question, a streamed answer with two calls, their results."""
        turn = 0
        while True:
            turn += 1
            self.acked(self._store.append(user(f"question {turn}", session_id=self._session)))
            stored = self._streamed(turn, chunks_of(seed, turn))
            for call in stored.tool_calls:
                self.acked(self._store.append(tool_result(call, {"turn": turn}, session_id=self._session)))

    def _streamed(self, turn: int, chunks: list[str]) -> Message:
        received: list[str] = []
        partial: Message | None = None

        def save() -> None:
            nonlocal partial
            text = "".join(received)
            partial = self._store.save_partial(answer(self._session, text, partial, MessageStatus.PARTIAL))

        saver = SnapshotThread(save)
        for chunk in chunks:
            received.append(chunk)
            self.say("recv", turn, time.monotonic(), sum(map(len, received)))
            saver.touch()
            time.sleep(CHUNK_EVERY)
        saver.stop()
        whole = answer(self._session, "".join(received), partial, MessageStatus.COMPLETE, calls=2)
        return self.acked(self._store.finish(whole))

    def append(self, count: int) -> None:
        """Append messages, and tell when each was asked for and when it was there."""
        for number in range(count):
            before = time.monotonic()
            message = self._store.append(user(f"{os.getpid()} {number}", session_id=self._session))
            self.say("put", message.id, os.getpid(), number, before, time.monotonic())


def main() -> None:
    """Fork a writer for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with open_store(sys.argv[1]) as store:  # what is imported lazily is imported once
        session = store.create_session("warm").id
        store.append(user("warm", session_id=session))
    for line in sys.stdin:
        kind, session_id, number = line.split()
        if os.fork():
            continue
        try:
            os.write(1, f"{session_id} pid {os.getpid()}\n".encode())
            with open_store(sys.argv[1]) as store:
                getattr(Writer(store, session_id), kind)(int(number))
        finally:
            os._exit(0)


if __name__ == "__main__":
    main()
