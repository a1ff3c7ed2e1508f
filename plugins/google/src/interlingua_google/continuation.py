"""Continue an answer that reached the limit of one request (WIRE.md, Continuation)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from interlingua.plugins import FollowUp, RequestContext, WireResponse, dumps, loads

_EARLIER = "earlier"  # in the echo of a follow-up: the chunks before its answer, as text
_NEXT = "continuationToken"
GOES_ON = "CONTINUATION"


def follow_up(response: WireResponse, context: RequestContext) -> FollowUp | None:
    """Return the request that continues a whole answer, or None if it is at its end."""
    body = loads(response.body)
    candidates = body.get("candidates") if isinstance(body, dict) else None
    if not candidates or not isinstance(candidates[0], dict):
        return None
    return continue_from(candidates[0], [*earlier_chunks(context), body], context)


def continue_from(
    candidate: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]], context: RequestContext
) -> FollowUp | None:
    """Return the request that continues an answer, or None: the same one, with the token of the answer so far.

    Args:
        candidate: the candidate that ends the answer so far.
        earlier: the chunks of the answer so far; they come before those of the next request.
        context: context of the request that was answered.
    """
    token, sent = candidate.get(_NEXT), context.request
    if sent is None or not isinstance(token, str) or candidate.get("finishReason") != GOES_ON:
        return None
    body = loads(sent.body)
    if body.get(_NEXT) == token:  # it would only be repeated
        return None
    again = dumps({**body, _NEXT: token})
    return FollowUp(request=attrs.evolve(sent, body=again, echo={_EARLIER: [dumps(each).decode() for each in earlier]}))


def earlier_chunks(context: RequestContext) -> list[dict[str, Any]]:
    """Return the chunks that came before the answer to a follow-up."""
    return [loads(each) for each in context.echo.get(_EARLIER, ())]


def add_counts(counts: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sum of the counts of two requests: numbers, and lists by modality."""
    found = dict(counts)
    for name, value in more.items():
        before = counts.get(name)
        if type(value) is int and type(before) is int:
            found[name] = before + value
        elif isinstance(value, list) and isinstance(before, list):
            found[name] = _add_modalities(before, value)
        else:
            found[name] = value
    return found


def _add_modalities(counts: Sequence[Any], more: Sequence[Any]) -> list[dict[str, Any]]:
    found: dict[Any, dict[str, Any]] = {}
    for each in (*counts, *more):
        if isinstance(each, dict):
            modality, tokens = each.get("modality"), each.get("tokenCount")
            before = found.get(modality, {}).get("tokenCount")
            found[modality] = {**each}
            if type(tokens) is int and type(before) is int:
                found[modality]["tokenCount"] = before + tokens
    return [*found.values()]
