"""Runs on one machine against a server in its own process, which fails as services do."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

import interlingua_bulk as bulk
from interlingua import AsyncClient, Registry, Retry
from interlingua.errors import (
    APIConnectionError,
    AuthenticationError,
    BadRequestError,
    CallerError,
    DecodeError,
    ServerError,
)
from interlingua.plugins import hookimpl
from interlingua_bulk import runner
from interlingua_bulk.answers import SharedAnswers, compact_answers
from interlingua_bulk.rows import read_row
from tests.bulk.loopback import ROW, loopback
from tests.bulk.support import LOCAL, PRICED, assert_every_row_once, lines, run, write_rows

ANSWER = {
    "id": "a",
    "object": "chat.completion",
    "created": 1764000000,
    "model": "small",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
}


def test_every_row_is_answered_once_whatever_the_service_does(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 400)
    out = tmp_path / "out.jsonl"
    with loopback(latency_ms=5, errors=0.03, cuts=0.03, per_second=800) as server:
        report = run(rows, out, server.url, concurrency=64)
        stats = server.stats()

    assert_every_row_once(out, 400)
    assert (report.done, report.failed, report.stopped) == (400, 0, None)
    assert report.asked == stats["asked"]
    assert stats["extra"] == stats["kinds"]["cut"] > 0, "a row was answered again for another reason than a cut"
    assert report.input_tokens == 400 * 20
    assert report.output_tokens == 400 * 18


def test_rows_are_sent_in_their_order_from_the_first(tmp_path: Path) -> None:
    """Then a run that is killed again and again pays twice for the same rows."""
    sent = list[int]()

    async def answer(request: httpx.Request) -> httpx.Response:
        row = ROW.search(request.content)
        assert row is not None
        sent.append(int(row[1]))
        await asyncio.sleep(0.01)
        return httpx.Response(200, json=ANSWER)

    async def main() -> bulk.BulkReport:
        theirs = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        async with AsyncClient(LOCAL, http_client=theirs, retry=Retry(max_attempts=1)) as client:
            return await bulk.arun(
                write_rows(tmp_path / "in.jsonl", 200), tmp_path / "out.jsonl", client=client, concurrency=32
            )

    assert asyncio.run(main()).done == 200
    assert sent == list(range(200))


@pytest.mark.parametrize("retry_after_ms", [0, None, 30])
def test_refusals_by_chance_do_not_slow_a_run_down(tmp_path: Path, retry_after_ms: int | None) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 1000)
    seconds = []
    for name, refusals in (("free", 0.0), ("refusing", 0.04)):
        with loopback(latency_ms=20, refusals=refusals, retry_after_ms=retry_after_ms) as server:
            began = time.monotonic()
            report = run(rows, tmp_path / f"{name}.jsonl", server.url, concurrency=64)
            seconds.append(time.monotonic() - began)
        assert report.done == 1000

    # a pace that stops at each refusal takes ten times as long; the last refused row waits for 0.5 s or more
    assert seconds[1] < 2.5 * seconds[0] + 2, seconds


def test_all_places_are_filled_before_the_first_answer(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", ({"prompt": f"row {number}"} for number in range(64)))
    with loopback(latency_ms=2000) as server:
        run(rows, tmp_path / "out.jsonl", server.url, concurrency=64)
        assert server.stats()["most"] == 64


def test_a_refusal_for_load_costs_no_try(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 30)
    with loopback(latency_ms=1, per_second=8, retry_after_ms=30) as server:
        report = run(rows, tmp_path / "out.jsonl", server.url, concurrency=16, max_attempts=1)
        stats = server.stats()

    assert_every_row_once(tmp_path / "out.jsonl", 30)
    assert report.asked == 30 + stats["kinds"]["429"]
    assert stats["kinds"]["429"] > 0


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 30), tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        run(rows, out, server.url, options={"stop": ("END",)})
        kept = out.read_bytes().splitlines(keepends=True)
        out.write_bytes(b"".join(kept[:20]) + kept[20][:37])  # as after a power failure
        report = run(rows, out, server.url, options={"stop": ("END",)})

    assert (report.resumed, report.asked) == (20, 10)
    assert_every_row_once(out, 30)


def test_another_input_model_or_option_is_not_mixed_in(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 2), tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        run(rows, out, server.url)
        with pytest.raises(CallerError, match="another options"):
            run(rows, out, server.url, options={"temperature": 0.5})
        write_rows(rows, 3)
        with pytest.raises(CallerError, match="a different input"):
            run(rows, out, server.url)
        with pytest.raises(CallerError, match="not an output of"):
            run(rows, rows, server.url)

    assert len(lines(out)) == 2


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 50), tmp_path / "out.jsonl"

    async def both(url: str) -> list[Any]:
        calls = (bulk.arun(rows, out, model="vllm:small", client=client) for client in clients)
        return await asyncio.gather(*calls, return_exceptions=True)

    with loopback(latency_ms=20) as server:
        clients = [AsyncClient("vllm:small", base_url=server.url) for _ in range(2)]
        found = asyncio.run(both(server.url))

    assert sorted(type(one).__name__ for one in found) == ["BulkReport", "CallerError"]
    assert_every_row_once(out, 50)


def test_a_bad_line_in_the_output_is_named(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        run(rows, out, server.url)
        kept = out.read_bytes().splitlines(keepends=True)
        out.write_bytes(kept[0] + b"{}\n" + kept[1])
        with pytest.raises(DecodeError, match="line 2"):
            run(rows, out, server.url)


def test_a_row_that_fails_says_why_and_the_others_go_on(tmp_path: Path) -> None:
    given = [{"id": f"r{number}", "prompt": f"row {number}"} for number in range(5)]
    given += [{"id": "empty", "prompt": " "}]
    given += [{"id": "odd", "messages": [{"role": "narrator", "content": "x"}]}]  # type: ignore[dict-item]
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    with loopback(latency_ms=1, bad_rows=[3]) as server:
        report = run(rows, out, server.url)

    assert (report.done, report.failed, report.stopped) == (4, 3, None)
    errors = {line["id"]: line["error"] for line in lines(out) if line["status"] == "error"}
    assert errors["r3"]["type"] == "BadRequestError"
    assert errors["r3"]["status"] == 400
    assert errors["r3"]["code"] == "bad_row"
    assert errors["empty"]["type"] == "CallerError"
    assert "narrator" in errors["odd"]["message"]


def test_failed_rows_are_sent_again_on_demand_only(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 6), tmp_path / "out.jsonl"
    with loopback(latency_ms=1, bad_rows=[1, 4]) as server:
        run(rows, out, server.url)
        assert run(rows, out, server.url).asked == 0
    with loopback(latency_ms=1) as server:
        report = run(rows, out, server.url, retry_failed=True)

    assert (report.asked, report.done, report.failed) == (2, 6, 0)
    assert compact_answers(out) == 6
    assert_every_row_once(out, 6)
    assert [line["index"] for line in lines(out)] == list(range(6))


def test_a_refused_key_stops_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 200), tmp_path / "out.jsonl"
    with loopback(latency_ms=2, refuse_from=50) as server:
        report = run(rows, out, server.url, concurrency=8)
        asked = server.stats()["asked"]

    assert isinstance(report.error, AuthenticationError)
    assert report.stopped
    assert asked < 75
    assert report.done == len(lines(out)) == 49
    with loopback(latency_ms=1) as server:
        assert run(rows, out, server.url).stopped is None
    assert_every_row_once(out, 200)


def test_a_service_that_is_not_there_stops_the_run_and_no_row_fails(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 200), tmp_path / "out.jsonl"
    with loopback() as server:
        url = server.url
    report = run(rows, out, url, max_attempts=2)

    assert isinstance(report.error, APIConnectionError)
    assert url.removesuffix("/v1") in str(report.error)
    assert (report.done, report.failed, lines(out)) == (0, 0, [])
    with loopback(latency_ms=1) as server:
        assert run(rows, out, server.url).stopped is None
    assert_every_row_once(out, 200)


def test_a_service_that_goes_down_in_the_middle_stops_the_run(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 400), tmp_path / "out.jsonl"
    with loopback(latency_ms=2, fail_from=100) as server:
        report = run(rows, out, server.url, concurrency=8, max_attempts=1)

    assert isinstance(report.error, ServerError)
    assert "32 rows failed one after the other" in (report.stopped or "")
    assert report.done == 99
    assert 31 <= report.failed < 50, "those under way end as well"
    with loopback(latency_ms=1) as server:
        assert run(rows, out, server.url, retry_failed=True).stopped is None
    assert compact_answers(out) == 400
    assert_every_row_once(out, 400)


def test_a_wait_longer_than_the_patience_stops_the_run(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 50), tmp_path / "out.jsonl"
    with loopback(latency_ms=1, per_second=4, retry_after_ms=60_000) as server:
        report = run(rows, out, server.url, patience_s=30)

    assert "longer than 30 s" in (report.stopped or "")
    assert report.failed == 0


def test_a_budget_stops_before_it_is_passed(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 300), tmp_path / "out.jsonl"
    arguments: Any = {"model": PRICED, "concurrency": 16, "options": {"api": "chat", "max_tokens": 100}}
    with loopback(latency_ms=2, input_tokens=20, output_tokens=100) as server:
        one = run(write_rows(tmp_path / "one.jsonl", 1), tmp_path / "one.out", server.url, **arguments).cost_usd
        budget = 40 * one
        report = run(rows, out, server.url, budget_usd=budget, **arguments)

    assert one > 0
    assert "budget" in (report.stopped or "")
    assert budget * Decimal("0.6") < report.cost_usd <= budget
    assert sum(Decimal(line["cost_usd"]) for line in lines(out)) == report.cost_usd


@pytest.mark.parametrize("budget", ["a dollar", "nan", "snan", float("inf"), 0, -1])
def test_a_budget_is_a_number_above_0(tmp_path: Path, budget: Any) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(CallerError, match=r"budget_usd is a number (of US dollars|above 0)"):
        bulk.run(({"prompt": "hi"} for _ in range(3)), out, model=PRICED, budget_usd=budget)
    assert list(tmp_path.iterdir()) == [], "no row is read before"


def test_requests_wait_while_others_may_cost_what_is_left_of_a_budget(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 300)
    arguments: Any = {"model": PRICED, "options": {"api": "chat", "max_tokens": 8000}}
    with loopback(latency_ms=20, input_tokens=20, output_tokens=100) as server:  # an eightieth of the most
        report = run(rows, tmp_path / "out.jsonl", server.url, budget_usd=1, **arguments)

    assert (report.stopped, report.done) == (None, 300)
    assert Decimal("0.5") < report.cost_usd < 1, "six may be under way at once"


@pytest.mark.parametrize("limit", [None, 8000], ids=["any length", "max_tokens"])
def test_a_small_budget_is_not_passed_by_the_first_requests(tmp_path: Path, limit: int | None) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 100), tmp_path / "out.jsonl"
    options = {"api": "chat"} if limit is None else {"api": "chat", "max_tokens": limit}
    arguments: Any = {"model": PRICED, "options": options}
    with loopback(latency_ms=20, input_tokens=20, output_tokens=100) as server:
        report = run(rows, out, server.url, budget_usd="0.01", **arguments)

    most = re.search(
        r"is used up: (\d\.\d+) USD are left, the next request may cost (\d\.\d+) USD", report.stopped or ""
    )
    assert most is not None, report.stopped
    assert Decimal(most[1]) == Decimal("0.01") - report.cost_usd
    assert Decimal(most[1]) < Decimal(most[2])
    assert len(lines(out)) == report.asked == (4 if limit is None else 0), "an answer costs 0.00208 USD"


def test_where_no_price_is_known_a_budget_stops_the_run_after_one_answer_which_is_kept(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 20), tmp_path / "out.jsonl"
    with loopback(latency_ms=2) as server:
        report = run(rows, out, server.url, model="openai:unheard-of", options={"api": "chat"}, budget_usd=1)
        asked = server.stats()["asked"]

    assert "no known cost" in (report.stopped or "")
    assert asked == len(lines(out)) == 1


def test_rows_that_ask_the_same_share_one_answer(tmp_path: Path) -> None:
    given = [{"id": f"r{number}", "prompt": f"row {number % 7}"} for number in range(70)]
    given.append({"id": "other", "prompt": "row 0", "options": {"max_tokens": 5}})
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    with loopback(latency_ms=5, model=PRICED) as server:
        report = run(rows, out, server.url, dedupe=True)
        answers = server.stats()["answers"]
        found = {line["id"]: line for line in lines(out)}
        kept = out.read_bytes().splitlines(keepends=True)[:40]
        out.write_bytes(b"".join(kept))
        again = run(rows, out, server.url, dedupe=True)

    assert answers == 8
    assert (report.done, report.shared) == (71, 63)
    assert sum("shared_with" in line for line in found.values()) == 63
    for number in range(70):
        text = found[f"r{number}"]["message"]["content"][0]["text"]
        assert text.endswith(f"row {number % 7} is {(number % 7) ** 2}.")
    assert all(line["cost_usd"] == "0" for line in found.values() if "shared_with" in line)
    assert again.asked == 8 - sum(b'"key"' in line for line in kept)
    assert len(lines(out)) == 71


def test_where_the_first_of_equal_rows_fails_the_next_is_sent(tmp_path: Path) -> None:
    given = [{"id": f"r{number}", "prompt": "row 3"} for number in range(3)]
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    with loopback(latency_ms=1, bad_rows=[3]) as server:
        report = run(rows, out, server.url, dedupe=True)

    assert (report.asked, report.failed) == (3, 3)


def test_a_shared_answer_is_found_by_its_whole_key(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    keys = [f"{'ab' * 7}{number:018x}" for number in range(0, 16 * 1024, 1024)]  # equal tags, and equal first slots
    shared = SharedAnswers(out, len(keys) - 1)
    assert shared.get(keys[0]) is None
    for number, key in enumerate(keys):
        with out.open("ab") as file:
            shared.add(key, file.tell())
            file.write(b'{"index":%d,"status":"ok","key":"%s"}\n' % (number, key.encode()))
        found = shared.get(key)
        assert found is None or found["index"] == number

    assert shared.get(keys[-1])["index"] == len(keys) - 1, "the last line of the same tag counts"
    assert [shared.get(key) for key in keys[:-1]] == [None] * (len(keys) - 1)
    shared.close()


def test_no_more_answers_are_shared_than_the_table_has_room_for(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    keys = [f"{number:05x}{'0' * 27}" for number in range(1, 9)]  # different tags, equal first slots
    out.write_bytes(b"".join(b'{"index":0,"status":"ok","key":"%s"}\n' % key.encode() for key in keys))
    length = out.stat().st_size // len(keys)
    shared = SharedAnswers(out, 5)
    for number, key in enumerate(keys):
        shared.add(key, number * length)

    assert [(shared.get(key) or {}).get("key") for key in keys] == [*keys[:5], None, None, None]
    shared.close()


def test_many_equal_rows_that_all_fail_are_sent_one_after_another(tmp_path: Path) -> None:
    given = [{"id": f"r{number}", "prompt": "row 3"} for number in range(1500)]
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    with loopback(latency_ms=0, bad_rows=[3]) as server:
        report = run(rows, out, server.url, dedupe=True)

    assert (report.asked, report.failed, report.stopped) == (1500, 1500, None)


def test_few_rows_are_held_that_wait_for_the_answer_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_MOST_HELD", 20)
    held = 0

    def read(*arguments: Any) -> Any:
        nonlocal held
        held += 1
        return read_row(*arguments)

    monkeypatch.setattr(runner, "read_row", read)
    most = 0

    async def keep(self: Any, *arguments: Any) -> None:
        nonlocal held, most
        most, held = max(most, held), held - 1
        await kept(self, *arguments)

    kept = runner._Run._keep
    monkeypatch.setattr(runner._Run, "_keep", keep)
    given = [{"id": f"r{number}", "prompt": f"row {number % 2}"} for number in range(500)]
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    with loopback(latency_ms=300) as server:
        report = run(rows, out, server.url, dedupe=True, concurrency=8)

    assert (report.asked, report.shared, report.done) == (2, 498, 500)
    assert most <= 20 + 2 * 8


def test_stopping_lets_what_is_under_way_end(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 500), tmp_path / "out.jsonl"
    seen: list[int] = []

    async def main(url: str) -> bulk.BulkReport:
        stop = asyncio.Event()

        def watch(report: bulk.BulkReport) -> None:
            seen.append(report.done)
            if report.done:
                stop.set()

        async with AsyncClient("vllm:small", base_url=url) as client:
            return await bulk.arun(rows, out, client=client, stop=stop, on_progress=watch, concurrency=4)

    with loopback(latency_ms=20) as server:
        report = asyncio.run(main(server.url))
        stats = server.stats()

    assert report.stopped == "interrupted"
    assert 0 < report.done < 500
    assert stats["answers"] == report.done == len(lines(out))


def test_rows_may_be_given_as_values(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        rows: Any = ({"id": f"r{number}", "prompt": f"row {number}"} for number in range(5))
        run(rows, out, server.url)

    assert_every_row_once(out, 5)
    assert json.loads((tmp_path / "out.jsonl.run.json").read_text())["input"]["rows"] == 5


def test_answers_hold_losses_usage_and_attempts(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": [{"type": "thinking", "text": "hm", "signature": "s"}]}
    messages = [{"role": "user", "content": "row 1"}, message, {"role": "user", "content": "row 1"}]
    rows, out = write_rows(tmp_path / "in.jsonl", [{"id": "a", "messages": messages}]), tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        run(rows, out, server.url)

    (line,) = lines(out)
    assert line["status"] == "ok", line
    assert line["attempts"] == 1
    assert line["usage"]["input_tokens"] == 20
    assert [loss["verdict"] for loss in line["losses"]] == ["dropped"]


@pytest.mark.skipif(os.name != "posix", reason="kills by SIGKILL")
def test_the_output_is_synchronised_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = os.fdatasync

    def counted(fd: int) -> None:
        nonlocal calls
        calls += 1
        real(fd)

    monkeypatch.setattr(os, "fdatasync", counted)
    rows, out = write_rows(tmp_path / "in.jsonl", 200), tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        run(rows, out, server.url)

    assert 1 <= calls < 60


def test_plugins_see_one_piece_of_work_a_row_whatever_it_took(tmp_path: Path) -> None:
    ended: list[type[BaseException] | None] = []

    class Scope:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

        def end(self, _result: Any, error: BaseException | None, _facts: Any) -> None:
            ended.append(None if error is None else type(error))

    class Watch:
        @hookimpl
        def instrument(self, kind: str, facts: Any) -> Scope | None:
            return Scope() if kind == "chat" else None

    rows, out = write_rows(tmp_path / "in.jsonl", 30), tmp_path / "out.jsonl"

    async def main(url: str) -> None:
        settings: Any = {"base_url": url, "retry": Retry(max_attempts=1), "registry": Registry(plugins=[Watch()])}
        async with AsyncClient("vllm:small", **settings) as client:
            await bulk.arun(rows, out, client=client, concurrency=8)

    with loopback(latency_ms=1, errors=0.2, refuse_every=10, bad_rows=[4]) as server:
        asyncio.run(main(server.url))
        kinds = server.stats()["kinds"]

    assert kinds["429"] + kinds.get("500", 0) + kinds.get("503", 0) > 0
    assert sorted(map(str, ended)) == sorted([str(BadRequestError), *["None"] * 29])
