"""What a caller can ask on this wire, and what it says when it cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import CapabilityError
from interlingua.plugins import estimate_tokens
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.factories import user
from interlingua.types.messages import Message, MessageMetadata, Role
from interlingua.types.options import RequestOptions, ToolChoice
from tests.plugins.ollama.wire import MODEL, OLLAMA, answer, asked, body
from tests.support.adapter import READ


def test_stream_is_always_said() -> None:
    assert body([user("q")])["stream"] is False
    assert body([user("q")], stream=True)["stream"] is True


@pytest.mark.parametrize(
    ("options", "think"),
    [
        ({}, None),
        ({"thinking": True}, True),
        ({"thinking": False}, False),
        ({"effort": "none"}, False),
        ({"effort": "low"}, "low"),
        ({"effort": "minimal"}, "low"),
        ({"effort": "xhigh"}, "high"),
        ({"effort": "max", "thinking": True}, "max"),
        ({"model": "gpt-oss:20b", "thinking": True}, "medium"),
        ({"model": "gpt-oss:20b", "thinking": False}, "low"),
        ({"model": "gpt-oss:20b", "effort": "max"}, "high"),
    ],
)
def test_thinking(options: dict[str, Any], think: Any) -> None:
    assert body([user("q")], **options).get("think") == think


def test_a_level_that_does_not_exist_is_in_the_ledger() -> None:
    (loss,) = asked([user("q")], effort="xhigh").losses

    assert (loss.path, loss.verdict) == ("options.effort", "rewritten")


def test_a_schema_is_the_format() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}

    assert body([user("q")], response_schema=schema)["format"] == schema


def test_limits_and_stops_are_runtime_options() -> None:
    assert body([user("q")], max_tokens=5, stop="x")["options"] == {"num_predict": 5, "stop": ["x"]}


def test_provider_options_go_where_they_belong_and_last() -> None:
    extra = {"keep_alive": "5m", "truncate": True, "min_p": 0.1, "options": {"seed": 7}}
    sent = body([user("q")], seed=1, provider_options=extra)

    assert (sent["keep_alive"], sent["truncate"]) == ("5m", True)
    assert sent["options"] == {"seed": 7, "min_p": 0.1}


def test_no_tool_is_said_by_naming_none_and_a_demanded_call_in_words() -> None:
    assert "tools" not in body([user("q")], [READ], tool_choice="none")
    assert "tool_choice" not in body([user("q")], [READ], tool_choice="auto")
    for choice in ("required", ToolChoice("read_file")):
        request = asked([user("q")], [READ], tool_choice=choice)
        assert "Answer with a call of" in json.loads(request.body)["tools"][0]["function"]["description"]
        assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.tool_choice", "rewritten")]
        with pytest.raises(CapabilityError, match="there are no tools"):
            asked([user("q")], [], tool_choice=choice)


def test_what_has_no_place_is_in_the_ledger() -> None:
    losses = asked([user("q")], thinking_budget=9, user_id="u", parallel_tool_calls=False).losses

    assert {loss.path for loss in losses} == {
        "options.thinking_budget",
        "options.user_id",
        "options.parallel_tool_calls",
    }


def test_images_are_bare_base64_beside_the_text() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="aGk="), media_type="image/png")
    sent = body([user([TextBlock(text="what?"), image])])["messages"][0]

    assert sent == {"role": "user", "content": "what?", "images": ["aGk="]}


def test_an_image_url_that_nobody_fetched_is_in_the_ledger() -> None:
    image = ImageBlock(source=MediaSource(kind="url", data="https://example.com/a.png"))
    (loss,) = asked([user([TextBlock(text="what?"), image])]).losses

    assert (loss.path, loss.verdict) == ("messages[0].content[1]", "dropped")


def test_a_result_says_its_tools_name_even_if_the_block_does_not() -> None:
    own = answer(ToolUseBlock(id="a", name="read_file"))
    block = ToolResultBlock(tool_use_id="a", content="no such file", is_error=True)
    result = Message(role=Role.TOOL, content=(block,), metadata=MessageMetadata(parent_tool_use_id="a"))
    request = asked([user("q"), own, result])

    assert request.body.endswith(
        b'{"role":"tool","content":"Error: no such file","tool_name":"read_file","tool_call_id":"a"}],'
        b'"stream":false,"truncate":false}'
    )
    assert [loss.path for loss in request.losses] == ["messages[2].content[0]"]


def test_the_window_asked_for_is_the_window() -> None:
    plain = OLLAMA.capabilities(MODEL)
    wide = OLLAMA.capabilities(MODEL, RequestOptions(model=MODEL, provider_options={"num_ctx": 8192}))

    assert (plain.max_context_tokens, wide.max_context_tokens) == (0, 8192)
    assert plain.assumed


def test_the_estimate_counts_no_image_bytes() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="aGk=" * 10_000), media_type="image/png")

    assert 1000 < estimate_tokens(OLLAMA, [user([image])], [READ], RequestOptions(model=MODEL)) < 1100
