"""The whole body that the chunks of a Chat Completions stream add up to, put together without an adapter's help.

Nothing of an adapter or of an SDK is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_JOINED = ("content", "refusal", "reasoning", "reasoning_content")


def chunks_of(raw: bytes) -> list[dict[str, Any]]:
    """Return the JSON chunks of a stream's text; comments and the end marker are none."""
    lines = raw.decode().replace("\r\n", "\n").split("\n")
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip().startswith("{")]


def merged(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the body: pieces joined, lists of details and calls by index, everything else as said last."""
    body: dict[str, Any] = {"choices": []}
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if key != "choices" and value is not None}
        for choice in chunk.get("choices") or ():
            _choice(body["choices"], choice)
    return body


def _choice(known: list[dict[str, Any]], choice: dict[str, Any]) -> None:
    number = choice.get("index") or 0
    found = next((one for one in known if one["index"] == number), None)
    if found is None:
        found = {"index": number, "message": {"role": "assistant"}, "finish_reason": None}
        known.append(found)
    found |= {key: value for key, value in choice.items() if key not in ("delta", "index") and value is not None}
    message = found["message"]
    for key, value in (choice.get("delta") or {}).items():
        if value is None:
            continue
        if key in _JOINED:
            message[key] = (message.get(key) or "") + value
        elif key == "reasoning_details":
            _details(message.setdefault(key, []), value)
        elif key == "tool_calls":
            _calls(message.setdefault(key, []), value)
        elif isinstance(value, list):
            message[key] = [*message.get(key, []), *value]
        else:
            message[key] = value


def _details(known: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> None:
    """Sheet openrouter §3: by index, then type; text, summary and data appended, the last signature kept."""
    for piece in pieces:
        key = (piece.get("index"), piece.get("type"))
        old = next((one for one in known if key[0] is not None and (one.get("index"), one.get("type")) == key), None)
        if old is None:
            known.append(dict(piece))
            continue
        for name, value in piece.items():
            if name in ("text", "summary", "data") and isinstance(value, str):
                old[name] = old.get(name, "") + value
            elif value is not None:
                old[name] = value


def _calls(known: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> None:
    for piece in pieces:
        function = piece.get("function") or {}
        old = next((one for one in known if one["index"] == piece.get("index")), None)
        if old is None:
            old = {"index": piece.get("index"), "type": "function", "function": {"name": "", "arguments": ""}}
            known.append(old)
        old["id"] = old.get("id") or piece.get("id")
        old["function"]["name"] = old["function"]["name"] or function.get("name") or ""
        old["function"]["arguments"] += function.get("arguments") or ""
