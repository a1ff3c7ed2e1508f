"""Field cases about what is sent: thinking, calls and results, ids, empty text, system, caches, images."""

from __future__ import annotations

import re

import pytest

from interlingua.errors import CapabilityError
from interlingua.types.blocks import (
    CacheHint,
    ImageBlock,
    MediaSource,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua.types.factories import system, tool_result, user
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Role
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.plugins.anthropic.asking import NEW, OLD, answer, asked, body, body_of, elements
from tests.support.adapter import READ

CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"}, provider_id="toolu_01")
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.mark.parametrize(
    ("block", "origin"),
    [
        (ThinkingBlock(text="secret", signature=None), {}),
        (ThinkingBlock(text="secret", signature="theirs"), {"provider": "openai", "api": "responses", "model": "gpt"}),
        (ThinkingBlock(text="secret", signature="theirs"), {"model": "claude-opus-4-5"}),
    ],
)
def test_case_01_foreign_or_unsigned_thinking_is_dropped_with_a_loss(
    block: ThinkingBlock, origin: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", "interlingua"):
        request = asked([user("q"), answer(block, TextBlock(text="kept"), **origin), user("next")])

    assert [e["type"] for e in elements(body_of(request))] == ["text", "text", "text"]
    assert [(loss.block_type, loss.verdict) for loss in request.losses] == [("thinking", "dropped")]
    assert [r.levelname for r in caplog.records if hasattr(r, "block_type")] == ["DEBUG"]


def test_case_02_thinking_is_not_demoted_to_text() -> None:
    foreign = answer(
        ThinkingBlock(text="the secret thought"), TextBlock(text="kept"), provider="zai", api="", model="g"
    )

    assert b"secret thought" not in asked([user("q"), foreign, user("next")]).body


def test_case_03_own_thinking_survives_in_order() -> None:
    own = answer(
        ThinkingBlock(text="", signature="EqQB+/=="),
        RedactedThinkingBlock(data="Emw+="),
        TextBlock(text="I look."),
        CALL,
    )
    parsed = body([user("q"), own, tool_result(CALL, "ok")], [READ])

    assert parsed["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "", "signature": "EqQB+/=="},
        {"type": "redacted_thinking", "data": "Emw+="},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_01", "name": "read_file", "input": {"path": "a"}},
    ]


def test_case_03_an_empty_signature_goes_back_where_the_caller_allows_it() -> None:
    history = [user("q"), answer(ThinkingBlock(text="t"), TextBlock(text="a"), model="local"), user("n")]
    parsed = body(history, model="local", capabilities={"accepts_unsigned_thinking": True})

    assert elements(parsed)[1] == {"type": "thinking", "thinking": "t", "signature": ""}


def test_case_07_a_dangling_call_gets_the_same_error_result_each_time() -> None:
    history = [user("q"), answer(CALL), user("never mind")]
    first, second = asked(history, [READ]), asked([*history[:1], answer(CALL), user("never mind")], [READ])
    result, text = body_of(first)["messages"][2]["content"]

    assert first.body == second.body
    assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", "toolu_01", True)
    assert text == {"type": "text", "text": "never mind"}
    assert [loss.verdict for loss in first.losses] == ["rewritten"]


def test_case_08_an_orphan_result_is_removed_with_a_loss() -> None:
    request = asked([user("q"), tool_result("tu_gone", "orphan"), user("n")], [READ])

    assert [e["type"] for e in elements(body_of(request))] == ["text", "text"]
    assert [(loss.block_type, loss.verdict) for loss in request.losses] == [("tool_result", "dropped")]


def test_case_09_results_of_a_batch_stand_in_one_user_message_before_the_text() -> None:
    other = ToolUseBlock(id="tu_2", name="read_file", input={"path": "b"}, provider_id="toolu_02")
    history = [user("q"), answer(CALL, other), tool_result(other, "B"), tool_result(CALL, "A"), user("and?")]
    last = body(history, [READ])["messages"][2]

    assert last["role"] == "user"
    assert [e.get("tool_use_id", e.get("text")) for e in last["content"]] == ["toolu_01", "toolu_02", "and?"]


@pytest.mark.parametrize("issued", ["call_x|fc_y", "functions.write_todos:0", "x" * 450, "ends_", "a b", ""])
def test_case_10_foreign_ids_fit_the_pattern_and_pair(issued: str) -> None:
    call = ToolUseBlock(id=issued or "tu_9", name="read_file", input={}, provider_id=issued or None)
    foreign = answer(call, provider="openai", api="chat", model="gpt")
    use, result = elements(body([user("q"), foreign, tool_result(call, "r")], [READ]))[1:]

    assert ID.fullmatch(use["id"])
    assert result["tool_use_id"] == use["id"]


def test_case_10_ids_used_twice_become_two() -> None:
    history = []
    for turn in range(2):
        call = ToolUseBlock(id=f"tu_{turn}", name="read_file", input={}, provider_id="same")
        history += [user("q"), answer(call), tool_result(call, str(turn))]
    ids = [e["id"] for e in elements(body(history, [READ])) if e["type"] == "tool_use"]

    assert ids[0] == "same"
    assert len(set(ids)) == 2
    assert all(map(ID.fullmatch, ids))


@pytest.mark.parametrize("text", ["", " \n", "\t"])
def test_case_12_empty_text_is_removed_and_the_history_stays_sendable(text: str) -> None:
    parsed = body([user("a"), answer(TextBlock(text=text)), Message(role=Role.USER, content=(TextBlock(text="b"),))])

    assert parsed["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ]


def test_case_12_the_end_of_final_assistant_text_is_trimmed() -> None:
    request = asked([user("a"), answer(TextBlock(text="It is \n"))])

    assert elements(body_of(request))[-1] == {"type": "text", "text": "It is"}
    assert [loss.verdict for loss in request.losses] == ["rewritten"]


def test_case_12_text_that_is_not_final_keeps_its_end() -> None:
    assert elements(body([user("a"), answer(TextBlock(text="It is \n")), user("b")]))[1]["text"] == "It is \n"


def test_case_12_blank_text_in_a_result_is_left_out() -> None:
    result = elements(body([user("q"), answer(CALL), tool_result(CALL, " \n")], [READ]))[-1]

    assert result == {"type": "tool_result", "tool_use_id": "toolu_01"}


def test_a_history_that_begins_with_the_assistant_is_sent_unchanged() -> None:
    """Recorded: the service answers it with 200."""
    request = asked([answer(TextBlock(text="Hello")), user("hi")])

    assert [turn["role"] for turn in body_of(request)["messages"]] == ["assistant", "user"]
    assert request.losses == ()


def test_case_14_malformed_arguments_can_be_sent_back() -> None:
    cut = ToolUseBlock(id="tu_1", name="read_file", raw_input='{"path": "a', parse_error="cut", provider_id="toolu_01")
    request = asked([user("q"), answer(cut), tool_result(cut, "bad", is_error=True)], [READ])

    assert isinstance(elements(body_of(request))[1]["input"], dict)
    assert '{\\"path\\": \\"a' in request.body.decode()
    assert [loss.verdict for loss in request.losses] == ["rewritten"]


def test_case_21_an_image_in_a_result_stays_in_the_result() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0="), media_type="image/png")
    result = elements(body([user("q"), answer(CALL), tool_result(CALL, [TextBlock(text="see"), image])], [READ]))[-1]

    assert result["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}},
    ]


def test_case_21_an_image_type_the_wire_does_not_take_becomes_a_note() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="AA=="), media_type="image/tiff")
    request = asked([user("q"), answer(CALL), tool_result(CALL, [image])], [READ])

    assert "image/tiff" in elements(body_of(request))[-1]["content"]
    assert [loss.verdict for loss in request.losses] == ["rewritten"]


def test_case_21_a_request_larger_than_the_wire_takes_is_refused_before_sending() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="A" * (33 * 1024 * 1024)), media_type="image/png")

    with pytest.raises(CapabilityError):
        asked([user([image])])


