"""The actor that sends rows on a cluster, without Ray: in this process, with its limiter."""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from interlingua.errors import CallerError
from interlingua_bulk.budget import Budget, BudgetUsedUpError
from interlingua_bulk.ray_actor import ActorSettings, Chunk, RowActor
from interlingua_bulk.ray_ledger import STARTS, ChunkLedger, RunLedger
from interlingua_bulk.ray_limiter import Limiter, ModelRates
from interlingua_bulk.rows import inspect_input, split_input
from interlingua_bulk.sender import Limits
from tests.bulk.loopback import Loopback, loopback
from tests.bulk.support import LOCAL, write_rows
from tests.support.waiting import until

Send = Callable[[Chunk], tuple[list[dict[str, Any]], str]]
IN_FLIGHT = 8


class RayError(Exception):
    """As Ray's."""


class RayTaskError(RayError):
    """As Ray's."""


class Remote:
    """A limiter that is called as a Ray actor is."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self.models: set[str | None] = set()

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any) -> Any:
            if name == "lease":
                self.models |= arguments[0].keys()
            try:
                return getattr(self._limiter, name)(*arguments)
            except Exception as error:
                failure = RayTaskError()
                failure.cause = error  # type: ignore[attr-defined]
                raise failure from error

        def remote(*arguments: Any) -> Awaitable[Any]:
            return call(*arguments)

        return SimpleNamespace(remote=remote)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Send, Remote]]]:
    """Make an actor, and return how a chunk is sent by it, and its limiter."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    (folder / "run.json").write_text('{"run": "this"}')
    actors: list[RowActor] = []

    def build(server: Loopback, rate: float | None = None, **limits: Any) -> tuple[Send, Remote]:
        limiter = Remote(Limiter(rate, None, limits.get("budget_usd"), str(folder / "limiter.json")))
        errors = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        ray = SimpleNamespace(get_actor=lambda _: limiter, exceptions=errors)
        monkeypatch.setitem(sys.modules, "ray", ray)
        actor = RowActor(
            ActorSettings(
                ledger=str(folder), model=LOCAL, options={}, tools=(), registry={}, limiter="this", actors=1,
                client={"settings": {"vllm": {"base_url": server.url}}},
                limits=Limits(concurrency=IN_FLIGHT, requests_per_minute=rate, **limits),
            )
        )  # fmt: skip
        actors.append(actor)

        def send(chunk: Chunk) -> tuple[list[dict[str, Any]], str]:
            sent = actor({"chunk": [chunk.encode()]})
            found = asyncio.run(asyncio.wait_for(sent, 60))
            return [orjson.loads(line) for line in found["lines"][0].splitlines()], found["stopped"][0]

        return send, limiter

    yield build
    for actor in actors:

        async def end(actor: RowActor = actor) -> None:
            actor._leasing.cancel()
            await actor._client.close()

        if not actor._failure:
            asyncio.run_coroutine_threadsafe(end(), actor._loop).result()
        actor._loop.call_soon_threadsafe(actor._loop.stop)
        while actor._loop.is_running():
            time.sleep(0.01)
        actor._loop.close()


def chunks(rows: Path, size: int) -> list[Chunk]:
    parts = list(split_input(inspect_input(rows, model=LOCAL), size))
    return [Chunk(number, number * size, part, bytes(part.rows)) for number, part in enumerate(parts)]


def test_a_full_disk_stops_the_actor_and_no_answer_is_lost(make: Any, tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="POSIX limits the size of files")
    from tests.bulk.test_disks_and_stops import largest_file

    first, second = chunks(write_rows(tmp_path / "in.jsonl", 120), 60)
    with loopback(latency_ms=5) as server:
        send, _ = make(server)
        with largest_file(6_000):
            lines, why = send(first)
            none, again = send(second)
        stats = server.stats()

    assert "chunk-0.jsonl cannot be written: " in why
    assert len(lines) == stats["answers"] == stats["rows"] < 10 + 3 * IN_FLIGHT
    assert (none, again) == ([], why)
    written = (tmp_path / "ledger" / "chunk-0.jsonl").read_bytes()
    assert 0 < written.count(b"\n") < len(lines)
    assert written.endswith(b"}\n")


@pytest.mark.parametrize("change", ["shorter", "others"])
def test_an_input_that_is_changed_stops_the_run(make: Any, tmp_path: Path, change: str) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 60)
    chunk = chunks(rows, 30)[1]
    if change == "shorter":
        rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:50]))
    else:
        rows.write_bytes(rows.read_bytes().replace(b"say", b"cry"))
    with loopback(latency_ms=1) as server:
        send, limiter = make(server)
        lines, why = send(chunk)
        answers = server.stats()["answers"]
        until(lambda: limiter._limiter.lease({})[1] is not None, within=10)  # the other actors stop too

    assert why.endswith(f"{rows} was changed while it was read: its answers may be those of other rows")
    assert len(lines) == answers
    assert limiter._limiter.lease({})[1] == why


