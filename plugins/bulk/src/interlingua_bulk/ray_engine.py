"""Bulk runs on a Ray cluster: a stage of Ray Data whose actors send the rows (extra `ray`).

Ray runs a block again when its worker is lost, so that no row is lost or doubled in what comes back; it would pay for
the block again too. Therefore each actor appends every answer to a ledger as it arrives, and looks there first.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import orjson

from interlingua import AsyncClient, Registry, Retry
from interlingua.errors import CallerError
from interlingua.types import ToolDefinition
from interlingua_bulk.answers import AnswerFile, BulkInput, read_facts
from interlingua_bulk.batch_records import claimed_rows, count_waiting, open_answers, read_batches
from interlingua_bulk.ray_limiter import Limiter
from interlingua_bulk.rows import (
    content_key,
    explain_row,
    inspect_input,
    iterate_rows,
    read_row,
    unread_row,
    write_asked,
)
from interlingua_bulk.runner import BulkReport
from interlingua_bulk.sender import Limits, RowAnswer, Sender, StopRunError, error_line, shared_line
from interlingua_bulk.tables import prepare_input
from interlingua_bulk.wire_rows import WireReader

CHUNK = 250  # rows that are handed out and come back together
_BLOCKS_PER_ACTOR = 8
_STARTS = 4  # of one chunk: Ray itself begins a lost worker's again without end
_REPORT_S = 0.25  # between two calls of the limiter
_LEDGER = ".ledger"
_LEAST_USD = Decimal("0.000000001")


@attrs.frozen
class Chunk:
    """Some rows of the input.

    Attributes:
        number: from 0.
        first: index of the first row.
        offset: byte at which that row's line begins in the file.
        rows: how many.
        done: 1 for each row that must not be sent.
    """

    number: int
    first: int
    offset: int
    rows: int
    done: bytes


@attrs.frozen(kw_only=True)
class ActorSettings:
    """The settings an actor needs to send rows: plain values, because the actor starts on another machine."""

    path: str
    ledger: str
    model: str | None
    options: Mapping[str, Any]
    tools: Sequence[ToolDefinition]
    client: Mapping[str, Any]
    registry: Mapping[str, Any]
    limits: Limits
    limiter: str
    actors: int
    dedupe: bool = False


class RowActor:
    """Sends chunks of rows, several at once, in an event loop on a separate thread."""

    def __init__(self, settings: ActorSettings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        Path(settings.ledger, f"actor-{os.getpid()}").touch()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()

    async def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Send the rows of the chunks in a batch; never raises, for Ray would drop or repeat the block."""
        chunks = [_read_chunk(text) for text in batch["chunk"]]
        futures = [asyncio.run_coroutine_threadsafe(self._send(chunk), self._loop) for chunk in chunks]
        found = [await asyncio.wrap_future(future) for future in futures]
        return {
            "chunk": [chunk.number for chunk in chunks],
            "lines": [b"".join(lines) for lines, _, _ in found],
            "asked": [asked for _, asked, _ in found],
            "stopped": [why for _, _, why in found],
        }

    async def _begin(self) -> None:
        settings = self._settings
        registry = Registry(**settings.registry)
        self._client = AsyncClient(registry=registry, retry=Retry(max_attempts=1), **settings.client)
        self._sender = Sender(self._client, settings.model, settings.options, settings.tools, settings.limits)
        self._wire = WireReader(self._client)
        if settings.limits.budget_usd is not None:
            self._granted, self._is_used_up = asyncio.Condition(), False
            self._sender.budget, self._sender.more_budget = Decimal(0), self._more_budget
        self._leasing = asyncio.create_task(self._lease())

    async def _send(self, chunk: Chunk) -> tuple[list[bytes], int, str]:
        """Return the lines of a chunk's rows, how many requests were sent, and why no further can be, if so."""
        ledger = Path(self._settings.ledger, f"chunk-{chunk.number}.jsonl")
        kept = _read_ledger(ledger)
        if (begun := _count_start(ledger)) > _STARTS:
            return list(kept.values()), 0, f"chunk {chunk.number} was lost with its worker {begun - 1} times"
        asked: list[int] = []  # attempts of each row
        stopped = ""
        fd = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            tasks: set[asyncio.Task[None]] = set()
            for index, data in _chunk_rows(self._settings.path, chunk):
                if index in kept:
                    continue
                while len(tasks) >= 2 * self._sender.in_flight_limit:
                    _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                tasks.add(asyncio.create_task(self._keep(index, data, fd, kept, asked)))
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, BaseException):
                    stopped = str(result) or type(result).__name__
        except Exception as error:
            stopped = f"{type(error).__name__}: {error}"
        finally:
            os.close(fd)
        return list(kept.values()), sum(asked), stopped or self._sender.stopped or ""

    async def _keep(
        self, index: int, data: Mapping[str, Any], fd: int, kept: dict[int, bytes], asked: list[int]
    ) -> None:
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
        os.write(fd, answer.line)
        kept[index] = answer.line
        asked.append(answer.attempts)

    async def _lease(self) -> None:
        """Get slices of the shared rates and budget, and share pauses, as long as this actor lives."""
        ray = importlib.import_module("ray")
        pace = self._sender.pace(self._settings.model)
        buckets = (pace.requests, pace.tokens)
        for bucket in buckets:
            bucket.begin_lease(_REPORT_S)
        limiter = None
        while True:
            try:
                limiter = limiter or ray.get_actor(self._settings.limiter)
                wanted = [bucket.wanted() for bucket in buckets]
                granted, closed_for = await limiter.lease.remote(wanted, pace.closed_for)
                for bucket, amount in zip(buckets, granted, strict=True):
                    bucket.take(-amount)
                if closed_for > pace.closed_for:
                    pace.close_for(closed_for)
                pace.wake()
                if self._settings.limits.budget_usd is not None:
                    await self._take_budget(limiter)
            except (ray.exceptions.RayError, ValueError):  # its machine was lost: it starts again on another one
                limiter = None
            await asyncio.sleep(_REPORT_S)

    async def _take_budget(self, limiter: Any) -> None:
        sender = self._sender
        reserved = sender.reserved or _LEAST_USD  # the first requests may have no known cost
        sender.budget, self._is_used_up = await limiter.grant.remote(
            f"{platform.node()}-{os.getpid()}", sender.spent, reserved
        )
        async with self._granted:
            self._granted.notify_all()

    async def _more_budget(self) -> bool:
        async with self._granted:
            await self._granted.wait()
        return not self._is_used_up


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
    """As `run`, on a Ray cluster: the same rows in, the same lines out.

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
        ledger: folder for the answers as they arrive, on a disk that all machines share; `<out>.ledger` without it.
        client: arguments of `AsyncClient` by name, such as `settings`; keys come from the workers' environment.
        registry: arguments of `Registry` by name, such as `prices`, a file on a disk that all machines share; the
            default is INTERLINGUA_PRICES here.
        on_progress: called with each chunk that has come back.

    Raises:
        CallerError: Ray is not installed; or as `run`.
    """
    out = Path(out)
    path = prepare_input(rows, out)
    folder = Path(ledger) if ledger is not None else out.with_name(out.name + _LEDGER)
    settings = ActorSettings(
        path=str(path.resolve()),
        ledger=str(folder.resolve()),
        model=model,
        options=dict(options or {}),
        tools=tuple(tools),
        client=dict(client or {}),
        registry=registry_of_workers(registry or {}, os.environ),
        limits=Limits(
            concurrency=concurrency,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            budget_usd=None if budget_usd is None else Decimal(str(budget_usd)),
            max_attempts=max_attempts,
            patience_s=patience_s,
        ),
        limiter=f"interlingua-bulk-{os.getpid()}-{time.time_ns()}",
        actors=actors,
        dedupe=dedupe,
    )
    return asyncio.run(
        _drive(path, out, folder, settings, address, on_progress, retry_failed=retry_failed, force=force)
    )


