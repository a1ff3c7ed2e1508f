"""Bulk runs on a Ray cluster: a stage of Ray Data whose actors send the rows (extra `ray`).

Ray runs a block again when its worker is lost, so that no row is lost or doubled in what comes back; it would pay for
the block again too. Therefore each actor appends every answer to a ledger as it arrives, and reads that first.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson

from interlingua import AsyncClient, Registry
from interlingua.errors import CallerError, DecodeError, InterlinguaError
from interlingua.types import ToolDefinition
from interlingua_bulk.answers import FAILED, AnswerFile, SharedAnswers, read_facts
from interlingua_bulk.batch_records import claimed_rows, count_waiting, open_answers, read_batches
from interlingua_bulk.ray_actor import REPORT_S, ActorSettings, Chunk, RowActor
from interlingua_bulk.ray_ledger import RunLedger
from interlingua_bulk.ray_limiter import Limiter
from interlingua_bulk.rows import (
    InspectionStoppedError,
    check_stop,
    content_key,
    inspect_input,
    iterate_rows,
    read_row,
    split_input,
    write_asked,
)
from interlingua_bulk.runner import INTERRUPTED, BulkReport, stop_on_interrupt
from interlingua_bulk.sender import Limits, shared_line
from interlingua_bulk.tables import prepare_input
from interlingua_bulk.wire_rows import WireReader

CHUNK = 250  # rows that are handed out and come back together
_BLOCKS_PER_ACTOR = 8
_PAUSE = 1000  # rows read between two turns of the event loop
_SPREAD = 0x9E3779B97F4A7C15F39CC0605CEDC835  # odd, so that its multiples are different keys of 128 bits


def registry_of_workers(registry: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of the workers' registries, with the user's prices: workers have another environment."""
    prices = registry.get("prices") or environ.get("INTERLINGUA_PRICES")
    return {**registry, "prices": str(Path(prices).expanduser().resolve())} if prices else dict(registry)


