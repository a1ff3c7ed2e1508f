"""Adapters that get one fact wrong: an id, a neighbour, a letter, a media type, a marker's place, a price, a class."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable
from typing import Any

import attrs

from interlingua.errors import ServerError
from interlingua.types import ErrorEvent, StopReason
from tests.contract.broken.machine import Handed, Mutant, in_body, in_events, in_request, real, real_serving, subject_of

HOME = os.environ.get("HOME", "")
_elements: dict[str, bytes] = {}


def blocks(body: Any, kind: str) -> list[dict[str, Any]]:
    """Return the blocks of one type in a body of the Messages API, in order."""
    listed = [element["content"] for element in body["messages"] if isinstance(element["content"], list)]
    return [block for content in listed for block in content if block.get("type") == kind]


class _ReadsHome(Handed):
    def __init__(self) -> None:
        super().__init__(real("anthropic"), real_serving("anthropic"), to_wire=_with_home)

    def __reduce__(self) -> Any:
        return _ReadsHome, ()


def _with_home(inner: Any, **_: Any) -> Any:
    request = inner()
    return attrs.evolve(request, headers={**request.headers, "x-home": HOME})


@attrs.frozen
class _Imported(Mutant):
    def subject(self, seed: int = 0, examples: int = 40) -> Any:
        return subject_of(self.key, _ReadsHome(), "", seed, examples)


def _ids_of_neighbours(body: Any) -> None:
    results = blocks(body, "tool_result")
    for one, other in zip(results[::2], results[1::2], strict=False):
        one["tool_use_id"], other["tool_use_id"] = other["tool_use_id"], one["tool_use_id"]


def _contents_of_neighbours(body: Any) -> None:
    calls = blocks(body, "tool_use")
    for one, other in zip(calls[::2], calls[1::2], strict=False):
        one["input"], other["input"] = other["input"], one["input"]


def _mistral_ids(body: Any) -> None:
    results = [element for element in body["messages"] if element["role"] == "tool"]
    for one, other in zip(results[::2], results[1::2], strict=False):
        one["tool_call_id"], other["tool_call_id"] = other["tool_call_id"], one["tool_call_id"]


def _by_id(request: Any, messages: Any, **_: Any) -> Any:
    """Remember an element by the id of its message."""
    body = json.loads(request.body)
    if len(body["messages"]) == len(messages):
        for at, message in enumerate(messages):
            kept = _elements.setdefault(message.id, json.dumps(body["messages"][at]).encode())
            body["messages"][at] = json.loads(kept)
    return attrs.evolve(request, body=json.dumps(body).encode())


def _in_texts(change: Callable[[str], str]) -> dict[str, Any]:
    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(item) for name, item in value.items()}
        if isinstance(value, list):
            return [changed(item) for item in value]
        return change(value) if isinstance(value, str) else value

    def to_wire(inner: Any, **_: Any) -> Any:
        request = inner()
        return attrs.evolve(request, body=json.dumps(changed(json.loads(request.body))).encode())

    return {"to_wire": to_wire}


def _pictures_reversed(body: Any) -> None:
    pictures = blocks(body, "image")
    sources = [picture["source"] for picture in pictures]
    for picture, source in zip(pictures, reversed(sources), strict=True):
        picture["source"] = source


def _all_png(body: Any) -> None:
    for picture in blocks(body, "image"):
        if "media_type" in picture["source"]:
            picture["source"]["media_type"] = "image/png"


def _media_first(body: Any) -> None:
    for element in body["messages"]:
        if isinstance(element["content"], list) and element["role"] == "user":
            element["content"].sort(key=lambda block: block.get("type") != "image")


def _untitled(body: Any) -> None:
    for document in blocks(body, "document"):
        document.pop("title", None)


def _first_title(body: Any) -> None:
    documents = blocks(body, "document")
    for document in documents:
        if "title" in document:
            document["title"] = documents[0].get("title", "")


def _marker_later(body: Any) -> None:
    for element in body["messages"]:
        if isinstance(element["content"], list):
            for one, other in zip(element["content"], element["content"][1:], strict=False):
                if "cache_control" in one:
                    other["cache_control"] = one.pop("cache_control")
                    return


def _five_minutes(body: Any) -> None:
    for _, holder in _holders(body):
        holder["cache_control"].pop("ttl", None)


def _holders(value: Any) -> list[tuple[str, Any]]:
    found = []
    if isinstance(value, dict):
        found += [("", value)] if "cache_control" in value else []
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        found += _holders(item)
    return found


def _priced(change: Callable[[Any], Any]) -> dict[str, Any]:
    def models(inner: Any) -> Any:
        return [attrs.evolve(info, prices=tuple(change(price) for price in info.prices)) for info in inner()]

    return {"models": models}


def _without_id(inner: Any, **_: Any) -> Any:
    error = inner()
    error.request_id = "req_of_another"
    return error


def _any_failure(inner: Any, **_: Any) -> Any:
    async def broken() -> Any:
        async for event in inner():
            yield ErrorEvent(error=ServerError("failed")) if event.type == "error" else event

    return broken()


def _silent_at_end(inner: Any, response_stream: Any, **_: Any) -> Any:
    """Stop reading as soon as the text has ended."""

    async def source() -> Any:
        ended = False
        async for chunk in response_stream:
            if chunk.event == "error" and ended:
                yield chunk._replace(event="ping", data=b'{"type":"ping"}')
                continue
            ended = ended or chunk.event == "message_delta"
            yield chunk

    return inner(response_stream=source())


def _usage(change: Callable[[Any], Any]) -> dict[str, Any]:
    """Change the counts of every whole answer."""

    def from_wire_response(inner: Any, **_: Any) -> Any:
        message = inner()
        usage = message.metadata.usage and change(message.metadata.usage)
        return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=usage))

    return {"from_wire_response": from_wire_response}


def _streamed_usage(change: Callable[[Any], Any]) -> dict[str, Any]:
    def events(event: Any) -> Any:
        yield attrs.evolve(event, usage=change(event.usage)) if event.type == "usage_update" else event

    return in_events(events)


def _rename(old: str, new: str) -> Callable[[Any], None]:
    def change(body: Any) -> None:
        if old in body:
            body[new] = body.pop(old)

    return change


def _inverted(body: Any) -> None:
    if "disable_parallel_tool_use" in body.get("tool_choice", ()):
        body["tool_choice"]["disable_parallel_tool_use"] ^= True


def _one_step_off(body: Any) -> None:
    steps = {"low": "medium", "medium": "high", "high": "medium"}
    if effort := body.get("output_config", {}).get("effort"):
        body["output_config"]["effort"] = steps.get(effort, effort)


def _first_stop_only(body: Any) -> None:
    if "stop" in body:
        body["stop"] = body["stop"][:1]


def _reason(old: StopReason, new: StopReason) -> dict[str, Any]:
    def from_wire_response(inner: Any, **_: Any) -> Any:
        message = inner()
        if message.metadata.stop_reason is not old:
            return message
        return attrs.evolve(message, metadata=attrs.evolve(message.metadata, stop_reason=new))

    return {"from_wire_response": from_wire_response}


FACTS = (
    _Imported("the environment of the moment of import", "C68", {}),
    Mutant("results under the ids of their neighbours", "C69", in_body(_ids_of_neighbours)),
    Mutant("Mistral's results under the ids of their neighbours", "C69", in_body(_mistral_ids), key="mistral"),
    Mutant("calls with the arguments of their neighbours", "C69", in_body(_contents_of_neighbours)),
    Mutant("pieces remembered by the id of a message", "C70", in_request(_by_id)),
    Mutant("line ends changed", "C71", _in_texts(lambda text: text.replace("\r\n", "\n"))),
    Mutant("control characters left out", "C71", _in_texts(lambda text: text.replace("\x1b", ""))),
    Mutant("letters composed", "C71", _in_texts(lambda text: unicodedata.normalize("NFC", text))),
    Mutant("directions of text left out", "C71", _in_texts(lambda text: text.replace("\u202e", ""))),
    Mutant("pictures in reverse", "C72", in_body(_pictures_reversed)),
    Mutant("every picture a PNG", "C72", in_body(_all_png)),
    Mutant("pictures before the texts", "C72", in_body(_media_first)),
    Mutant("documents without titles", "C73", in_body(_untitled)),
    Mutant("every document with the title of the first", "C73", in_body(_first_title)),
    Mutant("a cache marker one block later", "C74", in_body(_marker_later)),
    Mutant("an hour of cache as five minutes", "C74", in_body(_five_minutes)),
    Mutant("a cached price above the price of input", "C75", _priced(
        lambda price: attrs.evolve(price, cached_read_per_mtok_usd=(price.input_per_mtok_usd or 0) * 2 + 1))),
    Mutant("prices of input and output exchanged", "C75", _priced(lambda price: attrs.evolve(
        price, input_per_mtok_usd=price.output_per_mtok_usd, output_per_mtok_usd=price.input_per_mtok_usd))),
    Mutant("a base URL in the environment ignored", "C76", {
        "connection": lambda inner, settings: inner(settings=attrs.evolve(
            settings, environ={name: value for name, value in settings.environ.items() if "URL" not in name}))}),
    Mutant("the request id of another request", "C77", {"from_wire_error": _without_id}),
    Mutant("every error in a stream the server's", "C78", {"stream_response": _any_failure}),
    Mutant("a limit under another name", "C79", in_body(_rename("max_output_tokens", "max_tokens")), key="openai",
           api="responses"),
    Mutant("parallel calls forbidden when allowed", "C79", in_body(_inverted)),
    Mutant("an effort one step off", "C79", in_body(_one_step_off)),
    Mutant("only the first stop word", "C79", in_body(_first_stop_only), key="mistral"),
    Mutant("reads and writes of the cache exchanged", "C80", _usage(lambda usage: attrs.evolve(
        usage, cached_input_tokens=usage.cache_creation_input_tokens,
        cache_creation_input_tokens=usage.cached_input_tokens))),
    Mutant("writes for an hour not counted", "C80", _usage(
        lambda usage: attrs.evolve(usage, cache_creation_1h_input_tokens=None))),
    Mutant("the tier of an answer left out", "C80", _usage(lambda usage: attrs.evolve(usage, service_tier=None))),
    Mutant("searches not counted", "C80", _streamed_usage(lambda usage: attrs.evolve(usage, extra_units=None))),
    Mutant("reasoning of a stream counted twice", "C80", _streamed_usage(lambda usage: attrs.evolve(
        usage, output_tokens=(usage.output_tokens or 0) + (usage.reasoning_tokens or 0))), key="openai", api="chat"),
    Mutant("a paused turn taken for a finished one", "C81", _reason(StopReason.PAUSE_TURN, StopReason.END_TURN)),
    Mutant("a guardrail taken for an end", "C81", _reason(StopReason.REFUSAL, StopReason.OTHER), key="bedrock"),
    Mutant("a recitation taken for an end", "C81", _reason(StopReason.REFUSAL, StopReason.END_TURN),
           key="google", api="generate"),
    Mutant("errors behind the text not read", "C78", {"stream_response": _silent_at_end}),
)  # fmt: skip
