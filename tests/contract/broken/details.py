"""Adapters that were broken without reading the rules: mistakes in places that few people read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from interlingua.errors import AuthenticationError, InterlinguaError, RateLimitError, ServerError
from interlingua.plugins import thaw
from interlingua.types import StopReason
from tests.contract.broken.machine import Mutant, in_body, in_data, in_message


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a JSON value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from objects(item)


def _each(change: Callable[[dict[str, Any]], object]) -> Callable[[Any], None]:
    def changed(value: Any) -> None:
        for one in list(objects(value)):
            change(one)

    return changed


def _renamed(old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def change(one: dict[str, Any]) -> None:
        if old in one:
            one[new] = one.pop(old)

    return change


def _exchanged(first: str, second: str) -> Callable[[dict[str, Any]], None]:
    def change(one: dict[str, Any]) -> None:
        if first in one and second in one:
            one[first], one[second] = one[second], one[first]

    return change


def _set(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    """Change a member wherever it is."""

    def changed(one: dict[str, Any]) -> None:
        if name in one:
            one[name] = change(one[name])

    return changed


def _dropped(name: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> Callable[[dict[str, Any]], None]:
    return lambda one: one.pop(name, None) if where(one) else None


def _stop(word: str, reason: StopReason) -> dict[str, Any]:
    def change(message: Any) -> Any:
        if message.metadata.stop_reason_raw != word:
            return message
        return attrs.evolve(message, metadata=attrs.evolve(message.metadata, stop_reason=reason))

    return in_message(change)


def _class(words: str, kind: type[Exception]) -> dict[str, Any]:
    def from_wire_error(inner: Any, response: Any, **_: Any) -> Any:
        error = inner()
        if words.encode() not in response.body:
            return error
        return kind(str(error), status=error.status, body=error.body)  # type: ignore[call-arg]

    return {"from_wire_error": from_wire_error}


def _streamed_class(words: str, kind: type[Exception]) -> dict[str, Any]:
    """Take an exception in a stream for another."""

    def stream_response(inner: Any, response_stream: Any, **_: Any) -> Any:
        async def source() -> Any:
            async for chunk in response_stream:
                if words in chunk.event:
                    raise kind("failed")
                yield chunk

        return inner(response_stream=source())

    return {"stream_response": stream_response}


def _reverse_pictures(one: dict[str, Any]) -> None:
    if one.get("type") == "tool_result" and isinstance(one.get("content"), list):
        pictures = [part for part in one["content"] if part.get("type") == "image"]
        turned = iter(reversed(pictures))
        one["content"] = [next(turned) if part.get("type") == "image" else part for part in one["content"]]


def _second_choice(one: dict[str, Any]) -> None:
    if one.get("tool_choice") == "required" and len(one.get("tools", ())) == 1:
        one["tool_choice"] = "auto"


def _names_turned(body: dict[str, Any]) -> None:
    for content in body["contents"]:
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        for answer, name in zip(answers, [one["name"] for one in reversed(answers)], strict=True):
            answer["name"] = name


def _marker_before(body: dict[str, Any]) -> None:
    for message in body["messages"]:
        for at, part in enumerate(message["content"]):
            if "cachePoint" in part and at:
                message["content"][at - 1 : at + 1] = [part, message["content"][at - 1]]
                return


def _served_usage(inner: Any, **_: Any) -> Any:
    response = inner()
    body = json.loads(response.body)
    if "usage" in body:
        body["usage"].pop("cache_read_input_tokens", None)
    return attrs.evolve(response, body=json.dumps(body).encode())


def _without_null(message: Any) -> Any:
    content = [
        attrs.evolve(block, data={name: item for name, item in block.data.items() if item is not None})
        if block.type == "opaque"
        else block
        for block in message.content
    ]
    return attrs.evolve(message, content=tuple(content))


def _cited(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def changed(message: Any) -> Any:
        content = [
            attrs.evolve(block, citations=tuple(change(thaw(one)) for one in block.citations))
            if block.type == "text"
            else block
            for block in message.content
        ]
        return attrs.evolve(message, content=tuple(content))

    return changed


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_empty(item) for name, item in value.items() if item != []}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def _with_line_ends(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_line_ends(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_line_ends(item) for item in value]
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


def _with_loud_types(one: dict[str, Any]) -> None:
    if one.get("type") == "additional_tools":
        for schema in objects([tool["parameters"] for tool in one["tools"]]):
            _set("type", lambda word: word.upper() if isinstance(word, str) else word)(schema)


def _texts(change: Callable[[str], str]) -> Callable[[Any], Any]:
    def changed(message: Any) -> Any:
        content = [
            attrs.evolve(block, text=change(block.text)) if block.type == "text" else block for block in message.content
        ]
        return attrs.evolve(message, content=tuple(content))

    return changed


_trimmed = _texts(str.strip)
_visible = _texts(lambda text: text.replace("\u200b", "").replace("\ufeff", ""))


def _without_new_types(message: Any) -> Any:
    """Forget the type of parts of a summary that are no text, in what is kept to send the answer back."""
    raw = json.loads(json.dumps(message.metadata.provider_raw, default=dict))
    for one in objects(raw):
        for part in one.get("summary") or ():
            if part.get("type") != "summary_text":
                part.pop("type", None)
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, provider_raw=raw))


def _without_what_was_kept(inner: Any, **_: Any) -> Any:
    """Keep the text of an answer that failed, and nothing to continue it with."""
    try:
        return inner()
    except InterlinguaError as error:
        if error.partial is not None:
            metadata = attrs.evolve(error.partial.metadata, provider_raw=None, usage=None)
            error.partial = attrs.evolve(error.partial, metadata=metadata)
        raise


class _Repeating:
    """A writer that repeats the reasoning in the event that ends a failed stream."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.content_type, self.losses = inner.content_type, inner.losses

    def feed(self, events: Any) -> bytes:
        return self._changed(self._inner.feed(events))

    def end(self) -> bytes:
        return self._changed(self._inner.end())

    def _changed(self, data: bytes) -> bytes:
        before, event, rest = data.partition(b"event: response.failed\ndata: ")
        if not event:
            return data
        body, end, after = rest.partition(b"\n\n")
        failed = json.loads(body)
        items = failed["response"]["output"]
        failed["response"]["output"] = [item for item in items if item["type"] == "reasoning"] + items
        return before + event + json.dumps(failed).encode() + end + after


