"""Answers that come later, over a real connection: waiting, other addresses, usage, cancelling, taking up again."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import attrs
import httpx
import pytest
import trio

import interlingua as il
from interlingua import codec
from interlingua._http.signing import sign_request
from interlingua._plugins.hookspecs import hookimpl
from interlingua.errors import APIConnectionError, APITimeoutError, CallerError, PluginError, ServerError
from interlingua.plugins import Connection, FollowUp, RequestContext, WireRequest, WireResponse
from interlingua.types.messages import Message, MessageStatus
from tests.support.fake_provider import STREAM, Fake, Got, Reply, Server, registry, served
from tests.support.retry_waits import without_waiting

ANSWER = {"id": "j1", "status": "succeeded", "say": "hello", "end": "end_turn"}
COUNTED = ANSWER | {"in": 3, "out": 2}


class Later(Fake):
    """A provider whose answers are jobs; `usage` is True if a job's counts are in another request."""

    def __init__(self, usage: bool = False, after: float = 0.01, **connection: Any) -> None:
        super().__init__(**connection)
        self.usage, self.after = usage, after

    @hookimpl
    def to_wire(self, messages: Any, tools: Any, options: Any) -> WireRequest:
        wire = super().to_wire(messages, tools, options)
        return attrs.evolve(wire, path="/jobs", stream=False, echo={"streamed": options.stream})

    @hookimpl
    def follow_up(self, response: WireResponse, context: RequestContext) -> FollowUp | None:
        job = json.loads(response.body)
        if job["status"] == "failed":
            raise ServerError("the job failed", status=response.status)
        if job["status"] == "succeeded":
            return None

        def ask(place: str, method: str = "GET", *, stream: bool = False) -> WireRequest:
            return WireRequest(method=method, path=place, body=b"", api="say", stream=stream, echo={"polled": True})

        cancel = ask("/jobs/j1/cancel", "POST")
        if context.echo["streamed"]:
            usage = ask("/jobs/j1") if self.usage else None
            return FollowUp(request=ask(job["urls"]["stream"], stream=True), cancel=cancel, usage=usage)
        return FollowUp(request=ask(job["urls"]["get"]), after=self.after, cancel=cancel)


class Jobs:
    """The service: a job runs for `polls` requests; `replies` answer chosen requests instead, once each."""

    def __init__(self, polls: int = 3, streamed: Reply | None = None, **replies: Reply) -> None:
        self.polls, self.url, self.replies = polls, "", replies
        self.streamed = streamed or Reply(body=STREAM)
        self.asked: list[str] = []

    def __call__(self, got: Got) -> Reply:
        self.asked.append(got.path)
        assert got.headers["x-key"] == "-", "every request is signed"
        if (reply := self.replies.pop(got.path.replace("/jobs/", "").strip("/"), None)) is not None:
            return reply
        if got.path == "/jobs":
            return self.job("starting", status=201)
        if got.path == "/stream/j1":
            return self.streamed
        if got.path.endswith("/cancel"):
            return self.job("cancelled")
        self.polls -= 1
        return Reply(body=(json.dumps(COUNTED).encode(),)) if self.polls <= 0 else self.job("processing")

    def job(self, state: str, status: int = 200) -> Reply:
        urls = {"get": f"{self.url}/jobs/j1", "stream": f"{self.url}/stream/j1"}
        return Reply(status=status, body=(json.dumps({"id": "j1", "status": state, "urls": urls}).encode(),))

    @property
    def created(self) -> int:
        return self.asked.count("/jobs")

    @property
    def cancelled(self) -> int:
        return self.asked.count("/jobs/j1/cancel")


Run = Callable[..., Any]


def blocking(url: str, fake: Fake, work: str, *given: Any, **more: Any) -> Any:
    with il.Client("fake:known", base_url=url, registry=registry(fake), **{"api_key": "-", **more}) as client:
        if work == "stream":
            with client.stream("x") as stream:
                return [type(event).__name__ for event in stream], stream.message
        return getattr(client, work)(*given or ("x",))


