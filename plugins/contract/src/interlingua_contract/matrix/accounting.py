"""The accounting: every leaf of a history is in the wire or in the ledger, and in exactly one of the two.

Never trusts the ledger: what is in the wire is found by looking.
The written request comes in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from interlingua.plugins.wire import Loss
from interlingua.types.messages import Message
from interlingua_contract.matrix.body import Body
from interlingua_contract.matrix.leaves import MEDIA, Leaf, Place, is_blank, leaves_of

_PATH = re.compile(r"messages\[(\d+)\]\.content\[(\d+)\]")


FlagSaid = Callable[[int, int], bool]


"""Tells whether the wire says otherwise than in words that a result, by message and block, is an error."""


def unaccounted(
    messages: Sequence[Message],
    body: Body,
    losses: Sequence[Loss],
    *,
    wire_ids: Mapping[tuple[int, int], str],
    names: Mapping[str, str],
    flag_said: FlagSaid,
) -> Iterator[str]:
    """Yield what is wrong with the books, a sentence each.

    A row that drops a block covers all its leaves; a row that rewrites one stands for exactly one leaf that is no
    longer as it was.

    Args:
        messages: the canonical history.
        body: the request.
        losses: its ledger.
        wire_ids: (message, block) -> the wire's id of a call or of the call that a result answers.
        names: canonical tool name -> the name on this wire.
        flag_said: asked for results that are errors.
    """
    rows = _by_place(losses)

    def carried(leaf: Leaf) -> bool:
        return _carried(leaf, body, wire_ids, names, flag_said)

    whole = {place[:2]: kept for place, kept in rows.items() if place.block_type == "tool_result" and _drops(kept)}
    for place, group in groupby(sorted(leaves_of(messages), key=_place), key=_place):
        yield from _judged(place, list(group), rows.pop(place, []) or whole.get(place[:2], []), carried)
    for place, left in rows.items():
        if place.message < len(messages) and is_blank(messages[place.message].content[place.block]):
            continue
        yield f"{_said(place)}: the ledger has {left[0].reason!r} of a block that is not there"


def _drops(rows: Sequence[Loss]) -> bool:
    return any(row.verdict != "rewritten" for row in rows)


def _place(leaf: Leaf) -> Place:
    return leaf.place


def _by_place(losses: Sequence[Loss]) -> dict[Place, list[Loss]]:
    found: dict[Place, list[Loss]] = {}
    for loss in losses:
        if match := _PATH.match(loss.path):
            place = Place(int(match[1]), int(match[2]), loss.block_type)
            found.setdefault(place, []).append(loss)
    return found


def _judged(place: Place, group: list[Leaf], rows: list[Loss], carried: Callable[[Leaf], bool]) -> Iterator[str]:
    there = {leaf.kind for leaf in group if carried(leaf)}
    gone = _gone(group, carried)
    dropped = [row for row in rows if row.verdict != "rewritten"]
    if dropped:
        if there:
            yield f"{_said(place)}: {', '.join(sorted(there))} in the wire and in the ledger ({dropped[0].reason})"
        if len(rows) > 1 and place.block_type not in MEDIA:
            yield f"{_said(place)}: one loss stands in the ledger {len(rows)} times ({rows[1].reason})"
    elif len(gone) > len(rows):
        yield f"{_said(place)}: {', '.join(gone)} neither in the wire nor in the ledger"
    elif len(gone) < len(rows):
        reasons = "; ".join(row.reason for row in rows)
        yield f"{_said(place)}: the ledger has {len(rows)} rows for {len(gone)} losses ({reasons})"


def _gone(group: list[Leaf], carried: Callable[[Leaf], bool]) -> list[str]:
    """Return the kinds of leaves that did not arrive, each part of a result by itself."""
    found: list[str] = []
    for _, leaves in groupby(group, key=lambda leaf: leaf.part):
        lost = [leaf.kind for leaf in leaves if not carried(leaf)]
        if "data" in lost:
            lost = ["data"]  # what is not there has no place and no title
        found += dict.fromkeys(lost)
    return found


def _said(place: Place) -> str:
    return f"messages[{place.message}].content[{place.block}] ({place.block_type})"


def _carried(
    leaf: Leaf,
    body: Body,
    wire_ids: Mapping[tuple[int, int], str],
    names: Mapping[str, str],
    flag_said: FlagSaid,
) -> bool:
    kind, value, place = leaf.kind, leaf.value, leaf.place
    if kind == "call":
        return body.has_object(value) and names.get(leaf.block.name, leaf.block.name) in body.texts
    if kind == "form":
        return not body.wraps(value)
    if kind in ("citations", "content"):
        return body.has_content(value)
    if kind == "role":
        return body.has_text(value) and not body.tags(value)
    if kind == "error":
        return flag_said(place.message, place.block)
    if kind == "place":
        name, texts = value
        links = {wire_ids.get((place.message, place.block), ""), names.get(name, name)}
        return body.holds_together(texts, links, leaf.block.source.data)
    return body.has_text(value)
