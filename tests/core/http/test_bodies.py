"""Bodies as servers send them: compressed, refused, redirected."""


# ruff: noqa: SIM117  a server, its client and the failure are three things

from __future__ import annotations

import gzip

import pytest

import interlingua as il
from tests.support.fake_provider import STREAM, WHOLE, Reply, registry, served


def client(url: str) -> il.Client:
    return il.Client("fake:known", api_key="k", base_url=url, registry=registry())


def test_compressed_bodies_are_unpacked() -> None:
    headers = {"content-encoding": "gzip"}
    replies = [
        Reply(body=[gzip.compress(WHOLE)], headers=headers),
        Reply(body=[gzip.compress(b"".join(STREAM))], headers=headers),
    ]
    with (
        served(*replies) as server,
        client(server.url) as c,
    ):
        assert c.send("hi").text == "hello"
        with c.stream("hi") as stream:
            assert stream.message.text == "hello"


def test_a_redirect_is_a_failure_and_is_not_followed() -> None:
    reply = Reply(status=302, headers={"location": "http://127.0.0.1:9/elsewhere"})
    with served(reply) as server, client(server.url) as c:
        with pytest.raises(il.errors.BadRequestError) as caught:
            c.send("hi")
    assert caught.value.status == 302


def test_an_address_that_is_none_is_the_callers_mistake() -> None:
    with client("ftp://127.0.0.1") as c:
        with pytest.raises(il.CallerError):
            c.send("hi")