def test_a_mark_of_the_byte_order_and_empty_lines_are_no_part_of_a_row(make: Any, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 7)
    text = rows.read_text().replace("\n", "\n\n \n").removesuffix("\n\n \n")
    rows.write_text(text, encoding="utf-8-sig")
    found = []
    with loopback(latency_ms=1) as server:
        send, _ = make(server)
        for chunk in chunks(rows, 3):
            lines, why = send(chunk)
            found += [(line["index"], line["id"]) for line in lines]
            assert why == ""

    assert sorted(found) == [(number, f"r{number}") for number in range(7)]


def test_every_model_has_its_rate_from_the_limiter(make: Any, tmp_path: Path) -> None:
    given = [{"id": f"r{n}", "prompt": f"row {n}", "model": f"vllm:{'ab'[n % 2]}"} for n in range(20)]
    with loopback(latency_ms=1) as server:
        send, limiter = make(server, rate=1200.0)
        lines, why = send(*chunks(write_rows(tmp_path / "in.jsonl", given), 20))

    assert (len(lines), why) == (20, "")
    assert limiter.models == {"vllm:a", "vllm:b"}


def test_a_shared_pause_does_not_grow_by_being_sent_back(make: Any, tmp_path: Path) -> None:
    asked: list[float] = []
    (chunk,) = chunks(write_rows(tmp_path / "in.jsonl", 40), 40)
    with loopback(latency_ms=300) as server:
        send, limiter = make(server)
        lease = limiter._limiter.lease

        def note(wanted: Any, stopped: str | None) -> Any:
            asked.extend(rates.closed_for for rates in wanted.values())
            if len(asked) == 1:
                wanted = {model: ModelRates(rates.amounts, 1.0) for model, rates in wanted.items()}  # of another actor
            return lease(wanted, stopped)

        limiter._limiter.lease = note
        began = time.monotonic()
        lines, _ = send(chunk)

    assert len(lines) == 40
    assert time.monotonic() - began > 1.2
    assert set(asked) == {0}


def test_an_actor_whose_run_was_started_again_stops(make: Any, tmp_path: Path) -> None:
    """The driver was killed, and Ray has not ended its actors yet."""
    (chunk,) = chunks(write_rows(tmp_path / "in.jsonl", 500), 500)
    with loopback(latency_ms=100) as server:
        send, _ = make(server)

        def claim() -> None:
            until(lambda: server.stats()["answers"] > 10, within=10)
            (tmp_path / "ledger" / "run.json").write_text('{"run": "other"}')

        thread = threading.Thread(target=claim)
        thread.start()
        lines, why = send(chunk)
        thread.join()
        asked = server.stats()["asked"]

    assert why == "the run was started again"
    assert 10 < len(lines) == asked < 300


def test_a_limiter_that_cannot_write_its_file_stops_the_run(make: Any, tmp_path: Path) -> None:
    with loopback(latency_ms=1) as server:
        send, limiter = make(server, rate=60.0)
        limiter._limiter._file = tmp_path / "none" / "limiter.json"
        limiter._limiter._budget = 1
        limiter._limiter._error = CallerError("it cannot be written")
        lines, why = send(*chunks(write_rows(tmp_path / "in.jsonl", 9), 9))

    assert lines == []
    assert why.endswith("it cannot be written")


def test_nothing_is_reserved_while_the_limiter_is_asked_for_money() -> None:
    """It may grant less than before, to let others have their share."""

    async def run() -> None:
        actor = RowActor.__new__(RowActor)
        budget = Budget(Decimal(5), is_shared=True)
        actor._name, actor._sender = "a", SimpleNamespace(budget=budget)  # type: ignore[assignment]
        await budget.reserve(Decimal(1))
        others: list[asyncio.Task[Decimal]] = []

        async def grant(_: str, spent: Decimal, reserved: Decimal, waiting: list[Decimal]) -> tuple[Decimal, bool]:
            others.append(asyncio.create_task(budget.reserve(Decimal(1))))
            await asyncio.sleep(0.01)
            assert not others[0].done()
            return spent + reserved + Decimal(1), False

        await actor._take_budget(SimpleNamespace(grant=SimpleNamespace(remote=grant)))
        assert await others[0] == 1
        assert budget.reserved == budget.total == 2

    asyncio.run(asyncio.wait_for(run(), 10))


