"""Transports by name: both send the same, stop when told, keep time limits, honour proxies and certificates."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua.transport import HttpRequest, TimeLimits, Timeout
from interlingua_pycurl.transfer import Transfer
from tests.support.fake_provider import STREAM, WHOLE, Reply, Server, registry, served
from tests.support.fault_server import faulty, head
from tests.support.loopback import LoopbackHandler, LoopbackServer

ANY = pytest.mark.parametrize("transport", ["httpx", "pycurl"])


def _settings(url: str, transport: str, **more: Any) -> dict[str, Any]:
    found = {"registry": registry(), "base_url": url, "api_key": "k", "environ": {}, "retry": 0}
    return {**found, "transport": transport, **more}


def _heads(server: Server) -> list[dict[str, str]]:
    volatile = {"host", "user-agent", "connection", "accept", "accept-encoding"}
    return [{name: text for name, text in got.headers.items() if name not in volatile} for got in server.got]


def test_both_send_the_same() -> None:
    with served() as server:
        for transport in ("httpx", "pycurl"):
            with il.Client("fake:known", **_settings(server.url, transport)) as client:
                client.send("h\N{LATIN SMALL LETTER O WITH DIAERESIS}")
        first, second = _heads(server)
        assert first == second
        assert server.got[0].body == server.got[1].body
        assert server.got[1].headers["accept-encoding"] == "gzip, deflate"


@ANY
def test_pieces_come_when_they_arrive(transport: str) -> None:
    times = []
    with (
        served(Reply(body=[STREAM[0], 0.3, *STREAM[1:]])) as server,
        il.Client("fake:known", **_settings(server.url, transport)) as client,
        client.stream("hi") as events,
    ):
        for _ in events:
            times.append(time.monotonic())

    assert times[1] - times[0] > 0.2


@ANY
def test_pieces_come_when_they_arrive_in_asyncio(transport: str) -> None:
    async def read(url: str) -> list[float]:
        async with il.AsyncClient("fake:known", **_settings(url, transport)) as client, client.stream("hi") as events:
            return [time.monotonic() async for _ in events]

    with served(Reply(body=[STREAM[0], 0.3, *STREAM[1:]])) as server:
        times = asyncio.run(read(server.url))

    assert times[1] - times[0] > 0.2


@ANY
def test_cancel_from_another_thread_wakes_a_read(transport: str) -> None:
    with (
        served(Reply(body=[STREAM[0], 5.0, *STREAM[1:]])) as server,
        il.Client("fake:known", **_settings(server.url, transport)) as client,
        client.stream("hi") as events,
    ):
        began = time.monotonic()
        threading.Timer(0.2, events.cancel).start()
        assert [event.type for event in events] == ["text_delta"]
        assert time.monotonic() - began < 2
        assert events.partial.metadata.status == "cancelled"


@ANY
def test_cancel_wakes_a_read_in_asyncio(transport: str) -> None:
    async def read(url: str) -> None:
        async with il.AsyncClient("fake:known", **_settings(url, transport)) as client, client.stream("hi") as events:
            asyncio.get_running_loop().call_later(0.2, events.cancel)
            began = time.monotonic()
            assert [event.type async for event in events] == ["text_delta"]
            assert time.monotonic() - began < 2
            assert events.partial.metadata.status == "cancelled"

    with served(Reply(body=[STREAM[0], 5.0, *STREAM[1:]])) as server:
        asyncio.run(read(server.url))


@ANY
@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_a_blocking_read(transport: str) -> None:
    slow = Reply(body=[STREAM[0], 5.0, *STREAM[1:]])
    with served(slow) as server, il.Client("fake:known", **_settings(server.url, transport)) as client:
        began = time.monotonic()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt), client.stream("hi") as events:
            for _ in events:
                pass
        assert time.monotonic() - began < 2
        assert events.partial.metadata.status == "cancelled"


@ANY
def test_a_cancelled_task_leaves_the_client_usable(transport: str) -> None:
    async def run(url: str) -> str:
        async with il.AsyncClient("fake:known", **_settings(url, transport)) as client:
            task = asyncio.create_task(client.send("hi"))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await client.send("hi")).text

    with served(Reply(wait=3.0), Reply()) as server:
        assert asyncio.run(run(server.url)) == "hello"


@ANY
def test_threads_and_loops_share_one_client(transport: str) -> None:
    with served() as server, il.Client("fake:known", **_settings(server.url, transport)) as client:
        texts: list[str] = []
        threads = [threading.Thread(target=lambda: texts.append(client.send("hi").text)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == ["hello"] * 20

        async def inside() -> str:  # blocking, in a thread that runs a loop
            return client.send("hi").text

        assert asyncio.run(inside()) == "hello"

        async def twenty() -> list[str]:
            async with il.AsyncClient("fake:known", **_settings(server.url, transport)) as other:
                found = await asyncio.gather(*(other.send("hi") for _ in range(20)))
                return [one.text for one in found]

        assert asyncio.run(twenty()) == ["hello"] * 20


@ANY
def test_a_closed_client_says_so(transport: str) -> None:
    with served() as server:
        client = il.Client("fake:known", **_settings(server.url, transport))
        client.send("hi")
        client.close()
        with pytest.raises(il.CallerError, match="client is closed"):
            client.send("hi")


@ANY
@pytest.mark.parametrize("url", ["http://[::1", "http://a.test:port", "ftp://a.test"])
def test_an_address_that_cannot_be_sent_to_is_the_callers_mistake(transport: str, url: str) -> None:
    with (
        il.Client("fake:known", **_settings(url, transport)) as client,
        pytest.raises(il.CallerError, match="cannot be sent"),
    ):
        client.send("hi")


@ANY
def test_a_header_that_cannot_be_sent_is_named_without_its_value(transport: str) -> None:
    own = {"x-own": "SECRET\nline"}
    with (
        served() as server,
        il.Client("fake:known", **_settings(server.url, transport), headers=own) as client,
        pytest.raises(il.CallerError, match="line break") as raised,
    ):
        client.send("hi")
    assert "SECRET" not in str(raised.value)


def test_a_name_that_is_no_transport_is_refused() -> None:
    with pytest.raises(il.CallerError, match=r"no transport 'curl'.*httpx, pycurl"):
        il.Client("fake:known", registry=registry(), transport="curl")
    with pytest.raises(il.CallerError, match="not both"):
        il.Client("fake:known", registry=registry(), transport="httpx", http_client=object())


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=tmp_path)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    (tmp_path / "names").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    try:
        own = ("-days", "2", "-subj", "/CN=own", "-addext", "keyUsage=critical,keyCertSign")  # Python 3.13 demands it
        openssl("req", "-x509", *key, *own, "-keyout", "root.key", "-out", "root.pem")
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    openssl("req", *key, "-subj", "/CN=localhost", "-keyout", "leaf.key", "-out", "leaf.csr")
    by = ("-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    openssl("x509", "-req", "-in", "leaf.csr", *by, "-out", "leaf.pem")
    return tmp_path


@contextmanager
def answering(certificates: Path | None) -> Iterator[int]:
    """Run a server, with TLS if there are certificates; yield its port."""

    class Handler(LoopbackHandler):
        def do_POST(self) -> None:
            self.read_body()
            self.send_response(200)
            self.send_header("content-length", str(len(WHOLE)))
            self.end_headers()
            self.wfile.write(WHOLE)

    server = LoopbackServer(Handler)
    if certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "leaf.pem", certificates / "leaf.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with server:
        yield server.server_port


@ANY
def test_certificates_are_checked_and_ones_own_are_trusted(
    transport: str, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(certificates) as port:
        settings = _settings(f"https://localhost:{port}", transport)
        with il.Client("fake:known", **settings) as client, pytest.raises(il.errors.APIConnectionError) as raised:
            client.send("hi")
        assert "certificate" in str(raised.value).lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "root.pem"))
        with il.Client("fake:known", **settings) as client:
            assert client.send("hi").text == "hello"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "none.pem"))
        with pytest.raises(il.CallerError, match="SSL_CERT_FILE"):
            il.Client("fake:known", **settings)


@ANY
def test_a_folder_of_certificates_is_trusted(
    transport: str, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = certificates / "folder"
    folder.mkdir()
    words = ["openssl", "x509", "-hash", "-noout", "-in", "root.pem"]
    name = subprocess.run(words, check=True, capture_output=True, cwd=certificates, text=True).stdout.strip()
    (folder / f"{name}.0").write_bytes((certificates / "root.pem").read_bytes())
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    with (
        answering(certificates) as port,
        il.Client("fake:known", **_settings(f"https://localhost:{port}", transport)) as client,
    ):
        assert client.send("hi").text == "hello"


async def _longest_turn(url: str) -> float:
    """Send 30 MB; return the most seconds of the processor that the event loop's thread used before it took a turn."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            begin = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - begin)

    async with il.AsyncClient("fake:known", **_settings(url, "httpx")) as client:
        await client.send("hi")
        transport = await client._io.prepare()
        watching = asyncio.ensure_future(watch())
        body = HttpRequest("POST", f"{url}/chat", {}, b"x" * 30_000_000, datetime.now(UTC))
        reply = await transport.open(body, TimeLimits(Timeout()))
        assert [reply.status, b"".join([piece async for piece in reply])] == [200, WHOLE]
        await reply.aclose()
        watching.cancel()
    return longest


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_the_event_loop_turns_to_others_while_a_large_body_is_written(
    tls: bool, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "root.pem"))
    with answering(certificates if tls else None) as port:
        url = f"http{'s' if tls else ''}://localhost:{port}"
        in_pieces = min(asyncio.run(_longest_turn(url)) for _ in range(3))
        monkeypatch.setattr("interlingua._http.joining._WRITTEN", 1 << 30)
        at_once = min(asyncio.run(_longest_turn(url)) for _ in range(3))
    print(f"{in_pieces * 1000:.1f} ms; at once {at_once * 1000:.1f} ms")
    assert in_pieces < at_once / 3


