"""A streamed answer is in the store while it arrives, and stays there as what became of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

import interlingua as il
from interlingua_sessions import Store, open_store
from interlingua_sessions.session import AsyncSession, Session
from interlingua_sessions.streams import SnapshotThread
from tests.sessions.talking import async_client, client
from tests.support.fake_provider import STREAM, Reply, served, sse
from tests.support.terminal import limited
from tests.support.waiting import until

SLOW = Reply(body=[*sse({"t": "hel"}), 0.6, *sse({"t": "lo"}), 0.6, *STREAM[2:]])


def answer(store: Store) -> il.Message:
    found = store.last("s")
    assert found is not None
    return found


def test_text_is_stored_while_nothing_more_arrives(store: Store) -> None:
    """The save comes from a timer, not from the next event: here there is none for a while."""
    with served(SLOW) as server, client(server) as c:
        with Session.open(store, "s", client=c).stream("hi") as stream:
            events = iter(stream)
            next(events)
            until(lambda: answer(store).text == "hel")
            assert answer(store).metadata.status is il.MessageStatus.PARTIAL
            saved = answer(store).id
            rest = [event.type for event in events]
        message = stream.message

    assert rest == ["text_delta", "usage_update", "message_complete"]
    assert answer(store) == message
    assert (message.id, message.text) == (saved, "hello")
    assert message.metadata.status is il.MessageStatus.COMPLETE
    assert message.metadata.routing is not None
    assert list(store.verify()) == []


def test_leaving_early_keeps_the_text_as_cancelled(store: Store) -> None:
    with served(SLOW) as server, client(server) as c:
        session = Session.open(store, "s", client=c)
        with session.stream("hi") as stream:
            next(iter(stream))
        assert stream.message.metadata.status is il.MessageStatus.CANCELLED

    assert answer(store).text == "hel"
    assert answer(store).metadata.status is il.MessageStatus.CANCELLED
    assert session.messages[-1] == answer(store)


def test_cancel_from_another_thread(store: Store) -> None:
    from threading import Timer

    with served(SLOW) as server, client(server) as c, Session.open(store, "s", client=c).stream("hi") as stream:
        timer = Timer(0.1, stream.cancel)
        timer.start()
        assert list(stream.text_stream) == ["hel"]
        timer.join()

    assert answer(store).metadata.status is il.MessageStatus.CANCELLED


def test_ctrl_c_keeps_the_text_as_cancelled(store: Store) -> None:
    def interrupted(session: Session) -> None:
        with session.stream("hi") as stream:
            for _ in stream:
                raise KeyboardInterrupt

    with served(SLOW) as server, client(server) as c, pytest.raises(KeyboardInterrupt):
        interrupted(Session.open(store, "s", client=c))

    assert (answer(store).text, answer(store).metadata.status) == ("hel", il.MessageStatus.CANCELLED)


def test_a_cut_connection_keeps_the_text_as_an_error(store: Store) -> None:
    with served(Reply(body=[*sse({"t": "hel"}), 0.05, None])) as server, client(server) as c:
        with (
            Session.open(store, "s", client=c).stream("hi") as stream,
            pytest.raises(il.errors.StreamInterruptedError) as caught,
        ):
            _ = stream.message
        assert caught.value.partial == answer(store)
        with pytest.raises(il.errors.StreamInterruptedError):
            _ = stream.message

    assert (answer(store).text, answer(store).metadata.status) == ("hel", il.MessageStatus.ERROR)
    assert answer(store).metadata.error is not None


def test_case_35_a_partial_turn_is_sent_again_as_its_text_alone(store: Store) -> None:
    """Half a call and unsigned thinking stay in the store and are not sent."""
    with served() as server, client(server) as c:
        session = Session.open(store, "s", client=c)
        session.add(il.user("hi"))
        metadata = il.types.MessageMetadata(status=il.MessageStatus.CANCELLED, model="fake:known", provider="fake")
        half = il.ToolUseBlock(
            id=il.types.new_tool_use_id(), name="look", input={}, raw_input='{"a', parse_error="cut off"
        )
        content = (il.ThinkingBlock(text="hm"), il.TextBlock(text="hel"), half)
        session.add(il.Message(role=il.Role.ASSISTANT, content=content, metadata=metadata))
        wire = session.build_request("go on")

    assert b'"texts": ["hi", "hel", "go on"]' in wire.body
    assert len(answer(store).content) == 3


def test_case_12_an_answer_that_says_nothing_does_not_poison_the_session(store: Store) -> None:
    quiet = Reply(body=sse({"t": ""}, {"end": "end_turn"}))
    with served(quiet, Reply()) as server, client(server) as c:
        session = Session.open(store, "s", client=c)
        with session.stream("hi") as stream:
            assert stream.message.metadata.status is il.MessageStatus.COMPLETE
        assert session.send("still there?").text == "hello"

    assert b'"texts": ["hi", "still there?"]' in server.got[1].body


def test_case_22_lone_surrogates_can_be_stored(store: Store) -> None:
    with served() as server, client(server) as c:
        session = Session.open(store, "s", client=c)
        session.send("cut \ud83d emoji \U0001f600 and \x00 nul")

    first = next(store.messages("s")).text
    assert "\U0001f600" in first
    assert first.encode()  # no lone surrogate is left


def test_cancelling_the_task_keeps_the_text(store: Store) -> None:
    async def talk() -> None:
        async with async_client(server) as c, AsyncSession.open(store, "s", client=c) as session:
            begun = asyncio.Event()
            task = asyncio.ensure_future(listen(session, begun))
            await asyncio.wait_for(begun.wait(), 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    async def listen(session: AsyncSession, begun: asyncio.Event) -> None:
        async with session.stream("hi") as stream:
            async for _ in stream:
                begun.set()
                break
            await stream.message

    with served(SLOW) as server:
        asyncio.run(talk())

    assert (answer(store).text, answer(store).metadata.status) == ("hel", il.MessageStatus.CANCELLED)


def test_saves_are_bounded_in_rate() -> None:
    times: list[float] = []
    saver = SnapshotThread(lambda: times.append(time.monotonic()), every=0.1)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        saver.touch()
        time.sleep(0.005)
    saver.stop()
    after = len(times)
    saver.touch()
    time.sleep(0.15)

    assert len(times) == after
    assert 2 <= after <= 6
    assert all(later - earlier >= 0.09 for earlier, later in pairwise(times))


WRITER = """
import sys
import interlingua as il
from interlingua_sessions.session import Session
from tests.sessions.talking import registry
place, url = sys.argv[1:]
client = il.Client("fake:known", api_key="k", base_url=url, registry=registry(), retry=0)
with Session.open(place, "s", client=client).stream("hi") as stream:
    for text in stream.text_stream:
        sys.stdout.write(text)
        sys.stdout.flush()
"""


def test_a_kill_leaves_the_received_text(tmp_path: Path) -> None:
    """SIGKILL while text streams: what was received 250 ms before is there, and the session goes on."""
    piece, gap = "0123456789", 0.05
    body: list[bytes | float | None] = []
    for _ in range(200):
        body += [*sse({"t": piece}), gap]
    place = tmp_path / "s.db"
    with served(Reply(body=body), Reply()) as server:
        command = [sys.executable, "-c", WRITER, str(place), server.url]
        root = Path(__file__).resolve().parents[3]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, env=os.environ) as writer, limited(writer):
            assert writer.stdout is not None
            got: list[tuple[float, bytes]] = []
            while len(got) < 20:
                read = os.read(writer.stdout.fileno(), 65536)
                got.append((time.monotonic(), read))
            writer.send_signal(signal.SIGKILL)
            killed = time.monotonic()
        received = b"".join(data for at, data in got if at <= killed - 0.25).decode()

        with open_store(place) as store, client(server) as c:
            kept = answer(store)
            assert kept.metadata.status is il.MessageStatus.PARTIAL
            assert len(received) > 0
            assert kept.text.startswith(received)
            assert list(store.verify()) == []
            assert Session.open(store, "s", client=c).send("go on").text == "hello"
