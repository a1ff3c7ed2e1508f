"""The rules of the native chat API for a request, from WIRE.md, checked on bytes without the adapter's help."""

from __future__ import annotations

import base64
import json
from typing import Any

ROLES = {"system", "user", "assistant", "tool"}
MESSAGE = {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"}
TOP = {"model", "messages", "stream", "format", "tools", "think", "options", "keep_alive", "truncate", "shift"}


def broken_rules(raw: bytes) -> list[str]:
    """Return every rule the request breaks; [] for a good one."""
    body = json.loads(raw)
    found = [f"{name} is no field of a request" for name in body.keys() - TOP]
    if not body.get("model"):
        found.append("no model")
    if not isinstance(body.get("stream"), bool):
        found.append("stream is not said, and its default is true")
    waiting: list[tuple[str, str]] = []
    for message in body["messages"]:
        found += _message(message)
        if message["role"] == "tool":
            wanted = waiting.pop(0) if waiting else None
            if wanted != (message.get("tool_call_id"), message.get("tool_name")):
                found.append(f"a result for {message.get('tool_call_id')} where {wanted} was next")
            continue
        found += [f"unanswered {waiting}"] if waiting else []
        waiting = [(call["id"], call["function"]["name"]) for call in message.get("tool_calls", ())]
    return [*found, f"unanswered {waiting}"] if waiting else found


def _message(message: dict[str, Any]) -> list[str]:
    found = [f"{name} is no field of a message" for name in message.keys() - MESSAGE]
    if message["role"] not in ROLES:
        found.append(f"role {message['role']!r}")
    if not isinstance(message["content"], str):
        found.append("content is not a string")
    for image in message.get("images", ()):
        if image.startswith("data:") or not base64.b64decode(image, validate=True):
            found.append("an image that is not bare base64")
    for call in message.get("tool_calls", ()):
        if not isinstance(call["function"]["arguments"], dict):
            found.append("arguments that are no object")
    return found


def plain_elements(raw: bytes) -> list[str]:
    """Return the messages in order as JSON text."""
    return [json.dumps(message, ensure_ascii=False) for message in json.loads(raw)["messages"]]
