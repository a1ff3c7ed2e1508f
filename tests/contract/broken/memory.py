"""Adapters that remember: buffers shared by streams, caches keyed too coarsely, values of an earlier user or error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from interlingua.types import (
    Message,
    MessageComplete,
    StreamEvent,
    TextDelta,
    ToolUseInputDelta,
    UsageUpdate,
)
from tests.contract.broken.machine import Mutant, in_events, in_message, in_request

Hooks = dict[str, Callable[..., Any]]


def changed_body(request: Any, change: Callable[[dict[str, Any]], object]) -> Any:
    """Return the request with its parsed body changed."""
    body = json.loads(request.body)
    change(body)
    return attrs.evolve(request, body=json.dumps(body, separators=(",", ":")).encode())


def kept_by(key: Callable[..., Any], take: str, hook: str = "to_wire") -> Hooks:
    """Keep a member of the body by a key, and use it again for equal keys."""
    kept: dict[Any, Any] = {}

    def broken(inner: Any, **asked: Any) -> Any:
        request = inner()
        body = json.loads(request.body)
        if take in body:
            body[take] = kept.setdefault(key(request=request, body=body, **asked), body[take])
        return attrs.evolve(request, body=json.dumps(body, separators=(",", ":")).encode())

    return {hook: broken}


def first_result(hook: str, key: Callable[..., Any]) -> Hooks:
    """Keep the whole result of a hook by a key."""
    kept: dict[Any, Any] = {}

    def broken(inner: Any, **asked: Any) -> Any:
        at = key(**asked)
        if at not in kept:
            kept[at] = inner()
        return kept[at]

    return {hook: broken}


# -- buffers of streams ----------------------------------------------------------------------------------------------


def _joined_pieces() -> Hooks:
    """Begin the arguments of a call with what a stream that was left had under the same index."""
    kept: dict[int, str] = {}

    def broken(inner: Any, **_: Any) -> Any:
        async def stream() -> Any:
            begun: set[int] = set()
            async for event in inner():
                if isinstance(event, ToolUseInputDelta):
                    before = kept.get(event.index, "")
                    kept[event.index] = before + event.partial_json
                    if event.index not in begun:
                        begun.add(event.index)
                        yield attrs.evolve(event, partial_json=before + event.partial_json)
                        continue
                if isinstance(event, MessageComplete):
                    kept.clear()
                yield event

        return stream()

    return {"stream_response": broken}


def _with_flag() -> Hooks:
    """Skip the first text of a stream that begins while another counts as open."""
    state = {"open": False}

    def broken(inner: Any, **_: Any) -> Any:
        async def stream() -> Any:
            late, state["open"] = state["open"], True
            async for event in inner():
                if late and isinstance(event, TextDelta):
                    late = False
                    continue
                yield event
            state["open"] = False  # not in a `finally`

        return stream()

    return {"stream_response": broken}


def _last_usage() -> Hooks:
    """Complete an answer without counts by those of the answer before it."""
    last: dict[str, Any] = {}

    def change(message: Message) -> Message:
        usage = message.metadata.usage
        if usage is None or usage.input_tokens is None:
            usage = last.get("usage")
        last["usage"] = usage
        return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=usage))

    return in_message(change)


def _usage_maximum() -> Hooks:
    """Report the largest input of all streams, in the belief that counts only grow within one."""
    most = {"input": 0}

    def change(event: StreamEvent) -> Iterator[StreamEvent]:
        if isinstance(event, UsageUpdate) and event.usage.input_tokens is not None:
            most["input"] = max(most["input"], event.usage.input_tokens)
            event = attrs.evolve(event, usage=attrs.evolve(event.usage, input_tokens=most["input"]))
        yield event

    return in_events(change)


def _numbered_calls() -> Hooks:
    """Number the calls of the process, not of the answer, in the service's stead."""
    made = {"calls": 0}

    def change(message: Message) -> Message:
        content = []
        for block in message.content:
            if block.type == "tool_use":
                made["calls"] += 1
                content.append(attrs.evolve(block, provider_id=f"call_{made['calls']}"))
            else:
                content.append(block)
        return attrs.evolve(message, content=tuple(content))

    return in_message(change)


