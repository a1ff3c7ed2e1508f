"""Tool names fitted to a narrower pattern, injectively and the same every time (DESIGN 3, 6).

Never knows which wire has which pattern: the adapter passes it.
Adapters and importers of foreign tool lists come in, through the room's front door.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from interlingua.errors import CallerError

_DIGEST_LENGTH = 8
_ATTEMPTS = 64
_CLEANERS = (("[^A-Za-z0-9_-]", "_"), ("[^A-Za-z0-9_]", "_"), ("[^A-Za-z0-9-]", "-"), ("[^A-Za-z0-9]", ""))


def project_names(names: Iterable[str], pattern: str, max_length: int) -> dict[str, str]:
    """Map each name to one that a wire accepts; no two to the same, and names that fit to themselves.

    Args:
        names: in order of first appearance, which decides who keeps the plain form on a collision.
        pattern: regular expression that the whole projected name must match.
        max_length: in characters.

    Returns:
        Projected name by name, in the order given; a pure function of the arguments.

    Raises:
        CallerError: no name that fits the pattern could be built.
    """
    fits = re.compile(pattern).fullmatch
    wanted = list(dict.fromkeys(names))
    taken = {name for name in wanted if len(name) <= max_length and fits(name)}
    result: dict[str, str] = {}
    for name in wanted:
        if name in taken and name not in result.values():
            result[name] = name
            continue
        for candidate in _candidates(name, max_length):
            if candidate not in taken and len(candidate) <= max_length and fits(candidate):
                break
        else:
            raise CallerError(f"no name for tool {name!r} fits {pattern!r} in {max_length} characters")
        taken.add(candidate)
        result[name] = candidate
    return result


def _candidates(name: str, max_length: int) -> Iterator[str]:
    for source in dict.fromkeys((name, name.lower())):
        for refused, instead in _CLEANERS:
            clean = re.sub(refused, instead, source)
            yield from (clean, f"t{clean}")  # some patterns want a letter first
    for attempt in count():
        if attempt == _ATTEMPTS:
            return
        digest = _digest(f"{attempt}:{name}")
        for refused, instead in _CLEANERS:
            clean = re.sub(refused, instead, name.lower())
            tail = instead + digest[:_DIGEST_LENGTH]
            for stem in (clean, f"t{clean}"):
                yield stem[: max(0, max_length - len(tail))] + tail
        yield from (digest[:max_length], ("t" + digest)[:max_length])


def _digest(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415  most names fit, and the import is not free

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
