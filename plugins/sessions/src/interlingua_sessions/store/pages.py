"""Rows of a damaged SQLite file, read page by page without its trees (https://www.sqlite.org/fileformat2.html).

SQLite refuses a table whose tree has a damaged page. Here every page is read alone, so a damaged page costs its own
rows. SQLite has no check sums: a page counts as damaged if its structure is impossible.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import mmap
from typing import NamedTuple, TypeAlias

Value: TypeAlias = int | float | str | bytes | None
Record: TypeAlias = tuple[Value, ...]

_HEADER = 100  # bytes before the tree on the first page
_INDEX_INNER, _TABLE_INNER, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes
_USUAL = 4096  # bytes of a page, if the header does not tell


class _DamagedError(ValueError):
    """A page or record has an impossible structure."""


class Page(NamedTuple):
    """The readable records of one page.

    Attributes:
        number: number of the page, from 1.
        rows: records of a table.
        keys: records of an index.
        damaged: records that cannot be read; None if the whole page cannot.
    """

    number: int
    rows: list[Record]
    keys: list[Record]
    damaged: int | None


class PageFile:
    """The pages of a SQLite file.

    Args:
        data: the file; its write-ahead log must be copied into it before.
    """

    def __init__(self, data: bytes | mmap) -> None:
        self._data = data
        told, reserved = struct.unpack_from(">HxxB", data, 16) if len(data) > _HEADER else (0, 0)
        size = 65_536 if told == 1 else told
        is_size = size >= 512 and size & (size - 1) == 0
        self.size = size if is_size else _USUAL
        self._usable = self.size - (reserved if is_size else 0)
        self.count = len(self._data) // self.size
        self._free = self._free_pages()
        self._overflow: set[int] = set()

    def pages(self) -> Iterator[Page]:
        """Yield all pages that hold rows or keys or are damaged."""
        unknown = []
        for number in range(1, self.count + 1):
            if number in self._free:
                continue
            kind = self._kind(number)
            if kind in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER):
                yield self._read(number, kind)
            elif kind != _TABLE_INNER:
                unknown.append(number)
        yield from (Page(number, [], [], None) for number in unknown if number not in self._overflow)

    def _page(self, number: int) -> bytes:
        if not 1 <= number <= self.count:
            raise _DamagedError(f"there is no page {number}")
        return self._data[(number - 1) * self.size : number * self.size]

    def _kind(self, number: int) -> int:
        return self._page(number)[_HEADER if number == 1 else 0]

    def _free_pages(self) -> set[int]:
        """Return the pages that are in no table; what of their list cannot be read is taken as used."""
        found: set[int] = set()
        trunk = int.from_bytes(self._data[32:36], "big")
        while 1 < trunk <= self.count and trunk not in found:
            found.add(trunk)
            page = self._page(trunk)
            trunk, count = struct.unpack_from(">II", page)
            if count <= self._usable // 4 - 2:
                found.update(struct.unpack_from(f">{count}I", page, 8))
        return found

    def _read(self, number: int, kind: int) -> Page:
        page, start = self._page(number), _HEADER if number == 1 else 0
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        pointers = start + (12 if kind == _INDEX_INNER else 8)
        if pointers + 2 * count > self._usable:
            return Page(number, [], [], None)
        found: list[Record] = []
        damaged = 0
        for (place,) in struct.iter_unpack(">H", page[pointers : pointers + 2 * count]):
            try:
                found.append(self._record(self._payload(page, place, kind)))
            except (ValueError, IndexError, struct.error):
                damaged += 1
        if count and damaged == count:
            return Page(number, [], [], None)
        return Page(number, *((found, []) if kind == _TABLE_LEAF else ([], found)), damaged)

    def _payload(self, page: bytes, place: int, kind: int) -> bytes:
        """Return the bytes of a cell's record, those on overflow pages included."""
        at = place + 4 if kind == _INDEX_INNER else place
        length, at = _varint(page, at)
        if kind == _TABLE_LEAF:
            _, at = _varint(page, at)  # the row's number
        usable = self._usable
        most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if length <= most:
            here = length
        else:
            least = (usable - 12) * 32 // 255 - 23
            here = least + (length - least) % (usable - 4)
            here = here if here <= most else least
        if at + here > usable or length > len(self._data):
            raise _DamagedError("a record ends behind its page")
        parts, left = [page[at : at + here]], length - here
        following = int.from_bytes(page[at + here : at + here + 4], "big") if left else 0
        read: list[int] = []
        while left:
            further = self._page(following)
            if following in read:
                raise _DamagedError("a record is a circle of pages")
            read.append(following)
            part = further[4 : min(4 + left, usable)]
            parts.append(part)
            left -= len(part)
            following = int.from_bytes(further[:4], "big")
        if following:
            raise _DamagedError("a record has too many pages")
        self._overflow.update(read)
        return b"".join(parts)

    def _record(self, payload: bytes) -> Record:
        width, at = _varint(payload, 0)
        kinds = []
        while at < width:
            kind, at = _varint(payload, at)
            kinds.append(kind)
        if at != width:
            raise _DamagedError("the header of a record has a wrong length")
        values: list[Value] = []
        for kind in kinds:
            value, at = _value(payload, at, kind)
            values.append(value)
        if at != len(payload):
            raise _DamagedError("a record is longer than its values")
        return tuple(values)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for more in range(8):
        byte = data[at + more]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + more + 1
    return value << 8 | data[at + 8], at + 9


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind in (10, 11):
        raise _DamagedError("a value has a type that is not used")
    size = _INTEGERS.get(kind, 8) if kind < 12 else (kind - 12) // 2
    part = payload[at : at + size]
    if len(part) < size:
        raise _DamagedError("a value ends behind its record")
    if kind == 7:
        return struct.unpack(">d", part)[0], at + size
    if kind < 7:
        return int.from_bytes(part, "big", signed=True), at + size
    return (part.decode() if kind % 2 else part), at + size
