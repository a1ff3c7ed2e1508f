"""Write canonical values as JSON data by functions that cattrs generates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Any, get_args

import attrs
import orjson
from cattrs import Converter
from cattrs.fns import identity
from cattrs.gen import make_dict_unstructure_fn_from_attrs, override

from interlingua._json import FrozenDict, FrozenList, dumps
from interlingua.types.blocks import (
    ContentBlock,
    MediaBlock,
    MediaSource,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from interlingua.types.messages import (
    NO_METADATA,
    CostParts,
    ErrorInfo,
    Message,
    MessageMetadata,
    Provenance,
    RoutingDecision,
    RoutingMode,
    StopReason,
    Usage,
)
from interlingua.types.tools import CacheHint, ToolDefinition, WireTool

Write = Callable[[Any], Any]

BLOCKS: dict[str, Any] = {block.type: block for block in get_args(ContentBlock) if block is not UnknownBlock}
VALUES: frozenset[Any] = frozenset(
    (*BLOCKS.values(), CacheHint, CostParts, ErrorInfo, MediaSource, Message, MessageMetadata, RoutingDecision,
     ToolDefinition, Usage, WireTool)
)  # fmt: skip


@cache
def stored_fields(cls: type) -> tuple[attrs.Attribute[Any], ...]:
    """Return the fields that are stored, in order, their types resolved; `extra` is laid out beside them."""
    attrs.resolve_types(cls, localns={"ContentBlock": ContentBlock})
    left_out = ("extra", "losses") if cls is MessageMetadata else ()
    return tuple(field for field in attrs.fields(cls) if field.init and field.name not in left_out)


@cache
def stored_names(cls: type) -> frozenset[str]:
    """Return the keys of the stored form."""
    names = {field.name for field in stored_fields(cls)}
    return frozenset(names | {"type"} if cls in BLOCKS.values() else names)


@cache
def object_fields(cls: type) -> dict[str, Any]:
    """Return the fields that hold further objects: name -> class, or ContentBlock for an array of blocks."""
    kinds = [(field.name, kind) for field in stored_fields(cls) for kind in (field.type, *get_args(field.type))]
    tools = [(name, WireTool) for name, kind in kinds if kind == ToolDefinition | WireTool]  # the one with more fields
    return {name: kind for name, kind in (*kinds, *tools) if kind == ContentBlock or kind in VALUES}


def stored_objects(data: dict[str, Any], cls: type = Message, path: str = "") -> Iterator[tuple[str, Any, type]]:
    """Yield (path, object, class) of every object of a known class in a stored value, the innermost first."""
    for name, kind in object_fields(cls).items():
        part, here = data.get(name), f"{path}.{name}".removeprefix(".")
        if kind in VALUES:
            if isinstance(part, dict):
                yield from stored_objects(part, kind, here)
            for index, one in enumerate(part if isinstance(part, (list, tuple)) else ()):
                if isinstance(one, dict):
                    yield from stored_objects(one, kind, f"{here}[{index}]")
        elif isinstance(part, (list, tuple)):
            for index, block in enumerate(part):
                if isinstance(block, dict) and type(block.get("type")) is str and block["type"] in BLOCKS:
                    yield from stored_objects(block, BLOCKS[block["type"]], f"{here}[{index}]")
    yield path, data, cls


UNKNOWN_FIELDS = "_unknown_fields"
"""The key in `MessageMetadata.extra`: `{place: {field: value}}`, as docs/explanation/decisions/007 describes."""


NEWER_WORDS = "_newer_words"
"""The key in `MessageMetadata.extra` of words that no enum here has, by their field: `{"routing.mode": "auction"}`.

The value is `other` then, and the word is written back unless the value changes.
"""

WORDS: dict[str, type[StrEnum]] = {"stop_reason": StopReason, "provenance": Provenance, "routing.mode": RoutingMode}
"""Fields of the metadata that a newer version may have further words for."""


def holder_of(metadata: Any, path: str) -> tuple[Any, str]:
    """Return the object of stored metadata that holds a field of `WORDS`, and the field's name."""
    outer, _, name = path.rpartition(".")
    found = metadata.get(outer) if outer and isinstance(metadata, dict) else metadata
    return (found if isinstance(found, dict) else {}), name


def place_of(path: str, written: dict[str, Any]) -> str:
    """Name an object of a message; blocks by their content too, so that fields never go back onto another block."""
    if not path.startswith("content"):
        return path
    from hashlib import blake2b  # noqa: PLC0415  slow to load, and few messages are of a newer version

    return f"{path}#{blake2b(dumps(written), digest_size=6).hexdigest()}"


# Written even if they have their defaults, as are the fields without one (format.md, Canonical JSON).
# The media types are among them because their defaults may change one day.
_ALWAYS_WRITTEN: dict[type, str] = {
    ToolUseBlock: "input",
    ToolResultBlock: "content is_error",
    **dict.fromkeys(get_args(MediaBlock), "media_type"),
    ThinkingBlock: "signature",
    CacheHint: "type",
    MessageMetadata: "model provider routing usage parent_tool_use_id status provider_raw user_id team_id",
    RoutingDecision: "rule_name confidence alternatives_considered",
    Usage: (
        "input_tokens output_tokens cached_input_tokens cache_creation_input_tokens cost_usd pricing_version latency_ms"
    ),
    Message: "id session_id metadata created_at schema_version",
    ToolDefinition: "requires_workspace",
    WireTool: "requires_workspace api",
}
_UNCHANGED = (str, int, float, bool, NoneType, FrozenDict)  # frozen JSON cannot change, so it needs no copy


