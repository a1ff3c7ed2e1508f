"""Runs over the services' batch APIs: submit now, fetch within a day, at the batch price."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from interlingua import AsyncClient, Retry, cost_of
from interlingua.codec import decode_tool
from interlingua.errors import (
    BadRequestError,
    CallerError,
    CapabilityError,
    DecodeError,
    InterlinguaError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import BatchAnswer, BatchLimits, BatchStatus, ConnectionSettings, ModelInfo
from interlingua.types import Message, ToolDefinition, Usage
from interlingua_bulk.answers import AnswerFile, read_facts, replace_file
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
from interlingua_bulk.sender import answer_line, error_line
from interlingua_bulk.tables import prepare_input
from interlingua_bulk.wire_rows import WireReader

if TYPE_CHECKING:
    from interlingua import Exchange

FORMAT = "interlingua-bulk-batches/1"
RESPONSE_LIMIT = 1 << 31  # bytes of a result file
_FILLED = 0.9  # of what a service takes: sizes are measured, and limits are told in round numbers
_EARLIEST_S = 60.0  # clocks differ by less
_TRIES = 5
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SIDE = ".batches.json"
_TIER = "batch"  # of prices
_SAMPLE = Usage(input_tokens=1000, output_tokens=1000)


class UncertainBatchError(InterlinguaError):
    """The connection broke while a batch was created, and the service does not list it yet."""


@attrs.define
class Batch:
    """One batch of a run, as stored on disk.

    Attributes:
        number: from 0.
        provider: whose.
        model: canonical model id.
        name: the label it was created with.
        ranges: first and last index of the rows in it.
        rows: how many.
        state: `intent` (not known to be created), `submitted`, `fetched`, or `abandoned` (never created: its rows are
            free again).
        file: the service's id of the uploaded requests.
        id: the service's id of the batch.
        intent_at: when its creation was intended, seconds since 1970.
        raw_state: the service's last word on it.
        succeeded: requests with an answer, as the service counts; None while it does not say.
        failed: number of rows that failed.
        cost_usd: of the fetched answers whose price is known, as a decimal number; without those that an interrupted
            fetch had stored already.
        single_usd: the cost of the same answers in single requests.
    """

    number: int
    provider: str
    model: str
    name: str
    ranges: list[list[int]]
    rows: int
    state: str = "intent"
    file: str | None = None
    id: str | None = None
    intent_at: float = attrs.field(factory=time.time)
    raw_state: str | None = None
    succeeded: int | None = None
    failed: int | None = None
    cost_usd: str | None = None
    single_usd: str | None = None

    def holds(self, index: int) -> bool:
        """Return True for a row of this batch."""
        return any(first <= index <= last for first, last in self.ranges)

    def count_cost(self, message: Message, single: Decimal | None) -> None:
        """Add the cost of an answer, if both prices are known."""
        usage = message.metadata.usage
        if usage is not None and usage.cost_usd is not None and single is not None:
            self.cost_usd = f"{Decimal(self.cost_usd or 0) + usage.cost_usd:f}"
            self.single_usd = f"{Decimal(self.single_usd or 0) + single:f}"

    def note(self, status: BatchStatus) -> None:
        """Store the batch as the service reports it."""
        self.id, self.raw_state = status.id or self.id, status.raw_state
        self.succeeded, self.failed = status.succeeded, status.failed


class BatchRun:
    """The batches of one output file; use it in an `async with` statement, which holds the file's lock.

    `<out>.batches.json` beside the output records each batch before it is created, and its id afterwards: a
    batch whose creation was cut off is looked for, not created again.

    Args:
        out: the output file; shared with `run`, which does not send rows that are in a batch under way.
        rows: the input; None for the input that the output was started with.
        model: for rows that name none; None for the output's.
        options: of every request; None for the output's.
        tools: for rows that bring none; empty for the output's.
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
    ) -> None:
        self.out, self.client = Path(out), client
        facts = read_facts(self.out)
        if facts is None and rows is None:
            raise CallerError(f"{out} is no output of `bulk submit`")
        asked = {} if facts is None else facts["asked"]
        self.path = prepare_input(rows, self.out) if rows is not None else Path(facts["input"]["path"])  # type: ignore[index]
        self.model = model or asked.get("model") or client.model
        self.options = dict(options) if options is not None else read_options(asked.get("options") or {})
        self._known = None if facts is None else facts["input"]["sha256"]
        self.tools = tools or [decode_tool(tool) for tool in asked.get("tools") or ()]
        self.run_id, self.batches = read_batches(self.out)
        self._wire = WireReader(client)
        self._failed = False
        self._shares: dict[tuple[str, str], float] = {}  # batch price in single prices, by provider and model
        self._retry = Retry(max_attempts=_TRIES)

    async def __aenter__(self) -> BatchRun:
        source = await asyncio.to_thread(inspect_input, self.path, self._known)
        asked = write_asked(self.model, self.options, self.tools)
        self.answers = AnswerFile(self.out, source, asked)
        self.answers.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.answers.close()

    # -- submitting ---------------------------------------------------------------------------------------------

    async def submit(
        self, batch_rows: int = 10_000, *, failed: bool = False, cheaper_than: float | None = None
    ) -> list[Batch]:
        """Submit the rows that have no line and are in no open batch; return the created batches.

        Args:
            batch_rows: most rows of one batch; the service's own limits apply too.
            failed: submit the rows whose last line is an error, and no others.
            cheaper_than: submit only rows whose batch price is below this share of the price of single requests; other
                rows, also those of providers without batches, are left for `run`.

        Raises:
            CapabilityError, CallerError: the provider takes no batches.
            InterlinguaError: the service rejected a batch; earlier ones are submitted, and the same call continues.
        """
        await self._look_for_intents()
        waiting: dict[tuple[str, str, str], _Group] = {}
        made: list[Batch] = []
        self._failed = failed
        for index, data in iterate_rows(self.path, self._is_free):
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
            group = waiting.setdefault(target, _Group())
            if group.rows and (group.size + size > limits.size or len(group.rows) >= min(limits.requests, batch_rows)):
                made.append(await self._send(waiting.pop(target)))
                group = waiting.setdefault(target, _Group())
            group.add(index, size, exchange)
        made += [await self._send(group) for group in waiting.values()]
        return made

    def _is_free(self, index: int) -> bool:
        is_wanted = self.answers.is_failed if self._failed else self.answers.is_open
        return is_wanted(index) and not any(
            batch.holds(index) for batch in self.batches if batch.state in ("intent", "submitted")
        )

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
            batch, single = (_price_of(_SAMPLE, exchange, tier) for tier in (_TIER, None))
            is_known = batch is not None and single and _service_limits(exchange) is not None
            self._shares[target] = float(batch / single) if is_known else float("inf")  # type: ignore[operator]
        return self._shares[target] < share

    async def _send(self, group: _Group) -> Batch:
        first = group.rows[0][1].request
        number = len(self.batches)
        name = f"interlingua-{self.run_id}-{number}"
        model = f"{first.provider.key}:{first.options.model}"
        batch = Batch(number, first.provider.key, model, name, group.ranges(), len(group.rows))
        self.batches.append(batch)
        self._save()
        requests = [(self._id(index), exchange.request.wire) for index, exchange in group.rows]
        try:
            batch.file = await self._upload(batch, requests)
            self._save()
            await self._create(batch, requests)
        except (ProviderError, CallerError):  # refused: nothing was created
            batch.state = "abandoned"
            self._save()
            raise
        return batch

    async def _upload(self, batch: Batch, requests: Sequence[Any]) -> str | None:
        try:
            found: str = await self._ask(batch, "batch_upload", requests=requests, name=batch.name)
        except CapabilityError:  # the service takes requests in the body of the creation
            return None
        return found

    async def _create(self, batch: Batch, requests: Sequence[Any]) -> None:
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
                    f"could not confirm that {batch.name} was created ({error}); the same command looks for it again"
                ) from error
            else:
                batch.note(status)
                batch.state = "submitted"
                self._save()
                return

    async def _look_for_intents(self) -> None:
        for batch in self.batches:
            if batch.state == "intent" and not await self._find(batch):
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
        """Ask the services for the progress of open batches, and return all batches."""
        for batch in self.batches:
            if batch.state == "submitted":
                batch.note(await self._ask(batch, "batch_status", id=batch.id))
        self._save()
        return self.batches

    async def cancel(self) -> list[Batch]:
        """Ask the services to cancel the open batches; existing answers are fetched as usual."""
        for batch in self.batches:
            if batch.state == "submitted":
                batch.note(await self._ask(batch, "batch_cancel", id=batch.id))
        self._save()
        return self.batches

    async def fetch(self) -> list[Batch]:
        """Add the rows of all ended batches to the output; return the open batches.

        A row that has no answer gets an error line: as the service refused it, or with the code `batch_expired`,
        `batch_cancelled`, `batch_missing` (sent, and not in the results) or `batch_failed` (the whole batch).
        """
        for batch in self.batches:
            if batch.state == "submitted":
                status: BatchStatus = await self._ask(batch, "batch_status", id=batch.id)
                batch.note(status)
                if status.state == "ended":
                    await self._take(batch, status)
                    batch.state = "fetched"
                self._save()
        return [batch for batch in self.batches if batch.state == "submitted"]

    async def _take(self, batch: Batch, status: BatchStatus) -> None:
        found: dict[str, BatchAnswer] = {}
        lost = 0
        batch.cost_usd = batch.single_usd = "0"
        for result in status.results:
            for answer in await self._ask(batch, "batch_results", result=result):
                lost += not answer.id
                found[answer.id] = answer
        for index, data in iterate_rows(
            self.path, lambda index: batch.holds(index) and not self.answers.is_done(index)
        ):
            answer = found.get(self._id(index))
            if answer is None or answer.response is None:
                await self._fail(unread_row(index, data), _no_answer(batch, status, answer, lost))
            else:
                await self._read(batch, index, data, answer)
        await self.answers.flush()

    async def _read(self, batch: Batch, index: int, data: Mapping[str, Any], answer: BatchAnswer) -> None:
        """Read an answer as if it had come to the row's own request, at the batch price."""
        exchange = await self._prepare(index, data)
        if exchange is None or answer.response is None:
            return
        try:
            exchange.response.started = time.monotonic()
            message = _at_batch_price(exchange.response.read(answer.response), exchange)
        except InterlinguaError as error:
            await self._fail(unread_row(index, data), error)
            return
        batch.count_cost(message, _price_of(message.metadata.usage, exchange, None))
        line = answer_line(unread_row(index, data), None, message, exchange.request.wire.losses, 1)
        await self.answers.add(index, line, ok=True)

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

    def _id(self, index: int) -> str:
        """Return the id of a row in a batch: unique to this run, and short enough for every service."""
        digits = ""
        while index or not digits:
            index, digit = divmod(index, len(_DIGITS))
            digits = _DIGITS[digit] + digits
        return f"{self.run_id}-{digits}"

    def _save(self) -> None:
        plain = {"format": FORMAT, "run": self.run_id, "batches": [attrs.asdict(batch) for batch in self.batches]}
        replace_file(batches_file(self.out), orjson.dumps(plain, option=orjson.OPT_INDENT_2) + b"\n")


