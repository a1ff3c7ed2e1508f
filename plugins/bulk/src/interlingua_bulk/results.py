"""The results of a batch: read line by line as they arrive, and stored row by row."""

from __future__ import annotations

import asyncio
import time
from array import array
from bisect import bisect_right
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from interlingua import AsyncClient, Retry, cost_of
from interlingua.codec import decode_message
from interlingua.errors import (
    BadRequestError,
    InterlinguaError,
    MalformedResponseError,
    ServerError,
    StreamInterruptedError,
)
from interlingua.plugins import BatchAnswer, BatchStatus, ModelInfo, WireResponse
from interlingua.types import Message, Usage
from interlingua_bulk.answers import AnswerFile, read_answers
from interlingua_bulk.batch_records import DIGITS, Batch
from interlingua_bulk.rows import load_row, unread_row
from interlingua_bulk.sender import answer_line, error_line

if TYPE_CHECKING:
    from interlingua import Exchange

LINE_LIMIT = 64 * 1024 * 1024
"""Most bytes of a line of results; a longer one is skipped, and its row gets an error."""
TIER = "batch"  # of prices
_TRIES = 5
_OPEN, _FAILED, _DONE = range(3)

Prepare = Callable[[int, Mapping[str, Any]], Awaitable["Exchange | None"]]


class BatchRows:
    """The rows of one batch: their places in the input and their outcomes, in 9 bytes of memory a row.

    Args:
        path: the input.
        ranges: first and last index of each run of consecutive rows.
    """

    def __init__(self, path: Path, ranges: list[list[int]]) -> None:
        self._path, self._ranges = path, sorted(ranges)
        self._firsts = [first for first, _ in self._ranges]
        self._places = array("Q")  # in the input, in bytes
        self._before: list[int] = []  # rows of earlier ranges
        count = 0
        for first, last in self._ranges:
            self._before.append(count)
            count += last - first + 1
        self._states = bytearray(count)
        self._file = path.open("rb")
        index = place = 0
        for line in self._file:
            if line.strip():
                if self._at(index) is not None:
                    self._places.append(place)
                index += 1
            place += len(line)

    def __enter__(self) -> BatchRows:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def __contains__(self, index: int) -> bool:
        return self._at(index) is not None

    @property
    def settled(self) -> int:
        """How many rows have an answer or an error."""
        return len(self._states) - self._states.count(_OPEN)

    @property
    def is_open(self) -> bool:
        """True while a row has no outcome."""
        return _OPEN in self._states

    def read(self, index: int) -> Mapping[str, Any]:
        """Return the JSON object of a row."""
        self._file.seek(self._places[self._at(index) or 0])
        return load_row(self._file.readline(), str(self._path), index + 1)

    def takes(self, index: int, *, ok: bool) -> bool:
        """Return True if an outcome is news: the first one of a row, or an answer after an error."""
        place = self._at(index)
        return place is not None and self._states[place] < (_DONE if ok else _FAILED)

    def settle(self, index: int, *, ok: bool) -> None:
        """Note the outcome of a row."""
        self._states[self._at(index) or 0] = _DONE if ok else _FAILED

    def open_rows(self) -> list[int]:
        """Return the rows that have no outcome."""
        found = (index for first, last in self._ranges for index in range(first, last + 1))
        return [index for index, state in zip(found, self._states, strict=True) if state == _OPEN]

    def _at(self, index: int) -> int | None:
        at = bisect_right(self._firsts, index) - 1
        if at < 0 or index > self._ranges[at][1]:
            return None
        return self._before[at] + index - self._firsts[at]


