"""The rules of the Responses API for a request, written after WIRE.md and checked on bytes, without the adapter's help.

Nothing of the adapter is imported.
"""

from __future__ import annotations

import json
from typing import Any

from tests.plugins.chat_completions.checker import MARKER, NAME

PREFIX = {"message": "msg_", "function_call": "fc_", "custom_tool_call": "ctc_", "reasoning": "rs_"}
CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
INPUT = {"input_text", "input_image", "input_file"}
OUTPUT = {"output_text", "refusal"}


def broken_rules(raw: bytes) -> list[str]:
    """Return every rule the request breaks; [] for a good one."""
    body = json.loads(raw)
    items = body["input"]
    found: list[str] = []  # an empty input is refused too, but it is the caller's who had nothing to say
    for item in items:
        found += _item(item)
    found += _pairs(items)
    found += _reasoning(items)
    if len(MARKER.findall(raw)) > 4:
        found.append("more than four cache markers")
    if "instructions" in body and not body["instructions"].strip():
        found.append("blank instructions")
    return found


def _item(item: dict[str, Any]) -> list[str]:
    kind = item["type"]
    found = []
    if "id" in item and not str(item["id"]).startswith(PREFIX.get(kind, "")):
        found.append(f"id {item['id']!r} of a {kind}")
    if "call_id" in item and not 1 <= len(item["call_id"]) <= 64:
        found.append(f"call_id of {len(item['call_id'])} characters")
    if kind in CALLS:
        if not NAME.fullmatch(item["name"]):
            found.append(f"tool name {item['name']!r}")
        if not isinstance(item.get("arguments", item.get("input")), str):
            found.append("arguments that are no string")
    if kind == "message":
        allowed = OUTPUT if item["role"] == "assistant" else INPUT
        parts = item["content"]
        found += [f"{part['type']} of {item['role']}" for part in parts if part["type"] not in allowed]
        if item["role"] not in ("user", "assistant"):  # the service took both with an empty text (recorded)
            found += ["blank text" for part in parts if not part.get("text", "x").strip()]
        if not parts:
            found.append("an empty message")
    if kind in CALLS.values() and isinstance(item["output"], list):
        found += [f"{part['type']} in a result" for part in item["output"] if part["type"] not in INPUT]
        found += ["blank text in a result" for part in item["output"] if not part.get("text", "x").strip()]
        if not item["output"]:
            found.append("an empty list of output parts")
    return found


def _pairs(items: list[dict[str, Any]]) -> list[str]:
    """Each call has one output, after it, and each output its call."""
    found: list[str] = []
    waiting: dict[str, str] = {}
    used: set[str] = set()
    for item in items:
        kind = item["type"]
        if kind in CALLS:
            if item["call_id"] in used:
                found.append("a call id used twice")
            used.add(item["call_id"])
            waiting[item["call_id"]] = CALLS[kind]
        elif kind in CALLS.values() and waiting.pop(item["call_id"], None) != kind:
            found.append(f"an output nobody asked for: {item['call_id']}")
    return [*found, f"unanswered {sorted(waiting)}"] if waiting else found


def _reasoning(items: list[dict[str, Any]]) -> list[str]:
    """Reasoning is followed by what it led to, and needs its encrypted form where nothing is stored."""
    found = []
    for item, after in zip(items, [*items[1:], None], strict=False):
        if item["type"] != "reasoning":
            continue
        led = after is not None and (after["type"] != "message" or after["role"] == "assistant")
        if not led or (after is not None and after["type"] in CALLS.values()):
            found.append("reasoning that led to nothing")
        if not item.get("encrypted_content"):
            found.append("reasoning without its encrypted form")
    return found
