"""Rules on what is declared: each declared kind of block really reaches the wire, whole.

Never looks at kinds that are not declared (losses do).
The rules room comes in.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import attrs

from interlingua.types.blocks import TextBlock
from interlingua_contract.forms import overtakes, place_of
from interlingua_contract.rule import Finding, rule
from interlingua_contract.scenes import PAYLOAD, Scene, linked_image, media_scenes, result_image
from interlingua_contract.subject import Aim, Subject


@rule(
    "C11",
    "A declared kind of block reaches the wire whole, by its type and in its place, without a line in the ledger.",
    source="DESIGN 7, 10; seed 003 §7.2",
    fix="""Write every kind your capabilities declare, with its data unchanged. If the wire cannot take it in some
    place, do not declare it, or append a Loss there and name it with its reason in quirks.dropped_kinds.""",
)
def declared_kinds_arrive(subject: Subject) -> Iterator[Finding]:
    """One request per declared medium; then a picture between two texts."""
    for aim in subject.aims:
        yield from _in_its_place(subject, aim)
        for scene in [*media_scenes(), linked_image(), result_image()]:
            tools_missing = bool(scene.tools) and not aim.capabilities.supports_tools
            if tools_missing or not scene.declared(aim.capabilities) or scene.name in subject.quirks.dropped_kinds:
                continue
            request = subject.written(aim, scene.history, scene.tools)
            if scene.payload.encode() not in request.body:
                yield Finding(why=f"{scene.name}: declared, and its data is not in the body", where=aim.name)
            elif any(loss.verdict != "rewritten" for loss in request.losses):
                yield Finding(why=f"{scene.name}: declared, and the ledger says {request.losses[0]}", where=aim.name)
            elif _miscalled(scene, request.body):
                yield Finding(why=f"{scene.name}: sent as another type than {scene.media_type}", where=aim.name)


def _miscalled(scene: Scene, body: bytes) -> bool:
    """True when the wire carries media types, and not this one."""
    family = scene.media_type.partition("/")[0].encode() + b"/"
    return scene.payload == PAYLOAD and family in body and scene.media_type.encode() not in body


def _in_its_place(subject: Subject, aim: Aim) -> Iterator[Finding]:
    picture = media_scenes()[0]
    if not picture.declared(aim.capabilities):
        return
    (asked,) = picture.history
    history = [attrs.evolve(asked, content=(TextBlock(text="mkt1q"), asked.content[1], TextBlock(text="mkt2q")))]
    body = subject.body(aim, history)
    places = [place_of(body, word) for word in ("mkt1q", PAYLOAD, "mkt2q")]
    if any(one and other and overtakes(one, other) for one, other in pairwise(places)):
        yield Finding(why="a picture between two texts stands elsewhere", where=aim.name)
