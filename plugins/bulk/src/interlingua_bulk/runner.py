"""One run over a file of requests, on one machine."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import orjson

from interlingua import AsyncClient, Retry
from interlingua.errors import CallerError, InterlinguaError
from interlingua.plugins import explain_arguments
from interlingua.types import ToolDefinition
from interlingua_bulk.answers import AnswerFile, read_facts
from interlingua_bulk.batch_records import claimed_rows, count_waiting, open_answers, read_batches
from interlingua_bulk.rows import (
    BulkRow,
    InspectionStoppedError,
    content_key,
    explain_row,
    inspect_input,
    iterate_rows,
    read_row,
    unread_row,
    write_asked,
)
from interlingua_bulk.sender import Limits, RowAnswer, Sender, StopRunError, error_line, shared_line
from interlingua_bulk.tables import prepare_input
from interlingua_bulk.wire_rows import WireReader

_MOST_HELD = 1000  # rows in memory that wait for the answer of another

INTERRUPTED = "interrupted"


@attrs.define
class BulkReport:
    """The result of a run.

    Attributes:
        rows: rows in the input.
        done: rows with an answer, those of earlier runs included.
        failed: rows whose last line is an error.
        in_batches: rows without an answer that are in batches under way, and not sent.
        resumed: rows that were finished before this run.
        asked: requests that were sent in this run.
        input_tokens: input tokens of this run's answers.
        output_tokens: output tokens of all answers.
        cost_usd: cost of this run's answers whose price is known.
        unpriced: answers of this run whose price is not known.
        shared: rows that share another's answer.
        seconds: duration of this run.
        stopped: why the run ended before all rows were finished; None when they were.
        error: the error that stopped the run, if any.
    """

    rows: int
    done: int = 0
    failed: int = 0
    in_batches: int = 0
    resumed: int = 0
    asked: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    unpriced: int = 0
    shared: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    error: InterlinguaError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values; money as a decimal string."""
        plain = {
            name: getattr(self, name) for name in attrs.fields_dict(BulkReport) if name not in ("error", "cost_usd")
        }
        return {**plain, "seconds": round(self.seconds, 3), "cost_usd": f"{self.cost_usd:f}"}


def _places() -> dict[str, str]:
    return dict.fromkeys(("api_key", "base_url", "settings"), "pass a client: client=AsyncClient(…, {}=…)")


@explain_arguments("it is an option of the requests: options={{'{}': …}}", _places)
async def arun(
    rows: str | Path | Iterable[Mapping[str, Any]],
    out: str | Path,
    *,
    model: str | None = None,
    options: Mapping[str, Any] | None = None,
    tools: Sequence[ToolDefinition] = (),
    concurrency: int = 128,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    budget_usd: Decimal | float | str | None = None,
    max_attempts: int = 5,
    patience_s: float = 600.0,
    dedupe: bool = False,
    retry_failed: bool = False,
    force: bool = False,
    client: AsyncClient | None = None,
    on_progress: Callable[[BulkReport], None] | None = None,
    stop: asyncio.Event | None = None,
) -> BulkReport:
    """Send every row of a file once, and append each answer to another file.

    The same call continues an interrupted run: rows with a line in `out` are not sent again.

    Args:
        rows: the input file (JSON Lines, CSV or Parquet by its suffix, `.gz` or `.zst` behind it), or rows, for example
            of `read_table`. Rows that are not plain JSON Lines are copied to `<out>.in.jsonl`.
        out: the output file; `<out>.run.json` says beside it what was asked.
        model: model of rows without a model; None takes the client's default.
        options: options of every request, named as in `RequestKwargs`; a row's own options win.
        tools: tools of rows without tools.
        concurrency: most requests under way for one model; how many there are adapts to the service.
        requests_per_minute: per model; None leaves it to the service's refusals and headers.
        tokens_per_minute: input and output tokens, per model; None measures the rate.
        budget_usd: of this call. A request is sent if it fits, with the most that it and those under way may cost; if
            `max_tokens` is not set, with the average cost so far, after a first one alone. An answer of unknown cost
            stops the run.
        max_attempts: times one row is sent if the service fails or the connection breaks; refusals for load do not
            count.
        patience_s: longest wait in seconds that a service may ask for; one that asks for more stops the run.
        dedupe: rows that ask the same share one answer.
        retry_failed: send those rows again whose last line is an error.
        force: continue although input, model or options differ from the run that started `out`.
        client: the client to use; without it the run creates a client and closes it.
        on_progress: called about twice a second and at the end.
        stop: set it to let what is under way end, and send nothing more.

    Raises:
        CallerError: the output belongs to another run or process, an option is unknown, or a limit is not a number.
        DecodeError: the input cannot be read; nothing was sent.

    If the input is changed during the run, what is under way ends and the report has a DecodeError.
    """
    out = Path(out)
    limits = Limits(
        concurrency=concurrency,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        budget_usd=budget_usd,
        max_attempts=max_attempts,
        patience_s=patience_s,
    )
    stop = stop if stop is not None else asyncio.Event()
    try:
        path = await asyncio.to_thread(prepare_input, rows, out, stopped=stop.is_set)
    except InspectionStoppedError:
        return BulkReport(rows=0, stopped=INTERRUPTED)
    options = dict(options or {})
    own = client is None
    client = client if client is not None else AsyncClient(model, retry=Retry(max_attempts=1))
    try:
        sender = Sender(client, model or client.model, options, tools, limits)
        source = await asyncio.to_thread(inspect_input, path, _known_digest(out), sender.model, stop.is_set)
        asked = write_asked(model or client.model, options, tools)
        answers = open_answers(out, source, asked, force=force)
        async with answers:
            run = _Run(answers, sender, dedupe=dedupe, retry_failed=retry_failed, stop=stop)
            return await run.finish(on_progress)
    except InspectionStoppedError:
        return BulkReport(rows=0, stopped=INTERRUPTED)
    finally:
        if own:
            await client.close()


