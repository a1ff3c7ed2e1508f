"""`--option NAME=VALUE` read by the type of the option's field.

Never knows an option by name, so a new field of AdapterOptions is a new option here.
The commands that make requests come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, get_args, get_type_hints

import click

from interlingua.json import FrozenDict, loads
from interlingua.types.options import AdapterOptions, Effort, ToolChoice

_FIXED = {"model", "stream"}  # arguments of their own


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _bool(text: str) -> bool:
    if text.lower() not in _WORDS:
        raise ValueError("expected true or false")
    return _WORDS[text.lower()]


def _object(text: str) -> Any:
    value = loads(text)
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def _effort(text: str) -> str:
    if text not in get_args(Effort):
        raise ValueError(f"expected one of {', '.join(get_args(Effort))}")
    return text


def _choice(text: str) -> Any:
    return text if text in ("auto", "none", "required") else ToolChoice(text)


_READERS: dict[Any, Callable[[str], Any]] = {
    int: int, float: float, bool: _bool, str: str, FrozenDict: _object, Effort: _effort, ToolChoice: _choice,
    tuple[str, ...]: lambda text: (text,),
}  # fmt: skip


@cache
def _fields() -> dict[str, Callable[[str], Any]]:
    hints = get_type_hints(AdapterOptions)
    readers = {kind: reader for base, reader in _READERS.items() for kind in (base, base | None)}
    return {name: readers[kind] for name, kind in hints.items() if name not in _FIXED and kind in readers}


def read_options(_ctx: click.Context, _parameter: click.Parameter, pairs: Iterable[str]) -> dict[str, Any]:
    """Read `name=value` pairs; a click callback.

    Raises:
        click.BadParameter: no such option, or its value is not of its type.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        reader = _fields().get(name)
        if not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        if reader is None:
            raise click.BadParameter(f"no option {name!r}; there are {', '.join(sorted(_fields()))}")
        try:
            value = reader(text)
        except ValueError as error:
            raise click.BadParameter(f"{name}: {error}") from error
        options[name] = (*options.get(name, ()), *value) if isinstance(value, tuple) else value
    return options


option_option = click.option(
    "-o",
    "--option",
    "options",
    metavar="NAME=VALUE",
    multiple=True,
    callback=read_options,
    help="An option of the request, such as temperature=0 or provider_options='{...}'; may be repeated.",
)
