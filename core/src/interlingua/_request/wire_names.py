"""Call ids and tool names in the patterns of one target."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

import attrs

from interlingua._plugins.provider import ProjectionTarget
from interlingua.errors import CapabilityError
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.messages import Loss, Verdict
from interlingua.types.tools import ToolDefinition

_NO_SEARCH = "no search of this target finds deferred tools; the tool is sent whole"
_DIGEST = 8  # letters of a digest that a changed tool name ends in
_LETTERS = (r"[^A-Za-z0-9_-]", r"[^A-Za-z0-9_]", r"[^A-Za-z0-9]")
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _digest(text: str, length: int) -> str:
    """Return `length` letters and digits that depend on the whole text."""
    number = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=48).digest(), "big")
    return "".join([_ALPHABET[number // 62**place % 62] for place in range(length)])


class WireIds:
    """The wire id of each call of one conversation, in order of first appearance.

    A call keeps the id that this provider issued; any other id is kept if it fits the target's pattern, else replaced
    by a digest. Two calls never share a wire id, and an issued id is not given to a later call.
    """

    __slots__ = ("_fullmatch", "_limit", "_target", "_used")

    def __init__(self, target: ProjectionTarget) -> None:
        self._target = target
        self._fullmatch = re.compile(target.capabilities.tool_id_pattern).fullmatch
        self._limit = target.capabilities.tool_id_max_length
        self._used: set[str] = set()

    def add(self, call: ToolUseBlock, *, own: bool) -> str:
        """Return the wire id of a call that appears now; `own`: this provider made the call's message."""
        wire = call.provider_id
        if wire is None or not own or not self._is_free(wire):
            wire = call.id
            salt = 0
            while not self._is_free(wire):
                wire = _digest(f"{call.id}\0{salt}" if salt else call.id, min(self._limit, 26))
                salt += 1
                if salt > 10_000:
                    raise ValueError(f"no id fits the declared pattern {self._target.capabilities.tool_id_pattern!r}")
        self._used.add(wire)
        return wire

    def _is_free(self, wire: str) -> bool:
        return wire not in self._used and len(wire) <= self._limit and self._fullmatch(wire) is not None


def wire_name(name: str, target: ProjectionTarget) -> str:
    """Return the name itself if it fits the target, else the part of it that does with its digest."""
    limit, fits = target.capabilities.tool_name_max_length, re.compile(target.capabilities.tool_name_pattern).fullmatch
    if len(name) <= limit and fits(name):
        return name
    for letters in _LETTERS:
        stem = re.sub(letters, "_", name) if "_" in letters else re.sub(letters, "", name)
        for joint in ("_", ""):
            made = stem[: max(limit - _DIGEST - len(joint), 0)] + joint + _digest(name, min(_DIGEST, limit))
            for one in (made, "t" + made[1:]):
                if fits(one):
                    return one
    pattern = target.capabilities.tool_name_pattern
    raise CapabilityError(f"no form of the tool name {name!r} fits the pattern {pattern!r}")


def wire_tools(
    tools: Sequence[ToolDefinition], added: Sequence[ToolDefinition], target: ProjectionTarget
) -> tuple[Sequence[ToolDefinition], Mapping[str, str], tuple[Loss, ...]]:
    """Return the tools as they are sent, the canonical names of these and of those `added` later, and the losses."""
    can = target.capabilities
    if not can.supports_tools:
        return (), {}, _rows("dropped", "this target has no tools", range(len(tools)))
    names = {wire_name(tool.name, target): tool.name for tool in (*tools, *added)}
    changed = {name: known for name, known in names.items() if name != known}
    whole = [at for at, tool in enumerate(tools) if tool.deferred and not can.supports_deferred_tools]
    if changed or whole:
        named = [attrs.evolve(tool, name=wire_name(tool.name, target)) for tool in tools]
        tools = [attrs.evolve(tool, deferred=False) if at in whole else tool for at, tool in enumerate(named)]
    whole = [at for at in whole if not tools[at].extra_of(can.api)]  # those of this API are sent unchanged
    return tools, changed, _rows("rewritten", _NO_SEARCH, whole)


def _rows(verdict: Verdict, reason: str, places: Iterable[int]) -> tuple[Loss, ...]:
    return tuple([Loss(path=f"tools[{at}]", block_type="tool", verdict=verdict, reason=reason) for at in places])
