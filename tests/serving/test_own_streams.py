"""An answer of an API's own service: its stream has the items, ids and signatures that the service gave."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.plugins import RequestContext, WireResponse
from interlingua.types import Origin
from interlingua_serving import find_serving_plugin
from tests.serving.answers import context
from tests.serving.compare import REGISTRY
from tests.serving.lint_others import lint_generate_stream, lint_responses_stream
from tests.support import corpus as corpora

pytestmark = pytest.mark.skipif(corpora.find() is None, reason=corpora.SKIP_REASON)


def _written(key: str, api: str, file: str, host: str) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield name, the service's stream and our stream, of each recorded stream that is whole."""
    corpus = corpora.find()
    assert corpus is not None
    provider = REGISTRY.provider(key)
    for entry in corpus.entries(file):
        if entry["status"] != 200 or not entry["stream"] or host not in entry["url"]:
            continue
        origin = Origin(key, api, entry["model"] or "m")
        decoder = StreamDecoder(provider, framer("sse"), RequestContext(origin=origin))
        writer = find_serving_plugin(REGISTRY, key).stream_to_wire(context(key, api, origin))
        body, out = entry["response_text"].encode(), b""
        for at in range(0, len(body), 4096):
            out += writer.feed(decoder.feed(body[at : at + 4096]))
        out += writer.feed(decoder.end()) + writer.end()
        if decoder.complete:
            yield entry["id"], body, out


def _events(body: bytes) -> list[dict[str, Any]]:
    lines = body.decode().replace("\r", "").split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def _items(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items that were done, in the order of their places, without probabilities."""
    done = {event["output_index"]: event["item"] for event in events if event["type"] == "response.output_item.done"}
    for item in done.values():
        if item["type"] == "function_call":
            item["status"] = "completed"  # the service marks even a cut call as completed; the response is incomplete
        for part in item.get("content") or ():
            part.pop("logprobs", None)
    return [item for _, item in sorted(done.items())]


def test_items_of_responses_come_out_as_they_came() -> None:
    found: Counter[str] = Counter()
    for name, body, out in _written("openai", "responses", "openai-responses", "api.openai.com"):
        theirs, ours = _events(body), _events(out)
        if sum(event["type"] == "response.created" for event in theirs) != 1:
            found["a recording of several answers"] += 1
            continue
        if not theirs[0]["response"]["id"].startswith("resp_"):
            found["another server, whose ids are of another form"] += 1
            continue
        said = "".join(event["delta"] for event in theirs if event["type"] == "response.output_text.delta")
        parts = [part for item in _items(theirs) if item["type"] == "message" for part in item["content"]]
        if said != "".join(part.get("text", "") for part in parts):
            found["the deltas say something else than the items"] += 1
            continue
        if len(_items(theirs)) != len(theirs[-1]["response"]["output"]):
            found["the end names other items than were streamed"] += 1
            continue
        assert lint_responses_stream(out, usage="usage" in theirs[-1].get("response", {})) == [], name
        assert ours[0]["response"]["id"] == theirs[0]["response"]["id"], name
        assert _items(ours) == _items(theirs), name
        assert ours[-1]["type"] == theirs[-1]["type"], name
        found["equal"] += 1

    assert found["equal"] > 250, found


def _steps(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps that the events of an interaction come to, without empty members."""
    steps: dict[int, dict[str, Any]] = {}
    for event in events:
        if event["event_type"] == "step.start":
            steps[event["index"]] = {**event["step"], "pieces": ""}
        elif event["event_type"] == "step.delta":
            step, delta = steps[event["index"]], dict(event["delta"])
            kind = delta.pop("type")
            if kind in ("text", "arguments_delta"):
                step["pieces"] += delta.get("text", delta.get("arguments"))
            elif kind == "thought_summary":
                step.setdefault("summary", []).append(delta["content"])
            elif kind == "text_annotation_delta":
                step.setdefault("annotations", []).extend(delta["annotations"])
            else:
                step.update({name: value for name, value in delta.items() if value != ""})
    return [{name: value for name, value in step.items() if value not in ("", [])} for _, step in sorted(steps.items())]


def test_steps_of_interactions_come_out_as_they_came() -> None:
    found: Counter[str] = Counter()
    for name, body, out in _written("google", "interactions", "google-interactions", "/interactions"):
        theirs, ours = _events(body), _events(out)
        if not any(event.get("event_type") == "step.start" for event in theirs):
            found["the form that the service withdrew"] += 1
            continue
        assert _steps(ours) == _steps(theirs), name
        ends = [each[-1]["interaction"] for each in (ours, theirs)]
        for key in ("id", "status", "usage", "created"):
            if key == "id" and not ends[1].get("id"):
                continue  # of an interaction that is not stored; ours has the gateway's id
            assert ends[0].get(key) == ends[1].get(key), name
        assert [end["event_type"] for end in (ours[-1], theirs[-1])] == ["interaction.completed"] * 2
        found["equal"] += 1

    assert found["equal"] >= 10, found


def test_whole_interactions_come_out_as_they_came() -> None:
    corpus = corpora.find()
    assert corpus is not None
    found = 0
    for entry in corpus.entries("google-interactions"):
        if entry["status"] != 200 or entry["kind"] != "json" or b'"steps"' not in entry["response_text"].encode():
            continue
        body = entry["response_text"].encode()
        origin = Origin("google", "interactions", entry["model"] or "m")
        message = REGISTRY.provider("google").from_wire_response(WireResponse(body=body), RequestContext(origin=origin))
        written = find_serving_plugin(REGISTRY, "google").to_wire_response(
            message, context("google", "interactions", origin)
        )
        theirs, ours = json.loads(body), json.loads(written.body)
        wanted = ("id", "status", "steps", "usage", "created", "updated", "service_tier")
        if "id" not in theirs:
            ours.pop("id")  # the gateway's own
        assert {name: ours.get(name) for name in wanted} == {name: theirs.get(name) for name in wanted}, entry["id"]
        found += 1

    assert found >= 8


def _parts(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of the first candidate; pieces of one text are joined, which the writer may divide elsewhere."""
    out: list[dict[str, Any]] = []
    candidates = [each for event in events for each in event.get("candidates", ()) if each.get("index", 0) == 0]
    for part in [part for each in candidates for part in (each.get("content") or {}).get("parts") or ()]:
        shown = {name: value for name, value in part.items() if (name, value) != ("thought", False)}
        if shown == {"text": ""}:
            continue
        if out and shown.keys() == out[-1].keys() and shown.keys() <= {"text", "thought"}:
            out[-1] = {**out[-1], "text": out[-1]["text"] + shown["text"]}
        else:
            out.append(shown)
    return out


def test_parts_of_generate_content_come_out_as_they_came() -> None:
    found: Counter[str] = Counter()
    for name, body, out in _written("google", "generate", "google-generate", "streamGenerateContent"):
        if not body.startswith(b"data:"):
            found["a recording of an array"] += 1
            continue
        if b'"willContinue"' in body:
            found["a call in pieces is one"] += 1
            continue
        theirs, ours = _events(body), _events(out)
        assert _parts(ours) == _parts(theirs) or not _parts(theirs), name
        assert ours[-1].get("usageMetadata") == theirs[-1].get("usageMetadata"), name
        found["equal"] += 1
        if _parts(theirs):
            assert lint_generate_stream(out, usage=False) == [], name

    assert found["equal"] > 200, found
