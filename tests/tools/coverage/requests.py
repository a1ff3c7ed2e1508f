"""Ask for a request with each parameter, tool and block of an API, and see whether the body has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import attrs

from interlingua._http.client import Client
from interlingua._plugins.registry import Registry
from interlingua.errors import InterlinguaError
from interlingua.plugins import WireRequest
from interlingua.transport import HttpRequest, TimeLimits, connection_failed
from interlingua.types import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    SideEffects,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolUseBlock,
    VideoBlock,
    change,
    system,
    tool_result,
    user,
)
from tests.tools.coverage.places import Place
from tests.tools.coverage.readings import read_whole
from tests.tools.coverage.sdk_types import Maker, leaves
from tests.tools.coverage.wire import Wire

_REGISTRY = Registry()
_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
_TOOL = ToolDefinition(name="look_up", description="Look up.", input_schema=_SCHEMA, side_effects=SideEffects.READ)
# each canonical option alone: what a body has with it and not without it is typed under its name
OPTIONS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("max_tokens", {"max_tokens": 4000}),
    ("temperature", {"temperature": 0.5}),
    ("top_p", {"top_p": 0.5}),
    ("top_k", {"top_k": 5}),
    ("seed", {"seed": 7}),
    ("stop", {"stop": ["x"]}),
    ("tools", {"tools": [_TOOL]}),
    ("tool_choice", {"tools": [_TOOL], "tool_choice": "required"}),
    ("parallel_tool_calls", {"tools": [_TOOL], "parallel_tool_calls": False}),
    ("output", {"response_schema": _SCHEMA}),
    ("effort", {"effort": "high"}),
    ("thinking", {"thinking": True}),
    ("thinking", {"thinking": False}),
    ("thinking_budget", {"thinking_budget": 2048, "max_tokens": 4096}),
    ("user_id", {"user_id": "u1"}),
    ("cache", {"cache": "auto"}),
)


def build(
    wire: Wire, messages: Sequence[Message] | str, model: str = "", *, stream: bool = False, **more: Any
) -> WireRequest:
    """Return the request of one model."""
    return _client(f"{wire.key}:{model or wire.models[0]}").build_request(messages, stream=stream, api=wire.api, **more)


@cache
def _client(model: str) -> Client:
    return Client(model, registry=_REGISTRY, environ={})


@cache
def _typed_names(wire: Wire) -> dict[str, str]:
    """Return each parameter that a canonical option writes, with the option's name."""
    found: dict[str, str] = {}
    for model in wire.models:
        plain = set(_names(json.loads(build(wire, "q", model).body)))
        variants = [(name, "q", given) for name, given in OPTIONS]
        asked = [*variants, ("system", [system("s"), user("q")], {}), ("stream", "q", {"stream": True})]
        for name, messages, given in asked:
            try:
                body = json.loads(build(wire, messages, model, **given).body)
            except InterlinguaError:
                continue
            for one in _names(body):
                if one not in plain:
                    found.setdefault(one, name)
        for one in plain:
            found.setdefault(one, "always written")
    return found


def _names(body: Mapping[str, Any]) -> Iterator[str]:
    for name, value in body.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value)


def parameters(wire: Wire) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each parameter of a request."""
    typed, maker = _typed_names(wire), Maker()
    for name, hint in wire.parameters.items():
        if name in typed:
            yield name, Place("typed", {"messages": "messages", "model": "model"}.get(name, typed[name]))
        elif name in ("model", "modelId") and wire.models[0] in _path(wire):
            yield name, Place("typed", "model")
        elif name in wire.headers:
            yield name, _by_header(wire, wire.headers[name], maker)
        else:
            yield name, _by_options(wire, name, maker.make(hint))


def _path(wire: Wire) -> str:
    return build(wire, "q").path


def _by_header(wire: Wire, header: str, maker: Maker) -> Place:
    value = str(maker.make(str))
    server = _Server()
    with (
        Client(f"{wire.key}:{wire.models[0]}", registry=_REGISTRY, api_key="none", transport=server, retry=0) as client,
        suppress(InterlinguaError),
    ):
        client.send("q", headers={header: value})
    arrived = any(value in text for name, text in server.headers.items() if name.lower() == header)
    return Place("passes", f"headers: {header}") if arrived else Place("unplaced", f"the header {header} is not sent")


class _Server:
    """A transport in memory that keeps the headers of a request and refuses it."""

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {}

    def open(self, request: HttpRequest, _limits: TimeLimits) -> Any:
        """Keep the headers."""
        self.headers = request.headers
        raise connection_failed(ConnectionRefusedError("no server"), request.url)

    def close(self) -> None:
        """Close nothing."""


def _by_options(wire: Wire, name: str, value: Any) -> Place:
    outer, _, inner = name.partition(".")
    given = {outer: {inner: value}} if inner else {outer: value}
    why = ""
    for model in wire.models:
        for stream in (False, True):
            try:
                body = json.loads(build(wire, "q", model, provider_options=given, stream=stream).body)
            except InterlinguaError as error:
                why = f"{type(error).__name__}: {error}"
                continue
            found = body.get(outer)
            if (found.get(inner) if inner and isinstance(found, dict) else found) == value:
                return Place("passes", "provider_options")
            if found is not None and (
                leaves(value) and all(str(leaf) in json.dumps(found) for leaf in leaves(value).values())
            ):
                return Place("passes", "provider_options, merged")
    return Place("refused" if why and (inner or outer) in why else "unplaced", why[:90] or "not in the body")


def tools(wire: Wire) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each kind of tool: of the caller's functions, or of the service."""
    maker = Maker()
    written = build(wire, "q", tools=[_TOOL]).body.decode()
    for kind, hint in wire.tools.items():
        if f'"{kind}":' in written.replace(" ", "") or f'"type":"{kind}"' in written.replace(" ", ""):
            yield kind, Place("typed", "ToolDefinition")
            continue
        made = wire.block(maker, kind, hint)
        body = json.loads(build(wire, "q", provider_options={"tools": [made]}).body)
        place = (
            Place("passes", "provider_options: tools") if made in body.get("tools", ()) else Place("unplaced", "lost")
        )
        yield kind, place