async def _drive(
    path: Path,
    out: Path,
    folder: Path,
    settings: ActorSettings,
    address: str | None,
    on_progress: Callable[[BulkReport], None] | None,
    *,
    retry_failed: bool,
    force: bool,
) -> BulkReport:
    facts = read_facts(out)
    known = None if facts is None else facts["input"]["sha256"]
    source = await asyncio.to_thread(inspect_input, path, known, settings.model)
    asked = write_asked(settings.model, settings.options, settings.tools)
    began = time.monotonic()
    async with open_answers(out, source, asked, force=force) as answers:
        for line in _left_lines(folder):
            await _add(answers, line)
        folder.mkdir(parents=True, exist_ok=True)
        report = BulkReport(rows=source.rows, resumed=answers.done + (0 if retry_failed else answers.failed))
        claimed = claimed_rows(read_batches(out)[1], source.rows)
        report.in_batches = count_waiting(claimed, answers.states)
        is_wanted = answers.is_unanswered if retry_failed else answers.is_open

        def wanted(index: int) -> bool:
            return is_wanted(index) and not claimed[index]

        while chunks := await _next_chunks(answers, settings, report, wanted):
            results = _results(chunks, settings, address)
            while (result := await asyncio.to_thread(next, results, None)) is not None:
                for line in result["lines"].splitlines(keepends=True):
                    await _add(answers, line, report)
                report.asked += int(result["asked"])
                report.stopped = report.stopped or str(result["stopped"]) or None
                report.done, report.failed = answers.done, answers.failed
                report.seconds = time.monotonic() - began
                if on_progress is not None:
                    on_progress(report)
            if report.stopped or not settings.dedupe:
                break
            is_wanted = answers.is_open
            for ledger in folder.glob("chunk-*"):  # all their lines are in the output
                ledger.unlink()
        await answers.flush()
        report.done, report.failed, report.seconds = answers.done, answers.failed, time.monotonic() - began
    shutil.rmtree(folder, ignore_errors=True)  # every line of it is in the output
    return report


