"""Adapters that serve their API wrongly: requests misread, answers, streams and errors miswritten."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import attrs

from interlingua.errors import InterlinguaError, PluginError, ServerError
from interlingua.types import (
    ErrorEvent,
    Message,
    MessageComplete,
    Role,
    StopReason,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    UsageUpdate,
)
from interlingua_serving import ServeContext
from tests.contract.broken.machine import Mutant

Hooks = dict[str, Callable[..., Any]]


def _read(change: Callable[[Any], Any]) -> Hooks:
    """Break every request as it was read."""
    return {"from_wire_request": lambda inner, **_: change(inner())}


def _options(change: Callable[[Any], Any]) -> Hooks:
    return _read(lambda read: attrs.evolve(read, options=change(read.options)))


def _messages(change: Callable[[Message], Message | None]) -> Hooks:
    def changed(read: Any) -> Any:
        made = [new for message in read.messages if (new := change(message)) is not None]
        return attrs.evolve(read, messages=tuple(made))

    return _read(changed)


def _answer(change: Callable[[Message], Message]) -> Hooks:
    """Break every whole answer before it is written."""
    return {"to_wire_response": lambda inner, message, **_: inner(message=change(message))}


def _body(change: Callable[[dict[str, Any]], object]) -> Hooks:
    """Break the body of every whole answer."""

    def broken(inner: Any, **_: Any) -> Any:
        response = inner()
        body = json.loads(response.body)
        change(body)
        return attrs.evolve(response, body=json.dumps(body).encode())

    return {"to_wire_response": broken}


class _Writer:
    """A writer whose events or bytes are changed."""

    def __init__(self, inner: Any, events: Callable[[Any], Iterable[Any]], ends: bool, after: bytes) -> None:
        self._inner, self._events, self._ends, self._after = inner, events, ends, after
        self.content_type, self.losses = inner.content_type, inner.losses

    def feed(self, events: Iterable[Any]) -> bytes:
        return self._inner.feed([made for event in events for made in self._events(event)])  # type: ignore[no-any-return]

    def end(self) -> bytes:
        return (self._inner.end() if self._ends else b"") + self._after


def _stream(
    events: Callable[[Any], Iterable[Any]] = lambda event: [event], *, ends: bool = True, after: bytes = b""
) -> Hooks:
    return {"stream_to_wire": lambda inner, **_: _Writer(inner(), events, ends, after)}


def _as_text(event: Any) -> list[Any]:
    return [TextDelta(index=event.index, text=event.text)] if isinstance(event, ThinkingDelta) else [event]


def _only(kind: type, keep: Callable[[Any], bool]) -> Callable[[Any], list[Any]]:
    return lambda event: [event] if not isinstance(event, kind) or keep(event) else []


def _demoted(message: Message) -> Message:
    content = [TextBlock(text=block.text) if isinstance(block, ThinkingBlock) else block for block in message.content]
    return attrs.evolve(message, content=tuple(content))


def _with(message: Message, **facts: Any) -> Message:
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, **facts))


def _context(**facts: Any) -> Callable[..., Any]:
    """Break what the writer knows."""

    def broken(inner: Any, context: ServeContext, **_: Any) -> Any:
        made = {name: value(context) if callable(value) else value for name, value in facts.items()}
        return inner(context=attrs.evolve(context, **made))

    return broken


def _everywhere(**facts: Any) -> Hooks:
    return {"to_wire_response": _context(**facts), "stream_to_wire": _context(**facts)}


def _signed_text(message: Message) -> Message:
    shown = [TextBlock(text=str(block.signature)) for block in message.thinking_blocks if block.signature]
    return attrs.evolve(message, content=(*message.content, *shown))


def _finished(event: Any) -> list[Any]:
    return [MessageComplete(stop_reason=StopReason.END_TURN)] if isinstance(event, ErrorEvent) else [event]


def _error(change: Callable[[InterlinguaError], InterlinguaError]) -> Hooks:
    return {"to_wire_error": lambda inner, error, **_: inner(error=change(error))}


def _bare(error: InterlinguaError) -> InterlinguaError:
    error.retry_after = None
    return error


def _told(error: InterlinguaError) -> InterlinguaError:
    return ServerError(error.message) if isinstance(error, PluginError) else error


def _without_cached(message: Message) -> Message:
    usage = message.metadata.usage
    assert usage is not None
    return _with(message, usage=attrs.evolve(usage, input_tokens=(usage.input_tokens or 0) - 20))


_STOP = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)

SERVING = (
    Mutant("a request's system prompt is not read", "C60", _messages(lambda m: None if m.role is Role.SYSTEM else m)),
    Mutant("a request's results are not read", "C60", _messages(lambda m: None if m.role is Role.TOOL else m)),
    Mutant("a request's tools are not read", "C60", _read(lambda read: attrs.evolve(read, tools=()))),
    Mutant("a served answer has its thinking as text", "C61", _answer(_demoted)),
    Mutant(
        "a served answer stops with end_turn where it calls",
        "C61",
        _answer(lambda m: _with(m, stop_reason=StopReason.END_TURN, stop_reason_raw=None)),
    ),
    Mutant("a served answer counts input without the cached", "C61", _answer(_without_cached)),
    Mutant("a served answer has no counts", "C61", _body(lambda body: body.pop("usage"))),
    Mutant("a served stream has its thinking as text", "C62", _stream(_as_text)),
    Mutant("a served stream has no counts", "C62", _stream(_only(UsageUpdate, lambda _: False))),
    Mutant(
        "a served stream loses the first half of texts",
        "C62",
        _stream(_only(TextDelta, lambda event: "mkt" not in event.text)),
    ),
    Mutant(
        "a served stream loses the arguments of calls",
        "C62",
        _stream(
            lambda event: (
                []
                if isinstance(event, ToolUseInputDelta)
                else [attrs.evolve(event, block=None)]
                if isinstance(event, ToolUseEnd)
                else [event]
            )
        ),
    ),
    Mutant("a served stream goes on behind its end", "C62", _stream(after=b"event: ping\ndata: {}\n\n")),
    Mutant("a served failure ends as if it were finished", "C63", _stream(_finished)),
    Mutant("a served stream that broke off ends in a stop", "C63", _stream(ends=False, after=_STOP)),
    Mutant(
        "a served answer says the model that made it", "C64", _everywhere(model=lambda context: context.origin.model)
    ),
    Mutant("a served answer has always the same id", "C64", _everywhere(answer_id="1")),
    Mutant(
        "a served answer's id is made of the time",
        "C64",
        _everywhere(answer_id=lambda _: datetime.now(UTC).isoformat()),
    ),
    Mutant("a served answer is not sealed", "C65", {"to_wire_response": _context(seal=None)}),
    Mutant(
        "a caller's sealed state is not read",
        "C65",
        {"from_wire_request": _context(unseal=lambda _: lambda _text: None)},
    ),
    Mutant("a seal holds no replay state", "C65", _answer(lambda m: _with(m, provider_raw=None))),
    Mutant("a served answer shows signatures", "C66", _answer(_signed_text)),
    Mutant(
        "a served answer of another is written as this API's own",
        "C66",
        _everywhere(origin=lambda context: context.origin._replace(provider=context.provider, api=context.api)),
    ),
    Mutant(
        "a request's limit read as a budget",
        "C86",
        _options(lambda options: attrs.evolve(options, thinking_budget=options.max_tokens, max_tokens=None)),
    ),
    Mutant(
        "a request's first stop word only",
        "C86",
        _options(lambda options: attrs.evolve(options, stop=options.stop[:1])),
    ),
    Mutant(
        "parallel calls read the other way round",
        "C86",
        _options(
            lambda options: attrs.evolve(
                options,
                parallel_tool_calls=None if options.parallel_tool_calls is None else not options.parallel_tool_calls,
            )
        ),
    ),
    Mutant(
        "members that no option expresses not read", "C87", _read(lambda read: attrs.evolve(read, extra={}, covered={}))
    ),
    Mutant(
        "half of a request's results not read",
        "C87",
        _read(
            lambda read: attrs.evolve(
                read, messages=tuple([each for each in read.messages if each.role is not Role.TOOL])
            )
        ),
    ),
    Mutant("every served failure is the server's", "C67", _error(lambda error: ServerError(error.message))),
    Mutant("a served failure has no delay", "C67", _error(_bare)),
    Mutant("callers are told a plugin's mistakes", "C67", _error(_told)),
)


# ---- Interactions


class _Frames:
    """A writer of server-sent events whose frames are changed; a frame's data may be dropped or doubled."""

    def __init__(self, inner: Any, change: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]) -> None:
        self._inner, self._change = inner, change
        self.content_type, self.losses = inner.content_type, inner.losses

    def feed(self, events: Iterable[Any]) -> bytes:
        return self._changed(self._inner.feed(events))

    def end(self) -> bytes:
        return self._changed(self._inner.end())

    def _changed(self, data: bytes) -> bytes:
        out = []
        for frame in data.split(b"\n\n")[:-1]:
            name, _, body = frame.partition(b"\ndata: ")
            if not body.startswith(b"{"):
                out.append(frame)
                continue
            made = self._change(json.loads(body))
            out += [name + b"\ndata: " + json.dumps(each).encode() for each in made]
        return b"".join(each + b"\n\n" for each in out)


