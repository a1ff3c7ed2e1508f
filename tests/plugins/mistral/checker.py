"""The rules of this service for a request, written after WIRE.md and checked on bytes, without the adapter's help.

Nothing of the adapter is imported.
"""

from __future__ import annotations

import json
import re
from typing import Any

ID = re.compile(r"[A-Za-z0-9]{9}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
IN_USER = {"text", "image_url", "document_url", "file", "input_audio"}
NOT_IN_ASSISTANT = IN_USER - {"text"}  # its own chunks of other kinds go back as they came


def broken_rules(raw: bytes) -> list[str]:
    """Return every rule the request breaks; [] for a good one (WIRE.md, Request)."""
    body = json.loads(raw)
    found = [f"{name} is refused" for name in ("stream_options", "seed", "max_completion_tokens") if name in body]
    found += [f"tool name {tool['function']['name']!r}" for tool in body.get("tools", ())
              if not NAME.fullmatch(tool["function"]["name"])]  # fmt: skip
    messages = body["messages"]
    waiting: list[str] = []
    used: set[str] = set()
    before = None
    for message in messages:
        found += _message(message)
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                found.append(f"a result for {message['tool_call_id']}, which is not open")
            waiting = [one for one in waiting if one != message["tool_call_id"]]
        else:
            found += [f"unanswered {waiting}"] if waiting else []
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            found += ["an id used twice"] if used & set(waiting) or len(set(waiting)) < len(waiting) else []
            used |= set(waiting)
        if before == "tool" and role == "user":
            found.append("a user message right behind results (3230)")
        if role == "system" and before in ("assistant", "tool"):
            found.append(f"a system message right behind the {before} (mistral-common, _validate_message_order)")
        before = role
    if messages and messages[-1]["role"] == "assistant" and not messages[-1].get("prefix"):
        found.append("the assistant stands last without prefix")
    if any(message.get("prefix") for message in messages[:-1]):
        found.append("a prefix that does not stand last")
    return [*found, f"unanswered {waiting}"] if waiting else found


def _message(message: dict[str, Any]) -> list[str]:
    found: list[str] = []
    role, content = message["role"], message.get("content")
    parts = content if isinstance(content, list) else []
    kinds = [part["type"] for part in parts]
    wrong = NOT_IN_ASSISTANT & set(kinds) if role == "assistant" else set(kinds) - IN_USER
    found += [f"{kind} in a message of the {role}" for kind in wrong]
    if "thinking" in kinds and kinds.index("thinking") != 0:
        found.append("thinking behind other content")
    if role == "assistant" and not content and not message.get("tool_calls"):
        found.append("an assistant with neither content nor calls")
    found += [f"id {call['id']!r}" for call in message.get("tool_calls", ()) if not ID.fullmatch(call["id"])]
    if role == "tool" and not ID.fullmatch(message["tool_call_id"]):
        found.append(f"id {message['tool_call_id']!r}")
    found += ["audio that is no string" for part in parts
              if part["type"] == "input_audio" and not isinstance(part["input_audio"], str)]  # fmt: skip
    return found


def plain_elements(raw: bytes) -> list[str]:
    """Return the messages in order as JSON text."""
    return [json.dumps(message, ensure_ascii=False) for message in json.loads(raw)["messages"]]
