"""Checks of single fields of a row; a mistake names the row and the field, for users write these by hand.

Never knows which fields a row has. `row_table` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_origin

from interlingua.errors import PluginError


def fitted(key: str, name: str, value: Any, hint: Any) -> Any:
    """Return a TOML value as the dialect's field wants it; the fields use few types."""
    container = get_origin(hint)
    words = {word for argument in (hint, *get_args(hint)) for word in get_args(argument) if isinstance(word, str)}
    if container in (tuple, frozenset) or (isinstance(value, list)):
        items = value if isinstance(value, list) else [value]
        if words and not set(items) <= words:
            raise wrong(key, name, f"may hold {', '.join(sorted(words))}, not {value!r}")
        return frozenset(items) if container is frozenset else tuple(items)
    if words and value not in words:
        raise wrong(key, name, f"must be one of {', '.join(sorted(words))}, not {value!r}")
    if hint in (bool, str):
        return checked(key, name, value, hint)
    return value


def known_only(key: str, prefix: str, table: Mapping[str, Any], names: set[str] | frozenset[str]) -> None:
    """Refuse a field that there is not."""
    unknown = sorted(set(table) - names)
    if unknown:
        raise wrong(key, prefix + unknown[0], f"is no field of a row; there are {', '.join(sorted(names))}")


def table_of(key: str, name: str, table: Mapping[str, Any], prefix: str = "") -> Mapping[str, Any]:
    """Return an inner table; one that is missing is empty."""
    value = table.get(name) or {}
    if not isinstance(value, Mapping):
        raise wrong(key, prefix + name, f"must be a table, not {value!r}")
    return value


def string(key: str, name: str, value: Any) -> str:
    """Return a field that has to be a string."""
    if value is None:
        raise wrong(key, name, "is missing")
    found: str = checked(key, name, value, str)
    return found


def strings(key: str, name: str, value: Any) -> tuple[str, ...]:
    """Return a list of strings; a single one is a list too."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise wrong(key, name, f"must be a list of strings, not {value!r}")
    return tuple(items)


def checked(key: str, name: str, value: Any, kind: type) -> Any:
    """Return a value of exactly this type."""
    if type(value) is not kind:
        raise wrong(key, name, f"must be a {kind.__name__}, not {value!r}")
    return value


def wrong(key: str, name: str, why: str) -> PluginError:
    """Return the error that names the row and the field."""
    return PluginError(f"row {key!r}: {name} {why}", provider=key)