def run_on_ray(
    rows: str | Path | Sequence[Mapping[str, Any]],
    out: str | Path,
    *,
    model: str | None = None,
    options: Mapping[str, Any] | None = None,
    tools: Sequence[ToolDefinition] = (),
    address: str | None = None,
    actors: int = 2,
    concurrency: int = 128,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    budget_usd: Decimal | float | str | None = None,
    max_attempts: int = 5,
    patience_s: float = 600.0,
    dedupe: bool = False,
    retry_failed: bool = False,
    force: bool = False,
    ledger: str | Path | None = None,
    client: Mapping[str, Any] | None = None,
    registry: Mapping[str, Any] | None = None,
    on_progress: Callable[[BulkReport], None] | None = None,
) -> BulkReport:
    """As `run`, on a Ray cluster: the same rows in, the same lines out; Ctrl-C as for `run`.

    Args:
        rows: as for `run`; the file has to be readable at the same path on every machine.
        out: the output file, on the machine that this runs on.
        model: model of rows without a model.
        options: options of every request; a row's own options win.
        tools: tools of rows without tools.
        address: address of a cluster; None runs Ray on this machine, bound to 127.0.0.1.
        actors: how many processes send.
        concurrency: most requests under way in one of them.
        requests_per_minute: limit of all processes together.
        tokens_per_minute: as for `arun`.
        budget_usd: of all processes together, as for `arun`.
        max_attempts: as for `run`.
        patience_s: as for `arun`.
        dedupe: as for `arun`; the input is read once more for it.
        retry_failed: as for `arun`.
        force: as for `arun`.
        ledger: a folder on a disk that all machines share, in which the run has its own for the answers as they
            arrive; without it, `<out>.ledger` is that folder.
        client: arguments of `AsyncClient` by name, such as `settings`; keys come from the workers' environment.
        registry: arguments of `Registry` by name, such as `prices`, a file on a disk that all machines share; the
            default is INTERLINGUA_PRICES here.
        on_progress: called with each chunk that has come back.

    Raises:
        CallerError: Ray is not installed, or the ledger belongs to another run; or as `run`.
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
    path = prepare_input(rows, out)
    ledgers = RunLedger(out, None if ledger is None else Path(ledger))
    settings = ActorSettings(
        ledger=str(ledgers.folder),
        model=model,
        options=dict(options or {}),
        tools=tuple(tools),
        client=dict(client or {}),
        registry=registry_of_workers(registry or {}, os.environ),
        limits=limits,
        limiter=f"interlingua-bulk-{secrets.token_hex(8)}",
        actors=actors,
        dedupe=dedupe,
    )

    async def main() -> BulkReport:
        stop = asyncio.Event()
        with stop_on_interrupt(stop):
            try:
                return await _drive(
                    path.resolve(), out, ledgers, settings, address, on_progress, stop,
                    retry_failed=retry_failed, force=force,
                )  # fmt: skip
            except InspectionStoppedError:
                return BulkReport(rows=0, stopped=INTERRUPTED)

    return asyncio.run(main())


async def _drive(
    path: Path,
    out: Path,
    ledger: RunLedger,
    settings: ActorSettings,
    address: str | None,
    on_progress: Callable[[BulkReport], None] | None,
    stop: asyncio.Event,
    *,
    retry_failed: bool,
    force: bool,
) -> BulkReport:
    facts = read_facts(out)
    known = None if facts is None else facts["input"]["sha256"]
    source = await asyncio.to_thread(inspect_input, path, known, settings.model, stop.is_set)
    asked = write_asked(settings.model, settings.options, settings.tools)
    async with open_answers(out, source, asked, force=force) as answers:
        facts = read_facts(out) or {}
        ledger.check(facts, force=force)
        run = _Run(answers, ledger, settings, on_progress, stop)
        await ledger.claim(facts, settings.limiter)
        await run.take_ledger()
        ledger.begin(facts, settings.limiter)
        await run.finish(address, retry_failed=retry_failed)
        if run.is_written:
            ledger.remove()
    return run.report


class _Run:
    """One run: hands out chunks of rows, and writes the lines that come back."""

    def __init__(
        self,
        answers: AnswerFile,
        ledger: RunLedger,
        settings: ActorSettings,
        on_progress: Callable[[BulkReport], None] | None,
        stop: asyncio.Event,
    ) -> None:
        self.report = BulkReport(rows=answers.source.rows)
        self._answers, self._ledger, self._settings = answers, ledger, settings
        self._on_progress, self._stop = on_progress, stop
        self.is_written = True  # every line that came back
        self._wanted = bytearray()  # 1 for each row that this run sends and that has no line yet
        self._began = time.monotonic()

    async def take_ledger(self) -> None:
        """Add the lines of the ledger that are not in the output.

        Raises:
            CallerError: the disk is full; the ledger still has them.
        """
        states = self._answers.states
        for line in self._ledger.lines():
            data = orjson.loads(line)
            index, ok = data["index"], data["status"] == "ok"
            if index >= len(states):
                raise DecodeError(f"{self._ledger.folder} has a line that is not of this run: {line[:80]!r}")
            if not states[index] or (ok and states[index] == FAILED):
                await self._answers.add(index, line, ok=ok, key=data.get("key"))
        await self._answers.flush()

    async def finish(self, address: str | None, *, retry_failed: bool) -> None:
        """Send the rows, and return when every open request has ended and its line is on disk."""
        report, answers = self.report, self._answers
        report.resumed = answers.done + (0 if retry_failed else answers.failed)
        claimed = claimed_rows(read_batches(answers.path)[1], report.rows)
        report.in_batches = count_waiting(claimed, answers.states)
        is_wanted = answers.is_unanswered if retry_failed else answers.is_open
        self._wanted = bytearray(is_wanted(index) and not claimed[index] for index in range(report.rows))
        rounds = 0
        if chunks := await self._next_chunks(rounds):
            async with _limiter(self._settings, address) as limiter:
                watching = asyncio.create_task(self._watch(limiter))
                try:
                    while chunks:
                        await self._send(chunks)
                        if report.stopped is not None or not self._settings.dedupe:
                            break
                        self._ledger.clear()  # all its lines are in the output
                        chunks = await self._next_chunks(rounds := rounds + 1)
                finally:
                    watching.cancel()
        if report.stopped is not None and self.is_written:
            await self.take_ledger()  # Ray may have lost a chunk that came back before its last start
        await answers.flush()
        self._show()

    async def _send(self, chunks: Sequence[Chunk]) -> None:
        results = _results(chunks, self._settings)
        try:
            while (result := await asyncio.to_thread(next, results, None)) is not None:
                for line in result["lines"].splitlines(keepends=True):
                    await self._add(line)
                self._halt(str(result["stopped"]))
                self._show()
        except CallerError as error:  # of Ray; the ledger has the answers
            self._halt(str(error), error)

    async def _add(self, line: bytes) -> None:
        """Count a line and write it; if the disk is full, the ledger has it for the next run."""
        report, data = self.report, orjson.loads(line)
        index, ok = data["index"], data["status"] == "ok"
        if not self._wanted[index]:
            return
        self._wanted[index] = 0
        report.asked += data["attempts"]
        if ok and data["attempts"]:  # not shared
            usage = data.get("usage") or {}
            report.input_tokens += usage.get("input_tokens", 0)
            report.output_tokens += usage.get("output_tokens", 0)
            if data["cost_usd"] is None:
                report.unpriced += 1
            else:
                report.cost_usd += Decimal(data["cost_usd"])
        if self.is_written:
            try:
                await self._answers.add(index, line, ok=ok, key=data.get("key"))
            except CallerError as error:
                self.is_written = False
                self._halt(str(error), error)

    def _halt(self, why: str, error: InterlinguaError | None = None) -> None:
        self.report.stopped = self.report.stopped or why or None
        self.report.error = self.report.error or error

    def _show(self) -> None:
        report, answers = self.report, self._answers
        report.done, report.failed = answers.done, answers.failed
        report.seconds = time.monotonic() - self._began
        if self._on_progress is not None:
            self._on_progress(report)

    async def _watch(self, limiter: Any) -> None:
        """Stop the actors when the run is stopped here; repeatedly, because the limiter may be started again."""
        while True:
            await asyncio.sleep(REPORT_S)
            if self._stop.is_set():
                self._halt(INTERRUPTED)
            if self.report.stopped is not None:
                await asyncio.gather(limiter.lease.remote({}, self.report.stopped), return_exceptions=True)

    async def _next_chunks(self, rounds: int) -> list[Chunk]:
        """Return the chunks with rows to send; none if the run is stopped, or the input was changed."""
        try:
            return await self._find_chunks(rounds)
        except InspectionStoppedError:
            self._halt(INTERRUPTED)
        except (InterlinguaError, OSError) as error:
            self._halt(str(error), error if isinstance(error, InterlinguaError) else CallerError(str(error)))
        return []

    async def _find_chunks(self, rounds: int) -> list[Chunk]:
        """Return the chunks with rows to send; of equal rows the first ones, and none with a known answer."""
        held = bytearray(self.report.rows)
        if self._settings.dedupe and any(self._wanted):
            async with AsyncClient(registry=Registry(**self._settings.registry), **self._settings.client) as client:
                await self._share_answers(WireReader(client), held, rounds)
        chunks, first = [], 0
        for number, part in enumerate(split_input(self._answers.source, CHUNK, self._stop.is_set)):
            rows = range(first, first := first + part.rows)
            done = bytes(held[index] or not self._wanted[index] for index in rows)
            if 0 in done:
                chunks.append(Chunk(number, rows.start, part, done))
        return chunks

    async def _share_answers(self, wire: WireReader, held: bytearray, rounds: int) -> None:
        """Write the lines of rows that share a known answer, and note in `held` those that wait for one.

        While no row of the same request gets an answer, each round sends twice as many of them: one alone would make
        as many rounds as there are rows.
        """
        answers, settings = self._answers, self._settings
        seen = SharedAnswers(answers.path, self.report.rows)
        for number, (index, data) in enumerate(iterate_rows(answers.source, lambda index: self._wanted[index] == 1)):
            if number % _PAUSE == 0:
                await asyncio.sleep(0)
                check_stop(self._stop.is_set)
            try:
                row = read_row(index, data, wire.read, settings.model)
            except Exception:  # noqa: S112  its actor writes the error
                continue
            key = content_key(row, settings.model, settings.options)
            if (shared := answers.shared.get(key)) is not None:
                self.report.shared += 1
                await self._add(shared_line(row, shared))
            else:
                part = (int(key, 16) + number % 2**rounds * _SPREAD) % 2**128
                held[index] = not seen.add(f"{part:032x}", 0)


def start_ray(processes: int, address: str | None = None) -> tuple[Any, bool]:
    """Start Ray, without reports of its use.

    Args:
        processes: CPUs of a Ray on this machine.
        address: address of a cluster to join; None starts a cluster here that listens on 127.0.0.1 only.

    Returns:
        The module, and False where Ray was running already.

    Raises:
        CallerError: Ray is not installed, or the cluster cannot be joined.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:  # the name is historical: without clusters Ray binds to the loopback address on every system
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        ray = importlib.import_module("ray")
    except ModuleNotFoundError:
        raise CallerError("a run on a cluster needs Ray: pip install 'interlingua-bulk[ray]'") from None
    if ray.is_initialized():
        return ray, False
    if address is not None:
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise CallerError(f"the Ray cluster at {address} cannot be joined: {error}") from error
    else:
        size = 200 * 2**20
        ray.init(num_cpus=processes, include_dashboard=False, object_store_memory=size, log_to_driver=False)
    return ray, True


