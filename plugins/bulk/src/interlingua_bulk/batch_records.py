"""Batches on disk: their requests until they are submitted, and their record beside the output."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
import orjson

from interlingua.errors import CallerError, DecodeError
from interlingua.plugins import BatchStatus, WireRequest
from interlingua.types import Message
from interlingua_bulk.answers import AnswerFile, BulkInput, read_facts, replace_file

FORMAT = "interlingua-bulk-batches/1"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""Characters of the ids of runs and rows."""
_SIDE = ".batches.json"


@attrs.define
class Batch:
    """One batch of a run, as stored on disk.

    Attributes:
        number: number of the batch, from 0.
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
        fetched_from: size of the output in bytes when the first fetch of its results began.
        cost_usd: cost of the fetched answers whose price is known, as a decimal number.
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
    fetched_from: int | None = None
    cost_usd: str | None = None
    single_usd: str | None = None

    @property
    def is_open(self) -> bool:
        """True until the results are fetched: no other request is made for its rows."""
        return self.state in ("intent", "submitted")

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


class BatchRequests:
    """The requests of a batch with their ids, in a temporary file, so that one at a time is in memory.

    Args:
        folder: for the file.
        provider: the provider of all of them.
        model: their model.
    """

    def __init__(self, folder: Path, provider: str, model: str) -> None:
        self.provider, self.model = provider, model
        self.ranges: list[list[int]] = []  # first and last index of each run of consecutive rows
        self.size = self._count = 0
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed below
        self.close = self._file.close

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: int) -> tuple[str, WireRequest]:
        return next(islice(self, at, None))

    def __iter__(self) -> Iterator[tuple[str, WireRequest]]:
        place = 0
        for _ in range(self._count):
            self._file.seek(place)
            name, size, facts = orjson.loads(self._file.readline())
            request = WireRequest(body=self._file.read(size), **facts)
            place = self._file.tell()  # before another iteration moves it
            yield name, request

    def append(self, index: int, name: str, request: WireRequest, size: int) -> None:
        """Add the request of a row, which takes `size` bytes of the batch."""
        facts = {"method": request.method, "path": request.path, "headers": dict(request.headers), "api": request.api}
        self._file.seek(0, os.SEEK_END)
        self._file.write(orjson.dumps([name, len(request.body), facts]) + b"\n" + request.body)
        self._count += 1
        self.size += size
        if self.ranges and self.ranges[-1][1] == index - 1:
            self.ranges[-1][1] = index
        else:
            self.ranges.append([index, index])


def batches_file(out: Path) -> Path:
    """Return the file that holds the batches of an output."""
    return out.with_name(out.name + _SIDE)


def read_batches(out: Path) -> tuple[str, list[Batch]]:
    """Return the run's id and its batches; a new id if there are no batches."""
    try:
        plain = orjson.loads(batches_file(out).read_bytes())
    except FileNotFoundError:
        return "".join(secrets.choice(DIGITS) for _ in range(8)), []
    if plain.get("format") != FORMAT:
        raise DecodeError(f"{batches_file(out)} was written by another version: {plain.get('format')!r}")
    return plain["run"], [Batch(**batch) for batch in plain["batches"]]


def write_batches(out: Path, run_id: str, batches: Sequence[Batch]) -> None:
    """Write the batches of an output; a crash leaves the old record or the new one."""
    plain = {"format": FORMAT, "run": run_id, "batches": [attrs.asdict(batch) for batch in batches]}
    replace_file(batches_file(out), orjson.dumps(plain, option=orjson.OPT_INDENT_2) + b"\n")


def claimed_rows(batches: Iterable[Batch], rows: int) -> bytearray:
    """Return a byte for each row of the input: 1 if it is in a batch that has not ended."""
    claimed = bytearray(rows)
    for batch in batches:
        if batch.is_open:
            for first, last in batch.ranges:
                claimed[first : last + 1] = b"\1" * (last + 1 - first)
    return claimed


def count_waiting(claimed: bytearray, states: bytearray) -> int:
    """Return how many of the claimed rows have neither an answer nor an error."""
    return sum(held and not state for held, state in zip(claimed, states, strict=True))


def open_answers(out: Path, source: BulkInput, asked: Mapping[str, Any], *, force: bool = False) -> AnswerFile:
    """Open an output; arguments and errors as for `AnswerFile`.

    Raises:
        CallerError: also if rows of another input are in batches under way: their answers would become those of the
            rows in the same places.
    """
    known = read_facts(out)
    is_other = known is not None and known["input"]["sha256"] != source.sha256
    if force and is_other and any(batch.is_open for batch in read_batches(out)[1]):
        raise CallerError(f"{out} has batches under way with rows of another input: fetch them first")
    return AnswerFile(out, source, asked, force=force)
