"""Feed words of an API's answers to its adapter, and see what becomes of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlingua.codec import encode_message
from interlingua.errors import InterlinguaError, MalformedResponseError, ProviderError, StreamInterruptedError
from interlingua.plugins import build_request
from interlingua.types import Message, RequestOptions, tool_result, user
from tests.support import driving
from tests.tools.coverage.places import Place
from tests.tools.coverage.sdk_types import Maker, leaves, members, options, words
from tests.tools.coverage.wire import Event, Hints, Part, Wire, appended, ndjson, placed, sse

_POSITIONS = (
    "index",
    "Index",
    "sequence_number",
    "event_id",
    "item_id",
    "interaction_id",
    "obfuscation",
    "estimated_tokens",
)
_CONSTANTS = ("object", "role")  # typed as any text by some SDKs
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
        from tests.plugins.bedrock.wire import frame

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


def _is_position(path: str) -> bool:
    """Return whether a member says only where its object belongs, or is padding."""
    return path.endswith(_POSITIONS)


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
    if missing := [path for path, leaf in leaves(value).items() if str(leaf) not in said and not _is_position(path)]:
        return Place("unplaced", f"not in the message: {', '.join(missing)}")
    if (typed := _typed(now)) != (old := _typed(was)):
        return Place("typed", _first_difference(old, typed))
    opaque = [block["kind"] for block in now["content"] if block["type"] == "opaque"]
    return Place("kept", "OpaqueBlock" if opaque and now["content"] != was["content"] else "provider_raw")


def members_of(
    wire: Wire, part: Part, base: Any, read: Any, requested: Hints, read_cut: Any = None
) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each member of an object of an answer or event.

    Args:
        wire: the API.
        part: the object.
        base: the answer or events that the member is put into.
        read: reads them.
        requested: parameters of a request, which an answer may repeat.
        read_cut: reads a stream that breaks off after the event; later events may replace its values.
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
        if place.state == "unplaced" and read_cut is not None:
            place = _until_replaced(
                judge(read_cut(without), read_cut(placed(base, part.path, name, value)), value), place
            )
        if place.state == "unplaced" and wire.echoed and name in requested and not part.path[:-1]:
            place = Place("repeated", "the request's own value")
        elif place.state == "unplaced" and (_is_constant(hint) or name in _CONSTANTS):
            place = Place("constant", "the same word in every answer")
        elif place.state == "unplaced" and _is_position(name):
            place = Place("signal", "a position, or padding")
        yield name, place


def _until_replaced(cut: Place, whole: Place) -> Place:
    return whole if cut.state == "unplaced" else Place(cut.state, f"{cut.note}; a later event replaces it")


def _is_constant(hint: Any) -> bool:
    return all(len(words(one)) == 1 for one in options(hint))


def _refusal(error: InterlinguaError, name: str) -> Place:
    if isinstance(error, ProviderError) and not isinstance(error, (MalformedResponseError, StreamInterruptedError)):
        return Place("typed", type(error).__name__)
    named = name in str(error) or name in str(getattr(error, "path", ""))
    return Place("refused" if named else "unplaced", f"{type(error).__name__}: {error}"[:90])


def _value_at(base: Any, path: Sequence[str | int], name: str, value: Any) -> Any:
    """Return a made value; where the answer holds objects or lists that other probes vary, what it has."""
    at = base
    for step in path:
        at = at[step] if not isinstance(at, dict) or step in at else {}
    present = at.get(name) if isinstance(at, dict) else None
    keep = isinstance(present, (dict, list)) or (present is not None and (name in _CONSTANTS or _is_position(name)))
    return present if keep else value


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
        yield (
            kind,
            _block(
                wire,
                plain,
                lambda block=block: read_whole(wire, appended(wire.answer, wire.content, block)),
                block,
                kind,
            ),
        )


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
        request = build_request(
            driving.provider(wire.key), history, [], RequestOptions(model=wire.models[0], api=wire.api)
        )
    except InterlinguaError as error:
        return f"refused in the next request: {type(error).__name__}"
    sent = request.body.decode()
    found = leaves(block)
    back = [leaf for leaf in found.values() if str(leaf) in sent]
    if len(back) == len(found):
        return "goes back"
    rows = [loss.verdict for loss in request.losses]
    return f"{'goes back in part' if back else 'not sent back'}{', with a row' if rows else ''}"


def events(wire: Wire) -> Iterator[tuple[str, Place]]:
    """Yield what becomes of each kind of event; those that only say where the stream is are signals."""
    maker, plain = Maker(), read_stream(wire, wire.stream) if wire.stream else None
    own = {name for event in wire.stream for name in (event if wire.keyed else [str(event.get(wire.event_name))])}
    for kind, hint in wire.events.items():
        made = {kind: maker.make(hint)} if wire.keyed else maker.make(hint, tag=(wire.event_name, kind))
        if kind in wire.endings:
            yield kind, _ending(wire, kind)
        elif kind in own:
            yield kind, Place("typed", "read in the stream")
        elif kind in wire.pieces:
            yield kind, _piece(wire, made, *wire.pieces[kind])
        else:
            yield kind, _event(wire, plain, [made], made)
    for kind, (hint, around) in wire.deltas.items():
        made = {kind: maker.make(hint)} if wire.keyed else maker.make(hint, tag=("type", kind))
        yield f"delta {kind}", _event(wire, plain, around(made), made)


def _event(wire: Wire, plain: Message | None, added: Sequence[Event], made: Event) -> Place:
    contents = {name: value for name, value in made.items() if not _is_position(name)}
    try:
        after = read_stream(wire, [*wire.stream[: wire.event_at], *added, *wire.stream[wire.event_at :]])
    except InterlinguaError as error:
        return _refusal(error, str(made.get(wire.event_name)))
    place = judge(plain, after, contents)
    if place.state == "unplaced" and not leaves(contents):
        return Place("signal", "holds no content")
    before = wire.stream[: wire.event_at]
    if place.state == "unplaced" and wire.event_at:
        place = _until_replaced(judge(read_cut(wire, before), read_cut(wire, [*before, *added]), contents), place)
    if place.state == "unplaced" and contents.keys() - {wire.event_name} == wire.stream[-1].keys() & contents.keys() - {
        wire.event_name
    }:
        return Place("repeated", f"its object comes again in {wire.stream[-1][wire.event_name]}")
    return place


def _ending(wire: Wire, kind: str) -> Place:
    """Return what becomes of a stream that ends with another event."""
    try:
        read_stream(wire, [*wire.stream[:-1], {wire.event_name: kind, **wire.endings[kind]}])
    except InterlinguaError as error:
        return _refusal(error, kind)
    return Place("typed", "ends the message")


def _piece(wire: Wire, made: Event, kind: str, member: str) -> Place:
    """Return what becomes of a piece of an item when the stream breaks off after it, else where it comes again."""
    item = {"type": kind, "id": "item_1", "call_id": "call_1", "name": "look_up", "status": "in_progress"}
    started = [
        *wire.stream[: wire.event_at],
        {wire.event_name: "response.output_item.added", "output_index": 1, "item": item},
    ]
    event = {**made, "item_id": "item_1", "output_index": 1}
    event |= {name: 0 for name in made if name.endswith("_index") and name != "output_index"}
    contents = {name: value for name, value in event.items() if not _is_position(name)}
    try:
        place = judge(read_cut(wire, started), read_cut(wire, [*started, event]), contents)
    except InterlinguaError as error:
        return _refusal(error, kind)
    if place.state != "unplaced":
        return Place(place.state, f"{place.note}; also where the stream breaks off")
    if not leaves(contents):
        return Place("signal", "holds no content")
    again = member in members(wire.blocks[kind])
    return Place("repeated", f"comes again as {kind}.{member} in the whole item") if again else place


def read_cut(wire: Wire, events: Sequence[Event]) -> Message:
    """Return the message of a stream that breaks off."""
    try:
        return read_stream(wire, events)
    except StreamInterruptedError as error:
        if error.partial is None:
            raise
        return error.partial
