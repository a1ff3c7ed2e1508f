"""The rules of v2 chat for a request, from WIRE.md, checked on bytes without the adapter's help."""

from __future__ import annotations

import json
from typing import Any

ROLES = {"system", "user", "assistant", "tool"}
PARTS = {
    "system": {"text"},
    "user": {"text", "image_url"},
    "assistant": {"text", "thinking"},
    "tool": {"text", "document"},
}
MESSAGE = {"role", "content", "tool_calls", "tool_plan", "citations", "tool_call_id"}
TOP = {
    *("model", "messages", "stream", "tools", "strict_tools", "tool_choice", "documents", "citation_options"),
    *("response_format", "safety_mode", "max_tokens", "stop_sequences", "temperature", "seed", "frequency_penalty"),
    *("presence_penalty", "k", "p", "logprobs", "thinking", "priority"),
}


def broken_rules(raw: bytes) -> list[str]:
    """Return every rule the request breaks; [] for a good one."""
    body = json.loads(raw)
    found = [f"{name} is no field of a request" for name in body.keys() - TOP]
    found += [f"{name} is missing" for name in {"model", "messages"} - body.keys()]
    found += ["a document without data" for document in body.get("documents", ()) if not document.get("data")]
    waiting: list[str] = []
    for message in body["messages"]:
        found += _message(message)
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                found.append(f"a result for {message.get('tool_call_id')} where {waiting} wait")
            else:
                waiting.remove(message["tool_call_id"])
            continue
        found += [f"unanswered {waiting}"] if waiting else []
        waiting = [call["id"] for call in message.get("tool_calls", ())]
    return [*found, f"unanswered {waiting}"] if waiting else found


def _message(message: dict[str, Any]) -> list[str]:
    role = message["role"]
    found = [f"{name} is no field of a message" for name in message.keys() - MESSAGE]
    if role not in ROLES:
        found.append(f"role {role!r}")
    content = message.get("content")
    if role != "assistant" and content is None:
        found.append("no content")
    if role == "assistant" and not (content or message.get("tool_calls") or message.get("tool_plan")):
        found.append("an answer that holds nothing")
    if isinstance(content, list):
        found += [f"{part['type']} of {role}" for part in content if part["type"] not in PARTS[role]]
    for call in message.get("tool_calls", ()):
        try:
            fine = isinstance(json.loads(call["function"]["arguments"]), dict)
        except ValueError:
            fine = False
        found += [] if fine and call["type"] == "function" else ["arguments that are no JSON object"]
    for citation in message.get("citations", ()):
        at = citation.get("content_index", 0)
        if citation.get("type") != "PLAN" and at >= len(content or ()):
            found.append("a citation of content that is not there")
    return found


def plain_elements(raw: bytes) -> list[str]:
    """Return the messages in order as JSON text."""
    return [json.dumps(message, ensure_ascii=False) for message in json.loads(raw)["messages"]]
