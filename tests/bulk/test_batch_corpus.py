"""Recorded batch exchanges of the corpus, read by the adapters of their services."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.plugins import BatchStatus, Registry, RequestContext, WireRequest, WireResponse
from interlingua.types import Origin
from tests.support.corpus import Corpus

FOUND = ("anthropic", "google", "mistral", "openai")


def _entries(corpus: Corpus) -> list[dict[str, Any]]:
    return [entry for entry in corpus.entries("other")
            if entry["provider"] in FOUND and entry["status"] == 200
            and entry.get("response_text") and "embed" not in entry["url"].lower()
            and (entry["endpoint"] == "batches" or entry["url"].endswith("/v1/files"))]  # fmt: skip


def _status(entry: dict[str, Any]) -> BatchStatus:
    provider = Registry().provider(entry["provider"])
    found: BatchStatus = provider.from_wire_auxiliary("batch_status", _response(entry))
    return found


def _response(entry: dict[str, Any]) -> WireResponse:
    return WireResponse(status=entry["status"], body=entry["response_text"].encode())


def test_every_recorded_state_is_read(corpus: Corpus) -> None:
    seen: dict[str, int] = {}
    for entry in _entries(corpus):
        if entry["url"].endswith(("/results", "/files")):
            continue
        body, status = json.loads(entry["response_text"]), _status(entry)
        facts = body.get("metadata") or body if entry["provider"] == "google" else body
        raw = facts.get("processing_status") or facts.get("status") or facts.get("state")
        assert (status.id, status.raw_state) == (body.get("id") or body["name"], raw), entry["id"]
        assert (status.state == "ended") == (raw in ("ended", "SUCCESS", "completed")), entry["id"]
        assert bool(status.results) == (raw in ("ended", "SUCCESS", "completed")), entry["id"]
        assert status.created_at is None or status.created_at > 1.7e9
        seen[entry["provider"]] = seen.get(entry["provider"], 0) + 1

    assert set(seen) == set(FOUND), seen
    assert sum(seen.values()) >= 10, seen


def test_recorded_files_are_read(corpus: Corpus) -> None:
    entries = [entry for entry in _entries(corpus) if entry["url"].endswith("/v1/files") and entry["method"] == "POST"]
    provider = Registry().provider("openai")

    assert entries
    for entry in entries:
        found = provider.from_wire_auxiliary("batch_upload", _response(entry))
        assert found == json.loads(entry["response_text"])["id"]


def test_recorded_results_are_answers(corpus: Corpus) -> None:
    provider = Registry().provider("anthropic")
    (entry,) = [entry for entry in _entries(corpus) if entry["url"].endswith("/results")]
    answers = provider.from_wire_auxiliary("batch_results", _response(entry))
    context = RequestContext(origin=Origin("anthropic", "messages", "claude-haiku-4-5"))
    messages = [provider.from_wire_response(answer.response, context) for answer in answers]

    assert [answer.id for answer in answers] == ["0", "1"]
    assert [message.text for message in messages] == ["4", "Jupiter"]
    assert [message.metadata.usage.service_tier for message in messages if message.metadata.usage] == ["batch"] * 2


def test_a_recorded_job_holds_answers_like_those_of_a_file(corpus: Corpus) -> None:
    """The recorded job has its outputs inside; a file has the same lines."""
    (entry,) = [
        entry
        for entry in _entries(corpus)
        if entry["provider"] == "mistral" and '"outputs": [' in entry["response_text"]
    ]
    outputs = json.loads(entry["response_text"])["outputs"]
    provider = Registry().provider("mistral")
    body = "".join(json.dumps(line) + "\n" for line in outputs).encode()
    answers = provider.from_wire_auxiliary("batch_results", WireResponse(body=body))
    context = RequestContext(origin=Origin("mistral", "chat", "mistral-small-latest"))

    assert [answer.id for answer in answers] == ["0", "1"]
    texts = [provider.from_wire_response(answer.response, context).text for answer in answers]
    assert texts == [line["response"]["body"]["choices"][0]["message"]["content"] for line in outputs]


@pytest.mark.parametrize("provider", ["anthropic", "google"])
def test_requests_have_the_form_of_the_recorded_ones(provider: str, corpus: Corpus) -> None:
    """Rows made of the recorded bodies give the recorded request back, apart from its own label and ids."""
    compared = 0
    for entry in _entries(corpus):
        if entry["provider"] != provider or entry["method"] != "POST" or not entry["request"]:
            continue
        recorded = entry["request"]
        path = "/v1/messages" if provider == "anthropic" else f"/models/{entry['model']}:generateContent"
        inner = recorded["requests"] if provider == "anthropic" else _inlined(recorded)
        field, api = ("params", "messages") if provider == "anthropic" else ("request", "generate")
        rows = [
            (str(number), WireRequest(path=path, body=json.dumps(row[field]).encode(), api=api))
            for number, row in enumerate(inner)
        ]
        made = Registry().provider(provider).auxiliary_request("batch_create", {"requests": rows, "name": "n"})
        written = json.loads(made.body)
        assert entry["url"].endswith(made.path)
        ours = written["requests"] if provider == "anthropic" else _inlined(written)
        assert [row[field] for row in ours] == [row[field] for row in inner]
        assert all(
            row.keys() >= (recorded_row.keys() - {"metadata"}) for row, recorded_row in zip(ours, inner, strict=True)
        )
        compared += 1

    assert compared >= 2


def _inlined(request: Any) -> Any:
    return request["batch"]["inputConfig"]["requests"]["requests"]
