"""Profiles: what holds for some models of a preset only, in the shipped presets and in a user's own.

The expected values are the services' own words: docs.x.ai (guides reasoning, image understanding), the types of
groq 1.7.0, WIRE.md, Reasoning.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import PluginError
from interlingua.plugins import WireRequest, build_request
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock
from interlingua.types.factories import user
from interlingua.types.options import RequestOptions
from interlingua_cli.lint import lint_request
from tests.plugins.chat_completions.support import preset, provider
from tests.support.adapter import READ

PICTURE = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")


def _asked(key: str, model: str, **options: Any) -> tuple[dict[str, Any], WireRequest]:
    request = build_request(provider(key), [user("x")], [READ], RequestOptions(model=model, **options))
    return json.loads(request.body), request


@pytest.mark.parametrize(
    ("key", "model", "asked", "sent"),
    [
        ("xai", "grok-3-mini", "medium", "low"),
        ("xai", "grok-3-mini-fast-latest", "xhigh", "high"),
        ("xai", "grok-4.3", "none", "none"),
        ("xai", "grok-4.3-latest", "medium", "medium"),
        ("xai", "grok-4.5", "medium", "medium"),
        ("xai", "grok-4.6", "none", "low"),
        ("xai", "grok-4.20-multi-agent-0309", "xhigh", "xhigh"),
        ("xai", "grok-of-tomorrow", "high", "high"),
        ("groq", "openai/gpt-oss-120b", "none", "low"),
        ("groq", "openai/gpt-oss-20b", "medium", "medium"),
        ("groq", "qwen/qwen3.8-27b", "high", "high"),
        ("groq", "qwen/qwen3.8-27b", "minimal", "low"),
        ("groq", "qwen/qwen3-32b", "none", "none"),
        ("cerebras", "gpt-oss-120b", "max", "high"),
        ("cerebras", "gpt-oss-120b", "none", "low"),
        ("cerebras", "zai-glm-4.7", "none", "none"),
        ("deepseek", "deepseek-v4-flash", "low", "low"),
        ("deepseek", "deepseek-v4-pro", "max", "max"),
        ("deepseek", "deepseek-reasoner", "none", "low"),
        ("moonshot", "kimi-k3", "medium", "low"),
        ("moonshot", "kimi-k3", "none", "low"),
        ("moonshot", "kimi-k3.1-pro", "xhigh", "high"),
    ],
)
def test_an_effort_is_one_that_the_model_takes(key: str, model: str, asked: str, sent: str) -> None:
    body, request = _asked(key, model, effort=asked)

    assert body["reasoning_effort"] == sent
    assert [loss.path for loss in request.losses] == ([] if asked == sent else ["options.effort"])


@pytest.mark.parametrize(
    ("key", "model"),
    [
        ("xai", "grok-code-fast-1"), ("xai", "grok-build-0.1"), ("xai", "grok-2-1212"), ("xai", "grok-2-vision-1212"),
        ("xai", "grok-3"), ("xai", "grok-3-fast-beta"), ("xai", "grok-4"), ("xai", "grok-4-0709"),
        ("xai", "grok-4-fast-reasoning"), ("xai", "grok-4-1-fast"), ("xai", "grok-4-fast-non-reasoning"),
        ("xai", "grok-4.20-0309-reasoning"), ("xai", "grok-4.20-0309-non-reasoning"),
        ("groq", "qwen/qwen3-32b"), ("groq", "llama-3.3-70b-versatile"), ("groq", "moonshotai/kimi-k2-instruct"),
        ("groq", "meta-llama/llama-4-scout-17b-16e-instruct"), ("cerebras", "llama3.1-8b"), ("cerebras", "zai-glm-4.7"),
        ("moonshot", "kimi-k2.6"),
    ],
)  # fmt: skip
def test_a_model_without_efforts_is_sent_none(key: str, model: str) -> None:
    body, request = _asked(key, model, effort="low")

    assert "reasoning_effort" not in body
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.effort", "dropped")]
    assert not lint_request(provider(key), request)


@pytest.mark.parametrize(
    ("key", "model", "off"),
    [
        ("groq", "qwen/qwen3-32b", {"reasoning_effort": "none"}), ("xai", "grok-4.3", {"reasoning_effort": "none"}),
        ("deepseek", "deepseek-v4-flash", {"thinking": {"type": "disabled"}}),
        ("deepseek", "deepseek-chat", {"thinking": {"type": "disabled"}}),
        ("moonshot", "kimi-k2.6", {"thinking": {"type": "disabled"}}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("options", [{"thinking": False}, {"effort": "none"}], ids=["thinking", "effort"])
def test_reasoning_is_switched_off_where_it_can_be(
    key: str, model: str, off: dict[str, Any], options: dict[str, Any]
) -> None:
    body, request = _asked(key, model, **options)

    assert {name: body[name] for name in ("reasoning_effort", "thinking") if name in body} == off
    assert not request.losses


@pytest.mark.parametrize(
    ("key", "model", "least", "verdict"),
    [("groq", "openai/gpt-oss-20b", "low", "rewritten"), ("xai", "grok-4.5", "low", "rewritten"),
     ("groq", "llama-3.1-8b-instant", None, "dropped"), ("moonshot", "kimi-k2.7-code", None, "dropped")],
)  # fmt: skip
def test_a_model_that_always_thinks_is_told_to_think_least(
    key: str, model: str, least: str | None, verdict: str
) -> None:
    body, request = _asked(key, model, thinking=False)

    assert body.get("reasoning_effort") == least
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.thinking", verdict)]


def test_an_effort_beside_thinking_switched_off_is_lost_aloud() -> None:
    body, request = _asked("deepseek", "deepseek-v4-pro", thinking=False, effort="max")

    assert body["thinking"] == {"type": "disabled"}
    assert "reasoning_effort" not in body
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.effort", "dropped")]


@pytest.mark.parametrize(
    ("model", "takes"),
    [("grok-3", True), ("grok-4-fast-non-reasoning", True), ("grok-3-mini", False), ("grok-4-0709", False)],
)
def test_stop_sequences_go_to_models_that_do_not_reason(model: str, takes: bool) -> None:
    body, request = _asked("xai", model, stop=["END"])

    assert ("stop" in body) is takes
    assert bool(request.losses) is not takes


@pytest.mark.parametrize(("model", "sent"), [("grok-4-fast-non-reasoning", ["a", "b", "c", "d"]), ("grok-4", None)])
def test_stop_sequences_of_grok_models(model: str, sent: list[str] | None) -> None:
    body, request = _asked("xai", model, stop=["a", "b", "c", "d", "e"])

    assert body.get("stop") == sent
    assert [loss.path for loss in request.losses] == ["options.stop"]
    assert lint_request(provider("xai"), request) == ()


@pytest.mark.parametrize(
    ("key", "model", "sees"),
    [
        ("groq", "meta-llama/llama-4-maverick-17b-128e-instruct", True), ("groq", "a-model-of-tomorrow", True),
        ("groq", "openai/gpt-oss-120b", False), ("groq", "llama-3.3-70b-versatile", False),
        ("xai", "grok-2-vision-latest", True), ("xai", "grok-4.5", True), ("xai", "grok-4-1-fast-reasoning", True),
        ("xai", "grok-3", False), ("xai", "grok-code-fast-1", False),
    ],
)  # fmt: skip
def test_pictures_go_to_models_that_see(key: str, model: str, sees: bool) -> None:
    shown = [user([TextBlock(text="What is this?"), PICTURE])]
    request = build_request(provider(key), shown, [], RequestOptions(model=model))

    assert (b"image_url" in request.body) is sees
    assert bool(request.losses) is not sees
    assert provider(key).capabilities(model).supports_images is sees


def test_a_model_that_always_thinks_is_not_forced_to_call() -> None:
    assert "tool_choice" not in _asked("deepseek", "deepseek-reasoner", tool_choice="required")[0]
    assert _asked("deepseek", "deepseek-chat", tool_choice="required")[0]["tool_choice"] == "required"


def test_a_users_preset_has_profiles_too() -> None:
    target = preset(
        dialect={"effort_shape": "field", "seed_field": "random_seed"},
        capabilities={"supports_images": True},
        profiles=[
            {"models": "small-*", "dialect": {"effort_shape": "none"}, "capabilities": {"supports_images": False}},
            {"models": ["small-1", "*"], "dialect": {"effort_values": ["high"]}},
        ],
    )

    def sent(model: str) -> dict[str, Any]:
        request = build_request(target, [user("x")], [], RequestOptions(model=model, effort="low", seed=1))
        body: dict[str, Any] = json.loads(request.body)
        return body

    assert "reasoning_effort" not in sent("small-1")  # the first that names it holds
    assert sent("large")["reasoning_effort"] == "high"
    assert sent("small-1")["random_seed"] == sent("large")["random_seed"] == 1  # laid over the preset's own
    assert not target.capabilities("small-1").supports_images
    assert target.capabilities("large").supports_images


@pytest.mark.parametrize(("profiles", "named"), [
    ({"models": ["a"]}, "profiles must be a list of tables"),
    ([{"dialect": {}}], r"profiles\[0\].models must name at least one model"),
    ([{"models": ["a"]}, {"model": "b"}], r"profiles\[1\].model is not a field"),
    ([{"models": ["a"], "dialect": {"stopp": True}}], r"profiles\[0\].dialect.stopp is not a field"),
    ([{"models": ["a"], "dialect": {"stop": "no"}}], r"profiles\[0\].dialect.stop must be a bool"),
    ([{"models": ["a"], "capabilities": {"magic": True}}], r"profiles\[0\].capabilities.magic is not a field"),
])  # fmt: skip
def test_mistakes_in_profiles_name_their_place(profiles: Any, named: str) -> None:
    with pytest.raises(PluginError, match="preset 'acme': " + named):
        preset("acme", profiles=profiles)
