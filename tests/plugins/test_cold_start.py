"""A client is made without the wire formats of its provider: they are loaded with the first request."""

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
client.to_wire("hi", max_tokens=9)
print(json.dumps([before, sorted(sys.modules)]))
"""


@pytest.mark.parametrize("model", ["anthropic:claude-9", "openai:gpt-9", "google:gemini-9", "ollama:qwen-9"])
def test_a_client_loads_the_plugin_alone_and_a_request_the_rest(model: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE, model], capture_output=True, text=True, check=True)
    before, after = map(set, json.loads(done.stdout))
    package = f"interlingua_{model.partition(':')[0]}"

    assert {name for name in before if name.startswith(package)} == {package, f"{package}.plugin"}
    assert "interlingua_chat_completions" not in before
    assert {"interlingua.types.messages", "interlingua.request.project", "interlingua.plugins.wire"} <= after
    assert not {name for name in after if name.startswith(package) and name.endswith(".stream")}  # no stream was asked