async def _next_chunks(
    answers: AnswerFile, settings: ActorSettings, report: BulkReport, wanted: Callable[[int], bool]
) -> list[Chunk]:
    """Return the chunks with rows to send; of rows that ask the same only the first, and none whose answer is known."""
    held = bytearray(len(answers.states))
    if settings.dedupe:
        async with AsyncClient(registry=Registry(**settings.registry), **settings.client) as client:
            await _share_answers(answers, settings, report, wanted, WireReader(client), held)
    return [
        chunk for chunk in _chunks(answers.source, lambda index: wanted(index) and not held[index]) if 0 in chunk.done
    ]


async def _share_answers(
    answers: AnswerFile,
    settings: ActorSettings,
    report: BulkReport,
    wanted: Callable[[int], bool],
    wire: WireReader,
    held: bytearray,
) -> None:
    """Write the lines of rows that share a known answer, and note in `held` those that wait for one."""
    seen: set[str] = set()
    for index, data in iterate_rows(answers.source, wanted):
        try:
            row = read_row(index, data, wire.read, settings.model)
        except Exception:  # noqa: S112  its actor writes the error
            continue
        key = content_key(row, settings.model, settings.options)
        if (shared := answers.shared.get(key)) is not None:
            await answers.add(index, shared_line(row, shared), ok=True)
            report.shared += 1
        elif key in seen:
            held[index] = 1
        else:
            seen.add(key)


async def _add(answers: AnswerFile, line: bytes, report: BulkReport | None = None) -> None:
    data = orjson.loads(line)
    index, ok = data["index"], data["status"] == "ok"
    if not answers.is_unanswered(index):
        return
    await answers.add(index, line, ok=ok, key=data.get("key"))
    if report is not None and ok:
        usage = data.get("usage") or {}
        report.input_tokens += usage.get("input_tokens", 0)
        report.output_tokens += usage.get("output_tokens", 0)
        if data["cost_usd"] is None:
            report.unpriced += 1
        else:
            report.cost_usd += type(report.cost_usd)(data["cost_usd"])


