"""Check that every leaf of a history is in the request or in the loss ledger, and in exactly one of the two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, NamedTuple

from interlingua.plugins import Loss, dumps, loads, repair_surrogates, thaw
from interlingua.types import (
    ContentBlock,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from interlingua_contract import json_paths

MEDIA = ("image", "audio", "video", "document")
_FIELDS = ("title", "context", "transcript", "detail")


class Place(NamedTuple):
    """The subject of a ledger row: a block of a message, or media inside a result, by type."""

    message: int
    block: int
    block_type: str


class Leaf(NamedTuple):
    """One leaf.

    Attributes:
        place: the block it belongs to, as a path of the ledger.
        kind: text, thinking, signature, data, call, form, citations, error, place, role (of a system message, or of
            media in an answer), content, cache, lifetime (of a cache hint), or a field of a media block.
        value: the value to find.
        block: the block it belongs to, for kinds that are recognised by structure.
        part: number of the part inside a result; several parts of one type share a place.
    """

    place: Place
    kind: str
    value: Any
    block: Any
    part: int = 0


def leaves_of(messages: Sequence[Message]) -> Iterator[Leaf]:
    """Yield the leaves of a history, in order."""
    for index, message in enumerate(messages):
        for at, block in enumerate(message.content):
            place = Place(index, at, block.type)
            if message.role is Role.SYSTEM:
                yield Leaf(place, "role", getattr(block, "text", ""), block)
            yield from _of_block(place, block)
            if message.role is Role.ASSISTANT and block.type in MEDIA:
                yield Leaf(place, "role", block.source.data, block)  # type: ignore[union-attr]


def is_blank(block: ContentBlock) -> bool:
    """True for blank text: wires refuse it, and a ledger row about it stands for no leaf."""
    return isinstance(block, TextBlock) and not block.text.strip()


def _of_block(place: Place, block: ContentBlock) -> Iterator[Leaf]:
    if isinstance(block, ToolResultBlock):
        yield from _of_result(place, block)
    elif block.type in MEDIA:
        yield from _of_media(place, block)
    else:
        yield from [Leaf(place, kind, value, block) for kind, value in _text_fields(block) if value]
    if getattr(block, "signature", None):
        yield Leaf(place, "signature", block.signature, block)  # type: ignore[union-attr]
    if (hint := getattr(block, "cache", None)) is not None:
        yield from [Leaf(place, kind, hint, block) for kind in ("cache", "lifetime") if kind == "cache" or hint.ttl]


def _text_fields(block: ContentBlock) -> Iterator[tuple[str, Any]]:
    if isinstance(block, TextBlock):
        yield "text", "" if is_blank(block) else block.text
        yield "citations", list(block.citations)
    elif isinstance(block, ThinkingBlock):
        yield "thinking", block.text
    elif isinstance(block, RedactedThinkingBlock):
        yield "data", block.data
    elif isinstance(block, ToolUseBlock):
        yield "call", block.input_json
        yield "form", block.raw_input if block.parse_error is not None else None
    elif isinstance(block, OpaqueBlock):
        yield "content", block.data
    elif isinstance(block, UnknownBlock):
        yield "content", block.raw


def _of_media(place: Place, block: Any, part: int = 0) -> Iterator[Leaf]:
    yield Leaf(place, "data", block.source.data, block, part)
    for name in _FIELDS:
        if (value := getattr(block, name, None)) and (name, value) != ("detail", "auto"):  # which says nothing
            yield Leaf(place, name, value, block, part)


def _of_result(place: Place, block: ToolResultBlock) -> Iterator[Leaf]:
    if block.is_error:
        yield Leaf(place, "error", True, block)
    for number, part in enumerate(block.content):
        if isinstance(part, TextBlock):
            if part.text:
                yield Leaf(place, "text", part.text, block, number)
        elif part.type in MEDIA:
            inner = place._replace(block_type=part.type)
            yield from _of_media(inner, part, number)
            yield Leaf(inner, "place", (block.tool_name, _texts(block.content)), part, number)
        else:
            yield Leaf(place._replace(block_type=part.type), "content", getattr(part, "data", None), part, number)


def _texts(parts: Iterable[ContentBlock]) -> tuple[str, ...]:
    return tuple(part.text for part in parts if isinstance(part, TextBlock) and part.text)


_USER = {"user", "user_input"}
"""Roles and step types of messages of the user."""
_SHORT = 3
"""Strings up to this length occur everywhere and prove nothing."""


class Body:
    """A JSON body."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.tree = loads(raw)

    @cached_property
    def strings(self) -> list[tuple[json_paths.Path, str]]:
        """Every string leaf with its path."""
        return list(json_paths.strings(self.tree))

    @cached_property
    def texts(self) -> Counter[str]:
        """Every string, those inside strings that hold JSON included."""
        return Counter(json_paths.texts(self.tree))

    @cached_property
    def _all(self) -> str:
        return "\0\0".join(self.texts)

    @cached_property
    def _objects(self) -> set[bytes]:
        """Every object and list, and every object inside a string, written compactly."""
        made = {dumps(node) for _, node in json_paths.nodes(self.tree)}
        for _, text in self.strings:
            if text[:1] == "{":
                with suppress(ValueError):
                    made.add(dumps(loads(text)))
        return made

    def has_text(self, text: str) -> bool:
        """Tell whether the body contains this text whole; blank text counts only as a string by itself."""
        text = repair_surrogates(text)
        return text in self._all if text.strip() else text in self.texts

    def has_object(self, text: str) -> bool:
        """Tell whether the body has a JSON object or list unchanged, keys in order; or the text, if it is not JSON."""
        try:
            value = loads(text)
        except ValueError:
            return self.has_text(text)
        return dumps(value) in self._objects

    def has_own_call(self, wire_id: str, call: ToolUseBlock) -> bool:
        """Tell whether the object with a call's id has each argument, and its tool's name only as part of a word.

        That is the form of a tool of the service itself, such as the type `shell_call`.
        """
        for _, node in json_paths.nodes(self.tree):
            if isinstance(node, dict) and wire_id and wire_id in node.values():
                inside = {dumps(value) for _, value in chain(json_paths.nodes(node), json_paths.leaves(node))}
                words = {text for _, text in json_paths.strings(node)}
                own = call.name not in words and any(call.name in word for word in words)
                return own and all(dumps(value) in inside for value in thaw(call.input).values())
        return False

    def has_content(self, value: Any) -> bool:
        """Tell whether every string of a JSON value is there."""
        return all(self.has_text(leaf) for _, leaf in json_paths.strings(thaw(value)) if len(leaf) > _SHORT)

    def wraps(self, text: str) -> bool:
        """Tell whether this text appears only as the single member of an object that wraps it."""
        bare = [path for path, leaf in self.strings if leaf == repair_surrogates(text)]
        return not any(len(json_paths.value_at(self.tree, path[:-1])) > 1 for path in bare)

    def tags(self, text: str) -> bool:
        """Tell whether a system message is written as user text in tags."""
        return self.has_text(f"<system>\n{text}")

    def is_only_of_user(self, text: str) -> bool:
        """Tell whether this text appears in messages of the user only."""
        return all(self._is_of_user(path) for path, leaf in self.strings if text in leaf)

    def _is_of_user(self, path: json_paths.Path) -> bool:
        around = [json_paths.value_at(self.tree, path[:end]) for end in range(len(path))]
        return any(member in _USER for node in around if isinstance(node, dict) for member in _strings_of(node))

    def holds_together(self, texts: Sequence[str], links: Set[str], data: str) -> bool:
        """Tell whether the smallest object with these strings and one of these links contains data."""
        for _, node in sorted(json_paths.nodes(self.tree), key=lambda pair: -len(pair[0])):
            if isinstance(node, dict):
                inside = [leaf for _, leaf in json_paths.strings(node)]
                if links & set(inside) and all(any(text in leaf for leaf in inside) for text in texts):
                    return any(data in leaf for leaf in inside)
        return False


