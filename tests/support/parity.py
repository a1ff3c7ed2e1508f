"""Two classes that say the same in two worlds, blocking and asynchronous, compared name by name."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

_WORLDS = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__", "__anext__": "__next__"}


def differences(blocking: type, asynchronous: type, *more: str) -> list[str]:
    """Return each public name that only one has, and each whose arguments or defaults differ.

    Args:
        blocking: one class.
        asynchronous: the other.
        more: names that are public here although they look private, such as `__init__` of what callers make.
    """
    one, other = _names(blocking, more), _names(asynchronous, more)
    found = [f"only one has {name}" for name in sorted(one.keys() ^ other.keys())]
    for name in sorted(one.keys() & other.keys()):
        here, there = _arguments(one[name]), _arguments(other[name])
        if here != there:
            found.append(f"{name}: {here} and {there}")
    return found


def _names(cls: type, more: Collection[str]) -> dict[str, Any]:
    known = {*_WORLDS, *_WORLDS.values(), *more}
    names = [name for name in dir(cls) if not name.startswith("_") or name in known]
    return {_WORLDS.get(name, name): inspect.getattr_static(cls, name) for name in names}


def _arguments(member: Any) -> list[tuple[str, Any, Any]] | str:
    function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
    if not inspect.isfunction(function):
        return type(member).__name__
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]