class _Group:
    """Rows that are waiting for their batch to be full."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Exchange]] = []
        self.size = 0

    def add(self, index: int, size: int, exchange: Exchange) -> None:
        """Add one row."""
        self.rows.append((index, exchange))
        self.size += size

    def ranges(self) -> list[list[int]]:
        """Return the first and last index of each run of consecutive rows."""
        found: list[list[int]] = []
        for index, _ in self.rows:
            if found and found[-1][1] == index - 1:
                found[-1][1] = index
            else:
                found.append([index, index])
        return found


def batches_file(out: Path) -> Path:
    """Return the file that holds the batches of an output."""
    return out.with_name(out.name + _SIDE)


def read_batches(out: Path) -> tuple[str, list[Batch]]:
    """Return the run's id and its batches; a new id if there are no batches."""
    try:
        plain = orjson.loads(batches_file(out).read_bytes())
    except FileNotFoundError:
        return "".join(secrets.choice(_DIGITS) for _ in range(8)), []
    if plain.get("format") != FORMAT:
        raise DecodeError(f"{batches_file(out)} was written by another version: {plain.get('format')!r}")
    return plain["run"], [Batch(**batch) for batch in plain["batches"]]


def claimed_rows(out: Path) -> Iterator[tuple[int, int]]:
    """Yield the first and last index of rows in batches that have not ended."""
    for batch in read_batches(out)[1]:
        if batch.state in ("intent", "submitted"):
            yield from ((first, last) for first, last in batch.ranges)


