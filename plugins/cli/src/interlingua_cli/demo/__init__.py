"""The demo: one conversation that crosses providers and comes back; the command is `interlingua_cli.commands.demo`."""
