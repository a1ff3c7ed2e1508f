"""Hosts, versions, keys, paths, and the exchanges besides the message."""

from __future__ import annotations

import json

import pytest

from interlingua.plugins import ConnectionSettings, WireRequest, WireResponse
from interlingua.types.factories import user
from tests.plugins.google.wire import GOOGLE, NEW, OLD, asked
from tests.support.adapter import READ

ANY = WireRequest(path="/x", body=b"", api="generate")


def test_the_first_key_wins_and_travels_in_a_header() -> None:
    both = GOOGLE.connection(ConnectionSettings(environ={"GEMINI_API_KEY": "b", "GOOGLE_API_KEY": "a"}))
    one = GOOGLE.connection(ConnectionSettings(environ={"GEMINI_API_KEY": "b"}))
    none = GOOGLE.connection(ConnectionSettings())

    assert both.auth(ANY) == {"x-goog-api-key": "a"}
    assert one.auth(ANY) == {"x-goog-api-key": "b"}
    assert (both.has_key, none.has_key, none.auth(ANY)) == (True, False, {})


@pytest.mark.parametrize(
    ("settings", "base"),
    [
        (ConnectionSettings(), "https://generativelanguage.googleapis.com/v1beta"),
        (ConnectionSettings(options={"version": "v1"}), "https://generativelanguage.googleapis.com/v1"),
        (ConnectionSettings(base_url="http://localhost:1/"), "http://localhost:1/v1beta"),
        (ConnectionSettings(base_url="http://localhost:1/v1"), "http://localhost:1/v1"),
    ],
)
def test_hosts_and_versions(settings: ConnectionSettings, base: str) -> None:
    assert GOOGLE.connection(settings).base_url == base


def test_the_path_names_model_and_method() -> None:
    assert asked([user("q")]).path == f"/models/{OLD}:generateContent"
    assert asked([user("q")], stream=True).path == f"/models/{OLD}:streamGenerateContent?alt=sse"
    assert asked([user("q")], model="tunedModels/x").path == "/tunedModels/x:generateContent"


def test_the_live_list_and_the_count() -> None:
    listing = GOOGLE.auxiliary_request("models", {})
    counting = GOOGLE.auxiliary_request("count_tokens", {"request": asked([user("q")], [READ], stream=True)})
    listed = b'{"models":[{"name":"models/gemini-2.5-flash"}]}'

    assert listing is not None
    assert (listing.method, listing.path) == ("GET", "/models?pageSize=1000")
    assert GOOGLE.from_wire_auxiliary("models", WireResponse(body=listed)) == ["gemini-2.5-flash"]
    assert counting is not None
    assert counting.path == f"/models/{OLD}:countTokens"
    asked_for = json.loads(counting.body)["generateContentRequest"]
    assert asked_for.keys() == {"model", "tools", "contents"}
    assert asked_for["model"] == f"models/{OLD}"
    assert GOOGLE.from_wire_auxiliary("count_tokens", WireResponse(body=b'{"totalTokens": 31}')) == 31


def test_capabilities_follow_the_generation() -> None:
    old, new, unknown = (GOOGLE.capabilities(name) for name in (OLD, NEW, "gemini-9-nova"))

    assert (old.supports_tool_result_images, new.supports_tool_result_images) == (False, True)
    assert (new.assumed, unknown.assumed, unknown.supports_tool_result_images) == (False, True, True)
    assert GOOGLE.capabilities(NEW) is new
