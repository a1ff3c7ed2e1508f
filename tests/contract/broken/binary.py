"""Defects that only a suite which is right about other wires sees: binary frames, models in the path, signatures."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import attrs

from interlingua._plugins.registry import Registry
from interlingua._response.framing import SseFramer
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, HttpRequest
from interlingua_cli.cassettes import RecordedExchange, read_cassettes
from interlingua_contract.subject import Subject, with_streaming
from tests.contract.broken.answers import _sorted_arguments, both_blocks
from tests.contract.broken.machine import (
    Handed,
    Mutant,
    in_capabilities,
    in_chunks,
    in_data,
    in_events,
    real,
)
from tests.contract.broken.streams import _no_errors, _no_spaces, _refusing_unknown
from tests.support import tree
from tests.support.binary_framing import FrameReader


class OtherExchanges(Subject):
    """A subject whose cassettes are changed after reading."""

    change: Callable[[RecordedExchange], list[RecordedExchange]]

    @cached_property
    def exchanges(self) -> tuple[RecordedExchange, ...]:
        """The changed exchanges."""
        read = read_cassettes(self.folder) if self.folder is not None else []
        made = [one for each in read if each.method == "POST" for one in self.change(each)]
        return tuple(with_streaming(one, self.provider, api) for one in made if (api := self.api_of(one)) is not None)


def with_exchanges(
    key: str,
    plugin: Any,
    change: Callable[[RecordedExchange], list[RecordedExchange]],
    seed: int = 0,
    examples: int = 40,
) -> Subject:
    """Return a provider object under test with changed cassettes."""
    registry = Registry(providers={key: plugin}, entry_points=[])
    made = OtherExchanges(
        key, tree.ROOT / "cassettes" / key, registry=registry, seed=seed, examples=examples, shrink_s=0
    )
    made.change = change
    return made


@attrs.frozen
class OtherMutant(Mutant):
    """A mutant with changed cassettes."""

    change: Callable[[RecordedExchange], list[RecordedExchange]] = attrs.field(kw_only=True)

    def subject(self, seed: int = 0, examples: int = 40) -> Subject:
        """Return the broken provider under test."""
        return with_exchanges(self.key, Handed(real(self.key), **self.replaced), self.change, seed, examples)


def framed(exchange: RecordedExchange) -> list[RecordedExchange]:
    """Return the exchange with its events as binary frames, under a content type that says nothing."""
    if not exchange.streamed:
        return [exchange]
    reader = SseFramer()
    chunks = [*reader.feed(exchange.body), *reader.close()]
    body = b"".join(FrameReader.write(chunk) for chunk in chunks)
    return [attrs.evolve(exchange, body=body, headers={"content-type": "application/vnd.acme.frames"})]


def binary(**replaced: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Replace the framing besides some hooks."""
    return {"connection": lambda inner, **_: attrs.evolve(inner(), framing=FrameReader), **replaced}


class _Torn(FrameReader):
    """Replaces what is no text by itself, as a reader does that decodes each piece."""

    def feed(self, data: bytes) -> Any:
        return super().feed(data.decode("utf-8", "ignore").encode() if data.isascii() is False else data)


def over_frames(name: str, rule: str, replaced: dict[str, Callable[..., Any]]) -> OtherMutant:
    """Return a mutant of the adapter behind binary frames."""
    return OtherMutant(name, rule, binary(**replaced), change=framed)


# -- a stream of the same request that fails, and models in the path --------------------------------------------------


def with_failing_stream(exchange: RecordedExchange) -> list[RecordedExchange]:
    """Let a stream that fails after its first events follow on each stream, for the same request."""
    if not exchange.streamed:
        return [exchange]
    failure = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    body = b"\n\n".join(exchange.body.split(b"\n\n")[:2]) + b"\n\n" + failure
    return [exchange, attrs.evolve(exchange, cassette=f"{exchange.cassette} failing", body=body)]


def streamed_too(exchange: RecordedExchange) -> list[RecordedExchange]:
    """Add the stream of one event that holds the whole answer; only the path tells the two requests apart."""
    if exchange.cassette.startswith("continued"):  # answers of several requests are joined as cassettes are read
        return []
    if exchange.streamed or not exchange.good or "/interactions" in exchange.uri:
        return [exchange]
    uri = exchange.uri.replace(":generateContent", ":streamGenerateContent")
    body = b"data: " + json.dumps(json.loads(exchange.body)).encode() + b"\n\n"
    return [
        exchange,
        attrs.evolve(exchange, cassette=f"{exchange.cassette} streamed", uri=uri, body=body, streamed=True),
    ]


# -- calls ----------------------------------------------------------------------------------------------------------


