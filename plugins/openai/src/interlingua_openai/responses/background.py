"""Answers that the service generates in the background (WIRE.md, Responses in the background)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from interlingua.plugins import FollowUp, RequestContext, WireRequest, WireResponse, loads

UNFINISHED = ("queued", "in_progress")
_POLL_SECONDS = 2.0  # between two requests for an answer that takes minutes
_ENCRYPTED = "reasoning.encrypted_content"


def set_background(fields: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Set what a request in the background needs, unless the caller did: it is stored, and no reasoning is encrypted.

    Args:
        fields: the request's fields, with the caller's.
        given: the caller's fields.
    """
    if not fields.get("background"):
        return
    if "store" not in given:
        fields["store"] = True
    if "include" not in given and (kept := [name for name in fields.pop("include", ()) if name != _ENCRYPTED]):
        fields["include"] = kept


def follow_up(response: WireResponse, context: RequestContext) -> FollowUp | None:
    """Return the request for a response that is still generated, or None if this one is final."""
    body = loads(response.body)
    if not isinstance(body, dict) or body.get("status") not in UNFINISHED or not body.get("background"):
        return None
    return _later(body["id"], context, stream=False)


def stream_follow_up(response: Mapping[str, Any], context: RequestContext) -> FollowUp | None:
    """Return the request for the events of a streamed response, from the first; None if it is not in the background."""
    if not response.get("background") or not isinstance(response.get("id"), str):
        return None
    return _later(response["id"], context, stream=True)


def _later(name: str, context: RequestContext, *, stream: bool) -> FollowUp:
    """Return the request that asks for a response at the address of the host that generates it."""
    sent = "" if context.request is None else context.request.path.partition("?")[0]
    path = f"{sent.rpartition('/responses')[0]}/responses/{quote(name, safe='')}"
    query = "?stream=true&starting_after=0" if stream else ""  # 0 begins at event 1: all that came is skipped
    again = WireRequest(method="GET", path=path + query, body=b"", api="responses", stream=stream)
    cancel = WireRequest(path=f"{path}/cancel", body=b"", api="responses")
    return FollowUp(request=again, after=0.0 if stream else _POLL_SECONDS, cancel=cancel)