def test_case_22_lone_surrogates_are_replaced_and_emoji_kept() -> None:
    parsed = body([user("a\ud800b 🙂 \x00")])

    assert elements(parsed)[0]["text"] == "a\ufffdb 🙂 \x00"


def test_case_23_an_empty_description_is_left_out_and_the_schema_is_sent_as_it_is() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    empty = ToolDefinition(name="now", description="", input_schema=schema, side_effects=SideEffects.NONE)
    (written,) = body([user("q")], [empty])["tools"]

    assert written == {"name": "now", "input_schema": schema}


def test_case_24_a_tool_history_without_tools_is_sent_unchanged() -> None:
    """Recorded with seven models, each a 200."""
    request = asked([user("q"), answer(CALL), tool_result(CALL, "r"), user("n")])

    assert not body_of(request).keys() & {"tools", "tool_choice"}
    assert request.losses == ()


def test_case_25_leading_system_is_hoisted_and_a_later_one_stays_where_a_model_takes_it() -> None:
    history = [system("be brief"), user("q"), system("now in French")]
    parsed = body(history, model=NEW)

    assert parsed["system"] == [{"type": "text", "text": "be brief"}]
    assert parsed["messages"][1] == {"role": "system", "content": [{"type": "text", "text": "now in French"}]}


