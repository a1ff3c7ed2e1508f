"""Where nothing answers: the error says which host was asked, and no more of the address."""

from __future__ import annotations

import asyncio

import pytest

import interlingua as il
from tests.support.fake_provider import Reply, registry, served


def _send(url: str) -> None:
    with il.Client("fake:known", api_key="k", base_url=url, registry=registry(), retry=0) as client:
        client.send("hi")


def test_the_host_that_does_not_answer_is_named_without_credentials() -> None:
    with pytest.raises(il.errors.APIConnectionError, match=r"from http://127\.0\.0\.1:9: ConnectError") as caught:
        _send("http://name:word@127.0.0.1:9/path?key=hidden")

    assert not {"name", "word", "hidden"} & set(str(caught.value).replace(":", " ").replace("@", " ").split())


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("localhost/v1", "an address without a host"),
        ("ftp://localhost", "ftp://localhost"),
        ("http://[::1", "an invalid address"),
    ],
)
def test_an_address_that_cannot_be_asked_is_the_callers_error(url: str, place: str) -> None:
    with pytest.raises(il.CallerError, match=f"cannot be sent to {place}"):
        _send(url)


def test_a_redirect_is_told_by_where_it_leads_and_not_followed() -> None:
    moved = Reply(status=308, headers={"location": "https://new.test/v2/say?token=hidden"})
    with served(moved) as server, pytest.raises(il.errors.BadRequestError) as caught:
        _send(server.url)

    assert "https://new.test/v2/say," in str(caught.value)
    assert "base_url" in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert len(server.got) == 1


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ALL_PROXY", "socks5://me:pass-word@127.0.0.1:9", "socks"),
        ("HTTPS_PROXY", "http://me:pass-word", "InvalidURL"),
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "No such file"),
    ],
)
def test_an_environment_that_no_http_client_can_be_made_in_is_told(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)

    async def ask() -> None:
        await il.AsyncClient("fake:known", api_key="k", base_url="http://127.0.0.1:9", registry=registry()).send("hi")

    for make in (lambda: _send("http://127.0.0.1:9"), lambda: asyncio.run(ask())):
        with pytest.raises(il.CallerError) as caught:
            make()
        assert said in str(caught.value)
        assert name in str(caught.value)
        assert "pass-word" not in str(caught.value)
