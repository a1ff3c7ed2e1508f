"""A model's name is data: nothing in it changes the address that a request goes to."""

from __future__ import annotations

from urllib.parse import unquote

import httpx
import pytest

from interlingua import Client
from interlingua.errors import CallerError, ServerError
from interlingua.plugins import HttpRequest
from interlingua.testing import MemoryTransport

OPTIONS: dict[str, dict[str, str]] = {
    "azure": {"api_version": "2024-10-21"},
    "bedrock": {},
    "google": {},
    "vertex": {"project": "p", "location": "global"},
}
CLIMBING = ["..", ".", "a/../../files/x", "gemini-2.5-flash/../models/gemini-2.5-pro", "models/.."]
AWKWARD = ["a?b=c", "a#b", "a%2e%2e/b", "a%2f..%2fb", "a b", "a;b", "a&b", "a\\..\\b", 'a"b', "é", "a@b", "a:b"]
UNSEEN = ["a\r\nx-evil: 1", "a\nb", "a\tb", "a\x00b", "a\u202eb", "a\u200bb"]


def _refuse(_request: HttpRequest) -> bytes:
    raise ServerError("no answer", retryable=False)


def _url(provider: str, model: str) -> httpx.URL:
    settings: dict[str, dict[str, object]] = {
        provider: {"api_key": "k", "base_url": "https://host.example/base", "options": OPTIONS[provider]}
    }
    if provider == "azure":
        settings[provider]["api"] = "chat"  # whose older addresses contain the deployment
    transport = MemoryTransport(_refuse)
    client = Client(settings=settings, environ={"AWS_REGION": "us-east-1"}, transport=transport)
    with client, pytest.raises(ServerError):
        client.send("Hi", model=f"{provider}:{model}")
    return httpx.URL(transport.requests[0].url)  # as it is sent: with its dot segments resolved


@pytest.mark.parametrize("provider", OPTIONS)
@pytest.mark.parametrize("name", AWKWARD)
def test_a_name_stays_in_its_own_part_of_the_address(provider: str, name: str) -> None:
    sent, plain = _url(provider, name), _url(provider, "plain/model" if "/" in name else "plain")
    assert (sent.host, sent.query, sent.fragment) == (plain.host, plain.query, plain.fragment)
    parts, others = sent.raw_path.decode().split("/"), plain.raw_path.decode().split("/")
    assert len(parts) == len(others)
    changed = [unquote(part) for part, other in zip(parts, others, strict=True) if part != other]
    assert "/".join(changed).partition(":generateContent")[0] == name or name in "/".join(changed)


@pytest.mark.parametrize("provider", OPTIONS)
@pytest.mark.parametrize("name", CLIMBING)
def test_a_name_that_climbs_is_refused(provider: str, name: str) -> None:
    with pytest.raises(CallerError, match="segment"):
        _url(provider, name)


@pytest.mark.parametrize("name", UNSEEN)
def test_a_name_with_unprintable_characters_is_refused(name: str) -> None:
    with pytest.raises(CallerError, match="control character"):
        _url("google", name)
