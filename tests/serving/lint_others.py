"""Find the faults of an answer that we wrote in Responses, generateContent or Ollama's chat, as sentences.

Stricter than the SDKs. `failed`: the answer is one that broke off.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

ASKED = "asked-for"
ENDS = ("response.completed", "response.incomplete", "response.failed")
_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)


# ---- Responses


def lint_responses_body(body: bytes, *, usage: bool = True) -> list[str]:
    """Check a whole response."""
    response = json.loads(body)
    return [*_response(response, usage=usage), *_items(response["output"])]


def _response(response: dict[str, Any], *, usage: bool) -> Iterator[str]:
    if not str(response.get("id")).startswith("resp_"):
        yield "the response's id does not begin with resp_"
    if response.get("model") != ASKED:
        yield "the model is not the one that was asked for"
    if response.get("object") != "response" or not isinstance(response.get("created_at"), int):
        yield "object or created_at is wrong"
    if usage and response.get("status") in ("completed", "incomplete") and not isinstance(response.get("usage"), dict):
        yield "usage is missing"
    if (response.get("status") == "incomplete") is not bool(response.get("incomplete_details")):
        yield "incomplete_details belong to incomplete responses"
    if (response.get("status") == "failed") is not bool(response.get("error")):
        yield "an error belongs to a failed response"


def _items(items: list[dict[str, Any]]) -> Iterator[str]:
    ids = [item.get("id") for item in items]
    if len(set(ids)) != len(ids) or not all(isinstance(each, str) and each for each in ids):
        yield "item ids are missing or not unique"
    for item in items:
        kind = item.get("type")
        ended = item.get("status") in ("completed", "incomplete")
        if kind in ("message", "function_call", "custom_tool_call") and not ended:
            yield f"a {kind} is not completed"
        if kind == "reasoning" and not item["id"].startswith("rs_"):
            yield "a reasoning item's id does not begin with rs_"
        if kind in ("function_call", "custom_tool_call") and not 0 < len(item["call_id"]) <= 64:
            yield "a call_id has 1 to 64 characters"


def lint_responses_stream(body: bytes, *, failed: bool = False, usage: bool = True) -> list[str]:
    """Check a stream of the Responses API."""
    try:
        events = list(_sse(body))
    except ValueError as error:
        return [f"the framing is wrong: {error}"]
    return list(_Response().look(events, failed=failed, usage=usage))


def _sse(body: bytes) -> Iterator[dict[str, Any]]:
    for block in body.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        if not name.startswith("event: ") or not data.startswith("data: "):
            raise ValueError(f"an event of other lines: {block[:60]!r}")
        event = json.loads(data[6:])
        if event["type"] != name[7:]:
            raise ValueError("the event's name is not its type")
        yield event
    if not body.endswith(b"\n\n"):
        raise ValueError("the last event has no end")


_WITHOUT_PARTS = re.compile(r"arguments|input|operation_diff|shell_call_command")  # their deltas follow no part


class _Response:
    def __init__(self) -> None:
        self.items: dict[int, dict[str, Any]] = {}
        self.done: dict[int, dict[str, Any]] = {}
        self.texts: dict[tuple[int, str, int], str] = {}
        self.whole: dict[tuple[int, str, int], str] = {}

    def look(self, events: list[dict[str, Any]], *, failed: bool, usage: bool) -> Iterator[str]:
        kinds = [event["type"] for event in events]
        if (kinds[-1:] == ["response.failed"]) is not failed:
            yield "an answer that broke off ends as failed, and no other"
        if kinds[:2] != ["response.created", "response.in_progress"]:
            yield "a stream begins with created and in_progress"
        if not kinds or kinds[-1] not in ENDS or sum(kind in ENDS for kind in kinds) != 1:
            yield "a stream has one end, last"
        if [event.get("sequence_number") for event in events] != list(range(len(events))):
            yield "sequence numbers are not contiguous"
        responses = [event["response"] for event in events if "response" in event]
        if len({response["id"] for response in responses}) > 1:
            yield "the response's id changes"
        for response in responses:
            yield from _response(response, usage=usage)
        for event in events:
            yield from self._event(event)
        if kinds and kinds[-1] in ENDS[:2]:
            yield from self._end(responses[-1])

    def _event(self, event: dict[str, Any]) -> Iterator[str]:
        kind, place = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            if place != len(self.items):
                yield "output indexes are not contiguous"
            self.items[place] = event["item"]
        elif kind == "response.output_item.done":
            if place not in self.items or place in self.done:
                yield "an item is done that is not open"
            elif event["item"]["id"] != self.items[place]["id"] or event["item"]["type"] != self.items[place]["type"]:
                yield "an item is done as another than was added"
            self.done[place] = event["item"]
        elif place is not None:
            yield from self._within(event, kind, place)

    def _within(self, event: dict[str, Any], kind: str, place: int) -> Iterator[str]:
        if place not in self.items or place in self.done:
            yield f"{kind} is about an item that is not open"
        elif "command_index" not in event and event.get("item_id") != self.items[place]["id"]:
            yield f"{kind} names another item"
        part = event.get("content_index", event.get("summary_index", event.get("command_index", 0)))
        name = kind.rpartition(".")[0]
        key = place, name, part
        if kind.endswith("part.added"):
            self.texts[place, name.replace("_part", "_text").replace("content_text", "output_text"), part] = ""
        elif kind.endswith(".delta"):
            if not _WITHOUT_PARTS.search(kind) and key not in self.texts:
                yield f"{kind} comes before its part"
            if not event["delta"]:
                yield f"{kind} says nothing"
            self.texts[key] = self.texts.get(key, "") + event["delta"]
        elif kind.endswith(".done") and "part" not in kind.split(".")[1].split("_"):
            said = next(event[each] for each in ("text", "arguments", "input", "diff", "command") if each in event)
            self.whole[key] = said
            if self.texts.get(key, "") != said and not (said == "{}" and not self.texts.get(key)):
                yield f"{kind} is not what its deltas say"

    def _end(self, response: dict[str, Any]) -> Iterator[str]:
        if self.items.keys() != self.done.keys():
            yield "an item has no end"
        if response["output"] != [item for _, item in sorted(self.done.items())]:
            yield "the output is not the items that were streamed"
        yield from _items(response["output"])
        if self.texts.keys() != self.whole.keys():
            yield "a text or call has no done event"


# ---- generateContent


def lint_generate_body(body: bytes, *, usage: bool = True) -> list[str]:
    """Check a whole answer."""
    return list(_chunks([json.loads(body)], failed=False, usage=usage))


def lint_generate_stream(body: bytes, *, failed: bool = False, usage: bool = True) -> list[str]:
    """Check a stream: `data:` lines and nothing else, each with a part, the last with the reason."""
    chunks = []
    text = body.decode()
    if not re.search(r"(\r?\n){2}\Z", text):
        return ["the last chunk has no end"]
    for block in re.split(r"\r?\n\r?\n", text)[:-1]:
        if not block.startswith("data: ") or "\n" in block:
            return [f"a line that is no chunk: {block[:60]!r}"]
        try:
            chunks.append(json.loads(block[6:]))
        except ValueError:
            return [f"a chunk that is no JSON: {block[:60]!r}"]
    return list(_chunks(chunks, failed=failed, usage=usage))


def _chunks(chunks: list[dict[str, Any]], *, failed: bool, usage: bool) -> Iterator[str]:
    if (bool(chunks) and "error" in chunks[-1]) is not failed:
        yield "an answer that broke off ends with an error, and no other"
    if chunks and "error" in chunks[-1]:
        error = chunks.pop()["error"]
        if not isinstance(error.get("code"), int) or not error.get("message") or not error.get("status"):
            yield "an error has a code, a message and a status"
        if any("finishReason" in each for chunk in chunks for each in chunk["candidates"]):
            yield "an answer is finished and failed"
    else:
        reasons = [each.get("finishReason") for chunk in chunks for each in chunk.get("candidates", [])]
        if not reasons or not reasons[-1] or any(reasons[:-1]):
            yield "the finish reason stands in the last chunk, and in no other"
        if usage and "usageMetadata" not in (chunks or [{}])[-1]:
            yield "usage is missing"
    if any(chunk.get("modelVersion") != ASKED for chunk in chunks):
        yield "the model is not the one that was asked for"
    if len({chunk.get("responseId") for chunk in chunks}) > 1 or not all(chunk.get("responseId") for chunk in chunks):
        yield "the response's id changes or is missing"
    for chunk in chunks:
        if len(chunk.get("candidates", [])) != 1 or chunk["candidates"][0].get("index") != 0:
            yield "a chunk has one candidate"
            continue
        content = chunk["candidates"][0].get("content")
        if content is None or content.get("role") != "model" or not content.get("parts"):
            yield "a chunk has no part"
            continue
        for part in content["parts"]:
            yield from _part(part)


def _part(part: dict[str, Any]) -> Iterator[str]:
    if sum(name in part for name in _DATA) != 1:
        yield "a part holds one thing"
    if part.get("text") == "" and "thoughtSignature" not in part:
        yield "a part is empty"
    call = part.get("functionCall")
    if call is not None and (not call.get("name") or not isinstance(call.get("args"), dict)):
        yield "a call has a name and an object of arguments"
    if "thoughtSignature" in part:
        try:
            base64.b64decode(part["thoughtSignature"].replace("-", "+").replace("_", "/"), validate=True)
        except ValueError:
            yield "a signature is not base64"


# ---- Ollama


def lint_ollama_body(body: bytes, *, usage: bool = True) -> list[str]:
    """Check a whole answer."""
    return list(_lines([json.loads(body)], failed=False, usage=usage))


def lint_ollama_stream(body: bytes, *, failed: bool = False, usage: bool = True) -> list[str]:
    """Check a stream: one object a line, no blank ones, the last one done."""
    if not body.endswith(b"\n"):
        return ["the last line has no end"]
    try:
        return list(_lines([json.loads(line) for line in body[:-1].split(b"\n")], failed=failed, usage=usage))
    except ValueError:
        return ["a line is blank or no JSON"]


def _lines(lines: list[dict[str, Any]], *, failed: bool, usage: bool) -> Iterator[str]:
    if ("error" in lines[-1]) is not failed:
        yield "an answer that broke off ends with an error, and no other"
    if "error" in lines[-1] and (
        not isinstance(lines[-1]["error"], str) or not lines[-1]["error"] or len(lines[-1]) != 1
    ):
        yield "an error is a sentence"
    good = lines[:-1] if "error" in lines[-1] else lines
    ends = [line.get("done") for line in good]
    if (not failed and (not ends or ends[-1] is not True)) or any(ends[:-1]) or (failed and any(ends)):
        yield "the last line is done, and no other"
    for line in good:
        message = line.get("message")
        if line.get("model") != ASKED:
            yield "the model is not the one that was asked for"
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", str(line.get("created_at"))):
            yield "created_at is no time"
        if not isinstance(message, dict) or message.get("role") != "assistant":
            yield "a line has no message of the assistant's"
        elif not isinstance(message.get("content"), str):
            yield "content is a string"
        elif any(not isinstance(call["function"]["arguments"], dict) for call in message.get("tool_calls", ())):
            yield "arguments are an object"
        if usage and line.get("done") and not {"prompt_eval_count", "eval_count"} & line.keys():
            yield "usage is missing"
        if line.get("done") and not line.get("done_reason"):
            yield "the last line says why"
