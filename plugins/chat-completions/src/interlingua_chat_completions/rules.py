"""The wire rules that ship with the format: what its services refuse, by the name of the file in `lint/`.

Never decides which of them hold for a service; its plugin or its row names them.
Plugins of services on this format come in, and the rows.
"""

from __future__ import annotations

from importlib.resources import files

FORMAT = "format"
PAIRING = "pairing"

_FILES = files("interlingua_chat_completions").joinpath("lint")


def wire_rules(*names: str) -> list[str]:
    """Return the texts of rule files: `format` holds for all services, `pairing` for those that pair calls.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    return [_FILES.joinpath(f"{name}.toml").read_text("utf-8") for name in names]


def known(name: str) -> bool:
    """Tell whether there is a rule file of that name."""
    return _FILES.joinpath(f"{name}.toml").is_file()
