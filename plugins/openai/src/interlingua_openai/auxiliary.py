"""Exchanges besides the message itself: the live model list and the service's token count (sheet openai_responses §1).

Never sends anything.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.json import dumps, loads
from interlingua.plugins.wire import WireRequest, WireResponse
from interlingua_openai.catalogue import RESPONSES

_COUNTED = ("model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text")


def auxiliary_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Offer `models` (no arguments) and `count_tokens` (`request`: the one to count; only Responses can)."""
    if kind == "models":
        return WireRequest(method="GET", path="/models", body=b"", api=RESPONSES)
    if kind == "count_tokens" and arguments["request"].api == RESPONSES:
        body = loads(arguments["request"].body)
        counted = dumps({name: body[name] for name in _COUNTED if name in body})
        headers = {"content-type": "application/json"}
        return WireRequest(path="/responses/input_tokens", headers=headers, body=counted, api=RESPONSES)
    return None


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model ids for `models`, an int for `count_tokens`."""
    body = loads(response.body)
    if kind == "models":
        return [model["id"] for model in body["data"]]
    return body["input_tokens"] if kind == "count_tokens" else None
