"""Feed words of an API's answers to its adapter, and see what becomes of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlingua.codec import encode_message
from interlingua.errors import InterlinguaError
from interlingua.plugins import build_request
from interlingua.types import Message, RequestOptions, tool_result, user
from tests.support import driving
from tests.tools.coverage.places import Place
from tests.tools.coverage.sdk_types import Maker, leaves, options, words
from tests.tools.coverage.wire import Event, Hints, Part, Wire, appended, ndjson, placed, sse

_POSITIONS = ("id", "index", "sequence_number", "logprobs", "obfuscation", "agent", "status", "item", "signature", "time")
_RAW = "provider_raw"


def read_whole(wire: Wire, body: Any) -> Message:
    """Return the message of a whole answer."""
    context = driving.context(wire.key, wire.api, wire.models[0])
    return driving.whole(driving.provider(wire.key), json.dumps(body).encode(), context)


def read_stream(wire: Wire, events: Sequence[Event]) -> Message:
    """Return the message of a streamed answer."""
    context = driving.context(wire.key, wire.api, wire.models[0])
    return driving.streamed(driving.provider(wire.key), encoded(wire, events), context)


def encoded(wire: Wire, events: Sequence[Event]) -> bytes:
    """Return a stream's bytes in the framing of the API."""
    if wire.framing == "aws":
        from tests.plugins.bedrock.wire import frame  # noqa: PLC0415  it needs the adapter

        return b"".join(frame(name, payload) for event in events for name, payload in event.items())
    return ndjson(events) if wire.framing == "ndjson" else sse(events, wire.event_name)


def facts(message: Message) -> dict[str, Any]:
    """Return everything that a message holds, as JSON; without its id and the time of its making."""
    found = encode_message(message)
    return {name: value for name, value in found.items() if name not in ("id", "created_at")}


