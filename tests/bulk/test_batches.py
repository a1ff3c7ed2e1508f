"""Batches over authored exchanges that the services' SDK types read: submit, status, fetch, and what goes wrong."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from interlingua import AsyncClient, Retry
from interlingua.errors import APIConnectionError, BadRequestError, CallerError
from interlingua.plugins import WireRequest
from interlingua_bulk import batch_records
from interlingua_bulk import batches as module
from interlingua_bulk.batch_records import Batch, BatchRequests, read_batches
from interlingua_bulk.batches import BatchRun, UncertainBatchError
from interlingua_bulk.results import row_index, row_name
from interlingua_cli.cassettes import RecordedExchange
from tests.bulk.support import lines, write_rows
from tests.support.cassettes import load_exchanges

QUESTIONS = ["What is 2 + 2?", "What is 3 + 3?", "Refuse this.", "Too late.", "Name a planet."]
RUN_ID = "testrun0"
MODELS = {
    "anthropic": "anthropic:claude-sonnet-4-5",
    "openai": "openai:gpt-5.4-mini",
    "mistral": "mistral:mistral-small-latest",
    "google": "google:gemini-2.5-flash",
}
# the codes of the rows that no answer came for: those the service says nothing of are its batch's
MISSING = {
    "anthropic": {1: "batch_cancelled", 3: "batch_expired"},
    "openai": {1: "batch_expired", 3: "batch_expired"},
    "mistral": {1: "batch_expired", 3: "batch_expired"},
    "google": {1: "batch_missing"},
}


class Player:
    """Plays exchanges in their order, and holds each request against the one that was written down."""

    def __init__(self, exchanges: list[RecordedExchange]) -> None:
        self.left = list(exchanges)
        self.fail: Callable[[RecordedExchange], httpx.Response | Exception | None] = lambda _: None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        expected = self.left.pop(0)
        broken = self.fail(expected)
        if isinstance(broken, Exception):
            raise broken
        if broken is not None:
            return broken
        assert (request.method, str(request.url)) == (expected.method, expected.uri)
        if expected.request is not None:
            assert json.loads(request.content) == expected.request
        else:
            assert request.content == expected.request_body
        if "content-type" in expected.request_headers:
            assert request.headers["content-type"] == expected.request_headers["content-type"]
        return httpx.Response(expected.status, headers=dict(expected.headers), content=expected.body)

    def client(self, model: str) -> AsyncClient:
        http = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return AsyncClient(model, api_key="test-key", http_client=http, retry=Retry(max_attempts=1))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_records.secrets, "choice", _letters())
    monkeypatch.setattr(module.asyncio, "sleep", _at_once)


def _letters() -> Callable[[Any], str]:
    letters = iter(RUN_ID * 100)
    return lambda _: next(letters)


async def _at_once(_seconds: float) -> None:
    return None


def _rows(tmp_path: Path) -> tuple[Path, Path]:
    given = [{"id": f"r{number}", "prompt": text} for number, text in enumerate(QUESTIONS)]
    return write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"


def _with_run(player: Player, provider: str, out: Path, rows: Path | None, body: Callable[[BatchRun], Any]) -> Any:
    async def main() -> Any:
        client = player.client(MODELS[provider])
        async with BatchRun(out, client, rows, options={"max_tokens": 100}) as run:
            return await body(run)

    return asyncio.run(main())


@pytest.mark.parametrize("provider", sorted(MODELS))
def test_a_batch_is_submitted_watched_and_fetched(provider: str, tmp_path: Path) -> None:
    rows, out = _rows(tmp_path)
    player = Player(load_exchanges(f"{provider}/batches.yaml"))

    (batch,) = _with_run(player, provider, out, rows, lambda run: run.submit())
    assert (batch.state, batch.rows, batch.ranges, batch.name) == ("submitted", 5, [[0, 4]], f"interlingua-{RUN_ID}-0")
    assert _with_run(player, provider, out, None, lambda run: run.submit()) == [], "rows are submitted once"
    (watched,) = _with_run(player, provider, out, None, lambda run: run.status())
    assert watched.state == "submitted"
    assert lines(out) == []
    assert _with_run(player, provider, out, None, lambda run: run.fetch()) == []
    assert player.left == []

    found = {line["index"]: line for line in lines(out)}
    assert sorted(found) == [0, 1, 2, 3, 4], "each row has its line, whatever the results leave out"
    assert [found[number]["message"]["content"][0]["text"] for number in (0, 4)] == ["4", "Jupiter"]
    assert [found[number]["id"] for number in range(5)] == [f"r{number}" for number in range(5)]
    assert found[2]["error"]["type"] == "BadRequestError"
    assert found[2]["error"]["status"] == 400
    codes = {number: found[number]["error"].get("code") for number in MISSING[provider]}
    assert codes == MISSING[provider]
    assert all(found[number]["error"]["retryable"] for number in MISSING[provider])
    assert read_batches(out)[1][0].state == "fetched"


@pytest.mark.parametrize("provider", sorted(MODELS))
def test_an_answer_costs_what_the_catalogue_says_for_batches(provider: str, tmp_path: Path) -> None:
    rows, out = _rows(tmp_path)
    player = Player(load_exchanges(f"{provider}/batches.yaml"))
    _with_run(player, provider, out, rows, lambda run: run.submit())
    for _ in range(2):
        _with_run(player, provider, out, None, lambda run: run.fetch())

    registry = player.client(MODELS[provider]).registry
    model = registry.provider(provider).model(MODELS[provider].partition(":")[2])
    assert model is not None
    (line,) = [line for line in lines(out) if line["index"] == 0]
    price, plain = model.price_at(datetime.now(UTC), "batch"), model.price_at(datetime.now(UTC))
    assert price is not None
    assert plain is not None
    rates = price.rates(1000)
    assert rates.input_per_mtok_usd is not None
    assert rates.output_per_mtok_usd is not None
    assert Decimal(line["cost_usd"]) == (rates.input_per_mtok_usd * 1000 + rates.output_per_mtok_usd * 100) / 10**6
    assert rates.input_per_mtok_usd * 2 == plain.rates(1000).input_per_mtok_usd
    assert line["message"]["metadata"]["usage"]["service_tier"] == "batch"
    (batch,) = read_batches(out)[1]
    total = sum(Decimal(line["cost_usd"]) for line in lines(out) if line["status"] == "ok")
    assert batch.cost_usd is not None
    assert batch.single_usd is not None
    assert (Decimal(batch.cost_usd), Decimal(batch.single_usd)) == (total, 2 * total)


def _sdk_types() -> dict[str, Callable[[str, Any], None]]:
    import anthropic.types.messages as anthropic
    import openai.types as openai
    from google.genai import types as google
    from mistralai.client import models as mistral

    def of_anthropic(path: str, body: Any) -> None:
        if path.endswith("results"):
            read = anthropic.MessageBatchIndividualResponse.model_validate(body)
            assert read.custom_id == body["custom_id"]
            assert read.result.type == body["result"]["type"]
        else:
            assert anthropic.MessageBatch.model_validate(body).processing_status == body["processing_status"]

    def of_openai(path: str, body: Any) -> None:
        if path.endswith("/files"):
            openai.FileObject.model_validate(body)
        elif not path.endswith("content"):
            assert openai.Batch.model_validate(body).status == body["status"]
        elif body["response"] and body["response"]["status_code"] == 200:
            from openai.types.responses import Response

            assert Response.model_validate(body["response"]["body"]).output_text

    def of_mistral(path: str, body: Any) -> None:
        if path.endswith("/files"):
            mistral.CreateFileResponse.model_validate(body)
        elif not path.endswith("content"):
            assert mistral.BatchJob.model_validate(body).status == body["status"]
        elif body["response"]["status_code"] == 200:
            assert mistral.ChatCompletionResponse.model_validate(body["response"]["body"]).choices

    def of_google(path: str, body: Any) -> None:
        for answer in (body.get("response") or {}).get("inlinedResponses", {}).get("inlinedResponses", ()):
            read = google.InlinedResponse.model_validate(answer)
            assert read.metadata == answer["metadata"]
            assert (read.response is None) == ("response" not in answer)

    return {"anthropic": of_anthropic, "openai": of_openai, "mistral": of_mistral, "google": of_google}


@pytest.mark.parametrize("provider", sorted(MODELS))
def test_the_sdk_types_read_what_the_services_answer(provider: str) -> None:
    check = _sdk_types()[provider]
    for exchange in load_exchanges(f"{provider}/batches.yaml"):
        path = urlsplit(exchange.uri).path
        jsonl = path.endswith(("/results", "/content"))
        for body in exchange.body.splitlines() if jsonl else [exchange.body]:
            check(path, json.loads(body))


def _creating(exchange: RecordedExchange) -> bool:
    path = urlsplit(exchange.uri).path
    return exchange.method == "POST" and not path.endswith("/files")


@pytest.mark.parametrize("provider", sorted(MODELS))
def test_a_creation_that_was_cut_off_is_looked_for_and_not_made_again(provider: str, tmp_path: Path) -> None:
    rows, out = _rows(tmp_path)
    exchanges = load_exchanges(f"{provider}/batches.yaml")
    created = next(exchange for exchange in exchanges if _creating(exchange))
    player = Player(exchanges)
    cut: list[RecordedExchange] = []

    def fail(exchange: RecordedExchange) -> httpx.Response | Exception | None:
        if exchange is created:
            cut.append(exchange)
            player.left.insert(0, exchange)
            player.fail = listed
            return httpx.ReadError("cut")
        return None

    def listed(_exchange: RecordedExchange) -> httpx.Response | None:
        player.fail = lambda _: None
        body = json.loads(created.body)
        if provider == "anthropic":  # it keeps no label: found by its time
            body["created_at"] = datetime.now(UTC).isoformat()
        name = "operations" if provider == "google" else "data"
        return httpx.Response(200, json={name: [body]})

    player.fail = fail
    (batch,) = _with_run(player, provider, out, rows, lambda run: run.submit())

    assert len(cut) == 1
    assert batch.state == "submitted"
    assert batch.id


def test_what_the_service_does_not_list_is_looked_for_by_the_next_call(tmp_path: Path) -> None:
    rows, out = _rows(tmp_path)
    exchanges = load_exchanges("anthropic/batches.yaml")
    player = Player([exchanges[0], exchanges[0]])
    answers: list[Any] = [httpx.ReadError("cut"), httpx.Response(200, json={"data": []})]
    player.fail = lambda _: answers.pop(0)
    with pytest.raises(UncertainBatchError, match="searches for it again"):
        _with_run(player, "anthropic", out, rows, lambda run: run.submit())
    assert read_batches(out)[1][0].state == "intent"

    player = Player([exchanges[0], exchanges[0]])
    answers = [httpx.Response(200, json={"data": []}), httpx.Response(200, content=exchanges[0].body)]
    player.fail = lambda _: answers.pop(0)
    _with_run(player, "anthropic", out, None, lambda run: run.submit())

    assert [batch.state for batch in read_batches(out)[1]] == ["abandoned", "submitted"]


def test_a_refused_creation_leaves_its_rows_free(tmp_path: Path) -> None:
    rows, out = _rows(tmp_path)
    player = Player(load_exchanges("anthropic/batches.yaml"))
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    player.fail = lambda _: httpx.Response(400, json=refusal)
    with pytest.raises(BadRequestError):
        _with_run(player, "anthropic", out, rows, lambda run: run.submit())

    assert read_batches(out)[1][0].state == "abandoned"


def test_an_upload_that_failed_leaves_its_rows_free(tmp_path: Path) -> None:
    rows, out = _rows(tmp_path)
    exchanges = load_exchanges("openai/batches.yaml")
    player = Player([exchanges[0]] * 5)
    player.fail = lambda _: httpx.ReadError("cut")
    with pytest.raises(APIConnectionError):
        _with_run(player, "openai", out, rows, lambda run: run.submit())
    assert (player.left, read_batches(out)[1]) == ([], [])

    player = Player(exchanges)  # begins with the upload: there is no batch to search for
    (batch,) = _with_run(player, "openai", out, rows, lambda run: run.submit())
    assert (batch.state, batch.rows) == ("submitted", 5)


def test_answers_without_their_ids_are_not_given_to_rows(tmp_path: Path) -> None:
    rows, out = _rows(tmp_path)
    player = Player(load_exchanges("google/batches.yaml"))
    _with_run(player, "google", out, rows, lambda run: run.submit())
    del player.left[0]

    def unnamed(exchange: RecordedExchange) -> httpx.Response:
        body = json.loads(exchange.body)
        for answer in body["response"]["inlinedResponses"]["inlinedResponses"]:
            del answer["metadata"]
        return httpx.Response(200, json=body)

    player.fail = unnamed
    _with_run(player, "google", out, None, lambda run: run.fetch())

    errors = [line["error"] for line in lines(out)]
    assert [error["code"] for error in errors] == ["batch_missing"] * 5
    assert "without the ids" in errors[0]["message"]


def _submit(
    tmp_path: Path, given: Iterable[dict[str, Any]], submit: Callable[[BatchRun], Any], *, refuse_first: bool = False
) -> tuple[list[Batch], list[int]]:
    """Submit rows to Anthropic's API; return the batches, and how many requests each creation had."""
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    created: list[int] = []

    def handle(request: httpx.Request) -> httpx.Response:
        created.append(request.content.count(b'"custom_id"'))
        if refuse_first and len(created) == 1:
            return httpx.Response(400, json={"type": "error", "error": {"type": "invalid_request_error"}})
        body = json.loads(load_exchanges("anthropic/batches.yaml")[0].body)
        return httpx.Response(200, json={**body, "id": f"b{len(created)}"})

    player = Player([])
    player.__class__ = type("P", (Player,), {"__call__": lambda _, request: handle(request)})
    return _with_run(player, "anthropic", out, rows, submit), created


