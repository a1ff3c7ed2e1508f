"""Rules on what is declared: each declared kind of block really reaches the wire, whole.

Never looks at kinds that are not declared (losses do).
The rules room comes in.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.contract.rule import Finding, rule
from interlingua.contract.scenes import media_scenes, result_image
from interlingua.contract.subject import Subject


@rule(
    "C11",
    "A declared kind of block reaches the wire whole, without a line in the ledger.",
    source="DESIGN 7, 10; seed 003 §7.2",
    fix="""Write every kind your capabilities declare, with its data unchanged. If the wire cannot take it in some
    place, do not declare it, or append a Loss there and name it with its reason in quirks.dropped_kinds.""",
)
def declared_kinds_arrive(subject: Subject) -> Iterator[Finding]:
    """One request per declared medium."""
    for aim in subject.aims:
        for scene in [*media_scenes(), result_image()]:
            tools_missing = bool(scene.tools) and not aim.capabilities.supports_tools
            if tools_missing or not scene.declared(aim.capabilities) or scene.name in subject.quirks.dropped_kinds:
                continue
            request = subject.written(aim, scene.history, scene.tools)
            if scene.payload.encode() not in request.body:
                yield Finding(why=f"{scene.name}: declared, and its data is not in the body", where=aim.name)
            elif any(loss.verdict != "rewritten" for loss in request.losses):
                yield Finding(why=f"{scene.name}: declared, and the ledger says {request.losses[0]}", where=aim.name)
