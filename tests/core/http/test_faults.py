"""One table of faults for every transport, by all clients, whole and streamed: the error, text, time, memory.

The wire is Chat Completions, as OpenAI documents it (https://platform.openai.com/docs/api-reference/chat).
"""

from __future__ import annotations

import json
import socket
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

import interlingua as il
from interlingua.errors import (
    APIConnectionError,
    APITimeoutError,
    BadRequestError,
    CallerError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    StreamInterruptedError,
)
from tests.support.counts import FULL
from tests.support.fault_server import RESET, FaultServer, Script, Step, faulty, head
from tests.support.script_transport import ScriptServer

LIMIT = 8 * 1024 * 1024
SLACK = 1.5  # seconds beyond a limit, on a busy machine
PAGE = b"<html><head><title>Welcome</title></head></html>"


def event(text: str | None = None, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def whole(text: str = "hello") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps(body).encode()


TEXTS = event("hel") + event("lo")
GOOD = TEXTS + event(finish="stop") + b"data: [DONE]\n\n"
CUT = b'data: {"id":"c","choices":[{"index":0,"delta":{"cont'


def answer(body: bytes, *headers: str, kind: str = "text/event-stream") -> list[Step]:
    return [head(*headers, kind=kind), body]


def failing(status: str, *headers: str) -> list[Step]:
    body = b'{"error":{"message":"later","type":"server_error"}}'
    return [head(f"content-length: {len(body)}", *headers, status=status, kind="application/json"), body]


def bomb() -> list[Step]:
    """1.5 MB that hold 1.5 GB: after a full flush, each megabyte of zeros is written as the one before."""
    made = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    zeros = b"a" * (1024 * 1024)
    start, again = (made.compress(zeros) + made.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return [head("content-encoding: gzip"), start + again * 1500]


def one_line(megabytes: int | None) -> Iterator[Step]:
    yield head()
    yield b"data: "
    yield from repeat(b"a" * (1024 * 1024)) if megabytes is None else repeat(b"a" * (1024 * 1024), megabytes)


def trickle(piece: bytes) -> Iterator[Step]:
    yield head()
    while True:
        yield piece
        yield 0.02


@attrs.frozen(kw_only=True)
class Fault:
    """A fault, and the expected outcome.

    Attributes:
        scripts: what the server does with each attempt, streamed.
        whole: the same for a whole answer; None uses `scripts`.
        error: class that a stream raises; None where the answer is good.
        whole_error: class that a whole answer raises.
        again: the error may be tried again.
        kept: text that was received.
        attempts: how often the service is asked.
        said: a word of the message.
        settings: of the client.
    """

    scripts: tuple[Script, ...]
    whole: tuple[Script, ...] | None = None
    error: type[il.InterlinguaError] | None = None
    whole_error: type[il.InterlinguaError] | None = None
    again: tuple[bool, bool] = (True, True)
    kept: str = ""
    attempts: tuple[int, int] = (1, 1)
    said: str = ""
    settings: dict[str, Any] = attrs.field(factory=dict)


JSON = "application/json"
LONG, SHORT = f"content-length: {len(GOOD) + 50}", f"content-length: {len(TEXTS + CUT)}"
QUICK = {"retry": il.Retry(initial_delay=0.001)}
LARGE = "max_response_bytes=8388608 bytes"
FAULTS = {
    "the server is killed": Fault(
        scripts=([head(LONG), TEXTS],),
        whole=([head(LONG, kind=JSON), whole()[:20]],),
        error=StreamInterruptedError, whole_error=APIConnectionError, kept="hello", said="connection broke",
    ),
    "a reset": Fault(
        scripts=([head(), TEXTS, 0.05, RESET],), whole=([head(LONG, kind=JSON), whole()[:20], 0.05, RESET],),
        error=StreamInterruptedError, whole_error=APIConnectionError, kept="hello",
    ),
    "a reset within an event": Fault(
        scripts=([head(), TEXTS, CUT, 0.05, RESET],), whole=([head(LONG, kind=JSON), 0.05, RESET],),
        error=StreamInterruptedError, whole_error=APIConnectionError, kept="hello",
    ),
    "a close within an event": Fault(
        scripts=([head(), TEXTS + CUT],), whole=([head(kind=JSON), whole()[:-9]],),
        error=StreamInterruptedError, whole_error=MalformedResponseError, again=(True, False), kept="hello",
    ),
    "a stall": Fault(
        scripts=([head(), TEXTS, 5.0],), whole=([head(kind=JSON), whole()[:20], 5.0],),
        error=APITimeoutError, whole_error=APITimeoutError, kept="hello", said="between_chunks=0.2",
        settings={"timeout": il.Timeout(between_chunks=0.2)},
    ),
    "no answer": Fault(
        scripts=([5.0],), error=APITimeoutError, whole_error=APITimeoutError, said="first_byte=0.2",
        settings={"timeout": il.Timeout(first_byte=0.2)},
    ),
    "an answer without end": Fault(
        scripts=(lambda: trickle(event("a")),), whole=(lambda: trickle(b" "),),
        error=APITimeoutError, whole_error=APITimeoutError, again=(False, False), kept="a", said="total=0.3",
        settings={"timeout": 0.3},
    ),
    "a length that is too long": Fault(
        scripts=([head(LONG), GOOD],), whole=([head(LONG, kind=JSON), whole()],),
        whole_error=APIConnectionError, kept="hello",
    ),
    "a length that is too short": Fault(
        scripts=([head(SHORT), TEXTS + CUT + GOOD],), whole=([head("content-length: 20", kind=JSON), whole()],),
        error=StreamInterruptedError, whole_error=MalformedResponseError, again=(True, False), kept="hello",
    ),
    "bytes that are not UTF-8": Fault(
        scripts=(answer(GOOD.replace(b"lo", b"l\xff")),),
        whole=(answer(whole().replace(b"llo", b"ll\xff"), kind=JSON),),
        kept="hell\N{REPLACEMENT CHARACTER}",
    ),
    "a body that is not gzip": Fault(
        scripts=(answer(b"not gzip", "content-encoding: gzip"),),
        error=StreamInterruptedError, whole_error=APIConnectionError, said="cannot be decompressed",
    ),
    "a gzip bomb": Fault(
        scripts=(bomb(),), error=MalformedResponseError, whole_error=MalformedResponseError, again=(False, False),
        said="8388608 bytes", settings={"max_response_bytes": LIMIT},
    ),
    "100 MB in one line": Fault(
        scripts=(lambda: one_line(100),), error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="8388608 bytes", settings={"max_response_bytes": LIMIT},
    ),
    "a line without end": Fault(
        scripts=(lambda: one_line(None),), error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="8388608 bytes", settings={"max_response_bytes": LIMIT, "timeout": 5.0},
    ),
    "an object without end": Fault(
        scripts=(lambda: (b for b in (head(), b"{", *repeat(b" " * 1024 * 1024, 100))),),
        error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="8388608 bytes", settings={"max_response_bytes": LIMIT},
    ),
    "blanks without end": Fault(
        scripts=(lambda: (b for b in (head(), *repeat(b" " * 1024 * 1024, 100))),),
        error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="8388608 bytes", settings={"max_response_bytes": LIMIT},
    ),
    "a page with 200": Fault(
        scripts=(answer(PAGE, kind="text/html"),), error=MalformedResponseError, whole_error=MalformedResponseError,
        again=(False, False), said="an HTML page (Welcome)", settings=QUICK,
    ),
    "a page with 404": Fault(
        scripts=([head(status="404 Not Found", kind="text/html"), PAGE],),
        error=ModelNotFoundError, whole_error=ModelNotFoundError, again=(False, False), said="an HTML page (Welcome)",
    ),
    "an empty 200": Fault(
        scripts=(answer(b""),), error=StreamInterruptedError, whole_error=MalformedResponseError, again=(True, False),
        attempts=(3, 1), settings=QUICK,
    ),
    "429, soon": Fault(
        scripts=(failing("429 Too Many Requests", "retry-after: 0.01"), answer(GOOD)),
        whole=(failing("429 Too Many Requests", "retry-after: 0.01"), answer(whole(), kind=JSON)),
        kept="hello", attempts=(2, 2), settings={"retry": 2},
    ),
    "429, much later": Fault(
        scripts=(failing("429 Too Many Requests", "retry-after: 400"),),
        error=RateLimitError, whole_error=RateLimitError, said="retry after 400 s", settings={"retry": 2},
    ),
    "503 twice": Fault(
        scripts=(failing("503 Down"), failing("503 Down"), answer(GOOD)),
        whole=(failing("503 Down"), failing("503 Down"), answer(whole(), kind=JSON)),
        kept="hello", attempts=(3, 3), settings=QUICK,
    ),
    "503 always": Fault(
        scripts=(failing("503 Down"),), error=OverloadedError, whole_error=OverloadedError, attempts=(3, 3),
        settings=QUICK,
    ),
    "a close before the answer": Fault(
        scripts=([],), error=APIConnectionError, whole_error=APIConnectionError, attempts=(3, 3), settings=QUICK
    ),
    "no HTTP": Fault(scripts=([b"220 mail.test ESMTP\r\n"],), error=APIConnectionError, whole_error=APIConnectionError),
    "headers without end": Fault(
        scripts=(lambda: (b for b in (head()[:-2], *repeat(b"x-more: " + b"a" * 65536 + b"\r\n", 99))),),
        error=APIConnectionError, whole_error=APIConnectionError,
    ),
}  # fmt: skip


def talk(kind: str, url: str, *, stream: bool, **settings: Any) -> tuple[str, il.InterlinguaError | None]:
    """Ask once by one client; return the text that was received and the error that was raised."""
    settings = {"api_key": "the-key", "retry": 0, **settings}

    async def ask_async() -> il.Message:
        async with il.AsyncClient("openai:gpt-5-mini", base_url=url, **settings) as client:
            if not stream:
                return await client.send("hi", api="chat")
            async with client.stream("hi", api="chat") as opened:
                return await opened.message

    def ask() -> il.Message:
        with il.Client("openai:gpt-5-mini", base_url=url, **settings) as client:
            if not stream:
                return client.send("hi", api="chat")
            with client.stream("hi", api="chat") as opened:
                return opened.message

    try:
        return (ask() if kind == "blocking" else anyio.run(ask_async, backend=kind)).text, None
    except il.InterlinguaError as error:
        return error.partial.text if error.partial is not None else "", error


KINDS = pytest.mark.parametrize("kind", ["blocking", "asyncio", "trio"])
ANY = pytest.mark.parametrize("transport", ["httpx", "pycurl"])
# each transport and each kind of client, by pairs; all pairs in full
PAIRS = [
    (transport, kind)
    for transport in ("httpx", "pycurl", "memory")
    for kind in ("blocking", "asyncio", "trio")
    if FULL or (transport, kind) not in {("pycurl", "trio"), ("memory", "asyncio")}
]
EITHER = pytest.mark.parametrize("stream", [True, False], ids=["stream", "send"])


@contextmanager
def serving(transport: str, *scripts: Script) -> Iterator[FaultServer | ScriptServer]:
    """Run scripts by a server on this machine, or in memory."""
    if transport == "memory":
        yield ScriptServer(*scripts)
    else:
        with faulty(*scripts) as server:
            yield server


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    """Load both transports, whose libraries would count as memory of the first fault."""
    for transport in ("httpx", "pycurl"):
        il.Client("openai:gpt-5-mini", api_key="k", transport=transport).close()


class Memory:
    """How much more memory this process has held since, in bytes; 0 where the system does not say."""

    def __init__(self) -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            self._before = self._read("VmHWM")
        except OSError:
            self._before = -1

    @staticmethod
    def _read(name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

    def growth(self) -> int:
        return 0 if self._before < 0 else self._read("VmHWM") - self._before


@pytest.mark.parametrize(("transport", "kind"), PAIRS)
@EITHER
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault(transport: str, kind: str, stream: bool, name: str) -> None:
    fault = FAULTS[name]
    scripts = fault.scripts if stream or fault.whole is None else fault.whole
    expected = fault.error if stream else fault.whole_error
    with serving(transport, *scripts) as server:
        memory, began = Memory(), time.monotonic()
        used = transport if isinstance(server, FaultServer) else server.transport(blocking=kind == "blocking")
        kept, error = talk(kind, server.url, stream=stream, transport=used, **fault.settings)
        took, grown = time.monotonic() - began, memory.growth()

    assert type(error) is (expected or type(None)), error
    if error is not None:
        assert error.retryable is fault.again[not stream]
        assert fault.said in str(error)
    if stream or error is None:
        assert kept.startswith(fault.kept) if fault.kept == "a" else kept == fault.kept
    assert len(server.requests) == fault.attempts[not stream]
    assert took < 0.3 + SLACK
    assert grown < 3 * LIMIT


@ANY
@KINDS
@EITHER
def test_a_redirect_to_another_host_gets_no_key(transport: str, kind: str, stream: bool) -> None:
    with faulty(answer(GOOD)) as other, faulty([head(f"location: {other.url}/v1", status="307 Moved")]) as server:
        _, error = talk(kind, server.url, stream=stream, transport=transport)
        assert type(error) is BadRequestError
        assert other.requests == []
        assert b"the-key" in server.requests[0]
    assert "the-key" not in str(error)


@ANY
@KINDS
@EITHER
def test_tls_to_a_port_that_speaks_none(transport: str, kind: str, stream: bool) -> None:
    with faulty([b"HTTP/1.1 400 Bad Request\r\n\r\n"]) as server:
        began = time.monotonic()
        address = server.url.replace("http:", "https:")
        limits = il.Timeout(connect=0.2, first_byte=0.2)
        _, error = talk(kind, address, stream=stream, transport=transport, timeout=limits)
    assert isinstance(error, APIConnectionError)
    assert error.retryable
    assert time.monotonic() - began < 0.3 + SLACK


@ANY
@KINDS
@EITHER
def test_nobody_listens(transport: str, kind: str, stream: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    _, error = talk(kind, url, stream=stream, transport=transport)
    assert type(error) is APIConnectionError
    assert error.retryable


@ANY
@KINDS
@EITHER
def test_a_name_that_nobody_knows(transport: str, kind: str, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: object, **_more: object) -> Iterable[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    _, error = talk(kind, "http://service.invalid", stream=stream, transport=transport)
    assert type(error) is APIConnectionError
    assert "http://service.invalid" in str(error)


@ANY
@KINDS
@EITHER
def test_a_proxy_is_honoured_and_a_bad_one_typed(
    transport: str, kind: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with faulty(answer(GOOD) if stream else answer(whole(), kind=JSON)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert talk(kind, "http://service.invalid", stream=stream, transport=transport) == ("hello", None)
    assert proxy.requests[0].startswith(b"POST http://service.invalid/")
    monkeypatch.setenv("http_proxy", "nonsense://")
    _, error = talk(kind, "http://service.invalid", stream=stream, transport=transport)
    assert type(error) is CallerError
