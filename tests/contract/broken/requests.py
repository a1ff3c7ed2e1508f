"""Adapters that write wrong requests.

Nothing here is shipped. The shelf comes in.
"""

from __future__ import annotations

import json
import os
import random
import time
from itertools import count
from typing import Any

import attrs

from tests.contract.broken.machine import Mutant, in_body, in_request

_numbers = count()
_seen: list[str] = []


def _elements(body: dict[str, Any]) -> list[Any]:
    found: list[Any] = body["messages"]
    return found


def _blocks(body: dict[str, Any], kind: str) -> list[Any]:
    return [
        block
        for element in _elements(body)
        if isinstance(element["content"], list)
        for block in element["content"]
        if block.get("type") == kind
    ]


def _without(body: dict[str, Any], kind: str) -> None:
    for element in _elements(body):
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
    if _elements(body):
        _elements(body)[-1]["last"] = True


def _count(body: dict[str, Any]) -> None:
    body["metadata"] = {"turns": len(_elements(body))}


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
    for element in _elements(body):
        if isinstance(element["content"], list):
            results = [block for block in element["content"] if block.get("type") == "tool_result"]
            rest = [block for block in element["content"] if block.get("type") != "tool_result"]
            element["content"] = [*reversed(results), *rest]


def _only_first_result(body: dict[str, Any]) -> None:
    for element in _elements(body):
        if isinstance(element["content"], list):
            results = [block for block in element["content"] if block.get("type") == "tool_result"]
            element["content"] = [block for block in element["content"] if block not in results[1:]]


def _system_as_user(body: dict[str, Any]) -> None:
    system = body.pop("system", None)
    if system:
        _elements(body).insert(0, {"role": "user", "content": system})


def _hoist_all(request: Any, messages: Any, **_: Any) -> Any:
    body = json.loads(request.body)
    texts = [part["text"] for element in _elements(body) if element["role"] == "system" for part in element["content"]]
    body["messages"] = [element for element in _elements(body) if element["role"] != "system"]
    if texts:
        body["system"] = [*body.get("system", []), *({"type": "text", "text": text} for text in texts)]
    return attrs.evolve(request, body=json.dumps(body).encode())


def _merge_users(body: dict[str, Any]) -> None:
    texts = [part for element in _elements(body) if element["role"] == "user" for part in element["content"]]
    for element in _elements(body):
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


REQUESTS = (
    Mutant("a time in the body", "C03", in_body(lambda body: body.update(at=time.time()))),
    Mutant("a number that counts requests", "C01", in_body(lambda body: body.update(n=next(_numbers)))),
    Mutant("a random request id", "C01", in_body(lambda body: body.update(id=random.random()))),
    Mutant("an environment variable in the request", "C03", in_request(_key_in_header)),
    Mutant("a cache that forgets what it depends on", "C01", in_request(_first_history_wins)),
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
    Mutant("the last message left out", "C08", in_body(lambda body: _elements(body).pop())),
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
)  # fmt: skip


def _again(messages: Any) -> list[Any]:
    from interlingua.plugins.wire import Loss

    kinds = ("thinking", "audio", "opaque", "video")
    return [
        Loss(path="messages[0]", block_type=kind, verdict="dropped", reason="again", message_id=messages[0].id)
        for kind in kinds
        if messages
    ]
