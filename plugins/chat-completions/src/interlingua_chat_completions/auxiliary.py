"""The live model list, an exchange besides the message: services of this format have it at one place.

Never sends anything, and never says which service has one.
The row-driven providers and the plugins of services on this format come in.
"""

from __future__ import annotations

from typing import Any

from interlingua.json import loads
from interlingua.plugins.wire import WireRequest, WireResponse
from interlingua_chat_completions.format import API


def auxiliary_request(kind: str) -> WireRequest | None:
    """Offer `models`."""
    return WireRequest(method="GET", path="/models", body=b"", api=API) if kind == "models" else None


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model ids for `models`; an object with `data`, or a bare list (one service)."""
    body = loads(response.body)
    listed = body["data"] if isinstance(body, dict) else body
    return [model["id"] for model in listed] if kind == "models" else None
