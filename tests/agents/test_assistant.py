"""Assistant events as a view of canonical streams: made-up ones, recorded ones, failed and cancelled ones.

The grammar checked: start, blocks each start-delta*-end, one last event.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua.testing import AsyncMemoryTransport, MemoryReply, MemoryTransport
from interlingua_agents import event_stream as ev_stream
from interlingua_agents import events as ev
from interlingua_agents.event_json import EventWriter, assistant_stop_reason
from tests.agents import scripted
from tests.agents.scripted import Say, Theatre, call
from tests.support import tree
from tests.support.cassettes import load_exchanges

FIELDS = {  # docs/agents/events.md
    "start": {"type", "partial"},
    "done": {"type", "reason", "message"},
    "error": {"type", "reason", "error"},
    "text_start": {"type", "contentIndex", "partial"},
    "text_delta": {"type", "contentIndex", "delta", "partial"},
    "text_end": {"type", "contentIndex", "content", "partial"},
    "thinking_start": {"type", "contentIndex", "partial"},
    "thinking_delta": {"type", "contentIndex", "delta", "partial"},
    "thinking_end": {"type", "contentIndex", "content", "partial"},
    "toolcall_start": {"type", "contentIndex", "partial"},
    "toolcall_delta": {"type", "contentIndex", "delta", "partial"},
    "toolcall_end": {"type", "contentIndex", "toolCall", "partial"},
}
RECORDED = sorted((tree.ROOT / "cassettes").glob("*/recorded*stream*.yaml"))
IDS = [f"{path.parent.name}-{path.stem}" for path in RECORDED]


def streamed(theatre: Theatre) -> tuple[list[ev.RunEvent], il.MessageStream]:
    client = il.Client(scripted.MODEL, registry=scripted.registry(), transport=MemoryTransport(theatre), retry=0)
    with client, client.stream("hi") as stream:
        return list(ev_stream.answer_events(stream)), stream


def check_grammar(events: Sequence[ev.RunEvent]) -> None:
    """The events' order, their fields, and partials that hold just what was told so far."""
    assert isinstance(events[0], ev.MessageStart)
    assert isinstance(events[-1], ev.MessageEnd)
    assert events[0].message.content == ()
    said: dict[int, str] = {}
    open_: dict[int, str] = {}
    for event in events[1:-1]:
        kind, _, step = event.type.partition("_")
        assert isinstance(event, ev.BlockMoment)
        at = event.content_index
        block = event.partial.content[at]
        if step == "start":
            assert at == len(said)  # dense, in the order they begin
            said[at], open_[at] = "", kind
        assert open_[at] == kind
        if isinstance(event, ev.AgentTextDelta | ev.AgentThinkingDelta | ev.ToolCallDelta):
            said[at] += event.delta
        if isinstance(event, ev.AgentTextEnd | ev.AgentThinkingEnd):
            assert event.content == said[at]
        if step == "end":
            del open_[at]
        if isinstance(block, il.TextBlock | il.ThinkingBlock):
            assert block.text == said[at]
        assert event.partial.metadata.status is il.MessageStatus.PARTIAL
    if events[-1].error is None and events[-1].message.metadata.status is il.MessageStatus.COMPLETE:
        assert not open_
    for event in events:
        written = EventWriter().to_wire_answer_event(event)
        assert set(written) == FIELDS[written["type"]]


def test_text_thinking_and_calls_in_the_seeds_order() -> None:
    say = Say(parts=[("think", "hmm"), "I look.", call("read", {"path": "a"})])
    events, stream = streamed(Theatre(say))

    check_grammar(events)
    assert [event.type for event in events] == [
        "message_start",
        *["thinking_start", "thinking_delta", "thinking_delta"],
        *["text_start", "text_delta", "text_delta"],
        *["toolcall_start", "toolcall_delta", "toolcall_delta", "toolcall_end"],
        *["thinking_end", "text_end"],  # this API ends its text only with the answer
        "message_end",
    ]
    done, end = events[-1], events[-4]
    assert isinstance(done, ev.MessageEnd)
    assert isinstance(end, ev.ToolCallEnd)
    assert EventWriter().to_wire_answer_event(done)["reason"] == "toolUse"
    assert done.message is stream.message
    assert end.tool_call.input == {"path": "a"}
    assert end.tool_call == stream.message.tool_calls[0]


