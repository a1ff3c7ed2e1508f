"""A recorded scenario for a test: the bytes of its cassette, and the same conversation replayed from them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeAlias

import attrs
import httpx
import pytest

from interlingua._http.client import AsyncClient, Client
from interlingua._plugins.provider import Provider
from interlingua.errors import ProviderError
from interlingua.plugins import build_request
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message
from interlingua.types.options import RequestOptions
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.tools.local_server.server import MODEL
from tests.tools.record.playing import play, play_async
from tests.tools.record.scenarios import Scenario, scenarios_of
from tests.tools.record.wires import WIRES, Cast, Wire

NOWHERE = "http://recorded"
Road: TypeAlias = "Callable[[Recorded], list[Message]]"


@attrs.define(slots=False)
class Recorded:
    """One scenario on one wire."""

    key: str
    scenario: Scenario

    @property
    def wire(self) -> Wire:
        """Return the wire."""
        return WIRES[self.key]

    @property
    def cassette(self) -> str:
        """Return the cassette, relative to the cassettes folder."""
        return self.wire.cassette(self.scenario.name)

    @cached_property
    def exchanges(self) -> list[RecordedExchange]:
        """Return what stands in the cassette."""
        return load_exchanges(self.cassette)

    @property
    def cast(self) -> Cast:
        """Return who played when it was recorded."""
        return self.wire.cast_of(self.exchanges[0].request["model"])

    @property
    def fails(self) -> type[ProviderError] | None:
        """Return the error it must become."""
        local = self.scenario.fails_on.get(self.key) if self.cast.model == MODEL else None
        return local or self.scenario.fails


def recorded(*keys: str, fails: bool = False, stream: bool | None = None) -> list[Any]:
    """Return the scenarios of some wires as test parameters."""
    found = [Recorded(key, scenario) for key in keys for scenario in scenarios_of(key)]
    return [
        pytest.param(one, id=one.cassette.partition("recorded_")[2].removesuffix(".yaml"))
        for one in found
        if bool(one.scenario.fails) is fails and stream in (None, one.scenario.stream)
    ]


def replay(one: Recorded, http_client: httpx.Client | None = None) -> list[Message]:
    """Play it from its cassette in blocking code."""
    with Client(settings=one.wire.settings(NOWHERE), environ={}, retry=0, http_client=http_client) as client:
        return play(client, one.scenario, one.wire, one.cast)


def replay_async(one: Recorded) -> list[Message]:
    """Play it from its cassette in asynchronous code."""

    async def run() -> list[Message]:
        async with AsyncClient(settings=one.wire.settings(NOWHERE), environ={}, retry=0) as client:
            return await play_async(client, one.scenario, one.wire, one.cast)

    return asyncio.run(run())


ROADS = [pytest.param(replay, id="sync"), pytest.param(replay_async, id="async")]


def replay_cut(one: Recorded, size: int | None) -> list[Message]:
    """Play it with every body cut into pieces of `size` bytes below the client; None leaves them whole."""
    with httpx.Client(transport=_Cutting(size)) as http:
        return replay(one, http)


class _Cutting(httpx.BaseTransport):
    def __init__(self, size: int | None) -> None:
        self._inner = httpx.HTTPTransport()  # vcr answers in its place
        self._size = size

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._inner.handle_request(request)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=_Cut(answer.read(), self._size))

    def close(self) -> None:
        self._inner.close()


class _Cut(httpx.SyncByteStream):
    def __init__(self, body: bytes, size: int | None) -> None:
        self._body, self._size = body, size or max(len(body), 1)

    def __iter__(self) -> Iterator[bytes]:
        return (self._body[at : at + self._size] for at in range(0, len(self._body), self._size))


def next_turn(chosen: Provider, one: Recorded, message: Message) -> bytes:
    """Return the body of the request that follows a message: its calls answered, and another question."""
    results = [tool_result(call, "r") for call in message.tool_calls]
    options = RequestOptions(model=one.cast.model, api=one.wire.api, max_tokens=16)
    return build_request(chosen, [user("q"), message, *results, user("n")], [], options).body


def essence(message: Message) -> tuple[Any, ...]:
    """Return what two plays of one recording have in common: all but the ids and times minted anew in each."""
    content = [attrs.evolve(block, id="") if isinstance(block, ToolUseBlock) else block for block in message.content]
    facts, usage = message.metadata, message.metadata.usage
    assert usage is not None
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.reasoning_tokens)
    return (content, facts.stop_reason, facts.stop_reason_raw, facts.status, facts.model, facts.api, counts)
