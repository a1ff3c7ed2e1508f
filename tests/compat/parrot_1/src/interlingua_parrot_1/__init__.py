"""The Parrot service for interlingua; the entry point `parrot` names `plugin.plugin`."""