@pytest.mark.parametrize(
    ("name", "value", "ranges"),
    [
        ("_GROUPS", 64, [[[0, 0], [2, 3]], [[1, 1], [4, 4]], [[5, 5]]]),
        ("_GROUPS", 1, [[[0, 0]], [[1, 1]], [[2, 3]], [[4, 4]], [[5, 5]]]),
        ("_SIZE", 800, [[[0, 0], [2, 2]], [[1, 1], [4, 4]], [[3, 3], [5, 5]]]),
    ],
    ids=["by model and count", "by the models at the same time", "by size"],
)
def test_rows_are_split_by_model_count_and_size(
    name: str, value: int, ranges: list[list[list[int]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    given = [{"prompt": "x" * 50, "model": f"anthropic:claude-{name}"} for name in ("a", "b", "a", "a", "b", "a")]
    made, created = _submit(tmp_path, given, lambda run: run.submit(batch_rows=3))

    assert created == [batch.rows for batch in made]
    assert [batch.rows for batch in made] == [sum(last - first + 1 for first, last in b.ranges) for b in made]
    assert sorted(batch.ranges for batch in made) == ranges


def test_the_requests_of_batches_are_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SIZE", 1_000_000)
    peak = 0

    async def submit(run: BatchRun) -> list[Batch]:
        nonlocal peak
        gc.disable()  # the command line lets it run seldom, so requests must be freed without it
        tracemalloc.start()
        try:
            return await run.submit()
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            gc.enable()

    rows = ({"prompt": "x" * 100_000, "model": f"anthropic:claude-{number % 20}"} for number in range(160))
    made, _ = _submit(tmp_path, rows, submit)

    assert (len(made), sum(batch.rows for batch in made)) == (20, 160)
    assert peak < 10_000_000, "all requests have 16 MB"


def test_requests_of_a_batch_are_read_again_in_their_order(tmp_path: Path) -> None:
    requests = BatchRequests(tmp_path, "acme", "small")
    written = [
        (f"r{number}", WireRequest(path=f"/{number}", headers={"a": str(number)}, body=b"\n{}\n" * number, api="x"))
        for number in range(5)
    ]
    for index, (name, request) in zip((0, 1, 3, 4, 9), written, strict=True):
        requests.append(index, name, request, 10)

    assert list(requests) == list(requests) == written
    assert [requests[0], requests[4], len(requests)] == [written[0], written[4], 5]
    assert list(zip(requests, requests, strict=True)) == list(zip(written, written, strict=True))
    assert (requests.ranges, requests.size) == ([[0, 1], [3, 4], [9, 9]], 50)
    requests.close()
    assert list(tmp_path.iterdir()) == []


def test_a_submission_that_failed_is_repeated_with_each_row_once(tmp_path: Path) -> None:
    async def submit(run: BatchRun) -> list[Batch]:
        with pytest.raises(BadRequestError):
            await run.submit(batch_rows=1)
        return await run.submit(batch_rows=1)

    given = [{"prompt": "x", "model": f"anthropic:claude-{name}"} for name in ("a", "b", "a")]
    made, created = _submit(tmp_path, given, submit, refuse_first=True)

    assert sorted(batch.ranges for batch in made) == [[[0, 0]], [[1, 1]], [[2, 2]]]
    assert created == [1, 1, 1, 1]


def test_a_provider_without_batches_says_so(tmp_path: Path) -> None:
    rows, out = _rows(tmp_path)

    async def main() -> None:
        async with AsyncClient("vllm:small") as client, BatchRun(out, client, rows) as run:
            await run.submit()

    with pytest.raises(CallerError, match="takes no batches"):
        asyncio.run(main())


@pytest.mark.parametrize("index", [0, 35, 36, 10**8])
def test_ids_are_short_and_fit_every_service(index: int) -> None:
    name = row_name(RUN_ID, index)

    assert len(name) <= 20
    assert int(name.removeprefix(f"{RUN_ID}-"), 36) == index
    assert row_index(RUN_ID, name) == index


@pytest.mark.parametrize("name", ["", "0", "otherrun-0", f"{RUN_ID}-", f"{RUN_ID}-00", f"{RUN_ID}--1", f"{RUN_ID}-1_0"])
def test_an_id_that_is_not_of_the_run_is_no_row(name: str) -> None:
    assert row_index(RUN_ID, name) is None
