"""Names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str], moved: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package whose names are imported when first used.

    Args:
        package: the name of the package.
        names: module (without the name of its top-level package) -> the names to import from it, separated by spaces.
        moved: deprecated name -> its new place, `module:name`. It resolves with a DeprecationWarning and is in neither
            `__dir__` nor `__all__`; it stays for at least one minor release.
    """
    module_of = {name: module for module, listed in names.items() for name in listed.split()}
    loaded = vars(import_module(package))
    root = package.partition(".")[0]

    def get(name: str) -> Any:
        if name in module_of:
            loaded[name] = value = getattr(import_module(f"{root}.{module_of[name]}"), name)
            return value
        if moved and name in moved:
            import warnings  # noqa: PLC0415  only for deprecated names

            module, _, new = moved[name].partition(":")
            warnings.warn(f"{package}.{name} is now {module}.{new}", DeprecationWarning, stacklevel=2)
            return getattr(import_module(module), new)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    public = sorted(module_of)
    return get, lambda: public, public