def test_the_limit_of_the_first_byte_includes_the_writing_of_a_large_body() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def read_slowly() -> None:
        connection, _address = listener.accept()
        with connection, suppress(OSError):
            while connection.recv(1 << 18):
                time.sleep(0.05)

    reader = threading.Thread(target=read_slowly, daemon=True)
    reader.start()

    async def send() -> None:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        timeout = Timeout(first_byte=0.5)
        async with il.AsyncClient("fake:known", **_settings(url, "httpx", timeout=timeout)) as client:
            await client.send("x" * 60_000_000)

    with listener:
        begin = time.monotonic()
        with pytest.raises(il.errors.APITimeoutError, match=r"no answer within first_byte=0\.5 s"):
            asyncio.run(send())
        assert 0.4 < time.monotonic() - begin < 3
        reader.join(10)


@ANY
def test_proxies_of_the_environment_are_taken(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with served() as server:
        monkeypatch.setenv("http_proxy", server.url)
        with il.Client("fake:known", **_settings("http://service.test", transport)) as client:
            assert client.send("hi").text == "hello"
        assert server.got[0].path.startswith("http://service.test/")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with il.Client("fake:known", **_settings(server.url, transport)) as client:
            client.send("hi")
        assert server.got[1].path.startswith("/")


@ANY
def test_a_proxy_tunnels_tls(transport: str, certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def tunnel(listener: socket.socket) -> None:
        client, _ = listener.accept()
        asked.append(client.recv(65536))
        host, port = asked[0].split()[1].split(b":")
        with client, socket.create_connection((host.decode(), int(port))) as service:
            client.sendall(b"HTTP/1.1 200 Connection established\r\nproxy-agent: a\r\n\r\n")
            back = threading.Thread(target=pump, args=(client, service), daemon=True)
            back.start()
            pump(service, client)
            back.join(5)

    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "root.pem"))
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with answering(certificates) as port, socket.create_server(("127.0.0.1", 0)) as listener:
        tunnelling = threading.Thread(target=tunnel, args=(listener,), daemon=True)
        tunnelling.start()
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{listener.getsockname()[1]}")
        with il.Client("fake:known", **_settings(f"https://localhost:{port}", transport)) as client:
            assert client.send("hi").text == "hello"
        tunnelling.join(5)
    assert asked[0].startswith(b"CONNECT localhost:%d " % port)


@ANY
def test_an_interim_answer_is_not_the_answer(transport: str) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    length = f"content-length: {len(WHOLE)}"
    steps = [interim, 0.1, head(length, "x-final: yes", kind="application/json") + WHOLE]
    with faulty(steps) as server, il.Client("fake:known", **_settings(server.url, transport)) as client:
        assert client.send("hi").text == "hello"


@ANY
def test_a_kept_connection_that_the_server_closed_is_made_anew(transport: str) -> None:
    length = f"content-length: {len(WHOLE)}"
    answer = head(length, kind="application/json").replace(b"connection: close\r\n", b"") + WHOLE
    with faulty([answer]) as server, il.Client("fake:known", **_settings(server.url, transport)) as client:
        for _ in range(3):
            assert client.send("hi").text == "hello"
            time.sleep(0.1)
        assert len(server.requests) == 3


def test_what_the_garbage_collector_has_closed_is_not_used_again() -> None:
    transfer = Transfer()
    transfer.close()  # as the collector does, in any order, with a stream that nobody closed

    assert transfer.end() is False
    transfer.close()
