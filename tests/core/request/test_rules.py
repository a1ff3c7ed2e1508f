"""Each rule finds what it is about, says where, and says nothing of a sound conversation."""

from __future__ import annotations

import copy
import random
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import attrs
import pytest

from interlingua._request.rules import RULES, check_message, validate_conversation
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import (
    Message,
    MessageMetadata,
    MessageStatus,
    Provenance,
    Role,
    RoutingDecision,
    RoutingMode,
    Usage,
)
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.core.request import page

ROUTING = RoutingDecision(mode=RoutingMode.DEFAULT, chosen_model="acme:m", reason="workspace default")
GENERATED = MessageMetadata(
    model="acme:m", provider="acme", routing=ROUTING, usage=Usage(), provenance=Provenance.GENERATED
)
CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"})
IMAGE = ImageBlock(source=MediaSource(kind="url", data="https://example.org/a.png"))
RESULT = ToolResultBlock(tool_use_id="tu_1", content="x")
READ = ToolDefinition(
    name="read_file",
    description="",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    side_effects=SideEffects.READ,
)


def made(*content: Any, **changes: Any) -> Message:
    return Message(role=Role.ASSISTANT, content=content, metadata=attrs.evolve(GENERATED, **changes))


def message(role: Role, *content: Any, **facts: Any) -> Message:
    return Message(role=role, content=content, **facts)


def sound() -> list[Message]:
    return [
        system("be brief"),
        user("hi"),
        made(ThinkingBlock(text="hm"), TextBlock(text="I read"), CALL),
        tool_result(CALL, "text"),
        made(TextBlock(text="done")),
        user("thanks"),
    ]


def forced(value: Message, **fields: Any) -> Message:
    """Return a copy with fields that no constructor takes, as a pickle of an older version may hold."""
    changed = copy.copy(value)
    for name, item in fields.items():
        object.__setattr__(changed, name, item)
    return changed


ALONE: list[tuple[int, Message, str, bool]] = [
    (1, user([]), "content", True),
    (1, assistant([]), "content", True),
    (2, forced(user("x"), content=("bare text",)), "content[0]", False),
    (3, message(Role.SYSTEM, TextBlock(text="x"), IMAGE), "content[1]", True),
    (4, message(Role.USER, CALL), "content[0]", False),
    (4, message(Role.USER, ThinkingBlock(text="hm")), "content[0]", False),
    (5, message(Role.USER, RESULT), "content[0]", False),
    (5, message(Role.TOOL, RESULT, TextBlock(text="and"), metadata=MessageMetadata(parent_tool_use_id="tu_1")),
     "content[1]", False),
    (5, message(Role.TOOL, RESULT, RESULT, metadata=MessageMetadata(parent_tool_use_id="tu_1")), "content", True),
    (6, tool_result("tu_1", [CALL]), "content[0].content[0]", True),
    (7, made(attrs.evolve(CALL, name="Read-File")), "content[0].name", True),
    (8, message(Role.USER, TextBlock(text="x"), metadata=MessageMetadata(critical=(0, 1))), "metadata.critical[1]",
     False),
    (9, made(TextBlock(text="x"), provider=None), "metadata.provider", False),
    (9, made(TextBlock(text="x"), model=None), "metadata.model", False),
    (9, made(TextBlock(text="x"), provider="other"), "metadata.model", False),
    (10, made(TextBlock(text="x"), routing=None), "metadata.routing", True),
    (10, made(TextBlock(text="x"), routing=attrs.evolve(ROUTING, chosen_model="acme:n")),
     "metadata.routing.chosen_model", True),
    (11, made(TextBlock(text="x"), usage=None), "metadata.usage", True),
    (12, made(TextBlock(text="x"), usage=Usage(cost_usd=Decimal(1))), "metadata.usage.pricing_version", True),
    (13, message(Role.TOOL, RESULT), "metadata.parent_tool_use_id", False),
    (13, message(Role.TOOL, RESULT, metadata=MessageMetadata(parent_tool_use_id="tu_2")), "content[0].tool_use_id",
     False),
    (14, attrs.evolve(made(TextBlock(text="x")), id="msg-1"), "id", True),
    (15, forced(user("x"), created_at=datetime(2026, 1, 1)), "created_at", False),
    (15, forced(user("x"), created_at=datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))), "created_at",
     False),
    (16, attrs.evolve(user("x"), schema_version=0), "schema_version", False),
    (16, attrs.evolve(user("x"), schema_version=2), "schema_version", True),
]  # fmt: skip


@pytest.mark.parametrize(("number", "broken", "path", "repairable"), ALONE)
def test_a_rule_on_one_message(number: int, broken: Message, path: str, repairable: bool) -> None:
    found = [each for each in check_message(broken) if each.number == number]

    assert [(each.path, each.repairable, each.message_id) for each in found] == [(path, repairable, broken.id)]
    assert found[0].rule == RULES[number].name
    assert f"messages[1].{found[0].path}" in [each.path for each in validate_conversation([user("hi"), broken])]


