"""An independent small reader of recorded bodies: every text, reasoning and argument leaf, with nothing of ours.

It knows the three wires only as far as to find their leaves, and joins the pieces of a stream by their places.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

CARRIES = {
    "text", "content", "thinking", "reasoning", "reasoning_content", "reasoning_text", "refusal", "arguments", "input",
    "summary", "transcript", "code", "output", "result", "args",
}  # fmt: skip


def of_whole(body: Any) -> Iterator[str]:
    """Leaves of a whole answer: below `content`, `choices[].message`, or `output`."""
    for choice in body.get("choices") or ():
        yield from _below(choice.get("message") or {}, carried=False)
    for place in ("content", "output"):
        yield from _below(body.get(place) or (), carried=False)


def of_stream(text: str) -> Iterator[str]:
    """Leaves of a streamed answer, its deltas joined."""
    pieces: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    answer = 0  # one recording may hold several answers in a row
    for data in _payloads(text):
        answer += data.get("type") in ("message_start", "response.created")
        for place, piece in _pieces(data):
            pieces[answer, *place].append(piece)
    for joined in pieces.values():
        if "".join(joined).strip():
            yield "".join(joined)


def _payloads(text: str) -> Iterator[dict[str, Any]]:
    for block in text.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].lstrip() for line in block.split("\n") if line.startswith("data:"))
        if data and data.strip() != "[DONE]":
            found = json.loads(data)
            if isinstance(found, dict):
                yield found


def _pieces(data: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], str]]:
    kind = str(data.get("type", ""))
    delta = data.get("delta")
    if kind == "content_block_delta" and isinstance(delta, dict):
        for name in ("text", "thinking", "partial_json"):
            if isinstance(delta.get(name), str):
                yield (data.get("index"), name), delta[name]
    elif kind == "content_block_start":
        for number, leaf in enumerate(_below(data.get("content_block") or {}, carried=False)):
            yield (data.get("index"), _name_of_start(data), number), leaf
    elif kind.endswith(".delta") and isinstance(delta, str) and "audio" not in kind and "partial_image" not in kind:
        yield (kind, data.get("item_id"), data.get("output_index"), data.get("content_index"),
               data.get("summary_index")), delta  # fmt: skip
    for choice in data.get("choices") or ():
        for name, value in (choice.get("delta") or {}).items():
            if name in CARRIES and isinstance(value, str):
                yield (choice.get("index"), name), value
        for position, call in enumerate((choice.get("delta") or {}).get("tool_calls") or ()):
            piece = (call.get("function") or {}).get("arguments")
            if isinstance(piece, str):
                yield (choice.get("index"), "call", call.get("index", position)), piece


def _name_of_start(data: dict[str, Any]) -> str:
    """Text that a block starts with belongs before its deltas."""
    kind = (data.get("content_block") or {}).get("type")
    return kind if kind in ("text", "thinking") else "start"


def _below(value: Any, *, carried: bool) -> Iterator[str]:
    if isinstance(value, str):
        if carried and value.strip():
            yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _below(
                item, carried=carried or name in CARRIES if not isinstance(item, str) else name in CARRIES
            )
    elif isinstance(value, list):
        for item in value:
            yield from _below(item, carried=carried)
