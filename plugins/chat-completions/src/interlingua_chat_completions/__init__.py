"""The Chat Completions format for interlingua, shared by the services that speak it."""
