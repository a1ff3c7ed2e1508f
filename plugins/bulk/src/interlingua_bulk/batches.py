"""Runs over the services' batch APIs: submit now, fetch within a day, at the batch price."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from interlingua import AsyncClient, Retry
from interlingua.codec import decode_tool
from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    CallerError,
    CapabilityError,
    InterlinguaError,
    OverloadedError,
    ProviderError,
    RateLimitError,
)
from interlingua.plugins import BatchLimits, BatchStatus, ConnectionSettings
from interlingua.types import ToolDefinition, Usage
from interlingua_bulk.answers import read_facts
from interlingua_bulk.batch_records import Batch, BatchRequests, claimed_rows, open_answers, read_batches, write_batches
from interlingua_bulk.results import TIER, ResultWriter, price_of, row_name
from interlingua_bulk.rows import (
    BulkRow,
    explain_row,
    inspect_input,
    iterate_rows,
    read_options,
    read_row,
    unread_row,
    write_asked,
)
from interlingua_bulk.sender import error_line
from interlingua_bulk.tables import prepare_input
from interlingua_bulk.wire_rows import WireReader

if TYPE_CHECKING:
    from interlingua import Exchange

RESPONSE_LIMIT = 1 << 31  # bytes of a result file
_FILLED = 0.9  # of what a service takes: sizes are measured, and limits are told in round numbers
_SIZE = 64 * 2**20  # most bytes of a batch: twice as much memory is needed to submit it
_GROUPS = 64  # batches that are filled at the same time
_LISTED_S = 10.0  # from the creation of a batch until the service certainly lists it
_EARLIEST_S = 60.0  # clocks differ by less
_TRIES = 5
_SAMPLE = Usage(input_tokens=1000, output_tokens=1000)


class UncertainBatchError(InterlinguaError):
    """The connection broke while a batch was created, and the service does not list it yet."""


class BatchRun:
    """The batches of one output file; use it in an `async with` statement, which holds the file's lock.

    `<out>.batches.json` beside the output records each batch before it is created, and its id afterwards: a
    batch whose creation was cut off is searched for, not created again.

    Args:
        out: the output file; shared with `run`, which does not send rows that are in a batch under way.
        rows: the input; None for the input that the output was started with.
        model: model of rows without a model; None takes the output's.
        options: options of every request; None takes the output's.
        tools: tools of rows without tools; empty takes the output's.
        force: continue although input, model or options differ from the run that started `out`.
        client: makes and sends requests.
    """

    def __init__(
        self,
        out: str | Path,
        client: AsyncClient,
        rows: str | Path | None = None,
        *,
        model: str | None = None,
        options: Mapping[str, Any] | None = None,
        tools: Sequence[ToolDefinition] = (),
        force: bool = False,
    ) -> None:
        self.out, self.client, self._force = Path(out), client, force
        facts = read_facts(self.out)
        if facts is None and rows is None:
            raise CallerError(f"{out} is not an output of `bulk submit`")
        asked = {} if facts is None else facts["asked"]
        self.path = prepare_input(rows, self.out) if rows is not None else Path(facts["input"]["path"])  # type: ignore[index]
        self.model = model or asked.get("model") or client.model
        self.options = dict(options) if options is not None else read_options(asked.get("options") or {})
        self._known = None if facts is None else facts["input"]["sha256"]
        self.tools = tools or [decode_tool(tool) for tool in asked.get("tools") or ()]
        self.run_id, self.batches = read_batches(self.out)
        self._wire = WireReader(client)
        self._waiting: dict[tuple[str, str, str], BatchRequests] = {}  # to be filled: by provider, path and model
        self._shares: dict[tuple[str, str], float] = {}  # batch price in single prices, by provider and model
        self._retry = Retry(max_attempts=_TRIES)

    async def __aenter__(self) -> BatchRun:
        source = await asyncio.to_thread(inspect_input, self.path, self._known, self.model)
        asked = write_asked(self.model, self.options, self.tools)
        self.answers = open_answers(self.out, source, asked, force=self._force)
        self.answers.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._drop_waiting()
        await self.answers.close()

    def _drop_waiting(self) -> None:
        while self._waiting:
            self._waiting.popitem()[1].close()

    # -- submitting ---------------------------------------------------------------------------------------------

    async def submit(
        self,
        batch_rows: int = 10_000,
        *,
        failed: bool = False,
        cheaper_than: float | None = None,
        on_batch: Callable[[Batch], None] | None = None,
    ) -> list[Batch]:
        """Submit the rows that have no line and are in no open batch; return the created batches.

        Args:
            batch_rows: most rows of one batch; the service's own limits apply too.
            failed: submit the rows whose last line is an error, and no others.
            cheaper_than: submit only rows whose batch price is below this share of the price of single requests; other
                rows, also those of providers without batches, are left for `run`.
            on_batch: called with each batch that was created.

        Raises:
            CapabilityError, CallerError: the provider takes no batches.
            InterlinguaError: the service rejected a batch; earlier ones are submitted, and the same call continues.
        """
        self._drop_waiting()  # of an earlier call that failed
        await self._look_for_intents()
        waiting, made = self._waiting, list[Batch]()

        async def send(target: tuple[str, str, str]) -> None:
            made.append(await self._send(waiting.pop(target)))
            if on_batch is not None:
                on_batch(made[-1])

        is_wanted = self.answers.is_failed if failed else self.answers.is_open
        claimed = claimed_rows(self.batches, len(self.answers.states))
        for index, data in iterate_rows(self.answers.source, lambda index: is_wanted(index) and not claimed[index]):
            exchange = await self._prepare(index, data)
            if exchange is None or (cheaper_than is not None and not self._is_cheaper(exchange, cheaper_than)):
                continue
            request = exchange.request
            target = (request.provider.key, request.wire.path, request.options.model)
            limits = self._limits(exchange)
            size = len(request.wire.body) + 200  # the rest of the line around the body
            if size > limits.size:
                refused = CallerError(f"the request has {size:,} bytes, more than a batch of {target[0]} may")
                await self._fail(unread_row(index, data), refused)
                continue
            group = waiting.get(target)
            if group and (
                group.size + size > min(limits.size, _SIZE) or len(group) >= min(limits.requests, batch_rows)
            ):
                await send(target)
                group = None
            if group is None:
                if len(waiting) >= _GROUPS:
                    await send(max(waiting, key=lambda each: waiting[each].size))
                group = waiting[target] = BatchRequests(self.out.parent, target[0], target[2])
            group.append(index, row_name(self.run_id, index), request.wire, size)
        while waiting:
            await send(next(iter(waiting)))
        return made

    def _limits(self, exchange: Exchange) -> BatchLimits:
        found = _service_limits(exchange)
        if found is None:
            key = exchange.request.provider.key
            raise CallerError(f"{key} takes no batches: send the rows with `bulk run` instead")
        return BatchLimits(int(found.requests * _FILLED), int(found.size * _FILLED))

    def _is_cheaper(self, exchange: Exchange, share: float) -> bool:
        """Tell whether a batch costs less than this share of single requests: in sum for input and output tokens."""
        target = (exchange.request.provider.key, exchange.request.options.model)
        if target not in self._shares:
            model = exchange.request.provider.model(target[1])
            batch, single = (price_of(_SAMPLE, model, tier) for tier in (TIER, None))
            is_known = batch is not None and single and _service_limits(exchange) is not None
            self._shares[target] = float(batch / single) if is_known else float("inf")  # type: ignore[operator]
        return self._shares[target] < share

    async def _send(self, requests: BatchRequests) -> Batch:
        number = len(self.batches)
        name = f"interlingua-{self.run_id}-{number}"
        model = f"{requests.provider}:{requests.model}"
        batch = Batch(number, requests.provider, model, name, requests.ranges, len(requests))
        try:
            batch.file = await self._upload(batch, requests)
            batch.intent_at = time.time()
            self.batches.append(batch)
            self._save()
            await self._create(batch, requests)
        except (ProviderError, CallerError):  # refused: nothing was created
            batch.state = "abandoned"
            self._save()
            raise
        finally:
            requests.close()
        return batch

    async def _upload(self, batch: Batch, requests: BatchRequests) -> str | None:
        try:
            found: str = await self._ask(batch, "batch_upload", requests=requests, name=batch.name)
        except CapabilityError:  # the service takes requests in the body of the creation
            return None
        return found

    async def _create(self, batch: Batch, requests: BatchRequests) -> None:
        """Create a batch once; if an earlier attempt is uncertain, search for it among the service's batches."""
        arguments = {"requests": requests, "name": batch.name, "file": batch.file}
        for attempt in range(1, _TRIES + 1):
            try:
                status = await self.client.auxiliary(batch.provider, "batch_create", **arguments)
            except (RateLimitError, OverloadedError) as error:  # nothing was created
                delay = self._retry.delay(error, attempt)
                if delay is None:
                    raise
                await asyncio.sleep(delay)
            except (BadRequestError, CallerError):
                raise
            except InterlinguaError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(self._retry.delay(error, attempt) or 0)
                if await self._find(batch):
                    return
                raise UncertainBatchError(
                    f"could not confirm that {batch.name} was created ({error}); the same command searches for it again"
                ) from error
            else:
                batch.note(status)
                batch.state = "submitted"
                self._save()
                return

    async def _look_for_intents(self) -> None:
        for batch in self.batches:
            if batch.state == "intent":
                await asyncio.sleep(max(batch.intent_at + _LISTED_S - time.time(), 0.0))
                if not await self._find(batch):
                    batch.state = "abandoned"
                    self._save()

    async def _find(self, batch: Batch) -> bool:
        """Search for a batch by its label, or by time, size and other batches if the service has no labels."""
        found: list[BatchStatus] = await self._ask(batch, "batch_list")
        known = {other.id for other in self.batches}
        if any(one.name is not None for one in found):
            same = [one for one in found if one.name == batch.name]
        else:
            same = [
                one
                for one in found
                if one.id not in known
                and one.total == batch.rows
                and (one.created_at or 0) > batch.intent_at - _EARLIEST_S
            ]
        if len(same) > 1:
            ids = ", ".join(one.id for one in same)
            raise CallerError(f"several batches may be {batch.name}: {ids}; cancel all but one at the service")
        if same:
            batch.note(same[0])
            batch.state = "submitted"
            self._save()
        return bool(same)

    # -- afterwards ---------------------------------------------------------------------------------------------

    async def status(self) -> list[Batch]:
        """Ask the services for the progress of open batches, and return all batches.

        Raises:
            InterlinguaError: a service refused; the other batches are up to date. So do `cancel` and `fetch`.
        """
        await self._each_open(self._note_status)
        return self.batches

    async def cancel(self) -> list[Batch]:
        """Ask the services to cancel the open batches; existing answers are fetched as usual."""
        await self._each_open(self._cancel)
        return self.batches

    async def fetch(self, on_row: Callable[[Batch, int], None] | None = None) -> list[Batch]:
        """Add the rows of all ended batches to the output; return the open batches.

        Args:
            on_row: called with a batch and how many of its rows are in the output, after each answer.

        A row that has no answer gets an error line: as the service refused it, or with the code `batch_expired`,
        `batch_cancelled`, `batch_missing` (sent, and not in the results), `batch_unreadable` (the results lack it, and
        one of their lines cannot be read) or `batch_failed` (the whole batch).
        """
        await self._look_for_intents()
        await self._each_open(partial(self._fetch, on_row))
        return [batch for batch in self.batches if batch.state == "submitted"]

    async def _each_open(self, action: Callable[[Batch], Awaitable[Any]]) -> None:
        """Do something with each open batch; the failure of one batch is raised after the others."""
        failure: InterlinguaError | None = None
        for batch in self.batches:
            if batch.state == "submitted":
                try:
                    await action(batch)
                except InterlinguaError as error:
                    if isinstance(error, AuthenticationError) or getattr(error, "phase", "") == "connect":
                        raise  # the others would fail too
                    failure = failure or error
                finally:
                    self._save()
        if failure is not None:
            raise failure

    async def _note_status(self, batch: Batch) -> BatchStatus:
        status: BatchStatus = await self._ask(batch, "batch_status", id=batch.id)
        batch.note(status)
        return status

    async def _cancel(self, batch: Batch) -> None:
        try:
            batch.note(await self._ask(batch, "batch_cancel", id=batch.id))
        except ProviderError:  # it may have ended meanwhile
            if (await self._note_status(batch)).state != "ended":
                raise

    async def _fetch(self, on_row: Callable[[Batch, int], None] | None, batch: Batch) -> None:
        status = await self._note_status(batch)
        if status.state != "ended":
            return
        if batch.fetched_from is None:
            batch.fetched_from = self.answers.size
            self._save()
        writer = ResultWriter(self.client, self.answers, self.path, self.run_id, self._prepare, on_row=on_row)
        await writer.write(batch, status)
        batch.state = "fetched"

    async def _prepare(self, index: int, data: Mapping[str, Any]) -> Exchange | None:
        """Write a row's request; a row that cannot be written gets its error line."""
        try:
            row = read_row(index, data, self._wire.read, self.model)
            options = {**self.options, **row.options}
            model = row.model or self.model
            return await self.client.prepare(row.messages, model=model, tools=row.tools or self.tools, **options)
        except Exception as error:  # a fault of one row must not stop the others
            unread = unread_row(index, data)
            await self._fail(unread, explain_row(error, unread.id))
            return None

    async def _fail(self, row: BulkRow, error: InterlinguaError) -> None:
        await self.answers.add(row.index, error_line(row, error, 1), ok=False)

    async def _ask(self, batch: Batch, kind: str, **arguments: Any) -> Any:
        """Make a request that is safe to repeat."""
        for attempt in range(1, _TRIES + 1):
            try:
                return await self.client.auxiliary(batch.provider, kind, **arguments)
            except InterlinguaError as error:
                delay = self._retry.delay(error, attempt)
                if delay is None:
                    raise
                await asyncio.sleep(delay)
        raise AssertionError  # the last delay is None

    def _save(self) -> None:
        write_batches(self.out, self.run_id, self.batches)


def _service_limits(exchange: Exchange) -> BatchLimits | None:
    return exchange.request.provider.connection(ConnectionSettings(environ=os.environ, api_key="-")).batch_limits