def _strings_of(node: Mapping[str, Any]) -> Iterator[str]:
    return (member for member in node.values() if isinstance(member, str))


_PATH = re.compile(r"messages\[(\d+)\]\.content\[(\d+)\]")

FlagSent = Callable[[int, int, str], bool]
"""Tells whether the request says, other than in text, what is marked on a block: by message, block and kind of leaf
(error, cache, lifetime)."""


def find_unaccounted(
    messages: Sequence[Message],
    body: Body,
    losses: Sequence[Loss],
    *,
    wire_ids: Mapping[tuple[int, int], str],
    names: Mapping[str, str],
    flag_sent: FlagSent,
) -> Iterator[str]:
    """Yield each disagreement between history, request and ledger, in a sentence.

    A row that drops a block covers all its leaves; a row that rewrites one stands for exactly one leaf that is no
    longer the same.

    Args:
        messages: the canonical history.
        body: the request.
        losses: its ledger.
        wire_ids: (message, block) -> the wire's id of a call or of the call that a result answers.
        names: canonical tool name -> the name on this wire.
        flag_sent: called for results that are errors, and for cache hints.
    """
    rows = _rows_by_place(losses)
    carried = partial(_is_carried, body=body, wire_ids=wire_ids, names=names, flag_sent=flag_sent)
    whole = {place[:2]: kept for place, kept in rows.items() if place.block_type == "tool_result" and _dropped(kept)}
    for place, group in groupby(sorted(leaves_of(messages), key=attrgetter("place")), key=attrgetter("place")):
        yield from _compare(place, list(group), rows.pop(place, []) or whole.get(place[:2], []), carried)
    for place, left in rows.items():
        if place.message < len(messages) and is_blank(messages[place.message].content[place.block]):
            continue
        yield f"{_describe_place(place)}: the ledger has {left[0].reason!r} for a block that is not there"