def _without_wait(inner: Any, response: Any, **_: Any) -> Any:
    error = inner()
    if len(response.body) > len("{}"):
        error.retry_after = None
    return error


DETAILS = (
    Mutant("an hour of cache on tools as five minutes", "C90", in_body(
        lambda body: [one.get("cache_control", {}).pop("ttl", None) for one in body.get("tools", ())])),
    Mutant("a document's title in its context", "C90", in_body(_each(
        lambda one: _renamed("title", "context")(one) if one.get("type") == "document" else None))),
    Mutant("pictures of a result in reverse", "C94", in_body(_each(_reverse_pictures))),
    Mutant("citations end one letter later", "C95", in_data(_each(_set("end_char_index", lambda at: at + 1)))),
    Mutant("writes for an hour counted as for minutes", "C80", in_data(_each(
        _exchanged("ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens")))),
    Mutant("a full context taken for an end", "C81", _stop("model_context_window_exceeded", StopReason.END_TURN)),
    Mutant("overloaded taken for too many requests", "C104", _class("overloaded_error", RateLimitError)),
    Mutant("stop words of more than ten letters cut", "C79", in_body(
        _set("stop_sequences", lambda words: [word[:10] for word in words]))),
    Mutant("chat: every picture in low detail", "C90", in_body(_each(
        lambda one: one["image_url"].update(detail="low") if isinstance(one.get("image_url"), dict) else None)),
        "openai", "chat"),
    Mutant("chat: every sound called wav", "C90", in_body(_each(_set(
        "input_audio", lambda sound: {**sound, "format": "wav"}))), "openai", "chat"),
    Mutant("chat: the limit under its old name", "C79", in_body(
        _renamed("max_completion_tokens", "max_tokens")), "openai", "chat"),
    Mutant("chat: a call is not forced with one tool", "C79", in_body(_second_choice), "openai", "chat"),
    Mutant("chat: reasoning counted as none", "C80", in_data(_each(
        _set("reasoning_tokens", lambda _: 0))), "openai", "chat"),
    Mutant("responses: encrypted reasoning not asked for", "C94", in_body(_dropped("include")), "openai", "responses"),
    Mutant("responses: answers stored", "C94", in_body(_set("store", lambda _: True)), "openai", "responses"),
    Mutant("responses: a filter taken for the length", "C81", _stop("content_filter", StopReason.MAX_TOKENS),
           "openai", "responses"),
    Mutant("responses: annotations begin one letter later", "C95", in_data(_each(
        _set("start_index", lambda at: at + 1))), "openai", "responses"),
    Mutant("google: half of the budget", "C79", in_body(_each(
        _set("thinkingBudget", lambda budget: budget // 2))), "google", "generate"),
    Mutant("google: results under each other's name", "C94", in_body(_names_turned), "google", "generate"),
    Mutant("google: a blocked answer taken for an end", "C81", _stop("SAFETY", StopReason.END_TURN),
           "google", "generate"),
    Mutant("google: a seed of zero left out", "C79", in_body(_each(
        _dropped("seed", lambda one: one["seed"] == 0 if "seed" in one else False))), "google", "generate"),
    Mutant("ollama: the limit as the size of the context", "C79", in_body(_each(
        _renamed("num_predict", "num_ctx"))), "ollama"),
    Mutant("ollama: counts exchanged", "C80", in_data(_exchanged("eval_count", "prompt_eval_count")), "ollama"),
    Mutant("cohere: p and k exchanged", "C94", in_body(_exchanged("p", "k")), "cohere"),
    Mutant("cohere: ends of citations left out", "C95", in_data(_each(_dropped("end"))), "cohere"),
    Mutant("mistral: a full context taken for an end", "C81", _stop("model_length", StopReason.END_TURN), "mistral"),
    Mutant("openrouter: details of reasoning in reverse", "C94", in_body(_each(
        _set("reasoning_details", lambda rows: rows[::-1]))), "openrouter"),
    Mutant("openrouter: the charge read twice", "C95", in_data(_each(
        _set("cost", lambda cost: cost * 2 if isinstance(cost, float) else cost))), "openrouter"),
    Mutant("bedrock: the marker before its block", "C90", in_body(_marker_before), "bedrock"),
    Mutant("bedrock: failed results sent as good ones", "C90", in_body(_each(
        _dropped("status", lambda one: "toolUseId" in one))), "bedrock"),
    Mutant("bedrock: writes of the cache counted as reads", "C80", in_data(_each(
        _exchanged("cacheWriteInputTokens", "cacheReadInputTokens"))), "bedrock"),
    Mutant("bedrock: throttling taken for a fault", "C104", _class("hrottl", ServerError), "bedrock"),
    Mutant("bedrock: a throttled stream taken for a fault", "C104", _streamed_class("hrottl", ServerError), "bedrock"),
    Mutant("chat: an empty account taken for a busy service", "C104", _class("insufficient_quota", RateLimitError),
           "openai", "chat"),
    Mutant("google: a disabled account taken for a wrong key", "C104", _class(
        "BILLING_DISABLED", AuthenticationError), "google", "generate"),
    Mutant("tools after the sixteenth left out", "C94", in_body(_set("tools", lambda tools: tools[:16]))),
    Mutant("calls after the eighth left out", "C99", in_message(lambda message: attrs.evolve(
        message, content=message.content[:9]))),
    Mutant("descriptions cut at a thousand letters", "C94", in_body(_each(
        _set("description", lambda words: words[:1000] if isinstance(words, str) else words)))),
    Mutant("served: cached tokens not reported", "C99", {"to_wire_response": _served_usage}),
    Mutant("the first of two system prompts", "C10", in_body(_set("system", lambda blocks: blocks[:1]))),
    Mutant("google: temperatures above one as one", "C18", in_body(_each(
        _set("temperature", lambda one: min(one, 1.0)))), "google", "generate"),
    Mutant("chat: limits above eight thousand cut", "C18", in_body(
        _set("max_completion_tokens", lambda most: min(most, 8192))), "openai", "chat"),
    Mutant("google: stop words trimmed", "C18", in_body(_each(
        _set("stopSequences", lambda words: [word.strip() for word in words]))), "google", "generate"),
    Mutant("cohere: long descriptions cut", "C07", in_body(_each(
        _set("description", lambda words: words[:1000] if isinstance(words, str) else words))), "cohere"),
    Mutant("new content without members that are null", "C27", in_message(_without_null)),
    Mutant("mistral: answers trimmed", "C101", in_message(_trimmed), "mistral"),
    Mutant("cohere: invisible letters left out of answers", "C101", in_message(_visible), "cohere"),
    Mutant("openrouter: broken arguments sent as none", "C06", in_body(_each(
        _set("arguments", lambda text: "{}" if "invalid_arguments" in text else text))), "openrouter"),
    Mutant("mistral: serves no API any longer", "C98", {"served_apis": lambda inner, **_: ()}, "mistral"),
    Mutant("mistral: waits without a body only", "C95", {"from_wire_error": _without_wait}, "mistral"),
    Mutant("tools without fields that are empty", "C94", in_body(_each(
        _dropped("required", lambda one: one.get("required") == [])))),
    Mutant("tools of a history are not defined again", "C94", in_body(
        _set("tools", lambda tools: tools[:1]))),
    Mutant("responses: types of new parts forgotten", "C95", in_message(_without_new_types), "openai", "responses"),
    Mutant("chat: the usage of an answer that failed left out", "C95", {
        "from_wire_response": _without_what_was_kept}, "openai", "chat"),
    Mutant("cohere: lists that are empty left out of citations", "C27", in_message(_cited(_without_empty)), "cohere"),
    Mutant("cohere: line ends of cited words changed", "C95", in_message(_cited(_with_line_ends)), "cohere"),
    Mutant("responses: types of added tools in capitals", "C94", in_body(_each(_with_loud_types)),
           "openai", "responses"),
    Mutant("served: a stream that fails repeats its reasoning", "C99", {
        "stream_to_wire": lambda inner, **_: _Repeating(inner())}, "openai", "responses"),
)  # fmt: skip
