"""Stored fragments: named text that `-f NAME` inserts before prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from interlingua.errors import CallerError
from interlingua_cli.config import data_folder
from interlingua_cli.input import write_file

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
_ENDING = ".txt"


def fragment_names(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the stored fragments."""
    return sorted(path.stem for path in _folder(environ).glob(f"*{_ENDING}"))


def stored_fragment(name: str, environ: Mapping[str, str]) -> str | None:
    """Return a stored fragment's text; None if there is no fragment of this name."""
    path = _folder(environ) / f"{name}{_ENDING}"
    return path.read_text(encoding="utf-8") if _NAME.match(name) and path.is_file() else None


def store_fragment(name: str, text: str, environ: Mapping[str, str]) -> Path:
    """Store text under a name, replacing a fragment of that name; return its file.

    Raises:
        CallerError: the name is not allowed.
    """
    if not _NAME.match(name):
        raise CallerError(f"{name!r} is not a name for a fragment: use letters, digits, '_', '-' and '.'")
    path = _folder(environ) / f"{name}{_ENDING}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text)
    return path


def remove_fragment(name: str, environ: Mapping[str, str]) -> None:
    """Remove a stored fragment.

    Raises:
        CallerError: there is no fragment of this name.
    """
    require_fragment(name, environ)
    (_folder(environ) / f"{name}{_ENDING}").unlink()


def require_fragment(name: str, environ: Mapping[str, str]) -> str:
    """Return a stored fragment's text.

    Raises:
        CallerError: there is no fragment of this name.
    """
    text = stored_fragment(name, environ)
    if text is None:
        raise CallerError(f"no fragment {name!r} is stored: `interlingua fragments` lists the stored ones")
    return text


def _folder(environ: Mapping[str, str]) -> Path:
    return data_folder(environ) / "fragments"
