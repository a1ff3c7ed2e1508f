"""Rules on order: every text once and in order, results behind their calls, roles kept apart."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

from interlingua._request.project import project_conversation
from interlingua.plugins import Loss, repair_surrogates
from interlingua.types import Message, Role, TextBlock, assistant, system, tool_result, user
from interlingua_contract.json_paths import MARK, Path, forms_of, leaves, marks_in, shape, strings, value_at
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.rules.prefix import growing_path
from interlingua_contract.scenes import READ, LawBroken, assistant_turn, call, check_law, mixed_histories, offered_tools
from interlingua_contract.strategies import EXTREMES
from interlingua_contract.subject import Aim, Subject


@rule(
    "C09",
    "Every call is answered directly after it, in the order of the calls, whatever order the results arrived in.",
    source="format.md, Rule 22; format.md, Projection and losses",
    fix="""Core passes results in call order, directly after the message with the calls: write them there in that
    order. If the wire needs all results in one element, combine them, and write nothing between them.""",
)
def results_follow_their_calls(subject: Subject) -> Iterator[RuleFinding]:
    """Two parallel calls, answered the other way round with a system message in between, and one never answered."""
    for aim in subject.aims:
        if not aim.capabilities.supports_tools:
            continue
        calls = [call(number, f"mka{number}q") for number in (1, 2, 3)]
        if not aim.capabilities.supports_parallel_tool_calls:
            calls = calls[:1]
        history = [user("mkt1q"), assistant_turn([*calls], None)]
        history += [tool_result(one, f"mku{one.id[-1]}q") for one in reversed(calls[:2])]
        history += [system("mkt2q"), user("mkt3q")]
        found = [mark for mark in marks_in(subject.body(aim, history, [READ])) if mark != "mkt2q"]
        wanted = [
            "mkt1q",
            *[f"mka{one.id[-1]}q" for one in calls],
            *[f"mku{one.id[-1]}q" for one in calls[:2]],
            "mkt3q",
        ]
        if found != wanted:
            yield RuleFinding(f"marks are in the order {found}, expected {wanted}", aim.name)


@rule(
    "C10",
    "Leading system messages become the wire's system prompt; a later one keeps its position.",
    source="format.md, Projection and losses",
    fix="""Hoist only messages of role SYSTEM that precede all others. A later one reaches you only if you declare
    `supports_system_messages_in_list`; write it at its position. Never write a system prompt as user text if
    `supports_system_prompt` is declared.""",
)
def system_messages_keep_their_place(subject: Subject) -> Iterator[RuleFinding]:
    """Two leading system messages, and a later one: between two turns, and at the end."""
    blocks = (TextBlock(text="mkt1q"), TextBlock(text="mks1q"))
    leading = [Message(role=Role.SYSTEM, content=blocks), system("mks2q")]
    turns = [user("mkt2q"), assistant("mkt3q")]
    for aim in subject.aims:
        path = growing_path(subject, aim)
        for later in ([system("mkt4q"), user("mkt5q")], [user("mkt4q"), system("mkt5q")]):
            body = subject.body(aim, [system("mkt1q"), *turns, *later])
            both = subject.body(aim, [*leading, *turns, *later])
            if why := _lost_prompt(both) or _misplaced(
                body, path, "mkt4q" if later[0].role is Role.SYSTEM else "mkt5q"
            ):
                yield RuleFinding(why, aim.name)
            if aim.capabilities.supports_system_prompt and path is not None and _written_as_user(body, path):
                yield RuleFinding("the system prompt is written as a user message is", aim.name)


def _lost_prompt(body: Any) -> str:
    """Return what is wrong with two leading system messages, the first one of two blocks."""
    marks = [mark for mark in marks_in(body) if mark in ("mkt1q", "mks1q", "mks2q")]
    if marks != ["mkt1q", "mks1q", "mks2q"]:
        return f"two leading system messages must be there once, in order; found {marks}"
    if any(re.search(r"mks1q\S*mks2q", leaf) for _, leaf in strings(body)):
        return "two leading system messages are joined without anything between them"
    return ""


def _misplaced(body: Any, path: Path | None, later: str) -> str:
    places = [(mark, at) for at, leaf in strings(body) for mark in MARK.findall(leaf)]
    marks = [mark for mark, _ in places]
    rest = [mark for mark in marks if mark != "mkt1q"]
    if sorted(marks) != ["mkt1q", "mkt2q", "mkt3q", "mkt4q", "mkt5q"]:
        return f"each message must be there once; found {marks}"
    if rest != sorted(rest):
        return f"a later system message moved: {rest}"
    if path is not None and dict(places)[later][: len(path)] != path:
        return "a later system message was taken out of the conversation"
    return ""


def _written_as_user(body: Any, path: Path) -> bool:
    """True when the system prompt's element has the user's role, or is the same element except for its text."""
    roles = {}
    for element in value_at(body, path):
        for _, leaf in strings(element):
            for mark in MARK.findall(leaf):
                roles[mark] = element.get("role") if isinstance(element, dict) else None
    if "mkt1q" not in roles:
        return False
    named = roles["mkt1q"] is not None and roles["mkt1q"] == roles["mkt2q"]
    # a wire may have another word for `role`
    return named or _surroundings(body, "mkt1q") == _surroundings(body, "mkt2q")


def _surroundings(body: Any, word: str) -> str:
    """Return the outermost list's element that contains a word, without the word; empty if none does."""
    for path, leaf in strings(body):
        if word in leaf:
            depth = next((depth for depth, key in enumerate(path, 1) if isinstance(key, int)), 0)
            return json.dumps(value_at(body, path[:depth])).replace(word, "") if depth else ""
    return ""