@asynccontextmanager
async def _limiter(settings: ActorSettings, address: str | None) -> AsyncIterator[Any]:
    """Start Ray and the limiter, and end them."""
    ray, own = await asyncio.to_thread(start_ray, settings.actors, address)
    limits = settings.limits
    limiter = ray.remote(Limiter).options(name=settings.limiter, num_cpus=0, max_restarts=-1).remote(
        limits.requests_per_minute, limits.tokens_per_minute, limits.budget_usd,
        str(Path(settings.ledger, "limiter.json")),
    )  # fmt: skip
    try:
        yield limiter
    finally:
        ray.kill(limiter)
        if own:
            ray.shutdown()


def _results(chunks: Sequence[Chunk], settings: ActorSettings) -> Iterator[dict[str, Any]]:
    """Yield the result of each chunk, in any order."""
    data = importlib.import_module("ray.data")
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 1  # return each result at once, not with its block
    items = [{"chunk": chunk.encode()} for chunk in chunks]
    blocks = max(1, min(len(items), settings.actors * _BLOCKS_PER_ACTOR))
    sent = data.from_items(items, override_num_blocks=blocks).map_batches(
        RowActor,
        batch_size=1,
        compute=data.ActorPoolStrategy(size=settings.actors),
        num_cpus=0.5,
        fn_constructor_kwargs={"settings": settings},
    )
    try:
        yield from sent.iter_rows()
    except importlib.import_module("ray").exceptions.RayError as error:
        raise CallerError(f"Ray ended the run: {error}") from error
