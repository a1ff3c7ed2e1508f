"""A service on this machine that plays a cassette to a program: a request gets the answer it was recorded with."""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua_cli.cassettes import RecordedExchange
from tests.support.cassettes import load_exchanges
from tests.support.loopback import LoopbackHandler, LoopbackServer

_PAUSE_S = 0.002  # between the events of a stream
_ENDS = (b"data: [DONE]", b"event: message_stop")
_PATIENCE_S = 30.0


@attrs.define
class Player:
    """What is played, and what was asked.

    Attributes:
        left: exchanges that were not asked for yet.
        cuts: how many answers still break off in their middle; their exchanges stay.
        strict: a request has to be the recorded one; else exchanges are played in order, the last again and again.
        asked: bodies of the requests, as they came.
        unknown: those that the cassette does not hold.
        environ: what leads the programs here.
    """

    left: list[RecordedExchange]
    cuts: int
    strict: bool
    asked: list[Any] = attrs.field(factory=list)
    unknown: list[Any] = attrs.field(factory=list)
    environ: dict[str, str] = attrs.field(factory=dict)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def take(self, path: str, body: Any) -> tuple[RecordedExchange, bool] | None:
        """Return the exchange of a request and whether it is cut; None where there is none."""
        with self._lock:
            self.asked.append(body)
            fits = [one for one in self.left if urlsplit(one.uri).path.endswith(path) and one.request == body]
            found = fits[:1] if self.strict else self.left[:1]
            if not found:
                self.unknown.append(body)
                return None
            if self.cuts:
                self.cuts -= 1
                return found[0], True
            if self.strict or len(self.left) > 1:
                self.left.remove(found[0])
            return found[0], False


class _Server(LoopbackServer):
    player: Player


class _Handler(LoopbackHandler):
    server: _Server

    def do_POST(self) -> None:
        asked = json.loads(self.read_body())
        found = self.server.player.take(self.path, asked)
        if found is None:
            self.send_error(404, "the cassette holds no such request")
            return
        exchange, cut = found
        self.send_response(exchange.status)
        self.send_header("content-type", exchange.headers["content-type"])
        if not exchange.streamed:
            self.send_header("content-length", str(len(exchange.body)))
        self.end_headers()  # a stream has no length: it ends with the connection
        if not exchange.streamed:
            self.wfile.write(exchange.body[: len(exchange.body) // 2] if cut else exchange.body)
            return
        events = exchange.body.split(b"\n\n")
        with suppress(ConnectionError):
            for event in events[: len(events) // 2] if cut else events:
                self.wfile.write(event + b"\n\n")
                time.sleep(_PAUSE_S)
            if not cut and not any(end in exchange.body for end in _ENDS):  # the program left: it does so again
                select.select([self.connection], [], [], _PATIENCE_S)


@contextmanager
def played(cassette: str, *, cuts: int = 0, strict: bool = True) -> Iterator[Player]:
    """Play a cassette for a `with` block.

    Args:
        cassette: below the cassettes folder.
        cuts: how many answers break off in their middle, from the first.
        strict: whether each request has to be the recorded one.
    """
    with _Server(_Handler) as http:
        http.player = player = Player(load_exchanges(cassette), cuts, strict)
        player.environ.update(lead_to(http.url))
        yield player


def lead_to(url: str) -> dict[str, str]:
    """Return the environment that leads the programs to a service on this machine."""
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    addresses = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1", "LLAMACPP_BASE_URL": f"{url}/v1"}
    return keys | addresses
