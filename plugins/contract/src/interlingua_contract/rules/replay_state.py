"""Rules on replay: an answer sent back to its origin is byte-equal in all that the origin checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs

from interlingua.codec import dumps_message, loads_message
from interlingua.types import Message, assistant, user
from interlingua_contract.json_paths import Path, find_path, forms_of, leaves, nodes, stands_after, texts
from interlingua_contract.recordings import aim_for, recorded_answers, replay_history
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.scenes import READ
from interlingua_contract.subject import Aim, Subject


@rule(
    "C16",
    "Own signatures, encrypted thinking, opaque blocks and ids return byte-equal, in order, as their kind.",
    source="format.md, Identity; format.md, Blocks",
    fix="""Store what the service expects back in the block's own field (`signature`, `data`, `provider_id`,
    `raw_input`) or in `replay`, exactly as received, and write it back unchanged for the same api and model. Declare
    text and calls that have signatures in `signed_blocks`: core removes the signatures of others.""",
)
def own_state_comes_back(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded answer, sent back."""
    for exchange, message in recorded_answers(subject):
        aim = aim_for(subject, exchange)
        body = subject.body(aim, replay_history(message), [READ])
        found = texts(body)
        if subject.quirks.has_call_ids(aim.api) and any(call.provider_id is None for call in message.tool_calls):
            yield RuleFinding("a call without the id that the provider issued", exchange.cassette)
        places: list[Path] = []
        for what, leaf in _replayed_values(message, aim):
            if leaf not in found:
                yield RuleFinding(f"{what} {leaf[:60]!r} does not come back", exchange.cassette)
            elif found.count(leaf) == 1 and (place := find_path(body, leaf)) is not None:
                if any(stands_after(before, place) for before in places):
                    yield RuleFinding(f"{what} {leaf[:60]!r} comes back in another place", exchange.cassette)
                places.append(place)
        for block in message.content:
            if why := _check_signature_place(block, body, found):
                yield RuleFinding(why, exchange.cassette)
        if _is_sent_as_text(message, body, _answer_forms(subject, aim)):
            yield RuleFinding("reasoning comes back as text", exchange.cassette)


def _check_signature_place(block: Any, body: Any, found: list[str]) -> str:
    """Return the fault if a signature is in another object than the content it signs."""
    signature = getattr(block, "signature", None)
    signed = block.input.get("path") if block.type == "tool_use" else getattr(block, "text", None)
    if not signature or not isinstance(signed, str) or found.count(signature) != 1 or found.count(signed) != 1:
        return ""
    one, other = find_path(body, signature), find_path(body, signed)
    beside = one is None or other is None or other[: len(one) - 1] == one[:-1]
    return "" if beside else f"the signature {signature[:40]!r} comes back with something that it does not sign"


def _answer_forms(subject: Subject, aim: Aim) -> set[Any]:
    """Return the forms that the text of an answer has, for an answer of thinking and calls has none."""
    return forms_of(subject.body(aim, [user("mkq1q"), assistant("mkt1q"), user("mkq2q")]), "mkt1q")


def _is_sent_as_text(message: Message, body: Any, forms: set[Any]) -> bool:
    """True when reasoning has the form of ordinary text."""
    plain_texts = [block.text for block in message.content if block.type == "text"]
    forms = forms | {one for text in plain_texts if text for one in forms_of(body, text)}
    thoughts = [block.text for block in message.thinking_blocks if block.text]
    return any(forms & forms_of(body, text) for text in thoughts if not any(text in word for word in plain_texts))


def _replayed_values(message: Message, aim: Aim) -> Iterator[tuple[str, str]]:
    thinking = aim.capabilities.supports_thinking and aim.capabilities.thinking_scope != "never"
    for block in message.content:
        signature = getattr(block, "signature", None)
        if signature and thinking:
            yield "the signature", signature
        if block.type == "redacted_thinking" and thinking:
            yield "encrypted thinking", block.data
        elif block.type == "thinking" and signature and thinking and block.text:
            yield "thinking", block.text
        elif block.type == "text" and block.text:
            yield "text", block.text
        elif block.type == "opaque":
            for _, leaf in leaves(json.loads(json.dumps(block.data))):
                if isinstance(leaf, str):
                    yield f"{block.kind}'s", leaf
        elif block.type == "tool_use" and block.provider_id and aim.capabilities.supports_tools:
            yield "the id", block.provider_id


@rule(
    "C17",
    "A stored and reloaded answer produces the same bytes in the next turn as the received answer.",
    source="format.md, Canonical JSON",
    fix="""Keep everything the next turn needs in the message's public fields and in `provider_raw`, as JSON; keep
    nothing on the plugin object or in an attribute that is not stored.""",
)
def stored_answers_send_the_same(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded answer through the codec."""
    for exchange, message in recorded_answers(subject):
        aim = aim_for(subject, exchange)
        again = loads_message(dumps_message(message))
        first = subject.write(aim, replay_history(message), [READ]).body
        second = subject.write(aim, replay_history(again), [READ]).body
        if first != second:
            yield RuleFinding("the body differs after a round trip through the codec", exchange.cassette)


@rule(
    "C84",
    "An object that goes back to its origin is whole: every number, word and field of it, in the same order.",
    source="format.md, Blocks; format.md, Metadata",
    fix="""Write `OpaqueBlock.data` and the objects of `replay` as they were received: no field left out, no number
    rounded, nothing sorted. The service may have signed them or find its own state by any of them. If it refuses a
    field, add the kind to quirks.dropped_kinds with the reason.""",
    needs=("dropped_kinds",),
)
def replayed_objects_are_whole(subject: Subject) -> Iterator[RuleFinding]:
    """Each opaque block of each recorded answer, with a number, a word, a flag and a list added to it, sent back."""
    for exchange, message in recorded_answers(subject):
        opaque = [block for block in message.content if block.type == "opaque"]
        if not opaque:
            continue
        aim = aim_for(subject, exchange)
        for block in opaque:
            if block.kind in subject.quirks.dropped_kinds:
                continue
            added = {
                **json.loads(json.dumps(block.data)),
                "contract": {"n": 1.5, "f": False, "l": [0, None, ""], "a": "b"},
            }
            content = tuple(attrs.evolve(one, data=added) if one is block else one for one in message.content)
            body = subject.body(aim, replay_history(attrs.evolve(message, content=content)), [READ])
            if not any(json.dumps(node) == json.dumps(added) for _, node in nodes(body)):
                yield RuleFinding(
                    f"{block.kind!r} does not come back whole: {_nearest(body, added)}", exchange.cassette
                )


def _nearest(body: Any, wanted: Any) -> str:
    """Return which fields the most similar object of a body lacks or has otherwise."""
    objects = [node for _, node in nodes(body) if isinstance(node, dict)]
    best = max(objects, key=lambda node: sum(node.get(name) == value for name, value in wanted.items()), default={})
    wrong = [name for name, value in wanted.items() if best.get(name) != value]
    return f"{', '.join(wrong)} differ" if wrong else "its fields are in another order"
