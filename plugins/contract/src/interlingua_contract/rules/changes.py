"""A rule on changes of tools, effort and format within a conversation: what a service has cached stays unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlingua.types import Message, ToolDefinition, assistant, change, user
from interlingua_contract.json_paths import Path, nodes, value_at, without
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.rules.prefix import growing_path
from interlingua_contract.scenes import READ
from interlingua_contract.subject import Aim, Subject

_ADDED = ToolDefinition(
    name="mkadded", description="mkadescribed", side_effects="read",
    input_schema={"type": "object", "properties": {"mkaproperty": {"type": "string"}}, "required": ["mkaproperty"]},
)  # fmt: skip
_ANSWER = {"type": "object", "properties": {"mkanswered": {"type": "string"}}, "required": ["mkanswered"]}
_OTHER = ToolDefinition(
    name="mkother", description="mkother", side_effects="read", input_schema={"type": "object", "properties": {}}
)
_CHOICE = ("tool_choice",)  # what may be called is not part of what services cache


@rule(
    "C110",
    "A change of tools, effort or format within a conversation is sent, and nothing before it changes.",
    source="format.md, Projection and losses (stable prefixes); `ModelCapabilities.supports_tool_changes`",
    fix="""Write the tools that a `ChangeBlock` adds, whole, at its place in the conversation, and removed ones by
    name there or in the choice of tools. The list of tools in front, and each element before the change, stay the same
    bytes. If the API has no changes, leave `supports_tool_changes`, `supports_effort_changes` and
    `supports_format_changes` False: core then changes the request's own fields.""",
)
def changes_keep_what_is_before_them(subject: Subject) -> Iterator[RuleFinding]:
    """Each kind of change, in the middle of a conversation, for each model that declares changes."""
    aims = [aim for aim in subject.aims if aim.capabilities.supports_tool_changes]
    if not aims:
        raise NotApplicable("no model declares changes of tools within a conversation")
    for aim in aims:
        path = growing_path(subject, aim)
        if path is not None:
            yield from _check_changes(subject, aim, path)


def _histories(aim: Aim) -> Iterator[tuple[str, list[Message], Message, list[Message], tuple[str, ...]]]:
    """Yield a name, the messages before a change, the change, those after it, and words that the change brings."""
    start, end = [user("mkt1q"), assistant("mkt2q")], [user("mkt3q")]
    added = change(add=[_ADDED])
    yield "a tool added", start, added, end, ("mkadded", "mkadescribed", "mkaproperty")
    yield "a tool removed", start, change(remove=[READ.name]), end, (READ.name,)
    longer = [*start, added, user("mkt4q"), assistant("mkt5q")]
    yield "an added tool removed", longer, change(remove=["mkadded"]), end, ("mkadded",)
    if aim.capabilities.supports_effort_changes:
        yield "the effort changed", start, change(effort="low"), end, ("low",)
    if aim.capabilities.supports_format_changes:
        yield "the format changed", start, change(response_schema=_ANSWER), end, ("mkanswered",)
        formed = [*start, change(response_schema=_ANSWER), user("mkt4q"), assistant("mkt5q")]
        yield "the format changed to text", formed, change(response_schema={}), end, ("text",)


def _check_changes(subject: Subject, aim: Aim, path: Path) -> Iterator[RuleFinding]:
    for name, before, changed, after, words in _histories(aim):
        where = f"{aim.name}, {name}"
        plain, front, plain_choice = _parts(subject, aim, [*before, *after], path)
        elements, now, choice = _parts(subject, aim, [*before, changed, *after], path)
        known = len(plain) - 1
        if now != front:
            yield RuleFinding("the tools or settings in front of the conversation changed", where)
        if json.dumps(elements[:known]) != json.dumps(plain[:known]):
            yield RuleFinding("an element before the change is another one", where)
        behind = json.dumps(elements[known:])
        missing = [word for word in words if word not in behind]
        if missing and choice == plain_choice:  # removed tools may be left out of the choice instead
            yield RuleFinding(f"{missing[0]!r} is not in the request behind the change", where)
        known_schemas = _schemas(subject.body(aim, before, [READ, _OTHER, _ADDED]))
        if any(schema not in known_schemas for schema in _schemas(elements[known:])):
            yield RuleFinding("the schema of the added tool is another one than among the tools in front", where)
        later, _, _ = _parts(subject, aim, [*before, changed, *after, assistant("mkt6q"), user("mkt7q")], path)
        if json.dumps(later[: len(elements)]) != json.dumps(elements):
            yield RuleFinding("the change is written otherwise in a longer conversation", where)


def _schemas(body: Any) -> list[Any]:
    """Return the properties of the added tool, wherever they are."""
    return [node for _, node in nodes(body) if isinstance(node, dict) and "mkaproperty" in node]


def _parts(subject: Subject, aim: Aim, history: list[Message], path: Path) -> tuple[list[Any], str, str]:
    """Return the elements of a conversation, the rest of the body, and the choice of tools, which is not part of it."""
    body = subject.body(aim, history, [READ, _OTHER])
    rest = without(body, path)
    choice = {name: rest.pop(name) for name in _CHOICE if name in rest}
    return value_at(body, path), json.dumps(rest), json.dumps(choice)
