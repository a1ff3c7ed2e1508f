"""Canonical names for tools that are called otherwise elsewhere: `Get-Weather` becomes `get_weather`.

Never names a tool on a wire: those names must not depend on their neighbours, and projection makes them.
Importers of foreign tool lists come in, through the room's front door.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from interlingua.tools.definition import TOOL_NAME_MAX_LENGTH, TOOL_NAME_PATTERN

_canonical = re.compile(TOOL_NAME_PATTERN).fullmatch
_foreign = re.compile("[^a-z0-9_]")
_DIGEST_LENGTH = 8


def canonical_names(names: Iterable[str]) -> dict[str, str]:
    """Map each name to a canonical one; no two to the same, and canonical names to themselves.

    Args:
        names: in order of first appearance, which decides who keeps the plain form where two would be the same; the
            others carry a digest of the name they had.

    Returns:
        Canonical name by name, in the order given; a pure function of the argument.
    """
    wanted = list(dict.fromkeys(names))
    made = {name: name for name in wanted if _canonical(name) and len(name) <= TOOL_NAME_MAX_LENGTH}
    taken = set(made)
    for name in wanted:
        if name not in made:
            made[name] = next(form for form in _forms(name) if form not in taken)
            taken.add(made[name])
    return {name: made[name] for name in wanted}


def _forms(name: str) -> Iterator[str]:
    plain = _foreign.sub("_", name.lower())
    if not plain[:1].isalpha():
        plain = f"t{plain}"
    if len(plain) <= TOOL_NAME_MAX_LENGTH:
        yield plain
    for attempt in count():
        yield f"{plain[: TOOL_NAME_MAX_LENGTH - _DIGEST_LENGTH - 1]}_{_digest(f'{attempt}:{name}')}"


def _digest(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415  most names fit, and the import is not free

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
