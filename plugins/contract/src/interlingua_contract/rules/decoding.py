"""Rules on reading good answers: events in legal order and in time, unknown things kept, nothing received lost.

Never breaks an answer (faults do).
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlingua.request.validate import check_message
from interlingua.response.decode import StreamDecoder
from interlingua.response.framing import framer
from interlingua.types.messages import Message
from interlingua_cli.cassettes import Exchange
from interlingua_contract.eventlaw import broken_laws
from interlingua_contract.frames import Frames
from interlingua_contract.json_paths import at, leaves, nodes, replaced, shown
from interlingua_contract.reading import Read, framing_of, read_stream, read_whole
from interlingua_contract.rule import Finding, NotApplicable, rule
from interlingua_contract.rules.roads import streams
from interlingua_contract.subject import Subject

_NOT_BY_ADAPTERS = frozenset((7, 10))  # names of calls are the model's, routing is the client's


UNKNOWN = {"type": "contract_new_kind", "object": "contract.new.kind", "payload": "mkz1q"}


@rule(
    "C24",
    "Stream events come in legal order, and what they assemble to keeps the invariants.",
    source="seed 003 §7.4; DESIGN 5",
    fix="""Begin each block once, keep its index and kind, end it once, and yield the terminal event last: usage and
    replay state that come after the stop reason must be held and yielded before `MessageComplete`.""",
)
def events_are_in_order(subject: Subject) -> Iterator[Finding]:
    """Each recorded stream against the event law."""
    for exchange in streams(subject):
        found = read_stream(subject, exchange)
        for why in broken_laws(found.events):
            yield Finding(why=why, where=exchange.cassette)
        if found.error is None and found.message is not None:
            yield from _invariants(found.message, exchange)


def _invariants(message: Message, exchange: Exchange) -> Iterator[Finding]:
    for violation in check_message(message):
        if violation.number not in _NOT_BY_ADAPTERS:
            yield Finding(why=str(violation), where=exchange.cassette)


@rule(
    "C25",
    "Events are yielded as they arrive, not kept until the end.",
    source="hook stream_response; DESIGN 5",
    fix="Yield a delta for each chunk that brings text, inside the loop over `response_stream`.",
)
def events_come_in_time(subject: Subject) -> Iterator[Finding]:
    """Feed event by event and see when text comes out."""
    for exchange in streams(subject):
        frames = Frames(subject, exchange)
        deltas = [event for event in read_stream(subject, exchange).events if event.type.endswith("_delta")]
        if len(deltas) < 3:
            continue
        decoder = StreamDecoder(subject.provider, framer(framing_of(subject, exchange)), subject.context(exchange))
        early = decoder.feed(frames.join(frames.events[: max(len(frames.events) * 3 // 4, len(frames.events) - 4)]))
        decoder.close()
        if not any(event.type.endswith("_delta") for event in early):
            yield Finding(why="no delta came in the first three quarters of the stream", where=exchange.cassette)
    for exchange in streams(subject):
        found = read_stream(subject, exchange)
        brought, given = _pieces(subject, exchange, found), sum(event.type == "text_delta" for event in found.events)
        if brought > 2 and given < 2:
            yield Finding(why=f"the text of {brought} events comes as one", where=exchange.cassette)


def _pieces(subject: Subject, exchange: Exchange, found: Read) -> int:
    """Return how many events brought a piece of the text, each where the one before ended."""
    text = found.message.text_content() if found.message else ""
    frames = Frames(subject, exchange)
    at, count = 0, 0
    for event in frames.events:
        words = [leaf for _, leaf in leaves(frames.data(event)) if isinstance(leaf, str) and leaf]
        piece = next((word for word in words if word != text and text.startswith(word, at)), "")
        at, count = at + len(piece), count + bool(piece)
    return count if at == len(text) else 0


@rule(
    "C26",
    "An unknown event in a stream is passed over; the message is the same without it.",
    source="DESIGN 10; hook stream_response",
    fix="Ignore events, types and fields you do not know; never index into what may not be there.",
)
def unknown_events_are_passed_over(subject: Subject) -> Iterator[Finding]:
    """One unknown event at every place of each recorded stream."""
    for exchange in streams(subject):
        frames = Frames(subject, exchange)
        plain = read_stream(subject, exchange)
        new = frames.event(json.dumps(UNKNOWN).encode(), UNKNOWN["type"])
        for place in places(len(frames.events)):
            body = frames.join([*frames.events[:place], new, *frames.events[place:]])
            found = read_stream(subject, exchange, body)
            if (found.message, type(found.error)) != (plain.message, type(plain.error)) or found.escaped:
                said = found.error or found.escaped or ""
                why = f"an unknown event before event {place} changes the message ({said})"
                yield Finding(why=why, where=exchange.cassette)
                break


def places(count: int, most: int = 24) -> list[int]:
    """Return places to break a sequence at: all of a short one, some of a long one, always both ends."""
    return list(range(count)) if count <= most else sorted({count * step // most for step in range(most)} | {count - 1})


@rule(
    "C27",
    "New fields, and new kinds of content, in a whole answer raise nothing; new content is kept.",
    source="DESIGN 3 (OpaqueBlock); 7",
    fix="""Read fields by name and ignore the others. A content item of a type you do not know becomes
    `OpaqueBlock(provider=…, kind=<its type>, data=<the object, exact>)`.""",
)
def new_content_is_kept(subject: Subject) -> Iterator[Finding]:
    """A new field in every object, and a new item in every list of typed items."""
    whole = [exchange for exchange in subject.exchanges if exchange.good and not exchange.streamed]
    if not whole:
        raise NotApplicable("no cassette holds a whole answer; record one")
    for exchange in whole:
        plain = read_whole(subject, exchange)
        body = _json(exchange.body)
        for path, node in nodes(body):
            if isinstance(node, dict) and node and not _inside_arguments(path):
                changed = replaced(body, (*path, "contract_new_field"), {"a": [1]})
                found = read_whole(subject, exchange, json.dumps(changed).encode())
                if found.escaped or type(found.error) is not type(plain.error):
                    why = f"a new field in {shown(path) or 'the body'}: {found.error or found.escaped}"
                    yield Finding(why=why, where=exchange.cassette)
        for path in _typed_lists(body, plain.message):
            changed = replaced(body, path, [*at(body, path), UNKNOWN])
            found = read_whole(subject, exchange, json.dumps(changed).encode())
            if found.message is None or "mkz1q" not in repr(found.message) + repr(found.message.metadata.provider_raw):
                why = f"a new item in {shown(path)} is not kept: {found.error or found.escaped or 'lost'}"
                yield Finding(why=why, where=exchange.cassette)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _inside_arguments(path: tuple[str | int, ...]) -> bool:
    return any(key in ("input", "arguments", "args") for key in path)


def _typed_lists(body: Any, message: Message | None) -> Iterator[tuple[str | int, ...]]:
    """Lists whose items say their type and hold what the message says: content, on wires that have such lists."""
    said = {leaf for leaf in (message.text_content() if message else "",) if leaf}
    for path, node in nodes(body):
        items = isinstance(node, list) and node and all(isinstance(item, dict) and "type" in item for item in node)
        if items and any(leaf in said for _, leaf in leaves(node) if isinstance(leaf, str)):
            yield path