def _citations_kept() -> Hooks:
    """Put the citations of every answer so far on the last text."""
    kept: list[Any] = []

    def change(message: Message) -> Message:
        content = list(message.content)
        for at, block in enumerate(content):
            if block.type == "text" and block.citations:
                kept.extend(block.citations)
                content[at] = attrs.evolve(block, citations=tuple(kept))
        return attrs.evolve(message, content=tuple(content))

    return in_message(change)


def _response_chained() -> Hooks:
    """Continue the answer that was read last, whichever conversation asks."""
    last = {"id": ""}

    def read(inner: Any, response: Any, **_: Any) -> Any:
        message = inner()
        last["id"] = str(json.loads(response.body).get("id") or "")
        return message

    def write(inner: Any, messages: Any, **_: Any) -> Any:
        request = inner()
        answered = any(message.role == "assistant" for message in messages)
        if not answered or not last["id"]:
            return request
        return changed_body(request, lambda body: body.update(previous_response_id=last["id"]))

    return {"from_wire_response": read, "to_wire": write}


def _one_framer(inner: Any, **_: Any) -> Any:
    """Use one framer, with its buffer, for every connection."""
    made = inner()
    if not _framers:
        _framers.append(made.framing())
    return attrs.evolve(made, framing=lambda: _framers[0])


_framers: list[Any] = []


# -- errors, users and settings of before ----------------------------------------------------------------------------


def _remembered_error(*fields: str, lasting: bool = False) -> Hooks:
    """Fill what an error lacks from the error before it."""
    last: dict[str, Any] = {}

    def broken(inner: Any, **_: Any) -> Any:
        error = inner()
        for field in fields:
            if getattr(error, field, None):
                last[field] = getattr(error, field)
            elif field in last:
                setattr(error, field, last[field] if lasting else last.pop(field))
        return error

    return {"from_wire_error": broken}


def _after_an_error() -> Hooks:
    """Ask for no stream any more once the service was overloaded."""
    state = {"failed": False}

    def failed(inner: Any, **_: Any) -> Any:
        error = inner()
        state["failed"] = state["failed"] or (error.status or 0) >= 500
        return error

    def write(inner: Any, **_: Any) -> Any:
        request = inner()
        return attrs.evolve(request, headers={**request.headers, "x-fallback": "1"}) if state["failed"] else request

    return {"from_wire_error": failed, "to_wire": write}


def _stop_words_gathered(request: Any, gathered: list[str] = [], **_: Any) -> Any:  # noqa: B006  the defect
    body = json.loads(request.body)
    options = body.get("options", {})
    if "stop" in options:
        gathered.extend(word for word in options["stop"] if word not in gathered)
    if gathered:
        body.setdefault("options", {})["stop"] = list(gathered)
    return attrs.evolve(request, body=json.dumps(body, separators=(",", ":")).encode())


_headers: dict[str, str] = {}


def _one_dict_of_headers(request: Any, **_: Any) -> Any:
    """Fill one dict for all requests, which those written before share."""
    _headers.update(request.headers)
    _headers["x-request-bytes"] = str(len(request.body))
    return attrs.evolve(request, headers=_headers)


def _betas() -> Hooks:
    """Leave a feature switched on for later requests that do not need it."""
    wanted: list[str] = []

    def broken(inner: Any, options: Any, **_: Any) -> Any:
        request = inner()
        if options.response_schema is not None and "schemas" not in wanted:
            wanted.append("schemas")
        return attrs.evolve(request, headers={**request.headers, "x-features": ",".join(wanted)})

    return {"to_wire": broken}


def _first_user(request: Any, options: Any, **_: Any) -> Any:
    return changed_body(request, lambda body: body.update(user=_users.setdefault(options.model, options.user_id)))


_users: dict[str, Any] = {}


def _provider_order() -> Hooks:
    """Stay with the sorting that the first request with a temperature asked for."""
    state: dict[str, Any] = {}

    def change(request: Any, options: Any, **_: Any) -> Any:
        if options.temperature is not None:
            state["provider"] = {"sort": "throughput"}
        return changed_body(request, lambda body: body.update(state))

    return in_request(change)


