"""Find the faults of a stream that we wrote: stricter than the SDKs, which hardly notice that an answer was cut off.

A linter of each API takes the bytes of one stream and yields what breaks it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

ASKED = "asked-for"
_COUNTS = ("input_tokens", "output_tokens")


def sse(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield name and data of each event.

    Raises:
        ValueError: it is not written as events are, with one blank line behind each.
    """
    text = body.decode()
    if text and not text.endswith("\n\n"):
        raise ValueError("the stream does not end with a blank line")
    for frame in text.split("\n\n")[:-1]:
        found = re.fullmatch(r"(?:event: (\S+)\n)?data: (.+)", frame)
        if found is None:
            raise ValueError(f"no event: {frame[:80]!r}")
        yield found[1] or "", found[2]


class Messages:
    """The Messages API: one block after the other, each started, filled and ended, and the answer started and ended."""

    def __init__(self) -> None:
        self._open: dict[str, Any] | None = None
        self._index = -1
        self._arguments = ""
        self._state = "new"

    def check(self, body: bytes, *, failed: bool = False) -> Iterator[str]:
        """Yield what is wrong; `failed`: the answer is one that broke off."""
        events = [(name, json.loads(data)) for name, data in sse(body)]
        for name, event in events:
            if name != event["type"]:
                yield f"the event {event['type']} is named {name!r}"
            yield from self._event(event)
        ended = "error" if failed else "message_stop"
        if not events or events[-1][0] != ended:
            yield f"the last event is not {ended}"
        if failed and any(event["type"] == "message_delta" for _, event in events):
            yield "an answer that broke off says why it stopped"

    def _event(self, event: dict[str, Any]) -> Iterator[str]:
        kind = event["type"]
        if kind == "ping":
            return
        if self._state == "over":
            yield f"{kind} behind the end"
        if kind == "error":
            if not (event["error"]["type"] and event["error"]["message"]):
                yield "an error that says nothing"
            self._state = "over"
        elif kind == "message_start":
            yield from self._message(event["message"])
        elif self._state != "begun":
            yield f"{kind} before message_start, or behind message_delta" if kind != "message_stop" else ""
            self._state = "over"
        elif kind.startswith("content_block"):
            yield from self._block(kind, event)
        elif kind == "message_delta":
            if self._open is not None:
                yield "message_delta within a block"
            if not event["delta"].get("stop_reason") or "stop_sequence" not in event["delta"]:
                yield "message_delta without stop_reason and stop_sequence"
            if any(type(event.get("usage", {}).get(name)) is not int for name in _COUNTS):
                yield "message_delta without counts"
            self._state = "stopped"

    def _message(self, message: dict[str, Any]) -> Iterator[str]:
        if self._state != "new":
            yield "a second message_start"
        self._state = "begun"
        if message.get("model") != ASKED:
            yield f"the model is {message.get('model')!r}"
        if not re.fullmatch(r"msg_\w{10,}", message.get("id", "")):
            yield f"the id is {message.get('id')!r}"
        if (message.get("type"), message.get("role"), message.get("content")) != ("message", "assistant", []):
            yield "message_start is no empty answer"
        if any(type(message.get("usage", {}).get(name)) is not int for name in _COUNTS):
            yield "message_start without counts"

    def _block(self, kind: str, event: dict[str, Any]) -> Iterator[str]:
        if kind == "content_block_start":
            self._index += 1
            if self._open is not None:
                yield "a block begins within another"
            if event["index"] != self._index:
                yield f"block {event['index']} follows {self._index - 1}"
            self._open, self._arguments = event["content_block"], ""
            return
        if self._open is None or event["index"] != self._index:
            yield f"{kind} of a block that is not open"
            return
        block = self._open["type"]
        if kind == "content_block_stop":
            if block == "tool_use":
                yield from self._call()
            self._open = None
            return
        allowed = {"text": ("text_delta", "citations_delta"), "thinking": ("thinking_delta", "signature_delta")}
        delta = event["delta"]["type"]
        if delta not in allowed.get(block, ("input_json_delta",)):
            yield f"a {delta} in a {block} block"
        self._arguments += event["delta"].get("partial_json", "")

    def _call(self) -> Iterator[str]:
        assert self._open is not None
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self._open["id"]) or not self._open["name"]:
            yield "a call without a good id or a name"
        if self._arguments and not isinstance(json.loads(self._arguments), dict):
            yield "the arguments of a call are no object"


def lint_messages(body: bytes, *, failed: bool = False) -> list[str]:
    """Return what is wrong with a stream of the Messages API."""
    return [why for why in Messages().check(body, failed=failed) if why]


def lint_chat(body: bytes, *, failed: bool = False, usage: bool = True) -> list[str]:
    """Return what is wrong with a stream of chunks."""
    frames = list(sse(body))
    found = [f"an event named {name!r}" for name, _ in frames if name]
    data = [text for _, text in frames]
    if failed:
        if "[DONE]" in data or not data or "error" not in json.loads(data[-1]):
            found.append("an answer that broke off does not end in an error alone")
        return found
    if data[-1:] != ["[DONE]"] or "[DONE]" in data[:-1]:
        return [*found, "[DONE] is not the last"]
    chunks = [json.loads(text) for text in data[:-1]]
    return found + list(_chunks(chunks, usage=usage))


def _chunks(chunks: Sequence[dict[str, Any]], *, usage: bool) -> Iterator[str]:
    for name in ("id", "created"):
        if len({chunk[name] for chunk in chunks}) != 1:
            yield f"{name} is not the same in all chunks"
    if not chunks[0]["id"].startswith("chatcmpl-") or {chunk["model"] for chunk in chunks} != {ASKED}:
        yield "an id of another form, or another model"
    if {chunk["object"] for chunk in chunks} != {"chat.completion.chunk"}:
        yield "object is not chat.completion.chunk"
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    if choices[0]["delta"].get("role") != "assistant" or any("role" in each["delta"] for each in choices[1:]):
        yield "the first chunk, and no other, names the role"
    finished = [at for at, choice in enumerate(choices) if choice["finish_reason"] is not None]
    if finished != [len(choices) - 1]:
        yield "finish_reason is not in the last choice alone"
    counted = [at for at, chunk in enumerate(chunks) if chunk.get("usage")]
    if counted != ([len(chunks) - 1] if usage else []):
        yield "counts are not in the last chunk alone, where they were asked for"
    if usage and (chunks[-1]["choices"] or type(chunks[-1]["usage"]["total_tokens"]) is not int):
        yield "the chunk of counts has choices, or no total"
    yield from _calls([delta for choice in choices for delta in choice["delta"].get("tool_calls") or ()])


def _calls(deltas: Sequence[dict[str, Any]]) -> Iterator[str]:
    begun: list[str] = []
    for delta in deltas:
        if delta["index"] == len(begun) and delta.get("id") and delta["function"].get("name"):
            begun.append(delta["id"])
        elif delta["index"] >= len(begun) or "id" in delta:
            yield "a piece of a call that has not begun, or begins twice"
    if len(set(begun)) != len(begun) or any(len(name) > 64 for name in begun):
        yield "calls share an id, or have a long one"
