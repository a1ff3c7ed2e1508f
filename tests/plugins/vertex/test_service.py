"""Hosts, addresses, tokens, API keys, bodies of Claude, counts, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from google import genai
from google.oauth2.credentials import Credentials

from interlingua.errors import AuthenticationError, CallerError, CapabilityError, PluginError
from interlingua.plugins import Connection, ConnectionSettings, WireRequest, WireResponse, build_request
from interlingua.types.factories import user
from interlingua.types.options import RequestOptions
from interlingua_cli.replay.exchange import match_host
from interlingua_vertex import plugin
from tests.support import driving
from tests.support.hosts import address, signed

VERTEX = driving.provider("vertex")
GEMINI, CLAUDE = "gemini-2.5-flash", "claude-sonnet-4-5@20250929"
PROJECT = {"GOOGLE_CLOUD_PROJECT": "p"}


def asked(model: str, **options: Any) -> WireRequest:
    return build_request(VERTEX, [user("q")], [], RequestOptions(model=model, **options))


def connected(environ: Mapping[str, str] = PROJECT, *, key: str | None = None, **options: Any) -> Connection:
    return VERTEX.connection(ConnectionSettings(environ=environ, api_key=key, options=options))


@pytest.mark.parametrize(
    ("location", "host"),
    [
        (None, "aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
        ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
    ],
)
def test_each_location_has_its_host(location: str | None, host: str) -> None:
    by_option = connected(location=location)
    by_environ = connected({**PROJECT, **({"CLOUD_ML_REGION": location} if location else {})})
    place = f"projects/p/locations/{location or 'global'}/publishers"

    for connection in (by_option, by_environ):
        assert match_host(connection.hosts, host)
        assert address(connection, asked(GEMINI)) == (
            f"https://{host}/v1beta1/{place}/google/models/{GEMINI}:generateContent"
        )
        assert address(connection, asked(CLAUDE)) == f"https://{host}/v1/{place}/anthropic/models/{CLAUDE}:rawPredict"


def test_interactions_are_where_the_sdk_asks_for_them() -> None:
    heard: list[httpx.Request] = []
    body = {"object": "interaction", "id": "v1_x", "status": "in_progress", "steps": []}

    def reply(request: httpx.Request) -> httpx.Response:
        heard.append(request)
        return httpx.Response(200, json=body)

    http: Any = {"httpx_client": httpx.Client(transport=httpx.MockTransport(reply))}
    token: Any = Credentials
    sdk: Any = genai.Client(vertexai=True, project="p", location="us", credentials=token("t"), http_options=http)
    sdk.interactions.create(model=GEMINI, input=[{"type": "user_input", "content": []}], store=False)
    sdk.interactions.get("v1_x")
    sdk.interactions.cancel("v1_x")

    connection = connected(location="us")
    whole, stream = (asked(GEMINI, api="interactions", stream=stream) for stream in (False, True))
    context = driving.context("vertex", "interactions", GEMINI)
    later = VERTEX.follow_up(WireResponse(body=json.dumps(body).encode()), context)
    assert later is not None
    assert later.cancel is not None
    sent = [address(connection, request) for request in (whole, later.request, later.cancel)]
    assert sent == [str(request.url).partition("?")[0] for request in heard]
    assert json.loads(whole.body).keys() == json.loads(heard[0].content).keys()
    assert (address(connection, stream), json.loads(stream.body)["stream"]) == (sent[0], True)
    with pytest.raises(CapabilityError, match="count_tokens"):
        VERTEX.auxiliary_request("count_tokens", {"request": whole})


def test_streams_versions_and_tuned_models() -> None:
    connection = connected(version="v1")

    assert address(connection, asked(GEMINI, stream=True)).endswith(f"{GEMINI}:streamGenerateContent?alt=sse")
    assert address(connection, asked(GEMINI)).startswith("https://aiplatform.googleapis.com/v1/projects/")
    assert address(connection, asked(CLAUDE, stream=True)).endswith(f"{CLAUDE}:streamRawPredict")
    tuned = address(connected(location="us-central1"), asked("endpoints/42"))
    assert tuned.endswith("/v1beta1/projects/p/locations/us-central1/endpoints/42:generateContent")


def test_claudes_body_has_a_version_and_no_model() -> None:
    plain = json.loads(asked(CLAUDE, stream=True).body)
    named = json.loads(asked(CLAUDE, provider_options={"model": "other"}).body)
    dated = asked(CLAUDE, temperature=0.5, provider_options={"betas": ["b"]})
    chosen = asked(CLAUDE, provider_options={"anthropic_version": "2026-10-21"})

    assert plain["anthropic_version"] == named["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in plain
    assert "model" not in named
    assert plain["stream"] is True
    assert json.loads(dated.body)["temperature"] == 0.5
    assert "anthropic-version" not in dated.headers
    assert dated.headers["anthropic-beta"] == "b"
    assert json.loads(chosen.body)["anthropic_version"] == "2026-10-21"


def test_claude_takes_images_as_bytes_only() -> None:
    claude = VERTEX.capabilities(CLAUDE)

    assert not claude.supports_image_urls
    assert claude.max_image_bytes == 3_932_160  # 5 MB in base64
    assert VERTEX.capabilities(CLAUDE) is claude
    assert not claude.assumed


async def _later() -> str:
    return "t"


class _Credentials:
    """As google-auth's are: they end at a time without a zone."""

    def __init__(self) -> None:
        self.token, self.expiry, self.valid, self.refreshed = "t", datetime(2026, 11, 22), True, 0

    def refresh(self, _request: object) -> None:
        self.refreshed += 1
        self.token = f"t{self.refreshed}"


