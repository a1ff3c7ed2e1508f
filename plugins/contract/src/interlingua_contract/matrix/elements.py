"""The elements of a request's body exactly as they are written, cut out byte by byte.

Never compares numbers or escapes: what a prompt cache sees is the text.
The requests of this room come in.
"""

from __future__ import annotations

import json

from interlingua_contract import json_paths as trees


def elements(body: bytes, path: trees.Path | None) -> list[str]:
    """Return the elements of the array at a path exactly as they are written; none where there is no such array."""
    text = body.decode()
    at = _skip(text, 0)
    for key in path or ():
        at = next((start for name, start, _ in _members(text, at) if name == key), -1)
        if at < 0:
            return []
    return [text[start:end] for _, start, end in _members(text, at)] if path is not None else []


_DECODER = json.JSONDecoder()


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\n", "\r", "\t"):
        at += 1
    return at


def _members(text: str, at: int) -> list[tuple[str | int, int, int]]:
    """Return the key, the start and the end of each member of the container that begins at a place."""
    named = text[at] == "{"
    found: list[tuple[str | int, int, int]] = []
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        key: str | int = len(found)
        if named:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found.append((key, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found
