"""Recordings of conversations with a service on this machine hold its exchanges, linked ones too, and no secret.

The examples Mint (exchanges its key) and Kiln (answers later) are the plugins; each secret is at another place.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest
import vcr  # type: ignore[import-untyped]
import yaml

from interlingua import Client
from interlingua.plugins import Connection, ConnectionSettings, KeyExchange, Registry, WireResponse, hookimpl, loads
from interlingua_cli.cassettes import read_cassette
from interlingua_contract.commands import new_plugin as scaffold
from interlingua_contract.recorder import Serializer, named_secrets, register, vcr_config
from interlingua_contract.report import check
from interlingua_contract.rule import RULES
from interlingua_contract.subject import Quirks, Subject
from tests.support import tree
from tests.support.loopback import LoopbackHandler, LoopbackServer

FOLDER = tree.ROOT / "docs" / "plugins"
KEY = "bullion+and/gold=0123456789"  # its form in a body differs from the key
TOKEN = "opaque~coin.5f1bd3"
IN_BODY = "made-up-and-only-letters"
IN_ADDRESS = "signed.0123456789"
OF_OTHERS = "secret-of-another-service-77"
SECRETS = (KEY, "bullion%2Band%2Fgold%3D0123456789", TOKEN, IN_BODY, IN_ADDRESS, OF_OTHERS)


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Serializer, "secrets", set())
    monkeypatch.setattr(Serializer, "exchanges", set())


class Handler(LoopbackHandler):
    """A mint whose answers repeat the secrets, and another service (`/v9/…`)."""

    def do_POST(self) -> None:
        body = self.read_body()
        path = urlsplit(self.path).path
        if path == "/token":
            known = parse_qs(body.decode()).get("apikey") == [KEY]
            now = datetime.now(UTC).timestamp()
            return self.send(200 if known else 400, {"coin": TOKEN, "kind": "bearer", "expiration": now + 3600})
        if path.startswith("/v9/"):
            return self.send(200, {"session": OF_OTHERS})
        said = json.loads(body)["messages"][-1]["text"]
        header = self.headers["authorization"]
        text = f"{header} and {KEY} asked for {said}; see https://mint.example/coins?size=2&sig={IN_ADDRESS}"
        return self.send(200, {"id": "chat-1", "text": text, "reason": "finished", "usage": {"in": 12, "out": 17}})

    def send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("set-cookie", f"session={OF_OTHERS}")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def service() -> Iterator[str]:
    with LoopbackServer(Handler) as server:
        yield server.url


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mint", "kiln"):
        monkeypatch.syspath_prepend(str(FOLDER / name / "src"))
        monkeypatch.syspath_prepend(str(FOLDER / name / "tests"))


@pytest.fixture
def mint(examples: None) -> Registry:
    """Mint with a token under a name that tells nothing, a key in an address, and one in each body."""
    module = importlib.import_module("interlingua_mint.plugin")

    def read(response: WireResponse) -> Any:
        body = loads(response.body)
        return module.Token(body["coin"], datetime.fromtimestamp(body["expiration"], UTC))

    class Coined(module._Mint):  # type: ignore[misc, name-defined]
        @hookimpl
        def connection(self, settings: ConnectionSettings) -> Connection:
            made: Connection = super().connection(settings)
            assert made.key_exchange is not None
            exchange = KeyExchange(request=made.key_exchange.request, read=read)
            url = f"{made.base_url}/v1/chat?version=2&key={IN_ADDRESS}"
            return attrs.evolve(made, key_exchange=exchange, url=lambda _request: url)

    return Registry(providers={"mint": Coined()}, entry_points=[])


def talk(url: str, registry: Registry, key: str = KEY, *, others: bool = False) -> list[str]:
    settings = {"mint": {"base_url": url, "api_key": key, "options": {"token_url": f"{url}/token", "project": "owls"}}}
    with Client("mint:silver-1", settings=settings, environ={}, registry=registry, retry=0) as client:
        answers = [client.send("A coin, please.", provider_options={"client_secret": IN_BODY})]
        if others:
            urllib.request.urlopen(f"{url}/v9/telemetry", data=b"x=1").close()  # noqa: S310  this machine
        answers.append(client.send("Another one."))
    return [answer.text for answer in answers]


def record(path: Path, options: dict[str, Any]) -> Any:
    recorder = vcr.VCR(record_mode="once", **options)
    register(recorder)
    return recorder.use_cassette(str(path))


def findings(path: Path, registry: Registry) -> list[str]:
    subject = Subject("mint", path.parent, Quirks(connection={"project": "owls"}), registry=registry)
    return [finding.why for finding in check(subject, RULES["C47"]).findings]


def test_a_recording_keeps_no_secret_and_is_replayed_without_the_key(mint: Registry, tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    with service() as url, record(path, vcr_config(provider=mint.provider("mint"))):
        said = talk(url, mint, others=True)
    text = path.read_text(encoding="utf-8")
    kept = read_cassette(path)

    assert TOKEN in said[0]
    assert KEY in said[0]
    assert not [secret for secret in SECRETS if secret in text]
    assert [urlsplit(each.uri).path for each in kept] == ["/token", "/v1/chat", "/v1/chat"]
    assert urlsplit(kept[1].uri).query == "version=2"
    assert kept[1].request["client_secret"] == "-"
    assert json.loads(kept[0].body) == {"coin": "-", "kind": "bearer", "expiration": 4102444800}
    assert findings(path, mint) == []

    with record(path, vcr_config(provider=mint.provider("mint"))) as played:  # no service: only the file answers
        again = talk("http://127.0.0.1:1", mint, key="not needed to replay")

    assert played.all_played
    assert again[1] == "Bearer - and - asked for Another one.; see https://mint.example/coins?size=2&sig=-"


def test_c47_finds_the_secrets_of_an_unfiltered_recording(mint: Registry, tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    with service() as url, record(path, {"serializer": "json", "decode_compressed_response": True}):
        talk(url, mint, others=True)
    raw = json.loads(path.read_text(encoding="utf-8"))  # as vcr itself writes it
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    whys = "\n".join(findings(path, mint))

    for found in (
        "headers that are not allowed: authorization", "set-cookie", "the query parameter key looks like a secret",
        "client_secret of the request", "apikey of the request", f"exchanges a key, and {TOKEN[:4]!r}…",
    ):  # fmt: skip
        assert found in whys, found


def test_linked_requests_are_one_cassette(examples: None, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    kiln = Registry(providers={"kiln": importlib.import_module("interlingua_kiln.plugin").plugin}, entry_points=[])
    server = importlib.import_module("kiln_server")

    def fire(url: str) -> list[str]:
        settings = {"kiln": {"base_url": url, "api_key": server.KEY}}
        with Client("kiln:earthen-1", settings=settings, environ={}, registry=kiln, retry=0) as client:
            whole = client.send("A jar with two handles.").text
            with client.stream("A jar with a lid.") as stream:
                return [whole, "".join(stream.text_stream)]

    with server.served() as running, record(path, vcr_config(provider=kiln.provider("kiln"))):
        said = fire(running.url)
    methods = [each.method for each in read_cassette(path)]
    with record(path, vcr_config(provider=kiln.provider("kiln"))) as played:
        assert fire(running.url) == said

    assert methods[0] == "POST"
    assert methods.count("POST") == 2
    assert methods.count("GET") >= 3
    assert played.all_played
    assert server.KEY not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        '{"openai_api_key": "abcdef0123456789"}', 'data: {"accessToken":"abcdef0123456789"}\n\n',
        "grant_type=x&client_assertion=abcdef0123456789", '{"arguments": "{\\"password\\": \\"abcdef0123456789\\"}"}',
        "see https://h.example/p?X-Amz-Security-Token=abcdef0123456789",
    ],
)  # fmt: skip
def test_a_field_is_secret_by_its_name(text: str) -> None:
    assert [value for _, value in named_secrets(text)] == ["abcdef0123456789"]


@pytest.mark.parametrize("text", ['{"max_tokens": "x", "token": " Hello"}', "a=b", '{"password": {"type": "string"}}'])
def test_other_fields_are_not(text: str) -> None:
    assert list(named_secrets(text)) == []


def test_a_new_plugin_records_again_over_its_cassettes(examples: None, tmp_path: Path) -> None:
    """The conftest that `new-plugin` writes, under pytest: recorded over an older file, and replayed."""
    folder = scaffold.render("kiln", tmp_path) / "tests"
    test = (folder / "test_recorded.py").read_text(encoding="utf-8").replace("kiln:a-model", "kiln:earthen-1")
    (folder / "test_recorded.py").write_text(test.replace('"ganymede" in', '"moon" in'), encoding="utf-8")
    places = os.pathsep.join(str(FOLDER / "kiln" / name) for name in ("src", "tests"))
    server = importlib.import_module("kiln_server")
    environ = {**os.environ, "PYTHONPATH": places, "INTERLINGUA_PLUGINS": "kiln=interlingua_kiln.plugin:plugin"}

    def run(*arguments: str, url: str) -> None:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, "test_recorded.py"]
        environ_now = {**environ, "KILN_BASE_URL": url, "KILN_API_KEY": server.KEY}
        done = subprocess.run(command, cwd=folder, env=environ_now, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:]
        assert "2 passed" in done.stdout, done.stdout[-3000:]

    old = folder / "cassettes" / "test_text.yaml"
    old.write_text("interactions: []\nversion: 1\n# of another day\n", encoding="utf-8")
    with server.served() as running:
        run("--record-mode=rewrite", url=running.url)
        assert running.url in old.read_text(encoding="utf-8")
    run("--block-network", url=running.url)

    assert "of another day" not in old.read_text(encoding="utf-8")
