"""Fields that a newer version wrote beside those known here: taken aside on reading, put back on writing.

Never drops one and never lets one slip onto another block: a block's fields go back only onto that very block,
unchanged; after an edit they stay in `metadata.extra`. The codec's message functions come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from interlingua.codec.shapes import BLOCKS, names_of
from interlingua.json import dumps
from interlingua.types.blocks import CacheHint, ImageSource
from interlingua.types.messages import CostParts, ErrorInfo, Message, MessageMetadata, RoutingDecisionRecord, Usage

UNKNOWN_FIELDS = "_unknown_fields"


"""The key in `MessageMetadata.extra`: `{place: {field: value}}`, as docs/explanation/decisions/110 describes."""


_names = cache(names_of)


_PARTS: dict[str, type] = {
    "metadata": MessageMetadata,
    "usage": Usage,
    "cost": CostParts,
    "routing": RoutingDecisionRecord,
    "error": ErrorInfo,
    "source": ImageSource,
    "cache": CacheHint,
}


def take_unknown(data: dict[str, Any], written: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return `{place: fields}` of every object of a stored message that has unknown fields; `data` stays as it is.

    Args:
        data: the stored message.
        written: gives its canonical form; asked only when there are unknown fields.
    """
    found = {
        path: {name: value for name, value in part.items() if name not in _names(cls)}
        for path, part, cls in _objects(data)
        if cls is not MessageMetadata and not part.keys() <= _names(cls)  # metadata has room of its own
    }
    if not found:
        return {}
    known = {path: part for path, part, _ in _objects(written())}
    return {_place(path, known[path]): fields for path, fields in found.items()}


def unknown_metadata(data: dict[str, Any]) -> dict[str, Any]:
    """Return the unknown fields of the stored metadata."""
    metadata = data.get("metadata")
    names = _names(MessageMetadata)
    if not isinstance(metadata, dict) or metadata.keys() <= names:
        return {}
    return {name: value for name, value in metadata.items() if name not in names}


def put_back(data: dict[str, Any]) -> None:
    """Put the fields taken aside back where they stood, in the freshly written form of a message."""
    places = data["metadata"].get(UNKNOWN_FIELDS)
    if not isinstance(places, dict):
        return
    left = dict(places)
    parts = [(_place(path, part), part) for path, part, _ in _objects(data)]  # before any of them changes
    for place, part in parts:
        fields = left.get(place)
        if isinstance(fields, dict) and part.keys().isdisjoint(fields):
            part.update(fields)
            del left[place]
    if left:
        data["metadata"][UNKNOWN_FIELDS] = left
    else:
        del data["metadata"][UNKNOWN_FIELDS]


def _place(path: str, known: dict[str, Any]) -> str:
    if not path.startswith("content"):
        return path
    from hashlib import blake2b  # noqa: PLC0415  slow to load, and few messages are of a newer version

    return f"{path}#{blake2b(dumps(known), digest_size=6).hexdigest()}"


def _objects(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], type]]:
    """Yield every object of a stored message that has a known class, the innermost first, with its path and class."""
    yield from _blocks(data.get("content"), "content")
    yield from _parts(data, "", Message)
    yield "", data, Message


def _blocks(content: Any, path: str) -> Iterator[tuple[str, dict[str, Any], type]]:
    if not isinstance(content, list):
        return
    for index, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        cls = BLOCKS.get(kind) if isinstance(kind, str) else None
        if cls is not None:
            here = f"{path}[{index}]"
            if kind == "tool_result":
                yield from _blocks(block.get("content"), f"{here}.content")
            yield from _parts(block, here, cls)
            yield here, block, cls


def _parts(data: dict[str, Any], path: str, cls: type) -> Iterator[tuple[str, dict[str, Any], type]]:
    for name, part_cls in _PARTS.items():
        part = data.get(name)
        if name in _names(cls) and isinstance(part, dict) and part_cls is not cls:
            if cls.__name__ == "ToolResultBlock" and name == "metadata":
                continue  # free JSON, of no class
            here = f"{path}.{name}" if path else name
            yield from _parts(part, here, part_cls)
            yield here, part, part_cls
