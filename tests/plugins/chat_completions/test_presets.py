"""Presets: shipped ones load alone and say how to reach their service; a user's mistakes are named."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from interlingua.errors import PluginError
from interlingua.plugins import ConnectionSettings, WireRequest, build_request
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.factories import assistant, tool_result, user
from interlingua.types.options import RequestOptions
from tests.plugins.chat_completions.support import preset, provider, request

SHIPPED = ["baseten", "cerebras", "compatible", "deepseek", "fireworks", "groq", "huggingface", "llamacpp", "lmstudio",
           "meta", "moonshot", "nebius", "novita", "nvidia", "perplexity", "qwen", "sambanova", "together", "vllm",
           "xai"]  # fmt: skip


@pytest.mark.parametrize("key", SHIPPED)
def test_shipped_presets(key: str) -> None:
    connection = provider(key).connection(ConnectionSettings())
    assert connection.base_url.startswith("http")
    assert connection.endpoints == {"chat": r"/chat/completions$"}
    local = connection.base_url.startswith("http://127.0.0.1")
    assert connection.has_key is local
    capabilities = provider(key).capabilities("unheard-of")
    assert capabilities.assumed
    assert provider(key).capabilities("unheard-of") is capabilities


def test_key_and_base_url() -> None:
    environ = {"GROQ_API_KEY": "from-env"}
    connection = provider("groq").connection(ConnectionSettings(environ=environ, base_url="http://127.0.0.1:9/v1/"))
    empty = WireRequest(path="/chat/completions", body=b"", api="chat")
    assert connection.base_url == "http://127.0.0.1:9/v1"
    assert connection.auth(empty) == {"authorization": "Bearer from-env"}
    assert provider("llamacpp").connection(ConnectionSettings()).auth(empty) == {}


def test_a_preset_is_loaded_alone() -> None:
    code = "from interlingua_chat_completions import presets; presets.groq; print(sorted(set(vars(presets)) & set(%r)))"
    done = subprocess.run([sys.executable, "-c", code % SHIPPED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['groq']"


def test_a_preset_of_ones_own() -> None:
    target = preset("acme", key_env="ACME_KEY", models=[{"id": "a-1", "max_context_tokens": 9}],
                 dialect={"reasoning_fields": ["thoughts"]}, capabilities={"supports_images": True})  # fmt: skip
    known = target.capabilities("a-1")
    assert (known.max_context_tokens, known.supports_images, known.assumed) == (9, True, False)
    assert not target.connection(ConnectionSettings()).has_key


@pytest.mark.parametrize(("key", "said"), [("deepseek", ""), ("moonshot", " ")])
def test_a_call_turn_without_reasoning_says_so_where_that_is_asked(key: str, said: str) -> None:
    """WIRE.md, DeepSeek, for the first; the second refuses an empty text as missing (public reports, tried there)."""
    asked = ToolUseBlock(id="tu_01KAKDPZ000000000000000001", name="f", input={})
    history = [user("x"), assistant([asked]), tool_result(asked, "one")]
    thinking, _ = request(history, provider(key))
    not_thinking, _ = request(history, provider(key), thinking=False)
    assert thinking["messages"][1]["reasoning_content"] == said
    assert "reasoning_content" not in not_thinking["messages"][1]


@pytest.mark.parametrize(
    ("options", "members"),
    [
        ({"thinking": True}, {"enable_thinking": True}),
        ({"thinking": False}, {"enable_thinking": False}),
        ({"effort": "none"}, {"enable_thinking": False}),
        ({"thinking": True, "thinking_budget": 2048}, {"enable_thinking": True, "thinking_budget": 2048}),
        ({}, {}),
    ],
)
def test_thinking_that_a_flag_switches(options: dict[str, Any], members: dict[str, Any]) -> None:
    """https://www.alibabacloud.com/help/en/model-studio/deep-thinking."""
    body, wire = request([user("x")], provider("qwen"), **options)
    never = RequestOptions(model="qwen3-coder-plus", **options)
    other = json.loads(build_request(provider("qwen"), [user("x")], [], never).body)

    assert {name: body[name] for name in ("enable_thinking", "thinking_budget") if name in body} == members
    assert not wire.losses
    assert "enable_thinking" not in other


@pytest.mark.parametrize(("table", "named"), [
    ({"base_url": None}, "base_url is missing"),
    ({"base_url": "acme.example"}, "base_url must start with"),
    ({"bas_url": "x"}, "bas_url is not a field"),
    ({"hosts": 3}, "hosts must be a list of strings"),
    ({"key_required": "yes"}, "key_required must be a bool"),
    ({"dialect": "x"}, "dialect must be a table"),
    ({"dialect": {"sistem_role": "x"}}, "dialect.sistem_role is not a field"),
    ({"dialect": {"structured": "yaml"}}, "dialect.structured must be one of"),
    ({"dialect": {"sampling": 1}}, "dialect.sampling must be a bool"),
    ({"dialect": {"tool_choices": ["maybe"]}}, "dialect.tool_choices may only contain"),
    ({"capabilities": {"supports_magic": True}}, "capabilities.supports_magic is not a field"),
    ({"models": "groq.json"}, "models must be a list"),
    ({"models": [{"id": 3}]}, "models wrong in a catalogue: expected str, got int .at /models/0/id"),
])  # fmt: skip
def test_mistakes_name_the_preset_and_the_field(table: dict[str, Any], named: str) -> None:
    with pytest.raises(PluginError, match="preset 'acme': " + named):
        preset("acme", **table)