def _tools_of_before() -> Hooks:
    """Send the last tools along while a conversation has calls and no tools are given."""
    last: dict[str, Any] = {}

    def change(request: Any, **_: Any) -> Any:
        def keep(body: dict[str, Any]) -> None:
            if body.get("tools"):
                last["tools"] = body["tools"]
            elif last:
                body["tools"] = last["tools"]

        return changed_body(request, keep)

    return in_request(change)


MEMORY = (
    Mutant("arguments begin with those of a stream that was cut", "C91", _joined_pieces()),
    Mutant("a flag that a closed stream leaves behind", "C91", _with_flag()),
    Mutant("chat: counts of the answer before", "C91", _last_usage(), "openai", "chat"),
    Mutant("mistral: the largest count of all streams", "C38", _usage_maximum(), "mistral"),
    Mutant("ollama: calls numbered through all answers", "C91", _numbered_calls(), "ollama"),
    Mutant("cohere: citations of every answer so far", "C91", _citations_kept(), "cohere"),
    Mutant("responses: continues whichever answer was read last", "C91", _response_chained(), "openai", "responses"),
    Mutant("bedrock: one buffer for all streams", "C91", {"connection": _one_framer}, "bedrock"),
    Mutant("the delay of the error before", "C91", _remembered_error("retry_after")),
    Mutant("chat: the request id of the error before", "C91", _remembered_error("request_id", lasting=True),
           "openai", "chat"),
    Mutant("openrouter: the code of the error before", "C91", _remembered_error("code", lasting=True), "openrouter"),
    Mutant("google: a header since the service was overloaded", "C91", _after_an_error(), "google", "generate"),
    Mutant("ollama: stop words of all requests", "C91", in_request(_stop_words_gathered), "ollama"),
    Mutant("one dict of headers for all requests", "C91", in_request(_one_dict_of_headers)),
    Mutant("a feature that stays switched on", "C91", _betas()),
    Mutant("chat: the first user of a model", "C55", in_request(_first_user), "openai", "chat"),
    Mutant("openrouter: a sorting of an earlier request", "C91", _provider_order(), "openrouter"),
    Mutant("mistral: tools of an earlier request", "C91", _tools_of_before(), "mistral"),
    Mutant("a system prompt kept by its length", "C91",
           kept_by(lambda body, **_: len(json.dumps(body["system"])), "system")),
    Mutant("chat: tools kept by their names", "C91", kept_by(
        lambda body, **_: tuple(tool["function"]["name"] for tool in body["tools"]), "tools"), "openai", "chat"),
    Mutant("responses: a schema kept by its name", "C91", kept_by(
        lambda options, **_: (options.response_name, options.model), "text"), "openai", "responses"),
    Mutant("google: contents kept by their size", "C91", kept_by(
        lambda body, **_: len(json.dumps(body["contents"])), "contents"), "google", "generate"),
    Mutant("cohere: an estimate kept by the number of messages", "C91", first_result(
        "estimate_input_tokens", lambda messages, options, **_: (len(messages), options.model)), "cohere"),
    Mutant("a count of another request of the model", "C91", first_result(
        "auxiliary_request", lambda kind, arguments: (
            kind, json.loads(arguments["request"].body)["model"] if "request" in arguments else str(arguments)))),
    Mutant("batches of as many rows are one", "C91", first_result(
        "auxiliary_request", lambda kind, arguments: (
            kind, len(arguments["requests"]) if "requests" in arguments else str(arguments)))),
    Mutant("the connection of the first user", "C91", first_result(
        "connection", lambda settings: (settings.base_url, settings.api))),
    Mutant("mistral: the key of whoever came first", "C91", first_result(
        "connection", lambda settings: bool(settings.api_key)), "mistral"),
    Mutant("bedrock: the region of the first environment", "C91", first_result(
        "connection", lambda settings: (settings.api_key, settings.base_url, tuple(settings.environ))), "bedrock"),
    Mutant("openrouter: capabilities kept by the API", "C58", first_result(
        "capabilities", lambda options, **_: options.api if options else None), "openrouter"),
)  # fmt: skip