@pytest.mark.parametrize(("model", "after"), [(OLD, ()), (NEW, (user("next"),))])
def test_case_25_elsewhere_it_is_tagged_user_text_in_its_place(model: str, after: tuple[Message, ...]) -> None:
    request = asked([user("q"), system("now in French"), *after], model=model)
    parsed = body_of(request)

    assert [turn["role"] for turn in parsed["messages"]] == ["user"]
    assert elements(parsed)[1]["text"] == "<system>\nnow in French\n</system>"
    assert [loss.verdict for loss in request.losses] == ["rewritten"]


def test_case_33_at_most_four_markers_long_before_short_none_on_thinking() -> None:
    short, long = CacheHint(ttl="5m"), CacheHint(ttl="1h")
    own = answer(ThinkingBlock(text="t", signature="s"), TextBlock(text="a", cache=short))
    hinted = [user([TextBlock(text=str(n), cache=long)]) for n in range(5)]
    request = asked([user([TextBlock(text="q", cache=short)]), own, *hinted])
    marks = [e["cache_control"] for e in elements(body_of(request)) if "cache_control" in e]

    assert len(marks) == 4
    assert "cache_control" not in elements(body_of(request))[1]
    seen_short = [mark.get("ttl", "5m") != "1h" for mark in marks]
    assert seen_short == sorted(seen_short)


def test_case_33_markers_on_tools_count_and_a_short_one_there_shortens_later_ones() -> None:
    tools = [
        ToolDefinition(
            name=f"t{n}", description="d", input_schema={"type": "object"}, side_effects=SideEffects.NONE,
            cache=CacheHint(),
        )
        for n in range(3)
    ]  # fmt: skip
    history = [user([TextBlock(text=t, cache=CacheHint(ttl="1h"))]) for t in "ab"]
    parsed = body(history, tools)
    marked = [e for e in elements(parsed) if "cache_control" in e]

    assert [e["text"] for e in marked] == ["b"]
    assert marked[0]["cache_control"].get("ttl", "5m") == "5m"


def test_case_33_a_hint_inside_a_result_marks_the_result() -> None:
    block = ToolResultBlock(tool_use_id="tu_1", content=(TextBlock(text="long", cache=CacheHint()),))
    result = Message(role=Role.TOOL, content=(block,), metadata=MessageMetadata(parent_tool_use_id="tu_1"))

    assert elements(body([user("q"), answer(CALL), result], [READ]))[-1] == {
        "type": "tool_result", "tool_use_id": "toolu_01", "content": "long", "cache_control": {"type": "ephemeral"},
    }  # fmt: skip


def test_case_35_a_partial_turn_sends_neither_half_a_call_nor_unsigned_thinking() -> None:
    half = ToolUseBlock(id="tu_1", name="read_file", raw_input='{"pa', parse_error="cut off", provider_id="toolu_01")
    partial = answer(ThinkingBlock(text="hm"), TextBlock(text="I wi"), half, status=MessageStatus.CANCELLED)
    parsed = body([user("q"), partial, user("go on")], [READ])

    assert [e["text"] for e in elements(parsed)] == ["q", "I wi", "go on"]


def test_case_36_citations_go_back_to_their_owner_and_nowhere_else() -> None:
    cited = TextBlock(text="so", citations=({"type": "char_location", "cited_text": "x"},))
    own = body([user("q"), answer(cited), user("n")])
    foreign = asked([user("q"), answer(cited, provider="openai", api="responses", model="g"), user("n")])

    assert elements(own)[1]["citations"] == [{"type": "char_location", "cited_text": "x"}]
    assert elements(body_of(foreign))[1] == {"type": "text", "text": "so"}
    assert [loss.verdict for loss in foreign.losses] == ["rewritten"]


def test_case_40_a_model_without_prefill_is_named_before_sending() -> None:
    history = [user("q"), answer(TextBlock(text="It is"))]

    assert not asked(history, model=OLD).losses
    assert [loss.path for loss in asked(history, model="claude-opus-4-6").losses] == ["messages[1]"]
