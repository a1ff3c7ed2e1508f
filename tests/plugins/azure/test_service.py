"""Hosts, addresses, keys, tokens, deployments, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from interlingua._http.client import Client
from interlingua.errors import AuthenticationError, CallerError, CapabilityError, PluginError
from interlingua.plugins import Connection, ConnectionSettings, WireRequest, WireResponse, build_request
from interlingua.types.factories import user
from interlingua.types.options import RequestOptions
from interlingua_azure import plugin
from tests.support import driving
from tests.support.hosts import address, exchange_of, signed

AZURE = driving.provider("azure")
ENDPOINT = "https://r.openai.azure.com"
ENVIRON = {"AZURE_OPENAI_ENDPOINT": f"{ENDPOINT}/", "AZURE_OPENAI_API_KEY": "k"}
CLAUDE = "claude-sonnet-4-5"
CHAT = "gpt-4o-mini"


def asked(model: str, **options: Any) -> WireRequest:
    return build_request(AZURE, [user("q")], [], RequestOptions(model=model, **options))


def connected(environ: Mapping[str, str] = ENVIRON, *, key: str | None = None, **options: Any) -> Connection:
    return AZURE.connection(ConnectionSettings(environ=environ, api_key=key, options=options))


@pytest.mark.parametrize(
    ("request_", "version", "path"),
    [
        (asked(CHAT, api="chat"), None, "/openai/v1/chat/completions"),
        (asked(CHAT), None, "/openai/v1/responses"),
        (asked(CHAT, api="chat"), "v1", "/openai/v1/chat/completions"),
        (asked(CHAT), "preview", "/openai/v1/responses?api-version=preview"),
        (
            asked(CHAT, api="chat"),
            "2024-10-21",
            "/openai/deployments/gpt-4o-mini/chat/completions?api-version=2024-10-21",
        ),
        (
            asked("a b", api="chat"),
            "2024-10-21",
            "/openai/deployments/a%20b/chat/completions?api-version=2024-10-21",
        ),
        (asked(CHAT), "2025-03-01-preview", "/openai/responses?api-version=2025-03-01-preview"),
    ],
)
def test_the_address_of_each_api_and_version(request_: WireRequest, version: str | None, path: str) -> None:
    by_option = connected(**({"api_version": version} if version else {}))
    by_environ = connected({**ENVIRON, **({"OPENAI_API_VERSION": version} if version else {})})

    assert address(by_option, request_) == address(by_environ, request_) == f"{ENDPOINT}{path}"
    found = by_option.find_endpoint(path.partition("?")[0])
    assert found is not None
    assert found.api == request_.api


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        (ENVIRON, "https://r.services.ai.azure.com"),
        ({**ENVIRON, "ANTHROPIC_FOUNDRY_RESOURCE": "other"}, "https://other.services.ai.azure.com"),
        ({"ANTHROPIC_FOUNDRY_BASE_URL": "https://proxy.example/anthropic/"}, "https://proxy.example"),
    ],
)
def test_claude_is_asked_at_the_host_of_foundry(environ: Mapping[str, str], host: str) -> None:
    request = asked(CLAUDE)

    assert address(connected(environ), request) == f"{host}/anthropic/v1/messages"
    assert request.headers["anthropic-version"]
    assert request.api == "messages"


@pytest.mark.parametrize("given", ["", "/", "/openai", "/openai/v1/", "/anthropic", "/anthropic/v1"])
def test_an_endpoint_with_a_path_behind_it_is_the_same_resource(given: str) -> None:
    connection = connected({**ENVIRON, "AZURE_OPENAI_ENDPOINT": ENDPOINT + given})

    assert connection.base_url == ENDPOINT


def test_a_key_goes_where_each_api_reads_it() -> None:
    claude = {**ENVIRON, "ANTHROPIC_FOUNDRY_API_KEY": "c"}

    assert signed(connected(), asked(CHAT)) == {"api-key": "k"}
    assert signed(connected(), asked(CLAUDE)) == {"api-key": "k", "x-api-key": "k"}
    assert signed(connected(claude), asked(CHAT)) == {"api-key": "k"}
    assert signed(connected(claude), asked(CLAUDE)) == {"api-key": "c", "x-api-key": "c"}
    assert signed(connected(claude, key="g"), asked(CLAUDE)) == {"api-key": "g", "x-api-key": "g"}


class _Credential:
    """As azure-identity's are."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def get_token(self, scope: str) -> Any:
        self.scopes.append(scope)
        return SimpleNamespace(token="t", expires_on=1_790_000_000)


async def _later() -> str:
    return "t"


@pytest.mark.parametrize("given", ["t", lambda: "t", _later, _Credential()])
def test_a_token_is_sent_as_a_bearer(given: Any) -> None:
    for request in (asked(CHAT), asked(CLAUDE)):
        connection = connected(credentials=given)

        assert connection.has_key
        assert signed(connection, request) == {"authorization": "Bearer t"}


