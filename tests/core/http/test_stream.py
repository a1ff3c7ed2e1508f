"""`MessageStream` over a real connection: events, the message, and every way a stream can end.

The wire is the made-up one of tests/support.
"""


# ruff: noqa: SIM117  a server, its client and the failure are three things

from __future__ import annotations

import asyncio
import json
import sys
from threading import Timer

import pytest

import interlingua as il
from tests.support.fake_provider import STREAM, WHOLE, Reply, Server, registry, served, sse


def client(server: Server, **more: object) -> il.Client:
    more.setdefault("retry", 0)
    return il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(), **more)  # type: ignore[arg-type]


def test_events_then_the_message() -> None:
    with served(Reply(body=STREAM)) as server, client(server) as c, c.stream("hi") as stream:
        kinds = [event.type for event in stream]
        message = stream.message

    assert kinds == ["text_delta", "text_delta", "usage_update", "message_complete"]
    assert message.text == "hello"
    assert message.metadata.status is il.MessageStatus.COMPLETE
    assert message.metadata.usage is not None
    assert (message.metadata.usage.input_tokens, message.metadata.usage.output_tokens) == (3, 2)
    assert message.metadata.usage.latency_ms is not None
    assert stream.request.stream


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_any_chunking_gives_the_same_text(size: int) -> None:
    data = b"".join(STREAM)
    body = [data[at : at + size] for at in range(0, len(data), size)]
    with served(Reply(body=body)) as server, client(server) as c, c.stream("hi") as stream:
        assert list(stream.text_stream) == ["hel", "lo"]


def test_reading_the_message_first_waits_for_the_rest() -> None:
    with served(Reply(body=STREAM)) as server, client(server) as c, c.stream("hi") as stream:
        assert next(iter(stream)) == il.TextDelta(index=0, text="hel")
        assert stream.partial.metadata.status is il.MessageStatus.PARTIAL
        assert stream.message.text == "hello"
        assert stream.partial is stream.message


def test_a_cut_connection_keeps_the_text_and_is_no_good_end() -> None:
    reply = Reply(body=[*sse({"t": "hel"}), 0.05, None])
    with served(reply) as server, client(server) as c, c.stream("hi") as stream:
        events: list[il.StreamEvent] = []
        with pytest.raises(il.errors.StreamInterruptedError) as caught:
            events.extend(iter(lambda: next(iter(stream)), None))
        assert events[0] == il.TextDelta(index=0, text="hel")
        assert isinstance(events[-1], il.types.ErrorEvent)
        assert caught.value.partial.text == "hel"
        assert caught.value.partial.metadata.status is il.MessageStatus.ERROR
        with pytest.raises(il.errors.StreamInterruptedError):
            _ = stream.message


def test_case_16_an_end_without_the_terminal_event_is_an_interruption() -> None:
    reply = Reply(body=sse({"t": "hel"}))
    with served(reply) as server, client(server) as c, c.stream("hi") as stream:
        with pytest.raises(il.errors.StreamInterruptedError) as caught:
            _ = stream.message
        assert caught.value.partial.text == "hel"


def test_a_cut_after_the_terminal_event_takes_nothing_away() -> None:
    with served(Reply(body=[*STREAM, 0.05, None])) as server, client(server) as c, c.stream("hi") as stream:
        assert stream.message.metadata.status is il.MessageStatus.COMPLETE


def test_a_failing_status_raises_on_entering_with_its_body() -> None:
    reply = Reply(status=401, body=[b"who are you"], headers={"request-id": "r1"})
    with (
        served(reply) as server,
        client(server) as c,
        pytest.raises(il.errors.AuthenticationError) as caught,
        c.stream("hi"),
    ):
        pass
    assert (caught.value.body, caught.value.request_id) == (b"who are you", "r1")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_one_json_body_instead_of_a_stream_is_read_whole(kind: str) -> None:
    reply = Reply(body=[b"\n ", WHOLE[:9], WHOLE[9:]], headers={"content-type": kind})
    with served(reply) as server, client(server) as c, c.stream("hi") as stream:
        assert list(stream.text_stream) == ["hello"]
        assert stream.message.metadata.stop_reason is il.StopReason.END_TURN


def test_events_called_json_are_events_all_the_same() -> None:
    reply = Reply(body=STREAM, headers={"content-type": "application/json"})
    with served(reply) as server, client(server) as c, c.stream("hi") as stream:
        assert list(stream.text_stream) == ["hel", "lo"]


def test_case_15_an_error_in_one_json_body_is_typed() -> None:
    reply = Reply(body=[json.dumps({"error": "busy"}).encode()])
    with (
        served(reply) as server,
        client(server) as c,
        pytest.raises(il.errors.OverloadedError, match="busy"),
        c.stream("hi"),
    ):
        pass


