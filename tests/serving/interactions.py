"""Two forms of the same in requests that create an interaction."""

from __future__ import annotations

from typing import Any

from tests.serving.compare import Form

_CONTENTS = ("text", "image", "audio", "video", "document")


def _input(body: dict[str, Any]) -> bool:
    given = body.get("input")
    if isinstance(given, str):
        body["input"] = [{"type": "user_input", "content": [{"type": "text", "text": given}]}]
        return True
    listed = [given] if isinstance(given, dict) else given
    if listed and all(each.get("type") in _CONTENTS for each in listed):
        body["input"] = [{"type": "user_input", "content": listed}]
    return bool(body.get("input") != given)


def _turns(body: dict[str, Any]) -> bool:
    changed = False
    given = body.get("input")
    for each in given if isinstance(given, list) else ():
        if "type" not in each and "role" in each:
            each["type"] = "model_output" if each.pop("role") == "model" else "user_input"
            if isinstance(each["content"], str):
                each["content"] = [{"type": "text", "text": each["content"]}]
            changed = True
    return changed


def _false(body: dict[str, Any]) -> bool:
    changed = body.get("stream") is False
    if changed:
        del body["stream"]
    return changed


def _tools(body: dict[str, Any]) -> bool:
    tools = body.get("tools") or []
    ordered = sorted(tools, key=lambda tool: tool.get("type") != "function")
    changed = ordered != tools
    if tools:
        body["tools"] = ordered
    return changed


FORMS = (
    Form("a text or contents alone are one input of the user", _input),
    Form("a turn of the user is an input, one of the model an output", _turns),
    Form("an answer is whole where nothing is said", _false),
    Form("the service's own tools stand behind the functions", _tools),
)
OPTIONS: dict[str, str] = {}
