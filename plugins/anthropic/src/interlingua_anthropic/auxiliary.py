"""Exchanges besides the message itself: the live model list and the service's own token count (sheet anthropic §1).

Never sends anything.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.json import dumps, loads
from interlingua.plugins.wire import WireRequest, WireResponse
from interlingua_anthropic.catalogue import API

_COUNTED = ("model", "system", "messages", "tools", "tool_choice", "thinking")


def auxiliary_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Offer `models` (no arguments) and `count_tokens` (`request`: the one to count)."""
    if kind == "models":
        return WireRequest(method="GET", path="/v1/models?limit=1000", body=b"", api=API)
    if kind == "count_tokens":
        whole: WireRequest = arguments["request"]
        body = loads(whole.body)
        counted = dumps({name: body[name] for name in _COUNTED if name in body})
        return WireRequest(path="/v1/messages/count_tokens", headers=whole.headers, body=counted, api=API)
    return None


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model ids for `models`, an int for `count_tokens`."""
    body = loads(response.body)
    if kind == "models":
        return [model["id"] for model in body["data"]]
    return body["input_tokens"] if kind == "count_tokens" else None
