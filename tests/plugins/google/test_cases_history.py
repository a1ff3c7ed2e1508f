"""Field cases about histories, and the rules of the wire for writing one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.types.blocks import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    VideoBlock,
)
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import MessageStatus
from tests.plugins.google.checker import broken_rules
from tests.plugins.google.wire import NEW, OLD, answer, asked, body, body_of, chunk, parts_of, read, streamed
from tests.support.adapter import READ

PIXEL = "iVBORw0KGgo="
STAND_IN = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="  # base64 of skip_thought_signature_validator


def _image(media_type: str = "image/png", kind: Any = "base64", data: str = PIXEL) -> ImageBlock:
    return ImageBlock(source=MediaSource(kind=kind, data=data), media_type=media_type)


def _foreign(*calls: ToolUseBlock, **facts: Any) -> Any:
    return answer(*calls, provider="elsewhere", api="chat", model="m", **facts)


def test_case_01_02_foreign_thinking_is_dropped_and_not_said_aloud() -> None:
    other = answer(
        ThinkingBlock(text="secret plan", signature="x"), TextBlock(text="hi"), provider="b", api="c", model="m"
    )
    request = asked([user("q"), other, user("n")], model=NEW)

    assert b"secret plan" not in request.body
    assert [loss.verdict for loss in request.losses] == ["dropped"]


def test_case_03_04_own_parts_go_back_as_they_came() -> None:
    parts = [
        {"text": "Hm.", "thought": True},
        {"text": "I look.", "thoughtSignature": "c2lnMQ=="},
        {
            "functionCall": {"id": "c1", "name": "read_file", "args": {"path": "b", "a": 1}},
            "thoughtSignature": "c2lnMg==",
        },
        {"functionCall": {"id": "c2", "name": "read_file", "args": {}}},
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2lnMw=="},
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}, "thoughtSignature": "c2lnNA=="},
        {"text": "", "thoughtSignature": "c2lnNQ=="},
    ]
    own = read(chunk(*parts, finish="STOP"), model=NEW)
    results = [tool_result(call, "r") for call in own.tool_calls]
    sent = body([user("q"), own, *results], [READ], model=NEW)["contents"][1]

    assert sent == {"role": "model", "parts": parts}
    assert json.dumps(sent["parts"]) == json.dumps(parts)


def test_a_session_that_left_and_came_back_finds_its_own_state() -> None:
    own = streamed(
        chunk(
            {"functionCall": {"name": "read_file", "args": {"path": "a"}}, "thoughtSignature": "c2ln"}, finish="STOP"
        ),
        model=NEW,
    )
    before = [user("q"), own, tool_result(own.tool_calls[0], "r"), user("now you")]
    call = ToolUseBlock(id="tu_b", name="read_file", input={}, provider_id="call_b|fc_1")
    history = [*before, _foreign(call), tool_result(call, "r2"), user("back to you")]
    then, now = parts_of(body(before, [READ], model=NEW)), parts_of(body(history, [READ], model=NEW))

    assert [json.dumps(part) for part in now[: len(then)]] == [json.dumps(part) for part in then]
    assert then[1]["thoughtSignature"] == "c2ln"


def test_case_04_an_unsigned_first_call_gets_the_stand_in_where_one_is_demanded() -> None:
    calls = [ToolUseBlock(id=f"tu_{n}", name="read_file", input={}) for n in (1, 2)]
    history = [user("q"), _foreign(*calls), *(tool_result(call, "r") for call in calls)]
    request = asked(history, [READ], model=NEW)
    signatures = [part.get("thoughtSignature") for part in parts_of(body_of(request)) if "functionCall" in part]

    assert signatures == [STAND_IN, None]
    assert STAND_IN.encode() not in asked(history, [READ], model=OLD).body


def test_case_04_another_models_signatures_stay_at_home() -> None:
    code = {"executableCode": {"code": "1"}, "thoughtSignature": "c2ln"}
    own = read(chunk({"text": "a", "thoughtSignature": "c2ln"}, code, finish="STOP"), model=NEW)
    request = asked([user("q"), own, user("n")], model=OLD)

    assert b"c2ln" not in request.body
    assert parts_of(body_of(request))[1:3] == [{"text": "a"}, {"executableCode": {"code": "1"}}]
    assert len(request.losses) == 2


def test_case_07_a_dangling_call_is_answered() -> None:
    call = ToolUseBlock(id="tu_1", name="read_file", input={})
    sent = body([user("q"), _foreign(call), user("go on")], [READ])["contents"]

    assert [content["role"] for content in sent] == ["user", "model", "user", "user"]
    assert sent[2]["parts"][0]["functionResponse"]["response"].keys() == {"error"}
    assert sent[3]["parts"] == [{"text": "go on"}]


def test_case_08_09_as_many_results_as_calls_in_the_calls_order() -> None:
    calls = [ToolUseBlock(id=f"tu_{n}", name=name, input={}) for n, name in enumerate(("read_file", "search"))]
    history = [
        user("q"), _foreign(*calls), tool_result(calls[1], "B"), tool_result(calls[0], "A"),
        tool_result("tu_nobody", "orphan", tool_name="x"), user("and now"),
    ]  # fmt: skip
    request = asked(history, [READ])

    assert body_of(request)["contents"][2]["parts"] == [
        {"functionResponse": {"name": "read_file", "response": {"output": "A"}}},
        {"functionResponse": {"name": "search", "response": {"output": "B"}}},
    ]
    assert body_of(request)["contents"][3:] == [{"role": "user", "parts": [{"text": "and now"}]}]
    assert broken_rules(request.body) == []


def test_case_10_11_ids_go_back_only_where_the_model_gave_them() -> None:
    named = read(chunk({"functionCall": {"id": "x y", "name": "read_file", "args": {}}}, finish="STOP"))
    issued = read(chunk({"functionCall": {"id": "hq1", "name": "read_file", "args": {}}}, finish="STOP"))
    bare = read(chunk({"functionCall": {"name": "read_file", "args": {}}}, finish="STOP"))
    found = []
    for own in (issued, bare, named):
        parts = parts_of(body([user("q"), own, tool_result(own.tool_calls[0], "r", tool_name=None)], [READ]))
        found.append((parts[1]["functionCall"].get("id"), parts[2]["functionResponse"].get("id")))
        assert parts[2]["functionResponse"]["name"] == "read_file"

    assert found == [("hq1", "hq1"), (None, None), (None, None)]


def test_case_12_empty_text_is_sent() -> None:
    """The service takes it: recorded, google-generate/e0ba3352ee319d53 and 7b06b2efe017574a."""
    own = streamed(chunk({"text": "a"}), chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"))
    sent = parts_of(body([user([TextBlock(text=""), TextBlock(text="q")]), own, user("n")]))

    assert sent == [{"text": ""}, {"text": "q"}, {"text": "a"}, {"text": "", "thoughtSignature": "c2ln"}, {"text": "n"}]


def test_case_14_arguments_that_are_no_object_can_be_sent_back() -> None:
    own = read(chunk({"functionCall": {"name": "read_file", "args": "{cut"}}, finish="STOP"))
    request = asked([user("q"), own, tool_result(own.tool_calls[0], "r")], [READ])

    assert parts_of(body_of(request))[1]["functionCall"]["args"] == {"invalid_json": "{cut"}
    assert [loss.verdict for loss in request.losses] == ["rewritten"]


def test_tool_errors_have_their_own_member() -> None:
    call = ToolUseBlock(id="tu_1", name="read_file", input={})
    failed = tool_result(call, "no such file", is_error=True)
    (part,) = body([user("q"), _foreign(call), failed], [READ])["contents"][2]["parts"]

    assert part["functionResponse"]["response"] == {"error": "no such file"}


@pytest.mark.parametrize("model", [OLD, NEW])
def test_case_21_an_image_in_a_result_goes_where_the_model_takes_it(model: str) -> None:
    call = ToolUseBlock(id="tu_1", name="read_file", input={})
    result = tool_result(call, [TextBlock(text="see"), _image(), _image("image/heic")])
    contents = body([user("q"), _foreign(call), result], [READ], model=model)["contents"][2:]
    parts = [part for content in contents for part in content["parts"]]
    png, heic = ({"inlineData": {"mimeType": kind, "data": PIXEL}} for kind in ("image/png", "image/heic"))
    response = parts[0]["functionResponse"]

    if model == NEW:
        assert response["parts"] == [png]
        assert parts[1:] == [heic]
    else:
        assert "parts" not in response
        assert [part for part in parts[1:] if "inlineData" in part] == [png, heic]


def test_case_22_lone_surrogates_are_replaced() -> None:
    sent = asked([user("a\ud800b \U0001f701")]).body

    assert json.loads(sent)["contents"][0]["parts"] == [{"text": "a\ufffdb \U0001f701"}]


def test_case_25_leading_system_hoists_and_later_system_is_tagged_user_text() -> None:
    sent = body(
        [system("be brief"), system("be kind"), user("q"), answer(TextBlock(text="a")), system("now"), user("n")]
    )

    assert sent["systemInstruction"] == {"parts": [{"text": "be brief"}, {"text": "be kind"}]}
    assert sent["contents"][2] == {"role": "user", "parts": [{"text": "<system>\nnow\n</system>"}]}


def test_case_24_a_history_with_calls_needs_no_tools() -> None:
    call = ToolUseBlock(id="tu_1", name="read_file", input={})

    assert "tools" not in body([user("q"), _foreign(call), tool_result(call, "r"), user("n")])


def test_case_35_a_cut_off_answer_keeps_its_text() -> None:
    call = ToolUseBlock(id="tu_1", name="read_file", raw_input='{"a', parse_error="cut")
    partial = answer(TextBlock(text="I was"), call, status=MessageStatus.PARTIAL, usage=None)
    sent = body([user("q"), partial, user("n")])["contents"]

    assert sent[1]["parts"] == [{"text": "I was"}]


def test_case_36_citations_stay_with_us_and_that_is_said() -> None:
    cited = answer(TextBlock(text="a", citations=({"uri": "https://e.com"},)))
    request = asked([user("q"), cited, user("n")])

    assert parts_of(body_of(request))[1] == {"text": "a"}
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("messages[1].content[0]", "rewritten")]


def test_case_40_a_history_that_ends_with_the_model_is_reported() -> None:
    request = asked([user("q"), assistant("The answer is")])

    assert [loss.path for loss in request.losses] == ["messages[1]"]


def test_a_conversation_that_begins_with_the_model_gets_a_first_user_content() -> None:
    request = asked([assistant("Hello."), user("q")])

    assert [content["role"] for content in body_of(request)["contents"]] == ["user", "model", "user"]
    assert [loss.block_type for loss in request.losses] == ["message"]


def test_media_by_data_by_file_and_by_address() -> None:
    content = [
        _image(),
        _image("image/png", "file_id", "https://generativelanguage.googleapis.com/v1beta/files/x"),
        AudioBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="audio/wav"),
        VideoBlock(source=MediaSource(kind="url", data="https://www.youtube.com/watch?v=x"), media_type="video/mp4"),
        DocumentBlock(source=MediaSource(kind="base64", data="JVBERi0="), title="t"),
    ]
    request = asked([user(content)])

    assert parts_of(body_of(request)) == [
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://www.youtube.com/watch?v=x"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
    ]
    assert [loss.path for loss in request.losses] == ["messages[0].content[4]"]


def test_foreign_opaque_blocks_stay_at_home() -> None:
    other = answer(TextBlock(text="a"), OpaqueBlock(provider="b", kind="k", data={"x": 1}), provider="b", model="m")
    request = asked([user("q"), other, user("n")])

    assert parts_of(body_of(request))[1:] == [{"text": "a"}, {"text": "n"}]
    assert [loss.block_type for loss in request.losses] == ["opaque"]
