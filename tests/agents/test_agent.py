"""The agent events of a real run, their JSON, messages in that JSON, and the reply payload.

Expected shapes were written by hand from the format's description (docs/agents/events.md).
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua_agents import event_json as ev_json
from interlingua_agents import events as ev
from interlingua_agents.loop import AgentLoop
from interlingua_agents.tools import ToolContext, tool
from tests.agents.scripted import CAPABLE, Say, Script, Theatre, call, playing, playing_async

# the types of the events of a run, and the form's name of each, written by hand from docs/agents/events.md
NAMES = {
    "run_start": "agent_start",
    "run_end": "agent_end",
    "tool_start": "tool_execution_start",
    "tool_update": "tool_execution_update",
    "tool_end": "tool_execution_end",
}
UPDATES = [f"{block}_{step}" for block in ("text", "thinking", "toolcall") for step in ("start", "delta", "end")]
FIELDS = {  # docs/agents/events.md
    "agent_start": {"type"},
    "agent_end": {"type", "messages"},
    "turn_start": {"type"},
    "turn_end": {"type", "message", "toolResults"},
    "message_start": {"type", "message"},
    "message_update": {"type", "message", "assistantMessageEvent"},
    "message_end": {"type", "message"},
    "tool_execution_start": {"type", "toolCallId", "toolName", "args"},
    "tool_execution_update": {"type", "toolCallId", "toolName", "args", "partialResult"},
    "tool_execution_end": {"type", "toolCallId", "toolName", "result", "isError"},
}


@tool(side_effects="none")
def count(upto: int, context: ToolContext) -> str:
    """Count."""
    context.update({"at": 1})
    return f"counted to {upto}"


RUN = [
    "agent_start",
    *["turn_start", "message_start", "message_end"],  # what the user said
    *["message_start", *["message_update"] * 8, "message_end"],
    *["tool_execution_start", "tool_execution_update", "tool_execution_end", "message_start", "message_end"],
    "turn_end",
    *["turn_start", "message_start", *["message_update"] * 4, "message_end", "turn_end"],
    "agent_end",
]


def theatre() -> Theatre:
    return Theatre(Say(parts=[call("count", {"upto": 3}), "So."]), "Three.")


def check(told: list[ev.RunEvent]) -> None:
    writer = ev_json.EventWriter()
    written = [writer.to_wire_event(event) for event in told]
    assert [one and one["type"] for one in written] == RUN
    for event, one in zip(told, written, strict=True):
        assert one is not None
        assert one["type"] == ("message_update" if event.type in UPDATES else NAMES.get(event.type, event.type))
        assert set(one) == FIELDS[one["type"]]
    end = told[-1]
    assert isinstance(end, ev.RunEnd)
    assert [message.role.value for message in end.messages] == ["user", "assistant", "tool", "assistant"]
    turn = next(event for event in told if isinstance(event, ev.TurnEnd))
    assert turn.tool_results[0].tool_results[0].tool_use_id == turn.message.tool_calls[0].id


def test_a_run_tells_its_events_in_the_seeds_order(tmp_path: Path) -> None:
    told: list[ev.RunEvent] = []
    with playing(theatre(), tmp_path / "s.db") as session:
        session.send("count", tools=AgentLoop([count], listen=told.append))
        stored = [message.id for message in session.store.messages("s")]

    check(told)
    end = told[-1]
    assert isinstance(end, ev.RunEnd)
    assert [message.id for message in end.messages] == stored
    update = next(event for event in told if isinstance(event, ev.ToolUpdate))
    assert update.partial == {"at": 1}
    last = [event for event in told if event.type in UPDATES][-1]
    assert isinstance(last, ev.AgentTextEnd)
    assert last.partial.text == last.content == "Three."


def test_an_asynchronous_run_tells_the_same(tmp_path: Path) -> None:
    told: list[ev.RunEvent] = []

    async def play() -> None:
        async with playing_async(theatre(), tmp_path / "s.db") as session:
            await session.send("count", tools=AgentLoop([count], listen=told.append))

    asyncio.run(play())
    check(told)


def test_a_model_that_cannot_stream_is_listened_to_as_well(tmp_path: Path) -> None:
    import attrs

    told: list[ev.RunEvent] = []
    script = Script(attrs.evolve(CAPABLE, supports_streaming=False))
    with playing(theatre(), tmp_path / "s.db", script=script) as session:
        session.send("count", tools=AgentLoop([count], listen=told.append))

    streamed: list[ev.RunEvent] = []
    with playing(theatre(), tmp_path / "t.db") as session:
        session.send("count", tools=AgentLoop([count], listen=streamed.append))
    assert {event.type for event in told} == {event.type for event in streamed}
    texts = [event.delta for event in told if isinstance(event, ev.AgentTextDelta)]
    assert texts == ["So.", "Three."]
    check_nesting(told)


def check_nesting(events: list[ev.RunEvent]) -> None:
    """Each start has its end, and no other block is open meanwhile."""
    opened: list[str] = []
    for event in events:
        name, _, step = event.type.rpartition("_")
        if step == "start":
            opened.append(name)
        elif step == "end":
            opened.remove(name)
    assert opened == []


@pytest.mark.parametrize("streaming", [True, False])
def test_a_listener_gets_the_events_that_a_stream_yields(tmp_path: Path, streaming: bool) -> None:
    import attrs

    told: list[ev.RunEvent] = []
    script = Script(attrs.evolve(CAPABLE, supports_streaming=streaming))
    loop = AgentLoop([count], listen=told.append)
    with playing(theatre(), tmp_path / "s.db", script=script) as session, session.stream("count", tools=loop) as stream:
        yielded = list(stream)
    assert len(told) == len(yielded)
    assert all(one is other for one, other in zip(told, yielded, strict=True))
    assert {type(event) for event in yielded} <= set(ev.RunEvent.__args__)  # type: ignore[attr-defined]
    check_nesting(yielded)


def test_a_failed_run_ends_its_events(tmp_path: Path) -> None:
    told: list[ev.RunEvent] = []
    broken = Theatre(Say(parts=["half of it"], cut=True))
    with playing(broken, tmp_path / "s.db") as session, pytest.raises(il.errors.StreamInterruptedError):
        session.send("count", tools=AgentLoop([count], listen=told.append))

    assert [event.type for event in told][-3:] == ["message_end", "turn_end", "run_end"]
    ended, last = told[-3], told[-1]
    assert isinstance(ended, ev.MessageEnd)
    assert isinstance(last, ev.RunEnd)
    assert isinstance(ended.error, il.errors.StreamInterruptedError)
    assert last.error is ended.error
    with pytest.raises(il.CallerError, match="the run has no result"):
        _ = last.result
    assert (ended.message.metadata.status, ended.message.text) == (il.MessageStatus.ERROR, "half of it")


AT = datetime(2025, 2, 19, 21, 20, tzinfo=UTC)  # 1740000000000 in milliseconds


def test_messages_in_the_seeds_form() -> None:
    """Messages made canonical by hand are written as the format has them."""
    image = il.ImageBlock(source=il.types.MediaSource(kind="base64", data="iVBORw0KGgo"), media_type="image/png")
    text = il.TextBlock(text="What's in this screenshot?")
    asked = il.Message(role=il.Role.USER, content=(text, image), created_at=AT)
    usage = il.Usage(
        input_tokens=3_000,
        output_tokens=200,
        cache_creation_input_tokens=1_500,
        cost_usd=Decimal("0.0655"),
        cost=il.types.CostParts(
            input=Decimal("0.0225"), output=Decimal("0.015"), cached_read=Decimal(0), cache_write=Decimal("0.028")
        ),
    )
    said = il.Message(
        role=il.Role.ASSISTANT,
        content=(
            il.ThinkingBlock(text="I need to read the file first...", signature="sig"),
            il.ToolUseBlock(id="tu_1", name="read", input={"offset": 0}),
        ),
        metadata=il.types.MessageMetadata(
            model="anthropic:claude-opus-4-6", provider="anthropic", api="anthropic-messages", usage=usage,
            stop_reason=il.StopReason.TOOL_USE,
        ),
        created_at=AT,
    )  # fmt: skip
    answered = il.tool_result("tu_1", "import x", tool_name="read", details={"lines": 200})

    assert ev_json.EventWriter().to_wire_messages([asked])[0] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "What's in this screenshot?"},
            {"type": "image", "data": "iVBORw0KGgo", "mimeType": "image/png"},
        ],
        "timestamp": 1740000000000,
    }
    assert ev_json.EventWriter().to_wire_messages([said])[0] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I need to read the file first...", "thinkingSignature": "sig"},
            {"type": "toolCall", "id": "tu_1", "name": "read", "arguments": {"offset": 0}},
        ],
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude-opus-4-6",
        "usage": {
            "input": 1500,
            "output": 200,
            "cacheRead": 0,
            "cacheWrite": 1500,
            "totalTokens": 1700,
            "cost": {"input": 0.0225, "output": 0.015, "cacheRead": 0, "cacheWrite": 0.028, "total": 0.0655},
        },
        "stopReason": "toolUse",
        "timestamp": 1740000000000,
    }
    (written,) = ev_json.EventWriter().to_wire_messages([answered])
    del written["timestamp"]
    assert written == {
        "role": "toolResult",
        "toolCallId": "tu_1",
        "toolName": "read",
        "content": [{"type": "text", "text": "import x"}],
        "details": {"lines": 200},
        "isError": False,
    }
    assert ev_json.EventWriter().to_wire_messages([il.user("hi")])[0]["content"] == "hi"


def _media(kind: Any, data: str) -> il.ImageBlock:
    return il.ImageBlock(source=il.types.MediaSource(kind=kind, data=data), media_type="image/png")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (il.assistant("**Hi**"), {"text": "**Hi**", "replyToId": "m1"}),
        (il.assistant([_media("url", "https://x/a.png")]), {"mediaUrl": "https://x/a.png", "replyToId": "m1"}),
        (
            il.assistant([il.TextBlock(text="two"), _media("url", "https://x/a.png"), _media("base64", "AAAA")]),
            {"text": "two", "mediaUrls": ["https://x/a.png", "data:image/png;base64,AAAA"], "replyToId": "m1"},
        ),
        (
            il.Message(
                role=il.Role.ASSISTANT,
                content=(),
                metadata=il.types.MessageMetadata(
                    status=il.MessageStatus.ERROR, error=il.types.ErrorInfo(type="OverloadedError", message="try later")
                ),
            ),
            {"text": "try later", "replyToId": "m1", "isError": True},
        ),
    ],
)
def test_the_reply_payload(message: il.Message, expected: dict[str, Any]) -> None:
    assert ev_json.to_wire_reply(ev_json.reply_payload(message, reply_to_id="m1")) == expected