@pytest.mark.parametrize("path", RECORDED, ids=IDS)
def test_recorded_streams_of_every_wire_keep_the_grammar(path: Path) -> None:
    """The recorded bytes through the installed adapter; the events tell just what the whole message holds."""
    exchange = next(one for one in load_exchanges(path) if one.status == 200)
    provider = path.parent.name
    transport = MemoryTransport(lambda _: MemoryReply(exchange.body, headers=exchange.headers))
    api = "responses" if "responses" in path.stem else "chat" if "chat" in path.stem else None
    settings: dict[str, Any] = {provider: {"api_key": "k", **({"api": api} if api else {})}}
    client = il.Client(f"{provider}:any", transport=transport, retry=0, settings=settings)
    with client, client.stream("hi") as stream:
        events = list(ev_stream.answer_events(stream))
        message = stream.message

    check_grammar(events)
    text = "".join(event.delta for event in events if isinstance(event, ev.AgentTextDelta))
    calls = [event.tool_call for event in events if isinstance(event, ev.ToolCallEnd)]
    assert text == message.text
    assert [(one.id, one.name, one.input) for one in calls] == [(c.id, c.name, c.input) for c in message.tool_calls]


def test_a_partial_costs_nothing_unless_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[il.Message] = []
    real = il.plugins.MessageAssembler.message

    def counted(assembler: il.plugins.MessageAssembler) -> il.Message:
        made.append(real(assembler))
        return made[-1]

    monkeypatch.setattr("interlingua_agents.event_stream.MessageAssembler.message", counted)
    view = ev_stream.AnswerView(lambda: il.assistant("x"))

    events = [shown for at in range(500) for shown in view.feed(il.TextDelta(index=0, text=f"{at} "))]
    assert len(events) == 501
    assert made == []

    moment = events[10]
    assert isinstance(moment, ev.AgentTextDelta)
    assert moment.partial.text == "".join(f"{at} " for at in range(10))
    assert len(made) == 1


def test_an_event_holds_no_message() -> None:
    view = ev_stream.AnswerView(lambda: il.assistant("x"))
    events = [shown for at in range(50) for shown in view.feed(il.TextDelta(index=0, text="x" * 1000))]

    assert not any(isinstance(held, il.Message) for event in events for held in gc.get_referents(event))


def test_blocks_that_come_whole_are_one_delta_and_unknown_to_the_seed_are_none() -> None:
    """An API may send a call or text in one piece, and blocks without events; redacted thinking has no words."""
    search = il.types.OpaqueBlock(provider="script", kind="search", data={})
    use = il.ToolUseBlock(id="tu_1", name="read", input={"path": "a"})
    said: list[il.StreamEvent] = [
        il.types.BlockStart(index=0, block=search),
        il.types.BlockEnd(index=0, block=search),
        il.types.BlockStart(index=1, block=il.types.RedactedThinkingBlock(data="x")),
        il.types.BlockEnd(index=1, block=il.types.RedactedThinkingBlock(data="x")),
        il.types.BlockEnd(index=4, block=il.TextBlock(text="whole", signature="s")),
        il.types.ToolUseStart(index=2, id="tu_1", name="read", keep_raw=False),
        il.ToolUseEnd(index=2, block=use),
    ]
    view = ev_stream.AnswerView(lambda: il.assistant("x"))
    events = [view.start(), *(shown for event in said for shown in view.feed(event))]
    events += [*view.end_blocks(), view.end(il.assistant([il.TextBlock(text="whole"), use]))]

    check_grammar(events)
    assert [(event.type, getattr(event, "content_index", None)) for event in events] == [
        ("message_start", None),
        *[("thinking_start", 0), ("thinking_end", 0)],
        *[("text_start", 1), ("text_delta", 1), ("text_end", 1)],
        *[("toolcall_start", 2), ("toolcall_delta", 2), ("toolcall_end", 2)],
        ("message_end", None),
    ]
    thought, delta = events[2], events[7]
    assert isinstance(delta, ev.ToolCallDelta)
    assert delta.delta == '{"path":"a"}'
    assert isinstance(thought, ev.AgentThinkingEnd)
    assert (thought.content, thought.partial.content) == ("", (il.types.RedactedThinkingBlock(data="x"),))


