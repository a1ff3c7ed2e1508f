"""The admin API: for admins only, with an audit log; budgets of teams; spending by key, team, model and day."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from interlingua_cli.root import cli
from interlingua_gateway.activity import Activity
from interlingua_gateway.store import Use
from tests.gateway.conftest import Upstream, gateway, new_store, refuse
from tests.gateway.test_budgets import BODY, MODEL, ROUTES, Charging
from tests.support.postgresql import address, schema
from tests.support.waiting import until

PATHS = ("me", "keys", "teams", "spending", "requests", "errors", "routes", "changes")


def _config(upstream: Upstream, place: str) -> dict[str, Any]:
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    return {"settings": settings, "routes": ROUTES, "auth": "keys", "store": place}


def _client(url: str, secret: str) -> httpx.Client:
    return httpx.Client(base_url=f"{url}/admin/api", headers={"authorization": f"Bearer {secret}"}, timeout=30)


def test_only_admins_are_answered(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, admin = store.add_key("Olga", admin=True)
    key, plain = store.add_key("Ann")
    with (
        gateway(upstream, **_config(upstream, place)) as url,
        _client(url, plain) as ann,
        _client(url, admin) as olga,
    ):
        for path in PATHS:
            assert httpx.get(f"{url}/admin/api/{path}").status_code == 401
            assert httpx.get(f"{url}/admin/api/{path}?key={admin}").status_code == 401
            assert ann.get(path).status_code == 403
            assert olga.get(path).status_code == 200
        for path in ("keys", f"keys/{key.id}/revoke", f"keys/{key.id}/rotate"):
            assert ann.post(path, json={"name": "x", "admin": True}).status_code == 403
        assert ann.patch(f"keys/{key.id}", json={"admin": True}).status_code == 403
        page = httpx.get(f"{url}/admin")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "://" not in page.text
    assert [each.name for each in store.list_keys() if each.admin] == ["Olga"]
    store.close()
    with gateway(upstream) as url:
        assert httpx.get(f"{url}/admin/api/keys").status_code == 403


def test_keys_are_made_changed_rotated_revoked_and_each_change_is_noted(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    olga, secret = store.add_key("Olga", admin=True)
    upstream.answers = [Charging()]
    with gateway(upstream, **_config(upstream, place)) as url, _client(url, secret) as admin:

        def status(key: str) -> int:
            return httpx.post(f"{url}/v1/messages", json=BODY, headers={"x-api-key": key}).status_code

        assert admin.put("teams/research", json={"budget_usd": "2.5", "budget_days": 30}).status_code == 200
        made = admin.post("keys", json={"name": "Ann", "team": "research", "models": ["claude-*"]}).json()
        own, first = made["key"]["id"], made["secret"]
        assert status(first) == 200
        assert admin.patch(f"keys/{own}", json={"models": ["gpt-*"]}).json()["models"] == ["gpt-*"]
        assert status(first) == 403
        assert admin.patch(f"keys/{own}", json={"models": [], "budget_usd": 0.25}).json()["budget_usd"] == "0.25"
        second = admin.post(f"keys/{own}/rotate").json()["secret"]
        assert (status(first), status(second)) == (401, 200)
        soon = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
        assert admin.patch(f"keys/{own}", json={"expires": soon}).status_code == 200
        assert status(second) == 401
        assert admin.patch(f"keys/{own}", json={"expires": None}).status_code == 200
        assert status(second) == 200
        assert admin.post(f"keys/{own}/revoke").status_code == 200
        assert status(second) == 401
        assert admin.delete("teams/research").status_code == 200

        changes = admin.get("changes").json()
        assert {row["actor"] for row in changes[:-1]} == {olga.id}
        assert [row["action"] for row in changes] == [
            "remove team", "revoke key", *["change key"] * 2, "rotate key", *["change key"] * 2, "make key", "set team",
            "make key",
        ]  # fmt: skip
        assert changes[-3]["details"]["models"] == ["claude-*"]
        text = repr(changes)
        assert first.split("-", 2)[2] not in text
        assert second.split("-", 2)[2] not in text
    assert store.list_keys()[1].team == ""
    store.close()


@pytest.mark.parametrize(
    "body",
    [
        {}, {"name": ""}, {"name": "x", "budget_usd": "-1"}, {"name": "x", "budget_usd": "NaN"},
        {"name": "x", "budget_usd": True}, {"name": "x", "budget_days": 0}, {"name": "x", "budget_days": "7"},
        {"name": "x", "models": "gpt-*"}, {"name": "x", "models": ["a b"]}, {"name": "x", "team": "unknown"},
        {"name": "x", "expires": "tomorrow"}, {"name": "x", "expires": "2027-01-31T12:00:00"}, {"name": "x", "id": "y"},
        {"name": "x", "admin": "yes"}, {"name": "x" * 201}, [], "x", None,
    ],
)  # fmt: skip
def test_a_wrong_key_is_refused_and_nothing_is_made(upstream: Upstream, tmp_path: Path, body: Any) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, secret = store.add_key("Olga", admin=True)
    with gateway(upstream, **_config(upstream, place)) as url, _client(url, secret) as admin:
        answer = admin.post("keys", json=body)
        assert answer.status_code == 400
        assert len(answer.json()["error"]) > 10
        assert admin.post("keys", content="{", headers={"content-type": "application/json"}).status_code == 400
        assert admin.post("keys", content='{"name": "x"}').status_code == 400
        assert admin.post("keys", json={"name": "x" * 70_000}).status_code == 400
        assert admin.patch("keys/none", json={}).status_code == 404
        assert admin.post("keys/none/rotate").status_code == 404
        assert admin.get("spending?by=secret").status_code == 400
        assert admin.get("spending?days=0").status_code == 400
    assert len(store.list_keys()) == 1
    assert len(Activity(store.database).changes()) == 1
    store.close()


def test_a_team_shares_a_budget_through_two_gateways(upstream: Upstream, tmp_path: Path) -> None:
    places = [f"sqlite:///{tmp_path}/g.db"]
    if url := address():
        made = schema(url)
        places.append(made.__enter__())
    for place in places:
        service = Charging(seconds=0.01)
        upstream.answers = [service]
        store = new_store(place)
        team = store.set_team("research", Decimal("0.008"))
        secrets = [store.add_key(name, team="research", budget_usd=Decimal("0.006"))[1] for name in ("Ann", "Bob")]
        config = _config(upstream, place)
        with gateway(upstream, **config) as one, gateway(upstream, **config) as other, ThreadPoolExecutor(16) as ask:

            def post(number: int, urls: tuple[str, str] = (one, other), secrets: list[str] = secrets) -> int:
                headers = {"x-api-key": secrets[number // 2 % 2]}
                return httpx.post(f"{urls[number % 2]}/v1/messages", json=BODY, headers=headers, timeout=60).status_code

            found = list(ask.map(post, range(48)))
            assert found.count(200) == service.requests > 5
            assert service.charged <= Decimal("0.008")
            until(lambda store=store, team=team, service=service: store.spent(team).requests == service.requests)
        assert store.spent(team).cost_usd == service.charged
        rows = Activity(store.database).spending(["team", "model"], 1)
        assert [(row["team"], row["model"], row["cost_usd"]) for row in rows] == [
            ("research", MODEL, str(store.spent(team).cost_usd))
        ]
        store.close()
    if url:
        made.__exit__(None, None, None)


def test_a_model_without_a_price_is_refused_for_a_team_with_a_budget(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    store.set_team("research", Decimal(1))
    key, secret = store.add_key("Ann", team="research")
    upstream.answers = [Charging()]
    config = _config(upstream, place) | {"routes": [{"match": "*", "to": ["anthropic:claude-of-tomorrow"]}]}
    with gateway(upstream, **config) as url:
        answer = httpx.post(f"{url}/v1/messages", json=BODY, headers={"x-api-key": secret})
    assert answer.status_code == 400
    assert "team has a budget" in answer.text
    assert store.spent(key).requests == 0
    assert Activity(store.database).requests() == []
    store.close()


def test_requests_in_progress_and_failures_are_shown(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, secret = store.add_key("Olga", admin=True)
    key, asking = store.add_key("Ann")
    upstream.answers = [Charging(seconds=1.0), refuse(500)]
    with (
        gateway(upstream, **_config(upstream, place)) as url,
        _client(url, secret) as admin,
        ThreadPoolExecutor(1) as ask,
    ):
        headers = {"x-api-key": asking}
        asked = ask.submit(httpx.post, f"{url}/v1/messages", json=BODY, headers=headers, timeout=30)
        row = until(lambda: admin.get("requests").json())[0]
        assert (row["key"], row["model"]) == (key.id, MODEL)
        assert 0.0005 < float(row["cost_usd"]) < 0.001
        assert asked.result().status_code == 200
        until(lambda: admin.get("requests").json() == [])
        failed = httpx.post(f"{url}/v1/messages", json=BODY, headers=headers)
        errors = until(lambda: admin.get("errors").json())
        assert [(row["id"], row["key"], row["model"], row["status"]) for row in errors] == [
            (failed.headers["x-interlingua-request-id"], key.id, MODEL, failed.status_code)
        ]
        assert httpx.post(f"{url}/v1/messages", json=BODY, headers={"x-api-key": "x"}).status_code == 401
        assert len(admin.get("errors").json()) == 1  # callers without a key write nothing
        health = admin.get("routes").json()
        assert health["routes"][0]["models"][0]["output_per_mtok_usd"] == "5"
        assert health["health"]["*"][MODEL]["failures"] == 1
    assert Activity(store.database).drop_failures(datetime.now(UTC)) == 1
    store.close()


def test_spending_is_grouped_and_moves_with_no_team(tmp_path: Path) -> None:
    store = new_store(f"sqlite:///{tmp_path}/g.db")
    store.set_team("a")
    store.set_team("b")
    key, _ = store.add_key("Ann", team="a")
    store.add_usage(key.id, 10, 1, Decimal("0.5"), "x:one")
    store.change_key(key.id, {"team": "b"})
    store.add_usage(key.id, 20, 2, Decimal("0.25"), "x:two")
    activity = Activity(store.database)
    assert [(row["team"], Decimal(row["cost_usd"])) for row in activity.spending(["team"], 1)] == [
        ("a", Decimal("0.5")), ("b", Decimal("0.25")),
    ]  # fmt: skip
    assert [row["model"] for row in activity.spending(["model", "day"], 1)] == ["x:one", "x:two"]
    assert activity.spending(["key"], 30)[0]["input_tokens"] == 30
    balance = store.reserve(key, "r", "g", Use(cost_usd=Decimal(1)), "x:one")
    assert balance.owner == "key"
    store.close()


def test_the_command_makes_keys_of_a_team(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f'store = "sqlite:///{tmp_path}/g.db"\n')
    runner = CliRunner()
    wrong = runner.invoke(cli, ["gateway", "keys", "add", "Ann", "--team", "research", "--config", str(file)])
    assert wrong.exit_code == 2
    assert "no team" in wrong.output
    store = new_store(f"sqlite:///{tmp_path}/g.db")
    store.set_team("research")
    assert runner.invoke(
        cli, ["gateway", "keys", "add", "Ann", "--team", "research", "--config", str(file)]
    ).exit_code == 0  # fmt: skip
    assert [key.team for key in store.list_keys()] == ["research"]
    assert Activity(store.database).changes()[0]["actor"] == "command line"
    store.close()
