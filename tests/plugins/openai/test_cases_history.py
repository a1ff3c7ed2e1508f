"""Cases about what goes back to the service: pairs, ids, results, system messages."""

from __future__ import annotations

from typing import Any

import attrs

from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message, MessageMetadata, Role
from tests.plugins.openai.wire import body_of, call, reasoning, request, response, said, whole

USER = Message(role=Role.USER, content="go")


def result(tool_use_id: str, text: Any = "done", **more: Any) -> Message:
    block = ToolResultBlock(tool_use_id=tool_use_id, content=text, **more)
    return Message(role=Role.TOOL, content=block, metadata=MessageMetadata(parent_tool_use_id=tool_use_id))


def own_turn() -> Message:
    return whole(response(reasoning(), said("Looking.", phase="commentary"), call('{"path": "a"}')))


def test_case_05_stateless_requests_ask_for_encrypted_reasoning() -> None:
    body = body_of([USER])
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert "include" not in body_of([USER], model="gpt-4.1")


def test_case_05_own_items_go_back_whole_and_paired() -> None:
    message = own_turn()
    sent = body_of([USER, message, result(message.tool_calls[0].id)])["input"]
    text = said("Looking.", phase="commentary")
    del text["content"][0]["logprobs"]
    assert sent[1:4] == [reasoning(), text, call('{"path": "a"}')]
    assert sent[4] == {"type": "function_call_output", "call_id": "call_1", "output": "done"}


def test_case_05_another_model_gets_neither_ids_nor_reasoning() -> None:
    made = request([USER, own_turn(), USER], model="gpt-5.4")
    assert b"rs_1" not in made.body
    assert b"gAAAA-secret" not in made.body
    assert b"fc_1" not in made.body
    assert b"msg_1" not in made.body
    assert b'"call_id":"call_1"' in made.body
    assert any(loss.block_type == "thinking" for loss in made.losses)


def test_case_05_a_dated_snapshot_is_the_same_model() -> None:
    assert b"rs_1" in request([USER, own_turn(), USER], model="gpt-5.5-2026-04-01").body


def test_case_05_an_edited_message_breaks_the_link_on_both_sides() -> None:
    message = own_turn()
    content = [TextBlock(text="Changed.") if isinstance(block, TextBlock) else block for block in message.content]
    made = request([USER, attrs.evolve(message, content=tuple(content)), USER])
    for secret in (b"rs_1", b"gAAAA-secret", b"fc_1", b"msg_1"):
        assert secret not in made.body
    assert b'"phase":"commentary"' in made.body
    assert [loss.verdict for loss in made.losses if loss.block_type == "thinking"] == ["dropped"]


def test_case_05_a_call_taken_out_takes_the_reasoning_along() -> None:
    message = own_turn()
    made = request([USER, attrs.evolve(message, content=message.content[:2]), USER])
    assert b"rs_1" not in made.body
    assert b"Looking." in made.body


def test_case_05_reasoning_without_its_encrypted_form_strips_the_ids() -> None:
    message = whole(response(reasoning(encrypted=None), call("{}")))
    made = request([USER, message, USER])
    assert b"rs_1" not in made.body
    assert b"fc_1" not in made.body


def test_case_05_reasoning_that_led_to_nothing_is_left_out() -> None:
    body = response(
        said("So far."), reasoning(), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    )
    made = request([USER, whole(body), USER])
    assert b"rs_1" not in made.body
    assert b"msg_1" in made.body
    assert [loss.path for loss in made.losses] == ["messages[1].content[1]"]


def test_case_07_a_dangling_call_gets_an_answer_right_after_it() -> None:
    sent = body_of([USER, own_turn(), USER])["input"]
    assert [item["type"] for item in sent[3:]] == ["function_call", "function_call_output", "message"]
    assert sent[4]["call_id"] == "call_1"


def test_case_09_parallel_results_follow_the_calls_in_their_order() -> None:
    message = whole(response(call("{}", "call_a", item_id="fc_a"), call("{}", "call_b", item_id="fc_b")))
    first, second = message.tool_calls
    sent = body_of([USER, message, result(second.id, "B"), result(first.id, "A"), USER])["input"]
    assert [(item.get("call_id"), item.get("output")) for item in sent[3:5]] == [("call_a", "A"), ("call_b", "B")]
    assert sent[5]["role"] == "user"


