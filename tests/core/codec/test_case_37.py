"""Field case 37, the canonical side: a history imported from another agent is valid, kept whole, and continued.

The history is made by hand, as a plugin that reads the agents' files would make it.
"""

from __future__ import annotations

import json

from interlingua._plugins.registry import Registry
from interlingua._request.rules import validate_conversation
from interlingua.codec import dumps_message, loads_message
from interlingua.plugins import build_request
from interlingua.types.blocks import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UnknownBlock
from interlingua.types.factories import user
from interlingua.types.messages import Message, MessageMetadata, Provenance, Role
from interlingua.types.options import RequestOptions

RECORD = {"isSidechain": True, "parentUuid": "p-1", "version": "9.9"}  # what the agent's file holds of this message
SNAPSHOT = {"type": "file-history-snapshot", "snapshot": {"a": [1, None]}}


def imported(role: Role, content: list[object], **facts: object) -> Message:
    metadata = MessageMetadata(provenance=Provenance.IMPORTED, extra={"transcript": RECORD}, **facts)  # type: ignore[arg-type]
    return Message(id="not-a-ulid-" + role, role=role, content=content, session_id="old", metadata=metadata)  # type: ignore[arg-type]


CALL = ToolUseBlock(id="toolu_01", name="Read", input={"file_path": "/a"}, provider_id="toolu_01")
HISTORY = [
    imported(Role.USER, [TextBlock(text="Summarise it."), UnknownBlock(raw=SNAPSHOT)]),
    imported(Role.ASSISTANT, [ThinkingBlock(text="hm", signature="sig"), CALL], provider="anthropic",
             model="anthropic:claude-opus-4-8", api="messages"),
    imported(Role.TOOL, [ToolResultBlock(tool_use_id="toolu_01", content="# A")], parent_tool_use_id="toolu_01"),
]  # fmt: skip


def test_case_37_an_imported_history_needs_nothing_invented() -> None:
    broken = [violation for violation in validate_conversation(HISTORY) if not violation.repairable]
    assert not broken
    assert all(message.metadata.routing is None and message.metadata.usage is None for message in HISTORY)


def test_case_37_side_chains_and_unknown_records_are_kept_on_re_save() -> None:
    for message in HISTORY:
        again = loads_message(dumps_message(message))
        assert again == message
        assert json.loads(dumps_message(again))["metadata"]["transcript"] == RECORD
    first = json.loads(dumps_message(HISTORY[0]))
    assert first["content"][1] == SNAPSHOT


def test_case_37_it_continues_at_its_own_provider_and_at_another() -> None:
    def body(key: str, model: str) -> str:
        messages = [*HISTORY, user("And now?", session_id="old")]
        return build_request(Registry().provider(key), messages, [], RequestOptions(model=model)).body.decode()

    at_home, elsewhere = body("anthropic", "claude-opus-4-8"), body("openai", "gpt-5.5")
    assert '"signature":"sig"' in at_home
    assert '"id":"toolu_01"' in at_home
    assert "sig" not in elsewhere
    assert all(word in elsewhere for word in ("Summarise it.", "Read", "# A", "And now?"))
