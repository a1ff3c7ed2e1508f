"""What forbids sending is what the rules find and projection cannot repair, no more and no less."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest

from interlingua._request.conversation import ConversationState
from interlingua._request.media import find_media
from interlingua._request.prepare import RequestDraft
from interlingua._request.rules import check_message, is_plain, validate_conversation
from interlingua.errors import InvalidConversationError
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import (
    Message,
    MessageMetadata,
    Provenance,
    Role,
    RoutingDecision,
    RoutingMode,
    Usage,
)
from interlingua.types.options import RequestOptions
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.core.request.test_rules import forced
from tests.support.fake_provider import registry

CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": 7})
TOOL = ToolDefinition(
    name="read_file",
    description="",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
    side_effects=SideEffects.READ,
)
IMAGE = ImageBlock(source=MediaSource(kind="url", data="https://example.org/a.png"))
ROUTING = RoutingDecision(mode=RoutingMode.DEFAULT, chosen_model="acme:m", reason="the default")
WHOLE = MessageMetadata(
    model="acme:m",
    provider="acme",
    routing=ROUTING,
    usage=Usage(input_tokens=3),
)
ANSWER = Message(role=Role.ASSISTANT, content=(TextBlock(text="let me see"), CALL), metadata=WHOLE)
WANTING: list[dict[str, Any]] = [
    {"model": "other:m"},
    {"model": None, "provenance": Provenance.GENERATED},
    {"provider": None},
    {"provider": ""},
    {"routing": None},
    {"routing": attrs.evolve(ROUTING, chosen_model="acme:n")},
    {"usage": None},
    {"usage": Usage(cost_usd=Decimal(1))},
    {"critical": (2,)},
]
MESSAGES = [
    user("hello"),
    system("be brief"),
    assistant("hi"),
    assistant([TextBlock(text="let me see"), CALL]),
    tool_result(CALL, "done"),
    Message(role=Role.USER, content=()),
    Message(role=Role.USER, content=(CALL,)),
    Message(role=Role.USER, content=(ToolResultBlock(tool_use_id="tu_1", content="x"),)),
    Message(role=Role.SYSTEM, content=(IMAGE,)),
    Message(role=Role.USER, content=(ThinkingBlock(text="hm"),)),
    forced(user("x"), content=("text",)),
    Message(role=Role.TOOL, content=(ToolResultBlock(tool_use_id="tu_1", content="x"),)),
    Message(role=Role.TOOL, content=(ToolResultBlock(tool_use_id="tu_1", content=(CALL,)),)),
    tool_result("tu_1", [TextBlock(text="a"), IMAGE]),
    assistant([attrs.evolve(CALL, name="_x")]),
    assistant([attrs.evolve(CALL, name="readFile")]),
    assistant([attrs.evolve(CALL, name="7up")]),
    assistant([attrs.evolve(CALL, name="é")]),
    forced(user("old"), created_at=datetime(2026, 1, 1)),
    attrs.evolve(user("new"), schema_version=99),
    attrs.evolve(user("zero"), schema_version=0, created_at=datetime(2026, 1, 1, tzinfo=UTC)),
    attrs.evolve(assistant("x"), metadata=MessageMetadata(model="acme:m")),
    attrs.evolve(user("x"), metadata=MessageMetadata(critical=(3,))),
    ANSWER,
    attrs.evolve(ANSWER, id="not minted"),
    attrs.evolve(ANSWER, content=(IMAGE, CALL)),
    *(attrs.evolve(ANSWER, metadata=attrs.evolve(WHOLE, **changes)) for changes in WANTING),
]


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_a_plain_message_breaks_no_rule_that_stops_a_request_and_holds_no_media(message: Message) -> None:
    stopped = any(not one.repairable for one in check_message(message))

    assert not (is_plain(message) and (stopped or find_media(message)))


def test_most_messages_are_plain() -> None:
    assert [is_plain(message) for message in (*MESSAGES[:5], ANSWER)] == [True] * 6


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_what_stops_a_request_is_the_whole_check_less_the_repairable(message: Message) -> None:
    conversation = [*MESSAGES[:5], message]
    whole = [one for one in validate_conversation(conversation) if not one.repairable]

    assert ConversationState(conversation).check() == whole


@pytest.mark.parametrize("tools", [(), (TOOL,), (TOOL, TOOL)], ids=["no tools", "one", "twice the same"])
def test_tools_of_one_name_stop_a_request(tools: tuple[ToolDefinition, ...]) -> None:
    whole = [one for one in validate_conversation(MESSAGES[:5], tools) if not one.repairable]
    provider = registry().provider("fake")

    if not whole:
        RequestDraft(provider, MESSAGES[:5], tools, RequestOptions(model="m"))
        return
    with pytest.raises(InvalidConversationError) as raised:
        RequestDraft(provider, MESSAGES[:5], tools, RequestOptions(model="m"))
    assert [*raised.value.violations] == whole
