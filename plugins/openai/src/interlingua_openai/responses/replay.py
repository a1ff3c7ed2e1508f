"""What of an item has no canonical place, kept so that the own model gets the item back whole (sheet §3, §4).

Never repeats what the blocks hold: texts stand here as lengths and one checksum, which also shows an edited history.
The two roads in come in; `matching` reads what they keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from interlingua_openai.responses.items import BETWEEN, CALLS, arguments_of, part_text, reasoning_texts

HELD = True  # stands where a value is held by the blocks


def replay_of(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the replay state of a response's items."""
    return {"items": [skeleton(item) for item in items]}


def skeleton(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item's shell with a checksum of what the blocks hold of it."""
    kind = item.get("type")
    texts: Iterable[str] = ()
    if kind == "message":
        texts = [part_text(part) or "" for part in item.get("content") or ()]
    elif kind == "reasoning":
        texts = [BETWEEN.join(reasoning_texts(item))]
    elif kind in CALLS:
        texts = [arguments_of(item)]
    return {"item": shell(item), "sum": checksum(texts)}


def shell(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item's own keys in their order, with what the blocks hold left out."""
    kind = item.get("type")
    if kind == "message":
        return {**item, "content": [_part(part) for part in item.get("content") or ()]}
    if kind == "reasoning":
        return _reasoning(item)
    if kind in CALLS:
        return {**item, ("input" if kind == "custom_tool_call" else "arguments"): HELD}
    return {"type": kind}


def _part(part: Mapping[str, Any]) -> Any:
    text = part_text(part)
    if text is None:
        return HELD
    kept = {name: value for name, value in part.items() if name != "logprobs"}
    if text.strip():
        kept["refusal" if part.get("type") == "refusal" else "text"] = HELD  # blank text is dropped on its way here
    if kept.get("annotations"):
        kept["annotations"] = HELD
    return kept


def _reasoning(item: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(item)
    for name in ("summary", "content"):
        if parts := item.get(name):
            kept[name] = [{**part, "text": len(part.get("text") or "")} for part in parts]
    if kept.get("encrypted_content"):
        kept["encrypted_content"] = HELD
    return kept


def checksum(texts: Iterable[str]) -> int:
    """Return one number for texts in their order."""
    value = 0
    for text in texts:
        value = crc32(text.encode("utf-8", "surrogatepass"), value)
    return value
