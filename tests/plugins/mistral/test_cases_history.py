"""The field's cases (test_case_NN) about what is sent to this service, each by its number."""

from __future__ import annotations

import pytest

from interlingua.types.blocks import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, MessageMetadata, Role
from tests.plugins.mistral.checker import ID, broken_rules
from tests.plugins.mistral.wire import MODEL, answer, asked, body, completion, whole
from tests.support.adapter import READ

PIXEL = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"}, provider_id="gSIMJiOkT")


def test_case_02_foreign_thinking_is_not_sent() -> None:
    foreign = answer(ThinkingBlock(text="secret", signature="s"), TextBlock(text="hi"), provider="elsewhere")

    assert b"secret" not in asked([user("q"), foreign, user("n")]).body


def test_case_03_own_thinking_goes_back_as_its_chunk_before_the_text() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "s", "closed": True}
    own = whole(completion({"content": [thought, {"type": "text", "text": "hi"}]}))
    sent = body([user("q"), own, user("n")])["messages"][1]

    assert own.content == (ThinkingBlock(text="hm", signature="s"), TextBlock(text="hi"))
    assert sent == {"role": "assistant", "content": [thought, {"type": "text", "text": "hi"}]}


def test_case_07_a_dangling_call_is_answered_and_the_user_comes_after_the_assistant() -> None:
    sent = body([user("q"), answer(CALL), user("n")], [READ])["messages"]

    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]


def test_case_09_results_then_user_have_a_turn_between_them_and_the_ledger_tells() -> None:
    own = answer(CALL)
    request = asked([user("q"), own, tool_result(own.tool_calls[0], "r"), user("n")])

    assert broken_rules(request.body) == []
    (loss,) = request.losses
    assert (loss.path, loss.block_type, loss.verdict) == ("messages[3]", "message", "rewritten")


def test_case_09_models_seen_to_take_it_get_none() -> None:
    own = answer(CALL)
    request = asked([user("q"), own, tool_result(own.tool_calls[0], "r"), user("n")], model="mistral-small-latest")

    assert b"OK." not in request.body
    assert not request.losses


@pytest.mark.parametrize(
    "issued",
    ["call_abc|fc_1", "functions.write_todos:0", "x" * 450, "toolu_01", "", None],
    ids=["two-part", "dotted", "long", "underscore", "empty", "none"],
)
def test_case_10_ids_are_nine_letters_and_digits_for_call_and_result_alike(issued: str | None) -> None:
    calls = [ToolUseBlock(id=f"tu_{at}", name="f", provider_id=issued) for at in range(2)]
    foreign = answer(*calls, provider="elsewhere")
    history = [user("q"), foreign, *[tool_result(call, "r") for call in calls]]
    sent = body(history)["messages"]
    ids = [call["id"] for call in sent[1]["tool_calls"]]

    assert all(ID.fullmatch(one) for one in ids)
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in sent[2:]] == ids
    assert body([*history, answer(TextBlock(text="k")), user("n")])["messages"][:4] == sent  # stable over turns


def test_case_10_its_own_ids_come_back() -> None:
    own = answer(CALL)

    assert body([user("q"), own])["messages"][1]["tool_calls"][0]["id"] == "gSIMJiOkT"


def test_case_21_an_image_of_a_result_stays_in_it() -> None:
    own = answer(CALL)
    block = ToolResultBlock(tool_use_id="tu_1", content=(TextBlock(text="see"), PIXEL), is_error=True)
    result = Message(role=Role.TOOL, content=(block,), metadata=MessageMetadata(parent_tool_use_id="tu_1"))
    sent = body([user("q"), own, result])["messages"][2]

    assert sent["content"] == [
        {"type": "text", "text": "Error: see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]


def test_case_32_zero_is_a_value_and_the_seed_has_its_own_name() -> None:
    sent = body([user("q")], temperature=0, top_p=0, seed=0)

    assert (sent["temperature"], sent["top_p"], sent["random_seed"]) == (0, 0, 0)
    assert "seed" not in sent


def test_case_36_a_reference_goes_back_where_it_came_from() -> None:
    reference = {"type": "reference", "reference_ids": [1, 2]}
    own = whole(completion({"content": [{"type": "text", "text": "so"}, reference]}))

    assert own.content[1] == OpaqueBlock(provider="mistral", kind="reference", data=reference)
    assert body([user("q"), own, user("n")])["messages"][1]["content"] == [{"type": "text", "text": "so"}, reference]


def test_case_40_an_assistant_that_stands_last_is_named_before_sending() -> None:
    own = answer(TextBlock(text="Once"))
    request = asked([user("q"), own])

    assert [one["role"] for one in body([user("q"), own])["messages"]] == ["user", "assistant"]
    assert [(loss.path, loss.block_type, loss.verdict) for loss in request.losses] == [
        ("messages[1]", "message", "rewritten")
    ]


def test_an_assistant_that_only_calls_has_empty_content() -> None:
    sent = body([user("q"), answer(CALL)])["messages"][1]

    assert sent["content"] == ""


def test_audio_and_documents_have_this_services_form() -> None:
    audio = AudioBlock(source=MediaSource(kind="base64", data="aGk="), media_type="audio/mpeg")
    paper = DocumentBlock(source=MediaSource(kind="url", data="https://example.com/a.pdf"), title="a.pdf")
    page = DocumentBlock(source=MediaSource(kind="base64", data="aGk="))
    sent = body([user([audio, paper, page])], model="voxtral-small-latest")["messages"][0]["content"]

    assert sent == [
        {"type": "input_audio", "input_audio": "aGk="},
        {"type": "document_url", "document_url": "https://example.com/a.pdf", "document_name": "a.pdf"},
        {"type": "document_url", "document_url": "data:application/pdf;base64,aGk="},
    ]


def test_audio_is_dropped_for_models_that_do_not_hear() -> None:
    audio = AudioBlock(source=MediaSource(kind="base64", data="aGk="))
    (loss,) = asked([user([TextBlock(text="q"), audio])], model=MODEL).losses

    assert loss.block_type == "audio"
