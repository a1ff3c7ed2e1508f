"""Two forms of the same in requests of the Responses API, and what the adapter adds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.serving.compare import Form


def _items(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    given = body.get("input")
    yield from given if isinstance(given, list) else ()


def _parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in _items(body):
        for name in ("content", "output"):
            held = item.get(name)
            yield from (part for part in (held if isinstance(held, list) else ()) if isinstance(part, dict))


def _texts(body: dict[str, Any]) -> bool:
    changed = isinstance(body.get("input"), str)
    if changed:
        body["input"] = [{"role": "user", "content": body["input"]}]
    for item in _items(body):
        if "type" not in item and "role" in item:
            item["type"] = "message"
            changed = True
        if item.get("type") == "message" and isinstance(item.get("content"), str):
            kind = "output_text" if item["role"] == "assistant" else "input_text"
            item["content"] = [{"type": kind, "text": item["content"]}]
            changed = True
    return changed


def _nothing(body: dict[str, Any]) -> bool:
    changed = False
    for holder in (body, *(body.get("tools") or ())):
        for name in [name for name, value in holder.items() if value is None or value in ("", [])]:
            del holder[name]
            changed = True
    return changed


def _defaults(body: dict[str, Any]) -> bool:
    changed = False
    for part in _parts(body):
        if part.get("type") == "input_image" and part.get("detail") == "auto":
            del part["detail"]
            changed = True
        if part.get("logprobs") == []:
            del part["logprobs"]
            changed = True
    return changed


def _tool_order(body: dict[str, Any]) -> bool:
    tools = body.get("tools") or []
    ordered = sorted(tools, key=lambda tool: tool.get("type") not in ("function", "custom", "namespace"))
    changed = ordered != tools
    if tools:
        body["tools"] = ordered
    return changed


def _empty_answers(body: dict[str, Any]) -> bool:
    items = list(_items(body))
    kept = [item for item in items if item.get("role") != "assistant" or item.get("content") != []]
    if len(kept) != len(items):
        body["input"] = kept
    return len(kept) != len(items)


def _long_ids(body: dict[str, Any]) -> bool:
    """Ids of calls are at most 64 characters long (https://platform.openai.com/docs/api-reference/responses/create)."""
    found = list(dict.fromkeys(item["call_id"] for item in _items(body) if item.get("call_id")))
    for item in _items(body):
        if item.get("call_id"):
            item["call_id"] = f"call {found.index(item['call_id'])}"
    return any(len(name) > 64 for name in found)


FORMS = (
    Form("a text is a list of one part, and an item with a role a message", _texts),
    Form("null, an empty text or list is no value", _nothing),
    Form("a default that is said is one that is not said", _defaults),
    Form("the service's own tools stand behind the declared ones", _tool_order),
    Form("an answer that holds nothing is none", _empty_answers),
    Form("a call id of more than 64 characters is a shorter one", _long_ids),
)
OPTIONS: dict[str, str] = {}
