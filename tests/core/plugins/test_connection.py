"""What a connection says about recorded traffic, the state of an own message, and formats of other distributions."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from interlingua._plugins.connection import Endpoint
from interlingua.errors import PluginError
from interlingua.plugins import Connection, ConnectionSettings, RequestContext, WireChunk, format_provider, replay_state
from interlingua.types import Origin, StopReason, user
from interlingua_cli.replay.exchange import match_host

CONNECTION = Connection(
    base_url="https://talk.eu.acme.test",
    hosts=("talk.*.acme.test", "acme.cloud.test", "localhost:9999"),
    endpoints={"talk": r"/model/(?P<model>[^/]+)/talk(-stream)?", "chat": r"/chat/completions$"},
    unread_endpoints={"old": r"/model/(?P<model>[^/]+)/invoke", "embed": "/embed"},
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/model/acme.v1%3A0/talk", Endpoint("talk", "acme.v1:0")),
        ("/model/arn%3Aaws%3Ax%2Fy/talk-stream/", Endpoint("talk", "arn:aws:x/y")),
        ("/v1/chat/completions", Endpoint("chat", None)),
        ("/model/m/invoke", Endpoint("old", "m", read=False)),
        ("/v2/embed", Endpoint("embed", None, read=False)),
        ("/model/m/talks", None),
        ("", None),
    ],
)
def test_an_endpoint_names_api_and_model(path: str, found: Endpoint | None) -> None:
    assert CONNECTION.find_endpoint(path) == found


@pytest.mark.parametrize(
    ("host", "claimed"),
    [
        ("talk.eu-west-1.acme.test", 16),
        ("vpc.talk.eu.acme.test", 16),
        ("talk.acme.test", 0),
        ("acme.cloud.test", 15),
        ("eu-acme.cloud.test", 15),
        ("xacme.cloud.test", 0),
        ("acme-cloud-test", 0),
        ("localhost:9999", 14),
        ("localhost", 0),
    ],
)
def test_a_host_is_claimed_by_name_or_pattern(host: str, claimed: int) -> None:
    assert match_host(CONNECTION.hosts, host) == claimed


def test_a_chunk_is_a_pair_whether_or_not_it_has_headers() -> None:
    bare, headed = WireChunk("e", b"d"), WireChunk("e", b"d", {":type": "exception"})
    name, data = headed

    assert (bare, name, data) == (("e", b"d"), "e", b"d")
    assert (bare.headers, headed.headers, bare == headed) == ({}, {":type": "exception"}, True)


def test_own_replay_gives_what_the_context_was_given() -> None:
    context = RequestContext(origin=Origin("acme", "talk", "m"))
    message = context.message([], stop_reason=StopReason.END_TURN, replay={"plan": [1]}, trace={"x": 1})

    assert replay_state(message) == replay_state(message, "talk") == {"plan": [1]}
    assert replay_state(message, "chat") == {}
    assert replay_state(context.message([], stop_reason=StopReason.END_TURN)) == {}
    assert replay_state(user("hi")) == {}


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group="interlingua.formats")


def test_a_format_is_found_by_name_and_made_for_the_hosts_key(monkeypatch: pytest.MonkeyPatch) -> None:
    made = types.ModuleType("made_formats")
    vars(made)["for_host"] = lambda key, settings: (key, dict(settings))
    monkeypatch.setitem(sys.modules, "made_formats", made)
    entries = [entry("other", "nowhere:x"), entry("acme", "made_formats:for_host")]

    assert format_provider("acme", "cloud", entries=entries) == ("cloud", {})
    with pytest.raises(PluginError, match=r"'cloud' needs the format 'none'.*pip install interlingua-none"):
        format_provider("none", "cloud", entries=entries)


@pytest.mark.parametrize("name", ["anthropic", "google", "openai"])
def test_a_shipped_format_has_the_hooks_of_a_provider_and_takes_fields_of_a_preset(name: str) -> None:
    made: Any = format_provider(name, "cloud")

    for hook in ("to_wire", "from_wire_response", "stream_response", "from_wire_error", "capabilities"):
        assert callable(getattr(made, hook))
    address = "http://127.0.0.1:9"
    described: Any = format_provider(name, "cloud", {"base_url": address})
    assert described.connection(ConnectionSettings()).base_url == address
    with pytest.raises(PluginError, match="base_urls"):
        format_provider(name, "cloud", {"base_urls": address})
