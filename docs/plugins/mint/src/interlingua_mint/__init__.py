"""Mint for interlingua: an example of a service that exchanges the key for a token."""
