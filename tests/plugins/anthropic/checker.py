"""The rules of the Messages API for a request, read from WIRE.md and checked on bytes, without the adapter's help."""

from __future__ import annotations

import json
import re
from typing import Any

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
IN_USER = {"text", "image", "document", "search_result", "tool_result", "container_upload"}


def broken_rules(raw: bytes) -> list[str]:
    """Return every rule the request breaks; [] for a good one."""
    body = json.loads(raw)
    found: list[str] = []
    turns = body["messages"]
    found += _system(body)
    for before, turn in zip([None, *turns], turns, strict=False):
        if before is not None and before["role"] == turn["role"]:
            found.append("two neighbours of one role were not joined")
        if not turn["content"]:
            found.append("an empty message (§4)")
        found += _turn(turn)
    found += _pairs(turns)
    found += _marks(body)
    last = turns[-1]["content"][-1] if turns else {"type": ""}
    if turns and turns[-1]["role"] == "assistant" and last["type"] == "text" and last["text"] != last["text"].rstrip():
        found.append("final assistant text ends in white space (§4)")
    found += [f"tool name {tool['name']!r} (§3)" for tool in body.get("tools", ()) if not NAME.fullmatch(tool["name"])]
    return found


def _system(body: dict[str, Any]) -> list[str]:
    found = [f"system holds a {part['type']} (§2)" for part in body.get("system", ()) if part["type"] != "text"]
    turns = body["messages"]
    for at, turn in enumerate(turns):
        if turn["role"] != "system":
            continue
        if at == 0 or turns[at - 1]["role"] != "user":
            last = turns[at - 1]["content"][-1]["type"] if at else ""
            if "tool" not in last or last == "tool_use":
                found.append("a system message that follows neither the user nor server-tool use (§2)")
        if at + 1 < len(turns) and turns[at + 1]["role"] != "assistant":
            found.append("a system message that is neither last nor before the assistant (§2)")
    return found


def _turn(turn: dict[str, Any]) -> list[str]:
    found: list[str] = []
    role = turn["role"]
    for part in turn["content"]:
        kind = part["type"]
        if kind == "text" and not part["text"].strip():
            found.append("blank text (§2)")
        if role == "user" and kind not in IN_USER:
            found.append(f"{kind} in a user message")
        if role == "assistant" and kind in IN_USER - {"text", "container_upload"}:
            found.append(f"{kind} in an assistant message (§1)")
        if role == "user" and kind == "text" and part.get("citations"):
            found.append("citations on user text (§1)")
        if kind == "thinking" and not part["signature"]:
            found.append("unsigned thinking (§5)")
        if kind == "tool_use" and not (ID.fullmatch(part["id"]) and isinstance(part["input"], dict)):
            found.append("a call whose id or input does not fit (§3)")
        if kind == "tool_result" and isinstance(part.get("content"), list):
            found += [f"{inner['type']} in a result" for inner in part["content"] if inner["type"] not in IN_USER]
            found += ["blank text in a result" for inner in part["content"] if not inner.get("text", "x").strip()]
    kinds = [part["type"] for part in turn["content"]]
    if "tool_result" in kinds and "tool_result" in kinds[len([k for k in kinds if k == "tool_result"]) :]:
        found.append("a result after other content (§4)")
    return found


def _pairs(turns: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    waiting: list[str] = []
    used: set[str] = set()
    for turn in turns:
        results = [part["tool_use_id"] for part in turn["content"] if part["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            found.append(f"calls {waiting} are answered by {results} (§4)")
        waiting = [part["id"] for part in turn["content"] if part["type"] == "tool_use"]
        if len(set(waiting)) != len(waiting) or used & set(waiting):
            found.append("a call id used twice")
        used |= set(waiting)
    return [*found, f"unanswered {waiting} (§4)"] if waiting else found


def _marks(body: dict[str, Any]) -> list[str]:
    parts = [*body.get("tools", ()), *body.get("system", ())]
    parts += [part for turn in body["messages"] for part in turn["content"]]
    marks = [part["cache_control"].get("ttl", "5m") for part in parts if "cache_control" in part]
    found = ["more than four cache markers (§7)"] if len(marks) > 4 else []
    if "1h" in marks and "5m" in marks[: len(marks) - marks[::-1].index("1h")]:
        found.append("a 1h cache marker after a 5m one (§7)")
    if any("cache_control" in part for part in parts if part.get("type") in ("thinking", "redacted_thinking")):
        found.append("a cache marker on thinking (§7)")
    return found


def plain_elements(raw: bytes) -> list[str]:
    """Return the content elements in order as JSON text, without cache markers, system first."""
    body = json.loads(raw)
    parts = [*body.get("system", ()), *(part for turn in body["messages"] for part in turn["content"])]
    return [
        json.dumps({key: value for key, value in part.items() if key != "cache_control"}, ensure_ascii=False)
        for part in parts
    ]
