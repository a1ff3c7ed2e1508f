"""Who plays: the two models, how to reach them, and the line that says where the answers come from.

Never names a provider: the recorded cast is data beside its cassette, a live one is what the user typed.
The command and the recorder come in.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from interlingua.errors import CallerError
from interlingua_cli.demo.script import LIVE, SMALL, Turn

FOLDER = Path("cassettes") / "demo"


CASSETTE = "session.yaml"


_NOWHERE = "http://recorded"


@attrs.frozen(kw_only=True)
class Cast:
    """Everything `play` needs, and how to make its client.

    Attributes:
        models: the two canonical model ids.
        turns: what the user says.
        options: request options.
        settings: connection settings per provider key.
        cassette: the recorded exchanges to answer from; None talks to the network.
        as_if: model id -> the model whose list price its tokens are shown at, for models without a price.
        where: one line for a person.
    """

    models: tuple[str, ...]
    turns: tuple[Turn, ...]
    options: Mapping[str, Any] = attrs.field(factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    cassette: Path | None = None
    as_if: Mapping[str, str] = attrs.field(factory=dict)
    where: str


def find_folder() -> Path:
    """Return the folder of the recorded session: of the checkout one stands in, or the one this package runs from.

    Raises:
        CallerError: there is none; the message says what to do instead.
    """
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / FOLDER / "session.toml").is_file():
                return folder / FOLDER
    raise CallerError("no recorded session here: run this in a checkout of interlingua, or use --live MODEL,MODEL")


def live(models: str) -> Cast:
    """Cast two models that the user named.

    Raises:
        CallerError: not two.
    """
    names = tuple(name.strip() for name in models.split(","))
    if len(names) != 2 or not all(names):
        raise CallerError("--live takes two models, PROVIDER:NAME each, with a comma between them")
    return Cast(models=names, turns=LIVE, where=f"live: {' and '.join(names)}")


def local(url: str) -> Cast:
    """Cast a local server that speaks both wires of the recorded session."""
    table = _table(find_folder())
    base = url.rstrip("/").removesuffix("/v1")
    return _small(table, base, where=f"live from {base}")


def recorded() -> Cast:
    """Cast the recorded session."""
    folder = find_folder()
    table = _table(folder)
    return attrs.evolve(_small(table, _NOWHERE, where=table["recorded"]), cassette=folder / CASSETTE)


def _table(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "session.toml").read_text(encoding="utf-8"))


def _small(table: Mapping[str, Any], base: str, *, where: str) -> Cast:
    settings = {key: {"base_url": base + path} for key, path in table["paths"].items()}
    models = tuple(table["models"])
    as_if = dict(zip(models, table["as_if"], strict=True))
    return Cast(models=models, turns=SMALL, options=table["options"], settings=settings, as_if=as_if, where=where)
