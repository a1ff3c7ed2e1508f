"""Gemini's batch files: requests above 18 MB are uploaded, and answers are read from the file of responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua import AsyncClient, Retry
from interlingua.plugins import WireRequest, WireResponse
from interlingua_bulk.batch_records import Batch, read_batches
from interlingua_bulk.batches import BatchRun
from interlingua_google import batches as module
from interlingua_google.models import API
from tests.bulk.support import lines, write_rows

MODEL = "google:gemini-2.5-flash"
HOST = "https://generativelanguage.googleapis.com"
ROWS = 4


class Service:
    """The files and batches of Gemini's API, as its page "Batch API" describes them."""

    def __init__(self, places: tuple[str, ...] = ("response", "output")) -> None:
        self.places = places  # of the name of the file: the page reads the first, google-genai the second
        self.requests: list[tuple[str, str]] = []
        self.uploaded: list[dict[str, Any]] = []
        self.created: Any = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.requests.append((request.method, str(request.url)))
        if path == "/upload/v1beta/files":
            assert request.headers["x-goog-upload-protocol"] == "multipart"
            head = b"content-type: " + request.headers["content-type"].encode() + b"\r\n\r\n"
            parts: Any = BytesParser().parsebytes(head + request.content).get_payload()
            facts = json.loads(parts[0].get_payload(decode=True))
            assert facts["file"]["mimeType"] == parts[1].get_content_type() == "application/jsonl"
            self.uploaded = [json.loads(line) for line in parts[1].get_payload(decode=True).splitlines()]
            return httpx.Response(200, json={"file": {"name": "files/input", "uri": f"{HOST}/v1beta/files/input"}})
        if path.endswith(":batchGenerateContent"):
            self.created = json.loads(request.content)
            return httpx.Response(200, json=self.operation("BATCH_STATE_PENDING"))
        if path == "/v1beta/batches/one":
            done = {**self.operation("BATCH_STATE_SUCCEEDED"), "done": True}
            for place in self.places:
                (done if place == "response" else done["metadata"])[place] = {"responsesFile": "files/batch-one"}
            return httpx.Response(200, json=done)
        assert (path, request.url.query) == ("/v1beta/files/batch-one:download", b"alt=media")
        return httpx.Response(200, content=b"".join(json.dumps(line).encode() + b"\n" for line in self.answers()))

    def operation(self, state: str) -> dict[str, Any]:
        facts = {"state": state, "displayName": self.created["batch"]["displayName"], "name": "batches/one"}
        return {"name": "batches/one", "metadata": facts}

    def answers(self) -> list[dict[str, Any]]:
        keys = [line["key"] for line in self.uploaded]
        answers = [
            {"key": keys[row], "response": {
                "candidates": [
                    {"content": {"role": "model", "parts": [{"text": f"answer {row}"}]}, "finishReason": "STOP"}
                ],
                "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100},
            }} for row in (3, 0)
        ]  # fmt: skip
        return [*answers, {"key": keys[1], "error": {"code": 3, "message": "This was refused."}}]


def _with_run(service: Service, out: Path, rows: Path | None, body: Callable[[BatchRun], Any]) -> list[Batch]:
    async def main() -> list[Batch]:
        http = httpx.AsyncClient(transport=httpx.MockTransport(service))
        client = AsyncClient(MODEL, api_key="test-key", http_client=http, retry=Retry(max_attempts=1))
        async with http, client, BatchRun(out, client, rows) as run:
            found: list[Batch] = await body(run)
            return found

    return asyncio.run(main())


@pytest.mark.parametrize("place", ["response", "output"])
def test_a_large_batch_is_a_file_and_its_answers_are_read_from_one(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INLINE_SIZE", 100)
    service = Service((place,))
    rows, out = write_rows(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    (batch,) = _with_run(service, out, rows, lambda run: run.submit())

    assert [line["request"]["contents"][0]["parts"][0]["text"][:5] for line in service.uploaded] == [
        f"row {row}" for row in range(ROWS)
    ]
    assert service.created == {"batch": {"displayName": batch.name, "inputConfig": {"fileName": "files/input"}}}
    assert _with_run(service, out, None, lambda run: run.fetch()) == []

    found = {line["index"]: line for line in lines(out)}
    assert {row: found[row]["message"]["content"][0]["text"] for row in (0, 3)} == {0: "answer 0", 3: "answer 3"}
    assert [found[row]["error"]["type"] for row in (1, 2)] == ["BadRequestError", "ServerError"]
    assert found[2]["error"]["code"] == "batch_missing"
    assert read_batches(out)[1][0].state == "fetched"


def test_a_small_batch_is_not_uploaded() -> None:
    row = ("r-0", WireRequest(path="/models/gemini-2.5-flash:generateContent", body=b"{}", api=API))
    arguments = {"requests": [row], "name": "small"}

    assert module.batch_request("batch_upload", arguments) is None
    created = module.batch_request("batch_create", arguments)
    assert created is not None
    assert json.loads(created.body)["batch"]["inputConfig"].keys() == {"requests"}


@pytest.mark.parametrize("indent", [None, 2])
def test_results_that_are_read_whole_are_an_operation_or_a_file(indent: int | None) -> None:
    answer = {"response": {"candidates": []}}
    inlined = {"inlinedResponses": [{**answer, "metadata": {"key": "a"}}, {**answer, "metadata": {"key": "b"}}]}
    operation = {"name": "batches/one", "response": {"inlinedResponses": inlined}}
    file = b"".join(json.dumps({"key": key, **answer}).encode() + b"\n" for key in "ab")

    for body in (json.dumps(operation, indent=indent).encode(), file):
        found = module.read_batch("batch_results", WireResponse(body=body))
        assert [answer.id for answer in found] == ["a", "b"]


def test_the_requests_are_those_of_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Creation from a file, the status and the download, beside google-genai's own requests."""
    from google import genai
    from google.genai import types

    monkeypatch.setattr(module, "INLINE_SIZE", 100)
    ours, theirs = Service(), Service()
    rows, out = write_rows(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    (batch,) = _with_run(ours, out, rows, lambda run: run.submit())
    _with_run(ours, out, None, lambda run: run.fetch())

    theirs.uploaded = ours.uploaded
    http = httpx.Client(transport=httpx.MockTransport(theirs))
    with (
        http,
        genai.Client(
            api_key="test-key", http_options=types.HttpOptions(httpx_client=http, api_version="v1beta")
        ) as sdk,
    ):
        sdk.batches.create(model="gemini-2.5-flash", src="files/input", config={"display_name": batch.name})
        job = sdk.batches.get(name="batches/one")
        assert job.dest is not None
        assert job.dest.file_name == "files/batch-one"
        sdk.files.download(file=job.dest.file_name)

    assert ours.requests[0] == ("POST", f"{HOST}/upload/v1beta/files")
    assert ours.requests[1:] == theirs.requests
    assert ours.created == theirs.created
