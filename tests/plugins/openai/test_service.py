"""How the service is reached, and its auxiliary exchanges (WIRE.md, Connection)."""

from __future__ import annotations

import json

from interlingua.plugins import ConnectionSettings, WireRequest, WireResponse, build_request
from interlingua.types.messages import Message, Role
from interlingua.types.options import RequestOptions
from tests.plugins.openai.wire import PROVIDER


def test_host_auth_and_headers() -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_ORG_ID": "org"}
    made = PROVIDER.connection(ConnectionSettings(environ=environ, options={"project": "proj"}))
    assert made.base_url == "https://api.openai.com/v1"
    assert made.headers == {"openai-organization": "org", "openai-project": "proj"}
    assert made.auth(WireRequest(path="/responses", body=b"", api="responses")) == {"authorization": "Bearer k"}
    assert set(made.endpoints) == {"responses", "chat"}


def test_without_a_key_nothing_is_signed() -> None:
    assert not PROVIDER.connection(ConnectionSettings()).has_key
    local = PROVIDER.connection(ConnectionSettings(environ={"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1/"}))
    assert (local.has_key, local.base_url) == (True, "http://127.0.0.1:8080/v1")
    assert local.auth(WireRequest(path="/responses", body=b"", api="responses")) == {}


def test_token_count_and_model_list() -> None:
    options = RequestOptions(model="gpt-5.5", stream=True)
    request = build_request(PROVIDER, [Message(role=Role.USER, content="go")], [], options)
    made = PROVIDER.auxiliary_request("count_tokens", {"request": request})
    assert made is not None
    assert made.path == "/responses/input_tokens"
    assert set(json.loads(made.body)) == {"model", "input"}
    counted = WireResponse(body=b'{"object":"response.input_tokens","input_tokens":7}')
    assert PROVIDER.from_wire_auxiliary("count_tokens", counted) == 7
    listed = WireResponse(body=b'{"object":"list","data":[{"id":"gpt-5.5","object":"model"}]}')
    assert PROVIDER.from_wire_auxiliary("models", listed) == ["gpt-5.5"]