def _frames(change: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]) -> Hooks:
    return {"stream_to_wire": lambda inner, **_: _Frames(inner(), change)}


def _kind_of(event: dict[str, Any]) -> Any:
    return event.get("delta", {}).get("type")


def _summary_of_pieces(event: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Write each half of a summary as a separate summary; readers join them with a blank line."""
    if _kind_of(event) != "thought_summary":
        return [event]
    text = event["delta"]["content"]["text"]
    halves = [half for half in (text[: len(text) // 2], text[len(text) // 2 :]) if half]
    return [{**event, "delta": {**event["delta"], "content": {"type": "text", "text": half}}} for half in halves]


def _without_kind(name: str) -> Callable[[dict[str, Any]], Iterable[dict[str, Any]]]:
    return lambda event: [] if _kind_of(event) == name else [event]


def _one_step(event: dict[str, Any]) -> Iterable[dict[str, Any]]:
    return [{**event, "index": 0} if event["event_type"] == "step.delta" else event]


def _completed(event: dict[str, Any]) -> Iterable[dict[str, Any]]:
    if event["event_type"] != "interaction.completed":
        return [event]
    return [{**event, "interaction": {**event["interaction"], "status": "completed"}}]


def _steps(change: Callable[[dict[str, Any]], bool]) -> Hooks:
    """Keep some steps of every whole answer."""

    def kept(body: dict[str, Any]) -> None:
        body["steps"] = [step for step in body["steps"] if change(step)]

    return _body(kept)


def _served(name: str, rule: str, replaced: Hooks) -> Mutant:
    return Mutant(f"interactions served: {name}", rule, replaced, "google", "interactions")


_COMPLETED = (
    b'event: interaction.completed\ndata: {"event_type":"interaction.completed","interaction":'
    b'{"id":"v1_1","status":"completed"}}\n\nevent: done\ndata: [DONE]\n\n'
)

SERVED_INTERACTIONS = (
    _served("results are not read", "C60", _messages(lambda m: None if m.role is Role.TOOL else m)),
    _served("the instruction is not read", "C60", _messages(lambda m: None if m.role is Role.SYSTEM else m)),
    _served("the state of steps is not read", "C60", _messages(lambda m: _with(m, provider_raw=None))),
    _served("no counts", "C61", _body(lambda body: body.pop("usage"))),
    _served("calls are left out", "C61", _steps(lambda step: bool(step["type"] != "function_call"))),
    _served("thoughts are left out", "C61", _steps(lambda step: bool(step["type"] != "thought"))),
    _served("a summary for each piece of a thought", "C62", _frames(_summary_of_pieces)),
    _served("arguments only in the start of a call", "C62", _frames(_without_kind("arguments_delta"))),
    _served("pieces of every step in the first", "C62", _frames(_one_step)),
    _served("a cut answer is completed", "C62", _frames(_completed)),
    _served("an answer that broke off is completed", "C63", _stream(ends=False, after=_COMPLETED)),
    _served("errors end as if they were finished", "C63", _stream(_finished)),
    _served("the model that made it", "C64", _everywhere(model=lambda context: context.origin.model)),
    _served("always the same id", "C64", _everywhere(answer_id="1")),
    _served("not sealed", "C65", {"to_wire_response": _context(seal=None)}),
    _served("seals are not read", "C65", {"from_wire_request": _context(unseal=lambda _: lambda _text: None)}),
    _served(
        "another's answer is written as this API's own", "C66",
        _everywhere(origin=lambda context: context.origin._replace(provider=context.provider, api=context.api)),
    ),
    _served("every failure is the server's", "C67", _error(lambda error: ServerError(error.message))),
    _served("stop words are not read", "C86", _options(lambda options: attrs.evolve(options, stop=()))),
    _served("settings are not read", "C87", _read(lambda read: attrs.evolve(read, extra={}, covered={}))),
)  # fmt: skip