class ResultWriter:
    """Writes the results of batches to the output, each row as soon as its line has arrived.

    Args:
        client: its provider reads the results.
        answers: the output.
        path: the input.
        run_id: part of the ids of the rows.
        prepare: writes the request of a row, or its error line if that fails.
        line_limit: most bytes of a line of results.
        on_row: called after each answer, with the batch and how many of its rows have an outcome.
    """

    def __init__(
        self,
        client: AsyncClient,
        answers: AnswerFile,
        path: Path,
        run_id: str,
        prepare: Prepare,
        line_limit: int = LINE_LIMIT,
        on_row: Callable[[Batch, int], None] | None = None,
    ) -> None:
        self._client, self._answers, self._path = client, answers, path
        self._run_id, self._prepare, self._line_limit = run_id, prepare, line_limit
        self._on_row = on_row
        self._retry = Retry(max_attempts=_TRIES)

    async def write(self, batch: Batch, status: BatchStatus) -> None:
        """Write a line for each row of an ended batch.

        Rows that an interrupted call has written are skipped. After a cut connection the results are requested again;
        the count of tries starts again when a row was written.

        Raises:
            InterlinguaError: the results could not be read to the end; the rows read so far are in the output.
        """
        with BatchRows(self._path, batch.ranges) as rows:
            batch.cost_usd = batch.single_usd = "0"
            self._read_written(batch, rows)
            losses = _Losses()
            for result in status.results:
                await self._write_result(batch, result, rows, losses)
            for index in rows.open_rows():
                await self._fail(rows, index, _no_answer(batch, status, losses))
        await self._answers.flush()

    def _read_written(self, batch: Batch, rows: BatchRows) -> None:
        """Note the rows that an interrupted fetch has written, and what their answers cost."""
        model = self._client.registry.provider(batch.provider).model(batch.model.partition(":")[2])
        for line in read_answers(self._answers.path, batch.fetched_from or 0):
            ok = line["status"] == "ok"
            if rows.takes(line["index"], ok=ok):
                rows.settle(line["index"], ok=ok)
                if ok:
                    message = decode_message(line["message"])
                    batch.count_cost(message, price_of(message.metadata.usage, model, None))

    async def _write_result(self, batch: Batch, result: str, rows: BatchRows, losses: _Losses) -> None:
        attempt = 0
        while rows.is_open:
            before = rows.settled
            lost = _Losses()
            try:
                async for answer in self._answers_of(batch.provider, result, lost):
                    await self._write_answer(batch, answer, rows, lost)
                    if self._on_row is not None:
                        self._on_row(batch, rows.settled)
            except InterlinguaError as error:
                attempt = 1 if rows.settled > before else attempt + 1
                delay = self._retry.delay(error, attempt)
                if delay is None:
                    raise
                await asyncio.sleep(delay)
            else:
                losses.add(lost)
                return

    async def _answers_of(self, provider: str, result: str, losses: _Losses) -> AsyncIterator[BatchAnswer]:
        """Yield the answers in one file of results."""
        body = await self._client.auxiliary(provider, "batch_results", result=result, lines=True)
        if isinstance(body, list):  # one JSON document, or a plugin that reads the file as a whole
            for answer in body:
                yield answer
            return
        is_framed = not body.headers.keys().isdisjoint(
            ("content-length", "transfer-encoding")
        )  # a cut is an error then
        read = self._client.registry.provider(provider).from_wire_auxiliary
        try:
            async for number, line, is_whole in read_lines(body, self._line_limit):
                if line is None:
                    losses.note(f"line {number:,} is longer than {self._line_limit:,} bytes")
                    continue
                try:
                    found = read("batch_results", WireResponse(body=line))
                except MalformedResponseError as error:
                    if not is_whole and not is_framed:  # otherwise a cut is an error of the transport
                        raise StreamInterruptedError(f"the results end within line {number:,}") from error
                    losses.note(f"line {number:,} cannot be read: {error}")
                    continue
                for answer in found:
                    if _has_types(answer):
                        yield answer
                    else:
                        losses.note(f"line {number:,} has no id that is a string, or no status that is a number")
        finally:
            await body.close()

    async def _write_answer(self, batch: Batch, answer: BatchAnswer, rows: BatchRows, losses: _Losses) -> None:
        """Read an answer as if it had come to the row's own request, at the batch price."""
        losses.unnamed += not answer.id
        index = row_index(self._run_id, answer.id)
        if index is None or not rows.takes(index, ok=answer.response is not None):
            return
        if answer.response is None:
            await self._fail(rows, index, _failure(batch, answer.reason))
            return
        data = rows.read(index)
        exchange = await self._prepare(index, data)
        if exchange is None:
            rows.settle(index, ok=False)
            return
        model = exchange.request.provider.model(exchange.request.options.model)
        try:
            exchange.response.started = time.monotonic()
            message = _at_batch_price(exchange.response.read(answer.response), model)
        except InterlinguaError as error:
            await self._fail(rows, index, error)
            return
        line = answer_line(unread_row(index, data), None, message, exchange.request.wire.losses, 1)
        await self._answers.add(index, line, ok=True)
        rows.settle(index, ok=True)
        batch.count_cost(message, price_of(message.metadata.usage, model, None))

    async def _fail(self, rows: BatchRows, index: int, error: InterlinguaError) -> None:
        if rows.takes(index, ok=False):
            await self._answers.add(index, error_line(unread_row(index, rows.read(index)), error, 1), ok=False)
            rows.settle(index, ok=False)


