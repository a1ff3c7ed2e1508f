"""Exchanges besides the message itself: the live model list and the service's own token count (sheet gemini §1).

Never sends anything.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.json import dumps, loads
from interlingua.plugins.wire import WireRequest, WireResponse
from interlingua_google.catalogue import API

_COUNTED = ("systemInstruction", "tools", "toolConfig", "contents", "generationConfig", "cachedContent")


def auxiliary_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Offer `models` (no arguments) and `count_tokens` (`request`: the one to count; not on the cloud host)."""
    if kind == "models":
        return WireRequest(method="GET", path="/models?pageSize=1000", body=b"", api=API)
    if kind == "count_tokens":
        whole: WireRequest = arguments["request"]
        model = whole.path.rpartition(":")[0]
        body = loads(whole.body)
        counted = {"model": model.lstrip("/")} | {name: body[name] for name in _COUNTED if name in body}
        return WireRequest(
            path=f"{model}:countTokens", headers=whole.headers, body=dumps({"generateContentRequest": counted}), api=API
        )
    return None


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model names for `models`, an int for `count_tokens`."""
    body = loads(response.body)
    if kind == "models":
        return [str(model["name"]).removeprefix("models/") for model in body.get("models", ())]
    return body.get("totalTokens", 0) if kind == "count_tokens" else None
