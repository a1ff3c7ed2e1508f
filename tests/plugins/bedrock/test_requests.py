"""What we write, held against botocore's service model, and the forms that each maker's models want."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from botocore.validate import ParamValidator

from interlingua.plugins import WireRequest
from interlingua.types import (
    AudioBlock,
    CacheHint,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    SideEffects,
    TextBlock,
    ThinkingBlock,
    ToolChoice,
    ToolDefinition,
    ToolUseBlock,
    VideoBlock,
    assistant,
    system,
    tool_result,
    user,
)
from interlingua_bedrock.models import capabilities_of, model_of, plain_name
from interlingua_bedrock.plugin import auxiliary_request
from tests.plugins.bedrock.wire import (
    BEDROCK,
    CLAUDE,
    NOVA,
    NOVA_2,
    SERVICE,
    answer,
    asked,
    body,
    frame,
    read,
    streamed,
)
from tests.support.adapter import READ

PDF = base64.b64encode(b"%PDF-1.4").decode()
HINT = CacheHint()
HOUR = CacheHint(ttl="1h")
LLAMA, GPT_OSS, QWEN = "meta.llama3-3-70b-instruct-v1:0", "openai.gpt-oss-120b-1:0", "qwen.qwen3-32b-v1:0"
CALLS = [
    ToolUseBlock(id=f"tu_{n}", name="read_file", input={"path": str(n)}, provider_id=f"tooluse_{n}") for n in (1, 2)
]


def _document(data: str = PDF, **more: Any) -> DocumentBlock:
    return DocumentBlock(source=MediaSource(kind="base64", data=data), **more)


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: base64.b64decode(item) if name in ("bytes", "redactedContent") else _decoded(item)
            for name, item in value.items()
        }
    return [_decoded(item) for item in value] if isinstance(value, list) else value


def _accepted(request: WireRequest) -> dict[str, Any]:
    """Return the body; botocore finds nothing wrong with it."""
    parsed: dict[str, Any] = json.loads(request.body)
    shape = SERVICE.operation_model("ConverseStream" if request.stream else "Converse").input_shape
    report = ParamValidator().validate({**_decoded(parsed), "modelId": "m"}, shape)
    assert not report.has_errors(), report.generate_report()
    return parsed


def _reasons(request: WireRequest) -> list[tuple[str, str]]:
    return [(loss.path, loss.verdict) for loss in request.losses]


# ---- the whole of it


def test_everything_at_once_is_what_botocore_accepts() -> None:
    media = [
        TextBlock(text="look"),
        ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png"),
        _document(title="A.pdf", context="of 2026", cite=True),
    ]
    own = answer(ThinkingBlock(text="hm", signature="c2ln"), RedactedThinkingBlock(data="YWJj"), *CALLS)
    history = [system("be kind"), user(media), own, *(tool_result(call, "r") for call in CALLS)]
    options = {
        "max_tokens": 4096, "stop": ("x",), "thinking_budget": 2000, "stream": True,
        "response_schema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
    }  # fmt: skip
    request = asked(history, [READ], **options)
    parsed = _accepted(request)

    assert request.path == "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    assert [message["role"] for message in parsed["messages"]] == ["user", "assistant", "user"]
    assert [next(iter(block)) for block in parsed["messages"][1]["content"]] == [
        "reasoningContent", "reasoningContent", "toolUse", "toolUse",
    ]  # fmt: skip
    assert parsed["messages"][2]["content"][1] == {"toolResult": {"toolUseId": "tooluse_2", "content": [{"text": "r"}]}}
    assert parsed["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    schema = json.loads(parsed["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])
    assert schema == {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "minimum: 1"}},
        "additionalProperties": False,
    }
    lost = [("messages[1]", "rewritten"), ("options.response_schema.properties.n.minimum", "rewritten")]
    assert _reasons(request) == lost  # citations are off beside a schema


@pytest.mark.parametrize("model", [NOVA, NOVA_2, LLAMA, GPT_OSS, QWEN, "amazon.titan-text-lite-v1", "x.unknown"])
def test_every_maker_gets_a_request_that_botocore_accepts(model: str) -> None:
    settings = {"max_tokens": 9, "temperature": 1.5, "top_p": 0.5, "top_k": 3, "effort": "low", "seed": 1}
    request = asked([user("hi"), assistant("ho"), user("go")], model=model, **settings)
    assert _accepted(request)["inferenceConfig"]["temperature"] == 1
    assert {"options.temperature", "options.seed"} <= {loss.path for loss in request.losses}


# ---- turns


def test_neighbours_share_a_turn_and_the_first_is_the_users() -> None:
    request = asked([assistant("a"), user("b"), user("c"), assistant("d"), assistant("e "), user("f")])
    parsed = _accepted(request)
    assert [(turn["role"], len(turn["content"])) for turn in parsed["messages"]] == [
        ("user", 1), ("assistant", 1), ("user", 2), ("assistant", 2), ("user", 1),
    ]  # fmt: skip
    assert parsed["messages"][0]["content"] == [{"text": "(The conversation begins with the assistant.)"}]


def test_a_last_assistant_text_does_not_end_in_space_then_or_later() -> None:
    first = body([user("a"), assistant("b  ")])["messages"][1]["content"]
    later = body([user("a"), assistant("b  "), assistant("c"), user("d")])["messages"][1]["content"]
    assert (first, later[0]) == ([{"text": "b"}], {"text": "b"})


def test_a_model_without_prefill_is_named_in_the_ledger() -> None:
    request = asked([user("a"), assistant("b")], model="us.anthropic.claude-sonnet-4-6")
    assert ("messages[1]", "rewritten") in _reasons(request)


# ---- media


def test_documents_are_named_as_the_service_wants_and_none_twice() -> None:
    once = [
        user([TextBlock(text="x"), _document(title="Résumé & notes.pdf")]),
        user([TextBlock(text="y"), _document(title="résumé / Notes.pdf")]),
    ]
    again = [*once, user([TextBlock(text="z"), _document(), _document()])]
    names = [
        block["document"]["name"]
        for turn in _accepted(asked(again))["messages"]
        for block in turn["content"]
        if "document" in block
    ]
    assert names == ["R sum notes", "r sum Notes (2)", "document", "document (2)"]
    before = _accepted(asked(once))["messages"][0]["content"]
    assert _accepted(asked(again))["messages"][0]["content"][: len(before)] == before
    assert _reasons(asked(once)) == [("messages[0].content[1]", "rewritten"), ("messages[1].content[1]", "rewritten")]


def test_a_document_alone_gets_a_text_beside_it() -> None:
    request = asked([user([_document()])])
    assert _accepted(request)["messages"][0]["content"][1] == {"text": "(See the document.)"}
    assert _reasons(request) == [("messages[0]", "rewritten")]


def test_media_in_amazon_s3_go_by_their_place() -> None:
    place = MediaSource(kind="file_id", data="s3://bucket/a/film.mp4")
    request = asked([user([TextBlock(text="see"), VideoBlock(source=place)])], model=NOVA)
    assert _accepted(request)["messages"][0]["content"][1] == {
        "video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://bucket/a/film.mp4"}}}
    }


def test_what_has_no_form_is_in_the_ledger() -> None:
    other = MediaSource(kind="file_id", data="file-1")
    sound = AudioBlock(source=MediaSource(kind="base64", data="SUQz"), media_type="audio/mpeg", transcript="hm")
    request = asked(
        [user([TextBlock(text="see"), ImageBlock(source=other, media_type="image/png"), sound])], model="x.unknown"
    )
    assert _reasons(request) == [("messages[0].content[1]", "dropped"), ("messages[0].content[2]", "rewritten")]


# ---- tools


def test_a_history_with_calls_brings_its_tools() -> None:
    request = asked([user("q"), answer(CALLS[0]), tool_result(CALLS[0], "r"), user("n")])
    bare = {"name": "read_file", "inputSchema": {"json": {"type": "object", "properties": {}}}}
    assert _accepted(request)["toolConfig"] == {"tools": [{"toolSpec": bare}]}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", {"auto": {}}), ("required", {"any": {}}), (ToolChoice("read_file"), {"tool": {"name": "read_file"}})],
)
def test_the_choice_of_a_tool(choice: Any, sent: dict[str, Any]) -> None:
    assert _accepted(asked([user("q")], [READ], tool_choice=choice))["toolConfig"]["toolChoice"] == sent


def test_what_cannot_be_forbidden_is_in_the_ledger() -> None:
    request = asked([user("q")], [READ], tool_choice="none", parallel_tool_calls=False)
    assert "toolChoice" not in _accepted(request)["toolConfig"]
    assert {loss.path for loss in request.losses} == {"options.tool_choice", "options.parallel_tool_calls"}


def test_a_forced_tool_where_the_model_refuses_it() -> None:
    request = asked([user("q")], [READ], model="us.anthropic.claude-opus-5-5", tool_choice=ToolChoice("read_file"))
    assert "toolChoice" not in _accepted(request)["toolConfig"]
    assert _reasons(request) == [("options.tool_choice", "rewritten")]


def test_an_error_is_told_to_claude_and_nova_only() -> None:
    history = [user("q"), answer(CALLS[0]), tool_result(CALLS[0], "broken", is_error=True)]
    results = [asked(history, [READ], model=model) for model in (CLAUDE, NOVA, LLAMA)]
    found = [_accepted(request)["messages"][2]["content"][0]["toolResult"].get("status") for request in results]
    assert found == ["error", "error", None]
    assert ("messages[2].content[0]", "rewritten") in _reasons(results[2])


def test_tools_of_the_service_stand_behind_the_declared_ones() -> None:
    own = {"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}}
    parsed = _accepted(asked([user("q")], [READ], model=NOVA_2, provider_options=own, tool_choice="auto"))
    assert [next(iter(tool)) for tool in parsed["toolConfig"]["tools"]] == ["toolSpec", "systemTool"]
    assert parsed["toolConfig"]["toolChoice"] == {"auto": {}}


def test_provider_options_are_laid_over_single_members() -> None:
    extra = {"inferenceConfig": {"topP": 0.1}, "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"}}
    parsed = _accepted(asked([user("q")], max_tokens=7, provider_options=extra))
    assert parsed["inferenceConfig"] == {"maxTokens": 7, "topP": 0.1}
    assert parsed["guardrailConfig"]["guardrailIdentifier"] == "g"


# ---- caching


def test_cache_points_stand_behind_what_they_cache() -> None:
    tool = ToolDefinition(
        name="look", description="", input_schema={"type": "object"}, side_effects=SideEffects.READ, cache=HOUR
    )
    history = [
        Message(role=Role.SYSTEM, content=(TextBlock(text="rules", cache=HOUR),)),
        user([TextBlock(text="long", cache=HINT), TextBlock(text="go")]),
        answer(CALLS[0]),
        tool_result(CALLS[0], [TextBlock(text="r", cache=HINT)]),
    ]
    parsed = _accepted(asked(history, [READ, tool]))
    point, hour = {"cachePoint": {"type": "default"}}, {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert parsed["toolConfig"]["tools"][2] == hour
    assert parsed["system"] == [{"text": "rules"}, hour]
    assert parsed["messages"][0]["content"] == [{"text": "long"}, point, {"text": "go"}]
    assert parsed["messages"][2]["content"][1:] == [point]


def test_at_most_four_points_and_no_longer_time_behind_a_shorter_one() -> None:
    hints = [HINT, HINT, HINT, HOUR, HINT]
    request = asked([user([TextBlock(text=str(n), cache=hint) for n, hint in enumerate(hints)])])
    content = _accepted(request)["messages"][0]["content"]
    assert [next(iter(block)) for block in content].count("cachePoint") == 4
    assert all("ttl" not in block.get("cachePoint", {}) for block in content)
    assert _reasons(request) == [("messages[0].content[0]", "dropped"), ("messages[0].content[3]", "rewritten")]


def test_nova_caches_no_tools_and_has_no_times() -> None:
    tool = ToolDefinition(
        name="look", description="", input_schema={"type": "object"}, side_effects=SideEffects.READ, cache=HINT
    )
    request = asked([user([TextBlock(text="long", cache=HOUR)])], [tool], model=NOVA)
    parsed = _accepted(request)
    assert len(parsed["toolConfig"]["tools"]) == 1
    assert parsed["messages"][0]["content"][1] == {"cachePoint": {"type": "default"}}
    assert _reasons(request) == [("tools[0]", "dropped"), ("messages[0].content[0]", "rewritten")]


# ---- reasoning and fields of the models


@pytest.mark.parametrize(
    ("model", "options", "fields", "output"),
    [
        (
            CLAUDE,
            {"thinking": True, "max_tokens": 4096},
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            None,
        ),
        (CLAUDE, {"thinking": False}, {"thinking": {"type": "disabled"}}, None),
        (
            "us.anthropic.claude-opus-5",
            {"thinking": True, "effort": "xhigh"},
            {"thinking": {"type": "adaptive", "display": "summarized"}},
            {"effort": "xhigh"},
        ),
        (NOVA_2, {"effort": "max"}, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}, None),
        (NOVA_2, {"thinking": False}, {"reasoningConfig": {"type": "disabled"}}, None),
        (GPT_OSS, {"effort": "minimal"}, {"reasoning_effort": "low"}, None),
        (QWEN, {"thinking": True}, {"reasoning_config": "medium"}, None),
        (LLAMA, {"thinking": True}, None, None),
        (NOVA, {"top_k": 5}, {"inferenceConfig": {"topK": 5}}, None),
        (CLAUDE, {"top_k": 5}, {"top_k": 5}, None),
        (LLAMA, {"top_k": 5}, None, None),
    ],
)
def test_each_maker_is_told_in_its_own_words(model: str, options: Any, fields: Any, output: Any) -> None:
    request = asked([user("q")], model=model, **options)
    parsed = _accepted(request)
    assert (parsed.get("additionalModelRequestFields"), parsed.get("outputConfig")) == (fields, output)
    assert bool(request.losses) == (fields is None or options.get("effort") in ("max", "minimal"))


def test_a_profile_of_an_application_says_no_maker() -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
    request = asked([user("q")], model=arn, thinking=True)
    assert _reasons(request) == [("options.thinking", "dropped")]
    assert capabilities_of(arn).assumed


def test_a_model_is_found_under_every_name_it_has() -> None:
    names = (
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0",
    )
    assert {plain_name(name) for name in names} == {"anthropic.claude-sonnet-4-5-20250929"}
    assert len({model_of(name) for name in names}) == 1
    assert BEDROCK.model("us.anthropic.claude-sonnet-4-6") is not None
    regional, worldwide = model_of("us.amazon.nova-2-lite-v1:0"), model_of("global.amazon.nova-2-lite-v1:0")
    assert regional is not None
    assert worldwide is not None
    assert str(regional.prices[0].input_per_mtok_usd) == "0.33"
    assert str(worldwide.prices[0].input_per_mtok_usd) == "0.3"


# ---- back and forth


def test_own_blocks_go_back_as_they_came() -> None:
    content = [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "YWJj"}},
        {"text": "see: "},
        {"citationsContent": {"content": [{"text": "it"}], "citations": [{"location": {"web": {"url": "https://x"}}}]}},
        {"toolUse": {"toolUseId": "s1", "name": "nova_grounding", "input": {"q": 1}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "s1", "type": "nova_grounding_result", "status": "success", "content": []}},
        {"toolUse": {"toolUseId": "t1", "name": "read_file", "input": {"b": 1, "a": [None, 0.5]}}},
    ]
    own = read({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use"})
    request = asked([user("q"), own, tool_result(own.tool_calls[0], "r")], [READ], thinking=True)
    sent = json.loads(request.body)["messages"][1]["content"]
    assert (json.dumps(sent), request.losses) == (json.dumps(content), ())


def test_sources_without_a_text_are_read_and_not_sent_back() -> None:
    """Web grounding gives them behind the text they belong to (seen)."""
    content = [
        {"text": "It is 4.0."},
        {"citationsContent": {"citations": [{"location": {"web": {"url": "https://x"}}}]}},
    ]
    own = read({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"})
    request = asked([user("q"), own, user("n")])
    assert own.content[1] == TextBlock(text="", citations=content[1]["citationsContent"]["citations"])
    assert json.loads(request.body)["messages"][1]["content"] == content[:1]
    assert _reasons(request) == [("messages[1].content[1]", "dropped")]
    again = streamed(
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "It is 4.0."}}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        frame(
            "contentBlockDelta",
            {"contentBlockIndex": 1, "delta": {"citation": {"location": {"web": {"url": "https://x"}}}}},
        ),
        frame("contentBlockStop", {"contentBlockIndex": 1}),
        frame("messageStop", {"stopReason": "end_turn"}),
    )
    assert again.content == own.content


def test_reasoning_without_a_signature_stays_here() -> None:
    own = streamed(
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "secret plan"}}}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        frame("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "hi"}}),
        frame("messageStop", {"stopReason": "end_turn"}),
        model=NOVA_2,
    )
    request = asked([user("q"), own, user("n")], model=NOVA_2)
    assert b"secret plan" not in request.body
    assert _reasons(request) == [("messages[1].content[0]", "dropped")]


def test_what_comes_in_pieces_is_put_together() -> None:
    image = [b"\x89PNG", b"\r\n\x1a\n"]
    found = streamed(
        frame("contentBlockStart", {"contentBlockIndex": 0, "start": {"image": {"format": "png"}}}),
        *(
            frame(
                "contentBlockDelta",
                {
                    "contentBlockIndex": 0,
                    "delta": {"image": {"source": {"bytes": base64.b64encode(piece).decode()}}},
                },
            )
            for piece in image
        ),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        frame("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolResult": {"toolUseId": "s", "type": "t"}}}),
        frame("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolResult": [{"text": "a"}]}}),
        frame("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolResult": [{"text": "b"}, {"json": {}}]}}),
        frame("contentBlockStop", {"contentBlockIndex": 1}),
        frame("contentBlockDelta", {"contentBlockIndex": 7, "delta": {"novelty": {"x": 1}}}),
        frame("messageStop", {"stopReason": "end_turn"}),
    )
    picture, result, novelty = found.content
    assert isinstance(picture, ImageBlock)
    assert base64.b64decode(picture.source.data) == b"".join(image)
    assert isinstance(result, OpaqueBlock)
    assert result.data["toolResult"]["content"] == [{"text": "ab"}, {"json": {}}]
    assert isinstance(novelty, OpaqueBlock)
    assert novelty.kind == "novelty"


def test_counting_asks_for_what_is_counted() -> None:
    request = asked([system("s"), user("q")], [READ], max_tokens=5, temperature=0.0)
    made = auxiliary_request("count_tokens", {"request": request})
    assert made is not None
    assert made.path == "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/count-tokens"
    assert set(json.loads(made.body)["input"]["converse"]) == {"messages", "system", "toolConfig"}
    report = ParamValidator().validate(
        {**json.loads(made.body), "modelId": "m"}, SERVICE.operation_model("CountTokens").input_shape
    )
    assert not report.has_errors()
