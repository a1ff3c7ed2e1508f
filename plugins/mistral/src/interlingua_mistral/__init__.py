"""Mistral for interlingua, over the shared Chat Completions format."""
