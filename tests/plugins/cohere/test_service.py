"""How the service is reached, what else it is asked, and which of its endpoints are known and not read."""

from __future__ import annotations

import json

import pytest

from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, WireRequest, WireResponse
from interlingua_cli.replay.exchange import match_host
from tests.plugins.cohere.wire import COHERE

REQUEST = WireRequest(path="/v2/chat", body=b"", api="chat-v2")


def test_the_key_is_where_the_sdk_looks_for_it_or_given() -> None:
    sdk = COHERE.connection(ConnectionSettings(environ={"CO_API_KEY": "none-real", "COHERE_API_KEY": "other"}))
    usual = COHERE.connection(ConnectionSettings(environ={"COHERE_API_KEY": "none-real"}))
    given = COHERE.connection(ConnectionSettings(api_key="given", environ={"CO_API_KEY": "none-real"}))
    without = COHERE.connection(ConnectionSettings())

    assert sdk.auth(REQUEST) == usual.auth(REQUEST) == {"authorization": "Bearer none-real"}
    assert given.auth(REQUEST) == {"authorization": "Bearer given"}
    assert (without.has_key, without.auth(REQUEST)) == (False, {})


@pytest.mark.parametrize("given", ["https://proxy.example", "https://proxy.example/", "https://proxy.example/v2"])
def test_the_address_may_be_another(given: str) -> None:
    assert COHERE.connection(ConnectionSettings(base_url=given)).base_url == "https://proxy.example"
    assert COHERE.connection(ConnectionSettings(environ={"CO_API_URL": given})).base_url == "https://proxy.example"


def test_the_project_has_a_header() -> None:
    made = COHERE.connection(ConnectionSettings(options={"client_name": "mine"}))

    assert dict(made.headers) == {"x-client-name": "mine"}


@pytest.mark.parametrize(
    ("path", "read"),
    [("/v2/chat", True), ("/v1/chat", False), ("/v1/generate", False), ("/v2/embed", False), ("/v2/rerank", False)],
)
def test_endpoints_known_and_read(path: str, read: bool) -> None:
    connection = COHERE.connection(ConnectionSettings())
    found = connection.find_endpoint(path)

    assert found is not None
    assert found.read is read
    assert match_host(connection.hosts, "api.cohere.com")
    assert connection.find_endpoint("/v1/models") is None


def test_the_live_list_and_tokens_of_a_text() -> None:
    """Bodies of https://docs.cohere.com/reference/list-models and https://docs.cohere.com/reference/tokenize."""
    models = COHERE.auxiliary_request("models", {})
    tokens = COHERE.auxiliary_request("tokenize", {"model": "command-a-03-2025", "text": "tokenize me! :D"})
    listed = b'{"models":[{"name":"command-a-03-2025","endpoints":["chat"],"context_length":288000}]}'
    counted = b'{"tokens":[10002,2261,2012,8,2792,43],"token_strings":["token","ize"," me","!"," :","D"]}'

    assert (models.method, models.path.partition("?")[0]) == ("GET", "/v1/models")
    assert COHERE.from_wire_auxiliary("models", WireResponse(body=listed)) == ["command-a-03-2025"]
    assert (tokens.method, tokens.path) == ("POST", "/v1/tokenize")
    assert json.loads(tokens.body) == {"text": "tokenize me! :D", "model": "command-a-03-2025"}
    assert COHERE.from_wire_auxiliary("tokenize", WireResponse(body=counted)) == 6
    with pytest.raises(CapabilityError):  # a whole request cannot be counted
        COHERE.auxiliary_request("count_tokens", {"request": REQUEST})
