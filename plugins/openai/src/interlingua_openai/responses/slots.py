"""The output items of one stream, told apart however a server labels its events (sheet openai_responses §6).

Never trusts an item id to stay the same, for some gateways change it in each event: items are known by `output_index`,
and by id or order only where a server sends no index. `reader` comes in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from interlingua.types import ContentBlock, ToolUseStart

SPAN = 1 << 16  # block indexes per item


@attrs.define(eq=False)
class Slot:
    """One output item: as it began, as it ended, and what was said of it.

    Attributes:
        place: its `output_index`.
        item: the item as it was added.
        done: the item once it is whole.
        kept: its replay state.
        start: the call it began, where it is one.
        thought: the part of a reasoning item that text came for last.
        citations: by part, for a stream that ends too early.
        ended: the block that ended each part.
    """

    place: int
    item: dict[str, Any]
    done: dict[str, Any] | None = None
    kept: dict[str, Any] | None = None
    start: ToolUseStart | None = None
    thought: tuple[str, int] | None = None
    citations: dict[int, list[Any]] = attrs.field(factory=dict)
    ended: dict[int, ContentBlock] = attrs.field(factory=dict)

    @property
    def base(self) -> int:
        """Index of its first block."""
        return self.place * SPAN

    @property
    def kind(self) -> Any:
        """The item's type."""
        return self.item.get("type")


class Slots:
    """All items, by place; a body may hold several answers in a row, whose items follow each other.

    Attributes:
        offset: place of the present answer's first item.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._by_place: dict[int, Slot] = {}
        self._by_id: dict[str, Slot] = {}
        self._last: Slot | None = None

    def __iter__(self) -> Iterator[Slot]:
        return iter([slot for _, slot in sorted(self._by_place.items())])

    def present(self) -> list[Slot]:
        """Return the items of the present answer."""
        return [slot for slot in self if slot.place >= self.offset]

    def begin_answer(self) -> None:
        """Let the items that come from now on stand after all that came before."""
        self.offset = max(self._by_place, default=-1) + 1
        self._by_id.clear()
        self._last = None

    def place_of(self, wire_index: Any) -> int | None:
        """Return the place an `output_index` stands for; None where a server sends none that can be one."""
        return wire_index + self.offset if type(wire_index) is int and wire_index >= 0 else None

    def of(self, event: dict[str, Any], kind: str | None = None) -> Slot | None:
        """Return the item an event belongs to; without an index the last one of the kind where the id says nothing.

        The id also decides where the item at that index is of another kind.
        """
        place = self.place_of(event.get("output_index"))
        placed = None if place is None else self._by_place.get(place)
        known = self._by_id.get(str(event.get("item_id")))
        if known is not None and (place is None or (placed is not None and kind not in (None, placed.kind))):
            return known
        if place is not None:
            return placed
        return self._last if self._last is not None and kind in (None, self._last.kind) else None

    def open(self, item: dict[str, Any], wire_index: Any, *, behind: bool = False) -> Slot:
        """Return the slot for an item that begins: a new one, unless it began before.

        Args:
            item: the item, as far as it is known.
            wire_index: where it is said to stand.
            behind: nobody announced it, so it stands behind all that came before.
        """
        place = self.place_of(wire_index)
        if place is None or (behind and place < max(self._by_place, default=0)):
            place = max(self._by_place, default=-1) + 1
        slot = self._by_place.get(place)
        if slot is None or slot.kind != item.get("type"):
            place = place if slot is None else max(self._by_place) + 1
            slot = self._by_place[place] = Slot(place, item)
        self._last = slot
        if isinstance(item.get("id"), str):
            self._by_id[item["id"]] = slot
        return slot

    def ending(self, item: dict[str, Any], wire_index: Any) -> Slot:
        """Return the slot of an item that is whole, also when it never began."""
        place = self.place_of(wire_index)
        known = self._by_id.get(str(item.get("id"))) if place is None else self._by_place.get(place)
        return known if known is not None and known.kind == item.get("type") else self.open(item, wire_index)

    def final(self, item: dict[str, Any], wire_index: int) -> Slot:
        """Return the slot of an item of the terminal event: by id where ids are kept, else by place and type."""
        for slot in self.present():
            known = slot.done or slot.item
            if item.get("id") is not None and known.get("id") == item["id"] and slot.kind == item.get("type"):
                return slot
        return self.open(item, wire_index)
