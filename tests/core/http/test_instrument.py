"""What plugins put around a request: when it is current, how it ends, and the events that go with it; both clients."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar, Token
from typing import Any

import pytest

import interlingua as il
from interlingua._plugins.registry import Registry
from interlingua.plugins import HttpRequest, hookimpl
from tests.support.fake_provider import STREAM, WHOLE, Fake, Reply, registry, served

CURRENT: ContextVar[str] = ContextVar("CURRENT", default="")
TWICE = il.Retry(max_attempts=2, initial_delay=0.0)
BUSY = Reply(status=503, body=[b"{}"])


class InstrumentScope:
    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.token: Token[str] | None = None

    def __enter__(self) -> None:
        assert self.token is None, "entered twice"
        self.token = CURRENT.set("ours")

    def __exit__(self, *error: object) -> None:
        assert self.token is not None
        CURRENT.reset(self.token)
        self.token = None
        self.tracer.stretches += 1

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        self.tracer.ends.append((result, error, facts))


class Tracer:
    """Makes a scope for each request and keeps all it is told."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, Mapping[str, Any]]] = []
        self.ends: list[tuple[Any, BaseException | None, Mapping[str, Any]]] = []
        self.events: list[Mapping[str, Any]] = []
        self.stretches = 0

    @hookimpl
    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentScope:
        self.begun.append((kind, facts))
        return InstrumentScope(self)

    @hookimpl
    def observe(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)