def equal_calls(exchange: RecordedExchange) -> list[RecordedExchange]:
    """Give an answer with a call a second one, with the same arguments."""
    body = None if exchange.streamed or not exchange.good else json.loads(exchange.body)
    calls = [block for block in (body or {}).get("content", ()) if block.get("type") == "tool_use"]
    if body is None or len(calls) != 1:
        return [exchange]
    body["content"].append({**calls[0], "id": "toolu_second"})
    return [attrs.evolve(exchange, body=json.dumps(body).encode())]


# -- signatures -----------------------------------------------------------------------------------------------------


def _signing(key_of: Callable[[ConnectionSettings], str]) -> Callable[..., Any]:
    """Sign by an HMAC, which shows no key, with a secret that an asynchronous source gives."""

    def connection(inner: Callable[..., Any], settings: ConnectionSettings, **_: Any) -> Any:
        async def credentials(_error: object) -> bytes:
            await asyncio.sleep(0)
            return key_of(settings).encode() or b"none"

        def sign(outgoing: HttpRequest, secret: bytes) -> Mapping[str, str]:
            text = f"{outgoing.method}\n{outgoing.url}\n{outgoing.time.isoformat()}\n".encode() + outgoing.body
            date = outgoing.time.isoformat()
            return {"x-date": date, "authorization": hmac.new(secret, text, hashlib.sha256).hexdigest()}

        made = inner()
        return attrs.evolve(made, auth=lambda _request: {}, credentials=credentials, sign=sign)

    return connection


def key_of(settings: ConnectionSettings) -> str:
    """Return the key as the shipped plugin finds it."""
    return settings.api_key or settings.environ.get("ANTHROPIC_API_KEY") or ""


SIGNED = {"connection": _signing(key_of)}


def no_schema_with_tools(inner: Callable[..., Any], tools: Any, options: Any, **_: Any) -> Any:
    """Refuse what some services refuse."""
    if tools and options.response_schema is not None:
        raise CapabilityError("no schema together with tools", path="options.response_schema")
    return inner()


def _uncited(inner: Callable[..., Any], messages: Any, **_: Any) -> Any:
    def bare(message: Any) -> Any:
        content = [attrs.evolve(block, citations=()) if block.type == "text" else block for block in message.content]
        return attrs.evolve(message, content=content)

    return inner(messages=[bare(message) for message in messages])


def _first_letter(inner: Callable[..., Any], **_: Any) -> Any:
    made = inner()
    return attrs.evolve(made, endpoints=dict.fromkeys(made.endpoints, r"/models/(?P<model>.)[^/]*"))


def _no_stop_word(value: Any) -> None:
    if isinstance(value, dict) and isinstance(value.get("delta"), dict) and "stop_reason" in value["delta"]:
        value["delta"]["stop_reason"] = "end_turn"


def _zero_counts(value: Any) -> None:
    holder = value.get("message", value) if isinstance(value, dict) else {}
    if isinstance(holder, dict):
        holder["usage"] = {"input_tokens": 0, "output_tokens": 0, **(holder.get("usage") or {})}


BINARY = (
    over_frames("frames: an unknown event is an exception", "C26", in_chunks(_refusing_unknown)),
    over_frames("frames: errors in a stream passed over", "C34", in_chunks(_no_errors)),
    over_frames("frames: an unknown stop reason is end_turn", "C36", in_data(_no_stop_word)),
    over_frames("frames: not reported is 0", "C39", in_data(_zero_counts)),
    over_frames("frames: spaces of deltas stripped", "C21", in_events(_no_spaces)),
    OtherMutant("frames: a framing that tears letters", "C22", {
        "connection": lambda inner, **_: attrs.evolve(inner(), framing=_Torn)}, change=framed),
    OtherMutant("spaces stripped, behind a failing stream", "C21", in_events(_no_spaces), change=with_failing_stream),
    OtherMutant("google: spaces of deltas stripped", "C21", in_events(_no_spaces), "google", change=streamed_too),
    OtherMutant("arguments of one of two equal calls in another order", "C28", both_blocks(_sorted_arguments),
                change=equal_calls),
    Mutant("a signature made without the key", "C43", {"connection": _signing(lambda _settings: "fixed")}),
    Mutant("a tool forced by its name, undeclared", "C19", in_capabilities(supports_named_tool_choice=False)),
    Mutant("video declared without a cassette on another wire", "C51", in_capabilities(
        supports_video=True), "ollama"),
    Mutant("citations declared and not sent back", "C59", {"to_wire": _uncited}),
    Mutant("google: the model read wrongly from the path", "C44", {"connection": _first_letter}, "google", "generate"),
)  # fmt: skip
