"""Options to body fields (WIRE.md, Request; case 32)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import build_request
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock
from interlingua.types.factories import user
from interlingua.types.messages import Message
from interlingua.types.options import RequestOptions, ToolChoice
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.plugins.chat_completions.support import preset, provider, request

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
TOOL = ToolDefinition(name="f", description="d", input_schema=SCHEMA, side_effects=SideEffects.NONE)


def sent(target: Any = None, **options: Any) -> dict[str, Any]:
    return request([user("x")], target, tools=[TOOL], **options)[0]


def test_case_32_falsy_options_are_values() -> None:
    body = sent(temperature=0, top_p=0, seed=0)
    assert (body["temperature"], body["top_p"], body["seed"]) == (0, 0, 0)


def test_length_goes_by_the_name_the_service_knows() -> None:
    assert sent(max_tokens=5)["max_tokens"] == 5
    assert sent(provider("xai"), max_tokens=5)["max_completion_tokens"] == 5


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", "auto"), ("none", "none"), ("required", "required"),
        (ToolChoice("f"), {"type": "function", "function": {"name": "f"}}),
    ],
)  # fmt: skip
def test_tool_choice(choice: Any, wire: Any) -> None:
    assert sent(tool_choice=choice)["tool_choice"] == wire


def test_forcing_a_tool_where_that_cannot_be_said_is_demanded_in_its_description() -> None:
    target = preset(dialect={"tool_choices": ["auto"]})
    demanded = sent(target, tool_choice="required")
    assert "tool_choice" not in demanded
    assert "Answer with a call" in demanded["tools"][0]["function"]["description"]
    assert "tools" not in sent(target, tool_choice="none")


def test_answer_schema() -> None:
    form = sent(response_schema=SCHEMA, response_name="r")["response_format"]
    closed = {**SCHEMA, "additionalProperties": False}
    assert form == {"type": "json_schema", "json_schema": {"name": "r", "schema": closed, "strict": True}}
    with pytest.raises(CapabilityError, match="schema"):
        sent(provider("deepseek"), response_schema=SCHEMA)


@pytest.mark.parametrize(("key", "options", "field", "value"), [
    ("xai", {"effort": "xhigh"}, "reasoning_effort", "high"),
    ("groq", {"effort": "high"}, "reasoning_effort", "high"),
    ("groq", {"thinking": False}, "reasoning_effort", "none"),
    ("deepseek", {"thinking": True}, "thinking", {"type": "enabled"}),
    ("compatible", {"stop": ["a", "b"]}, "stop", ["a", "b"]),
    ("compatible", {"parallel_tool_calls": False}, "parallel_tool_calls", False),
    ("compatible", {"provider_options": {"prompt_cache_key": "k"}}, "prompt_cache_key", "k"),
    ("compatible", {"temperature": 1, "provider_options": {"temperature": 2}}, "temperature", 2),
])  # fmt: skip
def test_fields(key: str, options: dict[str, Any], field: str, value: Any) -> None:
    assert sent(provider(key), **options)[field] == value


@pytest.mark.parametrize("options", [
    {"top_k": 1}, {"user_id": "u"}, {"thinking_budget": 9}, {"seed": 1}, {"temperature": 1}, {"effort": "low"},
    {"thinking": True}, {"stop": "x"}, {"parallel_tool_calls": False},
])  # fmt: skip
def test_what_a_service_has_no_word_for_is_lost_aloud(options: dict[str, Any]) -> None:
    target = preset(dialect={"sampling": False, "stop": False, "stripped": ["seed"]})
    body, made = request([user("x")], target, tools=[TOOL], **options)
    (name,) = options
    assert [(loss.path, loss.block_type, loss.verdict) for loss in made.losses] == [
        (f"options.{name}", "option", "dropped")
    ]
    assert body.keys() == {"model", "messages", "tools"}


def test_values_out_of_range_are_moved_aloud() -> None:
    body, made = request([user("x")], preset(dialect={"temperature_range": [0.01, 0.99], "stop_limit": 1}),
                         temperature=1.5, stop=["a", "b"])  # fmt: skip
    assert (body["temperature"], body["stop"]) == (0.99, ["a"])
    assert [loss.verdict for loss in made.losses] == ["rewritten", "rewritten"]


def test_an_images_detail_is_a_word_of_the_service() -> None:
    """groq 1.7.0 and openai 3.54.0 have auto, low and high; OpenAI and OpenRouter also original."""
    source = MediaSource(kind="base64", data="iVBORw0KGgo=")
    wrong = user([TextBlock(text="See."), ImageBlock(source=source, media_type="image/png", detail="ultra")])
    large = user([TextBlock(text="See."), ImageBlock(source=source, media_type="image/png", detail="original")])

    def detail(key: str, message: Message, **options: Any) -> tuple[Any, list[str]]:
        made = build_request(Registry().provider(key), [message], [], RequestOptions(**options))
        body = json.loads(made.body)
        part = (body.get("messages") or body["input"])[0]["content"][1]
        return part.get("detail") or part["image_url"].get("detail"), [loss.path for loss in made.losses]

    lost = ["messages[0].content[1]"]
    assert detail("compatible", wrong, model="any") == (None, lost)
    assert detail("compatible", large, model="any") == (None, lost)
    assert detail("openai", wrong, model="gpt-5.2", api="chat") == (None, lost)
    assert detail("openai", wrong, model="gpt-5.2") == ("auto", lost)
    for key, model, api in (
        ("openai", "gpt-5.2", "chat"),
        ("openai", "gpt-5.2", None),
        ("openrouter", "any/any", None),
    ):
        assert detail(key, large, model=model, api=api) == ("original", [])


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize(("length", "sent"), [(128, True), (129, False)])
def test_a_users_id_that_is_too_long_is_left_out(api: str, length: int, sent: bool) -> None:
    """openai/WIRE.md, Chat request: `safety_identifier` has at most 128 characters."""
    options = RequestOptions(model="gpt-5.2", api=api, user_id="u" * length)
    made = build_request(Registry().provider("openai"), [user("x")], [], options)

    assert ("safety_identifier" in json.loads(made.body)) is sent
    assert [loss.path for loss in made.losses] == ([] if sent else ["options.user_id"])