@pytest.mark.parametrize("seed", range(10))
def test_actors_spend_a_budget_together_though_the_costs_are_not_known_before(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    limiter = Remote(Limiter(None, None, Decimal(10), str(tmp_path / "limiter.json")))
    sent = [0, 0, 0]

    async def send(at: int, budget: Budget) -> None:
        try:
            reserved = await budget.reserve(None)
        except BudgetUsedUpError:
            return
        for _ in range(random.randrange(6)):
            await asyncio.sleep(0)
        budget.spend(Decimal(random.randrange(10**9)) / 10**10)
        budget.free(reserved)
        sent[at] += 1

    async def run() -> Decimal:
        budgets = [Budget(Decimal(0), is_shared=True) for _ in sent]
        actors = [RowActor.__new__(RowActor) for _ in sent]
        for at, (actor, budget) in enumerate(zip(actors, budgets, strict=True)):
            actor._name, actor._sender = f"a{at}", SimpleNamespace(budget=budget)  # type: ignore[assignment]
        tasks = [asyncio.create_task(send(at, budget)) for at, budget in enumerate(budgets) for _ in range(200)]
        while not all(task.done() for task in tasks):
            await random.choice(actors)._take_budget(limiter)
            for _ in range(random.randrange(10)):
                await asyncio.sleep(0)
        for task in tasks:
            task.result()
        return sum((budget.spent for budget in budgets), Decimal(0))

    spent = asyncio.run(asyncio.wait_for(run(), 30))
    assert Decimal("9.5") < spent < Decimal("10.2"), "an answer costs 0.05 USD on average, and 0.1 at most"
    assert min(sent) > 3


def test_a_chunk_that_takes_its_workers_along_is_not_started_without_end(make: Any, tmp_path: Path) -> None:
    """Ray starts a lost worker's chunk again each time; the ledger counts that."""
    (tmp_path / "ledger" / "chunk-0.starts").write_text("0\n" * STARTS)
    with loopback() as server:
        send, _ = make(server)
        lines, why = send(*chunks(write_rows(tmp_path / "in.jsonl", 2), 2))
        asked = server.stats()["asked"]

    assert (lines, asked) == ([], 0)
    assert why == "the worker of chunk 0 was lost 4 times one after the other"


def test_an_actor_that_cannot_start_says_why(make: Any, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "ledger")  # as on a machine without this disk
    with loopback() as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("interlingua_bulk.ray_limiter.Limiter._write_accounts", lambda _: None)
            send, _ = make(server)
        lines, why = send(*chunks(write_rows(tmp_path / "in.jsonl", 2), 2))

    assert lines == []
    assert "No such file or directory" in why
    assert str(tmp_path / "ledger") in why


# -- the ledger -------------------------------------------------------------------------------------------------


def line(index: int) -> bytes:
    return b'{"index":%d,"status":"ok"}\n' % index


def test_a_chunk_may_be_lost_often_while_it_gets_answers(tmp_path: Path) -> None:
    async def start(*answers: int) -> int:
        ledger = ChunkLedger(tmp_path, 0)
        found = ledger.count_starts()
        for index in answers:
            ledger.add(index, line(index))
        await ledger.close()
        return found

    async def main() -> None:
        assert [await start(number) for number in range(2 * STARTS)] == [1] * 2 * STARTS
        assert [await start() for _ in range(STARTS + 1)] == [1, 2, 3, 4, 5]

    asyncio.run(main())


@pytest.mark.parametrize("damage", [b'{"index":9,"sta', b'{"index":9,"sta{"index":1,"status":"ok"}\n', b"\0" * 99])
def test_a_damaged_line_of_a_ledger_is_sent_again(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "chunk-0.jsonl").write_bytes(line(0) + damage)

    async def main() -> None:
        ledger = ChunkLedger(tmp_path, 0)
        assert ledger.kept == {0: line(0)}
        ledger.add(2, line(2))
        await ledger.close()
        again = ChunkLedger(tmp_path, 0)
        assert again.kept == {0: line(0), 2: line(2)}
        await again.close()

    asyncio.run(main())


def test_a_folder_of_others_is_neither_used_nor_removed(tmp_path: Path) -> None:
    out, shared = tmp_path / "out.jsonl", tmp_path / "shared"
    (shared / "data").mkdir(parents=True)
    (tmp_path / "out.jsonl.ledger").mkdir()
    (tmp_path / "out.jsonl.ledger" / "notes.txt").touch()
    facts = {"input": {"sha256": "1"}, "asked": {"model": "a"}}
    with pytest.raises(CallerError, match="is not the ledger of a run"):
        RunLedger(out, None).check(facts, force=True)

    one, two = RunLedger(out, shared), RunLedger(tmp_path / "other" / "out.jsonl", shared)
    assert one.folder != two.folder
    one.check(facts, force=False)
    one.begin(facts, "run")
    one.check(facts, force=False)
    for other in ({**facts, "asked": {"model": "b"}}, {**facts, "input": {"sha256": "2"}}):
        with pytest.raises(CallerError, match="another input, model"):
            one.check(other, force=False)
        one.check(other, force=True)
    one.remove()
    assert [path.name for path in shared.iterdir()] == ["data"]
