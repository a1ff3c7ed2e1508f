"""One table of faults for every transport, by all clients, whole and streamed: the error, text, time, memory."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import interlingua as il
from interlingua.errors import APIConnectionError, BadRequestError, CallerError
from tests.support.counts import FULL
from tests.support.fault_server import FaultServer, Script, faulty, head
from tests.support.faults import FAULTS, GOOD, JSON, LIMIT, answer, whole
from tests.support.script_transport import ScriptServer

SLACK = 1.5  # seconds beyond a limit, on a busy machine


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
    """Ask by both transports, whose libraries would count as memory and time of the first fault."""
    for transport in ("httpx", "pycurl"):
        for stream in (True, False):
            with faulty(answer(GOOD) if stream else answer(whole(), kind=JSON)) as server:
                talk("blocking", server.url, stream=stream, transport=transport)


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
# httpcore leaves its generators to the garbage collector, and trio warns of them
@pytest.mark.filterwarnings("ignore:Exception ignored in. <async_generator:pytest.PytestUnraisableExceptionWarning")
def test_a_fault(transport: str, kind: str, stream: bool, name: str) -> None:
    fault = FAULTS[name]
    if fault.in_http and transport == "memory":
        return
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


def test_more_than_fifty_faults_are_tried() -> None:
    assert len(FAULTS) >= 50


@pytest.mark.parametrize(
    ("transport", "lines"),
    [("pycurl", 8000 * ["x-more: a"]), *((name, ["x-more: " + "a" * 400_000]) for name in ("httpx", "pycurl"))],
    ids=["pycurl, lines", "httpx, one line", "pycurl, one line"],
)
def test_more_headers_than_a_library_takes_are_an_error_with_a_reason(transport: str, lines: list[str]) -> None:
    with faulty([head(*lines), GOOD]) as server:
        _, error = talk("blocking", server.url, stream=True, transport=transport)
    assert type(error) is APIConnectionError
    assert not str(error).split(" (")[0].rstrip().endswith(":")


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
