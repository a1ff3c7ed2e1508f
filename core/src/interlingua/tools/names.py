"""Tool names fitted to a narrower pattern, injectively and the same every time (DESIGN 3, 6).

Never fits a request's names: those must not depend on their neighbours, and core's projection does it by itself.
Importers of foreign tool lists come in, through the room's front door, for names that stay readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Set

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
    whole = re.compile(pattern).fullmatch

    def fits(name: str) -> bool:
        return len(name) <= max_length and whole(name) is not None

    wanted = list(dict.fromkeys(names))
    taken = {name for name in wanted if fits(name)}
    result = {name: name for name in wanted if name in taken}
    for name in wanted:
        if name not in result:
            result[name] = _project(name, fits, max_length, taken)
            taken.add(result[name])
    return {name: result[name] for name in wanted}


def _project(name: str, fits: Callable[[str], bool], max_length: int, taken: Set[str]) -> str:
    stems = _stems(name)
    plain = next(filter(fits, stems), None)
    if plain is not None and plain not in taken:
        return plain
    for candidate in _digested(name, stems if plain is None else [plain], max_length):
        if fits(candidate) and candidate not in taken:
            return candidate
    raise CallerError(f"no name for tool {name!r} fits the wire's pattern in {max_length} characters")


def _stems(name: str) -> list[str]:
    sources = dict.fromkeys((name, name.lower()))
    clean = [re.sub(refused, instead, source) for source in sources for refused, instead in _CLEANERS]
    return clean + [f"t{stem}" for stem in clean]  # some patterns want a letter first


def _digested(name: str, stems: list[str], max_length: int) -> Iterator[str]:
    for attempt in range(_ATTEMPTS):
        digest = _digest(f"{attempt}:{name}")
        for stem in stems:
            for separator in ("_", "-", ""):
                tail = separator + digest[:_DIGEST_LENGTH]
                yield stem[: max(0, max_length - len(tail))] + tail
        yield from (digest[:max_length], f"t{digest}"[:max_length])


def _digest(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415  most names fit, and the import is not free

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
