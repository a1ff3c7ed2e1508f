"""Where a `$ref` points: JSON pointers followed inside one schema document.

Never fetches anything: a reference out of the document is refused, so is an anchor.
Only normalise.py comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import SchemaNotSupported


def target_pointer(ref: Any, place: str) -> str:
    """Return the JSON pointer inside the document that a `$ref` names.

    Raises:
        SchemaNotSupported: it is not a `#` or `#/…` reference; `place` is the pointer of the `$ref`.
    """
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        raise SchemaNotSupported(f"$ref {ref!r} leaves the schema; only '#/…' can be inlined", path=place)
    if "%" not in ref:
        return ref[1:]
    from urllib.parse import unquote  # noqa: PLC0415  escaped references are rare, the import is not free

    return unquote(ref[1:])


def follow(root: Any, target: str, place: str) -> Any:
    """Return what a JSON pointer names in a document (RFC 6901).

    Raises:
        SchemaNotSupported: it names nothing; `place` is the pointer of the `$ref`.
    """
    node = root
    for token in target.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, Sequence) and not isinstance(node, str) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            raise SchemaNotSupported(f"$ref '#{target}' points at nothing", path=place)
    return node
