"""Exchanges besides the message itself: which models the running server has (sheet ollama §1).

Never sends anything.
The plugin object comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.json import loads
from interlingua.plugins.wire import WireRequest, WireResponse
from interlingua_ollama.catalogue import API


def auxiliary_request(kind: str) -> WireRequest | None:
    """Offer `models`."""
    return WireRequest(method="GET", path="/api/tags", body=b"", api=API) if kind == "models" else None


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model names for `models`."""
    return [model["model"] for model in loads(response.body)["models"]] if kind == "models" else None