def asynchronous(url: str, fake: Fake, work: str, *given: Any, **more: Any) -> Any:
    async def run() -> Any:
        async with il.AsyncClient(
            "fake:known", base_url=url, registry=registry(fake), **{"api_key": "-", **more}
        ) as client:
            if work == "stream":
                async with client.stream("x") as stream:
                    return [type(event).__name__ async for event in stream], await stream.message
            return await getattr(client, work)(*given or ("x",))

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("run", [blocking, asynchronous])


@contextmanager
def service(jobs: Jobs) -> Iterator[Server]:
    with served(choose=jobs) as server:
        jobs.url = server.url
        yield server


def client(server: Server, fake: Fake) -> il.Client:
    return il.Client("fake:known", api_key="-", base_url=server.url, registry=registry(fake))


@BOTH
def test_a_job_is_created_once_and_asked_for_until_it_is_done(run: Run) -> None:
    with service(jobs := Jobs()) as server:
        message = run(server.url, Later(), "send")

    assert (message.text, message.metadata.usage.output_tokens) == ("hello", 2)
    assert jobs.asked == ["/jobs", *["/jobs/j1"] * 3]
    assert message.metadata.provider_raw is None, "a complete message holds nothing to follow"


@BOTH
@pytest.mark.parametrize("fault", [Reply(status=500), Reply(status=429), Reply(cut=True), Reply(body=(b'{"id"', None))])
def test_a_failed_attempt_repeats_the_follow_up_and_never_the_creation(run: Run, fault: Reply) -> None:
    with service(jobs := Jobs(j1=fault)) as server:
        message = run(server.url, Later(), "send", retry=il.Retry(initial_delay=0.01))

    assert (message.text, jobs.created, jobs.cancelled) == ("hello", 1, 0)
    assert jobs.asked.count("/jobs/j1") == 4


@BOTH
def test_a_job_that_failed_is_neither_asked_for_again_nor_created_again(run: Run) -> None:
    failed = Reply(body=(json.dumps({"status": "failed"}).encode(),))
    with service(jobs := Jobs(j1=failed)) as server, pytest.raises(ServerError, match="the job failed"):
        run(server.url, Later(), "send")

    assert jobs.asked == ["/jobs", "/jobs/j1"]


@BOTH
@pytest.mark.parametrize("work", ["send", "stream"])
def test_a_time_limit_cancels(run: Run, work: str) -> None:
    slow = Jobs(polls=10**6, streamed=Reply(body=[b"data: {}\n\n", 3.0, b"data: {}\n\n"]))
    with service(slow) as server, pytest.raises(APITimeoutError, match=r"time of the call ends|total=0\.5") as caught:
        run(server.url, Later(after=0.05), work, timeout=0.5)

    assert (slow.created, slow.cancelled) == (1, 1)
    assert caught.value.partial is not None


@BOTH
def test_a_wait_beyond_the_time_limit_is_not_begun(run: Run) -> None:
    began = time.monotonic()
    with service(jobs := Jobs()) as server, pytest.raises(APITimeoutError):
        run(server.url, Later(after=60.0), "send", timeout=5.0)

    assert jobs.asked == ["/jobs", "/jobs/j1/cancel"]
    assert time.monotonic() - began < 4


@BOTH
def test_a_stream_at_another_address(run: Run) -> None:
    with service(jobs := Jobs()) as server:
        events, message = run(server.url, Later(), "stream")

    assert events.count("TextDelta") == 2
    assert events[-1] == "MessageComplete"
    assert (message.text, jobs.asked) == ("hello", ["/jobs", "/stream/j1"])


@BOTH
def test_the_usage_is_in_another_request(run: Run) -> None:
    bare = Reply(body=[STREAM[0], STREAM[1], STREAM[3]])
    with service(jobs := Jobs(polls=1, streamed=bare)) as server:
        _, message = run(server.url, Later(usage=True), "stream")

    assert jobs.asked == ["/jobs", "/stream/j1", "/jobs/j1"]
    assert (message.metadata.usage.input_tokens, message.metadata.usage.output_tokens) == (3, 2)