def _no_answer(batch: Batch, status: BatchStatus, answer: BatchAnswer | None, lost: int) -> InterlinguaError:
    """Return the error of a row without an answer."""
    provider, _, model = batch.model.partition(":")
    facts: dict[str, Any] = {"provider": provider, "model": model, "retryable": True}
    if answer is not None:
        word = {"canceled": "cancelled"}.get(answer.reason, answer.reason)
        code = f"batch_{word}" if word in ("expired", "cancelled") else "batch_failed"
        return ServerError(f"the batch ended without this row: {answer.reason}", code=code, **facts)
    word = status.raw_state.lower()
    for end, signs in (("expired", ("expired", "timeout")), ("cancelled", ("cancelled", "canceled"))):
        if any(sign in word for sign in signs):
            return ServerError(f"the batch was {end} before this row was answered", code=f"batch_{end}", **facts)
    if status.error is not None and not status.results:
        return BadRequestError(f"the batch failed: {status.error}", code="batch_failed", **facts)
    if lost:
        text = f"the service returned {lost:,} answers without the ids they were sent with"
        return ServerError(text, code="batch_missing", **facts)
    return ServerError("the batch ended, and its results lack this row", code="batch_missing", **facts)


def _at_batch_price(message: Message, exchange: Exchange) -> Message:
    """Return the message with the cost at the batch price; a batch has no latency."""
    usage = message.metadata.usage
    if usage is None:
        return message
    usage = cost_of(attrs.evolve(usage, service_tier=_TIER, latency_ms=None), _model_of(exchange), message.created_at)
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=usage))


def _price_of(usage: Usage | None, exchange: Exchange, tier: str | None) -> Decimal | None:
    """Return the cost of a usage at today's price of a tier; None if it is not known."""
    if usage is None:
        return None
    return cost_of(attrs.evolve(usage, service_tier=tier), _model_of(exchange), datetime.now(UTC)).cost_usd


def _model_of(exchange: Exchange) -> ModelInfo | None:
    return exchange.request.provider.model(exchange.request.options.model)


def _service_limits(exchange: Exchange) -> BatchLimits | None:
    return exchange.request.provider.connection(ConnectionSettings(environ=os.environ, api_key="-")).batch_limits
