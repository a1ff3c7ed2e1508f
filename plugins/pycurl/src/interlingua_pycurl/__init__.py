"""A faster HTTP transport for interlingua: `Client(transport="pycurl")`."""

from __future__ import annotations

from interlingua_pycurl.client import new_client

__all__ = ["new_client"]
