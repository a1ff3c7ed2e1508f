"""Finding a model in a catalogue by the name a person or a provider wrote.

Never guesses a family: a name that is not an id, an alias or a dated snapshot of one is unknown.
The catalogue's package and whoever holds a list of models come in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlingua.catalogue.values import ModelInfo

_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})\Z")


def find_model(models: Iterable[ModelInfo], name: str) -> ModelInfo | None:
    """Return the model with this id, else with this alias, else the one whose dated snapshot this is.

    Args:
        models: a catalogue.
        name: model name without the provider key; `-YYYYMMDD` and `-YYYY-MM-DD` at its end date a snapshot.
    """
    known = tuple(models)
    found = _named(known, name)
    if found is None and (dated := _DATED.search(name)):
        found = _named(known, name[: dated.start()])
    return found


def _named(models: tuple[ModelInfo, ...], name: str) -> ModelInfo | None:
    for model in models:
        if model.id == name:
            return model
    return next((model for model in models if name in model.aliases), None)
