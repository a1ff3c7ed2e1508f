"""Rules on reading good answers: events in legal order and in time, unknown content kept, nothing received lost."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from interlingua._request.rules import check_message
from interlingua.codec import encode_message
from interlingua.plugins import thaw
from interlingua.types import Message, MessageStatus
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.event_law import broken_laws
from interlingua_contract.hook_calls import describe
from interlingua_contract.json_paths import format_path, leaves, nodes, strings, value_at, with_value
from interlingua_contract.recordings import (
    Frames,
    ReadResult,
    json_payloads,
    make_decoder,
    read_answer,
    read_stream,
    read_whole,
    recorded_answers,
    recorded_streams,
    spread_places,
)
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.subject import Subject

_NOT_BY_ADAPTERS = frozenset((7, 10))  # names of calls are the model's, routing is the client's
UNKNOWN: dict[str, Any] = {
    "type": "contract_new_kind",
    "object": "contract.new.kind",
    "payload": "mkz1q",
    "n": None,
    "l": [],
    "w": 1.0,
}


@rule(
    "C24",
    "Stream events arrive in legal order, and the message assembled from them keeps the invariants.",
    source="format.md, Streaming",
    fix="""Start each block once, keep its index and kind, end it once, and yield the terminal event last: hold
    usage and replay state that arrive after the stop reason, and yield them before `MessageComplete`.""",
)
def events_are_in_order(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded stream against the event law."""
    for exchange in recorded_streams(subject):
        found = read_stream(subject, exchange)
        for why in broken_laws(found.events):
            yield RuleFinding(why, exchange.cassette)
        if found.error is None and found.message is not None:
            for violation in check_message(found.message):
                if violation.number not in _NOT_BY_ADAPTERS:
                    yield RuleFinding(str(violation), exchange.cassette)


