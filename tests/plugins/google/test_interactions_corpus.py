"""Every recorded interaction in today's form: the official SDK and we read the same, and it goes back as it came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua.plugins import WireRequest, WireResponse
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message
from interlingua_cli.lint import lint_request
from tests.oracle import interactions_sdk as sdk
from tests.plugins.google.test_interactions_cassettes import ADAPTER, GOOGLE, asked
from tests.support import driving
from tests.support.corpus import Corpus

FILE = "google-interactions"
pytestmark = pytest.mark.usefixtures("quiet")


def _entries(corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Yield the exchanges without those of the form that the service withdrew."""
    if not corpus.file(FILE).exists():
        pytest.skip(f"the corpus has no {FILE}")
    return (entry for entry in corpus.entries(FILE) if "legacy-revision" not in entry["tags"])


def _answers(corpus: Corpus, kind: str) -> list[tuple[str, bytes]]:
    found = [entry for entry in _entries(corpus) if entry["kind"] == kind and entry["status"] < 400]
    return [(entry["id"], entry["response_text"].encode()) for entry in found]


def _sent_back(message: Message) -> Any:
    results = [tool_result(call, "r") for call in message.tool_calls]
    steps = json.loads(asked([user("q"), message, *results, user("n")]).body)["input"]
    return steps[1 : len(steps) - len(results) - 1]


def test_whole_interactions(corpus: Corpus) -> None:
    wrong: dict[str, Any] = {}
    answers = _answers(corpus, "json")
    for name, raw in answers:
        message = driving.whole(GOOGLE, raw, ADAPTER.context())
        ours, theirs = sdk.read_message(message), sdk.read_whole(raw)
        steps = json.loads(raw).get("steps") or []
        if ours != theirs or _sent_back(message) != steps:
            wrong[name] = ours, theirs

    assert len(answers) >= 10
    assert not wrong


def test_streamed_interactions_at_every_chunking(corpus: Corpus) -> None:
    wrong: dict[str, Any] = {}
    answers = _answers(corpus, "sse")
    for name, raw in answers:
        message = ADAPTER.streamed(raw)
        ours, theirs = sdk.read_message(message), sdk.read_stream(raw)
        if ours != theirs:
            wrong[name] = ours, theirs

    assert len(answers) >= 10
    assert not wrong


def test_recorded_requests_keep_the_rules(corpus: Corpus) -> None:
    requests = [entry for entry in _entries(corpus) if isinstance(entry["request"], dict)]
    for entry in requests:
        body = json.dumps(entry["request"]).encode()
        assert lint_request(GOOGLE, WireRequest(path="/interactions", api="interactions", body=body)) == ()
    assert requests


def test_recorded_failures_have_the_class_of_their_status(corpus: Corpus) -> None:
    failures = [entry for entry in _entries(corpus) if entry["status"] >= 400]
    for entry in failures:
        raw = entry["response_text"].encode()
        error = GOOGLE.from_wire_error(WireResponse(status=entry["status"], body=raw), ADAPTER.context())
        with pytest.raises(sdk.FAILURE) as caught:
            sdk.client(sdk.Wire(raw, entry["status"])).interactions.create(model="m", input="q")
        assert (error.status, error.message) == (caught.value.status_code, json.loads(raw)["error"]["message"])  # type: ignore[attr-defined]
