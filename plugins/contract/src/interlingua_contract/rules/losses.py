"""Rules on what a target can carry: declared kinds arrive, others are dropped with a ledger row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs

from interlingua.errors import CapabilityError
from interlingua.types import Message, Origin, TextBlock, ThinkingBlock, user
from interlingua_contract.guard import record_logs
from interlingua_contract.hook_calls import describe
from interlingua_contract.json_paths import MARK, find_path, stands_after
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.scenes import (
    FOREIGN,
    PAYLOAD,
    READ,
    LawBroken,
    Scene,
    assistant_turn,
    call,
    check_law,
    foreign_scenes,
    histories_of,
    linked_image,
    media_scenes,
    own_origin,
    result_document,
    result_image,
)
from interlingua_contract.subject import Aim, Subject

LOG_FIELDS = ("session_id", "message_id", "block_type", "adapter", "reason")


def _undeclared_scenes(aim: Aim) -> list[Scene]:
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
    "An undeclared kind is left out, with exactly one ledger row and one log record that has all five fields.",
    source="format.md, Projection and losses",
    fix="""Do nothing: core drops what you do not declare and records the loss. If this rule fails, your `to_wire`
    reads blocks that it did not receive (through `provider_raw`, a cache or the arguments of another hook), or
    reports the same loss again. If the wire does take this kind, declare it and record a cassette that shows it.""",
)
def undeclared_kinds_are_dropped_and_logged(subject: Subject) -> Iterator[RuleFinding]:
    """One request per kind that is not declared."""
    for aim in subject.aims:
        for scene in _undeclared_scenes(aim):
            with record_logs() as records:
                request = subject.write(aim, scene.history, scene.tools)
            where = f"{aim.name} {scene.name}"
            if scene.payload.encode() in request.body:
                yield RuleFinding("not declared, and still in the body", where)
            lines = [loss for loss in request.losses if loss.block_type == scene.block_type]
            if len(lines) != 1:
                yield RuleFinding(f"expected one ledger row, found {len(lines)}: {request.losses}", where)
            logged = [record for record in records if getattr(record, "block_type", None) == scene.block_type]
            if len(logged) != 1 or not all(getattr(logged[0], field, None) for field in LOG_FIELDS):
                yield RuleFinding(f"expected one log record with {', '.join(LOG_FIELDS)}; found {len(logged)}", where)


@rule(
    "C13",
    "A critical block that cannot be sent fails the request before anything is sent.",
    source="format.md, Metadata; format.md, Projection and losses",
    fix="""Do not drop blocks yourself: core knows which ones are critical. For a loss that only your wire causes,
    use the verdict `blocked` if the block's index is in `message.metadata.critical`.""",
)
def critical_blocks_fail_the_request(subject: Subject) -> Iterator[RuleFinding]:
    """The same scenes, with every block critical; except signatures, which are rewritten."""
    for aim in subject.aims:
        for scene in _undeclared_scenes(aim):
            if "signature" in scene.name or scene.name == "image in a result":
                continue
            history = [
                attrs.evolve(
                    message, metadata=attrs.evolve(message.metadata, critical=tuple(range(len(message.content))))
                )
                for message in scene.history
            ]
            try:
                subject.write(aim, history, scene.tools)
            except CapabilityError:
                continue
            yield RuleFinding("critical, not declared, and the request was written", f"{aim.name} {scene.name}")


@rule(
    "C11",
    "A declared kind of block reaches the wire whole, as its type, at its position, without a ledger row.",
    source="format.md, Options and capabilities",
    fix="""Write every kind that your capabilities declare, with its data unchanged. If the wire cannot take it at
    some position, do not declare it, or report a Loss there and list the kind with the reason in
    quirks.dropped_kinds. `signed_blocks` has only the types whose signatures you write.""",
)
def declared_kinds_arrive(subject: Subject) -> Iterator[RuleFinding]:
    """One request per declared medium; then an image between two text blocks, and signed text and calls."""
    for aim in subject.aims:
        yield from _check_place(subject, aim)
        yield from _check_signatures(subject, aim)
        for scene in [*media_scenes(), linked_image(), result_image(), result_document()]:
            tools_missing = bool(scene.tools) and not aim.capabilities.supports_tools
            if tools_missing or not scene.declared(aim.capabilities) or scene.name in subject.quirks.dropped_kinds:
                continue
            request = subject.write(aim, scene.history, scene.tools)
            if scene.payload.encode() not in request.body:
                yield RuleFinding(f"{scene.name}: declared, and its data is not in the body", aim.name)
            elif any(loss.verdict != "rewritten" for loss in request.losses):
                yield RuleFinding(f"{scene.name}: declared, and the ledger has {request.losses[0]}", aim.name)
            elif _has_wrong_type(scene, request.body):
                yield RuleFinding(f"{scene.name}: sent as another type than {scene.media_type}", aim.name)


def _has_wrong_type(scene: Scene, body: bytes) -> bool:
    """True when the wire carries media types, and not this one."""
    family = scene.media_type.partition("/")[0].encode() + b"/"
    return scene.payload == PAYLOAD and family in body and scene.media_type.encode() not in body