@attrs.define
class _Losses:
    """Counts parts of the results of a batch that belong to no row.

    Attributes:
        unnamed: answers without an id.
        lines: lines that could not be read.
        first: the fault of the first of them.
    """

    unnamed: int = 0
    lines: int = 0
    first: str = ""

    def note(self, fault: str) -> None:
        """Count a line that could not be read."""
        self.lines += 1
        self.first = self.first or fault

    def add(self, other: _Losses) -> None:
        """Add what another file of the same batch lost."""
        self.unnamed += other.unnamed
        self.lines += other.lines
        self.first = self.first or other.first


async def read_lines(pieces: AsyncIterable[bytes], limit: int) -> AsyncIterator[tuple[int, bytes | None, bool]]:
    """Yield number and bytes of each line that is not empty, and whether its end has arrived.

    Args:
        pieces: the file, cut anywhere.
        limit: most bytes of a line; a longer one is not kept, and yielded as None.
    """
    kept: list[bytes] = []
    number, size = 1, 0
    async for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            if size + len(end) > limit:
                yield number, None, True
            elif (line := b"".join((*kept, end))).strip():
                yield number, line, True
            kept.clear()
            number, size = number + 1, 0
        size += len(rest)
        kept.append(rest)
        if size > limit:
            kept.clear()
    if size > limit:
        yield number, None, False
    elif (line := b"".join(kept)).strip():
        yield number, line, False


def _has_types(answer: BatchAnswer) -> bool:
    """Return True if id and status have their types; plugins take them from the line unchanged."""
    status = 0 if answer.response is None else answer.response.status
    return isinstance(answer.id, str) and isinstance(status, int) and not isinstance(status, bool)


def row_name(run_id: str, index: int) -> str:
    """Return the id of a row in a batch: unique to its run, and short enough for every service."""
    digits = ""
    while index or not digits:
        index, digit = divmod(index, len(DIGITS))
        digits = DIGITS[digit] + digits
    return f"{run_id}-{digits}"


def row_index(run_id: str, name: str) -> int | None:
    """Return the index of the row with this id; None for an id that is not of this run."""
    try:
        index = int(name.removeprefix(f"{run_id}-"), len(DIGITS))
    except ValueError:
        return None
    return index if index >= 0 and row_name(run_id, index) == name else None


def price_of(usage: Usage | None, model: ModelInfo | None, tier: str | None) -> Decimal | None:
    """Return the cost of a usage at today's price of a tier; None if it is not known."""
    if usage is None:
        return None
    return cost_of(attrs.evolve(usage, service_tier=tier), model, datetime.now(UTC)).cost_usd


def _at_batch_price(message: Message, model: ModelInfo | None) -> Message:
    """Return the message with the cost at the batch price; a batch has no latency."""
    usage = message.metadata.usage
    if usage is None:
        return message
    usage = cost_of(attrs.evolve(usage, service_tier=TIER, latency_ms=None), model, message.created_at)
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=usage))


def _failure(batch: Batch, reason: str) -> InterlinguaError:
    """Return the error of a row for which the results have a reason instead of an answer."""
    word = {"canceled": "cancelled"}.get(reason, reason)
    code = f"batch_{word}" if word in ("expired", "cancelled") else "batch_failed"
    return ServerError(f"the batch ended without this row: {reason}", code=code, **_facts(batch))


def _no_answer(batch: Batch, status: BatchStatus, losses: _Losses) -> InterlinguaError:
    """Return the error of a row that the results lack."""
    facts, word = _facts(batch), status.raw_state.lower()
    if losses.lines:
        text = f"the results lack this row, and {losses.lines:,} of their lines belong to no row: {losses.first}"
        return MalformedResponseError(text, code="batch_unreadable", **facts)
    for end, signs in (("expired", ("expired", "timeout")), ("cancelled", ("cancelled", "canceled"))):
        if any(sign in word for sign in signs):
            return ServerError(f"the batch was {end} before this row was answered", code=f"batch_{end}", **facts)
    if status.error is not None and not status.results:
        return BadRequestError(f"the batch failed: {status.error}", code="batch_failed", **facts)
    if losses.unnamed:
        text = f"the service returned {losses.unnamed:,} answers without the ids they were sent with"
        return ServerError(text, code="batch_missing", **facts)
    return ServerError("the batch ended, and its results lack this row", code="batch_missing", **facts)


def _facts(batch: Batch) -> dict[str, Any]:
    provider, _, model = batch.model.partition(":")
    return {"provider": provider, "model": model, "retryable": True}
