"""A distribution that the gateway has never heard of is installed: its API is served at the paths that it declares."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx
import pytest

from interlingua.errors import CallerError
from interlingua_gateway.config import GatewayConfig
from interlingua_gateway.gateway import create_app
from tests.gateway.conftest import Upstream, gateway, new_store, say

TALK = {"model": "m", "say": "Hi."}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}


def install(folder: Path, plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution whose entry points name the provider and its serving plugin."""
    info = folder / "interlingua_acme-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: interlingua-acme\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[interlingua.providers]\nacme = tests.gateway.acme:provider\n\n"
        f"[interlingua.serving]\nacme = tests.gateway.acme:{plugin}\n"
    )
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "plugin", monkeypatch)


@pytest.mark.usefixtures("acme")
def test_its_api_is_served_whole_and_streamed(upstream: Upstream) -> None:
    upstream.answers = [say("Hello ", "there.")]
    with gateway(upstream) as url:
        whole = httpx.post(f"{url}/acme/x/talk", json=TALK)
        streamed = httpx.post(f"{url}/acme/x/talk", json={**TALK, "stream": True})
        models = httpx.get(f"{url}/acme/models")
        counted = httpx.post(f"{url}/acme/count", json=TALK)

    assert whole.json() == {"acme": "Hello there.", "model": "m"}
    assert whole.headers["x-interlingua-model"] == "llamacpp:up-1"
    assert streamed.text == '{"acme": "Hello "}\n{"acme": "there."}\n.\n'
    assert streamed.headers["content-type"] == "application/x-ndjson"
    assert models.json()["models"] == []
    assert counted.json()["count_tokens"] > 0
    assert [body["messages"][-1]["content"] for _, body in upstream.requests] == ["Hi.", "Hi."]


@pytest.mark.usefixtures("acme")
def test_its_failures_are_its_own(upstream: Upstream) -> None:
    with gateway(upstream) as url:
        invalid = httpx.post(f"{url}/acme/x/talk", json={"model": "m"})
        referring = httpx.post(f"{url}/acme/x/talk", json={**TALK, "thread": "t_1"})
        socket = httpx.get(f"{url}/acme/x/talk", headers={"upgrade": "websocket", "connection": "upgrade"})

    assert (invalid.status_code, invalid.json()) == (400, {"wrong": "say is missing"})
    assert referring.status_code == 400
    assert "thread" in referring.json()["wrong"]
    assert (socket.status_code, socket.headers["allow"]) == (426, "POST")
    assert not upstream.requests


@pytest.mark.usefixtures("acme")
def test_its_callers_send_the_gateways_key_in_its_own_header(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, secret = store.add_key("tests")
    store.close()
    with gateway(upstream, auth="keys", store=place) as url:
        without = httpx.post(f"{url}/acme/x/talk", json=TALK)
        header = httpx.post(f"{url}/acme/x/talk", json=TALK, headers={"x-acme-key": secret})
        parameter = httpx.post(f"{url}/acme/x/talk", json=TALK, params={"acme_key": secret})

    assert (without.status_code, header.status_code, parameter.status_code) == (401, 200, 200)


@pytest.mark.parametrize(("apis", "served"), [(["openai"], "openai"), (["acme", "openai"], "acme")])
def test_of_two_plugins_with_one_path_the_configuration_chooses(
    upstream: Upstream,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    apis: list[str],
    served: str,
) -> None:
    install(tmp_path, "shared", monkeypatch)
    with caplog.at_level(logging.INFO, "interlingua.gateway"), gateway(upstream, apis=apis) as url:
        answers = [httpx.post(f"{url}/v1/chat/completions", json={**CHAT, **TALK}).json() for _ in range(2)]

    assert all(("acme" in answer) == (served == "acme") for answer in answers)
    (line,) = [record.getMessage() for record in caplog.records if "/v1/chat/completions" in record.getMessage()]
    other = "openai" if served == "acme" else "acme"
    assert f"is served for {served}, not for {other}" in line


@pytest.mark.parametrize("apis", [[], ["anthropic"]])
def test_two_plugins_with_one_path_need_a_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apis: list[str]
) -> None:
    """An installed plugin takes no path of another one unless the configuration lists it."""
    install(tmp_path, "shared", monkeypatch)

    with pytest.raises(CallerError) as caught:
        create_app(GatewayConfig(apis=tuple(apis)), environ={})

    assert caught.value.message == (
        "the plugins acme and openai both serve POST /v1/chat/completions: "
        'choose one with apis = ["acme"] or apis = ["openai"] in the configuration'
    )
