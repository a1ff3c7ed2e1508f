"""Keys: hashed, compared in constant time, with budgets and limits; a database that is gone reveals nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest
from click.testing import CliRunner

from interlingua.errors import OverloadedError
from interlingua_cli.root import cli
from interlingua_gateway.store import GatewayStore
from tests.gateway.conftest import Upstream, gateway, new_store, refuse, wait_for_metric
from tests.support.postgresql import SKIP_REASON, address
from tests.support.raw_sql import rows

BODY = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
HEADERS = ("x-api-key", "authorization", "x-goog-api-key")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GatewayStore]:
    made = new_store(f"sqlite:///{tmp_path}/g.db")
    yield made
    made.close()


def _ask(url: str, secret: str | None, header: str = "x-api-key") -> httpx.Response:
    value = f"Bearer {secret}" if header == "authorization" else secret
    return httpx.post(f"{url}/v1/messages", json=BODY, headers={header: value} if value else {})


def test_a_key_opens_in_the_header_of_each_api(upstream: Upstream, store: GatewayStore, tmp_path: Path) -> None:
    _, secret = store.add_key("tests")
    with gateway(upstream, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        assert [_ask(url, secret, header).status_code for header in HEADERS] == [200, 200, 200]
        assert httpx.post(f"{url}/v1/messages?key={secret}", json=BODY).status_code == 200
        for wrong in (None, "x", "ilg-", f"{secret}x", f"ilg-00000000-{secret.rpartition('-')[2]}"):
            assert _ask(url, wrong).status_code == 401
    assert len(upstream.requests) == 4


def test_secrets_are_nowhere_but_with_who_asked(
    upstream: Upstream, store: GatewayStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key, secret = store.add_key("tests")
    with gateway(upstream, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        _ask(url, secret)
        upstream.answers = [refuse(500)]
        _ask(url, secret)
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.id.encode() in kept
    assert secret.split("-", 2)[2].encode() not in kept
    assert secret not in caplog.text
    assert BODY["messages"][0]["content"] not in caplog.text  # type: ignore[index]
    assert secret not in json.dumps([*upstream.requests, *map(dict, upstream.headers)])
    assert (tmp_path / "g.db").stat().st_mode & 0o077 == 0


def test_revoked_and_expired_keys_are_refused(upstream: Upstream, store: GatewayStore, tmp_path: Path) -> None:
    gone, first = store.add_key("revoked")
    _, second = store.add_key("expired", expires=datetime.now(UTC) - timedelta(seconds=1))
    assert store.revoke_key(gone.id)
    assert not store.revoke_key("nobody")
    with gateway(upstream, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        assert [_ask(url, secret).status_code for secret in (first, second)] == [401, 401]


def test_limits_and_budgets_are_kept(upstream: Upstream, store: GatewayStore, tmp_path: Path) -> None:
    _, often = store.add_key("often", requests_per_minute=2)
    rich, spent = store.add_key("spent", budget_usd=Decimal("0.5"), budget_days=1)
    _, other = store.add_key("other", models=("gpt-*",))
    store.add_usage(rich.id, 10, 20, Decimal("0.5"))
    with gateway(upstream, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        answers = [_ask(url, often) for _ in range(3)]
        statuses = [answer.status_code for answer in answers]
        broke, forbidden = _ask(url, spent), _ask(url, other)

    assert statuses in ([200, 200, 429], [200, 200, 200])  # a minute may begin between them
    if statuses[-1] == 429:
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert broke.status_code in (402, 403, 429)
    assert "budget" in broke.json()["error"]["message"]
    assert forbidden.status_code == 403


def test_use_is_added_up(upstream: Upstream, store: GatewayStore, tmp_path: Path) -> None:
    key, secret = store.add_key("tests", budget_usd=Decimal(1))
    with gateway(upstream, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        _ask(url, secret)
        httpx.post(f"{url}/v1/messages", json={**BODY, "stream": True}, headers={"x-api-key": secret})
        counted = 'interlingua_gateway_requests_total{api="anthropic",model="llamacpp:up-1",outcome="ok"} 2.0'
        metrics = wait_for_metric(url, counted, store.add_key("operator", admin=True)[1])

    used = store.spent(key)
    assert (used.requests, used.input_tokens, used.output_tokens) == (2, 14, 6)
    assert counted in metrics
    assert 'interlingua_gateway_tokens_total{api="anthropic",direction="input",model="llamacpp:up-1"} 14.0' in metrics


def test_a_database_that_is_gone_gives_nothing_away(upstream: Upstream, store: GatewayStore, tmp_path: Path) -> None:
    _, secret = store.add_key("tests", budget_usd=Decimal(1))
    with gateway(upstream, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        assert _ask(url, secret).status_code == 200
        rows(f"{tmp_path}/g.db", "DROP TABLE gateway_used")
        answer = _ask(url, secret)

    assert answer.status_code in (503, 529)
    assert "database" in answer.json()["error"]["message"]
    assert len(upstream.requests) == 1


def test_the_store_is_the_same_on_postgresql() -> None:
    if not (url := address()):
        pytest.skip(SKIP_REASON)
    store = new_store(url)
    key, secret = store.add_key("tests", budget_usd=Decimal("2.5"), models=("a-*", "b"))
    try:
        assert store.find_key(secret) == key
        store.add_usage(key.id, 3, 4, Decimal("0.25"))
        store.add_usage(key.id, 3, 4, Decimal("0.25"))
        assert store.spent(key).cost_usd == Decimal("0.5")
        assert store.take_request(attrs.evolve(key, requests_per_minute=1)) is None
        store.keep_state(key.id, ["h"], "s", "d")
        assert store.find_states(key.id, ["h", "i"]) == {"h": "s"}
        assert store.find_states("other", ["h"]) == {}
    finally:
        store.revoke_key(key.id)
        store.close()


def test_a_database_of_an_earlier_version_opens(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("tests")
    store.close()
    for table, column in (("gateway_keys", "admin"), ("gateway_states", "digest")):
        rows(f"{tmp_path}/g.db", f"ALTER TABLE {table} DROP COLUMN {column}")
    store = new_store(place)
    assert store.find_key(secret) == key
    store.keep_state(key.id, ["h"], "s", "d")
    assert store.find_states(key.id, ["h"]) == {"h": "s"}
    store.close()


def test_an_unreachable_database_is_a_typed_error() -> None:
    with pytest.raises(OverloadedError, match="does not respond"):
        new_store("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1")


def test_the_commands_make_list_and_revoke(tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}

    def run(*words: str) -> Any:
        return CliRunner().invoke(cli, ["gateway", "keys", *words], env=environ)

    made = run("add", "Ann", "--budget", "5", "--days", "30", "--model", "claude-*")
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("ilg-")
    [row] = json.loads(run("list", "--json").stdout)
    assert (row["name"], row["budget_usd"], row["spent"]["requests"]) == ("Ann", "5.000000", 0)
    assert made.stdout.strip().split("-", 2)[2] not in json.dumps(row)
    assert run("revoke", row["id"]).exit_code == 0
    assert "revoked" in run("list").stdout
    assert run("revoke", "nobody").exit_code == 2
    assert run("add", "Bob\x1b[2J").exit_code == 1
    new_store(f"sqlite:///{tmp_path}/interlingua/gateway.db").add_key("Bob\x1b[2J\u202e")  # as before it was refused
    assert "Bob\\x1b[2J\\u202e" in run("list").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "NaN"], "budget_usd must be an amount above 0"),
        (["--budget", "Infinity"], "budget_usd must be an amount above 0"),
        (["--budget", "-5"], "budget_usd must be an amount above 0"),
        (["--budget", "1e15"], "budget_usd must be an amount above 0"),
        (["--budget", "much"], "budget_usd must be an amount, such as 2.5"),
        (["--days", "99999999999999999999"], "'budget_days' must be <= 2000000000"),
        (["--tokens-per-minute", "99999999999"], "'tokens_per_minute' must be <= 2000000000"),
        (["--expires-in", "99999999999"], "--expires-in"),
        (["--pass", "v1/embeddings"], "'passes' must match"),
        (["--model", "a b"], "'models' must match"),
    ],
)
def test_an_impossible_limit_makes_no_key(tmp_path: Path, options: list[str], words: str) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(f'store = "sqlite:///{tmp_path}/g.db"\n')
    result = CliRunner().invoke(cli, ["gateway", "keys", "add", "Ann", "--config", str(config), *options])
    assert result.exit_code != 0
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert not new_store(f"sqlite:///{tmp_path}/g.db").list_keys()
