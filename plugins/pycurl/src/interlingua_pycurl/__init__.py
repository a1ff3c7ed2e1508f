"""A faster HTTP transport for interlingua: `Client(transport="pycurl")`."""

from __future__ import annotations

from interlingua_pycurl.transport import AsyncCurlTransport, CurlTransport

__all__ = ["AsyncCurlTransport", "CurlTransport"]
