"""Two forms of the same in requests of the Messages API, and what the adapter adds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.serving.compare import Form


def _parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for turn in body["messages"]:
        if isinstance(turn["content"], list):
            yield from (part for part in turn["content"] if isinstance(part, dict))


def _strings(body: dict[str, Any]) -> bool:
    changed = False
    holders = [(body, "system"), *((turn, "content") for turn in body["messages"])]
    for holder, name in holders:
        if isinstance(holder.get(name), str):
            holder[name] = [{"type": "text", "text": holder[name]}]
            changed = True
        elif isinstance(holder.get(name), list):
            parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in holder[name]]
            changed, holder[name] = changed or parts != holder[name], parts
    return changed


def _results(body: dict[str, Any]) -> bool:
    changed = False
    for part in _parts(body):
        if part.get("type") == "tool_result":
            content = part.get("content")
            if isinstance(content, str):
                part["content"] = [{"type": "text", "text": content}] if content else []
                changed = True
            if "content" in part and not part["content"]:
                del part["content"]
                changed = True
    return changed


def _no_errors(body: dict[str, Any]) -> bool:
    found = [part for part in _parts(body) if part.get("is_error") is False]
    for part in found:
        del part["is_error"]
    return bool(found)


def _nulls(body: dict[str, Any]) -> bool:
    changed = False
    for part in _parts(body):
        for name in [name for name, value in part.items() if value is None]:
            del part[name]
            changed = True
    return changed


def _neighbours(body: dict[str, Any]) -> bool:
    turns: list[dict[str, Any]] = []
    for turn in body["messages"]:
        if turns and turns[-1]["role"] == turn["role"]:
            turns[-1] = {**turns[-1], "content": turns[-1]["content"] + turn["content"]}
        else:
            turns.append(turn)
    changed, body["messages"] = len(turns) != len(body["messages"]), turns
    return changed


def _empty(body: dict[str, Any]) -> bool:
    changed = False
    for tool in body.get("tools") or ():
        if tool.get("description") == "":
            del tool["description"]
            changed = True
    for name in ("tools", "system", "stop_sequences"):
        if body.get(name) == []:
            del body[name]
            changed = True
    return changed


def _tool_order(body: dict[str, Any]) -> bool:
    tools = body.get("tools") or []
    ordered = sorted(tools, key=lambda tool: "input_schema" not in tool)
    changed = ordered != tools
    if tools:
        body["tools"] = ordered
    return changed


def _shared_ids(body: dict[str, Any]) -> bool:
    """A call shares its id with no other, and a result has that of the nearest call before it."""
    names: dict[str, str] = {}
    changed = False
    calls: list[str] = []
    for part in _parts(body):
        if part.get("type") == "tool_use":
            changed = changed or part["id"] in calls
            calls.append(part["id"])
            names[part["id"]] = f"call {len(calls)}"
            part["id"] = names[part["id"]]
        elif part.get("type") == "tool_result":
            part["tool_use_id"] = names.get(part["tool_use_id"], part["tool_use_id"])
    return changed


def _bound_thinking(body: dict[str, Any]) -> bool:
    """Adaptive thinking is the default of the models that bind it; the adapter asks them to drop foreign blocks."""
    thinking = body.get("thinking") or {}
    if thinking.get("block_binding") != {"prefix_mismatch_behavior": "drop_block"}:
        return False
    del thinking["block_binding"]
    if thinking == {"type": "adaptive"}:
        del body["thinking"]
    return True


FORMS = (
    Form("a string is a list of one text", _strings),
    Form("neighbouring turns of one role are one turn", _neighbours),
    Form("a result's string is a list of one text; an empty one is none", _results),
    Form("is_error is false where it is not said", _no_errors),
    Form("null is no value", _nulls),
    Form("an empty description or list is none", _empty),
    Form("the service's own tools stand behind the declared ones", _tool_order),
    Form("two calls that share an id are two calls", _shared_ids),
    Form("a model that binds thinking is asked to drop blocks of other conversations", _bound_thinking),
)
OPTIONS = {"stop_sequences": "stop"}
