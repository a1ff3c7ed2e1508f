"""A PostgreSQL server that goes away, comes back, or no longer answers: nothing is given away, and nothing hangs.

The gateway reaches it through a forwarder, so that the server itself stays as it is for the other tests.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.gateway.apis import APIS, error_message
from tests.gateway.conftest import Upstream, gateway, new_store
from tests.support.postgresql import SKIP_REASON, address, schema


class Forwarder:
    """Copies bytes between its own port and a server, until it is cut or silenced."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._heard = threading.Event()
        self._heard.set()
        self._reached = True
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections and refuse more."""
        self._reached = False
        self._end()

    def silence(self) -> None:
        """Leave connections open, but let nothing through."""
        self._heard.clear()

    def mend(self) -> None:
        """Let connections through again; those that were silent are ended."""
        self._reached = True
        self._heard.set()
        self._end()

    def close(self) -> None:
        self.cut()
        self._heard.set()
        self._listener.close()

    def _end(self) -> None:
        while self._open:
            with contextlib.suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
                if not self._reached:
                    caller.close()
                    continue
                server = socket.create_connection(self._server)
            except OSError:
                return
            self._open += [caller, server]
            for pair in ((caller, server), (server, caller)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                self._heard.wait()
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        source.close()


@pytest.fixture
def place() -> Iterator[tuple[str, Forwarder]]:
    """An empty database behind a forwarder: its URL by way of that."""
    if not (url := address()):
        pytest.skip(SKIP_REASON)
    with schema(url) as own:
        parts = urlsplit(own)
        forwarder = Forwarder(parts.hostname or "127.0.0.1", parts.port or 5432)
        by_way = parts.netloc.replace(f":{parts.port}", f":{forwarder.port}")
        try:
            yield parts._replace(netloc=by_way).geturl(), forwarder
        finally:
            forwarder.close()


@pytest.mark.parametrize("way", ["cut", "silence"])
def test_a_database_that_goes_away_gives_nothing_away_until_it_is_back(
    upstream: Upstream,
    place: tuple[str, Forwarder],
    way: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interlingua_gateway.store._PATIENCE", 2.0)
    url, forwarder = place
    store = new_store(url)
    _, secret = store.add_key("tests", budget_usd=1)
    store.close()
    headers = {"authorization": f"Bearer {secret}"}
    caplog.set_level(logging.DEBUG)
    with gateway(upstream, auth="keys", store=url) as served:

        def ask(at: int) -> httpx.Response:
            return httpx.post(served + APIS[at].path, json=dict(APIS[at].body), headers=headers, timeout=60)

        assert ask(1).status_code == 200
        getattr(forwarder, way)()
        began = time.monotonic()
        for at, api in enumerate(APIS):
            answer = ask(at)
            assert answer.status_code in (503, 529), answer.text
            message = error_message(api, answer.json())
            assert "database" in message
            assert str(forwarder.port) not in message
        assert time.monotonic() - began < 30
        forwarder.mend()
        assert ask(1).status_code == 200
    assert len(upstream.requests) == 2
    assert secret not in caplog.text
