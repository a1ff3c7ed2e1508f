"""Rules on broken streams and bodies: typed errors only, and what had arrived stays."""

from __future__ import annotations

import json
from collections.abc import Iterator

from interlingua.errors import InterlinguaError, PluginError, ProviderError, StreamInterruptedError
from interlingua.types import Message, MessageStatus
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.recordings import (
    STREAM_FAULTS,
    Frames,
    ReadResult,
    read_stream,
    read_whole,
    recorded_streams,
    spread_places,
)
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.subject import Subject


@rule(
    "C32",
    "A stream cut at any event raises StreamInterruptedError with all received content; it is never `stop`.",
    source="format.md, Status and errors; format.md, Streaming",
    fix="""Yield `MessageComplete` only after the service has sent the end of the message. If the source ends
    earlier, flush open blocks and return; core raises the error with the partial message.""",
)
def cut_streams_are_interrupted(subject: Subject) -> Iterator[RuleFinding]:
    """Cut each recorded stream after every event, in good order and with a broken connection."""
    for exchange in recorded_streams(subject):
        whole = read_stream(subject, exchange)
        if whole.error is not None:
            continue
        frames = Frames(subject, exchange)
        terminal = _events_needed(subject, exchange, frames)
        for place in [at for at in spread_places(len(frames.events)) if at < terminal]:
            for broken in (False, True):
                found = read_stream(subject, exchange, frames.join(frames.events[:place]), broken=broken)
                if why := _wrong_cut(found, whole):
                    yield RuleFinding(f"cut after event {place}: {why}", exchange.cassette)
                    break


def _events_needed(subject: Subject, exchange: RecordedExchange, frames: Frames) -> int:
    """Return how many events are needed for a whole message: trailing ones may bring only counts or nothing."""
    needed = len(frames.events)
    while needed and any(
        event.type == "message_complete"
        for event in read_stream(subject, exchange, frames.join(frames.events[: needed - 1]), broken=True).events
    ):
        needed -= 1
    if needed < len(frames.events) - 2:
        return len(frames.events) - 2  # too early for an end: let the rule find it
    return needed


def _wrong_cut(found: ReadResult, whole: ReadResult) -> str:
    if found.escaped is not None:
        return f"{type(found.escaped).__name__}: {found.escaped}"
    if not isinstance(found.error, StreamInterruptedError):
        return (
            f"expected StreamInterruptedError, got {type(found.error).__name__ if found.error else 'a whole message'}"
        )
    if found.message is None or found.message.metadata.status is MessageStatus.COMPLETE:
        return "the error carries no partial message"
    delivered = "".join(getattr(event, "text", "") for event in found.events if event.type.endswith("_delta"))
    if len(found.text) < len(delivered):
        return "text that was delivered is not in the partial message"
    if not all(any(now.startswith(was) for now in _texts(whole.message)) for was in _texts(found.message)):
        return "the partial text is not the beginning of the whole text"
    return ""


def _texts(message: Message | None) -> list[str]:
    content = message.content if message else ()
    return [block.text for block in content if block.type in ("text", "thinking") and block.text]


@rule(
    "C33",
    "Lost, doubled, swapped, spliced and unreadable events end in a message or a typed error; earlier text is kept.",
    source="format.md, Status and errors; format.md, Streaming",
    fix="""Check before you index: use `.get` and type checks, and handle events that arrive out of order. Never
    yield an event for a block that has not started. Raise MalformedResponseError for an event that makes no sense;
    text that was already yielded is kept.""",
)
def broken_streams_end_well(subject: Subject) -> Iterator[RuleFinding]:
    """Eight faults at every event of each recorded stream."""
    for exchange in recorded_streams(subject):
        frames = Frames(subject, exchange)
        for name, breaking in STREAM_FAULTS.items():
            for place in spread_places(len(frames.events), 16):
                before = read_stream(subject, exchange, frames.join(frames.events[:place]), broken=True)
                found = read_stream(subject, exchange, frames.join(breaking(frames, frames.events, place)))
                if why := _wrong_fault(found, before):
                    yield RuleFinding(f"stream_response, with {name} at event {place}: {why}", exchange.cassette)
                    break