def sent_blocks(wire: Wire) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each kind of block that a message of a request may hold."""
    maker, written = Maker(), _written(wire)
    for kind, hint in wire.sent.items():
        if kind in written:
            yield kind, Place("typed", written[kind])
            continue
        made = wire.block(maker, kind, hint)
        yield kind, _as_opaque(wire, kind, made)


def _as_opaque(wire: Wire, kind: str, made: dict[str, Any]) -> Place:
    block = OpaqueBlock(provider=wire.key, kind=kind, data=made)
    answer = read_whole(wire, wire.answer)
    why = ""
    for where, messages in (
        ("of the user", [Message(role=Role.USER, content=[TextBlock(text="q"), block])]),
        ("of the model", [user("q"), _with(answer, block), user("and now")]),
        ("of the system", [Message(role=Role.SYSTEM, content=[TextBlock(text="s"), block]), user("q")]),
    ):
        try:
            sent = build(wire, messages).body.decode()
        except InterlinguaError as error:
            why = why or f"{type(error).__name__}: {error}"
            continue
        if all(str(leaf) in sent for leaf in leaves(made).values()) and f'"{kind}"' in sent:
            return Place("passes", f"OpaqueBlock {where}")
    return Place("refused", why[:90]) if why else Place("unplaced", "not in the body, without an error")


def _with(answer: Message, block: OpaqueBlock) -> Message:
    return attrs.evolve(answer, content=(*answer.content, block))


def _written(wire: Wire) -> dict[str, str]:
    """Return the kinds that canonical blocks are written as, with the block's name."""
    found: dict[str, str] = {}
    answer = read_whole(wire, wire.answer)
    call = ToolUseBlock(id="tu_1", name="look_up", input={"a": "b"}, provider_id="call_1")
    thought = ThinkingBlock(text="hm", signature="c2lnbmF0dXJl")
    hidden = RedactedThinkingBlock(data="ZGF0YQ==")
    cases: list[tuple[str, list[Message]]] = [("TextBlock", [user("q")])]
    cases += [(type(block).__name__, [_asked(block)]) for block in _media()]
    cases += [
        (type(block).__name__, [user("q"), attrs.evolve(answer, content=(block, *answer.content)), user("and now")])
        for block in (thought, hidden)
    ]
    said = attrs.evolve(answer, content=(call,))
    cases += [("ToolUseBlock, ToolResultBlock", [user("q"), said, tool_result(call, "done")])]
    changed = change(add=[_TOOL], remove=["other"], effort="low", response_schema={})
    cases += [("ChangeBlock", [user("q"), answer, changed, user("and now")])]
    for name, messages in cases:
        try:
            body = json.loads(build(wire, messages).body)
        except InterlinguaError:
            continue
        for kind in _kinds(body, wire):
            found.setdefault(kind, name)
    return found


def _asked(block: ContentBlock) -> Message:
    return Message(role=Role.USER, content=[TextBlock(text="q"), block])


def _media() -> Iterator[ContentBlock]:
    for kind, data in (("base64", "aGk="), ("url", "https://example.invalid/a"), ("file_id", "file_1")):
        source = MediaSource(kind=kind, data=data)
        yield ImageBlock(source=source, media_type="image/png")
        yield AudioBlock(source=source, media_type="audio/wav")
        yield VideoBlock(source=source, media_type="video/mp4")
        yield DocumentBlock(source=source, media_type="application/pdf")
        yield DocumentBlock(source=source, media_type="text/plain")


def _kinds(value: Any, wire: Wire) -> Iterator[str]:
    if isinstance(value, dict):
        if wire.keyed:
            yield from (name for name in value if name in wire.sent)
        elif isinstance(value.get("type"), str):
            yield value["type"]
        for one in value.values():
            yield from _kinds(one, wire)
    elif isinstance(value, list):
        for one in value:
            yield from _kinds(one, wire)