def test_a_credential_is_asked_for_the_scope_and_says_when_it_ends() -> None:
    credential = _Credential()
    for options in ({}, {"api_version": "2024-10-21"}, {"scope": "mine"}):
        source = connected(credentials=credential, **options).credentials
        assert source is not None
        assert source(None).expires_at == datetime.fromtimestamp(1_790_000_000, UTC)

    assert credential.scopes == [
        "https://ai.azure.com/.default",
        "https://cognitiveservices.azure.com/.default",
        "mine",
    ]


def test_a_source_that_gives_no_token_is_an_error() -> None:
    source = connected(credentials=lambda: None).credentials
    assert source is not None

    with pytest.raises(AuthenticationError, match="gave no token"):
        source(None)


def test_an_endpoint_that_is_missing_is_said_before_anything_is_sent() -> None:
    connection = connected({"AZURE_OPENAI_API_KEY": "k"})
    assert connection.credentials is not None

    with pytest.raises(CallerError, match="AZURE_OPENAI_ENDPOINT"):
        connection.credentials(None)
    assert not connected({}).has_key


def test_a_deployment_has_the_capabilities_of_its_model_and_its_own_name_on_the_wire() -> None:
    connection = {"deployments": {"team": "gpt-5-mini", "writer": CLAUDE}}
    team, writer = (asked(name, connection=connection) for name in ("team", "writer"))

    assert json.loads(team.body)["model"] == "team"
    assert (team.api, writer.api) == ("responses", "messages")
    assert json.loads(writer.body)["model"] == "writer"
    options = RequestOptions(model="team", connection=connection)
    assert AZURE.capabilities("team", options) == AZURE.capabilities("gpt-5-mini")
    dated = address(connected(api_version="2024-10-21"), asked("team", connection=connection, api="chat"))
    assert dated.startswith(f"{ENDPOINT}/openai/deployments/team/chat/completions")


@pytest.mark.parametrize(("model", "api"), [(CLAUDE, "chat"), (CLAUDE, "responses"), (CHAT, "messages"), (CHAT, "x")])
def test_a_model_is_not_asked_on_an_api_it_does_not_have(model: str, api: str) -> None:
    with pytest.raises(CapabilityError, match="no API"):
        AZURE.capabilities(model, RequestOptions(model=model, api=api))


def test_the_catalogues_prices_are_the_makers() -> None:
    for name, maker in ((CLAUDE, "anthropic"), ("gpt-5-mini", "openai")):
        found, own = AZURE.model(name), driving.provider(maker).model(name)
        assert found is not None
        assert own is not None
        assert found.prices == own.prices


def test_a_missing_format_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, key: str) -> Any:
        raise PluginError(f"{key!r} needs the format {name!r}, which is not installed: pip install interlingua-{name}")

    for remembered in (plugin._format, plugin.models, plugin._public_headers):
        remembered.cache_clear()
    monkeypatch.setattr(plugin, "format_provider", missing)
    try:
        assert plugin.models() == ()
        with pytest.raises(PluginError, match="pip install interlingua-anthropic"):
            plugin.plugin.capabilities(CLAUDE, None)
    finally:
        monkeypatch.undo()
        for remembered in (plugin._format, plugin.models, plugin._public_headers):
            remembered.cache_clear()


def test_the_live_list_and_the_count_of_claudes_tokens() -> None:
    listing = AZURE.auxiliary_request("models", {})
    counting = AZURE.auxiliary_request("count_tokens", {"request": asked(CLAUDE)})

    assert (listing.method, listing.path) == ("GET", "/openai/v1/models")
    assert AZURE.from_wire_auxiliary("models", WireResponse(body=b'{"data":[{"id":"gpt-4o"}]}')) == ["gpt-4o"]
    assert counting.path == "/anthropic/v1/messages/count_tokens"
    assert AZURE.from_wire_auxiliary("count_tokens", WireResponse(body=b'{"input_tokens":7}')) == 7
    with pytest.raises(CapabilityError):
        AZURE.auxiliary_request("count_tokens", {"request": asked(CHAT)})


@pytest.mark.parametrize("later", [False, True])
def test_a_refused_token_is_replaced_once(*, later: bool) -> None:
    seen: list[str] = []
    tokens = iter(["old", "new"])

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        body = exchange_of("azure", "chat_refusal").body
        return httpx.Response(200, content=body) if len(seen) > 1 else httpx.Response(401, json={"error": {}})

    async def give() -> str:
        return next(tokens)

    options = {"credentials": give if later else lambda: next(tokens)}
    settings = {"azure": {"base_url": ENDPOINT, "api": "chat", "options": options}}
    http = httpx.Client(transport=httpx.MockTransport(answer))
    with http, Client(f"azure:{CHAT}", http_client=http, environ={}, retry=0, settings=settings) as client:
        client.send("q")

    assert seen == ["Bearer old", "Bearer new"]
