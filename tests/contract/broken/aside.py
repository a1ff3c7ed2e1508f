"""Adapters that are wrong beside the conversation: counting, batches, objects sent back, calls that arrive in turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs

from tests.contract.broken.machine import Mutant, in_body, in_message, in_request


def _asked(wanted: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Change the body of an auxiliary request."""

    def auxiliary_request(inner: Any, kind: str, **_: Any) -> Any:
        request = inner()
        if kind != wanted or request is None:
            return request
        body = json.loads(request.body)
        return attrs.evolve(request, body=json.dumps(change(body)).encode())

    return {"auxiliary_request": auxiliary_request}


def _without(*names: str) -> Callable[[Any], Any]:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def _first_only(body: Any) -> Any:
    return {**body, "messages": body["messages"][:1]}


def _ids_sorted(body: Any) -> Any:
    rows = body["requests"]
    names = sorted(row["custom_id"] for row in rows)
    return {**body, "requests": [{**row, "custom_id": name} for row, name in zip(rows, names, strict=True)]}


def _each(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if isinstance(value, dict):
        return {name: _each(item, change) for name, item in change(value).items()}
    return [_each(item, change) for item in value] if isinstance(value, list) else value


def _in_objects(change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Change every object of the messages that an answer brought."""

    def changed(body: dict[str, Any]) -> None:
        for element in body["messages"]:
            if isinstance(element["content"], list):
                element["content"] = [
                    block if block.get("type") in ("text", "tool_use", "tool_result") else _each(block, change)
                    for block in element["content"]
                ]

    return in_body(changed)


def _whole_numbers(value: dict[str, Any]) -> dict[str, Any]:
    return {name: int(item) if isinstance(item, float) else item for name, item in value.items()}


def _truthy(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if item is not False and item is not None}


def _to_the_last_call(inner: Any, response_stream: Any, **_: Any) -> Any:
    """Add every piece of arguments to the call that began last."""

    async def source() -> Any:
        last = 0
        async for chunk in response_stream:
            try:
                data = json.loads(chunk.data)
            except ValueError:
                yield chunk
                continue
            if data.get("type") == "content_block_start":
                last = data["index"]
            if data.get("type") == "content_block_delta" and data["delta"].get("type") == "input_json_delta":
                data["index"] = last
            yield chunk._replace(data=json.dumps(data).encode())

    return inner(response_stream=source())


def _names_of_neighbours(message: Any) -> Any:
    calls = message.tool_calls
    names = {one.id: other.name for one, other in zip(calls, reversed(calls), strict=True)}
    content = [
        attrs.evolve(block, name=names[block.id]) if block.type == "tool_use" else block for block in message.content
    ]
    return attrs.evolve(message, content=tuple(content))


def _path(change: Callable[[str], str]) -> dict[str, Any]:
    return in_request(lambda request, **_: attrs.evolve(request, path=change(request.path)))


def _of_blocks(kind: str, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Change every block of a type, in results too."""

    def changed(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") == kind:
                change(value)
            value = list(value.values())
        for item in value if isinstance(value, list) else ():
            changed(item)

    return in_body(changed)


def _upload(change: Callable[[Any], Any]) -> dict[str, Any]:
    """Change the requests for uploads and for deletions."""

    def auxiliary_request(inner: Any, kind: str, **_: Any) -> Any:
        request = inner()
        return change(request) if kind in ("upload", "delete_file") and request is not None else request

    return {"auxiliary_request": auxiliary_request}


def _in_form(old: bytes, new: bytes) -> dict[str, Any]:
    return _upload(lambda request: attrs.evolve(request, body=request.body.replace(old, new)))


def _file_read_as(inner: Any, kind: str, **_: Any) -> Any:
    found = inner()
    return {**found, "id": f"{found['id']}-1"} if kind == "upload" else found


def _decided(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Change each answer that was read of a decision."""

    def from_wire_auxiliary(inner: Any, kind: str, **_: Any) -> Any:
        found = inner()
        if kind != "decide":
            return found
        return {**found, "answers": [{**answer, **change(answer)} for answer in found["answers"]]}

    return {"from_wire_auxiliary": from_wire_auxiliary}


def _of_questions(change: Callable[[list[dict[str, Any]]], Any]) -> dict[str, Any]:
    return _asked("decide", lambda body: {**body, "questions": change(body["questions"])})


def _names_rotated(questions: list[dict[str, Any]]) -> Any:
    names = [question["name"] for question in questions]
    rotated = [*names[1:], names[0]]
    return [{**question, "name": name} for question, name in zip(questions, rotated, strict=True)]


def _without_meanings(question: dict[str, Any]) -> dict[str, Any]:
    plain = {**question, "instructions": question["instructions"].partition("\n")[0]}
    if "choices" in plain:
        plain["choices"] = [{"value": each["value"]} for each in plain["choices"]]
    return plain


def _from_the_highest(question: dict[str, Any]) -> dict[str, Any]:
    return {**question, "levels": question["levels"][::-1]} if "levels" in question else question


def _last_only(name: str) -> dict[str, Any]:
    return _asked("decide", lambda body: {**body, name: body[name][-1:]})


def _as_yes(answer: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "yes_no", "yes": 0.5} if answer["kind"] == "refused" else {}


def _decision(name: str, replaced: dict[str, Any], key: str = "openai") -> Mutant:
    return Mutant(name, "C109", replaced, key=key)


DECISIONS = (
    _decision("questions with the ids of their neighbours", _of_questions(_names_rotated)),
    _decision("levels of a scale from the highest", _of_questions(lambda all_: list(map(_from_the_highest, all_)))),
    _decision("what answers mean left out", _of_questions(lambda all_: list(map(_without_meanings, all_)))),
    _decision("a decision about the last message alone", _last_only("input")),
    _decision("a decision of another model", _asked("decide", lambda body: {**body, "model": "other"})),
    _decision("yes read as no", _decided(lambda one: {"yes": 1 - one["yes"]} if "yes" in one else {})),
    _decision(
        "the levels' probabilities reversed",
        _decided(lambda one: {"probabilities": one["probabilities"][::-1]} if one["kind"] == "scale" else {}),
    ),
    _decision("a refused question decided", _decided(_as_yes)),
    _decision("decisions without the service's confidence", _decided(lambda _: {"confidence": None})),
    _decision("decisions under another name", _decided(lambda _: {"id": "another"})),
    _decision("contents of the last message alone", _last_only("input"), key="google"),
    _decision(
        "a state of the last message alone", _asked("decide", lambda body: {**body, "state": "mkt3q"}), key="openrouter"
    ),
)


def _of_changes(kind: str, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Change each item or block of a type; None leaves it out."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            made = [
                change(item) if isinstance(item, dict) and item.get("type") == kind else changed(item) for item in value
            ]
            return [item for item in made if item is not None]
        return {name: changed(item) for name, item in value.items()} if isinstance(value, dict) else value

    def in_place(body: dict[str, Any]) -> None:
        body.update(changed(dict(body)))

    return in_body(in_place)


def _moved_in_front(body: dict[str, Any]) -> None:
    """Declare what a change adds in front of the conversation."""
    found = [item for item in body["input"] if item.get("type") == "additional_tools"]
    body["input"] = [item for item in body["input"] if item not in found]
    body["tools"] = [*body.get("tools", ()), *(tool for item in found for tool in item["tools"])]


def _at_the_end(body: dict[str, Any]) -> None:
    body["input"].sort(key=lambda item: item.get("type") == "additional_tools")


def _effort_in_front(body: dict[str, Any]) -> None:
    found = [item for item in body["input"] if item.get("type") == "configuration_update"]
    body["input"] = [item for item in body["input"] if item not in found]
    if found:
        body["reasoning"] = {**body.get("reasoning", {}), **found[-1]["reasoning"]}


def _without_schema(block: dict[str, Any]) -> dict[str, Any]:
    definition = {**block["tool"]["definition"], "input_schema": {"type": "object"}}
    return {**block, "tool": {**block["tool"], "definition": definition}}


def _changed(name: str, replaced: Any, key: str = "openai") -> Mutant:
    return Mutant(name, "C110", replaced, key=key, api="responses" if key == "openai" else "")


CHANGES = (
    _changed("responses: added tools declared in front", in_body(_moved_in_front)),
    _changed("responses: added tools at the end of the conversation", in_body(_at_the_end)),
    _changed("responses: added tools left out", _of_changes("additional_tools", lambda _: None)),
    _changed("responses: a changed effort in front", in_body(_effort_in_front)),
    _changed("responses: removed tools allowed", in_body(lambda body: body.pop("tool_choice", None))),
    _changed("tools added without their schemas", _of_changes("tool_addition", _without_schema), "anthropic"),
    _changed("added tools left out", _of_changes("tool_addition", lambda _: None), "anthropic"),
    _changed("removed tools left in", _of_changes("tool_removal", lambda _: None), "anthropic"),
    _changed(
        "a changed effort left out",
        in_body(lambda body: [message.pop("output_config", None) for message in body["messages"]]),
        "anthropic",
    ),
)
ASIDE = (
    *DECISIONS,
    *CHANGES,
    Mutant("a file without its zero bytes", "C108", _in_form(b"\x00", b"")),
    Mutant("a file of an unknown kind", "C108", _in_form(b"application/pdf", b"application/octet-stream")),
    Mutant("line ends in the name of a file", "C108", _in_form(b"%0D%0A", b"\r\n")),
    Mutant(
        "every file deleted as the first",
        "C108",
        _upload(lambda request: attrs.evolve(request, path="/v1/files/file_1")),
    ),
    Mutant("another id of an uploaded file", "C108", {"from_wire_auxiliary": _file_read_as}),
    Mutant(
        "an uploaded file without its id",
        "C108",
        _of_blocks("file", lambda source: source.pop("file_id", None)),
    ),
    Mutant(
        "the context of a document left out", "C90", _of_blocks("document", lambda block: block.pop("context", None))
    ),
    Mutant(
        "a document of text said to be of Markdown",
        "C90",
        _of_blocks(
            "text", lambda source: source.update(media_type="text/markdown") if "media_type" in source else None
        ),
    ),
    Mutant(
        "citations without their place",
        "C90",
        _of_blocks("char_location", lambda citation: citation.pop("start_char_index", None)),
    ),
    Mutant(
        "a result's marker of another kind", "C90", _of_blocks("ephemeral", lambda mark: mark.update(type="lasting"))
    ),
    Mutant("calls with the names of their neighbours", "C88", in_message(_names_of_neighbours)),
    Mutant("an older version of the API in the path", "C89", _path(lambda path: path.replace("/v1/", "/v0/"))),
    Mutant(
        "streams of Gemini not as events",
        "C89",
        _path(lambda path: path.partition("?")[0]),
        key="google",
        api="generate",
    ),
    Mutant(
        "a content type with a letter too many",
        "C89",
        in_request(
            lambda request, **_: attrs.evolve(request, headers={**request.headers, "content-type": "application/jsons"})
        ),
    ),
    Mutant("tokens counted without the tools", "C82", _asked("count_tokens", _without("tools"))),
    Mutant("tokens counted without the system prompt", "C82", _asked("count_tokens", _without("system"))),
    Mutant("tokens counted of the first message only", "C82", _asked("count_tokens", _first_only)),
    Mutant("tokens counted for another model", "C82", _asked("count_tokens", lambda body: {**body, "model": "other"})),
    Mutant("ids of a batch sorted", "C83", _asked("batch_create", _ids_sorted)),
    Mutant("numbers of an object made whole", "C84", _in_objects(_whole_numbers)),
    Mutant("false members of an object left out", "C84", _in_objects(_truthy)),
    Mutant("members of an object sorted", "C84", _in_objects(lambda value: dict(sorted(value.items())))),
    Mutant("arguments added to the call that began last", "C85", {"stream_response": _to_the_last_call}),
)
