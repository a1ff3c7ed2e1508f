"""The page `/admin` in a real browser: make a key, use it, see its cost, revoke it; with the keyboard; narrow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import Upstream, gateway, new_store
from tests.gateway.test_budgets import MODEL, Charging
from tests.support.browser import ENTER, ESCAPE, SHIFT, SKIP_REASON, SPACE, TAB, Browser, browser, is_installed
from tests.support.waiting import until

BODY = {"model": "haiku", "max_tokens": 1_000, "messages": [{"role": "user", "content": "Hi"}]}
pytestmark = pytest.mark.skipif(not is_installed(), reason=SKIP_REASON)


def _log_in(page: Browser, url: str, secret: str) -> None:
    page.open(f"{url}/admin")
    page.press(secret + ENTER)
    page.wait_for("Make a key")


def _table(page: Browser, name: str) -> list[list[str]]:
    rows: list[list[str]] = page.run(
        "return [...document.querySelectorAll(`#${arguments[0]}-table tbody tr`)]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText.trim()))", name,
    )  # fmt: skip
    return rows


def test_a_key_is_made_used_seen_and_revoked(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    admin, secret = store.add_key("Olga", admin=True)
    store.set_team("research")
    upstream.answers = [Charging()]
    settings: Any = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    routes: Any = [{"match": "haiku", "to": [MODEL, "anthropic:claude-sonnet-4-5"], "retries": 0}]
    config: dict[str, Any] = {"settings": settings, "routes": routes, "auth": "keys", "store": place}
    with gateway(upstream, **config) as url, browser(tmp_path / "profile") as page:
        page.open(f"{url}/admin")
        page.press("ilg-wrong-key" + ENTER)
        page.wait_for("unknown key")
        _log_in(page, url, secret)
        page.wait_for("Olga", "#keys")
        page.take_screenshot(tmp_path / "keys.png")

        page.click("Make a key")
        page.wait_for("Requests a minute")
        page.press("Ann" + TAB + "research" + TAB + "0.5" + TAB + "30" + TAB + "60")
        page.take_screenshot(tmp_path / "make.png")
        page.press(ENTER)
        page.wait_for("it is not shown again")
        made = page.text("#new-secret")
        assert re.fullmatch(r"ilg-[0-9a-f]{8}-\S{43}", made)
        page.take_screenshot(tmp_path / "made.png")
        page.press(ESCAPE)
        page.wait_for("Ann", "#keys")
        until(lambda: made not in page.run("return document.documentElement.outerHTML"))
        key = next(key for key in store.list_keys() if key.name == "Ann")
        assert (key.team, str(key.budget_usd), key.budget_days, key.requests_per_minute) == (
            "research",
            "0.500000",
            30,
            60,
        )

        headers = {"x-api-key": made}
        assert httpx.post(f"{url}/v1/messages", json=BODY, headers=headers).status_code == 200
        until(lambda: store.spent(key).requests == 1)
        page.click("Spending")
        page.wait_for("$0.0050", "#spending-table")
        assert _table(page, "spending") == [[f"Ann {key.id}", "$0.0050", "1", "9", "1,000"]]
        page.run("const by = document.getElementById('by'); by.value = 'day,model';"
                 "by.dispatchEvent(new Event('change'))")  # fmt: skip
        page.wait_for(MODEL, "#spending-table")
        page.take_screenshot(tmp_path / "spending.png")
        page.click("Teams")
        page.wait_for("research", "#teams-table")
        assert _table(page, "teams")[0][:4] == ["research", "$0.0050", "no limit", "1"]

        page.click("Routes")
        page.wait_for(MODEL, "#routes-table")
        assert _table(page, "routes")[0][:4] == ["haiku", MODEL, "", "ok"]
        page.take_screenshot(tmp_path / "routes.png")
        assert httpx.post(f"{url}/v1/messages", json={**BODY, "model": "none/../x"}, headers=headers).status_code == 400
        page.click("Errors")
        page.wait_for(key.id, "#errors-table")
        page.take_screenshot(tmp_path / "errors.png")

        page.click("Keys")
        page.click("Revoke Ann")
        page.wait_for("cannot be used again")
        page.click("Yes")
        page.wait_for("revoked", "#keys-table")
        assert httpx.post(f"{url}/v1/messages", json=BODY, headers=headers).status_code == 401
        page.click("Audit log")
        page.wait_for("revoke key", "#changes-table")
        changes = [(row[1], row[2], row[3]) for row in _table(page, "changes")]
        assert changes[:2] == [(admin.id, "revoke key", key.id), (admin.id, "make key", key.id)]
        page.take_screenshot(tmp_path / "changes.png")
        assert made.split("-", 2)[2] not in page.run("return document.documentElement.outerHTML")
        others = "return performance.getEntriesByType('resource').map((each) => new URL(each.name).origin)"
        assert set(page.run(others)) == {url}
        assert [line for line in page.console() if "401" not in line] == []
    store.close()


def test_the_page_works_by_keyboard_and_in_a_narrow_window(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, secret = store.add_key("Olga", admin=True)
    for name in ("Ann", "Bob of a department with a long name"):
        store.add_key(name, models=("claude-*", "gemini-2.5-flash-preview-09-2025"))
    with gateway(upstream, auth="keys", store=place) as url, browser(tmp_path / "profile") as page:
        page.resize(360, 740)
        _log_in(page, url, secret)
        page.wait_for("Bob", "#keys")
        focused = "const at = document.activeElement; return at.getAttribute('aria-label') || at.id || at.textContent"
        assert page.run(focused) == "keys-title"

        seen = []
        for _ in range(10):  # the buttons of the section, in the order in which they are read
            page.press(TAB)
            seen.append(page.run(focused))
        rows = [f"{action} {name}" for name in ("Olga", "Ann") for action in ("Change", "Rotate", "Revoke")]
        assert seen[:7] == ["add-key", *rows]
        assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.take_screenshot(tmp_path / "narrow-keys.png")
        while page.run(focused) != "Revoke Ann":
            page.press(SHIFT + TAB)
        page.press(SPACE)
        page.wait_for("cannot be used again", "#sure-dialog")
        page.take_screenshot(tmp_path / "narrow-sure.png")
        page.press(ESCAPE)
        assert page.run(focused) == "Revoke Ann"
        page.press(SPACE)
        page.wait_for("cannot be used again", "#sure-dialog")
        page.press(SPACE)  # the first button has the focus
        page.wait_for("revoked", "#keys-table")
        until(lambda: page.run(focused) == "keys-title")

        for name in ("keys", "teams", "spending", "requests", "errors", "routes", "changes"):
            page.run("location.hash = arguments[0]", name)
            until(lambda name=name: page.run(focused) == f"{name}-title")
            assert page.run("return document.documentElement.scrollWidth") <= 360, name
        page.take_screenshot(tmp_path / "narrow-changes.png")
        page.run("location.hash = 'keys'")
        until(lambda: page.run(focused) == "keys-title")
        page.press(TAB + ENTER)
        page.wait_for("Requests a minute")
        page.take_screenshot(tmp_path / "narrow-make.png")
        page.press(ESCAPE)
        assert page.run(focused) == "add-key"
        assert [line for line in page.console() if "401" not in line] == []
    store.close()
