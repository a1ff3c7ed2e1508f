"""A client loads its own plugin and no other, and a wire format of several with the first request."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CODE = """
import json, sys
import interlingua
client = interlingua.Client(sys.argv[1], api_key="x", environ={})
before = sorted(sys.modules)
client.build_request("hi", max_tokens=9)
print(json.dumps([before, sorted(sys.modules)]))
"""
FORMAT = "interlingua_chat_completions"


def loaded(model: str) -> tuple[set[str], set[str]]:
    """Return the modules loaded when a client was made, and after its first request."""
    done = subprocess.run([sys.executable, "-c", CODE, model], capture_output=True, text=True, check=True)
    before, after = map(set, json.loads(done.stdout))
    return before, after


@pytest.mark.parametrize("model", ["anthropic:claude-9", "openai:gpt-9", "google:gemini-9", "ollama:qwen-9"])
def test_a_client_loads_its_own_plugin_alone(model: str) -> None:
    before, after = loaded(model)
    package = f"interlingua_{model.partition(':')[0]}"

    assert {name.partition(".")[0] for name in before if name.startswith("interlingua_")} == {package}
    assert {"interlingua.types.messages", "interlingua._request.project", "interlingua._plugins.wire"} <= after


@pytest.mark.parametrize("model", ["groq:llama-9", "mistral:mistral-9", "openai:gpt-9"])
def test_a_wire_format_is_loaded_with_the_first_request(model: str) -> None:
    before, after = loaded(model)
    wire = {f"{FORMAT}.{part}" for part in ("request", "messages", "response", "stream")}
    wire |= {f"interlingua_openai.{part}" for part in ("chat", "responses")}

    assert not wire & before
    assert wire & after
    assert not {f"{FORMAT}.stream", "interlingua_openai.responses.stream"} & after  # a request that is no stream