def test_case_10_foreign_ids_fit_64_characters_and_stay_apart() -> None:
    ids = ["x" * 450, "x" * 449 + "y", "call x|fc y", "tu_01"]
    calls = tuple(ToolUseBlock(id=name, name="read_file") for name in ids)
    messages = [USER, Message(role=Role.ASSISTANT, content=calls), *[result(name) for name in ids]]
    sent = body_of(messages)["input"]
    made = [item["call_id"] for item in sent if item["type"] == "function_call"]
    assert len(set(made)) == 4
    assert all(1 <= len(name) <= 64 for name in made)
    assert made == [item["call_id"] for item in sent if item["type"] == "function_call_output"]


def test_case_12_an_own_empty_text_does_not_break_the_pair() -> None:
    message = whole(response(reasoning(), said(""), call("{}")))
    sent = body_of([USER, message, USER])["input"]
    assert [item.get("id") for item in sent[1:4]] == ["rs_1", "msg_1", "fc_1"]


def test_case_12_a_message_with_nothing_left_is_gone() -> None:
    sent = body_of([USER, Message(role=Role.ASSISTANT, content=(ThinkingBlock(text="Hm."),)), USER])["input"]
    assert [item["role"] for item in sent] == ["user", "user"]


def test_case_14_broken_arguments_go_back_as_they_came() -> None:
    message = whole(response(call('{"path": "a')))
    assert message.tool_calls[0].parse_error
    assert body_of([USER, message, USER])["input"][1]["arguments"] == '{"path": "a'


def test_case_21_an_image_in_a_result_stays_in_the_result() -> None:
    message = own_turn()
    image = ImageBlock(source=MediaSource(kind="base64", data="QUJD"), media_type="image/png")
    sent = body_of([USER, message, result(message.tool_calls[0].id, (TextBlock(text="see"), image))])["input"]
    assert sent[4]["output"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"},
    ]


def test_an_error_result_says_so_in_its_text() -> None:
    message = own_turn()
    made = request([USER, message, result(message.tool_calls[0].id, "no such file", is_error=True)])
    assert b'"output":"Error: no such file"' in made.body
    assert [loss.block_type for loss in made.losses] == ["tool_result"]


def test_case_25_leading_system_is_instructions_later_ones_stay_in_place() -> None:
    system = Message(role=Role.SYSTEM, content="Be brief.")
    body = body_of([system, USER, own_turn(), Message(role=Role.SYSTEM, content="Now in verse."), USER])
    assert body["instructions"] == "Be brief."
    assert body["input"][-2]["role"] == "developer"
    assert body["input"][-2]["content"] == [{"type": "input_text", "text": "Now in verse."}]


def test_case_36_citations_go_back_to_their_owner() -> None:
    citation = {"type": "url_citation", "start_index": 0, "end_index": 4, "url": "https://a.example", "title": "A"}
    item = said("Cited.")
    item["content"][0]["annotations"] = [citation]
    message = whole(response(item))
    assert message.content[0].citations == (citation,)  # type: ignore[union-attr]
    assert body_of([USER, message, USER])["input"][1]["content"][0]["annotations"] == [citation]


def test_hosted_items_go_back_verbatim_and_foreign_thinking_does_not() -> None:
    search = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    sent = body_of([USER, whole(response(search, said("Found."))), USER])["input"]
    assert sent[1] == search
    foreign = Message(role=Role.ASSISTANT, content=(ThinkingBlock(text="hm", signature="s"), TextBlock(text="Yes.")))
    assert body_of([USER, foreign, USER])["input"][1] == {
        "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}],
    }  # fmt: skip


def test_a_namespace_is_replayed_with_its_call() -> None:
    message = whole(response(call("{}") | {"namespace": "files"}))
    for model in ("gpt-5.5", "gpt-5.4"):
        assert body_of([USER, message, USER], model=model)["input"][1]["namespace"] == "files"


def test_a_custom_call_and_its_result_keep_their_own_item_types() -> None:
    item = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_1", "name": "run", "input": 'print("x")'}
    message = whole(response(item))
    assert message.tool_calls[0].input == {"input": 'print("x")'}
    sent = body_of([USER, message, result(message.tool_calls[0].id)])["input"]
    assert sent[1] == item
    assert sent[2] == {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"}
