"""What a caller can ask on this wire, and what it says when it cannot."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua.errors import CapabilityError
from interlingua.plugins import estimate_tokens
from interlingua.types.blocks import DocumentBlock, ImageBlock, MediaSource, TextBlock
from interlingua.types.factories import user
from interlingua.types.options import RequestOptions, ToolChoice
from tests.plugins.cohere.wire import COHERE, MODEL, asked, body
from tests.support.adapter import READ

REASONING, VISION, OLDER = "command-a-reasoning-08-2025", "command-a-vision-07-2025", "command-r-08-2024"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
DOCUMENT = DocumentBlock(source=MediaSource(kind="base64", data="b25l"), media_type="text/plain")


def test_options_have_the_names_of_the_api() -> None:
    sent = body([user("q")], max_tokens=5, temperature=0, top_p=0.5, top_k=7, seed=0, stop="x", stream=True)

    assert {name: sent[name] for name in sent.keys() - {"model", "messages"}} == {
        "max_tokens": 5,
        "temperature": 0,
        "p": 0.5,
        "k": 7,
        "seed": 0,
        "stop_sequences": ["x"],
        "stream": True,
    }


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"top_p": 1.0}, "p", 0.99),
        ({"top_p": 0}, "p", 0.01),
        ({"top_k": 1000}, "k", 500),
        ({"stop": tuple("abcdefg")}, "stop_sequences", list("abcde")),
    ],
)
def test_what_lies_outside_the_limits_is_moved_with_a_row(options: dict[str, Any], field: str, value: Any) -> None:
    request = asked([user("q")], **options)

    assert body([user("q")], **options)[field] == value
    (loss,) = request.losses
    assert (loss.path, loss.verdict) == (f"options.{next(iter(options))}", "rewritten")


@pytest.mark.parametrize(
    ("options", "thinking", "rows"),
    [
        ({}, None, []),
        ({"thinking": True}, {"type": "enabled"}, []),
        ({"thinking": False}, {"type": "disabled"}, []),
        ({"effort": "none"}, {"type": "disabled"}, []),
        ({"effort": "low"}, {"type": "enabled"}, ["options.effort"]),
        ({"thinking_budget": 100}, {"type": "enabled", "token_budget": 100}, []),
        ({"thinking_budget": 0}, {"type": "disabled"}, []),
        ({"thinking": False, "thinking_budget": 9}, {"type": "disabled"}, ["options.thinking_budget"]),
    ],
)
def test_thinking(options: dict[str, Any], thinking: Any, rows: list[str]) -> None:
    request = asked([user("q")], model=REASONING, **options)

    assert body([user("q")], model=REASONING, **options).get("thinking") == thinking
    assert [loss.path for loss in request.losses] == rows


def test_a_model_that_does_not_reason_is_not_asked_to() -> None:
    assert "thinking" not in body([user("q")], thinking=False)
    assert not asked([user("q")], thinking=False).losses
    request = asked([user("q")], thinking=True, thinking_budget=9)
    assert b"thinking" not in request.body
    assert [(loss.path, loss.verdict) for loss in request.losses] == [
        ("options.thinking", "dropped"),
        ("options.thinking_budget", "dropped"),
    ]


def test_tools_can_be_forced_and_forbidden_and_a_named_one_is_sent_alone() -> None:
    assert body([user("q")], [READ], tool_choice="required")["tool_choice"] == "REQUIRED"
    assert body([user("q")], [READ], tool_choice="none")["tool_choice"] == "NONE"
    assert "tool_choice" not in body([user("q")], [READ], tool_choice="auto")
    request = asked([user("q")], [attrs.evolve(READ, name="other"), READ], tool_choice=ToolChoice("read_file"))
    sent = json.loads(request.body)
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["read_file"]
    assert sent["tool_choice"] == "REQUIRED"
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.tool_choice", "rewritten")]


def test_older_models_have_no_choice() -> None:
    """https://docs.cohere.com/reference/chat: `tool_choice` is compatible with Command R7B and newer models."""
    assert "tools" not in body([user("q")], [READ], model=OLDER, tool_choice="none")
    request = asked([user("q")], [READ], model=OLDER, tool_choice="required")
    assert b"tool_choice" not in request.body
    assert b"Answer with a call of this tool" in request.body
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.tool_choice", "rewritten")]


def test_a_schema_stands_alone() -> None:
    """https://docs.cohere.com/reference/chat: not supported in combination with `documents` or `tools`."""
    form = {"type": "json_object", "json_schema": SCHEMA}
    assert body([user("q")], response_schema=SCHEMA)["response_format"] == form
    with pytest.raises(CapabilityError, match="tools"):
        asked([user("q")], [READ], response_schema=SCHEMA)
    with pytest.raises(CapabilityError, match="documents"):
        asked([user([TextBlock(text="q"), DOCUMENT])], response_schema=SCHEMA)


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "string"}}, {"type": "string"}, {}])
def test_the_root_of_a_schema_is_an_object(schema: dict[str, Any]) -> None:
    """https://docs.cohere.com/v2/docs/structured-outputs: the top level's `type` must be `object`."""
    with pytest.raises(CapabilityError, match="object"):
        asked([user("q")], response_schema=schema)


def test_what_has_no_place_is_in_the_ledger() -> None:
    losses = asked([user("q")], user_id="u", parallel_tool_calls=False).losses

    assert {loss.path for loss in losses} == {"options.user_id", "options.parallel_tool_calls"}


def test_provider_options_come_last() -> None:
    extra = {"safety_mode": "STRICT", "citation_options": {"mode": "OFF"}, "seed": 2}
    sent = body([user("q")], seed=1, provider_options=extra)

    assert {name: sent[name] for name in extra} == extra


def test_images_are_for_models_that_see() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="aGk="), media_type="image/png")
    question = [user([TextBlock(text="what?"), image])]
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}

    assert body(question, model=VISION)["messages"][0]["content"][1] == part
    (loss,) = asked(question).losses
    assert (loss.path, loss.block_type, loss.verdict) == ("messages[0].content[1]", "image", "dropped")


@pytest.mark.parametrize(("detail", "sent", "rows"), [("low", "low", 0), ("original", None, 1), (None, None, 0)])
def test_an_image_says_how_finely_it_is_seen(detail: str | None, sent: str | None, rows: int) -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="aGk="), media_type="image/png", detail=detail)
    question = [user([image])]

    assert body(question, model=VISION)["messages"][0]["content"][0]["image_url"].get("detail") == sent
    assert len(asked(question, model=VISION).losses) == rows


def test_what_models_have() -> None:
    listed, unlisted = COHERE.capabilities(MODEL), COHERE.capabilities("command-next")

    assert (listed.max_context_tokens, listed.max_output_tokens, listed.assumed) == (256_000, 8_000, False)
    assert unlisted.assumed
    assert unlisted.supports_images
    assert not COHERE.capabilities(OLDER).supports_tool_choice


def test_the_estimate_counts_no_image_bytes() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="aGk=" * 10_000), media_type="image/png")
    options = RequestOptions(model=VISION)

    plain = estimate_tokens(COHERE, [user("q")], [], options)
    assert 900 < estimate_tokens(COHERE, [user([TextBlock(text="q"), image])], [], options) - plain < 1100
