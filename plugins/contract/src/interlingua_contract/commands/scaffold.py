"""A new plugin's distribution, rendered from the template beside this module: files on disk, all of them or none.

Never writes into a folder that is there, and never imports or checks what it wrote.
The command `new-plugin` comes in, and tests of the template.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jinja2 import Environment, StrictUndefined

from interlingua.errors import CallerError
from interlingua.plugins.hookspecs import CONTRACT_VERSION, PROVIDER_HOOKS, ProviderHooks

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


_LONGEST = 40


_PREFIX = "interlingua"


_ENDING = ".jinja"


def checked_name(name: str) -> str:
    """Return the provider key, if it can be one and a distribution's name as well.

    Raises:
        CallerError: it cannot; the message says what can.
    """
    if name == _PREFIX or name.startswith((f"{_PREFIX}-", f"{_PREFIX}_")):
        raise CallerError(f"give the provider's name alone: the distribution of acme is called {_PREFIX}-acme")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise CallerError(
            f"{name!r} cannot be a provider's name: it is lower-case letters and digits, a letter first, words joined"
            f" by single hyphens, {_LONGEST} characters at most, such as acme or acme-cloud"
        )
    return name


def render(name: str, into: Path) -> Path:
    """Write the distribution `interlingua-<name>` into a folder and return where it is.

    Args:
        name: provider key.
        into: the folder that will hold it; made where it is not there.

    Raises:
        CallerError: the name is none, or something of the distribution's name is there already.
        OSError: it cannot be written.
    """
    folder = into / f"{_PREFIX}-{checked_name(name)}"
    if folder.exists() or folder.is_symlink():
        raise CallerError(f"{folder} is there already and is left as it is: choose another name or --into, or move it")
    facts = _facts(name)
    environment = Environment(  # it writes Python and TOML, and nothing in it comes from a stranger
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    into.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=into, prefix=f".{folder.name}-") as half:
        made = Path(half) / folder.name
        for path, text in _templates():
            target = made / environment.from_string(path.removesuffix(_ENDING)).render(facts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(environment.from_string(text).render(facts), encoding="utf-8")
        made.rename(folder)
    return folder


def _facts(name: str) -> dict[str, Any]:
    """Return what the templates may say; the hooks' docstrings are those of the specs installed here."""
    words = name.split("-")
    return {
        "name": name,
        "package": f"{_PREFIX}_{'_'.join(words)}",
        "title": " ".join(word.capitalize() for word in words),
        "camel": "".join(word.capitalize() for word in words),
        "environ": "_".join(words).upper(),
        "core_version": ".".join(version(_PREFIX).split(".")[:2]),
        "contract_version": CONTRACT_VERSION,
        "docs": {hook: _docstring(getattr(ProviderHooks, hook)) for hook in PROVIDER_HOOKS},
    }


def _docstring(hook: Any) -> str:
    """Return a spec's docstring as it stands in source, to be indented."""
    text = inspect.getdoc(hook) or ""
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def _templates() -> Iterator[tuple[str, str]]:
    """Yield each template's path below the template folder, and its text."""
    queue: list[tuple[str, Traversable]] = [("", files(__package__).joinpath("template"))]
    while queue:
        path, node = queue.pop()
        if node.is_dir():
            queue += [(f"{path}/{child.name}".lstrip("/"), child) for child in node.iterdir()]
        elif path.endswith(_ENDING):
            yield path, node.read_text(encoding="utf-8")
