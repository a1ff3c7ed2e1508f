"""What a request's options, cache hints and media become on this wire, and how the service is reached."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua.plugins import ConnectionSettings
from interlingua.types.blocks import (
    CacheHint,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua.types.factories import user
from interlingua.types.messages import Message, Role
from interlingua.types.options import ToolChoice
from tests.plugins.openrouter.asking import MODEL, OPENROUTER, asked, body
from tests.support.adapter import READ

SHORT, LONG = CacheHint(ttl="5m"), CacheHint(ttl="1h")


def said(text: str, cache: CacheHint | None = None) -> Message:
    return user([TextBlock(text=text, cache=cache)])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"temperature": 0, "top_p": 0, "seed": 0, "top_k": 0}, {"temperature": 0, "top_p": 0, "seed": 0, "top_k": 0}),
        ({"effort": "high"}, {"reasoning": {"effort": "high"}}),
        ({"thinking": False}, {"reasoning": {"enabled": False}}),
        ({"thinking_budget": 2000}, {"reasoning": {"max_tokens": 2000}}),
        ({"user_id": "u"}, {"user": "u"}),
        ({"stop": ("a", "b")}, {"stop": ["a", "b"]}),
        ({"stream": True}, {"stream": True}),
        ({"provider_options": {"provider": {"order": ["x"]}, "models": ["m"], "plugins": [{"id": "web"}]}},
         {"provider": {"order": ["x"]}, "models": ["m"], "plugins": [{"id": "web"}]}),
    ],
)  # fmt: skip
def test_case_32_options(options: dict[str, Any], expected: dict[str, Any]) -> None:
    request = asked([user("x")], **options)

    assert {**body([user("x")], **options)} == {
        "model": MODEL, "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], **expected,
    }  # fmt: skip
    assert request.losses == ()


def test_tools_and_forcing() -> None:
    sent = body(
        [user("x")], [READ], model="anthropic/claude-opus-4.8", tool_choice=ToolChoice("read_file"),
        parallel_tool_calls=False,
    )  # fmt: skip

    assert sent["tool_choice"] == {"type": "function", "function": {"name": "read_file"}}
    assert sent["parallel_tool_calls"] is False
    assert body([user("x")], [READ], tool_choice="none")["tool_choice"] == "none"


def test_case_33_cache_hints_become_cache_control() -> None:
    call = ToolUseBlock(id="tu_1", name="read_file", input={})
    result = Message(role=Role.TOOL, content=(ToolResultBlock(tool_use_id="tu_1", content="r", cache=SHORT),))
    history = [
        Message(role=Role.SYSTEM, content=(TextBlock(text="s", cache=LONG),)),
        said("q", CacheHint()), Message(role=Role.ASSISTANT, content=(call,)), result,
    ]  # fmt: skip
    sent = body(history, [attrs.evolve(READ, cache=LONG)])

    assert sent["tools"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    parts = [turn["content"][0] for turn in sent["messages"] if isinstance(turn["content"], list)]
    assert [part.get("cache_control") for part in parts] == [
        {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "5m"},
    ]  # fmt: skip


def test_case_33_four_markers_at_most_and_none_of_1h_after_5m() -> None:
    request = asked([said(str(number), LONG if number == 4 else SHORT) for number in range(6)])

    assert request.body.count(b"cache_control") == 4
    assert b'"ttl":"1h"' not in request.body
    assert [loss.verdict for loss in request.losses] == ["dropped", "dropped", "rewritten"]


def test_a_result_that_says_nothing_takes_no_marker_and_leaves_it_to_others() -> None:
    """A marker needs a part, and Claude refuses blank ones, whoever sends them (anthropic/WIRE.md, Content blocks)."""
    calls = [ToolUseBlock(id=f"tu_{at}", name="read_file", input={}) for at in range(5)]
    results = [
        Message(role=Role.TOOL, content=(ToolResultBlock(tool_use_id=call.id, content=said, cache=SHORT),))
        for call, said in zip(calls, ["a", "b", "c", "d", " "], strict=True)
    ]
    request = asked([user("q"), Message(role=Role.ASSISTANT, content=tuple(calls)), *results])

    assert request.body.count(b"cache_control") == 4
    assert json.loads(request.body)["messages"][-1] == {"role": "tool", "tool_call_id": "tu_4", "content": " "}
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("messages[6].content[0]", "rewritten")]


def test_the_prefix_stays_when_a_marker_moves() -> None:
    first, second = said("a", SHORT), said("b", SHORT)
    marker = b',"cache_control":{"type":"ephemeral","ttl":"5m"}'
    before, after = asked([first]).body, asked([attrs.evolve(first), second]).body

    assert after.replace(marker, b"").startswith(before.replace(marker, b"")[:-2])


def test_files_and_images() -> None:
    pdf = DocumentBlock(source=MediaSource(kind="url", data="https://example.com/a.pdf"), media_type="application/pdf")
    png = ImageBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="image/png")
    parts = body([user([pdf, png])])["messages"][0]["content"]

    assert parts[0] == {"type": "file", "file": {"filename": "document", "file_data": "https://example.com/a.pdf"}}
    assert parts[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_case_21_a_model_without_eyes_gets_no_image() -> None:
    png = ImageBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="image/png")
    request = asked([user([TextBlock(text="x"), png])], model="deepseek/deepseek-v3.2")

    assert b"image_url" not in request.body
    assert request.losses


def test_a_variant_has_its_models_limits_and_no_price_of_its_own() -> None:
    listed = {model.id for model in OPENROUTER.models()}
    capabilities = OPENROUTER.capabilities("anthropic/claude-opus-5.5:nitro", None)

    assert "anthropic/claude-opus-5.5:nitro" not in listed
    assert (capabilities.max_context_tokens, capabilities.assumed) == (1_000_000, False)
    assert OPENROUTER.capabilities("nobody/knows", None).assumed


def test_connection() -> None:
    plain = OPENROUTER.connection(ConnectionSettings(environ={"OPENROUTER_API_KEY": "k"}))
    named = OPENROUTER.connection(
        ConnectionSettings(api_key="k", options={"referer": "https://example.com", "title": "T"})
    )

    assert plain.base_url == "https://openrouter.ai/api/v1"
    assert plain.auth(asked([user("x")])) == {"authorization": "Bearer k"}
    assert plain.headers == {}
    assert named.headers == {"http-referer": "https://example.com", "x-openrouter-title": "T"}
    assert not OPENROUTER.connection(ConnectionSettings()).has_key
