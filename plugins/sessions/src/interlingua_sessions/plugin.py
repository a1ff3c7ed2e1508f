"""The plugin object of this distribution: it adds the commands, and that is all.

Never wraps a provider's hooks and never observes. The registry comes in, through the entry point; it is asked in every
process that makes a registry, so nothing is loaded here before a command line wants its commands.
"""

from __future__ import annotations

from typing import Any

from interlingua.plugins.hookspecs import hookimpl


class Sessions:
    """What sessions add to interlingua by being installed."""

    @hookimpl
    def register_commands(self, cli: Any) -> None:
        """Add `session`, and `--session` to `chat`."""
        from interlingua_sessions.cli import add_commands  # noqa: PLC0415  click is an extra

        add_commands(cli)


plugin = Sessions()