@pytest.mark.parametrize("status", [MessageStatus.PARTIAL, MessageStatus.CANCELLED, MessageStatus.ERROR])
@pytest.mark.parametrize("broken", [row[1] for row in ALONE])
def test_validation_is_for_complete_messages_only(broken: Message, status: MessageStatus) -> None:
    unfinished = forced(broken, metadata=attrs.evolve(broken.metadata, status=status))

    assert check_message(unfinished) == ()


def test_a_sound_conversation_breaks_nothing() -> None:
    assert validate_conversation(sound(), [READ]) == ()
    assert validate_conversation([]) == ()


@pytest.mark.parametrize("provenance", [None, Provenance.AUTHORED, Provenance.IMPORTED])
def test_hand_written_and_imported_histories_are_valid(provenance: Provenance | None) -> None:
    """Rules on model, routing and usage bind generated messages only."""
    bare = Message(id="row-17", role=Role.ASSISTANT, content="x", metadata=MessageMetadata(provenance=provenance))

    assert check_message(bare) == ()


def test_sessions_and_ids() -> None:
    messages = sound()
    messages[1] = attrs.evolve(messages[1], session_id="other")
    messages[5] = attrs.evolve(messages[5], id=messages[0].id)
    ids = messages[2].id, messages[4].id
    messages[4], messages[2] = (attrs.evolve(messages[at], id=new) for at, new in zip((4, 2), ids, strict=True))

    found = validate_conversation(messages)

    assert [(each.number, each.path) for each in found] == [
        (17, "messages[1].session_id"),
        (18, "messages[5].id"),
        (19, "messages[4].id"),
    ]
    assert all(each.repairable for each in found)


def test_calls_and_results() -> None:
    other = attrs.evolve(CALL, id="tu_2")
    messages = [
        tool_result(CALL, "too early"),
        user("hi"),
        made(CALL, other),
        tool_result(CALL, "x"),
        tool_result(CALL, "twice"),
        made(CALL),
        tool_result("tu_9", "orphan"),
    ]

    assert [(each.number, each.path) for each in validate_conversation(messages)] == [
        (20, "messages[5].content[0].id"),
        (21, "messages[0].content[0].tool_use_id"),
        (21, "messages[4].content[0].tool_use_id"),
        (21, "messages[6].content[0].tool_use_id"),
        (22, "messages[2].content[1]"),
    ]


def test_results_may_answer_calls_of_an_unfinished_message_which_owe_nothing() -> None:
    """Case 35."""
    cut = made(CALL, attrs.evolve(CALL, id="tu_2"), status=MessageStatus.CANCELLED)

    assert validate_conversation([user("hi"), cut, tool_result(CALL, "x"), user("go on")]) == ()


def test_tool_names_are_unique() -> None:
    found = validate_conversation([user("hi")], [READ, attrs.evolve(READ, description="again")])

    assert [(each.number, each.path, each.repairable) for each in found] == [(23, "tools[1].name", False)]


def test_a_violation_reads_as_one_line() -> None:
    assert str(validate_conversation([user([])])[0]) == "I01 messages[0].content: a user message holds nothing"


def test_rules_are_numbered_without_gaps_and_documented() -> None:
    assert list(RULES) == list(range(1, len(RULES) + 1))
    for one in RULES.values():
        assert one.holds.endswith(".")
        assert one.broken.startswith(("Stops", "Repaired", "Reported"))


@pytest.mark.parametrize(("number", "_broken", "_path", "repairable"), ALONE)
def test_the_table_says_whether_a_broken_rule_stops_a_request(
    number: int, _broken: Message, _path: str, repairable: bool
) -> None:
    text = RULES[number].broken

    assert re.search("Repaired|Reported|each is sent" if repairable else "[Ss]tops a request", text)


def test_the_reference_page_says_what_the_rules_say() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text()


@pytest.mark.parametrize("seed", range(40))
def test_continuing_a_conversation_finds_what_a_fresh_check_finds(seed: int) -> None:
    """Whatever was remembered (branches and repeats included) may never change the answer."""
    rng = random.Random(seed)
    pool = [*sound(), *sound()[1:], tool_result("tu_9", "x"), made(attrs.evolve(CALL, id="tu_5")), user([])]
    trunk: list[Message] = []
    tools = rng.choice([(), (READ,)])
    for _ in range(60):
        if rng.random() < 0.2:
            trunk = trunk[: rng.randrange(len(trunk) + 1)]
        grown = rng.choice([[rng.choice(pool)], sound(), [user("next")]])
        fresh = [attrs.evolve(each, created_at=datetime.now(UTC)) for each in [*trunk, *grown]]
        trunk = [*trunk, *grown]

        assert validate_conversation(trunk, tools) == validate_conversation(fresh, tools)