@rule(
    "C53",
    "User, assistant and tool messages are written differently, and a failed result differs from a good one.",
    source="format.md, Messages; format.md, Blocks",
    fix="""Use the wire's own role for each message. Write `ToolResultBlock.is_error` to the wire's own field; if
    the wire has none, write it into the result's text, or report a Loss.""",
)
def roles_are_distinguishable(subject: Subject) -> Iterator[RuleFinding]:
    """The forms of one message of each role, and two results that differ only in `is_error`."""
    for aim in subject.aims:
        calls = [call(1)]
        history = [user("mkt1q"), assistant("mkt2q"), user("mkt3q")]
        if aim.capabilities.supports_tools:
            history += [assistant_turn(list(calls), None), tool_result(calls[0], "mku1q"), user("mkt4q")]
        body = subject.body(aim, history, offered_tools(aim))
        question, answer, again = (forms_of(body, mark) for mark in ("mkt1q", "mkt2q", "mkt3q"))
        alike = question & answer and _surroundings(body, "mkt2q") == _surroundings(body, "mkt1q")
        if question != again or alike:
            yield RuleFinding(f"questions are written as {question} and {again}, an answer as {answer}", aim.name)
        if not aim.capabilities.supports_tools:
            continue
        if forms_of(body, "mku1q") & question and _surroundings(body, "mku1q") == _surroundings(body, "mkt1q"):
            yield RuleFinding("a result is written as user text is", aim.name)
        failed = tool_result(calls[0], "mku1q", is_error=True)
        request = subject.write(aim, [*history[:4], failed, history[5]], [READ])
        if json.loads(request.body) == body and not request.losses:
            yield RuleFinding("a failed result is sent as a good one, and no loss reports it", aim.name)


