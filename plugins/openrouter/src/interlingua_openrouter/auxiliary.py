"""Exchanges besides the message itself: the live model list, and what a finished answer cost (sheet openrouter §1).

Never sends anything.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from interlingua.json import loads
from interlingua.plugins.wire import WireRequest, WireResponse
from interlingua.types.messages import Message
from interlingua_chat_completions.format import API
from interlingua_openrouter.costs import dollars, generation_id


def auxiliary_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Offer `models` (no arguments) and `generation_cost` (`id`: the generation's, or `message`: the answer).

    Without an id there is nothing to ask for, and None says so.
    """
    if kind == "models":
        return WireRequest(method="GET", path="/models", body=b"", api=API)
    if kind != "generation_cost":
        return None
    answer = arguments.get("message")
    found = arguments.get("id") or (generation_id(answer) if isinstance(answer, Message) else None)
    if not found:
        return None
    return WireRequest(method="GET", path=f"/generation?id={quote(str(found), safe='')}", body=b"", api=API)


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model ids for `models`; for `generation_cost` US dollars as a Decimal, or None."""
    body = loads(response.body)
    if kind == "models":
        return [model["id"] for model in body["data"]]
    return dollars(body["data"].get("total_cost")) if kind == "generation_cost" else None
