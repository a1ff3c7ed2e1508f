"""Without keys only this machine's own programs are served; metrics of a gateway with keys are its operator's."""

from __future__ import annotations

import base64
from pathlib import Path

import httpx
import pytest

from interlingua.errors import PermissionDeniedError
from interlingua_gateway import config_of
from interlingua_gateway.local_requests import check_local_request
from interlingua_gateway.seal import read_key_file
from tests.gateway.conftest import Upstream, gateway, new_store

BODY = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:80"}, 403),
        ({"host": "[::ffff:10.0.0.1]:80"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"host": "[::1].evil.example"}, 403),
        ({"host": "localhost@evil.example"}, 403),
        ({"host": ""}, 403),
        ({"origin": "null"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:8790"}, 200),
        ({"host": "gateway.internal:80"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"content-type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_requests_of_web_pages_are_refused(upstream: Upstream, headers: dict[str, str], status: int) -> None:
    with gateway(upstream, hosts=["gateway.internal"], origins=["http://localhost:3000"]) as url:
        answer = httpx.post(f"{url}/v1/messages", json=BODY, headers=headers)
        rebound = httpx.get(f"{url}/metrics", headers={"host": "evil.example"})
    assert answer.status_code == status, answer.text
    assert len(upstream.requests) == (1 if status == 200 else 0)
    assert rebound.status_code == 403


def test_every_value_of_a_repeated_header_is_checked() -> None:
    config = config_of({"origins": ["http://localhost:3000"]})
    for name, values in (
        (b"host", (b"evil.example", b"localhost")),
        (b"origin", (b"http://evil", b"http://localhost:3000")),
    ):
        for order in (values, values[::-1]):
            with pytest.raises(PermissionDeniedError):
                check_local_request({"method": "GET", "headers": [(name, value) for value in order]}, config)
        check_local_request({"method": "GET", "headers": [(name, values[1])] * 2}, config)


def test_metrics_need_an_admins_key(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    secrets = ["", store.add_key("Ann")[1], store.add_key("operator", admin=True)[1]]
    store.close()
    with gateway(upstream, auth="keys", store=place) as url:
        answers = [
            httpx.get(f"{url}/metrics", headers={"authorization": f"Bearer {one}"} if one else {}) for one in secrets
        ]
    assert [answer.status_code for answer in answers] == [401, 403, 200]
    assert "interlingua_gateway" not in answers[0].text + answers[1].text


def test_a_slash_too_many_redirects_nowhere(upstream: Upstream) -> None:
    with gateway(upstream) as url:
        answer = httpx.post(f"{url}/v1/messages/", json=BODY)
    assert answer.status_code == 404
    assert "location" not in answer.headers


def test_the_seal_key_is_not_beside_what_it_seals(upstream: Upstream, tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": f"{tmp_path}/data", "XDG_CONFIG_HOME": f"{tmp_path}/config"}
    with gateway(upstream, environ) as url:
        assert httpx.post(f"{url}/v1/messages", json=BODY).status_code == 200
    place = tmp_path / "config/interlingua/gateway-seal.key"
    key = read_key_file(place)
    assert len(key) == 32
    assert place.stat().st_mode & 0o077 == 0
    stored = b"".join(file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file())
    assert key not in stored
    assert key.hex().encode() not in stored
    assert base64.b64encode(key) not in stored
