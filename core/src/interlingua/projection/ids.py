"""The two-way map between canonical tool-use ids and one wire's ids, derived from the messages alone (DESIGN 6).

Never stored and never random: the same conversation gives the same ids on any machine.
The projection walk comes in, the names, and the swap matrix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from interlingua.blocks import ToolUseBlock
from interlingua.messages import Origin
from interlingua.projection.target import Target

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def digest(text: str, length: int) -> str:
    """Return `length` letters and digits that depend on the whole text."""
    number = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=48).digest(), "big")
    letters = []
    for _ in range(length):
        number, place = divmod(number, 62)
        letters.append(_ALPHABET[place])
    return "".join(letters)


class WireIds:
    """Resolves each call's wire id in order of first appearance; one conversation, one target.

    A call's own id is used where this provider issued it. Any other is projected: kept where it fits the wire's
    pattern, else replaced by a digest. Two calls never share a wire id, and an id the provider issued is never given
    to another call that comes after it.
    """

    __slots__ = ("_fullmatch", "_limit", "_target", "_used")

    def __init__(self, target: Target) -> None:
        self._target = target
        self._fullmatch = target.id_pattern.fullmatch
        self._limit = target.capabilities.tool_id_max_length
        self._used: set[str] = set()

    def add(self, call: ToolUseBlock, origin: Origin | None) -> str:
        """Resolve a call that appears now; a canonical id seen before gets another wire id."""
        wire = call.provider_id
        if wire is None or wire in self._used or not self._target.shares_provider(origin) or not self._fits(wire):
            wire = call.id
            if wire in self._used or not self._fits(wire):
                wire = self._projected(wire)
        self._used.add(wire)
        return wire

    def keep(self, calls: Sequence[str]) -> bool:
        """Take canonical ids of calls that appear now as they are; False, and nothing is taken, if one cannot be."""
        used = self._used
        for wire in calls:
            if wire in used or not self._fits(wire):
                return False
        if len(calls) > 1 and len(set(calls)) < len(calls):
            return False
        used.update(calls)
        return True

    def _fits(self, wire: str) -> bool:
        return len(wire) <= self._limit and self._fullmatch(wire) is not None

    def _projected(self, canonical: str) -> str:
        length = min(self._limit, 26)
        salt = 0
        while True:
            wire = digest(canonical if salt == 0 else f"{canonical}\0{salt}", length)
            if wire not in self._used and self._fits(wire):
                return wire
            salt += 1
            if salt > 10_000:
                raise ValueError(f"no id fits the declared pattern {self._target.id_pattern.pattern!r}")
