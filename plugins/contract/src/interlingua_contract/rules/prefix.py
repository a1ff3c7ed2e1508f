"""Rules on the prefix: what was sent in one turn stands at the beginning of the next, because caches are prefix caches.

Never looks at cache markers, which are spliced in after.
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlingua.types.blocks import TextBlock
from interlingua.types.factories import assistant, user
from interlingua.types.messages import Message
from interlingua_contract import json_paths as trees
from interlingua_contract.generated import Broken, holds, own
from interlingua_contract.json_paths import Path, at, removed, shown
from interlingua_contract.rule import Finding, rule
from interlingua_contract.scenes import FOREIGN, PICTURE, READ
from interlingua_contract.strategies.conversations import conversations, request_points
from interlingua_contract.subject import Aim, Subject


@rule(
    "C04",
    "The elements of turn n are a prefix of those of turn n+1, and nothing before them changes.",
    source="DESIGN 8",
    fix="""Write each message by itself, from that message alone: no field that depends on being last or first, no
    renumbering, no merging into an element that was sent before, nothing hoisted from the middle of a conversation.
    Fields beside the message array (system, tools, settings) may not depend on how long the conversation is. If the
    array that grows is not found, name it in quirks.elements.""",
)
def prefix_is_stable(subject: Subject) -> Iterator[Finding]:
    """Over growing conversations with swaps, parallel calls and repairs."""
    paths = {aim.api: grown_path(subject, aim) for aim in subject.aims}
    for api, path in paths.items():
        if path is None:
            yield Finding(why="no array of the body grows with the conversation; name it in quirks.elements", where=api)

    def law(aim: Aim, history: list[Message]) -> None:
        path = paths[aim.api]
        earlier: list[Any] = []
        frame: str | None = None
        for point in request_points(history) if path is not None else ():
            body = subject.body(aim, point, [READ])
            now = at(body, path or ())
            kept = json.dumps(removed(body, path or ()), sort_keys=True)
            if not _begins_with(now, earlier):
                raise Broken(f"element {_first(earlier, now)} of {shown(path or ())} changed when the history grew")
            if frame is not None and kept != frame:
                raise Broken("a field beside the messages changed when the history grew")
            earlier, frame = now, kept

    def strategy(aim: Aim) -> Any:
        return conversations((own(subject, aim), FOREIGN), marked=True, cached=False)

    yield from holds(subject, law, strategy)
    for aim in subject.aims:
        if aim.capabilities.supports_images:  # the element most often thrown away once it is old
            try:
                law(aim, [user([TextBlock(text="mkt0q"), PICTURE]), *_talk(5)])
            except Broken as broken:
                yield Finding(why=str(broken), where=aim.name)


def _talk(turns: int) -> list[Message]:
    return [one for at in range(turns) for one in (assistant(f"mka{at}q"), user(f"mkt{at}q"))]


def grown_path(subject: Subject, aim: Aim) -> Path | None:
    """Return the path of the array that grows with the conversation, or None."""
    named = subject.quirks.elements.get(aim.api)
    if named is not None:
        return tuple(named.split("."))
    short = subject.body(aim, [user("one")])
    return trees.grown_path(short, subject.body(aim, [user("one"), assistant("two"), user("three")]))


def _begins_with(now: list[Any], earlier: list[Any]) -> bool:
    """True when the earlier elements, members in order, are there again; the last one's lists may have grown.

    An answer may go on in the turn that an answer began: the law is one of content elements (DESIGN 8).
    """
    if not earlier:
        return True
    last = len(earlier) - 1
    same = len(now) > last and json.dumps(now[:last]) == json.dumps(earlier[:last])
    return same and _grown(earlier[last], now[last])


def _grown(earlier: Any, now: Any) -> bool:
    if isinstance(earlier, dict) and isinstance(now, dict):
        return list(earlier) == list(now) and all(_grown(earlier[key], now[key]) for key in earlier)
    if isinstance(earlier, list) and isinstance(now, list):
        return _begins_with(now, earlier)
    return json.dumps(earlier) == json.dumps(now)


def _first(earlier: list[Any], now: list[Any]) -> int:
    return next((at for at, (a, b) in enumerate(zip(earlier, now, strict=False)) if a != b), len(now))
