"""Two forms of the same in Chat Completions requests, and what the adapters of its services add."""

from __future__ import annotations

import re
from typing import Any

from tests.serving.compare import Form


def _roles(body: dict[str, Any]) -> bool:
    found = [message for message in body["messages"] if message["role"] == "developer"]
    for message in found:
        message["role"] = "system"
    return bool(found)


def _strings(body: dict[str, Any]) -> bool:
    changed = False
    for message in body["messages"]:
        content = message.get("content")
        if isinstance(content, str):
            message["content"] = [{"type": "text", "text": content}] if content else []
            changed = True
        elif content is None:
            changed = changed or "content" in message
            message["content"] = []
        marker = message.pop("cache_control", None)
        if marker is not None and message["content"]:
            message["content"][-1]["cache_control"] = marker
            changed = True
    return changed


def _joined(body: dict[str, Any]) -> bool:
    changed = False
    for message in body["messages"]:
        joint = {"system": "\n\n", "user": None}.get(message["role"], "\n")
        parts: list[dict[str, Any]] = []
        for part in message["content"]:
            plain = isinstance(part, dict) and part.keys() == {"type", "text"}
            if plain and joint is not None and parts and parts[-1].keys() == {"type", "text"}:
                parts[-1] = {**parts[-1], "text": parts[-1]["text"] + joint + part["text"]}
                changed = True
            else:
                parts.append(part)
        message["content"] = parts
    return changed


def _nulls(body: dict[str, Any]) -> bool:
    changed = False
    for holder in (body, *body["messages"]):
        for name in [name for name, value in holder.items() if value is None or (value == [] and name != "content")]:
            del holder[name]
            changed = True
    return changed


def _defaults(body: dict[str, Any]) -> bool:
    changed = False
    for message in body["messages"]:
        if message.get("prefix") is False:
            del message["prefix"]
            changed = True
        for call in message.get("tool_calls") or ():
            changed = call.pop("index", None) is not None or changed
            changed = call.setdefault("type", "function") is None or changed
    for tool in body.get("tools") or ():
        if "function" in tool:
            changed = "type" not in tool or changed
            tool.setdefault("type", "function")
            if not tool["function"].get("description"):
                changed = tool["function"].pop("description", None) is not None or changed
            if tool["function"].get("parameters") is None:
                tool["function"]["parameters"] = {"type": "object", "properties": {}}
                changed = True
    if isinstance(body.get("stop"), str):
        body["stop"] = [body["stop"]]
        changed = True
    return changed


def _result_names(body: dict[str, Any]) -> bool:
    found = [message for message in body["messages"] if message["role"] == "tool" and "name" in message]
    for message in found:
        del message["name"]
    return bool(found)


def _image_urls(body: dict[str, Any]) -> bool:
    changed = False
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            url = part.get("image_url") if isinstance(part, dict) else None
            if isinstance(url, str):
                part["image_url"] = url = {"url": url}
                changed = True
            if isinstance(url, dict) and url["url"].startswith("data:"):
                url["url"] = url["url"].partition(",")[2]
                changed = True
    return changed


def _usage(body: dict[str, Any]) -> bool:
    """A stream is asked for its usage; the caller who did not ask for it gets none."""
    given = body.get("stream_options")
    changed = body.get("stream") is True and given in (None, {}, {"include_usage": False}, {"include_usage": True})
    if changed:
        body["stream_options"] = {"include_usage": True}
    return bool(changed and given != {"include_usage": True})


def _thoughts(body: dict[str, Any]) -> bool:
    changed = False
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            pieces = part.get("thinking") if isinstance(part, dict) else None
            if (
                isinstance(pieces, list)
                and len(pieces) > 1
                and all(piece.keys() == {"type", "text"} for piece in pieces)
            ):
                part["thinking"] = [{"type": "text", "text": "".join([piece["text"] for piece in pieces])}]
                changed = True
    return changed


def _reasoning(body: dict[str, Any]) -> bool:
    changed = False
    for message in body["messages"]:
        text = message.get("reasoning_content")
        if text is None and message.get("reasoning_details"):
            text = "".join(
                [detail.get("text") or detail.get("summary") or "" for detail in message["reasoning_details"]]
            )
        if text and message.get("reasoning") == text:
            del message["reasoning"]
            changed = True
    return changed


def _paired(body: dict[str, Any]) -> bool:
    """Results name their calls, in the order of the calls if by nothing else."""
    waiting: list[str] = []
    changed = False
    for message in body["messages"]:
        waiting += [call["id"] for call in message.get("tool_calls") or () if call.get("id")]
        if message["role"] == "tool" and waiting:
            changed = changed or "tool_call_id" not in message
            call = message.setdefault("tool_call_id", waiting[0])
            if call in waiting:
                waiting.remove(call)
    return changed


def _ids(body: dict[str, Any]) -> bool:
    """Ids that a recorder has hidden become equal in both requests."""
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or () if "id" in call]
    given = list(dict.fromkeys(call["id"] for call in calls))
    redacted = any("REDACTED" in name for name in given)
    if redacted or all(re.fullmatch("[A-Za-z0-9]{9}", name) for name in given):
        for message in body["messages"]:
            for call in message.get("tool_calls") or ():
                call["id"] = f"call {given.index(call['id'])}"
            if message.get("tool_call_id") in given:
                message["tool_call_id"] = f"call {given.index(message['tool_call_id'])}"
    return redacted


def _files(body: dict[str, Any]) -> bool:
    changed = False
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            held = part.get("file") if isinstance(part, dict) else None
            if isinstance(held, dict) and "file_data" in held and "filename" not in held:
                held["filename"] = "document"
                changed = True
    return changed


def _zai(body: dict[str, Any]) -> bool:
    """Z.AI's defaults."""
    changed = body.get("tool_stream") is False or body.get("thinking") == {"type": "enabled"}
    if body.get("tool_stream") is False:
        del body["tool_stream"]
    if body.get("thinking") == {"type": "enabled"}:
        del body["thinking"]
    return changed


FORMS = (
    Form("the role of a system message is the model's", _roles),
    Form("a string is a list of one text, an empty one is none", _strings),
    Form("texts beside each other, but a user's, are one", _joined),
    Form("null or an empty list is no value", _nulls),
    Form("a default that is said is one that is not said", _defaults),
    Form("a result's tool is named by its call", _result_names),
    Form("an image's data is in a data URL, or bare, or in an object", _image_urls),
    Form("a stream is asked for its usage", _usage),
    Form("pieces of a thought are one", _thoughts),
    Form("reasoning in two fields is one", _reasoning),
    Form("a result names its call, or has its place", _paired),
    Form("a recorder has hidden the ids of calls", _ids),
    Form("a file without a name is called document", _files),
    Form("thinking is on and arguments are whole by default", _zai),
)
OPTIONS = {
    "max_completion_tokens": "max_tokens",
    "reasoning_effort": "effort",
    "random_seed": "seed",
    "user": "user_id",
    "do_sample": "temperature",
}
