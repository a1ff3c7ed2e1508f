"""Rules on losses: what a target cannot carry is dropped with a ledger line and a WARN, or fails when critical.

Never looks at what is declared (arrival does).
The rules room comes in.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from interlingua.errors import CapabilityError
from interlingua_contract.rule import Finding, rule
from interlingua_contract.scenes import Scene, foreign_scenes, media_scenes, result_image
from interlingua_contract.subject import Aim, Subject

FIELDS = ("session_id", "message_id", "block_type", "adapter", "reason")


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def warnings() -> Iterator[list[logging.LogRecord]]:
    """Give the WARN records that core writes inside."""
    logger = logging.getLogger("interlingua")
    kept, level, spread, others = _Kept(), logger.level, logger.propagate, logger.handlers
    logger.handlers = [kept]  # nobody else is to hear of losses made for the asking
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    try:
        yield kept.records
    finally:
        logger.handlers = others
        logger.setLevel(level)
        logger.propagate = spread


def _undeclared(aim: Aim) -> list[Scene]:
    scenes = [*media_scenes(), *foreign_scenes()]
    if aim.capabilities.supports_tools and not aim.capabilities.supports_images:
        scenes.append(result_image())  # where images are taken it follows in a user message
    return [
        scene
        for scene in scenes
        if not scene.declared(aim.capabilities) and (aim.capabilities.supports_tools or not scene.tools)
    ]


@rule(
    "C12",
    "What a target does not declare is left out, with exactly one ledger line and one WARN with all five fields.",
    source="seed 003 §7.3; DESIGN 7",
    fix="""Do nothing: core drops what you do not declare, with its ledger line. If this fails, your `to_wire` looks
    at blocks it was not given (through `provider_raw`, a cache or the arguments of another hook), or reports the same
    loss again. If the wire takes this kind after all, declare it and record a cassette that shows it.""",
)
def undeclared_kinds_are_dropped_aloud(subject: Subject) -> Iterator[Finding]:
    """One request per kind that is not declared."""
    for aim in subject.aims:
        for scene in _undeclared(aim):
            with warnings() as records:
                request = subject.written(aim, scene.history, scene.tools)
            where = f"{aim.name} {scene.name}"
            if scene.payload.encode() in request.body:
                yield Finding(why="not declared, and still in the body", where=where)
            lines = [loss for loss in request.losses if loss.block_type == scene.block_type]
            if len(lines) != 1:
                yield Finding(why=f"expected one ledger line, found {len(lines)}: {request.losses}", where=where)
            told = [record for record in records if getattr(record, "block_type", None) == scene.block_type]
            if len(told) != 1 or not all(getattr(told[0], field, None) for field in FIELDS):
                yield Finding(why=f"expected one WARN with {', '.join(FIELDS)}; found {len(told)}", where=where)


@rule(
    "C13",
    "A critical block that cannot be carried fails the request before anything is sent.",
    source="seed 003 §7.3; DESIGN 7",
    fix="""Do not drop blocks yourself: core knows which are critical. A loss that only your wire knows gets the
    verdict `blocked` when the block's index is in `message.metadata.critical`.""",
)
def critical_blocks_fail_the_request(subject: Subject) -> Iterator[Finding]:
    """The same scenes, with every block critical; signatures, which are rewritten, aside."""
    for aim in subject.aims:
        for scene in _undeclared(aim):
            if "signature" in scene.name or scene.name == "image in a result":
                continue
            history = [
                attrs.evolve(
                    message, metadata=attrs.evolve(message.metadata, critical=tuple(range(len(message.content))))
                )
                for message in scene.history
            ]
            try:
                with warnings():
                    subject.written(aim, history, scene.tools)
            except CapabilityError:
                continue
            yield Finding(why="critical, not declared, and the request was written", where=f"{aim.name} {scene.name}")
