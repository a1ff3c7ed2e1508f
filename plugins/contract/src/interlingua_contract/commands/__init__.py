"""The commands `check`, `matrix` and `new-plugin`, added to the command line by being installed."""

from __future__ import annotations

from typing import Any

from interlingua.plugins.hookspecs import hookimpl


class Commands:
    """What this distribution adds to the command line."""

    @hookimpl
    def register_commands(self, cli: Any) -> None:
        """Add the commands."""
        from interlingua_contract.commands import check, matrix, new_plugin  # noqa: PLC0415  only the command line does

        cli.add_command(check.command, "check")
        cli.add_command(matrix.command, "matrix")
        cli.add_command(new_plugin.command, "new-plugin")


plugin = Commands()