@rule(
    "C25",
    "Events are yielded as they arrive, not collected until the end.",
    source="hook stream_response",
    fix="Yield a delta for each chunk that contains text, inside the loop over `response_stream`.",
)
def events_are_not_held_back(subject: Subject) -> Iterator[RuleFinding]:
    """Feed event by event and see when text arrives."""
    for exchange in recorded_streams(subject):
        frames = Frames(subject, exchange)
        deltas = [event for event in read_stream(subject, exchange).events if event.type.endswith("_delta")]
        if len(deltas) < 3:
            continue
        decoder = make_decoder(subject, exchange)
        early = decoder.feed(frames.join(frames.events[: max(len(frames.events) * 3 // 4, len(frames.events) - 4)]))
        decoder.close()
        if not any(event.type.endswith("_delta") for event in early):
            yield RuleFinding("no delta arrived in the first three quarters of the stream", exchange.cassette)
    for exchange in recorded_streams(subject):
        found = read_stream(subject, exchange)
        brought, given = _pieces(subject, exchange, found), sum(event.type == "text_delta" for event in found.events)
        if brought > 2 and given < 2:
            yield RuleFinding(f"the text of {brought} events arrives as one", exchange.cassette)


def _pieces(subject: Subject, exchange: RecordedExchange, found: ReadResult) -> int:
    """Return how many events brought a piece of the text, each continuing the previous one."""
    text = found.message.text if found.message else ""
    frames = Frames(subject, exchange)
    at, count = 0, 0
    for event in frames.events:
        words = [leaf for _, leaf in strings(frames.data(event)) if leaf]
        piece = next((word for word in words if word != text and text.startswith(word, at)), "")
        at, count = at + len(piece), count + bool(piece)
    return count if at == len(text) else 0


@rule(
    "C26",
    "An unknown event in a stream is skipped; the message is the same without it.",
    source="hook stream_response",
    fix="Ignore events, types and fields that you do not know; never index a key that may be missing.",
)
def unknown_events_are_skipped(subject: Subject) -> Iterator[RuleFinding]:
    """One unknown event at every place of each recorded stream."""
    for exchange in recorded_streams(subject):
        frames = Frames(subject, exchange)
        plain = read_stream(subject, exchange)
        new = frames.event(json.dumps(UNKNOWN).encode(), UNKNOWN["type"])
        for place in spread_places(len(frames.events)):
            body = frames.join([*frames.events[:place], new, *frames.events[place:]])
            found = read_stream(subject, exchange, body)
            if (found.message, type(found.error)) != (plain.message, type(plain.error)) or found.escaped:
                problem = found.error or found.escaped or ""
                why = f"an unknown event before event {place} changes the message ({problem})"
                yield RuleFinding(why, exchange.cassette)
                break


@rule(
    "C27",
    "New fields and new kinds of content in a whole answer raise nothing; new content is kept.",
    source="format.md, Blocks",
    fix="""Read fields by name and ignore the others. Turn a content item of an unknown type into
    `OpaqueBlock(provider=…, kind=<its type>, data=<the object, exact>)`.""",
)
def new_content_is_kept(subject: Subject) -> Iterator[RuleFinding]:
    """A new field in every object, and a new item in every list of typed items."""
    whole = [exchange for exchange in subject.exchanges if exchange.good and not exchange.streamed]
    if not whole:
        raise NotApplicable("no cassette holds a whole answer; record one")
    for exchange in whole:
        plain = read_whole(subject, exchange)
        body = _json(exchange.body)
        for path, node in nodes(body):
            if isinstance(node, dict) and node and not _inside_arguments(path):
                changed = with_value(body, (*path, "contract_new_field"), {"a": [1]})
                found = read_whole(subject, exchange, json.dumps(changed).encode())
                if found.escaped or type(found.error) is not type(plain.error):
                    why = f"a new field in {format_path(path) or 'the body'}: {found.error or found.escaped}"
                    yield RuleFinding(why, exchange.cassette)
        for path in _typed_lists(body, plain.message):
            changed = with_value(body, path, [*value_at(body, path), UNKNOWN])
            found = read_whole(subject, exchange, json.dumps(changed).encode())
            if found.message is None or "mkz1q" not in describe(found.message):
                why = f"a new item in {format_path(path)} is not kept: {found.error or found.escaped or 'lost'}"
                yield RuleFinding(why, exchange.cassette)
            elif lost := [name for block in found.message.content for name in _lost_members(block)]:
                why = f"a new item in {format_path(path)} is kept without {', '.join(lost)}, or in another order"
                yield RuleFinding(why, exchange.cassette)


def _lost_members(block: Any) -> list[str]:
    """Return the members of the new item that a block lacks or changed; all, if only their order differs.

    An opaque block and a citation keep items whole; other blocks may keep their words alone.
    """
    items = [block.data] if block.type == "opaque" else getattr(block, "citations", ())
    kept = next((text for text in (json.dumps(thaw(item)) for item in items) if "mkz1q" in text), "")
    if not kept:
        return []
    lost = [name for name, value in UNKNOWN.items() if json.dumps({name: value})[1:-1] not in kept]
    return lost or ([] if json.dumps(UNKNOWN) in kept else list(UNKNOWN))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _inside_arguments(path: tuple[str | int, ...]) -> bool:
    return any(key in ("input", "arguments", "args") for key in path)


def _typed_lists(body: Any, message: Message | None) -> Iterator[tuple[str | int, ...]]:
    """Lists of typed items that hold the message's text: content, on wires that have such lists."""
    texts = {leaf for leaf in (message.text if message else "",) if leaf}
    for path, node in nodes(body):
        items = isinstance(node, list) and node and all(isinstance(item, dict) and "type" in item for item in node)
        if items and any(leaf in texts for _, leaf in strings(node)):
            yield path


_STATE = 8
"""So long is a signature or encrypted reasoning at least, in the cassettes that show one."""

AWKWARD: dict[str, Any] = {"z": 0, "path": "a b", "m": False, "e": "", "l": [None], "w": 1.0, "i": 9007199254740993}


@rule(
    "C28",
    "Everything in an answer is in the message: text, arguments as received, names, and opaque state.",
    source="format.md, Blocks; format.md, Streaming",
    fix="""Put every text, reasoning, signature and argument of a good answer into a block. Content that has no
    block type becomes an OpaqueBlock, state for the next request goes to `replay`, and anything else to `trace`.
    Keep the order and every value of arguments; if the wire sends them as a string, keep it as `raw_input`.""",
)
def nothing_received_is_lost(subject: Subject) -> Iterator[RuleFinding]:
    """Each string of the answer that the request did not bring, whole or in events; each object of arguments."""
    for exchange in subject.exchanges:
        message = read_answer(subject, exchange).message if exchange.good else None
        if message is None:
            continue
        kept = _strings(message)
        whole = {leaf for _, leaf in strings(encode_message(message))}
        request = json.dumps(exchange.request, ensure_ascii=False)
        bodies = json_payloads(subject, exchange)
        for path, leaf in [found for body in bodies for found in leaves(body)]:
            if not isinstance(leaf, str) or not leaf:
                continue
            if _is_source(path) and leaf not in whole:
                yield RuleFinding(f"the source {leaf[:60]!r} is not in the message", exchange.cassette)
            if not _is_said(path, leaf) or json.dumps(leaf, ensure_ascii=False) in request:
                continue
            there = json.dumps(leaf, ensure_ascii=False)[1:-1] in kept or leaf in kept
            if not there and not _is_call(leaf, message):
                yield RuleFinding(f"{format_path(path)} ({leaf[:60]!r}) is not in the message", exchange.cassette)
        if not exchange.streamed:
            yield from _arguments(subject, exchange, message)


def _is_call(leaf: str, message: Message) -> bool:
    """True for arguments that arrived as one JSON string with the service's own formatting."""
    value = _json(leaf.encode("utf-8", "surrogatepass"))
    return isinstance(value, dict) and any(value == json.loads(call.input_json) for call in message.tool_calls)


def _is_said(path: tuple[str | int, ...], leaf: str) -> bool:
    """True for prose, and for values under a name of opaque state."""
    name = next((str(key).lower() for key in reversed(path) if isinstance(key, str)), "")
    return " " in leaf.strip() or (
        len(leaf) >= _STATE and ("signature" in name or "encrypted" in name or name == "data")
    )


def _is_source(path: tuple[str | int, ...]) -> bool:
    return any("citation" in str(key).lower() or key == "annotations" for key in path)


def _arguments(subject: Subject, exchange: RecordedExchange, message: Message) -> Iterator[RuleFinding]:
    """The arguments of each recorded call replaced by awkward ones, which must be read unchanged."""
    body = json.loads(exchange.body)
    wanted = json.dumps(AWKWARD)
    for number, call in enumerate(message.tool_calls):
        found = [path for path, node in nodes(body) if call.input and node == json.loads(call.input_json)]
        changed = [with_value(body, path, AWKWARD) for path in found]
        changed += [with_value(body, path, wanted) for path, leaf in leaves(body) if leaf == call.raw_input and leaf]
        came: list[str] = []  # one for each place: calls may be equal, and only one of them is changed
        for one in changed:
            again = read_whole(subject, exchange, json.dumps(one).encode()).message
            calls = again.tool_calls if again is not None else []
            came.append(json.dumps(json.loads(calls[number].input_json)) if len(calls) > number else "nothing")
        if came and wanted not in came:
            yield RuleFinding(f"the arguments {wanted} are read as {came[0]}", exchange.cassette)


def _strings(message: Message) -> str:
    stored = encode_message(message)
    return json.dumps(stored, ensure_ascii=False) + "".join(str(leaf) for _, leaf in strings(stored))


@rule(
    "C56",
    "An answer records the provider, api and model that produced it, and a whole answer is complete.",
    source="format.md, Metadata",
    fix="""Create the message with `RequestContext.message` and do not set provider, api, model or status yourself:
    state returns only to its origin, so a wrong origin loses it.""",
)
def answers_are_credited(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded answer against the context it was read with."""
    for exchange, message in recorded_answers(subject):
        expected = subject.context(exchange).origin
        if message.metadata.origin != expected:
            yield RuleFinding(f"origin {message.metadata.origin}, expected {expected}", exchange.cassette)
        if message.metadata.status is not MessageStatus.COMPLETE:
            yield RuleFinding(f"a whole answer is {message.metadata.status}", exchange.cassette)


@rule(
    "C57",
    "Core creates the id of a call; the plugin neither makes one nor takes it from the wire.",
    source="format.md, Identity",
    fix="""Call `context.mint_tool_use_id()` once for each call, in order, and store the wire's own id as
    `provider_id`. An id that repeats in the next answer would merge two calls into one.""",
)
def ids_are_minted_by_core(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded answer with calls."""
    for exchange, message in recorded_answers(subject):
        mint = subject.context(exchange).mint_tool_use_id
        calls = message.tool_calls
        minted = {mint() for _ in range(len(calls) + 8)}  # a stream may drop a call that has started
        strange = [call.id for call in calls if call.id not in minted]
        if strange or len({call.id for call in calls}) < len(calls):
            yield RuleFinding(f"core did not mint {strange or [call.id for call in calls]}", exchange.cassette)


@rule(
    "C88",
    "A call is read with the name that its id has in the answer.",
    source="format.md, Blocks",
    fix="""Read id, name and arguments of a call from the same object of the answer. Two lists that are joined by
    position come apart as soon as one of them has another order or a gap.""",
)
def calls_keep_their_parts_together(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded whole answer with several calls, their names made different."""
    for exchange in subject.exchanges:
        if not exchange.good or exchange.streamed:
            continue
        plain = read_whole(subject, exchange).message
        calls = plain.tool_calls if plain is not None else []
        if len(calls) < 2 or not all(call.provider_id for call in calls):
            continue
        body = _json(exchange.body)
        numbers = {str(call.provider_id): f"contract_name_{at}" for at, call in enumerate(calls)}
        names = {call.name for call in calls}
        for path, leaf in list(strings(body)):
            if leaf in names and "name" in str(path[-1]):
                own = _nearest_id(body, path, numbers)
                body = with_value(body, path, numbers[own]) if own else body
        read = read_whole(subject, exchange, json.dumps(body).encode()).message
        for call in read.tool_calls if read is not None else ():
            if call.name not in names and call.name != numbers.get(str(call.provider_id)):
                why = f"the call {call.provider_id!r} is read with the name of another"
                yield RuleFinding(why, exchange.cassette)


def _nearest_id(body: Any, path: tuple[str | int, ...], ids: Collection[str]) -> str:
    """Return the id that is nearest above a place; empty if several are as near."""
    for depth in range(len(path) - 1, -1, -1):
        found = {leaf for _, leaf in strings(value_at(body, path[:depth])) if leaf in ids}
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""
