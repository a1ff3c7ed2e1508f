"""Image URLs that a conversation names: only public addresses are fetched, unless the client allows others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import httpcore
import pytest

import interlingua as il
from interlingua._http.fetching import is_public
from interlingua.errors import APIConnectionError, APITimeoutError, CallerError
from interlingua.types import MediaSource
from tests.support.fake_provider import registry, served
from tests.support.fault_server import FaultServer, Script, faulty, head

PNG = b"\x89PNG\r\n\x1a\n rest"
PUBLIC = "93.184.215.14"

# `P` is the port of a server on this machine; names ending in .test have the addresses below
FORBIDDEN = [
    "http://127.0.0.1:P/a.png",
    "http://127.1:P/a.png",
    "http://127.0.1:P/a.png",
    "http://2130706433:P/a.png",
    "http://0x7f000001:P/a.png",
    "http://0x7f.0.0.1:P/a.png",
    "http://0177.0.0.1:P/a.png",
    "http://017700000001:P/a.png",
    "http://127.255.255.254:P/a.png",
    "http://0.0.0.0:P/a.png",
    "http://0:P/a.png",
    "http://localhost:P/a.png",
    "http://LOCALHOST:P/a.png",
    "http://localhost.:P/a.png",
    "http://user:pass@127.0.0.1:P/a.png",
    "http://93.184.215.14@127.0.0.1:P/a.png",
    "http://127.0.0.1:P/a.png#@example.com",
    "http:\\\\127.0.0.1:P\\a.png",
    "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460:P/a.png",
    "http://127\u30020\u30020\u30021:P/a.png",
    "http://[::1]:P/a.png",
    "http://[0:0:0:0:0:0:0:1]:P/a.png",
    "http://[::]:P/a.png",
    "http://[::ffff:127.0.0.1]:P/a.png",
    "http://[::ffff:7f00:1]:P/a.png",
    "http://[64:ff9b::7f00:1]:P/a.png",
    "http://[2002:7f00:1::]:P/a.png",
    "http://[fe80::1]:P/a.png",
    "http://[fd00:ec2::254]:P/a.png",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/latest/meta-data/",
    "http://168.63.129.16/metadata",
    "http://100.100.100.200/latest/meta-data/",
    "http://10.0.0.1:P/a.png",
    "http://192.168.0.1:P/a.png",
    "http://172.16.0.1:P/a.png",
    "http://100.64.0.1:P/a.png",
    "http://224.0.0.1:P/a.png",
    "http://255.255.255.255:P/a.png",
    "http://loopback.test:P/a.png",
    "http://metadata.test/a.png",
    "http://mixed.test:P/a.png",
    "http://moves.test:P/away.png",
    "file:///etc/hostname",
    "ftp://127.0.0.1:P/a.png",
    "gopher://127.0.0.1:P/a.png",
    "//127.0.0.1:P/a.png",
    "http://:P/a.png",
    "unix:///var/run/docker.sock",
]
NAMES = {
    "loopback.test": ["127.0.0.1"],
    "metadata.test": ["169.254.169.254"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "public.test": [PUBLIC],
    "moves.test": [PUBLIC],
}


class Net:
    """A network with other names and one public server: look-ups by `NAMES`, connections counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names = {name: [*addresses] for name, addresses in NAMES.items()}
        self.connected: list[str] = []
        self.public_port = 9  # of the server on this machine that takes the part of the public one
        self._look_up = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self.look_up)
        monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", self.connecting(httpcore.SyncBackend.connect_tcp))

    def look_up(self, host: Any, port: Any, *arguments: Any, **named: Any) -> Any:
        if host in self.names:
            kind = socket.SOCK_STREAM
            return [(socket.AF_INET, kind, 6, "", (address, port)) for address in self.names[host]]
        return self._look_up(host, port, *arguments, **named)

    def connecting(self, connect: Any) -> Any:
        def connect_tcp(backend: Any, host: str, port: int, *arguments: Any, **named: Any) -> Any:
            self.connected.append(host)
            if host == PUBLIC:
                host, port = "127.0.0.1", self.public_port
            return connect(backend, host, port, *arguments, **named)

        return connect_tcp


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    return Net(monkeypatch)


def see(url: str, *, kind: str = "Client", in_result: bool = False, **settings: Any) -> None:
    """Send an image by URL to a provider that takes no URLs; it has no server, so a fetched image fails later."""
    image = il.ImageBlock(source=MediaSource(kind="url", data=url))
    messages = [il.user([image])]
    if in_result:  # as a tool of an agent or an MCP server returns it
        call = il.ToolUseBlock(id="t1", name="look", input={})
        messages = [
            il.user("look"),
            il.assistant([call]),
            il.tool_result(call, [image]),
        ]
    settings = {"api_key": "k", "retry": 0, "registry": registry(), "timeout": 5.0, **settings}

    async def send_async() -> None:
        async with il.AsyncClient("fake:known", **settings) as client:
            await client.send(messages)

    if kind == "AsyncClient":
        asyncio.run(send_async())
        return
    with il.Client("fake:known", **settings) as client:
        client.send(messages)


