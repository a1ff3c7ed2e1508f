"""Adapters that write wrong requests."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import attrs

from interlingua.plugins import Loss, encode_each
from tests.contract.broken.machine import Handed, Mutant, in_body, in_capabilities, in_request, real, subject_of

_numbers = count()
_seen: list[str] = []


def elements(body: dict[str, Any]) -> list[Any]:
    found: list[Any] = body["messages"]
    return found


def _blocks(body: dict[str, Any], kind: str) -> list[Any]:
    return [
        block
        for element in elements(body)
        if isinstance(element["content"], list)
        for block in element["content"]
        if block.get("type") == kind
    ]


def _without(body: dict[str, Any], kind: str) -> None:
    for element in elements(body):
        if isinstance(element["content"], list):
            element["content"] = [block for block in element["content"] if block.get("type") != kind]


def _first_history_wins(request: Any, **_: Any) -> Any:
    _seen.append(request.body.decode())
    return attrs.evolve(request, body=_seen[0].encode()) if len(_seen) % 3 == 0 else request


def _write_back(request: Any, messages: Any, **_: Any) -> Any:
    if messages:
        object.__setattr__(messages[-1], "session_id", "touched")
    return request


def _mark_last(body: dict[str, Any]) -> None:
    if elements(body):
        elements(body)[-1]["last"] = True


def _count(body: dict[str, Any]) -> None:
    body["metadata"] = {"turns": len(elements(body))}


def _truncated_ids(body: dict[str, Any]) -> None:
    for block in _blocks(body, "tool_use"):
        block["id"] = block["id"][:20]
    for block in _blocks(body, "tool_result"):
        block["tool_use_id"] = block["tool_use_id"][:20]


def _prefixed_ids(body: dict[str, Any]) -> None:
    for block in _blocks(body, "tool_use"):
        block["id"] = "toolu_" + block["id"]


def _whoever_said_it(request: Any, messages: Any, **_: Any) -> Any:
    kept = [message.metadata.provider_raw["replay"] for message in messages if message.metadata.provider_raw]
    body = json.loads(request.body)
    body["metadata"] = {"replayed": json.dumps(kept)}
    return attrs.evolve(request, body=json.dumps(body).encode()) if kept else request


def _sorted(request: Any, **_: Any) -> Any:
    return attrs.evolve(request, body=json.dumps(json.loads(request.body), sort_keys=True).encode())


def _no_falsy_arguments(body: dict[str, Any]) -> None:
    for block in _blocks(body, "tool_use"):
        block["input"] = {name: value for name, value in block["input"].items() if value}


def _argument_text(body: dict[str, Any]) -> None:
    for block in _blocks(body, "tool_use"):
        block["input"] = {name: str(value) for name, value in block["input"].items()}


def _tools_by_name(body: dict[str, Any]) -> None:
    if "tools" in body:
        body["tools"].sort(key=lambda tool: tool["name"])


def _no_enum(body: dict[str, Any]) -> None:
    for tool in body.get("tools", ()):
        for schema in tool["input_schema"].get("properties", {}).values():
            schema.pop("enum", None)


def _results_reversed(body: dict[str, Any]) -> None:
    for element in elements(body):
        if isinstance(element["content"], list):
            results = [block for block in element["content"] if block.get("type") == "tool_result"]
            rest = [block for block in element["content"] if block.get("type") != "tool_result"]
            element["content"] = [*reversed(results), *rest]


def _only_first_result(body: dict[str, Any]) -> None:
    for element in elements(body):
        if isinstance(element["content"], list):
            results = [block for block in element["content"] if block.get("type") == "tool_result"]
            element["content"] = [block for block in element["content"] if block not in results[1:]]


def _system_as_user(body: dict[str, Any]) -> None:
    system = body.pop("system", None)
    if system:
        elements(body).insert(0, {"role": "user", "content": system})


def _hoist_all(request: Any, messages: Any, **_: Any) -> Any:
    body = json.loads(request.body)
    texts = [part["text"] for element in elements(body) if element["role"] == "system" for part in element["content"]]
    body["messages"] = [element for element in elements(body) if element["role"] != "system"]
    if texts:
        body["system"] = [*body.get("system", []), *({"type": "text", "text": text} for text in texts)]
    return attrs.evolve(request, body=json.dumps(body).encode())


def _merge_users(body: dict[str, Any]) -> None:
    texts = [part for element in elements(body) if element["role"] == "user" for part in element["content"]]
    for element in elements(body):
        if element["role"] == "user":
            element["content"] = texts
            break


def _zero_is_nothing(body: dict[str, Any]) -> None:
    if body.get("temperature") == 0:
        del body["temperature"]


def _own_names_win(body: dict[str, Any]) -> None:
    body["model"] = "mine"


def _no_signatures(body: dict[str, Any]) -> None:
    for block in _blocks(body, "thinking"):
        block["signature"] = ""


def _key_in_header(request: Any, **_: Any) -> Any:
    return attrs.evolve(request, headers={**request.headers, "x-api-key": os.environ.get("ACME_KEY", "none")})


def _again(messages: Any) -> list[Any]:
    kinds = ("thinking", "audio", "opaque", "video")
    return [
        Loss(path="messages[0]", block_type=kind, verdict="dropped", reason="again", message_id=messages[0].id)
        for kind in kinds
        if messages
    ]


TURNS = 12


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


def _key_without_options(request: Any, messages: Any, options: Any, **_: Any) -> Any:
    """Encode pieces under a key that forgets an option they depend on."""
    pieces = encode_each(messages, "broken", lambda message: f"{message.role} {options.max_tokens}")
    return attrs.evolve(request, body=_with_pieces(request, pieces))


_pieces: dict[str, str] = {}


def _piece_of_any_model(request: Any, messages: Any, options: Any, **_: Any) -> Any:
    """Keep pieces by message id alone, and send one model what was written for another."""
    pieces = [_pieces.setdefault(message.id, f"{message.role} {options.model}") for message in messages]
    return attrs.evolve(request, body=_with_pieces(request, pieces))


def _with_pieces(request: Any, pieces: list[str]) -> bytes:
    return json.dumps({**json.loads(request.body), "metadata": {"pieces": pieces}}).encode()


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
    loss = Loss(path="messages[0]", block_type="text", verdict="dropped", reason="too long", message_id=messages[0].id)
    return attrs.evolve(request, losses=(*request.losses, loss))


class _Unsteady(Handed):
    def __init__(self) -> None:
        super().__init__(real("anthropic"), to_wire=self.write)

    def __reduce__(self) -> Any:
        return type(self), ()

    def write(self, inner: Any, **_: Any) -> Any:
        request = inner()
        return attrs.evolve(request, body=json.dumps(self.changed(json.loads(request.body))).encode())

    def changed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Write the fields of the body as a set gives them."""
        return {name: body[name] for name in set(body)}