class Signing(Fake):
    """Notes what is current when a request is signed, which is just before it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    @hookimpl
    def connection(self, settings: Any) -> Any:
        def sign(_outgoing: HttpRequest, _secret: Any) -> dict[str, str]:
            self.seen.append(CURRENT.get())
            return {}

        return il.plugins.Connection(base_url=settings.base_url, sign=sign)


def ask(
    blocking: bool, url: str, found: Registry, *, stream: bool = False, leave_after: int | None = None
) -> il.Message | None:
    """Send once, read a stream whole or leave it after some events; nothing is current where the caller is."""
    settings: dict[str, Any] = {"registry": found, "base_url": url, "api_key": "k", "environ": {}, "retry": TWICE}

    def look(number: int) -> bool:
        assert CURRENT.get() == ""
        return number == leave_after

    async def asked() -> il.Message | None:
        async with il.AsyncClient("fake:known", **settings) as c:
            if not stream:
                return await c.send("hi")
            async with c.stream("hi") as events:
                number = 0
                async for _ in events:
                    number += 1
                    if look(number):
                        break
                else:
                    return await events.message
            return events.partial

    if not blocking:
        return asyncio.run(asked())
    with il.Client("fake:known", **settings) as c:
        if not stream:
            return c.send("hi")
        with c.stream("hi") as events:
            for number, _ in enumerate(events, 1):
                if look(number):
                    break
            else:
                return events.message
        return events.partial


@pytest.fixture(params=[True, False], ids=["blocking", "async"])
def blocking(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_whole_answer_is_sent_inside_and_ends_with_its_message(blocking: bool) -> None:
    tracer, fake = Tracer(), Signing()
    with served(BUSY, Reply()) as server:
        message = ask(blocking, server.url, registry(fake, [tracer]))

    assert fake.seen == ["ours", "ours"]
    [(kind, facts)] = tracer.begun
    assert (kind, facts["provider"], facts["model"], facts["base_url"]) == ("chat", "fake", "known", server.url)
    assert [one.text for one in facts["messages"]] == ["hi"]
    [(result, error, ended)] = tracer.ends
    assert (result, error, ended["attempts"], ended["stream"]) == (message, None, 2, False)
    assert ended["duration_s"] > 0
    assert ended["first_event_s"] is None
    assert tracer.stretches >= 1


def test_a_stream_is_current_for_each_read_and_never_for_the_caller(blocking: bool) -> None:
    tracer = Tracer()
    with served(Reply(body=[step for piece in STREAM for step in (piece, 0.1)])) as server:
        message = ask(blocking, server.url, registry(plugins=[tracer]), stream=True)

    [(result, error, ended)] = tracer.ends
    assert (result, error) == (message, None)
    assert 0 < ended["first_event_s"] <= ended["duration_s"]
    assert tracer.stretches >= len(STREAM)


def test_a_stream_that_is_left_ends_cancelled(blocking: bool) -> None:
    tracer = Tracer()
    with served(Reply(body=[STREAM[0], 0.2, *STREAM[1:]])) as server:
        ask(blocking, server.url, registry(plugins=[tracer]), stream=True, leave_after=1)

    [(result, error, _)] = tracer.ends
    assert (result.metadata.status, result.text, error) == ("cancelled", "hel", None)


@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_ends_with_its_error(blocking: bool, stream: bool) -> None:
    tracer = Tracer()
    with served(BUSY) as server, pytest.raises(il.errors.OverloadedError) as raised:
        ask(blocking, server.url, registry(plugins=[tracer]), stream=stream)

    [(_, error, ended)] = tracer.ends
    assert (error, ended["attempts"]) == (raised.value, 2)


def test_a_broken_stream_ends_with_what_was_received(blocking: bool) -> None:
    tracer = Tracer()
    with served(Reply(body=[STREAM[0], None])) as server, pytest.raises(il.errors.StreamInterruptedError) as raised:
        ask(blocking, server.url, registry(plugins=[tracer]), stream=True)

    [(result, error, _)] = tracer.ends
    assert (result.text, error) == ("hel", raised.value)


def test_a_request_that_cannot_be_written_ends_too(blocking: bool) -> None:
    class Refuses(Fake):
        @hookimpl
        def to_wire(self, messages: Any, tools: Any, options: Any) -> Any:
            raise il.errors.CapabilityError("no", path="messages")

    tracer = Tracer()
    with pytest.raises(il.errors.CapabilityError) as raised:
        ask(blocking, "http://nowhere.test", registry(Refuses(), [tracer]))

    [(result, error, ended)] = tracer.ends
    assert (result, error, ended["attempts"], ended["losses"]) == (None, raised.value, 0, ())


def test_a_cancelled_task_ends_its_request() -> None:
    tracer = Tracer()

    async def cancelled(url: str) -> None:
        settings: dict[str, Any] = {"base_url": url, "api_key": "k", "environ": {}}
        async with il.AsyncClient("fake:known", registry=registry(plugins=[tracer]), **settings) as c:
            await c.send("hi")
            task = asyncio.create_task(c.send("hi"))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with served(Reply(), Reply(wait=1.0)) as server:
        asyncio.run(cancelled(server.url))

    assert [type(error) for _, error, _ in tracer.ends] == [type(None), asyncio.CancelledError]


def test_a_stream_that_is_collected_ends() -> None:
    tracer = Tracer()
    with served(Reply(body=[*STREAM[:1], 0.2, *STREAM[1:]])) as server:
        settings: dict[str, Any] = {"base_url": server.url, "api_key": "k", "environ": {}}
        with il.Client("fake:known", registry=registry(plugins=[tracer]), **settings) as c:
            stream = c.stream("hi").__enter__()
            next(iter(stream))
            del stream
            gc.collect()

            assert [result.metadata.status for result, _, _ in tracer.ends] == ["cancelled"]


def test_events_hold_plain_values(blocking: bool) -> None:
    tracer = Tracer()
    with served(BUSY, Reply(body=STREAM)) as server:
        message = ask(blocking, server.url, registry(plugins=[tracer]), stream=True)

    assert message is not None
    first, second, last = json.loads(json.dumps(tracer.events))
    for number, sent in enumerate((first, second), 1):
        assert (sent["type"], sent["attempt"], sent["url"]) == ("request.sent", number, f"{server.url}/say")
    assert (last["type"], last["status"], last["stop_reason"]) == ("answer.received", "complete", "end_turn")
    assert (last["usage"]["input_tokens"], last["usage"]["output_tokens"]) == (3, 2)
    assert (last["attempts"], last["message_id"], last["error"], last["losses"]) == (2, message.id, None, [])


def test_a_scope_that_fails_is_logged_and_stops_nothing(blocking: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Fails:
        @hookimpl
        def instrument(self, kind: str, facts: Any) -> Any:
            raise RuntimeError("no scope")

    class FailsLater:
        @hookimpl
        def instrument(self, kind: str, facts: Any) -> Any:
            return object()

    tracer = Tracer()
    with caplog.at_level(logging.WARNING, "interlingua"), served(Reply(body=[WHOLE])) as server:
        assert ask(blocking, server.url, registry(plugins=[Fails()])) is not None
        assert ask(blocking, server.url, registry(plugins=[FailsLater(), tracer])) is not None

    assert len(tracer.ends) == 1
    assert "a plugin failed in instrument chat" in caplog.text


def test_two_plugins_are_left_in_the_order_opposite_to_entering() -> None:
    order: list[str] = []

    class Noted:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            order.append(f"+{self.name}")

        def __exit__(self, *error: object) -> None:
            order.append(f"-{self.name}")

        def end(self, *_told: Any) -> None:
            pass

    def plugin(name: str) -> Any:
        class Plugin:
            @hookimpl
            def instrument(self, kind: str, facts: Any) -> Noted:
                return Noted(name)

        return Plugin()

    activity = Registry([plugin("a"), plugin("b")], entry_points=[]).instrument("chat", {})
    assert activity is not None
    with activity:
        assert len(order) == 2

    assert [one[1] for one in order[:2]] == [one[1] for one in reversed(order[2:])]


@pytest.mark.parametrize("observes", [False, True])
def test_without_a_plugin_that_answers_nothing_is_put_around(observes: bool) -> None:
    class Observer:
        @hookimpl
        def observe(self, event: Any) -> None:
            pass

    found = Registry([Observer()] if observes else [], entry_points=[])
    assert found.instrument("chat", {}) is None