@BOTH
@pytest.mark.parametrize("fault", [Reply(status=500), Reply(cut=True), Reply(body=(b"{}",))])
def test_an_answer_is_returned_though_its_usage_cannot_be_read(run: Run, fault: Reply) -> None:
    with service(Jobs(j1=fault)) as server:
        _, message = run(server.url, Later(usage=True), "stream")

    assert (message.text, message.metadata.status) == ("hello", MessageStatus.COMPLETE)
    assert message.metadata.usage.output_tokens == 2, "what the stream said is kept"


def test_leaving_a_stream_cancels_the_job() -> None:
    with service(jobs := Jobs(streamed=Reply(body=[STREAM[0], 2.0, *STREAM[1:]]))) as server:
        with client(server, Later()) as ours, ours.stream("x") as stream:
            assert next(iter(stream)).text == "hel"
        assert (stream.message.metadata.status, jobs.cancelled) == (MessageStatus.CANCELLED, 1)


@pytest.mark.parametrize("loop", [asyncio.run, trio.run])
@pytest.mark.parametrize("work", ["send", "stream"])
def test_a_cancelled_task_cancels_the_job(loop: Any, work: str) -> None:
    async def run(url: str) -> None:
        async with il.AsyncClient("fake:known", api_key="-", base_url=url, registry=registry(Later())) as client:
            with anyio.move_on_after(0.4):
                if work == "send":
                    await client.send("x")
                else:
                    async with client.stream("x") as stream:
                        await stream.message

    slow = Jobs(polls=10**6, streamed=Reply(body=[STREAM[0], 3.0, *STREAM[1:]]))
    with service(slow) as server:
        loop(run, server.url) if loop is trio.run else loop(run(server.url))
    assert (slow.created, slow.cancelled) == (1, 1)


def test_leaving_a_single_attempt_cancels_the_job() -> None:
    async def run(url: str) -> None:
        async with il.AsyncClient("fake:known", api_key="-", base_url=url, registry=registry(Later())) as ours:
            exchange = await ours.prepare("x")
            with anyio.move_on_after(0.4):
                await ours.attempt(exchange)

    with service(jobs := Jobs(polls=10**6)) as server:
        asyncio.run(run(server.url))
    assert (jobs.created, jobs.cancelled) == (1, 1)


@pytest.mark.parametrize("status", [401, 503])
def test_attempts_one_by_one_repeat_the_follow_up(status: int) -> None:
    with service(jobs := Jobs(j1=Reply(status=status))) as server, client(server, Later()) as ours:
        exchange = ours.prepare("x")
        with pytest.raises(il.errors.ProviderError):
            ours.attempt(exchange)
        assert ours.attempt(exchange).text == "hello"
    assert (jobs.created, jobs.cancelled) == (1, 0)


def test_cancelling_from_another_thread_ends_the_waiting() -> None:
    jobs = Jobs(polls=10**6)

    class Whole(Later):
        @hookimpl
        def follow_up(self, response: WireResponse, context: RequestContext) -> FollowUp | None:
            return Later.follow_up(self, response, attrs.evolve(context, echo={"streamed": False}))

    with service(jobs) as server, client(server, Whole()) as ours:
        stream = ours.stream("x")
        threading.Timer(0.3, stream.cancel).start()
        with stream:
            assert list(stream) == []
        assert stream.message.metadata.status is MessageStatus.CANCELLED
    assert (jobs.created, jobs.cancelled) == (1, 1)


@BOTH
def test_a_stream_whose_answer_is_whole_is_read_as_events(run: Run) -> None:
    done = Reply(status=201, body=(json.dumps(COUNTED).encode(),))
    with service(jobs := Jobs(jobs=done)) as server:
        events, message = run(server.url, Later(), "stream")

    assert (message.text, events[-1], jobs.asked) == ("hello", "MessageComplete", ["/jobs"])


