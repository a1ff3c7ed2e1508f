"""Kiln for interlingua: an example of a service that answers later."""