@rule(
    "C08",
    "Every text, argument and result reaches the wire once, in the order of the conversation.",
    source="format.md, Projection and losses",
    fix="""Walk the messages in order and write every block kind you declare. If the wire cannot take text at its
    position, report a Loss. A result of parallel calls must not overtake another, and text of one message must not
    be joined with text of another.""",
)
def nothing_is_lost_or_moved(subject: Subject) -> Iterator[RuleFinding]:
    """Marks of the projected history against marks of the body."""

    def law(aim: Aim, history: list[Message]) -> None:
        projected, _ = project_conversation(history, subject.provider.target(aim.options()))
        expected = {mark: number for number, message in enumerate(projected) for mark in _marks_of(message)}
        request = subject.write(aim, history, [READ])
        own_losses = [loss for loss in request.losses if loss.verdict == "dropped"]
        body = json.loads(request.body)
        found = [mark for mark in marks_in(body) if mark in expected]
        missing = expected.keys() - set(found)
        if missing and not own_losses:
            raise LawBroken(f"{sorted(missing)[0]} is nowhere in the body, and no loss reports it")
        if twice := sorted({mark for mark in found if found.count(mark) > 1}):
            raise LawBroken(f"{twice[0]} is in the body more than once")
        places = [expected[mark] for mark in found if projected[expected[mark]].role is not Role.SYSTEM]
        if places != sorted(places):
            raise LawBroken("messages are in another order than in the conversation")
        if not own_losses:
            _check_texts(projected, body, _rewritten_texts(request.losses))

    yield from check_law(subject, law, mixed_histories(subject, marked=True))
    for aim in subject.aims:
        yield from _check_long_history(subject, aim)


def _rewritten_texts(losses: Sequence[Loss]) -> set[str | None]:
    return {loss.message_id for loss in losses if loss.verdict == "rewritten" and loss.block_type == "text"}


def _check_texts(projected: Sequence[Message], body: Any, rewritten: Container[str | None] = ()) -> None:
    """Check that every text is whole and that no empty string replaces one.

    Some services refuse an unfinished answer that ends with white space: it may be stripped where the conversation ends
    with it and, with a ledger row, where it once did.
    """
    there = "\x1f".join(leaf for _, leaf in strings(body))
    for message in projected:
        wanted = [repair_surrogates(text) for text in _texts_of(message)]  # half a surrogate pair is not text
        if wanted and message.role is Role.ASSISTANT and (message is projected[-1] or message.id in rewritten):
            wanted[-1] = wanted[-1].rstrip()
        for text in wanted:
            if text not in there:
                raise LawBroken(f"text is not in the body unchanged: {text[:40]!r}, {len(text)} characters")
    marks = {mark for message in projected for mark in _marks_of(message)}
    marked = {shape(body, path) for path, leaf in strings(body) if marks & set(MARK.findall(leaf))}
    if any(leaf == "" and shape(body, path) in marked for path, leaf in leaves(body)):
        raise LawBroken("an empty text is sent")


def _check_long_history(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    """Forty turns of awkward text: nothing is lost, and the ledger stays empty."""
    words = ["lorem ipsum " * 2000, *(text for text in EXTREMES if text.isprintable())]
    history = [system("mks0q Be brief."), user("mkt0q")]
    for number in range(1, 40):
        word = words[number % len(words)]
        history += [assistant(f"mka{number}q {word}."), user(f"mkt{number}q {word}.")]
    history += [assistant("mka99q"), user([TextBlock(text="mkt98q"), TextBlock(text="mkt99q")])]
    request = subject.write(aim, history)
    body = json.loads(request.body)
    marks = [mark for mark in marks_in(body) if mark != "mks0q"]
    if marks != [mark for message in history[1:] for mark in MARK.findall(message.text)]:
        yield RuleFinding("of a conversation of forty turns not every message is there, in order", aim.name)
    try:
        _check_texts(history[1:], body)
    except LawBroken as broken:
        yield RuleFinding(str(broken), aim.name)
    if request.losses and aim.capabilities.supports_system_prompt:
        yield RuleFinding(f"the ledger reports a loss although nothing is lost: {request.losses[0]}", aim.name)
    if aim.capabilities.supports_tools:
        yield from _check_result_texts(subject, aim)


def _check_result_texts(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    tool_call = call(1)
    result = tool_result(tool_call, [TextBlock(text="mku1q"), TextBlock(text="mku2q")])
    marks = marks_in(subject.body(aim, [user("q"), assistant_turn([tool_call], None), result], [READ]))
    if marks != ["mku1q", "mku2q"]:
        yield RuleFinding(f"of a result with two text blocks only {marks} is in the body", aim.name)


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
