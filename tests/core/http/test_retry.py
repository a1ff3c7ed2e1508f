"""Trying again: the rule, and what the client does with it over a real connection (field case 26).

Expected waits come from the case and from RFC 9110 §10.2.3 (Retry-After).
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

import interlingua as il
from tests.support.fake_provider import STREAM, Reply, Server, registry, served, sse
from tests.support.retry_waits import without_waiting


def client(server: Server, waits: list[float], **more: object) -> il.Client:
    made = il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(), **more)  # type: ignore[arg-type]
    return without_waiting(made, waits.append)


def limited(**headers: str) -> Reply:
    return Reply(
        status=429, body=[b"slow down"], headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry_after": "7"}, 7, 7),
        ({"retry_after_ms": "1500"}, 1.5, 1.5),
        ({"retry_after": "in 50 s"}, 20, 50),
        ({}, 0.375, 0.5),
    ],
)
def test_case_26_retry_after_is_honoured(headers: dict[str, str], low: float, high: float) -> None:
    waits: list[float] = []
    if headers.get("retry_after") == "in 50 s":  # an HTTP date, counted from now
        headers = {"retry_after": format_datetime(datetime.now(UTC) + timedelta(seconds=50), usegmt=True)}
    with served(limited(**headers), Reply()) as server, client(server, waits) as c:
        assert c.send("hi").text == "hello"

    assert len(waits) == 1
    assert low <= waits[0] <= high


def test_case_26_a_wait_over_the_cap_raises_the_typed_error_at_once() -> None:
    waits: list[float] = []
    with served(limited(retry_after="3600")) as server, client(server, waits) as c:
        with pytest.raises(il.errors.RateLimitError) as caught:
            c.send("hi")
        assert len(server.got) == 1

    assert (waits, caught.value.retry_after, caught.value.status) == ([], 3600, 429)
    assert (caught.value.provider, caught.value.model) == ("fake", "known")


@pytest.mark.parametrize(
    ("status", "should", "attempts"), [(500, None, 3), (500, "false", 1), (400, None, 1), (400, "true", 3)]
)
def test_the_status_and_x_should_retry_decide(status: int, should: str | None, attempts: int) -> None:
    reply = Reply(status=status, body=[b"no"], headers={"x-should-retry": should} if should else {})
    with served(reply) as server, client(server, []) as c:
        with pytest.raises(il.ProviderError):
            c.send("hi")
        assert len(server.got) == attempts


def test_a_connection_cut_before_any_byte_is_tried_again() -> None:
    with served(Reply(cut=True), Reply()) as server, client(server, []) as c:
        assert c.send("hi").text == "hello"
        assert len(server.got) == 2


def test_a_stream_is_tried_again_until_its_first_event() -> None:
    replies = [limited(), Reply(cut=True), Reply(body=sse({"error": "busy"})), Reply(body=[None]), Reply(body=STREAM)]
    with served(*replies) as server, client(server, [], retry=4) as c, c.stream("hi") as stream:
        assert stream.message.text == "hello"
    assert len(server.got) == 5


def test_a_stream_that_gave_an_event_is_never_tried_again() -> None:
    reply = Reply(body=[*sse({"t": "hel"}), 0.05, *sse({"error": "busy"})])
    with served(reply) as server, client(server, []) as c, c.stream("hi") as stream:
        with pytest.raises(il.errors.OverloadedError) as caught:
            list(stream)
        assert caught.value.retryable
        assert caught.value.partial.text == "hel"
    assert len(server.got) == 1


def test_waits_double_up_to_the_maximum_and_jitter_only_shortens(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = il.Retry(max_attempts=9, initial_delay=1, max_delay=5, jitter=0.5)
    error = il.errors.ServerError("no")
    monkeypatch.setattr(random, "random", lambda: 0.0)
    assert [rule.delay(error, attempt) for attempt in range(1, 5)] == [1, 2, 4, 5]
    monkeypatch.setattr(random, "random", lambda: 1.0)
    assert rule.delay(error, 1) == 0.5
    assert rule.delay(error, 9) is None
    assert rule.delay(il.errors.BadRequestError("no"), 1) is None


def test_a_number_is_how_many_times_to_try_again() -> None:
    with served(Reply(status=500)) as server, client(server, [], retry=0) as c:
        with pytest.raises(il.errors.ServerError):
            c.send("hi")
        assert len(server.got) == 1


def test_no_wait_goes_past_the_total() -> None:
    with served(limited(retry_after="30")) as server, client(server, [], timeout=2) as c:
        with pytest.raises(il.errors.RateLimitError):
            c.send("hi")
        assert len(server.got) == 1


def test_ctrl_c_ends_a_wait() -> None:
    with served(limited(retry_after="30")) as server, client(server, []) as c:

        def interrupted(_seconds: float) -> None:
            raise KeyboardInterrupt

        without_waiting(c, interrupted)
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            c.send("hi")
    assert time.monotonic() - begun < 5
