"""Cohere (v2 chat) for interlingua."""