class _Hashed(_Unsteady):
    def changed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Name the request by the hash of its text."""
        return {**body, "metadata": {"user_id": str(hash(json.dumps(body)))}}


@attrs.frozen
class _Process(Mutant):
    made: Any = None

    def subject(self, seed: int = 0, examples: int = 40) -> Any:
        return subject_of(self.key, self.made(), "", seed, examples)


REQUESTS = (
    Mutant("a time in the body", "C03", in_body(lambda body: body.update(at=time.time()))),
    Mutant("a number that counts requests", "C01", in_body(lambda body: body.update(n=next(_numbers)))),
    Mutant("a random request id", "C01", in_body(lambda body: body.update(id=random.random()))),
    Mutant("an environment variable in the request", "C03", in_request(_key_in_header)),
    Mutant("a cache that forgets what it depends on", "C01", in_request(_first_history_wins)),
    Mutant("a piece whose key forgets an option", "C01", in_request(_key_without_options)),
    Mutant("a piece of one model sent to another", "C01", in_request(_piece_of_any_model)),
    Mutant("messages changed while writing", "C02", in_request(_write_back)),
    Mutant("a mark on the last element", "C04", in_body(_mark_last)),
    Mutant("the number of turns beside the messages", "C04", in_body(_count)),
    Mutant("call ids cut short", "C05", in_body(_truncated_ids)),
    Mutant("call ids with a prefix, results without", "C05", in_body(_prefixed_ids)),
    Mutant("keys of the body sorted", "C06", in_request(_sorted)),
    Mutant("falsy arguments left out", "C06", in_body(_no_falsy_arguments)),
    Mutant("arguments turned into text", "C06", in_body(_argument_text)),
    Mutant("tools sorted by name", "C07", in_body(_tools_by_name)),
    Mutant("enums of schemas left out", "C07", in_body(_no_enum)),
    Mutant("tools left out", "C07", in_body(lambda body: body.pop("tools", None))),
    Mutant("the last message left out", "C08", in_body(lambda body: elements(body).pop())),
    Mutant("user messages merged", "C08", in_body(_merge_users)),
    Mutant("parallel results in reverse", "C09", in_body(_results_reversed)),
    Mutant("only the first of parallel results", "C09", in_body(_only_first_result)),
    Mutant("the system prompt as the user's words", "C10", in_body(_system_as_user)),
    Mutant("the system prompt left out", "C10", in_body(lambda body: body.pop("system", None))),
    Mutant("later system messages hoisted", "C10", in_request(_hoist_all)),
    Mutant("images left out in silence", "C11", in_body(lambda body: _without(body, "image"))),
    Mutant("documents left out in silence", "C11", in_body(lambda body: _without(body, "document"))),
    Mutant("a ledger written twice", "C12", in_request(
        lambda request, messages, **_: attrs.evolve(request, losses=(*request.losses, *_again(messages))))),
    Mutant("temperature 0 taken for none", "C18", in_body(_zero_is_nothing)),
    Mutant("dropped options without a word", "C18", in_request(
        lambda request, **_: attrs.evolve(request, losses=()))),
    Mutant("stop sequences ignored", "C18", in_body(lambda body: body.pop("stop_sequences", None))),
    Mutant("provider_options overruled", "C20", in_body(_own_names_win)),
    Mutant("replay state sent back whoever said it", "C14", in_request(_whoever_said_it)),
    Mutant("signatures of thinking not sent back", "C16", in_body(_no_signatures)),
    Mutant("encrypted thinking not sent back", "C16", in_body(lambda body: _without(body, "redacted_thinking"))),
    Mutant("a path of another API", "C44", in_request(lambda request, **_: attrs.evolve(request, path="/v1/complete"))),
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
    Mutant("signed text said to be taken", "C11", in_capabilities(signed_blocks=("text",))),
    Mutant("signed calls said to be taken", "C11", in_capabilities(signed_blocks=("tool_use",))),
    Mutant("longest context of another model", "C45", in_capabilities(max_context_tokens=1)),
    Mutant("tools undeclared, and answered all the same", "C51", in_capabilities(
        supports_tools=False, supports_parallel_tool_calls=False, supports_streaming_tool_calls=False,
        supports_tool_choice=False)),
    _Process("fields in the order of a set", "C58", {}, made=_Unsteady),
    _Process("a hash of the text in the body", "C58", {}, made=_Hashed),
)  # fmt: skip