class _Writers(dict[type, Write]):
    """The function of each class a value may hold, made when it is first needed."""

    def __missing__(self, kind: type) -> Write:
        if kind is MessageMetadata:
            made = _metadata_writer()
        elif kind in VALUES:
            made = _value_writer(kind)
        elif issubclass(kind, StrEnum):
            made = attrgetter("_value_")
        else:
            made = _converter.get_unstructure_hook(kind)
        self[kind] = made
        return made


_converter = Converter()


def write_value(value: Any) -> Any:
    """Write any value by its class."""
    return _writers[type(value)](value)


def write_message(message: Message) -> dict[str, Any]:
    """Write a message, with the fields a newer version wrote put back in their places."""
    data: dict[str, Any] = _writers[Message](message)
    if UNKNOWN_FIELDS in message.metadata.extra:
        _put_back(data)
    return data


def _write_time(time: datetime) -> str:
    """Write a time, in UTC as all are, as ISO-8601 with microseconds and `Z`."""
    if time.microsecond and type(time) is datetime:  # the same at a quarter of the cost
        return orjson.dumps(time, option=orjson.OPT_UTC_Z)[1:-1].decode()
    return time.isoformat(timespec="microseconds")[:-6] + "Z"


_writers = _Writers(dict.fromkeys((*_UNCHANGED, FrozenList), identity))
_writers |= {Decimal: str, datetime: _write_time, UnknownBlock: attrgetter("raw")}
_writers[tuple] = lambda items: [_writers[type(item)](item) for item in items]


def _value_writer(cls: type) -> Write:
    """Generate the writer of one class.

    cattrs writes the fields that may be left out after all others; if that is not the order of the class, each run of
    fields gets its own function.
    """
    fields = stored_fields(cls)
    always = {field.name for field in fields if field.default is attrs.NOTHING}
    always.update(_ALWAYS_WRITTEN.get(cls, "").split())
    runs: list[list[attrs.Attribute[Any]]] = [[]]
    if cls in BLOCKS.values():
        runs[0].append(fields[0].evolve(name="type", alias="type", type=str, default=attrs.NOTHING, converter=None))
        always.add("type")
    for field in fields:
        if field.name in always and runs[-1] and runs[-1][-1].name not in always:
            runs.append([])
        runs[-1].append(field)
    overrides: dict[str, Any] = {
        field.name: override(
            omit_if_default=field.name not in always,
            unstruct_hook=identity if _is_unchanged(cls, field) else write_value,
        )
        for run in runs
        for field in run
    }
    writers: list[Write] = [make_dict_unstructure_fn_from_attrs(run, cls, _converter, **overrides) for run in runs]
    if len(writers) == 1:
        return writers[0]

    def write(value: Any) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for writer in writers:
            data |= writer(value)
        return data

    return write


def _is_unchanged(cls: type, field: attrs.Attribute[Any]) -> bool:
    """Return whether a field's value is JSON already; a call's `kind` may be a member of an enum."""
    kinds = get_args(field.type) or (field.type,)
    return all(kind in _UNCHANGED for kind in kinds) and (cls, field.name) != (ToolUseBlock, "kind")


def _metadata_writer() -> Write:
    """Make the writer of MessageMetadata: fields of a newer version are written beside the known ones."""
    write = _value_writer(MessageMetadata)
    nothing = write(NO_METADATA)

    def write_metadata(metadata: MessageMetadata) -> dict[str, Any]:
        if metadata is NO_METADATA:
            return dict(nothing)
        data: dict[str, Any] = write(metadata)
        data |= metadata.extra
        words = data.pop(NEWER_WORDS, None)
        for path, word in (words if isinstance(words, dict) else {}).items():
            holder, name = holder_of(data, path)
            if path in WORDS and holder.get(name) == "other":
                holder[name] = word
        return data

    return write_metadata


def _put_back(data: dict[str, Any]) -> None:
    """Put unknown fields back into their blocks; those whose block has changed stay in the metadata."""
    places = data["metadata"].get(UNKNOWN_FIELDS)
    if not isinstance(places, dict) or not places:
        return
    left = dict(places)
    # before any of them changes; unknown fields of the metadata are in `extra` itself
    parts = [(place_of(path, part), part, cls) for path, part, cls in stored_objects(data) if path != "metadata"]
    for place, part, cls in parts:
        fields = left.get(place)
        if fields and isinstance(fields, dict) and (stored_names(cls) | part.keys()).isdisjoint(fields):
            part.update(fields)
            del left[place]
    if left:
        data["metadata"][UNKNOWN_FIELDS] = left
    else:
        del data["metadata"][UNKNOWN_FIELDS]
