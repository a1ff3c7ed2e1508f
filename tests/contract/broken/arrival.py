"""Adapters that depend on how an answer arrives, on an earlier attempt, or on who else is served at the same time."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from interlingua._response.framing import SseFramer
from interlingua.errors import ServerError
from interlingua.plugins import WireChunk, no_auth
from interlingua.types import TextDelta
from tests.contract.broken.machine import Mutant, in_body, in_chunks, in_request
from tests.contract.broken.memory import Hooks

# -- framings of one's own -------------------------------------------------------------------------------------------


class _Lines:
    """An event-stream reader as people write them: lines, fields, a blank line ends the event."""

    space = b"data: "
    joined = True

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> list[WireChunk]:
        *events, self.rest = (self.rest + data).replace(b"\r\n", b"\n").split(b"\n\n")
        return [chunk for event in events for chunk in self.read(event)]

    def close(self) -> list[WireChunk]:
        rest, self.rest = self.rest, b""
        return list(self.read(rest))

    def read(self, event: bytes) -> Iterator[WireChunk]:
        lines = event.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        name = next((line[6:].strip().decode() for line in lines if line.startswith(b"event:")), "")
        data = [line[len(self.space) :] for line in lines if line.startswith(self.space)]
        if data:
            yield WireChunk(name, b"\n".join(data) if self.joined else data[0])

    @staticmethod
    def write(chunk: WireChunk) -> bytes:
        name = b"event: " + chunk.event.encode() + b"\n" if chunk.event else b""
        return name + b"".join(b"data: " + line + b"\n" for line in chunk.data.split(b"\n")) + b"\n"


class _FirstDataLine(_Lines):
    joined = False


class _PerFeed(SseFramer):
    """Forgets the rest of a piece that ends within an event."""

    def feed(self, data: bytes) -> list[WireChunk]:
        return [*super().feed(data), *self.close()]


class _OnePerFeed(_Lines):
    """Returns one event of each piece at most."""

    def feed(self, data: bytes) -> list[WireChunk]:
        return super().feed(data)[:1]


class _Decoded(_Lines):
    """Decodes each piece by itself."""

    def feed(self, data: bytes) -> list[WireChunk]:
        return super().feed(data.decode("utf-8", "replace").encode())


class _CommentsToo(_Lines):
    """Takes a comment for an event whose data is empty."""

    def read(self, event: bytes) -> Iterator[WireChunk]:
        if event.startswith(b":"):
            yield WireChunk("", b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')
        else:
            yield from super().read(event)


class _SplitLines:
    """Lines of text as `str.splitlines` sees them, which splits at more than line feeds."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> list[WireChunk]:
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [WireChunk("", part.encode()) for line in lines for part in line.decode().splitlines() if part.strip()]

    def close(self) -> list[WireChunk]:
        rest, self.rest = self.rest, b""
        return self.feed(rest + b"\n") if rest.strip() else []

    @staticmethod
    def write(chunk: WireChunk) -> bytes:
        return chunk.data + b"\n"


def _framing(made: Any) -> Hooks:
    return {"connection": lambda inner, **_: attrs.evolve(inner(), framing=made)}


def _torn_frames(inner: Any, **_: Any) -> Any:
    made = inner()

    class Torn(made.framing):  # type: ignore[misc,name-defined]
        """Throws a piece away that is shorter than a frame's prelude."""

        def feed(self, data: bytes) -> Any:
            return super().feed(data) if len(data) >= 12 else []

    return attrs.evolve(made, framing=Torn)


# -- strings that look like the wire ----------------------------------------------------------------------------------


def _done_anywhere(chunk: Any) -> Iterator[Any]:
    if b"[DONE]" not in chunk.data:
        yield chunk


def _error_anywhere(chunk: Any) -> Iterator[Any]:
    if b"error" in chunk.data:
        raise ServerError("the stream reports an error", status=200)
    yield chunk


def _unescaped(chunk: Any) -> Iterator[Any]:
    yield chunk._replace(data=re.sub(rb"\\\\n", rb"\\n", chunk.data))


