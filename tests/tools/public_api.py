"""Write docs/reference/api.txt, the public Python API of every distribution: `python -m tests.tools.public_api`.

A line is one public name with its signature. `changes` compares two such files, and `unnamed` lists the changes that a
changelog does not name. The test is `tests/repo/test_public_api.py`.
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, ForwardRef, Union, get_origin

import attrs

from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "api.txt"
RELEASED = tree.ROOT / "tests" / "compat" / "released"
"""Holds `api-VERSION.txt` of each release, which `make release` writes."""
CHANGELOG = tree.ROOT / "CHANGELOG.md"
HEADER = (
    "The public Python API of every distribution, written by `python -m tests.tools.public_api`. A line is one name."
)
OF_CORE = ("", ".types", ".errors", ".plugins", ".output", ".codec", ".transport", ".fallback", ".limits", ".testing")
_HEADING = re.compile(r"^## \[([^\]]+)\]", re.MULTILINE)


def text() -> str:
    """Return the whole file."""
    described: dict[int, str] = {}  # what `interlingua` repeats is described where it belongs
    parts = {name: list(lines_of(import_module(name), name, described)) for name in reversed(modules())}
    return "\n".join([f"# {HEADER}", *(line for name in modules() for line in ("", f"# {name}", *parts[name]))]) + "\n"


def modules() -> list[str]:
    """Return the public modules that list names, core's first."""
    others = sorted(package for folder, package in tree.packages() if folder.name != "core")
    return [f"interlingua{name}" for name in OF_CORE] + [name for name in others if names_of(import_module(name))]


def names_of(module: ModuleType) -> list[str]:
    """Return `__all__`; of a module without one, its own classes and functions."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    listed = getattr(module, "__all__", None) or own
    return sorted({name for name in listed if not name.startswith("_") and not inspect.ismodule(getattr(module, name))})


def lines_of(module: ModuleType, where: str, described: dict[int, str]) -> Iterator[str]:
    """Yield the lines of a module; `described` maps ids of classes and functions to their full names."""
    for name in names_of(module):
        value, full = getattr(module, name), f"{where}.{name}"
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            is_union = get_origin(value) in (Union, UnionType)  # their class has another name in each Python
            yield f"{full}: {'Union' if is_union else type(value).__name__}"
        elif id(value) in described:
            yield f"{full} = {described[id(value)]}"
        else:
            described[id(value)] = full
            yield from _class(value, full) if inspect.isclass(value) else [full + signature(value)]


def _class(cls: type, full: str) -> Iterator[str]:
    bases = [base.__name__ for base in cls.__bases__ if base is not object]
    yield f"class {full}" + (f"({', '.join(bases)})" if bases else "")
    if issubclass(cls, enum.Enum):
        yield from (f"{full}.{name} = {member.value!r}" for name, member in sorted(cls.__members__.items()))
        return
    if inspect.isfunction(cls.__init__):
        yield f"{full}{signature(cls.__init__)}"
    fields = {field.name for field in attrs.fields(cls)} if attrs.has(cls) else set()
    members: dict[str, str] = {}
    for one in reversed([one for one in cls.__mro__ if one.__module__.partition(".")[0].startswith("interlingua")]):
        for name, annotation in inspect.get_annotations(one).items():
            members[name] = f": {_words(annotation)}"
        for name, value in vars(one).items():
            shown = _member(value)
            if shown is not None:
                members[name] = shown
    yield from (
        f"{full}.{name}{shown}"
        for name, shown in sorted(members.items())
        if not name.startswith("_") and (name not in fields or not shown.startswith(":"))
    )


def _member(value: Any) -> str | None:
    if isinstance(value, (staticmethod, classmethod)):
        return signature(value.__func__)
    if isinstance(value, property) or type(value).__name__ == "cached_property":
        function = value.fget if isinstance(value, property) else value.func
        returned = getattr(function, "__annotations__", {}).get("return", "Any")
        return f": {_words(returned)}"
    return signature(value) if inspect.isfunction(value) else None


def signature(function: Any) -> str:
    """Return the arguments and the result of a function as its source writes them, without `self`."""
    found = inspect.signature(function, follow_wrapped=True)
    parts, star, positional = [], False, False
    for one in found.parameters.values():
        if one.name in ("self", "cls"):
            continue
        if positional and one.kind is not one.POSITIONAL_ONLY:
            parts.append("/")
        positional = one.kind is one.POSITIONAL_ONLY
        if one.kind is one.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        lead = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        typed = "" if one.annotation is one.empty else f": {_words(one.annotation)}"
        parts.append(lead + one.name + typed + ("" if one.default is one.empty else f" = {_default(one.default)}"))
    if positional:
        parts.append("/")
    wait = " async" if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) else ""
    end = "" if found.return_annotation is found.empty else f" -> {_words(found.return_annotation)}"
    return f"({', '.join(parts)}){wait}{end}"


def _words(annotation: Any) -> str:
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\binterlingua[\w.]*\.(?=[A-Z])", "", " ".join(shown.split()))


def _default(value: Any) -> str:
    plain = value is None or type(value) in (bool, int, float, str, bytes) or value in ((), frozenset())
    return repr(value) if plain else "..."


def changes(before: str, now: str) -> dict[str, str]:
    """Return `added`, `removed` or `changed` for each name whose lines are not the same in two files."""
    old, new = _by_name(before), _by_name(now)
    return {
        name: "added" if name not in old else "removed" if name not in new else "changed"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    }


def _by_name(page: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in page.splitlines():
        match = re.match(r"(?:class )?([\w.]+)", line)
        if match:
            found.setdefault(match[1], []).append(line)
    return found


def unnamed(changed: dict[str, str], changelog: str) -> list[str]:
    """Return the changes that no word between backticks names, by the last part of the name or its class."""
    words = {word for quoted in re.findall(r"`([^`]+)`", changelog) for word in re.findall(r"\w+", quoted)}
    missing = []
    for name, kind in changed.items():
        parts = [part for part in name.split(".") if not part.startswith("interlingua")]
        if words.isdisjoint(parts):
            missing.append(f"{name} ({kind})")
    return missing


def since(version: str, changelog: str) -> str:
    """Return the sections of a changelog above the one of a version."""
    headings = {match[1]: match.start() for match in _HEADING.finditer(changelog)}
    return changelog[: headings.get(version, len(changelog))]


def released() -> tuple[str, str] | None:
    """Return the newest release and its API; None before the first."""
    files = {path.stem.removeprefix("api-"): path for path in RELEASED.glob("api-*.txt")}
    if not files:
        return None
    newest = max(files, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
    return newest, files[newest].read_text(encoding="utf-8")


def write(page: Path = PAGE) -> None:
    page.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
    sys.stdout.write(f"{PAGE.relative_to(tree.ROOT)}\n")
