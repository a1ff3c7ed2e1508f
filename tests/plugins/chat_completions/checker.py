"""The rules of Chat Completions for a request, written after WIRE.md and checked on bytes, without the adapter's help.

Nothing of an adapter is imported.
"""

from __future__ import annotations

import json
import re
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ROLES = {"developer", "system", "user", "assistant", "tool"}
MARKER = re.compile(rb',"(?:prompt_cache_breakpoint|cache_control)":\{[^{}]*\}')
IN_USER = {"text", "image_url", "input_audio", "file"}


def broken_rules(raw: bytes, *, one_system: bool = False, blank: bool = False) -> list[str]:
    """Return every rule the request breaks; [] for a good one.

    Args:
        raw: the body.
        blank: the service takes blank text of users and assistants; else only spaces beside calls may be.
        one_system: the service wants its system messages joined: none after another at the beginning.
    """
    body = json.loads(raw)
    turns = body["messages"]
    found: list[str] = []  # no messages are refused too, but it is the caller's who had nothing to say
    for turn in turns:
        found += _turn(turn, blank=blank)
    found += _pairs(turns)
    if one_system and [turn["role"] for turn in turns[:2]] == ["system", "system"]:
        found.append("two system messages at the beginning")
    if len(MARKER.findall(raw)) > 4:
        found.append("more than four cache markers")
    return found


def _turn(turn: dict[str, Any], *, blank: bool) -> list[str]:
    role, content = turn["role"], turn.get("content")
    blank = (blank and role in ("user", "assistant")) or bool(turn.get("tool_calls"))  # recorded beside calls: 200
    found = [] if role in ROLES else [f"role {role!r}"]
    if role == "assistant":
        if content is None and not turn.get("tool_calls"):
            found.append("no content and no calls")
        if "tool_calls" in turn and not turn["tool_calls"]:
            found.append("an empty list of calls")
        for call in turn.get("tool_calls") or ():
            found += _call(call)
    elif content is None:
        found.append(f"a {role} message without content")
    thought = any(name.startswith("reasoning") for name in turn)  # a turn that only thought
    unsaid = isinstance(content, str) and not content.strip() and not blank
    if content == [] or (unsaid and role != "tool" and not thought):
        found.append(f"empty content of a {role} message")
    for part in content if isinstance(content, list) else ():
        if part["type"] == "text" and not part["text"].strip() and not blank:
            found.append("blank text")
        if part["type"] not in IN_USER and (role, part["type"]) != ("assistant", "refusal"):
            found.append(f"{part['type']} in a {role} message")
        if role != "user" and part["type"] in IN_USER - {"text"}:
            found.append(f"{part['type']} in a {role} message")
    return found


def _call(call: dict[str, Any]) -> list[str]:
    found = [] if 1 <= len(call["id"]) <= 64 else [f"id of {len(call['id'])} characters"]
    inner = call[call["type"]]
    if not NAME.fullmatch(inner["name"]):
        found.append(f"tool name {inner['name']!r}")
    if not isinstance(inner.get("arguments", inner.get("input")), str):
        found.append("arguments that are no string")
    return found


def _pairs(turns: list[dict[str, Any]]) -> list[str]:
    """Each call's result stands directly after the calls, one for each, and nothing else does."""
    found: list[str] = []
    waiting: list[str] = []
    used: set[str] = set()
    for turn in turns:
        if turn["role"] == "tool":
            if turn["tool_call_id"] in waiting:
                waiting.remove(turn["tool_call_id"])
            else:
                found.append(f"a result nobody asked for: {turn['tool_call_id']}")
            continue
        if waiting:
            found.append(f"{turn['role']} before the results of {waiting}")
        waiting = [call["id"] for call in turn.get("tool_calls") or ()]
        if used & set(waiting) or len(set(waiting)) != len(waiting):
            found.append("a call id used twice")
        used |= set(waiting)
    return [*found, f"unanswered {waiting}"] if waiting else found


def elements(raw: bytes, name: str = "messages") -> list[bytes]:
    """Return the elements of the conversation as they stand in the body, without cache markers."""
    text = raw.decode()
    at = text.index(f'"{name}":[') + len(name) + 4
    decoder = json.JSONDecoder()
    found = []
    while text[at] != "]":
        at += text[at] == ","
        end = decoder.raw_decode(text, at)[1]
        found.append(MARKER.sub(b"", text[at:end].encode()))
        at = end
    return found
