"""Writes docs/reference/types.md from the code: `python -m tests.repo.types_page`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "types.md"
SECTIONS = {
    "Messages": "interlingua.types.messages",
    "Blocks": "interlingua.types.blocks",
    "Events": "interlingua.types.events",
    "Options and capabilities": "interlingua.types.options",
    "Tools": "interlingua.types.tools",
    "Foreign tool schemas": "interlingua_agents.schemas",
    "Identity": "interlingua._ids",
    "Wire values": "interlingua._plugins.wire",
    "Connections and batches": "interlingua._plugins.connection",
    "The loss ledger": "interlingua._plugins.losses",
    "Serving": "interlingua_serving.values",
    "Catalogue and prices": "interlingua._catalogue",
    "Cost of a lost cache": "interlingua._request.prefix",
    "Violations": "interlingua._request.rules",
    "Time limits": "interlingua.transport",
    "Retries": "interlingua._http.retry",
}
HEAD = """# Types

Every public value class with its fields, as the code has them; [the canonical format](format.md) says what they mean
together. All are frozen and take their fields by keyword. Those of messages, blocks, events, options, tools and ids
are imported from `interlingua.types`, those of wires and catalogues from `interlingua.plugins`, and the most used ones
from `interlingua` too; those of serving from `interlingua_serving`. Written by `python -m tests.repo.types_page`.
"""
_CLASS = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)
_ALIAS = re.compile(r"^([A-Z][A-Za-z]+)(?:: TypeAlias)? = ", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+): ")


def page() -> str:
    """Return the page as it should be."""
    parts = [HEAD]
    for title, name in SECTIONS.items():
        module = import_module(name)
        parts.append(f"## {title}\n")
        parts += [_class(cls) for cls in _classes(module)]
        aliases = [f"- `{alias}`: {_words(value)}" for alias, value in _aliases(module)]
        if aliases:
            parts.append("Names of types:\n\n" + "\n".join(aliases) + "\n")
    return "\n".join(parts)


def _classes(module: ModuleType) -> Iterator[type]:
    for name in _CLASS.findall(inspect.getsource(module)):
        cls = getattr(module, name)
        if issubclass(cls, Enum) or hasattr(cls, "_fields") or (attrs.has(cls) and any(_public(cls))):
            yield cls


def _public(cls: type) -> list[attrs.Attribute[Any]]:
    return [field for field in attrs.fields(cls) if field.init and not field.name.startswith("_")]


def _aliases(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in dict.fromkeys(_ALIAS.findall(inspect.getsource(module))):
        value = getattr(module, name)
        if get_origin(value) in (Literal, Union, UnionType):
            yield name, value


def _words(value: Any) -> str:
    if get_origin(value) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(value))
    return " or ".join(
        _words(part) if get_origin(part) is Literal else f"`{getattr(part, '__name__', part)}`"
        for part in get_args(value)
    )


def _class(cls: type) -> str:
    text, own = _docstring(cls)
    meanings = {name: meaning for base in reversed(cls.__mro__) for name, meaning in _docstring(base)[1].items()} | own
    lines = [f"### `{cls.__name__}`\n", f"{text}\n"]
    if issubclass(cls, Enum):
        lines += ["Values: " + ", ".join(f"`{member.value}`" for member in cls) + ".\n"]
        return "\n".join(lines)
    lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, kind, default in _fields(cls):
        cell = kind.replace("|", "\\|")
        lines.append(f"| `{name}` | `{cell}` | {default} | {meanings.get(name, '')} |")
    return "\n".join(lines) + "\n"


def _fields(cls: type) -> Iterator[tuple[str, str, str]]:
    kinds = {name: kind for base in reversed(cls.__mro__) for name, kind in inspect.get_annotations(base).items()}
    if not attrs.has(cls):
        defaults: dict[str, Any] = {**vars(cls), **getattr(cls, "_field_defaults", {})}
        for name in (*cls._fields, *(name for name in kinds if name not in cls._fields)):  # type: ignore[attr-defined]
            given = name in defaults and not hasattr(defaults[name], "__get__")
            yield name, _type(kinds[name]), _default(defaults[name]) if given else "required"
        return
    if isinstance(getattr(cls, "type", None), str):
        yield "type", "str", f"`{cls.type}`"  # type: ignore[attr-defined]
    for field in _public(cls):  # not `field.type`: who asked attrs to resolve types changed it for all
        yield field.name, _type(kinds[field.name]), _default(field.default)


def _type(kind: Any) -> str:
    text = getattr(kind, "__forward_arg__", kind)
    text = text if isinstance(text, str) else getattr(kind, "__name__", str(kind))
    return text.replace("FrozenDict", "dict").replace('"', "'")


def _default(value: Any) -> str:
    if value is attrs.NOTHING:
        return "required"
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]
        made = {dict: "`{}`", list: "`[]`", tuple: "`()`"}
        return made.get(value.factory, f"a new one for each {'exchange' if value.takes_self else 'value'}")
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if isinstance(value, (dict, str)):
        return f"`{value}`" if value else ("`{}`" if isinstance(value, dict) else "empty")
    if callable(value):
        return f"`{value.__name__.lstrip('_')}`"
    return "all defaults" if attrs.has(type(value)) else f"`{value}`"


def _docstring(cls: type) -> tuple[str, dict[str, str]]:
    """Return what a class's docstring says before its sections, and the meaning of each of its attributes."""
    text, _, rest = (inspect.getdoc(cls) or "").partition("\nAttributes:\n")
    text = re.split(r"\n(?:Raises|Example|Args)\b[^\n]*:", text)[0]
    meanings: dict[str, str] = {}
    name = ""
    for line in rest.split("\n\n")[0].splitlines() if rest else ():
        entry = _ENTRY.match(line.strip())
        if entry and len(line) - len(line.lstrip()) <= 4:
            name = entry[1]
            meanings[name] = line.strip()[entry.end() :]
        elif name:
            meanings[name] += f" {line.strip()}"
    if isinstance(getattr(cls, "type", None), str) and not issubclass(cls, Enum):
        meanings.setdefault("type", "tells this class in JSON")
    return " ".join(text.split()), {name: text.replace("|", "\\|") for name, text in meanings.items()}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
