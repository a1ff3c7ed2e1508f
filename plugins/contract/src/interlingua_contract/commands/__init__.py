"""The commands `check`, `matrix` and `new-plugin`, added to the command line by being installed."""

from __future__ import annotations

from typing import Any

from interlingua.plugins import hookimpl


class Commands:
    """What this distribution adds to the command line."""

    @hookimpl
    def register_commands(self, cli: Any) -> None:
        """Add the commands."""
        from interlingua_contract.commands import checks, new_plugin  # noqa: PLC0415  only the command line needs them

        cli.add_command(checks.check, "check")
        cli.add_command(checks.matrix, "matrix")
        cli.add_command(new_plugin.new_plugin, "new-plugin")


plugin = Commands()