@pytest.fixture(scope="module")
def local() -> Iterator[FaultServer]:
    with faulty([head(kind="image/png"), PNG]) as server:
        yield server


@pytest.mark.parametrize("url", FORBIDDEN)
def test_a_forbidden_address_is_not_fetched(url: str, net: Net, local: FaultServer) -> None:
    port = local.url.rpartition(":")[2]
    with faulty([head(f"location: {local.url}/a.png", status="302 Found")]) as redirecting:
        net.public_port = int(redirecting.url.rpartition(":")[2])
        with pytest.raises((CallerError, APIConnectionError)):
            see(url.replace(":P", f":{port}"))
    assert local.requests == []
    assert set(net.connected) <= {PUBLIC}


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
@pytest.mark.parametrize("in_result", [False, True], ids=["message", "tool result"])
def test_the_error_says_what_to_do(kind: str, in_result: bool, local: FaultServer) -> None:
    with pytest.raises(CallerError, match=r"127\.0\.0\.1, which is not public: .*fetch='any'"):
        see(f"{local.url}/a.png", kind=kind, in_result=in_result)
    assert local.requests == []


def test_more_than_thirty_spellings_are_tried() -> None:
    assert len(set(FORBIDDEN)) >= 30


def test_a_name_is_looked_up_once_and_its_address_connected(net: Net) -> None:
    """A second look-up might return an address that was not checked."""
    looked_up: list[str] = []
    look_up = net.look_up

    def changing(host: Any, port: Any, *arguments: Any, **named: Any) -> Any:
        looked_up.append(host)
        net.names["public.test"] = [PUBLIC] if len(looked_up) == 1 else ["127.0.0.1"]
        return look_up(host, port, *arguments, **named)

    with faulty([head(kind="image/png"), PNG]) as server, served() as service, pytest.MonkeyPatch.context() as patch:
        net.public_port = int(server.url.rpartition(":")[2])
        patch.setattr(socket, "getaddrinfo", changing)
        see("http://public.test/a.png", base_url=service.url)
    assert looked_up[0] == "public.test"
    assert net.connected[0] == PUBLIC
    assert looked_up.count("public.test") == 1
    assert len(server.requests) == 1
    assert b"host: public.test" in server.requests[0].lower()


def through(net: Net, *scripts: Script, **settings: Any) -> FaultServer:
    """Fetch from a public server that answers by these scripts; return it."""
    with faulty(*scripts) as server, served() as service:
        net.public_port = int(server.url.rpartition(":")[2])
        see("http://public.test/a.png", base_url=service.url, **settings)
    return server


def test_a_redirect_to_a_public_address_is_followed(net: Net) -> None:
    server = through(net, [head("location: /b.png", status="301 Moved")], [head(kind="image/png"), PNG])
    assert [request.split()[1] for request in server.requests] == [b"/a.png", b"/b.png"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([head("location: /b.png", status="301 Moved")], "more than 5 redirects"),
        ([head("location: file:///etc/hostname", status="301 Moved")], "only http and https"),
        ([head(kind="text/html"), b"<html>secret</html>"], "no image, but text/html"),
        ([head(kind="application/json"), b'{"secret": 1}'], "no image, but application/json"),
        ([head(status="404 Not Found")], "HTTP 404"),
        ([head("content-encoding: gzip", kind="image/png"), PNG], "compressed"),
        (lambda: iter([head(kind="image/png"), *(33 * [b"a" * 1024 * 1024])]), "larger than 33554432 bytes"),
    ],
    ids=["loop", "file", "page", "json", "404", "gzip", "large"],
)
def test_what_is_no_image_is_refused(script: Script, said: str, net: Net) -> None:
    with pytest.raises(CallerError, match=said):
        through(net, script)


def test_the_time_of_a_fetch_is_bounded(net: Net) -> None:
    def dribble() -> Iterator[bytes | float]:
        yield head(kind="image/png")
        while True:
            yield 0.02
            yield b"a"

    with pytest.raises(APITimeoutError, match=r"total=0\.3"):
        through(net, dribble, timeout=0.3)


def test_a_client_may_allow_any_address_or_none(local: FaultServer) -> None:
    with faulty([head(kind="image/png"), PNG]) as server, served() as service:
        see(f"{server.url}/a.png", base_url=service.url, fetch="any")
        assert len(server.requests) == 1
    with pytest.raises(CallerError, match="fetch='none'"):
        see(f"http://{PUBLIC}/a.png", fetch="none")
    with pytest.raises(CallerError, match="fetch must be"):
        il.Client("fake:known", registry=registry(), fetch="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)