@pytest.mark.parametrize("given", ["t", lambda: "t", _later, _Credentials()])
def test_a_token_is_sent_as_a_bearer(given: Any) -> None:
    for request in (asked(GEMINI), asked(CLAUDE)):
        connection = connected(credentials=given)

        assert connection.has_key
        assert signed(connection, request) == {"authorization": "Bearer t"}


def test_credentials_are_refreshed_where_they_ran_out_or_were_refused() -> None:
    credentials = _Credentials()
    connection = connected(credentials=credentials)
    assert connection.credentials is not None

    assert connection.credentials(None).expires_at == datetime(2026, 11, 22, tzinfo=UTC)
    assert signed(connection, asked(GEMINI), AuthenticationError("refused")) == {"authorization": "Bearer t1"}
    credentials.valid = False
    assert signed(connection, asked(GEMINI)) == {"authorization": "Bearer t2"}


def test_a_key_is_a_token_with_a_project_and_an_api_key_without() -> None:
    express = connected({"GOOGLE_API_KEY": "e"})

    assert signed(connected(key="k"), asked(GEMINI)) == {"authorization": "Bearer k"}
    assert signed(connected({}, key="k"), asked(GEMINI)) == {"x-goog-api-key": "k"}
    assert signed(express, asked(GEMINI)) == {"x-goog-api-key": "e"}
    assert address(express, asked(GEMINI)) == (
        f"https://aiplatform.googleapis.com/v1beta1/publishers/google/models/{GEMINI}:generateContent"
    )
    assert not connected({}).has_key


def test_a_project_that_is_missing_is_said_before_anything_is_sent() -> None:
    connection = connected({}, credentials=lambda: "t")
    assert connection.credentials is not None

    with pytest.raises(CallerError, match="GOOGLE_CLOUD_PROJECT"):
        connection.credentials(None)


def test_who_is_billed_is_a_header() -> None:
    assert connected(user_project="q").headers == {"x-goog-user-project": "q"}


@pytest.mark.parametrize(
    ("model", "api"), [(CLAUDE, "generate"), (CLAUDE, "interactions"), (GEMINI, "messages"), (GEMINI, "chat")]
)
def test_a_model_is_not_asked_on_an_api_it_does_not_have(model: str, api: str) -> None:
    with pytest.raises(CapabilityError, match="no API"):
        VERTEX.capabilities(model, RequestOptions(model=model, api=api))


def test_the_catalogues_prices_are_the_makers() -> None:
    for name, maker in ((CLAUDE, "anthropic"), (GEMINI, "google")):
        found, own = VERTEX.model(name), driving.provider(maker).model(name)
        assert found is not None
        assert own is not None
        assert found.prices == own.prices


def test_both_apis_count_tokens() -> None:
    gemini = VERTEX.auxiliary_request("count_tokens", {"request": asked(GEMINI, stream=True)})
    claude = VERTEX.auxiliary_request("count_tokens", {"request": asked(CLAUDE, stream=True)})

    assert gemini.path == f"/publishers/google/models/{GEMINI}:countTokens"
    assert json.loads(gemini.body).keys() == {"contents"}
    assert claude.path == "/publishers/anthropic/models/count-tokens:rawPredict"
    assert json.loads(claude.body).keys() == {"anthropic_version", "model", "messages"}
    assert json.loads(claude.body)["model"] == CLAUDE
    assert VERTEX.from_wire_auxiliary("count_tokens", WireResponse(body=b'{"totalTokens":7}')) == 7
    assert VERTEX.from_wire_auxiliary("count_tokens", WireResponse(body=b'{"input_tokens":8}')) == 8


def test_a_missing_format_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, key: str) -> Any:
        raise PluginError(f"{key!r} needs the format {name!r}, which is not installed: pip install interlingua-{name}")

    remembered = (plugin._format, plugin.models, plugin.capabilities_of)
    for function in remembered:
        function.cache_clear()
    monkeypatch.setattr(plugin, "format_provider", missing)
    try:
        assert plugin.models() == ()
        with pytest.raises(PluginError, match="pip install interlingua-google"):
            plugin.plugin.capabilities(GEMINI, None)
    finally:
        for function in remembered:
            function.cache_clear()
