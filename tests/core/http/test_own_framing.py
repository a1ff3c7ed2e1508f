"""A framing of a plugin's own, binary and with checksums, through both clients and every cut of the body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

import interlingua as il
from interlingua.plugins import RequestContext, WireChunk, WireResponse, hookimpl
from interlingua.types import Message, StreamEvent, Usage, UsageUpdate
from tests.support.binary_framing import FrameReader
from tests.support.fake_provider import WHOLE, Fake, Reply, registry, served

EVENTS: list[dict[str, Any]] = [{"t": "hel"}, {"t": "lo"}, {"use": [3, 2]}, {"end": "end_turn"}]


def frame(event: dict[str, Any]) -> bytes:
    return FrameReader.write(WireChunk("event", json.dumps(event).encode(), {"kind": next(iter(event))}))


FRAMES = [frame(event) for event in EVENTS]
BROKEN = FRAMES[0][:-1] + b"\0"


class Framed(Fake):
    """Notes the headers of the answer and of its chunks."""

    def __init__(self, **connection: Any) -> None:
        super().__init__(**{"framing": FrameReader, **connection})
        self.kinds: list[str] = []
        self.ids: list[str | None] = []

    @hookimpl
    async def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        self.ids.append(context.response_headers.get("x-request-mark"))

        async def seen() -> AsyncIterator[WireChunk]:
            async for chunk in response_stream:
                self.kinds.append(chunk.headers.get("kind", ""))
                yield chunk

        async for event in super().stream_response(seen(), context):
            yield event

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        self.ids.append(context.response_headers.get("x-request-mark"))
        return super().from_wire_response(response, context)


Talk = Callable[[str, Framed], tuple[list[StreamEvent], Message | il.InterlinguaError]]


def blocking(url: str, fake: Framed) -> tuple[list[StreamEvent], Message | il.InterlinguaError]:
    events: list[StreamEvent] = []
    with il.Client("fake:known", api_key="k", base_url=url, registry=registry(fake), retry=0) as client:
        try:
            with client.stream("hi") as stream:
                for event in stream:
                    events.append(event)
                return events, stream.message
        except il.InterlinguaError as error:
            return events, error


def asynchronous(url: str, fake: Framed) -> tuple[list[StreamEvent], Message | il.InterlinguaError]:
    async def talk() -> tuple[list[StreamEvent], Message | il.InterlinguaError]:
        events: list[StreamEvent] = []
        async with il.AsyncClient("fake:known", api_key="k", base_url=url, registry=registry(fake), retry=0) as client:
            try:
                async with client.stream("hi") as stream:
                    async for event in stream:
                        events.append(event)
                    return events, await stream.message
            except il.InterlinguaError as error:
                return events, error

    return asyncio.run(talk())


BOTH = pytest.mark.parametrize("talk", [blocking, asynchronous])


def run(talk: Talk, body: Sequence[bytes], **connection: Any) -> tuple[list[StreamEvent], Any, Framed]:
    fake = Framed(**connection)
    headers = {"X-Request-Mark": "m1", "X-Acme-Id": "a7", "Content-Type": "application/octet-stream"}
    with served(Reply(body=body, headers=headers)) as server:
        return (*talk(server.url, fake), fake)


@BOTH
@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_frames_are_read_at_every_cut_with_their_headers(talk: Talk, size: int) -> None:
    body = b"".join(FRAMES)
    events, message, fake = run(talk, [body[at : at + size] for at in range(0, len(body), size)])

    assert message.text == "hello"
    assert fake.kinds == ["t", "t", "use", "end"]
    assert fake.ids == ["m1"]
    assert UsageUpdate(usage=Usage(input_tokens=3, output_tokens=2)) in events


@BOTH
@pytest.mark.parametrize("apart", [False, True], ids=["in one piece", "apart"])
def test_what_came_before_a_broken_frame_is_delivered(talk: Talk, apart: bool) -> None:
    frames = [FRAMES[0], FRAMES[1], BROKEN, FRAMES[3]]
    events, error, fake = run(talk, frames if apart else [b"".join(frames)])

    assert [event.text for event in events if isinstance(event, il.TextDelta)] == ["hel", "lo"]
    assert type(error) is il.errors.MalformedResponseError
    assert "checksum" in str(error)
    assert (error.partial.text, error.partial.metadata.status, error.provider) == ("hello", "error", "fake")
    assert fake.kinds == ["t", "t"]


@BOTH
def test_any_exception_of_a_framer_is_typed(talk: Talk) -> None:
    _, error, _ = run(talk, [FRAMES[0], b"\xff" * 40])

    assert type(error) is il.errors.MalformedResponseError
    assert "error: a frame of" in str(error)  # struct's own error, which no built-in class covers


@BOTH
def test_a_body_that_ends_within_a_frame_is_an_interrupted_stream(talk: Talk) -> None:
    _, error, _ = run(talk, [FRAMES[0], FRAMES[1][:-3]])

    assert type(error) is il.errors.StreamInterruptedError
    assert "within a frame" in str(error.__cause__)
    assert error.partial.text == "hel"


@BOTH
@pytest.mark.parametrize("body", [[WHOLE], [WHOLE[:5], WHOLE[5:]], [b"\n " + WHOLE]], ids=["one", "two", "blank"])
def test_a_json_body_where_frames_were_asked_for_is_read_whole(talk: Talk, body: list[bytes]) -> None:
    events, message, fake = run(talk, body)

    assert message.text == "hello"
    assert [event.text for event in events if isinstance(event, il.TextDelta)] == ["hello"]
    assert fake.ids[-1] == "m1"


@BOTH
def test_a_json_error_where_frames_were_asked_for_is_the_services(talk: Talk) -> None:
    _, error, _ = run(talk, [b'{"error": "full"}'])

    assert (type(error), error.message) == (il.errors.OverloadedError, "full")


@BOTH
def test_a_pretty_json_body_where_lines_were_asked_for_is_read_whole(talk: Talk) -> None:
    pretty = json.dumps(json.loads(WHOLE), indent=2).encode()
    _, message, _ = run(talk, [pretty[:7], pretty[7:]], framing="ndjson")

    assert message.text == "hello"


@BOTH
def test_lines_that_begin_like_json_stay_a_stream(talk: Talk) -> None:
    lines = [json.dumps(event).encode() + b"\n" for event in EVENTS]
    events, message, _ = run(talk, lines, framing="ndjson")

    assert (message.text, len([one for one in events if isinstance(one, il.TextDelta)])) == ("hello", 2)
    _, error, _ = run(talk, [lines[0], b'{"broken\n'], framing="ndjson")
    assert isinstance(error, il.errors.MalformedResponseError)
    _, error, _ = run(talk, [b'{"error": "full"}\n'], framing="ndjson")
    assert type(error) is il.errors.OverloadedError
    _, error, _ = run(talk, [b'{"use": [1, 2]}\n'], framing="ndjson")
    assert type(error) is il.errors.StreamInterruptedError


@BOTH
def test_the_request_id_is_taken_from_the_headers_the_connection_names(talk: Talk) -> None:
    _, error, _ = run(talk, [FRAMES[0], BROKEN], request_id_headers=("x-acme-id",))
    assert error.request_id == "a7"

    _, error, _ = run(talk, [FRAMES[0]], request_id_headers=("x-acme-id",))
    assert error.request_id == "a7"


def test_the_request_id_of_a_whole_answer_and_of_an_auxiliary_one() -> None:
    fake = Framed(request_id_headers=("x-acme-id",))
    failed = Reply(status=400, body=(b"no",), headers={"x-acme-id": "a7", "request-id": "other"})
    with (
        served(failed) as server,
        il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(fake)) as client,
    ):
        for call in (lambda: client.send("hi"), client.list_models):
            with pytest.raises(il.errors.BadRequestError) as caught:
                call()
            assert caught.value.request_id == "a7"
