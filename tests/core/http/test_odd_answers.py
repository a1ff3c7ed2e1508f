"""What arrives in place of an answer, or breaks off within one: both clients say the same of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import interlingua as il
from tests.support.cassettes import FOLDER, load_exchanges
from tests.support.fake_provider import registry, sse
from tests.support.fault_server import FaultServer, Script, faulty, head

PAGE = b"<!DOCTYPE html>\n<html><head><title>404 Not\n Found</title></head><body><h1>Nothing here</h1></body></html>"
BLOCKING, ASYNCHRONOUS = "Client", "AsyncClient"
BOTH = pytest.mark.parametrize("kind", [BLOCKING, ASYNCHRONOUS])


def client(kind: str, server: FaultServer, model: str = "fake:known", **more: Any) -> Any:
    settings: dict[str, Any] = {"api_key": "k", "base_url": server.url, "retry": 0, **more}
    if model == "fake:known":
        settings["registry"] = registry()
    return getattr(il, kind)(model, **settings)


def read_stream(made: Any, **options: Any) -> tuple[list[il.StreamEvent], il.InterlinguaError | None]:
    """Return all events of one stream and what it raised, by either client."""
    events: list[il.StreamEvent] = []

    async def main() -> None:
        async with made, made.stream("hi", **options) as stream:
            async for event in stream:
                events.append(event)

    try:
        if isinstance(made, il.AsyncClient):
            asyncio.run(main())
        else:
            with made, made.stream("hi", **options) as stream:
                for event in stream:
                    events.append(event)
    except il.InterlinguaError as error:
        return events, error
    return events, None


def send(made: Any) -> il.InterlinguaError:
    """Return what a whole exchange raised."""

    async def main() -> None:
        async with made:
            await made.send("hi")

    try:
        if isinstance(made, il.AsyncClient):
            asyncio.run(main())
        else:
            with made:
                made.send("hi")
    except il.InterlinguaError as error:
        return error
    raise AssertionError("nothing was raised")


FAILING = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*_in_stream.yaml"))


@BOTH
@pytest.mark.parametrize("name", FAILING)
def test_an_error_inside_a_stream_is_given_once_and_then_raised(kind: str, name: str) -> None:
    (exchange, *_) = load_exchanges(name)
    key, _, scenario = name.partition("/")
    api = {"api": scenario.partition("_")[0]} if key == "openai" else {}
    events_of = exchange.body.replace(b"\r\n", b"\n").split(b"\n\n")
    steps = [event + b"\n\n" for event in events_of] if b"\n\n" in exchange.body else [exchange.body]
    with faulty([head(kind=exchange.headers["content-type"]), *steps]) as server:
        events, error = read_stream(client(kind, server, f"{key}:any"), **api)

    assert isinstance(error, il.ProviderError)
    errors = [event for event in events if isinstance(event, il.types.ErrorEvent)]
    assert [event.error for event in errors] == ([error] if events else [])
    assert not errors or events[-1] is errors[0]
    assert error.partial is not None


@BOTH
@pytest.mark.parametrize("body", [b"", b"\n\n", b": ping\n\n"])
def test_an_empty_stream_is_asked_for_three_times(kind: str, body: bytes) -> None:
    for model in ("fake:known", "openai:any", "anthropic:any", "google:any", "mistral:any", "cohere:any", "ollama:any"):
        if model == "ollama:any" and b":" in body:
            continue  # lines of JSON have no comments
        with faulty([head(), body]) as server:
            made = client(kind, server, model, retry=il.Retry(initial_delay=0.001))
            events, error = read_stream(made)
        assert (events, len(server.requests)) == ([], 3), model
        assert isinstance(error, il.errors.StreamInterruptedError), model


TEXTS = b"".join(sse({"t": "hel"}, {"t": "lo"}))


@BOTH
@pytest.mark.parametrize(
    "cut", [b'data: {"t": "wor', b"data: ", b'data: {"t": "\xf0\x9f', b"data: [DO", b"da", b'{"err']
)
def test_an_orderly_close_within_an_event_interrupts(kind: str, cut: bytes) -> None:
    length = len(TEXTS + cut)
    scripts: list[Script] = [[head(), TEXTS + cut], [head(), TEXTS, 0.02, cut]]
    scripts.append([head(f"content-length: {length}"), TEXTS + cut])
    for script in scripts:
        with faulty(script) as server:
            events, error = read_stream(client(kind, server))
        assert isinstance(error, il.errors.StreamInterruptedError)
        assert error.retryable
        assert error.partial.text == "hello"
        assert [event.type for event in events] == ["text_delta", "text_delta", "error"]


@BOTH
@pytest.mark.parametrize(
    "key", ["openai", "anthropic", "google", "mistral", "cohere", "ollama", "openrouter", "zai", "deepseek"]
)
def test_every_wire_is_interrupted_by_a_close_within_an_event(kind: str, key: str) -> None:
    cut = b'{"message":{"content":"he' if key == "ollama" else b'data: {"type": "x", "choices":[{"del'
    with faulty([head(), cut]) as server:
        _, error = read_stream(client(kind, server, f"{key}:any"))
    assert isinstance(error, il.errors.StreamInterruptedError)


@BOTH
def test_what_breaks_is_said_once(kind: str) -> None:
    with faulty([head("content-length: 999"), TEXTS]) as server:
        _, error = read_stream(client(kind, server))
    assert str(error).count("the connection broke") == 1
    assert error is not None
    assert error.partial.text == "hello"


@BOTH
@pytest.mark.parametrize(
    "model", ["fake:known", "openai:any", "anthropic:any", "google:any", "cohere:any", "ollama:any"]
)
def test_a_page_in_place_of_an_answer_is_called_one(kind: str, model: str) -> None:
    named: type[il.InterlinguaError]
    for status, named in (
        ("200 OK", il.errors.MalformedResponseError),
        ("404 Not Found", il.errors.ModelNotFoundError),
    ):
        page: Script = [head(f"content-length: {len(PAGE)}", status=status, kind="text/html"), PAGE]
        with faulty(page) as server:
            found = [send(client(kind, server, model)), read_stream(client(kind, server, model))[1]]
        for error in found:
            assert type(error) is named
            assert error.message == "an HTML page (404 Not Found) instead of an answer; is the base URL right?"
            assert (error.body, error.status) == (PAGE, int(status[:3]))
            assert not error.retryable


@BOTH
def test_a_page_of_a_gateway_does_not_blame_the_address(kind: str) -> None:
    page = b"\r\n<html><center><h1>502 Bad Gateway</h1></center></html>"
    with faulty([head(status="502 Bad Gateway", kind="text/html"), page]) as server:
        error = send(client(kind, server))
    assert type(error) is il.errors.ServerError
    assert error.retryable
    assert (error.message, error.body) == ("an HTML page (502 Bad Gateway) instead of an answer", page)


@BOTH
def test_words_in_place_of_events_are_kept(kind: str) -> None:
    with faulty([head(), b"upstream unavailable"]) as server:
        _, error = read_stream(client(kind, server))
    assert error is not None
    assert error.body == b"upstream unavailable"


@BOTH
def test_the_wait_that_a_service_asks_for_is_in_the_message(kind: str) -> None:
    with faulty([head("retry-after: 400", status="429 Too Many Requests", kind="text/plain"), b"slow down"]) as server:
        error, streamed = send(client(kind, server)), read_stream(client(kind, server))[1]
    assert str(error) == "slow down (fake:known, HTTP 429, retry after 400 s)" == str(streamed)
