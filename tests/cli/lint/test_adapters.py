"""What the linters once found in our own adapters stays right, and is in the ledger; each rule cites its source."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua._json import loads
from interlingua.errors import CapabilityError
from interlingua.plugins import Registry, WireRequest, build_request
from interlingua.types import Message, Origin, RequestOptions, TextBlock, user
from interlingua_cli.lint import lint_request
from interlingua_contract.scenes import READ, assistant_turn


def _written(key: str, model: str, messages: list[Message], *, tools: bool = False, **options: Any) -> WireRequest:
    provider = Registry().provider(key)
    request = build_request(provider, messages, [READ] if tools else [], RequestOptions(model=model, **options))
    assert lint_request(provider, request) == ()
    return request


def test_blank_text_with_a_signature_is_dropped_where_text_is_not_signed() -> None:
    own = Origin("anthropic", "messages", "claude-sonnet-4-5")
    signed = assistant_turn([TextBlock(text="", signature="c2ln"), TextBlock(text="Said.")], own)
    request = _written("anthropic", "claude-sonnet-4-5", [user("q"), signed, user("And?")])

    assert loads(request.body)["messages"][1]["content"] == [{"type": "text", "text": "Said."}]
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("messages[1].content[0]", "dropped")]


def test_an_effort_that_the_model_lacks_is_sent_as_the_next_lower() -> None:
    request = _written("anthropic", "claude-opus-4-6", [user("q")], effort="xhigh")

    assert loads(request.body)["output_config"] == {"effort": "high"}
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.effort", "rewritten")]


def test_a_chat_variant_takes_no_effort() -> None:
    request = _written("openai", "gpt-5-chat-latest", [user("q")], effort="low")

    assert "reasoning" not in loads(request.body)
    assert [loss.path for loss in request.losses] == ["options.effort"]


@pytest.mark.parametrize(("key", "model"), [("openai", "o3-deep-research"), ("groq", "meta-llama/llama-guard-4-12b")])
def test_models_without_functions_are_sent_none(key: str, model: str) -> None:
    request = _written(key, model, [user("q")], tools=True)

    assert "tools" not in loads(request.body)
    assert [(loss.block_type, loss.verdict) for loss in request.losses] == [("tool", "dropped")]


def test_a_model_that_cannot_be_forced_refuses_to_be() -> None:
    try:
        request = _written("anthropic", "claude-mythos-preview", [user("q")], tools=True, tool_choice="required")
    except CapabilityError:
        return
    assert loads(request.body).get("tool_choice", {"type": "auto"})["type"] == "auto"  # the default
    assert [loss.path for loss in request.losses] == ["options.tool_choice"]
