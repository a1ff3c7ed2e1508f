"""What plugins and applications may rely on, as plain JSON: `python -m tests.compat.surface` writes it.

The file `contract-N.json` beside this one is the surface of contract N. A change that a plugin of contract N survives
(something was added) only rewrites the file; any other change needs a new contract version.
"""

from __future__ import annotations

import enum
import inspect
import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from interlingua._plugins.hookspecs import PLUGIN_HOOKS, PROVIDER_HOOKS, PluginHooks, ProviderHooks
from interlingua.plugins import CONTRACT_VERSION

_BELOW = ("codec", "errors", "output", "plugins", "testing", "transport", "types")
FACADES = ("interlingua", *(f"interlingua.{name}" for name in _BELOW if find_spec(f"interlingua.{name}")))
PAGE = Path(__file__).with_name(f"contract-{CONTRACT_VERSION}.json")
REQUIRED = "required"
COMPUTED = "computed"


def surface() -> dict[str, Any]:
    """Return names by façade, hooks with their arguments, and fields with their defaults."""
    return {"names": names(), "hooks": hooks(), "values": values()}


def names() -> dict[str, list[str]]:
    return {name: public(import_module(name)) for name in FACADES}


def public(module: ModuleType) -> list[str]:
    """Return `__all__`; of a module without, its own functions and classes."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return sorted(getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")])


def hooks() -> dict[str, list[str]]:
    """Return the hooks of providers and of general plugins, each with its arguments."""
    found = {}
    for owner, listed in ((ProviderHooks, PROVIDER_HOOKS), (PluginHooks, PLUGIN_HOOKS)):
        for hook in sorted(listed):
            found[hook] = [name for name in inspect.signature(getattr(owner, hook)).parameters if name != "self"]
    return found


def values() -> dict[str, dict[str, Any]]:
    """Return every class of the seam that has fields, members or a constructor, with their defaults."""
    found = {}
    for facade in ("interlingua.types", "interlingua.plugins"):
        module = import_module(facade)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type):
                fields = fields_of(value)
                if fields is not None:
                    found[name] = fields
    return dict(sorted(found.items()))


def fields_of(cls: type) -> dict[str, Any] | None:
    if issubclass(cls, enum.Enum):
        return {name: member.value for name, member in cls.__members__.items()}
    if attrs.has(cls):
        return {one.name: _default(one.default) for one in attrs.fields(cls) if one.init}
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return {name: _default(cls._field_defaults.get(name, attrs.NOTHING)) for name in cls._fields}  # type: ignore[attr-defined]
    return None


def _default(value: Any) -> Any:
    if value is attrs.NOTHING:
        return REQUIRED
    if isinstance(value, attrs.Factory) or callable(value):  # type: ignore[arg-type]
        return COMPUTED
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def write() -> None:
    PAGE.write_text(json.dumps(surface(), indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
    sys.stdout.write(f"{PAGE.name}\n")
