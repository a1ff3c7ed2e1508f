"""The facts about one API that the probes need: types of its SDK by part, and an answer and a stream to vary."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from tests.tools.coverage.sdk_types import Maker, members

Hints = Mapping[str, Any]
Event = dict[str, Any]


@attrs.frozen
class Part:
    """An object within an answer or an event whose members are checked.

    Attributes:
        label: comes before its members' names on the page.
        path: where the object is.
        hints: its members.
    """

    label: str
    path: tuple[str | int, ...]
    hints: Hints


@attrs.frozen(kw_only=True, eq=False)
class Wire:
    """One API of one service.

    Attributes:
        name: on the page.
        sdk: the distribution whose types are read.
        key: the provider.
        api: the provider's name of the API.
        models: names of models; a parameter counts for the first that takes it.
        parameters: of a request, with a dot if they are members of an object.
        headers: where the SDK sends a parameter that is no member of the body: its header.
        sent: kinds of what messages of a request may hold.
        tools: kinds of tools.
        answer: a whole answer.
        parts: objects of the answer.
        blocks: kinds of what an answer holds.
        content: where an answer holds them.
        keyed: an object's kind is the name of its only member, not the word in `type`.
        stream: the events of a streamed answer.
        chunks: the events whose members are varied, by their place in the stream, and their objects.
        stream_block: the events of one block, from its place and the block; None if only deltas carry blocks.
        events: kinds of events, added before the last of the stream; `event_name` is the member with the kind.
        deltas: kinds of changes to a block, each with the events around it.
        pieces: events that hold a piece of an item: the kind of the item, and where the whole item has it again.
        endings: kinds of last events, each with its members, instead of the last of the stream.
        echoed: whether a whole answer repeats parameters of the request.
    """

    name: str
    sdk: str
    key: str
    api: str
    models: tuple[str, ...]
    parameters: Hints
    headers: Mapping[str, str] = attrs.field(factory=dict)
    sent: Hints = attrs.field(factory=dict)
    tools: Hints = attrs.field(factory=dict)
    answer: Event
    parts: Sequence[Part]
    blocks: Hints = attrs.field(factory=dict)
    content: tuple[str | int, ...] = ()
    keyed: bool = False
    stream: Sequence[Event] = ()
    chunks: Sequence[tuple[int, Sequence[Part]]] = ()
    stream_block: Callable[[Event], Sequence[Event]] | None = None
    events: Hints = attrs.field(factory=dict)
    event_name: str = "type"
    event_at: int = -1
    deltas: Mapping[str, tuple[Any, Callable[[Any], Sequence[Event]]]] = attrs.field(factory=dict)
    pieces: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)
    endings: Mapping[str, Event] = attrs.field(factory=dict)
    framing: Literal["sse", "ndjson", "aws"] = "sse"
    echoed: bool = False

    def block(self, maker: Maker, kind: str, hint: Any) -> Event:
        """Return a block of a kind with all its members."""
        if self.keyed:
            return {kind: maker.make(hint)}
        made: Event = maker.make(hint, tag=("type", kind))
        return made


def placed(value: Any, path: Sequence[str | int], name: str, item: Any) -> Any:
    """Return a copy of a JSON value in which the object at a path has one more member."""
    made = copy.deepcopy(value)
    at = made
    for step in path:
        if isinstance(at, dict) and step not in at:
            at[step] = {}
        at = at[step]
    at[name] = item
    return made


def appended(value: Any, path: Sequence[str | int], item: Any) -> Any:
    """Return a copy of a JSON value in which the list at a path has one more item."""
    made = copy.deepcopy(value)
    at = made
    for step in path:
        at = at[step]
    at.append(item)
    return made


def flat(hints: Hints, *objects: str) -> dict[str, Any]:
    """Return parameters, and those of the named objects among them with dotted names."""
    more = {f"{outer}.{name}": hint for outer in objects for name, hint in members(hints[outer]).items()}
    return {**hints, **more}


def sse(events: Sequence[Event], name: str) -> bytes:
    """Return events as server-sent events."""
    lines = (
        (f"event: {event[name]}\n" if isinstance(event.get(name), str) else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    )
    return "".join(lines).encode()


def ndjson(events: Sequence[Event]) -> bytes:
    """Return events a line each."""
    return "".join(json.dumps(event) + "\n" for event in events).encode()