def test_a_failed_stream_ends_with_an_error_and_raises_nothing() -> None:
    events, _ = streamed(Theatre(Say(parts=["half of it"], cut=True)))

    last = events[-1]
    assert isinstance(last, ev.MessageEnd)
    assert EventWriter().to_wire_answer_event(last)["reason"] == "error"
    assert isinstance(last.error, il.errors.StreamInterruptedError)
    assert last.message.text == "half of it"
    assert last.message.metadata.status is il.MessageStatus.ERROR
    check_grammar([*events[:-1], last])


def test_a_partial_in_json_is_not_aborted_while_it_grows() -> None:
    """A partial begins with `stop`; a user interface takes `aborted` for the end."""
    whole, _ = streamed(Theatre(Say(parts=["text", call("read", {"path": "a"})])))
    cut, _ = streamed(Theatre(Say(parts=["half of it"], cut=True)))

    partials = [EventWriter().to_wire_answer_event(event)["partial"] for event in (*whole[:-1], *cut[:-1])]
    assert {partial["stopReason"] for partial in partials} == {"stop"}
    assert EventWriter().to_wire_answer_event(whole[-1])["message"]["stopReason"] == "toolUse"
    assert EventWriter().to_wire_answer_event(cut[-1])["error"]["stopReason"] == "error"


def test_a_cancelled_stream_ends_with_aborted() -> None:
    chunks = (b'data: {"at": 0, "text": "more "}\n\n' for _ in range(100))
    transport = MemoryTransport(lambda _: MemoryReply(chunks, headers={"content-type": "text/event-stream"}))
    client = il.Client(scripted.MODEL, registry=scripted.registry(), transport=transport, retry=0)
    events: list[ev.RunEvent] = []
    with client, client.stream("hi") as stream:
        for event in ev_stream.answer_events(stream):
            events.append(event)
            if event.type == "text_delta":
                stream.cancel()

    last = events[-1]
    assert isinstance(last, ev.MessageEnd)
    assert EventWriter().to_wire_answer_event(last)["reason"] == "aborted"
    assert last.message.metadata.status is il.MessageStatus.CANCELLED


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (il.StopReason.END_TURN, "stop"),
        (il.StopReason.STOP_SEQUENCE, "stop"),
        (il.StopReason.MAX_TOKENS, "length"),
        (il.StopReason.CONTEXT_WINDOW, "length"),
        (il.StopReason.TOOL_USE, "toolUse"),
        (il.StopReason.REFUSAL, "error"),
        (il.StopReason.OTHER, "stop"),
    ],
)
def test_stop_reasons_in_the_seeds_words(reason: il.StopReason, said: str) -> None:
    message = il.Message(role=il.Role.ASSISTANT, content="x", metadata=il.types.MessageMetadata(stop_reason=reason))

    assert assistant_stop_reason(message) == said


def test_the_async_view_tells_the_same() -> None:
    theatre = Theatre(Say(parts=["text", call("read", {"path": "a"})]))

    async def listen() -> list[ev.RunEvent]:
        client = il.AsyncClient(
            scripted.MODEL, registry=scripted.registry(), transport=AsyncMemoryTransport(theatre), retry=0
        )
        async with client, client.stream("hi") as stream:
            return [event async for event in ev_stream.answer_events_async(stream)]

    events = asyncio.run(listen())
    blocking, _ = streamed(Theatre(Say(parts=["text", call("read", {"path": "a"})])))
    check_grammar(events)
    assert [event.type for event in events] == [event.type for event in blocking]
