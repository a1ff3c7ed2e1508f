"""The rule that everything said arrives: each text, argument and result, whole, once, and in its place.

Never looks at the form of an element, only at the sequence in which marked leaves come.
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from typing import Any

from interlingua.json import replace_lone_surrogates
from interlingua.plugins.wire import Loss
from interlingua.request.project import Projector
from interlingua.types.blocks import TextBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message, Role
from interlingua.types.options import AdapterOptions
from interlingua_contract.forms import marks_in, shape
from interlingua_contract.generated import Broken, holds, own
from interlingua_contract.json_paths import leaves
from interlingua_contract.rule import Finding, rule
from interlingua_contract.scenes import FOREIGN, READ, answered, call
from interlingua_contract.strategies.blocks import EXTREMES
from interlingua_contract.strategies.conversations import MARK, conversations
from interlingua_contract.subject import Aim, Subject


@rule(
    "C08",
    "Every text, argument and result reaches the wire once, in the order of the conversation.",
    source="DESIGN 4, 7; seed 003 §4",
    fix="""Walk the messages in order and write every block you declare. A text that the wire cannot take where it
    stands is a Loss; a result of parallel calls is not allowed to overtake another; text of one message is not joined
    with text of another.""",
)
def nothing_is_lost_or_moved(subject: Subject) -> Iterator[Finding]:
    """Marks of the projected history against marks of the body."""

    def law(aim: Aim, history: list[Message]) -> None:
        projected, _ = Projector().project(
            history, subject.provider.target(AdapterOptions(model=aim.model, api=aim.api))
        )
        expected = {mark: number for number, message in enumerate(projected) for mark in _marks_of(message)}
        request = subject.written(aim, history, [READ])
        own_losses = [loss for loss in request.losses if loss.verdict == "dropped"]
        body = json.loads(request.body)
        found = [mark for mark in marks_in(body) if mark in expected]
        missing = expected.keys() - set(found)
        if missing and not own_losses:
            raise Broken(f"{sorted(missing)[0]} is nowhere in the body, and no loss says why")
        twice = sorted({mark for mark in found if found.count(mark) > 1})
        if twice:
            raise Broken(f"{twice[0]} is in the body more than once")
        places = [expected[mark] for mark in found if projected[expected[mark]].role is not Role.SYSTEM]
        if places != sorted(places):
            raise Broken("messages stand in another order than in the conversation")
        if not own_losses:
            _words_arrive(projected, body, _rewritten_texts(request.losses))

    def strategy(aim: Aim) -> Any:
        return conversations((own(subject, aim), FOREIGN), marked=True)

    yield from holds(subject, law, strategy)
    for aim in subject.aims:
        yield from _at_length(subject, aim)


def _rewritten_texts(losses: Sequence[Loss]) -> set[str | None]:
    return {loss.message_id for loss in losses if loss.verdict == "rewritten" and loss.block_type == "text"}


def _words_arrive(projected: Sequence[Message], body: Any, told: Container[str | None] = ()) -> None:
    """Every text whole, and none that is empty in the place of one; that there was no reasoning may be said so.

    The beginning of an answer may have to end without white space: where the conversation ends with it, and, told in
    the ledger by the message's id, where it did once.
    """
    there = "\x1f".join(leaf for _, leaf in leaves(body) if isinstance(leaf, str))
    for message in projected:
        wanted = [replace_lone_surrogates(text) for text in _texts_of(message)]  # half a surrogate is no text
        if wanted and message.role is Role.ASSISTANT and (message is projected[-1] or message.id in told):
            wanted[-1] = wanted[-1].rstrip()
        for text in wanted:
            if text not in there:
                raise Broken(f"a text is not in the body as it was written: {text[:40]!r}, {len(text)} characters")
    marks = {mark for message in projected for mark in _marks_of(message)}
    marked = {
        shape(body, path) for path, leaf in leaves(body) if isinstance(leaf, str) and marks & set(MARK.findall(leaf))
    }
    if any(leaf == "" and shape(body, path) in marked for path, leaf in leaves(body)):
        raise Broken("an empty text is sent")


def _at_length(subject: Subject, aim: Aim) -> Iterator[Finding]:
    """Forty turns of awkward words, of which nothing can be lost and nothing has to be told."""
    words = ["lorem ipsum " * 2000, *(text for text in EXTREMES if text.isprintable())]
    history = [system("mks0q Be brief."), user("mkt0q")]
    for number in range(1, 40):
        word = words[number % len(words)]
        history += [assistant(f"mka{number}q {word}."), user(f"mkt{number}q {word}.")]
    history += [assistant("mka99q"), user([TextBlock(text="mkt98q"), TextBlock(text="mkt99q")])]
    request = subject.written(aim, history)
    body = json.loads(request.body)
    marks = [mark for mark in marks_in(body) if mark != "mks0q"]
    if marks != [mark for message in history[1:] for mark in MARK.findall(message.text_content())]:
        yield Finding(why="of a conversation of forty turns not every message is there, in order", where=aim.name)
    try:
        _words_arrive(history[1:], body)
    except Broken as broken:
        yield Finding(why=str(broken), where=aim.name)
    if request.losses and aim.capabilities.supports_system_prompt:
        yield Finding(why=f"the ledger tells of a loss where there is none: {request.losses[0]}", where=aim.name)
    if aim.capabilities.supports_tools:
        yield from _results_whole(subject, aim)


def _results_whole(subject: Subject, aim: Aim) -> Iterator[Finding]:
    asked = call(1)
    result = tool_result(asked, [TextBlock(text="mku1q"), TextBlock(text="mku2q")])
    marks = marks_in(subject.body(aim, [user("q"), answered([asked], None), result], [READ]))
    if marks != ["mku1q", "mku2q"]:
        yield Finding(why=f"of a result of two texts {marks} is there", where=aim.name)


def _texts_of(message: Message) -> Iterator[str]:
    for block in message.content:
        if block.type == "text":
            yield block.text
        elif block.type == "tool_result":
            yield from (part.text for part in block.content if part.type == "text")


def _marks_of(message: Message) -> Iterator[str]:
    for block in message.content:
        if block.type == "text":
            yield from MARK.findall(block.text)
        elif block.type == "tool_use":
            yield from MARK.findall(block.input_json)
        elif block.type == "tool_result":
            for part in block.content:
                yield from MARK.findall(part.text) if part.type == "text" else ()
