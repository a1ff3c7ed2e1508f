"""Rules on opaque state: it goes back to its origin only, and reasoning of others never becomes text.

Never asks whether own state goes back (returning does).
The rules room comes in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlingua.types.blocks import TextBlock, ThinkingBlock
from interlingua.types.factories import user
from interlingua.types.messages import Message, Origin
from interlingua.types.options import AdapterOptions
from interlingua_contract.generated import Broken, holds, own
from interlingua_contract.rule import Finding, rule
from interlingua_contract.rules.losses import warnings
from interlingua_contract.scenes import FOREIGN, READ, answered
from interlingua_contract.strategies.conversations import MARK, conversations
from interlingua_contract.subject import Aim, Subject


@rule(
    "C14",
    "Foreign thinking, signatures, opaque blocks and provider_raw never reach the wire, in no form.",
    source="DESIGN 6, 7; REGRESSIONS 02",
    fix="""Core takes foreign state away before you see it. Write thinking only as thinking, never as text and never
    inside a tool result; read from `provider_raw` only what you wrote there, and only when its `origin` has your api
    and, where the wire binds it, your model.""",
)
def foreign_state_stays_away(subject: Subject) -> Iterator[Finding]:
    """Three origins: this one, another model of this provider, another provider.

    State of other providers core takes away before the adapter sees it: of that the rule watches core, and the plugins
    that wrap. The adapter's own share is `provider_raw` of other models of its provider, which it does see.
    """

    def law(aim: Aim, history: list[Message]) -> None:
        target = subject.provider.target(AdapterOptions(model=aim.model, api=aim.api))
        body = subject.written(aim, history, [READ]).body.decode()
        marks = set(MARK.findall(body))
        for message in history:
            origin = message.metadata.origin
            if origin is None or target.takes_state_of(origin):
                continue
            leaked = sorted(marks & set(_state(message, whole=origin.provider != subject.key)))
            if leaked:
                raise Broken(f"{leaked[0]} (state of {origin.provider}:{origin.model}) is in the body")

    def strategy(aim: Aim) -> Any:
        mine = own(subject, aim)
        return conversations((mine, Origin(subject.key, mine.api, "another-model"), FOREIGN), marked=True)

    yield from holds(subject, law, strategy)


def _state(message: Message, *, whole: bool) -> Iterator[str]:
    """Yield the marks of a message's state; not whole: only of `provider_raw` (thinking by model is C15's)."""
    for block in message.content if whole else ():
        if block.type in ("thinking", "redacted_thinking", "opaque"):
            yield from MARK.findall(repr(block))
        yield from MARK.findall(getattr(block, "signature", None) or "")
    yield from MARK.findall(repr(message.metadata.provider_raw))


@rule(
    "C15",
    "Reasoning bound to a model goes to no other model of the same provider; demoting it to text is only by option.",
    source="DESIGN 7; seed 000 §8.2; REGRESSIONS 01, 02",
    fix="""Declare `thinking_scope` as narrow as the wire demands: `model` where signatures are bound to the model,
    `never` where nothing goes back. A wider one is believed only with a reason: quirks.thinking_scope names the
    section of the documentation that says so.""",
)
def thinking_keeps_its_scope(subject: Subject) -> Iterator[Finding]:
    """Signed thinking of another model, with and without the option."""
    for aim in subject.aims:
        other = Origin(subject.key, aim.capabilities.api or aim.api, "another-model")
        thought = ThinkingBlock(text="mkh1q", signature="mks1q")
        history = [user("q"), answered([thought, TextBlock(text="said")], other), user("n")]
        with warnings():
            plain = subject.written(aim, history).body
            demoted = subject.written(aim, history, demote_thinking=True).body
        scope = aim.capabilities.thinking_scope
        bound = scope in ("never", "model")
        if bound and (b"mkh1q" in plain or b"mks1q" in plain):
            yield Finding(why="thinking of another model is in the body", where=aim.name)
        if aim.capabilities.thinking_scope in ("api", "provider") and not subject.quirks.thinking_scope:
            why = (
                f"thinking_scope is {aim.capabilities.thinking_scope!r}; quirks.thinking_scope has to say who allows it"
            )
            yield Finding(why=why, where=aim.name)
        if bound and b"mkh1q" not in demoted:
            yield Finding(why="demote_thinking was asked for, and the text is not in the body", where=aim.name)
