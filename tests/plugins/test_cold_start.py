"""A client is made without the wire formats of its provider: they are loaded with the first request (issue 2, Show 6).

pytest comes in.
"""

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
LATER = {f"interlingua.{room}" for room in ("blocks", "catalogue", "events", "messages", "projection", "tools", "wire")}


@pytest.mark.parametrize("model", ["anthropic:claude-9", "openai:gpt-9", "google:gemini-9", "ollama:qwen-9"])
def test_a_client_loads_the_plugin_alone_and_a_request_the_rest(model: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE, model], capture_output=True, text=True, check=True)
    before, after = map(set, json.loads(done.stdout))
    package = f"interlingua_{model.partition(':')[0]}"

    assert {name for name in before if name.startswith(package)} == {package, f"{package}.plugin"}
    assert not LATER & before
    assert {"interlingua.types.messages", "interlingua.request.project", "interlingua.plugins.wire"} <= after
    assert "interlingua.types.events" not in after  # a request that is no stream