def test_leaving_early_keeps_a_cancelled_message() -> None:
    reply = Reply(body=[*sse({"t": "hel"}), 0.2, *STREAM[1:]])
    with served(reply) as server, client(server) as c:
        with c.stream("hi") as stream:
            for _ in stream:
                break
        assert stream.message.text == "hel"
        assert stream.message.metadata.status is il.MessageStatus.CANCELLED


def interrupt(stream: il.MessageStream) -> None:
    for _ in stream:
        raise KeyboardInterrupt


def test_ctrl_c_in_the_loop_keeps_a_cancelled_message() -> None:
    with served(Reply(body=[*sse({"t": "hel"}), 0.2, *STREAM[1:]])) as server, client(server) as c:
        stream = c.stream("hi")
        with pytest.raises(KeyboardInterrupt), stream:
            interrupt(stream)
    assert stream.partial.text == "hel"
    assert stream.partial.metadata.status is il.MessageStatus.CANCELLED


def test_ctrl_c_while_waiting_keeps_a_cancelled_message(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [STREAM[0]]

    async def interrupted(answer: object) -> bytes:
        if not pieces:
            raise KeyboardInterrupt
        return pieces.pop()

    monkeypatch.setattr("interlingua._http.body.ReplyBody.__anext__", interrupted)
    with served(Reply(body=STREAM)) as server, client(server) as c:
        stream = c.stream("hi")
        with pytest.raises(KeyboardInterrupt), stream:
            list(stream)
    assert stream.message.text == "hel"
    assert stream.message.metadata.status is il.MessageStatus.CANCELLED


def test_cancel_between_events() -> None:
    with served(Reply(body=[STREAM[0], 0.2, *STREAM[1:]])) as server, client(server) as c, c.stream("hi") as stream:
        for event in stream:
            assert event == il.TextDelta(index=0, text="hel")
            stream.cancel()
        assert stream.message.metadata.status is il.MessageStatus.CANCELLED
        assert stream.message.text.startswith("hel")


def test_cancel_from_another_thread_wakes_a_read() -> None:
    with served(Reply(body=[*sse({"t": "hel"}), 0.4, 0.4, *STREAM[1:]])) as server, client(server) as c:
        with c.stream("hi") as stream:
            timer = Timer(0.1, stream.cancel)
            timer.start()
            assert [event.type for event in stream] == ["text_delta"]
            timer.join()
        assert stream.message.metadata.status is il.MessageStatus.CANCELLED


def test_batches_hold_the_same_events_as_the_stream() -> None:
    with served(Reply(body=STREAM), Reply(body=STREAM)) as server, client(server) as c:
        with c.stream("hi") as one, c.stream("hi") as other:
            events = [event for events in other.batches() for event in events]
            assert [*map(type, events)] == [*map(type, one)]
        assert other.message.metadata.status is il.MessageStatus.COMPLETE


def test_leaving_after_the_terminal_event_is_no_cancellation() -> None:
    with served(Reply(body=STREAM)) as server, client(server) as c:
        with c.stream("hi") as stream:
            for event in stream:
                if isinstance(event, il.MessageComplete):
                    break
        assert stream.message.metadata.status is il.MessageStatus.COMPLETE


def test_a_stream_must_be_entered() -> None:
    with served(Reply(body=STREAM)) as server, client(server) as c:
        with pytest.raises(il.CallerError, match="with statement"):
            list(c.stream("hi"))


def test_a_blocking_client_inside_an_event_loop_leaves_the_loop_no_generator() -> None:
    seen: list[object] = []

    async def main(server: Server) -> il.Message:
        before = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=seen.append)
        try:
            with client(server) as c:
                assert c.send("hi").text == "hello"
                with c.stream("hi") as left:
                    next(iter(left))
                with c.stream("hi") as stream:
                    return stream.message
        finally:
            sys.set_asyncgen_hooks(*before)

    with served(Reply(), Reply(body=STREAM), Reply(body=STREAM)) as server:
        assert asyncio.run(main(server)).text == "hello"
    assert not seen


def test_cancel_while_the_first_event_is_awaited_keeps_a_cancelled_message() -> None:
    with served(Reply(body=[5.0, *STREAM])) as server, client(server) as c:
        stream = c.stream("hi")
        timer = Timer(0.2, stream.cancel)
        timer.start()
        with stream:
            assert list(stream) == []
        timer.join()
    assert stream.message.metadata.status is il.MessageStatus.CANCELLED
    assert len(server.got) == 1
