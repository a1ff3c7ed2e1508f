"""The shipped rows by name, each loaded when it is first touched, and the way a user's row becomes a provider.

Never holds a fact about a service: those are in `rows/*.toml`, each with its source.
The registry comes in through the entry points.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interlingua_chat_completions.compatible import CompatibleProvider
from interlingua_chat_completions.row_table import read_row

__all__ = ["provider_from_row"]

_HERE = Path(__file__).parent


def provider_from_row(key: str, table: Mapping[str, Any]) -> CompatibleProvider:
    """Make a provider of a user's table (entry point of the format).

    Raises:
        PluginError: a field is unknown, missing or of the wrong kind; the message names row and field.
    """
    return CompatibleProvider(read_row(key, table))


def _shipped(key: str) -> CompatibleProvider:
    table = tomllib.loads((_HERE / "rows" / f"{key}.toml").read_text(encoding="utf-8"))
    models = table.get("models")
    text = (_HERE / "models" / models).read_text(encoding="utf-8") if isinstance(models, str) else None
    return CompatibleProvider(read_row(key, table, text))


def __getattr__(name: str) -> CompatibleProvider:
    if name.startswith("_") or not (_HERE / "rows" / f"{name}.toml").is_file():
        raise AttributeError(f"module {__name__!r} has no row {name!r}")
    provider = globals()[name] = _shipped(name)
    return provider
