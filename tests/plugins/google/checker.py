"""The rules of generateContent for a request, read from WIRE.md and checked on bytes, without the adapter's help."""

from __future__ import annotations

import json
import re
from typing import Any

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
TOP = {
    *("contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent", "labels"),
    *("serviceTier", "store", "continuationToken", "generationConfig"),
}  # §2
DATA = {
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
}
MODIFIERS = {
    *("thought", "thoughtSignature", "mediaResolution", "mediaProcessing", "videoMetadata", "audioMetadata"),
    *("documentMetadata", "spreadsheetMetadata", "speechMetadata", "partMetadata"),
}


def broken_rules(raw: bytes, *, signed: bool = False) -> list[str]:
    """Return every rule the request breaks; [] for a good one.

    Args:
        raw: the request's body.
        signed: the model is of the third generation or later.
    """
    body = json.loads(raw)
    found = [f"unknown member {name}" for name in body.keys() - TOP]
    contents = body["contents"]
    if contents and contents[0]["role"] != "user":
        found.append("the first content is not the user's (§4)")
    for content in contents:
        if not content["parts"]:
            found.append("an empty content (§4)")
        found += [problem for part in content["parts"] for problem in _part(part, content["role"])]
    found += _calls(contents)
    found += _signatures(contents) if signed else []
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    if {"thinkingBudget", "thinkingLevel"} <= config.keys():
        found.append("a budget and a level (§3)")
    for tool in body.get("tools", ()):
        found += [
            f"tool name {one['name']!r}" for one in tool["functionDeclarations"] if not NAME.fullmatch(one["name"])
        ]
    return found


def _part(part: dict[str, Any], role: str) -> list[str]:
    found = []
    data = part.keys() & DATA
    if len(data) != 1 or part.keys() - DATA - MODIFIERS:
        found.append(f"a part needs exactly one data member: {sorted(part)} (§2)")
    if "functionCall" in part and (role != "model" or not isinstance(part["functionCall"]["args"], dict)):
        found.append("a call outside the model's content, or without an object of arguments")
    if "functionResponse" in part:
        response = part["functionResponse"]
        if role != "user" or response["response"].keys() not in ({"output"}, {"error"}):
            found.append("a result outside the user's content, or in another form (§2)")
    if part.keys() & {"thought", "thoughtSignature"} and role != "model":
        found.append("the user does not think")
    return found


def _calls(contents: list[dict[str, Any]]) -> list[str]:
    """Every call is answered in the next content: as many, in order, by name, by id where there is one (§4)."""
    found: list[str] = []
    waiting: list[dict[str, Any]] = []
    for content in contents:
        results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        if [(call["name"], call.get("id")) for call in waiting] != [(one["name"], one.get("id")) for one in results]:
            found.append(f"calls {waiting} are answered by {results}")
        waiting = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    return [*found, f"unanswered {waiting}"] if waiting else found


def _signatures(contents: list[dict[str, Any]]) -> list[str]:
    """The first call of every step carries a signature (§3); asked of every turn, not of the current one alone."""
    found = []
    for content in contents:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            found.append("the first call of a step has no signature (§3)")
    return found
