"""`new-plugin`: write a new provider plugin from the template beside this module, or the finished example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from interlingua._plugins.hookspecs import PROVIDER_HOOKS, ProviderHooks
from interlingua.errors import CallerError
from interlingua.plugins import CONTRACT_VERSION
from interlingua_cli.context import CommandContext

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40  # characters of a name
_PREFIX = "interlingua"
_ENDING = ".jinja"
_LEFT_BY_TOOLS = ("_cache", "__pycache__", ".hypothesis")

_NEXT = """
Next, in {folder}:
  pip install -e '.[test]'
  pytest tests/test_contract.py   # begins with the functions to write, in order"""
_NEXT_OF_EXAMPLE = """
Next, in {folder}:
  pip install -e '.[test]'
  pytest
  python tests/parrot_server.py   # its service, to try by hand"""


def check_name(name: str) -> str:
    """Return the name if it can be a provider key and part of a distribution's name.

    Raises:
        CallerError: it cannot; the message says what can.
    """
    if name == _PREFIX or name.startswith((f"{_PREFIX}-", f"{_PREFIX}_")):
        raise CallerError(
            f"pass the provider's name alone, such as acme: the distribution is then called {_PREFIX}-acme"
        )
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise CallerError(
            f"{name!r} cannot be a provider's name: use lower-case letters and digits, a letter first, words joined"
            f" by single hyphens, {_LONGEST} characters at most, such as acme or acme-cloud"
        )
    return name


def render(name: str, into: Path) -> Path:
    """Write the distribution `interlingua-<name>` into a folder and return its path.

    Args:
        name: provider key.
        into: the folder that will hold it; made if it does not exist.

    Raises:
        CallerError: the name cannot be used, or a file or folder of the distribution's name exists.
        OSError: it cannot be written.
    """
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  no other command needs it

    values = _template_values(check_name(name))
    environment = Environment(  # it writes Python and TOML from our own template
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    rendered = (
        (environment.from_string(path).render(values), environment.from_string(text).render(values))
        for path, text in _templates()
    )
    return _write(into / f"{_PREFIX}-{name}", rendered)


def copy_example(into: Path) -> Path:
    """Write the example of the tutorial, with its service and its tests, into a folder and return its path.

    Raises:
        CallerError: a file or folder of the distribution's name exists.
        OSError: it cannot be written.
    """
    return _write(into / f"{_PREFIX}-parrot", _read_files("example"))


def _write(folder: Path, texts: Iterable[tuple[str, str]]) -> Path:
    if folder.exists() or folder.is_symlink():
        raise CallerError(f"{folder} exists already; nothing was changed: choose another name or --into, or move it")
    into = folder.parent
    into.mkdir(parents=True, exist_ok=True)
    # a temporary folder, so that a failure leaves nothing behind
    with TemporaryDirectory(dir=into, prefix=f".{folder.name}-") as temporary:
        made = Path(temporary) / folder.name
        for path, text in texts:
            target = made / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        made.rename(folder)
    return folder


def _template_values(name: str) -> dict[str, Any]:
    """Return the values the templates use; the hooks' docstrings come from the specs installed here."""
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
    """Return a spec's docstring as written in its source, without indentation."""
    text = inspect.getdoc(hook) or ""
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def _templates() -> Iterator[tuple[str, str]]:
    """Yield each template's path below the template folder, without its ending, and its text."""
    for path, text in _read_files("template"):
        if path.endswith(_ENDING):
            yield path.removesuffix(_ENDING), text


def _read_files(folder: str) -> Iterator[tuple[str, str]]:
    """Yield each file's path below a folder beside this module, and its text; caches of tools are left out."""
    queue: list[tuple[str, Traversable]] = [("", files(__package__).joinpath(folder))]
    while queue:
        path, node = queue.pop()
        if node.is_dir():
            children = [child for child in node.iterdir() if not child.name.endswith(_LEFT_BY_TOOLS)]
            queue += [(f"{path}/{child.name}".lstrip("/"), child) for child in children]
        else:
            yield path, node.read_text(encoding="utf-8")


@click.command("new-plugin")
@click.argument("name", required=False)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder that will hold interlingua-NAME; by default the current one.",
)
@click.option("--example", is_flag=True, help="Write the tutorial's finished plugin, interlingua-parrot; without NAME.")
@click.pass_obj
def new_plugin(context: CommandContext, name: str | None, into: Path, example: bool) -> None:
    """Write the distribution of a new provider plugin from a template.

    NAME is the key of the provider, such as acme: its distribution is interlingua-acme, its models are acme:NAME.
    """
    if (name is None) is not example:
        raise click.UsageError("pass the NAME of a new provider, or --example alone")
    if name is None:
        _print_written(copy_example(into), _NEXT_OF_EXAMPLE)
        return
    installed = context.registry.found().get(check_name(name))
    if installed is not None:
        source = f"{installed.distribution.name} {installed.distribution.version}".strip()
        click.echo(f"warning: {name} is a provider already, from {source}; both cannot be installed at once", err=True)
    try:
        _print_written(render(name, into), _NEXT)
    except ModuleNotFoundError as error:
        raise click.ClickException(f"new plugins need {error.name}: pip install 'interlingua[contract]'") from error


def _print_written(folder: Path, after: str) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            click.echo(path)
    click.echo(after.format(folder=folder), err=True)