def _dropped(rows: Sequence[Loss]) -> list[Loss]:
    return [row for row in rows if row.verdict != "rewritten"]


def _rows_by_place(losses: Sequence[Loss]) -> dict[Place, list[Loss]]:
    found: dict[Place, list[Loss]] = {}
    for loss in losses:
        if match := _PATH.match(loss.path):
            found.setdefault(Place(int(match[1]), int(match[2]), loss.block_type), []).append(loss)
    return found


def _compare(place: Place, group: list[Leaf], rows: list[Loss], carried: Callable[[Leaf], bool]) -> Iterator[str]:
    found = {leaf.kind for leaf in group if carried(leaf)}
    missing = _missing_kinds(group, carried)
    if dropped := _dropped(rows):
        if found:
            kinds = ", ".join(sorted(found))
            yield f"{_describe_place(place)}: {kinds} in the wire and in the ledger ({dropped[0].reason})"
        if len(rows) > 1 and place.block_type not in MEDIA:
            yield f"{_describe_place(place)}: one loss appears {len(rows)} times in the ledger ({rows[1].reason})"
    elif len(missing) > len(rows):
        yield f"{_describe_place(place)}: {', '.join(missing)} neither in the wire nor in the ledger"
    elif len(missing) < len(rows):
        reasons = "; ".join(row.reason for row in rows)
        yield f"{_describe_place(place)}: the ledger has {len(rows)} rows for {len(missing)} losses ({reasons})"


def _missing_kinds(group: list[Leaf], carried: Callable[[Leaf], bool]) -> list[str]:
    """Return the kinds of leaves that did not arrive, each part of a result by itself."""
    found: list[str] = []
    for _, leaves in groupby(group, key=lambda leaf: leaf.part):
        lost = [leaf.kind for leaf in leaves if not carried(leaf)]
        if "data" in lost:
            lost = ["data"]  # media that is missing has no place, no role and no title
        if "cache" in lost:
            lost = [kind for kind in lost if kind != "lifetime"]
        found += dict.fromkeys(lost)
    return found


def _describe_place(place: Place) -> str:
    return f"messages[{place.message}].content[{place.block}] ({place.block_type})"


def _is_carried(
    leaf: Leaf, body: Body, wire_ids: Mapping[tuple[int, int], str], names: Mapping[str, str], flag_sent: FlagSent
) -> bool:
    kind, value, place = leaf.kind, leaf.value, leaf.place
    if kind == "call":
        if body.has_object(value) and names.get(leaf.block.name, leaf.block.name) in body.texts:
            return True
        own = leaf.block.raw_input is None
        return own and body.has_own_call(wire_ids.get((place.message, place.block), ""), leaf.block)
    if kind == "form":
        return not body.wraps(value)
    if kind in ("citations", "content"):
        return body.has_content(value)
    if kind == "role":
        moved = body.is_only_of_user if place.block_type in MEDIA else body.tags
        return body.has_text(value) and not moved(value)
    if kind in ("error", "cache", "lifetime"):
        return flag_sent(place.message, place.block, kind)
    if kind == "place":
        name, texts = value
        links = {wire_ids.get((place.message, place.block), ""), names.get(name, name)}
        return body.holds_together(texts, links, leaf.block.source.data)
    return body.has_text(value) or (kind == "text" and value[:1] in ("{", "[") and body.has_object(value))
