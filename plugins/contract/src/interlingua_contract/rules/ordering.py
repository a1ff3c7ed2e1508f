"""Rules on order: results right behind their calls, system messages where they belong, roles told apart.

Never looks at the form of an element, only at the sequence in which marked leaves come.
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Role
from interlingua_contract.forms import forms_of, marks_in
from interlingua_contract.json_paths import Path, at, leaves
from interlingua_contract.rule import Finding, rule
from interlingua_contract.rules.prefix import grown_path
from interlingua_contract.scenes import READ, answered, call
from interlingua_contract.strategies.conversations import MARK
from interlingua_contract.subject import Subject

_LETTERS = {"text": "t", "argument": "a", "result": "u"}


@rule(
    "C09",
    "Every call is answered right after it, in the order of the calls, whatever order the results came in.",
    source="seed 003 §4.1; REGRESSIONS 07, 09, 12",
    fix="""Core hands you results already in call order, right after the message with the calls. Write them there and
    in that order; where the wire wants all results in one element put them together, and nothing else between.""",
)
def results_follow_their_calls(subject: Subject) -> Iterator[Finding]:
    """Two parallel calls, answered the other way round with a system message in between, and one never answered."""
    for aim in subject.aims:
        if not aim.capabilities.supports_tools:
            continue
        calls = [call(number, f"mka{number}q") for number in (1, 2, 3)]
        if not aim.capabilities.supports_parallel_tool_calls:
            calls = calls[:1]
        history = [user("mkt1q"), answered([*calls], None)]
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
            yield Finding(why=f"marks stand as {found}, expected {wanted}", where=aim.name)


@rule(
    "C10",
    "Leading system messages go where the wire wants its system prompt; a later one stays in its place.",
    source="DESIGN 8; seed 003 §4.1",
    fix="""Only messages of role SYSTEM before all others may be hoisted. A later one arrives only if you declare
    `supports_system_messages_in_list`; write it where it stands. Never write a system prompt as the user's words when
    `supports_system_prompt` is declared.""",
)
def system_messages_keep_their_place(subject: Subject) -> Iterator[Finding]:
    """One leading system message, and a later one: between two turns, and at the end."""
    turns = [user("mkt2q"), assistant("mkt3q")]
    for aim in subject.aims:
        path = grown_path(subject, aim)
        for later in ([system("mkt4q"), user("mkt5q")], [user("mkt4q"), system("mkt5q")]):
            body = subject.body(aim, [system("mkt1q"), *turns, *later])
            why = _misplaced(body, path, "mkt4q" if later[0].role is Role.SYSTEM else "mkt5q")
            if why:
                yield Finding(why=why, where=aim.name)
            if aim.capabilities.supports_system_prompt and path is not None and _same_form(body, path):
                yield Finding(why="the system prompt is written as a user's message is", where=aim.name)


def _misplaced(body: Any, path: Path | None, later: str) -> str:
    places = [(mark, at) for at, leaf in leaves(body) if isinstance(leaf, str) for mark in MARK.findall(leaf)]
    marks = [mark for mark, _ in places]
    rest = [mark for mark in marks if mark != "mkt1q"]
    if sorted(marks) != ["mkt1q", "mkt2q", "mkt3q", "mkt4q", "mkt5q"]:
        return f"each message must be there once; found {marks}"
    if rest != sorted(rest):
        return f"a later system message moved: {rest}"
    if path is not None and dict(places)[later][: len(path)] != path:
        return "a later system message was taken out of the conversation"
    return ""


def _same_form(body: Any, path: Path) -> bool:
    """True when the system prompt's element has the very role of the user's, or is that element but for its words."""
    roles = {}
    for element in at(body, path):
        for _, leaf in leaves(element):
            for mark in MARK.findall(leaf) if isinstance(leaf, str) else ():
                roles[mark] = element.get("role") if isinstance(element, dict) else None
    if "mkt1q" not in roles:
        return False
    named = roles["mkt1q"] is not None and roles["mkt1q"] == roles["mkt2q"]
    return named or _around(body, "mkt1q") == _around(body, "mkt2q")  # a wire may call the role something else


def _around(body: Any, word: str) -> str:
    """Return the outermost list's element that contains a word, without the word; empty where none does."""
    for path, leaf in leaves(body):
        if isinstance(leaf, str) and word in leaf:
            depth = next((depth for depth, key in enumerate(path, 1) if isinstance(key, int)), 0)
            return json.dumps(at(body, path[:depth])).replace(word, "") if depth else ""
    return ""


@rule(
    "C53",
    "A user's words, an answer's and a result's are told apart, and a failed result from a good one.",
    source="seed 003 §4.1, §4.2; DESIGN 7",
    fix="""Give each message the role that the wire has for it. `ToolResultBlock.is_error` goes into the wire's own
    field; where it has none, say it in the result's words, or append a Loss.""",
)
def roles_are_told_apart(subject: Subject) -> Iterator[Finding]:
    """The forms of one message of each role, and two results that differ only in `is_error`."""
    for aim in subject.aims:
        asked = [call(1)]
        history = [user("mkt1q"), assistant("mkt2q"), user("mkt3q")]
        if aim.capabilities.supports_tools:
            history += [answered(list(asked), None), tool_result(asked[0], "mku1q"), user("mkt4q")]
        body = subject.body(aim, history, [READ] if aim.capabilities.supports_tools else [])
        said, answer, again = (forms_of(body, mark) for mark in ("mkt1q", "mkt2q", "mkt3q"))
        alike = said & answer and _around(body, "mkt2q") == _around(body, "mkt1q")
        if said != again or alike:
            yield Finding(why=f"questions stand as {said} and {again}, an answer as {answer}", where=aim.name)
        if not aim.capabilities.supports_tools:
            continue
        if forms_of(body, "mku1q") & said and _around(body, "mku1q") == _around(body, "mkt1q"):
            yield Finding(why="a result stands as the user's words do", where=aim.name)
        failed = tool_result(asked[0], "mku1q", is_error=True)
        request = subject.written(aim, [*history[:4], failed, history[5]], [READ])
        if json.loads(request.body) == body and not request.losses:
            yield Finding(why="a failed result is sent as a good one, and no loss says so", where=aim.name)
