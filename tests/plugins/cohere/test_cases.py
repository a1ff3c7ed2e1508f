"""Odd answers and histories of this wire: both roads, and what goes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import MalformedResponseError, ServerError, StreamInterruptedError
from interlingua.types.blocks import (
    DocumentBlock,
    MediaSource,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, StopReason
from tests.plugins.cohere.wire import COHERE, answer, asked, body, context, end, event, sse, streamed, whole
from tests.support import driving
from tests.support.adapter import READ

REASONING, PLUS = "command-a-reasoning-08-2025", "command-a-plus-05-2026"


def _body(message: dict[str, Any], reason: str = "COMPLETE", **more: Any) -> dict[str, Any]:
    return {"id": "i", "message": {"role": "assistant", **message}, "finish_reason": reason, **more}


def _call(number: int = 1, arguments: Any = '{"path":"a"}', **more: Any) -> dict[str, Any]:
    return {
        "id": f"read_{number}",
        "type": "function",
        "function": {"name": "read_file", "arguments": arguments, **more},
    }


def _sent(message: Message, *, model: str = PLUS) -> dict[str, Any]:
    results = [tool_result(call, "x") for call in message.tool_calls]
    found: dict[str, Any] = body([user("a"), message, *results, user("b")], [READ], model=model)["messages"][1]
    return found


def test_the_plan_goes_back_as_one_and_thinking_as_thinking() -> None:
    content = [{"type": "thinking", "thinking": "First."}]
    message = whole(_body({"content": content, "tool_plan": "Read.", "tool_calls": [_call()]}, "TOOL_CALL"), PLUS)

    assert [block.text for block in message.thinking_blocks] == ["First.", "Read."]
    assert _sent(message) == {
        "role": "assistant",
        "content": content,
        "tool_plan": "Read.",
        "tool_calls": [_call()],
    }


def test_another_model_gets_neither_with_a_row_for_each() -> None:
    content = [{"type": "thinking", "thinking": "First."}, {"type": "text", "text": "Now."}]
    message = whole(_body({"content": content, "tool_plan": "Read.", "tool_calls": [_call()]}, "TOOL_CALL"), PLUS)
    request = asked([user("a"), message, *(tool_result(call, "x") for call in message.tool_calls)], [READ])

    assert b"First." not in request.body
    assert b'Read."' not in request.body
    assert [(loss.block_type, loss.verdict) for loss in request.losses] == [("thinking", "dropped")] * 2


def test_citations_of_text_thinking_and_plan_go_back_where_they_were() -> None:
    citations = [
        {"start": 0, "end": 5, "text": "First", "sources": [], "type": "THINKING_CONTENT", "content_index": 0},
        {"start": 0, "end": 3, "text": "Now", "sources": [], "type": "TEXT_CONTENT", "content_index": 1},
        {"start": 0, "end": 4, "text": "Read", "sources": [], "type": "PLAN"},
    ]
    content = [{"type": "thinking", "thinking": "First."}, {"type": "text", "text": "Now."}]
    parts = {"content": content, "tool_plan": "Read.", "tool_calls": [_call()], "citations": citations}
    message = whole(_body(parts, "TOOL_CALL"), PLUS)
    text = next(block for block in message.content if isinstance(block, TextBlock))
    back = _sent(message)["citations"]

    assert [dict(one) for one in text.citations] == [citations[1]]
    assert sorted(back, key=json.dumps) == sorted(citations, key=json.dumps)
    # a model that gets no thinking gets the text's alone, at the text's new place
    assert _sent(message, model="command-a-03-2025")["citations"] == [{**citations[1], "content_index": 0}]


def test_a_citation_without_an_index_is_of_the_text() -> None:
    citation = {"start": 0, "end": 2, "text": "Hi", "sources": [{"type": "tool", "id": "a:0"}], "type": "TEXT_CONTENT"}
    content = {"type": "text", "text": "Hi."}
    one = whole(_body({"content": [content], "citations": [citation]}))
    other = streamed(
        event("content-start", 0, content={"type": "text", "text": ""}),
        event("content-delta", 0, content={"text": "Hi."}),
        event("citation-start", 0, citations=citation),
        event("citation-end", 0),
        event("content-end", 0),
        end(),
    )

    assert one == other
    assert _sent(one) == {"role": "assistant", "content": [content], "citations": [citation]}


def test_citations_of_others_stay_away_with_a_row() -> None:
    foreign = answer(
        TextBlock(text="Hi.", citations=({"url": "https://example.com"},)), provider="elsewhere", api="chat"
    )
    request = asked([user("a"), foreign, user("b")])

    assert b"example.com" not in request.body
    assert [loss.path for loss in request.losses] == ["messages[1].content[0]"]


def test_documents_stand_beside_the_messages_in_order() -> None:
    def document(data: str, title: str | None = None) -> DocumentBlock:
        return DocumentBlock(source=MediaSource(kind="base64", data=data), media_type="text/plain", title=title)

    history = [
        user([TextBlock(text="one?"), document("b25l", "1.txt")]),
        answer(TextBlock(text="Yes.")),
        user([document("dHdv", "2.txt")]),
    ]
    request = asked(history)
    sent = json.loads(request.body)

    assert sent["documents"] == [
        {"data": {"title": "1.txt", "text": "one"}},
        {"data": {"title": "2.txt", "text": "two"}},
    ]
    assert sent["messages"][2] == {"role": "user", "content": "[document: 2.txt]"}
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("messages[2].content[0]", "rewritten")]


def test_a_pdf_is_dropped_with_a_row() -> None:
    pdf = DocumentBlock(source=MediaSource(kind="base64", data="JVBERi0="))
    (loss,) = asked([user([TextBlock(text="q"), pdf])]).losses

    assert (loss.path, loss.verdict) == ("messages[0].content[1]", "dropped")


@pytest.mark.parametrize(
    ("arguments", "sent", "value"),
    [
        ('{"path": "a"}', '{"path": "a"}', {"path": "a"}),
        ("", "{}", {}),
        (None, "{}", {}),
        ({"path": "a"}, '{"path":"a"}', {"path": "a"}),
        ('{"path": ', '{"invalid_arguments":"{\\"path\\": "}', {}),
    ],
)
def test_arguments(arguments: Any, sent: str, value: dict[str, Any]) -> None:
    message = whole(_body({"tool_calls": [_call(arguments=arguments)]}, "TOOL_CALL"), PLUS)
    (call,) = message.tool_calls

    assert dict(call.input) == value
    assert _sent(message)["tool_calls"][0]["function"]["arguments"] == sent


def test_what_is_new_is_kept_and_goes_back() -> None:
    content = [{"type": "chart", "chart": {"bars": [1, 2]}}, {"type": "text", "text": "So."}]
    call = {"id": "x", "type": "custom", "custom": {"name": "n", "input": "i"}}
    one = whole(_body({"content": content, "tool_calls": [call]}), PLUS)
    other = driving.streamed(
        COHERE,
        sse(
            event("content-start", 0, content=content[0]),
            event("content-end", 0),
            event("content-delta", 1, content={"text": "So."}),
            event("tool-call-start", 0, tool_calls=call),
            event("tool-call-end", 0),
            end(),
        ),
        context(PLUS),
    )

    assert one == other
    assert [block.kind for block in one.content if isinstance(block, OpaqueBlock)] == ["content", "tool_call"]
    assert _sent(one) == {"role": "assistant", "content": content, "tool_calls": [call]}


def test_pieces_of_what_is_new_are_put_together() -> None:
    message = streamed(
        event("content-start", 0, content={"type": "chart", "chart": ""}),
        event("content-delta", 0, content={"chart": "bars"}),
        end(),
    )
    (block,) = message.content

    assert isinstance(block, OpaqueBlock)
    assert dict(block.data) == {"type": "chart", "chart": "bars"}


@pytest.mark.parametrize("reason", ["ERROR", "TIMEOUT"])
def test_a_generation_that_failed_is_an_error(reason: str) -> None:
    with pytest.raises(ServerError) as caught:
        whole(_body({"content": [{"type": "text", "text": "Hal"}]}, reason))
    with pytest.raises(ServerError) as ours:
        streamed(event("content-delta", 0, content={"text": "Hal"}), end(reason))

    assert caught.value.message == ours.value.message
    assert ours.value.partial is not None
    assert ours.value.partial.text == "Hal"


def test_an_error_object_in_a_stream_is_an_error() -> None:
    with pytest.raises(ServerError, match="went away"):
        driving.streamed(COHERE, b'data: {"id":"1","message":"the model went away"}\n\n', context())


def test_a_stream_that_is_cut_keeps_text_and_citations() -> None:
    citation = {"start": 0, "end": 2, "text": "Hi", "sources": [], "type": "TEXT_CONTENT"}
    raw = sse(event("content-delta", 0, content={"text": "Hi."}), event("citation-start", 0, citations=citation))
    with pytest.raises(StreamInterruptedError) as caught:
        driving.streamed(COHERE, raw, context())

    assert caught.value.partial is not None
    (block,) = caught.value.partial.content
    assert block == TextBlock(text="Hi.", citations=(citation,))


@pytest.mark.parametrize(
    "events",
    [
        [event("content-delta", content={"text": "x"})],
        [event("tool-call-delta", 0, tool_calls={"function": {"arguments": "{"}})],
        [event("tool-call-start", 0, tool_calls=_call()), event("tool-call-start", 0, tool_calls=_call(2))],
        [event("content-delta", 0, content={"text": "x"}), event("content-delta", 0, content={"thinking": "y"})],
    ],
)
def test_events_that_make_no_sense_are_malformed(events: list[dict[str, Any]]) -> None:
    with pytest.raises(MalformedResponseError):
        driving.streamed(COHERE, sse(*events, end()), context())


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("COMPLETE", {"content": [{"type": "text", "text": "a"}]}, StopReason.END_TURN),
        ("STOP_SEQUENCE", {"content": [{"type": "text", "text": "a"}]}, StopReason.STOP_SEQUENCE),
        ("MAX_TOKENS", {"content": [{"type": "text", "text": "a"}]}, StopReason.MAX_TOKENS),
        ("TOOL_CALL", {"tool_calls": [_call()]}, StopReason.TOOL_USE),
        ("NEW_REASON", {"content": [{"type": "text", "text": "a"}]}, StopReason.OTHER),
    ],
)
def test_stop_reasons(reason: str, message: dict[str, Any], expected: StopReason) -> None:
    metadata = whole(_body(message, reason)).metadata

    assert (metadata.stop_reason, metadata.stop_reason_raw) == (expected, reason)


def test_counts_may_be_floats_and_missing_ones_are_unknown() -> None:
    counted = {"tokens": {"input_tokens": 12.0, "output_tokens": 3.0}, "billed_units": {"search_units": 1.0}}
    usage = whole(_body({"content": []}, usage=counted)).metadata.usage
    bare = whole(_body({"content": []})).metadata.usage

    assert usage is not None
    assert bare is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens) == (12, 3, None)
    assert usage.extra_units == {"search_units": 1}
    assert (bare.input_tokens, bare.extra_units) == (None, None)


def test_log_probabilities_are_in_the_trace_on_both_roads() -> None:
    item = {"text": "a", "token_ids": [1], "logprobs": [-0.5]}
    one = whole(_body({"content": [{"type": "text", "text": "a"}]}, logprobs=[item]))
    delta = {**event("content-delta", 0, content={"text": "a"}), "logprobs": item}
    other = streamed({"type": "message-start", "id": "i"}, delta, end())

    assert one.metadata.provider_raw == other.metadata.provider_raw
    assert one.metadata.provider_raw is not None
    assert one.metadata.provider_raw["trace"] == {"id": "i", "logprobs": [item]}


def test_an_error_flag_becomes_text() -> None:
    call = ToolUseBlock(id="read_1", name="read_file")
    request = asked([user("a"), answer(call), tool_result(call, "no such file", is_error=True)], [READ])

    assert b'{"role":"tool","tool_call_id":"read_1","content":"Error: no such file"}' in request.body
    assert [loss.verdict for loss in request.losses] == ["rewritten"]


def test_thinking_by_hand_is_thinking() -> None:
    mine = answer(ThinkingBlock(text="Hm."), TextBlock(text="So."), model=REASONING)
    sent = body([user("a"), mine, user("b")], model=REASONING)["messages"][1]

    assert sent["content"] == [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "So."}]