def _no_null_text(chunk: Any) -> Iterator[Any]:
    yield chunk._replace(data=chunk.data.replace(b"null", b'""'))


# -- order of arrival ------------------------------------------------------------------------------------------------


def _text_before_the_end_only(inner: Any, response_stream: Any, **_: Any) -> Any:
    """Overlook text in the event that has the reason too."""

    async def source() -> Any:
        async for chunk in response_stream:
            data = json.loads(chunk.data)
            ends = any(one.get("finishReason") for one in data.get("candidates", ()))
            for one in data.get("candidates", ()) if ends else ():
                one.get("content", {}).pop("parts", None)
            yield chunk._replace(data=json.dumps(data).encode())

    return inner(response_stream=source())


def _first_piece_lost(inner: Any, **_: Any) -> Any:
    """Take the first delta for the one with the role, which has no words."""

    async def stream() -> Any:
        first = True
        async for event in inner():
            if first and isinstance(event, TextDelta):
                first = False
                continue
            yield event

    return stream()


def _last_line_without_text(chunk: Any) -> Iterator[Any]:
    data = json.loads(chunk.data)
    if data.get("done") and "message" in data:
        data["message"]["content"] = ""
    yield chunk._replace(data=json.dumps(data).encode())


def _usage_alone(chunk: Any) -> Iterator[Any]:
    """Read counts only of an event that has nothing else."""
    data = json.loads(chunk.data) if chunk.data.startswith(b"{") else {}
    if data.get("choices") and "usage" in data:
        data.pop("usage")
        chunk = chunk._replace(data=json.dumps(data).encode())
    yield chunk


# -- attempts --------------------------------------------------------------------------------------------------------


def _counted_attempts() -> Hooks:
    """Say how often a conversation was written."""
    seen: dict[str, int] = {}

    def change(request: Any, **_: Any) -> Any:
        key = hashlib.sha256(request.body).hexdigest()
        seen[key] = seen.get(key, -1) + 1
        return attrs.evolve(request, headers={**request.headers, "x-retry-count": str(seen[key])})

    return in_request(change)


def _key_of_one_attempt(inner: Any, **_: Any) -> Any:
    """Read the key from an iterator, which the first attempt exhausts."""
    made = inner()
    headers = iter([made.auth])
    return attrs.evolve(made, auth=lambda request: next(headers, no_auth)(request))  # noqa: PLW0108  it advances


def _delay_taken(inner: Any, response: Any, **_: Any) -> Any:
    """Take the delay out of the headers that the caller passed."""
    error = inner()
    if isinstance(response.headers, dict):
        response.headers.pop("retry-after", None)
    return error


def _options_taken(inner: Any, options: Any, **_: Any) -> Any:
    request = inner()
    taken = options.provider_options
    if isinstance(taken, dict):
        taken.clear()
    return request


def _short_ids(body: dict[str, Any]) -> None:
    """Make ids of two digits, of which a long conversation has too many."""

    def short(name: str) -> str:
        return f"call{int(hashlib.sha256(name.encode()).hexdigest(), 16) % 100:05}"

    for message in body["messages"]:
        for made in message.get("tool_calls") or ():
            made["id"] = short(made["id"])
        if "tool_call_id" in message:
            message["tool_call_id"] = short(message["tool_call_id"])


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _flat(inner: Any, messages: Any, **_: Any) -> Any:
    """Send arguments as empty that are nested more deeply than the author thought of."""
    request = inner()
    body = json.loads(request.body)
    for message in body.get("messages", ()):
        for made in message.get("tool_calls") or ():
            if _depth(json.loads(made["function"]["arguments"] or "{}")) > 20:
                made["function"]["arguments"] = "{}"
    return attrs.evolve(request, body=json.dumps(body, separators=(",", ":")).encode())


# -- callers that are served at the same time ------------------------------------------------------------------------


