"""A faster HTTP transport for interlingua: `Client(transport="pyreqwest")`."""

from __future__ import annotations

from interlingua_pyreqwest.client import new_client

__all__ = ["new_client"]
