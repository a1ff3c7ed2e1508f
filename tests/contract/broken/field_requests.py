"""Requests that are wrong in the ways reported from the field, written around the first wire.

Nothing here is shipped. The shelf comes in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs

from tests.contract.broken.machine import Mutant, in_body, in_capabilities, in_request

TURNS = 12


def elements(body: dict[str, Any]) -> list[Any]:
    found: list[Any] = body["messages"]
    return found


def parts(body: dict[str, Any], kind: str = "") -> list[Any]:
    """Return the typed parts of all messages, those inside results too."""
    found: list[Any] = []
    waiting = [element["content"] for element in elements(body)]
    while waiting:
        content = waiting.pop(0)
        for part in content if isinstance(content, list) else ():
            found += [part] if not kind or part.get("type") == kind else []
            waiting.append(part.get("content"))
    return found


def _each(kind: str, change: Callable[[Any], object]) -> dict[str, Callable[..., Any]]:
    def changed(body: dict[str, Any]) -> None:
        for part in parts(body, kind):
            change(part)

    return in_body(changed)


def _empty_text(body: dict[str, Any]) -> None:
    for element in elements(body):
        if element["role"] == "user" and isinstance(element["content"], list):
            element["content"].append({"type": "text", "text": ""})


def _ascii(request: Any, **_: Any) -> Any:
    text = json.dumps(json.loads(request.body), ensure_ascii=False)
    return attrs.evolve(request, body=text.encode("ascii", "replace"))


def _all_users(body: dict[str, Any]) -> None:
    for element in elements(body):
        element["role"] = "user"


def _no_required(body: dict[str, Any]) -> None:
    for tool in body.get("tools", ()):
        tool["input_schema"].pop("required", None)


def _no_inner_words(body: dict[str, Any]) -> None:
    for tool in body.get("tools", ()):
        for schema in tool["input_schema"].get("properties", {}).values():
            schema.pop("description", None)


def _pictures_first(body: dict[str, Any]) -> None:
    for element in elements(body):
        if isinstance(element["content"], list):
            element["content"].sort(key=lambda part: part["type"] != "image")


def _one_text(body: dict[str, Any]) -> None:
    for element in elements(body):
        if isinstance(element["content"], list):
            texts = [part for part in element["content"] if part["type"] == "text"]
            element["content"] = [part for part in element["content"] if part not in texts[1:]]


def _one_result_text(part: Any) -> None:
    if isinstance(part.get("content"), list):
        texts = [inner for inner in part["content"] if inner["type"] == "text"]
        part["content"] = [inner for inner in part["content"] if inner not in texts[1:]]


def _any_is_auto(body: dict[str, Any]) -> None:
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        body["tool_choice"] = {"type": "auto"}


def _named_is_any(body: dict[str, Any]) -> None:
    if body.get("tool_choice", {}).get("type") == "tool":
        body["tool_choice"] = {"type": "any"}


def _one_model(body: dict[str, Any]) -> None:
    if body["model"] != "contract-overruled":
        body["model"] = "claude-opus-4-6"


def _markers(body: dict[str, Any], **marker: Any) -> None:
    for part in parts(body, "text"):
        part.update(marker)


def _no_markers(body: dict[str, Any]) -> None:
    for part in [*parts(body), *body.get("tools", ()), *(body.get("system") or ())]:
        if isinstance(part, dict):
            part.pop("cache_control", None)


def _marked_otherwise(body: dict[str, Any]) -> None:
    for part in parts(body, "text"):
        if "cache_control" in part:
            part["text"] += "\n"


def _nulls(body: dict[str, Any]) -> None:
    body.setdefault("temperature", None)


def _only_the_last(body: dict[str, Any]) -> None:
    body["messages"] = elements(body)[-TURNS:]


def _old_pictures_gone(body: dict[str, Any]) -> None:
    for element in elements(body)[:-3]:
        if isinstance(element["content"], list):
            element["content"] = [part for part in element["content"] if part["type"] != "image"]


def _named_in_capitals(body: dict[str, Any]) -> None:
    for part in parts(body, "tool_use"):
        part["name"] = part["name"].replace("_", "-")


def _thinking_last(body: dict[str, Any]) -> None:
    for element in elements(body):
        if element["role"] == "assistant" and isinstance(element["content"], list):
            element["content"].sort(key=lambda part: "thinking" in part["type"])


def _thinking_as_text(body: dict[str, Any]) -> None:
    for element in elements(body):
        if isinstance(element["content"], list):
            for part in [part for part in element["content"] if part["type"] == "thinking"]:
                text = {"type": "text", "text": f"<think>{part['thinking']}</think>"}
                element["content"].insert(element["content"].index(part) + 1, text)


def _floats(body: dict[str, Any]) -> None:
    for part in parts(body, "tool_use"):
        part["input"] = json.loads(json.dumps(part["input"]), parse_int=float)


def _escaped(body: dict[str, Any]) -> None:
    for part in parts(body, "text"):
        part["text"] = part["text"].replace("<", "&lt;")


_kept: dict[Any, Any] = {}


def _remembered(request: Any, messages: Any, **_: Any) -> Any:
    """Keep a body under its messages, whatever the options were."""
    return _kept.setdefault(tuple(message.id for message in messages), request) if messages else request


def _other_system_when_streamed(request: Any, **_: Any) -> Any:
    body = json.loads(request.body)
    if body.get("stream"):
        elements(body)[0]["content"] = [{"type": "text", "text": "(streamed)"}, *_listed(elements(body)[0]["content"])]
    return attrs.evolve(request, body=json.dumps(body).encode())


def _listed(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _clamped(body: dict[str, Any]) -> None:
    body["max_tokens"] = min(body["max_tokens"], 4096)


def _one_stop(body: dict[str, Any]) -> None:
    if "stop_sequences" in body:
        body["stop_sequences"] = body["stop_sequences"][:1]


def _ledger_of_nothing(request: Any, messages: Any, **_: Any) -> Any:
    from interlingua.plugins.wire import Loss

    told = Loss(path="messages[0]", block_type="text", verdict="dropped", reason="too long", message_id=messages[0].id)
    return attrs.evolve(request, losses=(*request.losses, told))


FIELD_REQUESTS = (
    Mutant("empty texts sent", "C08", in_body(_empty_text)),
    Mutant("texts trimmed", "C08", _each("text", lambda part: part.update(text=part["text"].strip() or "-"))),
    Mutant("what is not ASCII lost", "C08", in_request(_ascii)),
    Mutant("long texts cut", "C08", _each("text", lambda part: part.update(text=part["text"][:10_000]))),
    Mutant("angle brackets escaped", "C08", in_body(_escaped)),
    Mutant("every message the user's", "C53", in_body(_all_users)),
    Mutant("only the first text of a message", "C08", in_body(_one_text)),
    Mutant("only the first text of a result", "C08", _each("tool_result", _one_result_text)),
    Mutant("only the last messages sent", "C08", in_body(_only_the_last)),
    Mutant("failed results sent as good ones", "C53", _each("tool_result", lambda part: part.pop("is_error", None))),
    Mutant("required properties of schemas left out", "C07", in_body(_no_required)),
    Mutant("descriptions inside schemas left out", "C07", in_body(_no_inner_words)),
    Mutant("an empty list of tools sent", "C55", in_body(lambda body: body.setdefault("tools", []))),
    Mutant("every picture called a JPEG", "C11", _each("image", lambda part: part["source"].update(
        {"media_type": "image/jpeg"} if "media_type" in part["source"] else {}))),
    Mutant("pictures moved to the front", "C11", in_body(_pictures_first)),
    Mutant("pictures by address left out", "C11", in_body(lambda body: [
        part.update(type="text", text="[image]", source={"type": "none"})
        for part in parts(body, "image") if part["source"]["type"] == "url"])),
    Mutant("old pictures thrown away", "C04", in_body(_old_pictures_gone)),
    Mutant("a forced tool is only offered", "C18", in_body(_any_is_auto)),
    Mutant("one forced tool is any tool", "C18", in_body(_named_is_any)),
    Mutant("a longest answer of its own", "C18", in_body(_clamped)),
    Mutant("only the first stop sequence", "C18", in_body(_one_stop)),
    Mutant("thinking options ignored", "C18", in_body(
        lambda body: [body.pop(name, None) for name in ("thinking", "output_config")])),
    Mutant("always the same model", "C18", in_body(_one_model)),
    Mutant("a stream is asked for in other words", "C55", in_request(_other_system_when_streamed)),
    Mutant("a body kept under its messages alone", "C01", in_request(_remembered)),
    Mutant("cache hints ignored", "C54", in_body(_no_markers)),
    Mutant("a cache marker on every text", "C54", in_body(lambda body: _markers(body, cache_control={"type": "e"}))),
    Mutant("marked text is other text", "C54", in_body(_marked_otherwise)),
    Mutant("what is not asked for sent as null", "C55", in_body(_nulls)),
    Mutant("names of calls changed", "C06", in_body(_named_in_capitals)),
    Mutant("whole numbers turned into floats", "C06", in_body(_floats)),
    Mutant("thinking behind the text", "C16", in_body(_thinking_last)),
    Mutant("own thinking repeated as text", "C16", in_body(_thinking_as_text)),
    Mutant("a required header left out", "C46", {
        "connection": lambda inner, **_: attrs.evolve(inner(), headers={}),
        "to_wire": lambda inner, **_: attrs.evolve(inner(), headers={})}),
    Mutant("a GET with a body", "C44", in_request(lambda request, **_: attrs.evolve(request, method="GET"))),
    Mutant("a ledger of what was not lost", "C08", in_request(_ledger_of_nothing)),
    Mutant("thinking said to be anybody's", "C15", in_capabilities(thinking_scope="provider")),
    Mutant("longest context of another model", "C45", in_capabilities(max_context_tokens=1)),
    Mutant("tools undeclared, and answered all the same", "C51", in_capabilities(
        supports_tools=False, supports_parallel_tool_calls=False, supports_streaming_tool_calls=False,
        supports_tool_choice=False)),
)  # fmt: skip
