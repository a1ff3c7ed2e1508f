"""Holds a request that was written back against the one it was read from: equal, or why not.

A difference has a reason: both sides mean the same in another form (`Form`), or the ledger reports it. Whatever else
differs is unexplained. Nothing here is taken from the adapters.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from interlingua._request.prepare import RequestDraft
from interlingua.plugins import Loss, Registry, WireRequest
from interlingua_serving import ServeContext, find_serving_plugin

REGISTRY = Registry()
LEDGER = "in the ledger: "


@attrs.frozen
class Form:
    """Two forms of the same: `change` brings a request into one of them and tells whether it was in the other."""

    reason: str
    change: Callable[[dict[str, Any]], bool]


@attrs.frozen
class Difference:
    """A place where two JSON values differ."""

    place: str
    kind: str
    before: Any = None
    after: Any = None


def written_back(
    key: str, api: str, path: str, headers: dict[str, str], body: dict[str, Any], model: str
) -> WireRequest:
    """Read a request and write it for the service it was made to, with the rows of both ways."""
    provider = REGISTRY.provider(key)
    request = WireRequest(path=path, headers=headers, body=json.dumps(body).encode(), api=api)
    read = find_serving_plugin(REGISTRY, key).from_wire_request(request, ServeContext(provider=key, api=api))
    messages, options, losses = read.for_upstream(key, api, model)
    made = RequestDraft(provider, messages, read.tools, options).build({})
    return attrs.evolve(made, losses=(*losses, *made.losses))


def reasons(
    before: dict[str, Any],
    after: dict[str, Any],
    losses: Sequence[Loss],
    forms: Sequence[Form],
    options: dict[str, str],
) -> tuple[list[str], list[Difference]]:
    """Return the reasons of all differences, and the differences that have none.

    Args:
        before: the request as it came.
        after: as it was written.
        losses: the ledger.
        forms: of this API.
        options: member of the body -> name of its option, where the ledger calls it otherwise.
    """
    if before == after:
        return [], []
    sides = copy.deepcopy(before), copy.deepcopy(after)
    found = []
    for form in forms:
        changed = [form.change(side) for side in sides]
        if changed[0] != changed[1]:
            found.append(form.reason)
    unexplained = []
    for difference in differences(*sides):
        reason = _lost(difference, losses, options)
        if reason is None:
            unexplained.append(difference)
        else:
            found.append(LEDGER + reason)
    return list(dict.fromkeys(found)), unexplained


def differences(before: Any, after: Any, place: str = "") -> Iterator[Difference]:
    """Yield the places where two JSON values differ; numbers of equal value are equal."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            where = f"{place}/{name}"
            if name not in before:
                yield Difference(where, "added", None, after[name])
            elif name not in after:
                yield Difference(where, "missing", before[name])
            else:
                yield from differences(before[name], after[name], where)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for left, right in zip(before, after, strict=True):
            yield from differences(left, right, f"{place}/*")
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield Difference(place, "value", before, after)


def _lost(difference: Difference, losses: Sequence[Loss], options: dict[str, str]) -> str | None:
    top = difference.place.split("/")[1]
    names = dict.fromkeys(("messages", "system", "contents", "systemInstruction", "input"), ("messages[",)) | {
        "tools": ("tools[",)
    }
    wanted = names.get(top, (f"options.{options.get(top, top)}",))
    for loss in losses:
        if loss.path.startswith(wanted):
            return _general(loss.reason)
    return None


def _general(reason: str) -> str:
    """Return a row's reason without the numbers, ids and words of one request."""
    general = re.sub(r"\bcall \S+ of \S+", "call … of …", reason)
    return re.sub(r"'[^']*'|(?<![A-Za-z])\d[\d.,]*\d|(?<![A-Za-z])\d\b", "…", general)