@BOTH
def test_an_answer_is_taken_up_again_by_another_client(run: Run) -> None:
    with service(jobs := Jobs()) as server:
        pending = run(server.url, Later(), "start")
        assert (pending.metadata.status, pending.content, jobs.asked) == (MessageStatus.PARTIAL, (), ["/jobs"])
        stored = codec.loads_message(codec.dumps_message(pending))
        message = run(server.url, Later(), "resume", stored)

    assert (message.text, message.id, message.session_id) == ("hello", pending.id, pending.session_id)
    assert message.metadata.usage.output_tokens == 2
    assert (jobs.created, jobs.cancelled) == (1, 0)


@BOTH
def test_start_returns_an_answer_that_is_there(run: Run) -> None:
    done = Reply(body=(json.dumps(COUNTED).encode(),))
    with service(Jobs(jobs=done)) as server:
        message = run(server.url, Later(), "start")
        with pytest.raises(CallerError, match="nothing follows"):
            run(server.url, Later(), "resume", message)

    assert (message.text, message.metadata.status) == ("hello", MessageStatus.COMPLETE)


@BOTH
def test_an_error_holds_what_resume_needs(run: Run) -> None:
    with service(jobs := Jobs(j1=Reply(status=503))) as server:
        with pytest.raises(il.errors.ProviderError) as caught:
            run(server.url, Later(), "send", retry=0)
        message = run(server.url, Later(), "resume", caught.value.partial)

    assert (message.text, jobs.created, jobs.cancelled) == ("hello", 1, 0)


@BOTH
def test_a_stream_that_broke_is_read_again_from_its_address(run: Run) -> None:
    broken = Reply(body=[STREAM[0], 0.1, None])
    with service(jobs := Jobs(streamed=broken)) as server:
        with pytest.raises(il.errors.InterlinguaError) as caught:
            run(server.url, Later(), "stream", retry=0)
        assert caught.value.partial.text == "hel"
        jobs.streamed = Reply(body=STREAM)
        message = run(server.url, Later(), "resume", caught.value.partial)

    assert (message.text, jobs.created, jobs.cancelled) == ("hello", 1, 0)
    assert message.metadata.usage.output_tokens == 2


SIGNED = Connection(base_url="https://api.acme.example/v1", hosts=("api.acme.example", "*.stream.acme.example"))
HOME = "https://api.acme.example/v1/jobs/1"


@pytest.mark.parametrize(
    "place", ["/jobs/1", HOME, "https://eu.stream.acme.example/1", "https://api.acme.example:443/1"]
)
def test_addresses_of_the_service_are_signed(place: str) -> None:
    wire = WireRequest(method="GET", path=place, body=b"", api="say")
    assert sign_request(SIGNED, wire, {}, follows=True).url in (place, SIGNED.base_url + place)


@pytest.mark.parametrize(
    "place",
    [
        "https://evil.example/v1/jobs/1",
        "http://api.acme.example/v1/jobs/1",
        "https://api.acme.example:8443/v1/jobs/1",
        "https://api.acme.example@evil.example/1",
        "https://key@api.acme.example/1",
        "https://evil.example\\@api.acme.example/1",
        "https://api.acme.example.evil.example/1",
        "https://a.b.stream.acme.example/1",
        "https://evil.example/.stream.acme.example/1",
        "//evil.example/1\n",
        "@evil.example/1",
        ".evil.example/1",
        "ftp://api.acme.example/1",
        "https:///1",
        "https://api.acme.example./1",
        "https://\uff41pi.acme.example/1",
    ],
)
def test_no_key_is_sent_to_an_address_of_another_host(place: str) -> None:
    def auth(_request: WireRequest) -> Mapping[str, str]:
        raise AssertionError("the key was asked for")

    wire = WireRequest(method="GET", path=place, body=b"", api="say")
    connection = attrs.evolve(SIGNED, auth=auth)
    if place.startswith((".", "@")):
        connection = attrs.evolve(connection, base_url="https://api.acme.example")
    with pytest.raises(PluginError, match="not a host of this service"):
        sign_request(connection, wire, {}, follows=True)