def _wrong_fault(found: ReadResult, before: ReadResult) -> str:
    if found.escaped is not None:
        return f"{type(found.escaped).__name__}: {found.escaped}; it must end in a message or a typed error"
    if isinstance(found.error, PluginError):
        return f"{found.error}; start each block once, before its other events"
    lost = [was for was in _texts(before.message) if not any(now.startswith(was) for now in _texts(found.message))]
    return f"text that had arrived is lost: {lost[0][-60:]!r}" if lost else ""


@rule(
    "C34",
    "An error inside a 200 is a typed error, whole or in a stream, and the content received before it is kept.",
    source="format.md, Status and errors; hook from_wire_response",
    fix="""Check a good body and every event for the service's error form first: raise the typed error
    (`from_wire_response`), or yield `ErrorEvent` and return (`stream_response`).""",
)
def errors_inside_a_200_are_errors(subject: Subject) -> Iterator[RuleFinding]:
    """The recorded error bodies as answers of status 200, whole and as an event in the middle of a stream."""
    failed = [exchange for exchange in subject.exchanges if not exchange.good and _is_object(exchange.body)]
    if not failed:
        raise NotApplicable("no cassette holds an error; record one, or write one from the documentation")
    of_this_wire = []
    for exchange in failed:
        found = read_whole(subject, exchange, status=200)
        if found.error is None:
            yield RuleFinding(f"as a 200 it is {_describe(found)}, expected an error", exchange.cassette)
        elif isinstance(found.error, ProviderError):
            of_this_wire.append(exchange)
    for api in {subject.api_of(exchange) for exchange in failed} - {subject.api_of(each) for each in of_this_wire}:
        yield RuleFinding("no recorded error, as a 200, is read as the provider's", str(api))
    for stream in [one for one in subject.exchanges if one.good and one.streamed][:3]:
        frames = Frames(subject, stream)
        middle = len(frames.events) // 2
        for exchange in of_this_wire:
            if subject.api_of(exchange) != subject.api_of(stream):
                continue
            event = frames.event(exchange.body.strip(), "error")
            body = frames.join([*frames.events[:middle], event])
            before = read_stream(subject, stream, frames.join(frames.events[:middle]), broken=True)
            found = read_stream(subject, stream, body)
            why = _wrong_fault(found, before)
            if not isinstance(found.error, ProviderError):
                why = f"the error event is {_describe(found)}, expected a ProviderError"
            if why:
                yield RuleFinding(why, f"{exchange.cassette} inside {stream.cassette}")


def _describe(found: ReadResult) -> str:
    return type(found.error or found.escaped).__name__ if found.error or found.escaped else "a message"


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


@rule(
    "C35",
    "A whole body that is cut, empty or of the wrong shape is a typed error.",
    source="format.md, Status and errors",
    fix="""Parse with `interlingua.plugins.loads` and treat missing fields as missing. Any other exception that
    escapes is a fault of the plugin; core turns the common ones into MalformedResponseError, so do not catch them
    yourself.""",
)
def broken_bodies_are_typed_errors(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded whole answer, broken in a dozen ways."""
    whole = [exchange for exchange in subject.exchanges if exchange.good and not exchange.streamed]
    if not whole:
        raise NotApplicable("no cassette holds a whole answer; record one")
    for exchange in whole:
        cuts = [exchange.body[: len(exchange.body) * part // 8] for part in range(8)]
        for body in [*cuts, b"", b"null", b"[]", b"{}", b'"text"', b"<html>502</html>", b"\xff\xfe"]:
            found = read_whole(subject, exchange, body)
            if found.escaped is not None:
                yield RuleFinding(f"{type(found.escaped).__name__} for {body[:30]!r}", exchange.cassette)
            elif not isinstance(found.error, InterlinguaError):
                yield RuleFinding(f"{body[-30:]!r} was read as a good answer", exchange.cassette)