def _check_place(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    picture = media_scenes()[0]
    if not picture.declared(aim.capabilities):
        return
    (message,) = picture.history
    history = [attrs.evolve(message, content=(TextBlock(text="mkt1q"), message.content[1], TextBlock(text="mkt2q")))]
    body = subject.body(aim, history)
    places = [find_path(body, word) for word in ("mkt1q", PAYLOAD, "mkt2q")]
    if any(one and other and stands_after(one, other) for one, other in pairwise(places)):
        yield RuleFinding("an image between two text blocks is not between them in the body", aim.name)


def _check_signatures(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    can = aim.capabilities
    if not can.signed_blocks or can.thinking_scope == "never":
        return
    signatures = {"text": "bWtzMXE=", "tool_use": "bWtzMnE="}
    text = TextBlock(text="mkt1q", signature=signatures["text"])
    answer = assistant_turn([text, call(1, signature=signatures["tool_use"])], own_origin(subject, aim))
    history = [user("q"), answer, user("q")]
    body = subject.write(aim, history, [READ] if can.supports_tools else []).body.decode()
    for name, signature in signatures.items():
        if name in can.signed_blocks and signature not in body and (name == "text" or can.supports_tools):
            yield RuleFinding(f"signed_blocks has {name}, whose signature is not in the body", aim.name)


@rule(
    "C14",
    "Thinking, signatures, opaque blocks and provider_raw of another origin never reach the wire, in any form.",
    source="format.md, Metadata; format.md, Projection and losses",
    fix="""Core removes this state before your hook runs. Write thinking only as thinking, never in a TextBlock or a
    tool result. Read from `provider_raw` only what you wrote there, and only if its `origin` has your API
    (and your model, if the service binds the state to a model).""",
)
def foreign_state_stays_away(subject: Subject) -> Iterator[RuleFinding]:
    """Three origins: this one, another model of this provider, another provider.

    Core removes the state of other providers before the adapter sees it; there the rule checks core and wrapping
    plugins. The plugin itself receives `provider_raw` of its provider's other models.
    """

    def law(aim: Aim, history: list[Message]) -> None:
        target = subject.provider.target(aim.options())
        body = subject.write(aim, history, [READ]).body.decode()
        marks = set(MARK.findall(body))
        for message in history:
            origin = message.metadata.origin
            if origin is None or target.takes_state_of(origin):
                continue
            if leaked := sorted(marks & set(_state_marks(message, whole=origin.provider != subject.key))):
                raise LawBroken(f"{leaked[0]} (state of {origin.provider}:{origin.model}) is in the body")

    def strategy(aim: Aim) -> Any:
        mine = own_origin(subject, aim)
        origins = (mine, Origin(subject.key, mine.api, "another-model"), FOREIGN)
        return histories_of(origins, linked=aim.capabilities.supports_image_urls, options=(("marked", True),))

    yield from check_law(subject, law, strategy)


def _state_marks(message: Message, *, whole: bool) -> Iterator[str]:
    """Yield the marks of a message's state; not whole: only of `provider_raw` (thinking by model is C15's)."""
    for block in message.content if whole else ():
        if block.type in ("thinking", "redacted_thinking", "opaque"):
            yield from MARK.findall(describe(block))
        yield from MARK.findall(getattr(block, "signature", None) or "")
    yield from MARK.findall(describe(message.metadata.provider_raw))


@rule(
    "C15",
    "Reasoning bound to a model reaches no other model of the provider; it becomes text only if an option allows it.",
    source="format.md, Options and capabilities",
    fix="""Declare `thinking_scope` as narrow as the wire demands: `model` if signatures are bound to the model,
    `never` if nothing is sent back. A wider scope needs evidence: cite the section of the service's documentation
    that allows it in quirks.thinking_scope.""",
)
def thinking_keeps_its_scope(subject: Subject) -> Iterator[RuleFinding]:
    """Signed thinking of another model, with and without the option."""
    for aim in subject.aims:
        other = Origin(subject.key, aim.capabilities.api or aim.api, "another-model")
        thought = ThinkingBlock(text="mkh1q", signature="mks1q")
        history = [user("q"), assistant_turn([thought, TextBlock(text="said")], other), user("n")]
        plain = subject.write(aim, history).body
        demoted = subject.write(aim, history, thinking_as_text=True).body
        scope = aim.capabilities.thinking_scope
        bound = scope in ("never", "model")
        if bound and (b"mkh1q" in plain or b"mks1q" in plain):
            yield RuleFinding("thinking of another model is in the body", aim.name)
        if scope in ("api", "provider") and not subject.quirks.thinking_scope:
            yield RuleFinding(f"thinking_scope is {scope!r}; quirks.thinking_scope must name its source", aim.name)
        if bound and b"mkh1q" not in demoted:
            yield RuleFinding("thinking_as_text is set, and the text is not in the body", aim.name)


@rule(
    "C59",
    "Citations return to the provider and API they came from, if declared, and to no other.",
    source="format.md, Options and capabilities; format.md, Blocks",
    fix="""Declare `supports_citations` if the wire takes the citations of an earlier answer back, and then write
    `TextBlock.citations` unchanged, or report a Loss. Core has already removed citations of other origins.""",
)
def citations_go_home(subject: Subject) -> Iterator[RuleFinding]:
    """Cited text of this provider, of another API of it, and of another provider."""
    for aim in subject.aims:
        mine = own_origin(subject, aim)
        for origin in (mine, Origin(subject.key, "another-api", aim.model), FOREIGN, None):
            cited = TextBlock(text="It is so.", citations=({"type": "contract", "cited_text": "mkc1q"},))
            request = subject.write(aim, [user("q"), assistant_turn([cited], origin), user("n")])
            there = b"mkc1q" in request.body
            told = any(loss.block_type == "text" for loss in request.losses)
            whose = "own" if origin == mine else "foreign"
            if there and not (origin == mine and aim.capabilities.supports_citations):
                undeclared = " though supports_citations is False" if origin == mine else ""
                yield RuleFinding(f"{whose} citations are in the body{undeclared}", aim.name)
            elif not there and not told:
                yield RuleFinding(f"{whose} citations are neither in the body nor in the ledger", aim.name)