def run(rows: str | Path | Iterable[Mapping[str, Any]], out: str | Path, **arguments: Any) -> BulkReport:
    """As `arun`, for blocking code: the first Ctrl-C lets what is under way end, the second breaks it off."""

    async def main() -> BulkReport:
        stop = arguments.setdefault("stop", asyncio.Event())
        with stop_on_interrupt(stop):
            return await arun(rows, out, **arguments)

    return asyncio.run(main())


class stop_on_interrupt:  # noqa: N801  used like a function
    """Let the first Ctrl-C set an event; the second one interrupts as usual."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop

    def __enter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._set = threading.current_thread() is threading.main_thread()
        if self._set:
            try:
                self._loop.add_signal_handler(signal.SIGINT, self._interrupt)
            except NotImplementedError:
                self._set = False

    def __exit__(self, *_: object) -> None:
        if self._set:
            self._loop.remove_signal_handler(signal.SIGINT)

    def _interrupt(self) -> None:
        self._stop.set()
        self._loop.remove_signal_handler(signal.SIGINT)
        self._set = False


def _known_digest(out: Path) -> str | None:
    facts = read_facts(out)
    return None if facts is None else facts.get("input", {}).get("sha256")


class _Run:
    """One run: sends rows, waits for their answers, and counts them."""

    def __init__(
        self,
        answers: AnswerFile,
        sender: Sender,
        *,
        dedupe: bool,
        retry_failed: bool,
        stop: asyncio.Event,
    ) -> None:
        self.answers, self.sender, self.stop = answers, sender, stop
        self.report = BulkReport(rows=len(answers.states), done=answers.done, failed=answers.failed)
        self._retry_failed = retry_failed
        self.report.resumed = self.report.done + (0 if retry_failed else self.report.failed)
        self._dedupe = dedupe
        self._waiting: dict[str, list[BulkRow]] = {}  # rows that wait for the answer of one that asks the same
        self._held = 0  # rows in `_waiting`
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._wire = WireReader(sender.client)
        self._began = time.monotonic()

    async def finish(self, on_progress: Callable[[BulkReport], None] | None) -> BulkReport:
        """Send the rows, and return when every open request has ended and its line is on disk."""
        ticker = asyncio.create_task(self._tick(on_progress)) if on_progress is not None else None
        try:
            try:
                await self._feed()
            except (InterlinguaError, OSError) as error:  # the input was changed; answers that are paid for still come
                self._halt(str(error), error)
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            if ticker is not None:
                ticker.cancel()
            await self.answers.flush()
            self._count()
            if on_progress is not None:
                on_progress(self.report)
        return self.report

    def _wanted(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the rows to send: those without a line that are in no batch under way, and failed ones on demand."""
        answers, failed = self.answers, self._retry_failed
        claimed = claimed_rows(read_batches(answers.path)[1], len(answers.states))
        self.report.in_batches = count_waiting(claimed, answers.states)
        return iterate_rows(
            answers.source,
            lambda index: (answers.is_open(index) or (failed and answers.is_failed(index))) and not claimed[index],
        )

    async def _feed(self) -> None:
        """Start rows as fast as the pace allows; at most twice the limit, and the rows that wait, are in memory."""
        sender, tasks = self.sender, self._tasks
        create_task = asyncio.get_running_loop().create_task
        for index, data in self._wanted():
            while (len(tasks) >= 2 * sender.in_flight_limit or self._held >= _MOST_HELD) and not self._stopping:
                self._room.clear()
                await self._room.wait()
            if self._stopping:
                break
            if len(tasks) < 2:
                await asyncio.sleep(0)
            task = create_task(self._handle(index, data))
            tasks.add(task)
            task.add_done_callback(self._forget)

    @property
    def _stopping(self) -> bool:
        if self.stop.is_set() and self.report.stopped is None:
            self._halt(INTERRUPTED)
        return self.report.stopped is not None

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            if not isinstance(error, Exception):
                raise error
            self._halt(f"{type(error).__name__}: {error}", error)

    def _halt(self, why: str, error: BaseException | None = None) -> None:
        if self.report.stopped is None:
            self.report.stopped = why
            if isinstance(error, InterlinguaError):
                self.report.error = error
            elif error is not None:
                self.report.error = CallerError(why)
        self.sender.stop(why)
        self._room.set()

    async def _handle(self, index: int, data: Mapping[str, Any]) -> None:
        try:
            row = read_row(index, data, self._wire.read, self.sender.model)
        except Exception as error:  # a fault of one row must not stop the others
            row = unread_row(index, data)
            await self._keep(RowAnswer(False, error_line(row, explain_row(error, row.id), 0)), index, None)
            return
        key = content_key(row, self.sender.model, self.sender.options) if self._dedupe else None
        if key is not None and await self._share(row, key):
            return
        try:
            answer = await self.sender.send(row, key)
        except StopRunError as stopped:
            self._halt(stopped.why, stopped.error)
            return
        await self._keep(answer, index, key)
        if key is not None:
            await self._pass_on(answer, key)

    async def _share(self, row: BulkRow, key: str) -> bool:
        """Use the answer of an equal row, or wait for it; return False if this row is the first."""
        if (shared := self.answers.shared.get(key)) is not None:
            await self._keep_shared(row, shared)
        elif key in self._waiting:
            self._waiting[key].append(row)
            self._held += 1
        else:
            self._waiting[key] = []
            return False
        return True

    async def _pass_on(self, answer: RowAnswer, key: str) -> None:
        """Share an answer with the rows that wait for it; after a failure, send the next of them."""
        while waiting := self._waiting.pop(key, []):
            if answer.ok:
                self._held -= len(waiting)
                shared = orjson.loads(answer.line)
                for row in waiting:
                    await self._keep_shared(row, shared)
                return
            first, *self._waiting[key] = waiting
            self._held -= 1
            try:
                answer = await self.sender.send(first, key)
            except StopRunError as stopped:
                self._halt(stopped.why, stopped.error)
                return
            await self._keep(answer, first.index, key)

    async def _keep_shared(self, row: BulkRow, shared: Mapping[str, Any]) -> None:
        self.report.shared += 1
        await self._keep(RowAnswer(True, shared_line(row, shared)), row.index, None)

    async def _keep(self, answer: RowAnswer, index: int, key: str | None) -> None:
        report = self.report
        report.input_tokens += answer.input_tokens
        report.output_tokens += answer.output_tokens
        if answer.cost_usd is not None:
            report.cost_usd += answer.cost_usd
        elif answer.ok and answer.attempts:
            report.unpriced += 1
        await self.answers.add(index, answer.line, ok=answer.ok, key=key)

    def _count(self) -> None:
        report, answers = self.report, self.answers
        report.done, report.failed = answers.done, answers.failed
        report.asked = self.sender.asked
        report.seconds = time.monotonic() - self._began

    async def _tick(self, on_progress: Callable[[BulkReport], None]) -> None:
        while True:
            await asyncio.sleep(0.5)
            self._count()
            on_progress(self.report)
