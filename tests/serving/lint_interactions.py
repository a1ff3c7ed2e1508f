"""Find the faults of an interaction that we wrote, whole or as a stream, as sentences.

Stricter than the SDK. `failed`: the answer is one that broke off.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from tests.serving.lint import ASKED, sse

_ENDED = ("completed", "requires_action", "incomplete", "requires_continuation")
_DELTAS = {
    "thought": ("thought_summary", "thought_signature"),
    "function_call": ("arguments_delta", "thought_signature"),
    "model_output": ("text", "text_annotation_delta", "image", "audio", "video", "document"),
}


def lint_body(body: bytes, *, usage: bool = True) -> list[str]:
    """Check a whole interaction."""
    interaction = json.loads(body)
    return [*_interaction(interaction, usage=usage), *_steps(interaction["steps"])]


def _interaction(interaction: dict[str, Any], *, usage: bool) -> Iterator[str]:
    if not str(interaction.get("id", "v1_")).startswith("v1_"):
        yield "the id does not begin with v1_"
    if interaction.get("model") != ASKED or interaction.get("object") != "interaction":
        yield "model or object is wrong"
    if interaction.get("status") not in _ENDED:
        yield f"the status {interaction.get('status')} is no end"
    if interaction.get("status") == "requires_continuation" and not interaction.get("continuation_token"):
        yield "an answer that can be continued has no token"
    if usage and not isinstance(interaction.get("usage"), dict):
        yield "usage is missing"


def _steps(steps: list[dict[str, Any]]) -> Iterator[str]:
    ids = [step["id"] for step in steps if step["type"] == "function_call"]
    if len(set(ids)) != len(ids) or not all(ids):
        yield "ids of calls are missing or not unique"
    for step in steps:
        kind = step["type"]
        if kind == "model_output" and not step.get("content"):
            yield "an output has no content"
        if kind == "function_call" and not isinstance(step.get("arguments"), dict):
            yield "arguments are no object"
        if kind == "thought" and not (step.get("summary") or step.get("signature")):
            yield "a thought is empty"
        if any(not item.get("text") for item in step.get("summary") or ()):
            yield "a summary is empty"
        if "signature" in step and not _is_base64(step["signature"]):
            yield "a signature is not base64"


def _is_base64(text: Any) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def lint_stream(body: bytes, *, usage: bool = True, failed: bool = False) -> list[str]:
    """Check a stream: steps that are started in order, filled and stopped, and one end."""
    try:
        return list(_stream(list(sse(body)), usage=usage, failed=failed))
    except ValueError as error:
        return [str(error)]


def _stream(frames: list[tuple[str, str]], *, usage: bool, failed: bool) -> Iterator[str]:
    done = bool(frames) and frames[-1] == ("done", "[DONE]")
    events = [(name, json.loads(data)) for name, data in (frames[:-1] if done else frames)]
    names = [name for name, _ in events]
    if any(name != event.get("event_type") for name, event in events):
        yield "the name of an event is not its event_type"
    if names[:2] != ["interaction.created", "interaction.status_update"]:
        yield f"a stream begins with {names[:2]}"
    if failed:
        if done or names[-1:] != ["error"] or "interaction.completed" in names:
            yield "a broken answer does not end with its error"
        return
    if not done or names[-1:] != ["interaction.completed"] or "error" in names:
        yield f"a stream ends with {names[-1:]}"
        return
    first, last = events[0][1]["interaction"], events[-1][1]["interaction"]
    if first.get("id") != last.get("id"):
        yield "the interaction changes its id"
    yield from _interaction(last, usage=usage)
    yield from _pieces([event for _, event in events[2:-1]])


def _pieces(events: list[dict[str, Any]]) -> Iterator[str]:
    open_steps: dict[int, str] = {}
    started = 0
    for event in events:
        kind, index = event["event_type"], event["index"]
        if kind == "step.start":
            if index != started:
                yield f"step {started} has the index {index}"
            started += 1
            open_steps[index] = event["step"]["type"]
        elif index not in open_steps:
            yield f"{kind} of a step that is not open"
        elif kind == "step.stop":
            del open_steps[index]
        elif event["delta"]["type"] not in _DELTAS.get(open_steps[index], ()):
            yield f"{event['delta']['type']} in a {open_steps[index]}"
    if open_steps:
        yield "a step has no stop"
