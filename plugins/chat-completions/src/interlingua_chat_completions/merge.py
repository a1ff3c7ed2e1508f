"""Merging the deltas of a wire object into the object a whole answer would have held.

Never knows blocks or events: plain JSON in, plain JSON out.
The reader of answers comes in.
"""

from __future__ import annotations

from typing import Any

# a later non-empty value replaces these; other strings are pieces to be joined
_NAMES = frozenset(("id", "type", "role", "name", "format", "signature", "object", "tool_call_id"))


def merge_object(into: dict[str, Any], delta: dict[str, Any]) -> None:
    """Merge one delta into what has come so far; null says nothing."""
    for key, value in delta.items():
        if value is None:
            into.setdefault(key, None)
            continue
        old = into.get(key)
        if isinstance(old, str) and isinstance(value, str):
            into[key] = (value or old) if key in _NAMES else old + value
        elif isinstance(old, dict) and isinstance(value, dict):
            merge_object(old, value)
        elif isinstance(value, list):
            merged = old if isinstance(old, list) else []
            merge_list(merged, value)
            into[key] = merged
        else:
            into[key] = _copy(value)


def merge_list(into: list[Any], delta: list[Any]) -> None:
    """Merge list entries by their `index`, type and id (sheet openrouter §3); entries without an index are new ones."""
    for entry in delta:
        if isinstance(entry, dict) and isinstance(entry.get("index"), int):
            known = next((old for old in into if _same_entry(old, entry)), None)
            if known is not None:
                merge_object(known, entry)
                continue
        into.append(_copy(entry))


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return the object without nulls, empty members and the streaming `index` of list entries."""
    return {key: _plain(item) for key, item in value.items() if item not in (None, "", [])}


def _same_entry(old: Any, new: dict[str, Any]) -> bool:
    if not isinstance(old, dict) or old.get("index") != new["index"]:
        return False
    pairs = [(old.get(name), new.get(name)) for name in ("type", "id")]
    return all(not known or not said or known == said for known, said in pairs)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if not isinstance(value, list):
        return value
    entries = [_plain(entry) for entry in value]
    return [{k: v for k, v in entry.items() if k != "index"} if isinstance(entry, dict) else entry for entry in entries]
