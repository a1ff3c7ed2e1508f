"""Public names: imported when they are first used (PEP 562), and deprecated before they are removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


class Deprecation(NamedTuple):
    """A public name that is going to be removed.

    Attributes:
        name: the whole name.
        since: the release that deprecated it, such as `0.3`.
        instead: the name that replaces it.
    """

    name: str
    since: str
    instead: str

    @property
    def removal(self) -> str:
        """The first release that may lack it: it lives for two minor versions."""
        major, minor = self.since.split(".")[:2]
        return f"{major}.{int(minor) + 2}"

    def warn(self, level: int) -> None:
        """Issue the DeprecationWarning at the caller `level` frames above this one."""
        import warnings  # noqa: PLC0415  only for deprecated names

        about = f"{self.name} is deprecated since {self.since} and will be removed in {self.removal}"
        warnings.warn(f"{about}: use {self.instead}", DeprecationWarning, stacklevel=level + 1)


DEPRECATIONS: dict[str, Deprecation] = {}
"""The deprecated names of the modules imported so far; docs/plugins/versions.md lists them."""


def deprecated(since: str, instead: str) -> Callable[[_F], _F]:
    """Return a decorator for a public function or method: each call of it warns."""

    def mark(function: _F) -> _F:
        from functools import wraps  # noqa: PLC0415  as above

        about = Deprecation(f"{function.__module__}.{function.__qualname__}", since, instead)
        DEPRECATIONS[about.name] = about

        @wraps(function)
        def warned(*args: Any, **named: Any) -> Any:
            about.warn(2)
            return function(*args, **named)

        return warned  # type: ignore[return-value]

    return mark


def lazy_names(
    package: str, names: Mapping[str, str], moved: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package whose names are imported when first used.

    `names` maps modules, without the name of their top-level package, to the names in them. `moved` maps deprecated
    names to their new place, `module.name`, and the release that moved them; using one warns.
    """
    module_of = {name: module for module, listed in names.items() for name in listed.split()}
    loaded = vars(import_module(package))
    root = package.partition(".")[0]
    old = {name: Deprecation(f"{package}.{name}", since, place) for name, (place, since) in (moved or {}).items()}
    DEPRECATIONS.update({one.name: one for one in old.values()})

    def get(name: str) -> Any:
        if name in module_of:
            loaded[name] = value = getattr(import_module(f"{root}.{module_of[name]}"), name)
            return value
        if name in old:
            old[name].warn(2)
            module, _, new = old[name].instead.rpartition(".")
            return getattr(import_module(module), new)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    public = sorted(module_of)
    return get, lambda: public, public
