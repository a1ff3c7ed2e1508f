"""An answer in plain facts as the official SDK has it, whole or streamed; nothing of the adapter is imported."""

from __future__ import annotations

import json
from typing import Any


def merged(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one body that the SDK's events of a stream add up to."""
    content: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[str, Any]] = {}
    plan, citations, last, first = "", [], {}, None
    for event in events:
        message = (event.get("delta") or {}).get("message") or {}
        at = event.get("index") or 0
        match event["type"]:
            case "message-start":
                first = event["id"]
            case "content-start" | "content-delta":
                item = content.setdefault(at, {})
                for name, value in message["content"].items():
                    if name in ("text", "thinking") and value is not None:
                        item[name] = item.get(name, "") + value
            case "tool-plan-delta":
                plan += message["tool_plan"]
            case "tool-call-start":
                calls[at] = message["tool_calls"]
            case "tool-call-delta":
                calls[at]["function"]["arguments"] += message["tool_calls"]["function"]["arguments"]
            case "citation-start":
                citations.append(message["citations"])
            case "message-end":
                last = event["delta"]
    items = [{"type": "thinking" if "thinking" in one else "text", **one} for _, one in sorted(content.items())]
    message = {"content": items, "tool_plan": plan, "tool_calls": list(calls.values()), "citations": citations}
    kept = {name: value for name, value in message.items() if value}
    ended = {name: last.get(name) for name in ("finish_reason", "usage")}
    return {"id": first, "message": {"role": "assistant", **kept}, **ended}


def facts(body: dict[str, Any]) -> dict[str, Any]:
    """Return text, thinking (the plan last), calls, cited texts, usage and reason of a body as the SDK has it."""
    message, usage = body["message"], body.get("usage") or {}
    content = message.get("content") or []
    thinking = [item["thinking"] for item in content if item["type"] == "thinking"]
    tokens, billed = usage.get("tokens") or {}, usage.get("billed_units") or {}
    return {
        "text": "".join(item["text"] for item in content if item["type"] == "text"),
        "thinking": [text for text in [*thinking, message.get("tool_plan")] if text],
        "calls": [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"] or "{}"))
            for call in message.get("tool_calls") or ()
        ],
        "cited": [one["text"] for one in message.get("citations") or ()],
        "reason": body["finish_reason"],
        "usage": tuple(tokens.get(name) for name in ("input_tokens", "output_tokens", "reasoning_tokens")),
        "cached": usage.get("cached_tokens"),
        "billed": (billed.get("input_tokens"), billed.get("output_tokens")),
    }
