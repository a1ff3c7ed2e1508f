"""The actor that sends rows on a cluster: it gets chunks of the input, and writes each answer to the ledger."""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import secrets
import threading
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import orjson

from interlingua import AsyncClient, Registry, Retry
from interlingua.types import ToolDefinition
from interlingua_bulk.answers import BulkInput
from interlingua_bulk.budget import Budget
from interlingua_bulk.ray_ledger import STARTS, ChunkLedger, is_claimed
from interlingua_bulk.ray_limiter import ModelRates
from interlingua_bulk.rows import content_key, explain_row, iterate_rows, read_row, unread_row
from interlingua_bulk.sender import Limits, RowAnswer, Sender, StopRunError, error_line
from interlingua_bulk.wire_rows import WireReader

REPORT_S = 0.25  # between two calls of the limiter


@attrs.frozen
class Chunk:
    """Some rows of the input.

    Attributes:
        number: from 0.
        first: index of the first row.
        part: the part of the input.
        done: 1 for each row that must not be sent.
    """

    number: int
    first: int
    part: BulkInput
    done: bytes

    def encode(self) -> str:
        """Return the chunk as JSON."""
        part = self.part
        place = [str(part.path), part.rows, part.size, part.sha256, part.start, part.line]
        return orjson.dumps([self.number, self.first, place, self.done.hex()]).decode()

    @classmethod
    def decode(cls, text: str) -> Chunk:
        """Read what `encode` returned."""
        number, first, (path, *place), done = orjson.loads(text)
        return cls(number, first, BulkInput(Path(path), *place), bytes.fromhex(done))


@attrs.frozen(kw_only=True)
class ActorSettings:
    """The settings an actor needs to send rows: plain values, because the actor starts on another machine.

    Attributes:
        ledger: the run's folder.
        limiter: name of the run's limiter, and of the run in its ledger.
        model: as for `run_on_ray`; the others too.
    """

    ledger: str
    limiter: str
    model: str | None
    options: Mapping[str, Any]
    tools: Sequence[ToolDefinition]
    client: Mapping[str, Any]
    registry: Mapping[str, Any]
    limits: Limits
    actors: int
    dedupe: bool = False