def start_ray(processes: int, address: str | None = None) -> tuple[Any, bool]:
    """Start Ray, without reports of its use.

    Args:
        processes: CPUs of a Ray on this machine.
        address: address of a cluster to join; None starts a cluster here that listens on 127.0.0.1 only.

    Returns:
        The module, and False where Ray was running already.

    Raises:
        CallerError: Ray is not installed.
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
        ray.init(address=address, log_to_driver=False)
    else:
        size = 200 * 2**20
        ray.init(num_cpus=processes, include_dashboard=False, object_store_memory=size, log_to_driver=False)
    return ray, True


def _results(chunks: Sequence[Chunk], settings: ActorSettings, address: str | None) -> Iterator[dict[str, Any]]:
    """Yield the result of each chunk, in any order."""
    ray, own = start_ray(settings.actors, address)
    data = importlib.import_module("ray.data")
    limits = settings.limits
    limiter = ray.remote(Limiter).options(name=settings.limiter, num_cpus=0, max_restarts=-1).remote(
        limits.requests_per_minute, limits.tokens_per_minute, limits.budget_usd,
        str(Path(settings.ledger, "limiter.json")),
    )  # fmt: skip
    try:
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        items = [{"chunk": _chunk_text(chunk)} for chunk in chunks]
        blocks = max(1, min(len(items), settings.actors * _BLOCKS_PER_ACTOR))
        sent = data.from_items(items, override_num_blocks=blocks).map_batches(
            RowActor,
            batch_size=1,
            compute=data.ActorPoolStrategy(size=settings.actors),
            num_cpus=0.5,
            fn_constructor_kwargs={"settings": settings},
        )
        yield from sent.iter_rows()
    finally:
        ray.kill(limiter)
        if own:
            ray.shutdown()


def _chunks(source: BulkInput, wanted: Callable[[int], bool]) -> Iterator[Chunk]:
    """Yield the chunks of an input, without lines that were added after its inspection."""
    index, begun, offset = 0, 0, 0
    position = 0
    with source.path.open("rb", buffering=1 << 20) as file:
        for line in file:
            if position >= source.size:
                break
            if line.strip():
                if index - begun == CHUNK:
                    yield _chunk(begun, offset, index, wanted)
                    begun, offset = index, position
                index += 1
            position += len(line)
    if index > begun:
        yield _chunk(begun, offset, index, wanted)


def _chunk(first: int, offset: int, end: int, wanted: Callable[[int], bool]) -> Chunk:
    return Chunk(first // CHUNK, first, offset, end - first, bytes(not wanted(index) for index in range(first, end)))


def _chunk_text(chunk: Chunk) -> str:
    return orjson.dumps([chunk.number, chunk.first, chunk.offset, chunk.rows, chunk.done.hex()]).decode()


def _read_chunk(text: str) -> Chunk:
    number, first, offset, rows, done = orjson.loads(text)
    return Chunk(number, first, offset, rows, bytes.fromhex(done))


def _chunk_rows(path: str, chunk: Chunk) -> Iterator[tuple[int, Mapping[str, Any]]]:
    index = chunk.first
    with Path(path).open("rb") as file:
        file.seek(chunk.offset)
        for line in file:
            if index == chunk.first + chunk.rows:
                return
            if line.strip():
                if not chunk.done[index - chunk.first]:
                    yield index, orjson.loads(line)
                index += 1


def _read_ledger(path: Path) -> dict[int, bytes]:
    """Return the whole lines of a chunk's ledger by the index of their rows."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return {}
    if lines and not lines[-1].endswith(b"\n"):
        os.truncate(path, sum(map(len, lines[:-1])))
        lines = lines[:-1]
    return {orjson.loads(line)["index"]: line for line in lines}


def _count_start(ledger: Path) -> int:
    """Record the start of a chunk, and return how often it has started."""
    path = ledger.with_suffix(".starts")
    with path.open("ab") as file:
        file.write(b".")
    return path.stat().st_size


def _left_lines(folder: Path) -> Iterator[bytes]:
    """Yield the lines of an earlier run that are not in the output yet, and remove that run's ledger."""
    for path in sorted(folder.glob("chunk-*.jsonl")):
        yield from _read_ledger(path).values()
    shutil.rmtree(folder, ignore_errors=True)
