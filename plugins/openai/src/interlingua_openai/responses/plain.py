"""Output items in the one form the readers know, whatever a server of this wire left out or wrote shorter.

Never changes an item that has that form: the same object comes back. `from_wire` and `reader` come in.
What official clients write shorter (a message without its type, content as one text) some servers write back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua_openai.responses.items import CALLS

_TEXTS = {("message", "content"): "output_text", ("reasoning", "summary"): "summary_text",
          ("reasoning", "content"): "reasoning_text"}  # fmt: skip


def plain_items(output: Any) -> list[Any]:
    """Return the items of an `output`, which may be null."""
    return [plain_item(item) for item in output or () if item is not None]


def plain_item(item: Any) -> Any:
    """Return an item as an object with a type, its parts as objects in lists, a call with a name."""
    if isinstance(item, str):
        item = {"role": "assistant", "content": item}
    if "type" not in item and "role" in item:
        item = {"type": "message", **item}
    kind = item.get("type")
    if kind in CALLS and not isinstance(item.get("name"), str):
        return {**item, "name": ""}
    for (owner, name), part in _TEXTS.items():
        held = item.get(name) if kind == owner else None
        if isinstance(held, str) or (isinstance(held, list) and not all(isinstance(one, Mapping) for one in held)):
            item = {**item, name: _parts(held, part)}
    return item


def _parts(held: Any, kind: str) -> list[Any]:
    listed = [held] if isinstance(held, str) else held
    return [{"type": kind, "text": one} if isinstance(one, str) else one for one in listed if one is not None]