def test_a_proxy_is_not_left_for_the_service() -> None:
    wire = WireRequest(method="GET", path=HOME, body=b"", api="say")
    with pytest.raises(PluginError, match="not a host of this service"):
        sign_request(attrs.evolve(SIGNED, base_url="https://proxy.example/v1"), wire, {}, follows=True)


@BOTH
def test_a_foreign_host_is_refused_before_anything_is_sent_there(run: Run) -> None:
    with served() as foreign, service(jobs := Jobs()) as server:
        named = {"id": "j1", "status": "starting", "urls": {"get": f"{foreign.url}/jobs/j1"}}
        jobs.replies["jobs"] = Reply(body=(json.dumps(named).encode(),))
        with pytest.raises(PluginError, match="not a host of this service"):
            run(server.url, Later(), "send")
        assert foreign.got == []


@BOTH
def test_a_message_from_a_store_cannot_say_where_the_key_goes(run: Run) -> None:
    with served() as foreign, service(Jobs()) as server:
        pending: Message = run(server.url, Later(), "start")
        text = codec.dumps_message(pending).replace(f"{server.url}/jobs/j1", foreign.url)
        with pytest.raises(PluginError, match="not a host of this service"):
            run(server.url, Later(), "resume", codec.loads_message(text))
        assert foreign.got == []


@pytest.mark.parametrize("changed", ["after", "method", "path", "headers", "body", "cancel"])
def test_a_stored_message_whose_requests_cannot_be_read_is_named(changed: str) -> None:
    with service(Jobs()) as server:
        pending: Message = blocking(server.url, Later(), "start")
        stored = json.loads(codec.dumps_message(pending))
        packed = stored["metadata"]["provider_raw"]["follow_up"]
        (packed if changed in ("after", "cancel") else packed["request"])[changed] = [-1]
        with pytest.raises(CallerError, match="nothing follows"):
            blocking(server.url, Later(), "resume", codec.loads_message(json.dumps(stored)))


@pytest.mark.parametrize("after", [-1.0, float("nan"), float("inf"), "1"])
def test_a_wait_that_is_none_is_the_answers_fault(after: Any) -> None:
    with service(Jobs()) as server, pytest.raises(il.errors.MalformedResponseError, match=r"FollowUp\.after must be"):
        blocking(server.url, Later(after=after), "send", retry=0)


@pytest.mark.parametrize("place", ["jobs", "j1"])
def test_no_redirect_is_followed_with_a_key_by_a_callers_httpx_either(place: str) -> None:
    with served() as foreign, httpx.Client(follow_redirects=True) as own:
        moved = Reply(status=307, headers={"location": f"{foreign.url}/x"})
        with service(Jobs(**{place: moved})) as server, pytest.raises(il.errors.BadRequestError, match="not followed"):
            blocking(server.url, Later(), "send", http_client=own)
    assert foreign.got == []


def test_waits_are_those_that_the_plugin_asks_for() -> None:
    waits: list[float] = []
    with service(Jobs()) as server, client(server, Later(after=7.0)) as ours:
        without_waiting(ours, waits.append)
        ours.send("x")
    assert waits == [7.0, 7.0, 7.0]


def test_a_broken_plugin_is_named() -> None:
    class Broken(Later):
        @hookimpl
        def follow_up(self, response: WireResponse, context: RequestContext) -> FollowUp | None:
            raise KeyError("urls")

    with service(Jobs()) as server, pytest.raises(il.errors.MalformedResponseError, match="KeyError: 'urls'"):
        blocking(server.url, Broken(), "send", retry=0)


def test_no_connection_for_a_while_is_no_reason_to_cancel() -> None:
    with service(jobs := Jobs(j1=Reply(cut=True))) as server, pytest.raises(APIConnectionError):
        blocking(server.url, Later(), "send", retry=0)
    assert jobs.cancelled == 0