class _Shared:
    """A stream writer whose open text belongs to all writers."""

    open: list[bytes] = []  # noqa: RUF012  the defect

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.content_type, self.losses = inner.content_type, inner.losses

    def feed(self, events: Any) -> bytes:
        self.open.append(self._inner.feed(events))
        if len(self.open) < 2:
            return b""
        return self.open.pop(0)

    def end(self) -> bytes:
        held = b"".join(self.open)
        self.open.clear()
        return held + self._inner.end()  # type: ignore[no-any-return]


def _first_caller(hook: str, field: str) -> Hooks:
    first: dict[str, Any] = {}

    def broken(inner: Any, context: Any, **_: Any) -> Any:
        return inner(context=attrs.evolve(context, **{field: first.setdefault(context.api, getattr(context, field))}))

    return {hook: broken}


def _tools_of_a_caller() -> Hooks:
    last: dict[str, Any] = {}

    def broken(inner: Any, **_: Any) -> Any:
        read = inner()
        last["tools"] = read.tools or last.get("tools", ())
        return attrs.evolve(read, tools=last["tools"])

    return {"from_wire_request": broken}


Rows = tuple[tuple[str, str, Callable[..., Any]], ...]

ARRIVAL = (
    Mutant("events that a piece ends in are lost", "C22", _framing(_PerFeed)),
    Mutant("google: one event of each piece", "C22", _framing(_OnePerFeed), "google", "generate"),
    Mutant("cohere: each piece decoded by itself", "C22", _framing(_Decoded), "cohere"),
    Mutant("bedrock: pieces shorter than a prelude lost", "C22", {"connection": _torn_frames}, "bedrock"),
    Mutant("ollama: lines split at U+2028", "C101", _framing(_SplitLines), "ollama"),
    Mutant("chat: fields only with a space behind the colon", "C23", _framing(_Lines), "openai", "chat"),
    Mutant("mistral: the first of several lines of data", "C23", _framing(_FirstDataLine), "mistral"),
    Mutant("openrouter: comments taken for events", "C23", _framing(_CommentsToo), "openrouter"),
    Mutant("chat: a text that says [DONE] ends the stream", "C101", in_chunks(_done_anywhere), "openai", "chat"),
    Mutant("a text about an error is an error", "C101", in_chunks(_error_anywhere)),
    Mutant("responses: escaped line ends unescaped twice", "C101", in_chunks(_unescaped), "openai", "responses"),
    Mutant("mistral: the word null left out of texts", "C101", in_chunks(_no_null_text), "mistral"),
    Mutant("google: text beside the reason lost", "C62", {
        "stream_response": _text_before_the_end_only}, "google", "generate"),
    Mutant("openrouter: the first piece of text lost", "C28", {"stream_response": _first_piece_lost}, "openrouter"),
    Mutant("ollama: text of the last line lost", "C102", in_chunks(_last_line_without_text), "ollama"),
    Mutant("chat: counts beside a choice not read", "C102", in_chunks(_usage_alone), "openai", "chat"),
    Mutant("cohere: attempts counted by content", "C91", _counted_attempts(), "cohere"),
    Mutant("responses: the key for one attempt only", "C91", {"connection": _key_of_one_attempt},
           "openai", "responses"),
    Mutant("google: a delay taken out of the headers", "C91", {"from_wire_error": _delay_taken}, "google", "generate"),
    Mutant("openrouter: options taken out of the request", "C02", {"to_wire": _options_taken}, "openrouter"),
    Mutant("mistral: ids of calls of which there are a hundred", "C103", in_body(_short_ids), "mistral"),
    Mutant("cohere: deeply nested arguments emptied", "C103", {"to_wire": _flat}, "cohere"),
    Mutant("chat: text held by a writer for another caller", "C91", {
        "stream_to_wire": lambda inner, **_: _Shared(inner())}, "openai", "chat"),
    Mutant("google: the model of the first caller", "C91", _first_caller("to_wire_response", "model"),
           "google", "generate"),
    Mutant("responses: the answer id of the first caller", "C91", _first_caller("stream_to_wire", "answer_id"),
           "openai", "responses"),
    Mutant("ollama: tools of the caller before", "C86", _tools_of_a_caller(), "ollama"),
)  # fmt: skip