class RowActor:
    """Sends chunks of rows, several at once, in an event loop on a separate thread."""

    def __init__(self, settings: ActorSettings) -> None:
        self._settings = settings
        self._folder = Path(settings.ledger)
        self._name = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._failure = ""  # why no row can be sent here
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        try:
            (self._folder / f"actor-{os.getpid()}").touch()
            asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()
        except Exception as error:  # Ray would start the actor again without end
            self._failure = self._explain(error)

    async def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Send the rows of the chunks in a batch; never raises, for Ray would drop or repeat the block."""
        chunks = map(Chunk.decode, batch["chunk"])
        futures = [asyncio.run_coroutine_threadsafe(self._send(chunk), self._loop) for chunk in chunks]
        found = [await asyncio.wrap_future(future) for future in futures]
        return {"lines": [b"".join(lines) for lines, _ in found], "stopped": [why for _, why in found]}

    async def _begin(self) -> None:
        settings = self._settings
        registry = Registry(**settings.registry)
        self._client = AsyncClient(registry=registry, retry=Retry(max_attempts=1), **settings.client)
        self._sender = Sender(self._client, settings.model, settings.options, settings.tools, settings.limits)
        self._sender.lease_s = REPORT_S
        self._wire, self._feeding = WireReader(self._client), asyncio.Lock()
        if settings.limits.budget_usd is not None:
            self._sender.budget = Budget(Decimal(0), is_shared=True)
        self._leasing = asyncio.create_task(self._lease())

    async def _send(self, chunk: Chunk) -> tuple[Sequence[bytes], str]:
        """Return the lines of a chunk's rows, and why no further can be sent, if so."""
        if self._failure:
            return (), self._failure
        try:
            ledger = ChunkLedger(self._folder, chunk.number)
        except Exception as error:
            self._sender.stop(why := self._explain(error))
            return (), why
        why = ""
        try:
            left = [not done and chunk.first + at not in ledger.kept for at, done in enumerate(chunk.done)]
            if any(left) and (starts := ledger.count_starts()) > STARTS:
                why = f"the worker of chunk {chunk.number} was lost {starts - 1} times one after the other"
            elif self._sender.stopped is None:
                await self._send_rows(chunk, left, ledger)
        except Exception as error:
            self._sender.stop(self._explain(error))
        try:
            await ledger.close()
        except Exception as error:
            self._sender.stop(self._explain(error))
        return tuple(ledger.kept.values()), why or self._sender.stopped or ""

    async def _send_rows(self, chunk: Chunk, left: Sequence[bool], ledger: ChunkLedger) -> None:
        tasks: set[asyncio.Task[None]] = set()
        try:
            async with self._feeding:  # one chunk after the other, so that the first one soon comes back
                for at, data in iterate_rows(chunk.part, left.__getitem__):
                    while len(tasks) >= 2 * self._sender.in_flight_limit and self._sender.stopped is None:
                        _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    if self._sender.stopped is not None:
                        break
                    tasks.add(asyncio.create_task(self._keep(chunk.first + at, data, ledger)))
        finally:
            if tasks:  # answers that are paid for still come
                await asyncio.wait(tasks)

    async def _keep(self, index: int, data: Mapping[str, Any], ledger: ChunkLedger) -> None:
        try:
            row = read_row(index, data, self._wire.read, self._settings.model)
        except Exception as error:  # a fault of one row must not stop the others
            row = unread_row(index, data)
            answer = RowAnswer(False, error_line(row, explain_row(error, row.id), 0))
        else:
            key = content_key(row, self._settings.model, self._settings.options) if self._settings.dedupe else None
            try:
                answer = await self._sender.send(row, key)
            except StopRunError as stopped:
                self._sender.stop(stopped.why)
                return
            except Exception as error:
                self._sender.stop(self._explain(error))
                return
        try:
            ledger.add(index, answer.line)
        except Exception as error:
            self._sender.stop(self._explain(error))

    async def _lease(self) -> None:
        """Get slices of the shared rates and budget, and share pauses and stops, as long as this actor lives."""
        ray = importlib.import_module("ray")
        sender, limiter = self._sender, None
        shared: dict[str | None, float] = {}  # pauses from the limiter; sent back, they would grow with each call
        while True:
            try:
                if await asyncio.to_thread(is_claimed, self._folder, self._settings.limiter):
                    sender.stop("the run was started again")
                limiter = limiter or ray.get_actor(self._settings.limiter)
                paces = dict(sender.paces)
                wanted = {
                    model: ModelRates([pace.requests.wanted(), pace.tokens.wanted()], pace.own_pause(shared.get(model)))
                    for model, pace in paces.items()
                }
                own = None if sender.budget.is_used_up else sender.stopped  # others may have a part of it left
                granted, stopped = await limiter.lease.remote(wanted, own)
                for model, rates in granted.items():
                    pace = paces[model]
                    for bucket, amount in zip((pace.requests, pace.tokens), rates.amounts, strict=True):
                        bucket.take(-amount)
                    if rates.closed_for > pace.closed_for:
                        shared[model] = pace.close_for(rates.closed_for)
                    pace.wake()
                if stopped is not None:
                    sender.stop(stopped)
                if self._settings.limits.budget_usd is not None:
                    await self._take_budget(limiter)
            except OSError as error:
                sender.stop(self._explain(error))
            except ray.exceptions.RayTaskError as error:  # it cannot write its file
                sender.stop(self._explain(error.cause))
            except (ray.exceptions.RayError, ValueError):  # its machine was lost: it starts again on another one
                limiter = None
            await asyncio.sleep(REPORT_S)

    async def _take_budget(self, limiter: Any) -> None:
        budget = self._sender.budget
        budget.total = budget.spent + budget.reserved  # until the reply, which may be less than it was
        asked = self._name, budget.spent, budget.reserved, list(budget.waiting.values())
        granted, is_used_up = await limiter.grant.remote(*asked)
        budget.change(granted, is_used_up=is_used_up)

    def _explain(self, error: BaseException) -> str:
        return f"{platform.node()}: {error}" if str(error) else f"{platform.node()}: {type(error).__name__}"
