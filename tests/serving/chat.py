"""Two forms of the same in Chat Completions requests, and what the adapters of its services add."""

from __future__ import annotations

from typing import Any

from tests.serving.compare import Form, Known


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


FORMS = (
    Form("the role of a system message is the model's", _roles),
    Form("a string is a list of one text, an empty one is none", _strings),
    Form("texts beside each other, but a user's, are one", _joined),
    Form("null or an empty list is no value", _nulls),
    Form("a default that is said is one that is not said", _defaults),
    Form("a result's tool is named by its call", _result_names),
    Form("an image's data is in a data URL, or bare, or in an object", _image_urls),
)
KNOWN = (
    Known("a stream is asked for its usage", "/stream_options"),
    Known("a result names its call", "/messages/*/tool_call_id"),
    Known("an id that the service would not have issued", "/messages/*/tool_calls/*/id", "value"),
    Known("an id that the service would not have issued", "/messages/*/tool_call_id", "value"),
    Known("a file has a name", "/messages/*/content/*/file/filename"),
    Known("reasoning goes back in this service's own field", "/messages/*/reasoning(_content)?", "missing"),
    Known("calls have no cache marker", "/messages/*/tool_calls/*/cache_control", "missing"),
    Known("reasoning that is missing is said to be empty", "/messages/*/reasoning_content"),
    Known("earlier reasoning is kept", "/thinking"),
    Known("arguments are streamed", "/tool_stream"),
    Known("pieces of a thought are one", "/messages/*/content/*/thinking", "value"),
)
OPTIONS = {
    "max_completion_tokens": "max_tokens",
    "reasoning_effort": "effort",
    "random_seed": "seed",
    "user": "user_id",
    "do_sample": "temperature",
}
