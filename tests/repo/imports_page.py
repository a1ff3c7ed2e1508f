"""Write docs/plugins/imports.md, the names that a plugin may import: `python -m tests.repo.imports_page`."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

from interlingua_contract.rules.installation import FORBIDDEN_IMPORTS
from tests.support import tree

PAGE = tree.ROOT / "docs" / "plugins" / "imports.md"
FACADES = {
    "interlingua.plugins": "Hooks, wire values and helpers.",
    "interlingua.types": "Messages, blocks, events, options, capabilities.",
    "interlingua.errors": "Errors to raise ([which one](../reference/errors.md)).",
    "interlingua_serving": "Only to [serve an API](how-to/serve-an-api.md).",
}
HEAD = """# What a plugin may import

Written by `python -m tests.repo.imports_page` from the code.

- The standard library, except what does I/O when it is used (`socket`, `urllib.request`, `http.client`, `subprocess`).
- `attrs`, and libraries that only compute, such as a tokenizer or a signer.
- The names below. Modules of interlingua with an underscore change in any release.
- No HTTP client, of this or any other library. A plugin writes requests and reads answers; core sends them:
  conversations, [a key's exchange](how-to/own-framing-and-signing.md#a-key-that-is-exchanged),
  [polls and cancels](how-to/answer-later.md), lists of models and token counts (hook
  [`auxiliary_request`](../reference/hooks.md#auxiliary_request)). Only a library that obtains a secret in its own way,
  such as a cloud's SDK, may send: in `Connection.credentials`, and imported there, not at the top of the module.

Rule [C50](../reference/contract.md) imports the plugin in a new process, without a network, and fails if that loads
one of {forbidden}.
"""


def page() -> str:
    """Return the page as it should be."""
    parts = [HEAD.replace("{forbidden}", ", ".join(f"`{name}`" for name in FORBIDDEN_IMPORTS))]
    for facade, about in FACADES.items():
        module = import_module(facade)
        parts.append(f"## `{facade}`\n\n{about}\n\n| name | |\n|---|---|")
        parts += [f"| `{name}` | {sentence(getattr(module, name))} |" for name in names(facade)]
        parts.append("")
    return "\n".join(parts)


def names(facade: str) -> list[str]:
    """Return the public names of a module, classes first."""
    module = import_module(facade)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == facade]
    public = getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]
    return sorted(public, key=lambda name: (name.islower(), name))


def sentence(value: Any) -> str:
    """Return the first sentence of a docstring; of a value without one, its type."""
    if isinstance(value, (int, str)):
        return f"`{value!r}`".replace("|", "\\|")
    if type(value).__name__ == "HookimplMarker":
        return "Marks a method as the implementation of a hook."
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return (
            "a name for a type" if "typing" in type(value).__module__ or "Union" in type(value).__name__ else "a value"
        )
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    first = re.match(r".*?[.](?= |$)", text)
    return (first[0] if first else text).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