def _typed(found: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(dict(found))
    made["metadata"].pop(_RAW, None)
    made["content"] = [block for block in made["content"] if block["type"] != "opaque"]
    return made


def _first_difference(one: Any, other: Any, path: str = "") -> str:
    """Return where two JSON values differ first."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in (*one, *other):
            if one.get(name) != other.get(name):
                return _first_difference(one.get(name), other.get(name), f"{path}.{name}".lstrip("."))
    if isinstance(one, list) and isinstance(other, list):
        for before, after in zip(one, other, strict=False):
            if before != after:
                return _first_difference(before, after, path)
        longer = [item for item in max(one, other, key=len)[min(len(one), len(other)) :] if isinstance(item, dict)]
        return str(longer[0].get("type", path)) if longer else path
    return path


def judge(before: Message | None, after: Message, value: Any) -> Place:
    """Compare the message with a word and the message without it.

    Args:
        before: without; None if an answer without the word cannot be read.
        after: with.
        value: what the word brought, every text and number of which must be in the message.
    """
    now = facts(after)
    if before is None:
        return Place("typed", "content")
    was = facts(before)
    if now == was:
        return Place("unplaced", "the message is the same without it")
    said = json.dumps(now, ensure_ascii=False)
    missing = [str(leaf) for leaf in leaves(value) if str(leaf) not in said]
    if missing:
        return Place("unplaced", f"{len(missing)} of its {len(leaves(value))} values are not in the message")
    if (typed := _typed(now)) != (old := _typed(was)):
        return Place("typed", _first_difference(old, typed))
    opaque = [block["kind"] for block in now["content"] if block["type"] == "opaque"]
    return Place("kept", "OpaqueBlock" if opaque and now["content"] != was["content"] else "provider_raw")


def members_of(wire: Wire, part: Part, base: Any, read: Any, requested: Hints) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each member of an object of an answer or event.

    Args:
        wire: the API.
        part: the object.
        base: the answer or events that the member is put into.
        read: reads them.
        requested: parameters of a request, which an answer may repeat.
    """
    maker = Maker()
    for name, hint in part.hints.items():
        value = maker.make(hint)
        without = _without(base, part.path, name)
        try:
            before: Message | None = read(without)
        except InterlinguaError:
            before = None
        try:
            after = read(placed(base, part.path, name, _value_at(base, part.path, name, value)))
        except InterlinguaError as error:
            yield name, _refusal(error, name)
            continue
        place = judge(before, after, _value_at(base, part.path, name, value))
        if place.state == "unplaced" and wire.echoed and name in requested and not part.path[:-1]:
            place = Place("repeated", "the request's own value")
        elif place.state == "unplaced" and _is_constant(hint):
            place = Place("constant", "the same word in every answer")
        yield name, place


def _is_constant(hint: Any) -> bool:
    return all(len(words(one)) == 1 for one in options(hint))


def _refusal(error: InterlinguaError, name: str) -> Place:
    named = name in str(error) or name in str(getattr(error, "path", ""))
    return Place("refused" if named else "unplaced", f"{type(error).__name__}: {error}"[:90])


def _value_at(base: Any, path: Sequence[str | int], name: str, value: Any) -> Any:
    """Return a made value; where the answer holds objects or lists that other probes vary, what it has."""
    at = base
    for step in path:
        at = at[step] if not isinstance(at, dict) or step in at else {}
    present = at.get(name) if isinstance(at, dict) else None
    return present if isinstance(present, (dict, list)) else value


def _without(base: Any, path: Sequence[str | int], name: str) -> Any:
    made = copy.deepcopy(base)
    at = made
    for step in path:
        if isinstance(at, dict) and step not in at:
            return made
        at = at[step]
    at.pop(name, None)
    return made


def blocks(wire: Wire) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each kind of block in a whole answer, and in the next request to the same model."""
    maker, plain = Maker(), read_whole(wire, wire.answer)
    for kind, hint in wire.blocks.items():
        block = wire.block(maker, kind, hint)
        yield kind, _block(wire, plain, lambda block=block: read_whole(wire, appended(wire.answer, wire.content, block)), block, kind)


def streamed_blocks(wire: Wire) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each kind of block in a stream."""
    if wire.stream_block is None:
        return
    maker, plain = Maker(), read_stream(wire, wire.stream)
    for kind, hint in wire.blocks.items():
        block = wire.block(maker, kind, hint)
        events = [*wire.stream[: wire.event_at], *wire.stream_block(block), *wire.stream[wire.event_at :]]
        yield kind, _block(wire, plain, lambda events=events: read_stream(wire, events), block, kind)


def _block(wire: Wire, plain: Message, read: Any, block: Event, kind: str) -> Place:
    try:
        message = read()
    except InterlinguaError as error:
        return _refusal(error, kind)
    place = judge(plain, message, block)
    return place if place.state == "unplaced" else Place(place.state, f"{place.note}; {_return(wire, message, block)}")


def _return(wire: Wire, message: Message, block: Event) -> str:
    """Return what the next request to the same model says of a block."""
    calls = [tool_result(call, "done") for call in message.tool_calls]
    history = [user("q"), message, *calls, *([] if calls else [user("and now")])]
    try:
        request = build_request(driving.provider(wire.key), history, [], RequestOptions(model=wire.models[0], api=wire.api))
    except InterlinguaError as error:
        return f"refused in the next request: {type(error).__name__}"
    sent = request.body.decode()
    found = leaves(block)
    back = [leaf for leaf in found if str(leaf) in sent]
    if len(back) == len(found):
        return "goes back"
    rows = [loss.verdict for loss in request.losses]
    return f"{'goes back in part' if back else 'not sent back'}{', with a row' if rows else ''}"


def events(wire: Wire) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each kind of event; those that only say where the stream is are signals."""
    maker, plain = Maker(), read_stream(wire, wire.stream) if wire.stream else None
    own = {event.get(wire.event_name) for event in wire.stream} if not wire.keyed else {n for e in wire.stream for n in e}
    for kind, hint in wire.events.items():
        if kind in own:
            yield kind, Place("typed", "read in the stream")
            continue
        made = {kind: maker.make(hint)} if wire.keyed else maker.make(hint, tag=(wire.event_name, kind))
        yield kind, _event(wire, plain, [made], made)
    for kind, (hint, around) in wire.deltas.items():
        made = {kind: maker.make(hint)} if wire.keyed else maker.make(hint, tag=("type", kind))
        yield f"delta {kind}", _event(wire, plain, around(made), made)


def _event(wire: Wire, plain: Message | None, added: Sequence[Event], made: Event) -> Place:
    contents = {name: value for name, value in made.items() if not name.endswith(_POSITIONS)}
    try:
        after = read_stream(wire, [*wire.stream[: wire.event_at], *added, *wire.stream[wire.event_at :]])
    except InterlinguaError as error:
        return Place("refused", f"{type(error).__name__}"[:90])
    place = judge(plain, after, contents)
    if place.state == "unplaced" and not leaves(contents):
        return Place("signal", "holds no content")
    return place
