"""The models this service lists and what is known of each, from `models.json` (sheet mistral §1, §4).

Never asks the network, and never makes up a fact: a name that is not listed has none.
The plugin object and the dialect come in.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from interlingua.catalogue import ModelInfo, find_model, load_catalogue
from interlingua.json import EMPTY, FrozenDict


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogue."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def model_of(name: str) -> ModelInfo | None:
    """Return the catalogue's entry for a name or alias."""
    return find_model(models(), name)


def facts_of(name: str) -> FrozenDict:
    """Return the model's facts; absent means unknown.

    `reasoning` is `none`, `effort` or `always`; `user_after_results` is true where a user message right behind results
    was seen to be taken (recorded traffic; the sheet's §2 has it refused).
    """
    model = model_of(name)
    return EMPTY if model is None else model.facts
