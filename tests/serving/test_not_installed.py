"""Without interlingua-serving every provider is found, sends and streams."""

from __future__ import annotations

import json
import subprocess
import sys

from interlingua.plugins import Registry
from tests.support import tree

SCRIPT = """
import json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "interlingua_serving":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())

from urllib.parse import urlsplit
from interlingua import user
from interlingua.errors import ProviderError
from interlingua.plugins import ConnectionSettings, Registry, WireResponse, build_request
from interlingua.types import RequestOptions
from interlingua_cli.cassettes import read_cassettes
from tests.support import driving, tree

found = {}
for provider in Registry().providers():
    key, done = provider.key, found.setdefault(provider.key, [])
    build_request(provider, [user("Hi.")], [], RequestOptions(model="m", max_tokens=9))
    done.append("written")
    for exchange in read_cassettes(tree.ROOT / "cassettes" / key):
        endpoint = provider.connection(ConnectionSettings()).find_endpoint(urlsplit(exchange.uri).path)
        kind = "failed" if not exchange.good else "streamed" if exchange.streamed else "whole"
        if kind in done or endpoint is None or not endpoint.read:
            continue
        context = driving.context(key, endpoint.api, "m")
        response = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
        try:
            if kind == "failed":
                provider.from_wire_error(response, context)
            elif kind == "whole":
                provider.from_wire_response(response, context)
            else:
                driving.streamed(provider, exchange.body, context)
        except ProviderError:  # recorded as it failed; another exchange shows the kind
            continue
        done.append(kind)
print(json.dumps(found))
"""


def test_a_provider_does_all_but_serve() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tree.ROOT, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == Registry().found().keys()
    for key, exchanges in found.items():
        assert {"written", "whole"} <= set(exchanges), key
        assert "streamed" in exchanges or key == "bedrock", key  # its frames are binary: their type is not read here
    served = {entry.name for entry in Registry().entry_points("interlingua.serving")}
    assert found.keys() >= served >= {"anthropic", "openai", "google", "ollama", "zai", "groq"}
