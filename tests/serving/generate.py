"""Two forms of the same in requests of generateContent, and what the adapter leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.serving.compare import Form

_FREE = ("args", "response", "responseSchema", "responseJsonSchema", "parameters", "parametersJsonSchema", "labels")


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for name, inner in value.items():
        known = re.sub("_([a-z])", lambda found: found[1].upper(), name)
        out[known] = inner if known in _FREE else _camel(inner)
    return out


def _names(body: dict[str, Any]) -> bool:
    made = _camel(body)
    changed = bool(made != body)
    body.clear()
    body.update(made)
    return changed


def _lists(body: dict[str, Any]) -> bool:
    changed = False
    system = body.get("systemInstruction")
    for holder, name in ((body, "contents"), (body, "tools"), (system, "parts")):
        if isinstance(holder, dict) and isinstance(holder.get(name), dict):
            holder[name] = [holder[name]]
            changed = True
    return changed


def _contents(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for content in (*body.get("contents", ()), body.get("systemInstruction")):
        if isinstance(content, dict):
            yield content


def _roles(body: dict[str, Any]) -> bool:
    changed = False
    for content in body.get("contents") or ():
        if content.get("role") not in ("user", "model"):
            content["role"] = "user"
            changed = True
    return changed


def _thoughts(body: dict[str, Any]) -> bool:
    changed = False
    for content in _contents(body):
        for part in content.get("parts") or ():
            if part.get("thought") is False:
                del part["thought"]
                changed = True
    return changed


def _nothing(body: dict[str, Any]) -> bool:
    changed = False
    declared = [each for tool in body.get("tools") or () for each in tool.get("functionDeclarations") or ()]
    for holder in (body, *declared):
        for name in [name for name, value in holder.items() if value is None or value in ("", [], {})]:
            if name != "parametersJsonSchema":
                del holder[name]
                changed = True
    return changed


def _no_parameters(body: dict[str, Any]) -> bool:
    changed = False
    for tool in body.get("tools") or ():
        for declared in tool.get("functionDeclarations") or ():
            if declared.get("parametersJsonSchema") in ({}, None) and "parametersJsonSchema" in declared:
                del declared["parametersJsonSchema"]
                changed = True
    return changed


def _tools(body: dict[str, Any]) -> bool:
    tools = body.get("tools") or []
    declared = [each for tool in tools for each in tool.get("functionDeclarations") or ()]
    others = [{name: value for name, value in tool.items() if name != "functionDeclarations"} for tool in tools]
    ordered = [*([{"functionDeclarations": declared}] if declared else []), *[tool for tool in others if tool]]
    changed = bool(ordered != tools)
    if tools:
        body["tools"] = ordered
    return changed


def _results(body: dict[str, Any]) -> bool:
    out: list[dict[str, Any]] = []
    for content in body.get("contents") or ():
        parts = content.get("parts") or []
        results = [part for part in parts if "functionResponse" in part]
        others = [part for part in parts if "functionResponse" not in part]
        if results and out and "functionResponse" in out[-1]["parts"][0]:
            out[-1] = {**out[-1], "parts": [*out[-1]["parts"], *results]}
            results = []
        out += [{**content, "parts": held} for held in (results, others) if held]
    changed = out != body.get("contents", [])
    if "contents" in body:
        body["contents"] = out
    return changed


FORMS = (
    Form("names are in camelCase or snake_case", _names),
    Form("one object is a list of one", _lists),
    Form("all but the model's contents are the user's", _roles),
    Form("a part that is no thought need not say so", _thoughts),
    Form("null, an empty text, list or object is no value", _nothing),
    Form("a function without parameters has an empty schema or none", _no_parameters),
    Form("functions are declared in one entry or several, and stand before the service's own tools", _tools),
    Form("the results of one turn, and what is said beside them, are one content or several", _results),
)
OPTIONS: dict[str, str] = {}
