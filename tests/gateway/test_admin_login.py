"""Administrators log in with OpenID Connect; tokens that the provider did not make for this login are refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization

from interlingua.errors import CallerError, DecodeError
from interlingua_cli.root import cli
from interlingua_gateway import config_of, create_app
from interlingua_gateway.activity import Activity
from interlingua_gateway.config import read_config
from interlingua_gateway.login import Administrator, Logins
from tests.gateway.conftest import new_store, serving
from tests.gateway.login_provider import CLIENT, SECRET, Provider, SigningKey, login_provider
from tests.gateway.test_budgets import ROUTES
from tests.support.browser import SKIP_REASON, browser, is_installed
from tests.support.postgresql import address, schema
from tests.support.waiting import until


@pytest.fixture
def provider() -> Iterator[Provider]:
    with login_provider() as made:
        yield made


class _LateApp:
    """An application that is set after its server has started: its configuration has the server's address."""

    app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self.app.state.services.close()
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await self.app(scope, receive, send)


@contextmanager
def _gateway(provider: Provider, place: str, **login: Any) -> Iterator[str]:
    late = _LateApp()
    with serving(late) as url:
        facts = {"issuer": provider.url, "client_id": CLIENT, "client_secret_env": "OIDC_SECRET", "url": url}
        facts |= {"emails": ["Olga@example.org"]} | login
        config = config_of({"routes": ROUTES, "auth": "keys", "store": place, "admin_login": facts})
        late.app = create_app(config, environ={"OIDC_SECRET": SECRET})
        yield url


def _log_in(url: str, client: httpx.Client) -> httpx.Response:
    """Follow the redirects of a login, as a browser does, up to the gateway's answer at the end."""
    began = client.get(f"{url}/admin/login")
    assert began.status_code == 302, began.text
    sent_back = httpx.get(began.headers["location"])
    return client.get(sent_back.headers["location"])


def _places(tmp_path: Path) -> Iterator[str]:
    yield f"sqlite:///{tmp_path}/g.db"
    if server := address():
        with schema(server) as place:
            yield place


def test_an_administrator_logs_in_changes_a_key_and_logs_out(provider: Provider, tmp_path: Path) -> None:
    for place in _places(tmp_path):
        with _gateway(provider, place) as url, httpx.Client() as client:
            refused = client.get(f"{url}/admin/api/keys")
            assert (refused.status_code, refused.json()["login"]) == (401, "/admin/login")
            done = _log_in(url, client)
            assert (done.status_code, done.headers["location"]) == (303, "/admin")
            assert provider.asked["code_challenge_method"] == "S256"
            assert provider.asked["redirect_uri"] == f"{url}/admin/login/done"
            assert len(provider.asked["state"]) >= 20
            assert len(provider.asked["nonce"]) >= 16
            who = client.get(f"{url}/admin/api/me").json()
            assert who == {"id": "olga@example.org", "name": "olga@example.org"}

            made = client.post(f"{url}/admin/api/keys", json={"name": "Ann"}, headers={"origin": url})
            assert made.status_code == 200, made.text
            cookies = dict(client.cookies)
            assert client.get(f"{url}/metrics").status_code == 401  # a session is for the page only
            model = client.post(f"{url}/v1/messages", json={"model": "m", "max_tokens": 1, "messages": []})
            assert model.status_code == 401

            out = client.post(f"{url}/admin/api/logout", headers={"origin": url})
            assert out.status_code == 200
            assert client.get(f"{url}/admin/api/keys").status_code == 401
            assert httpx.get(f"{url}/admin/api/keys", cookies=cookies).status_code == 401  # ended in the gateway, too
        store = new_store(place)
        rows = [(row["actor"], row["action"]) for row in Activity(store.database).changes()]
        assert rows == [("olga@example.org", action) for action in ("log out", "make key", "log in")]
        store.close()


def test_a_session_may_change_something_only_from_the_gateways_own_pages(provider: Provider, tmp_path: Path) -> None:
    with _gateway(provider, f"sqlite:///{tmp_path}/g.db") as url, httpx.Client() as client:
        _log_in(url, client)
        for headers in ({}, {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": f"{url}.evil.example"}):
            for path in ("keys", "logout"):
                answer = client.post(f"{url}/admin/api/{path}", json={"name": "x"}, headers=headers)
                assert answer.status_code == 403, headers
        assert client.get(f"{url}/admin/api/keys").json() == []


def test_cookies_are_for_this_host_and_not_for_scripts(provider: Provider, tmp_path: Path) -> None:
    with _gateway(provider, f"sqlite:///{tmp_path}/g.db") as url, httpx.Client() as client:
        began = client.get(f"{url}/admin/login")
        done = client.get(httpx.get(began.headers["location"]).headers["location"])
        found = [SimpleCookie(text) for answer in (began, done) for text in answer.headers.get_list("set-cookie")]
    written = {name: each[name] for cookies in found for each in [cookies] for name in each if each[name].value}
    assert {name: (one["httponly"], one["samesite"], one["path"]) for name, one in written.items()} == {
        "interlingua-login": (True, "lax", "/"), "interlingua-admin": (True, "strict", "/"),
    }  # fmt: skip
    assert not any(one["secure"] for one in written.values())  # http on loopback


def test_over_https_cookies_are_secure(provider: Provider, tmp_path: Path) -> None:
    login = {"issuer": provider.url, "client_id": CLIENT, "url": "https://gateway.example.org", "groups": ["admins"]}
    config = config_of({"auth": "keys", "store": f"sqlite:///{tmp_path}/g.db", "admin_login": login})
    with serving(create_app(config, environ={})) as url:
        began = httpx.get(f"{url}/admin/login")
    [text] = began.headers.get_list("set-cookie")
    assert text.startswith("__Host-interlingua-login=")
    assert {"Secure", "HttpOnly", "SameSite=lax", "Path=/"} <= set(text.split("; "))
    assert "redirect_uri=https%3A%2F%2Fgateway.example.org%2Fadmin%2Flogin%2Fdone" in began.headers["location"]


def _unsigned(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "", algorithm="none")


def _signed_with_public_key(provider: Provider) -> Any:
    """Return a signer that uses the published RSA key as an HMAC secret (RFC 8725, section 2.1)."""
    pem = (
        provider.keys[0]
        .private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )

    def sign(claims: dict[str, Any]) -> str:
        head = _base64(json.dumps({"alg": "HS256", "kid": "one"}).encode())
        text = f"{head}.{_base64(json.dumps(claims).encode())}"
        return f"{text}.{_base64(hmac.new(pem, text.encode(), hashlib.sha256).digest())}"

    return sign


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-client"}, {"aud": "another-client", "azp": CLIENT}, {"aud": [CLIENT, "b"], "azp": "b"},
        {"aud": None}, {"iss": "https://evil.example"}, {"iss": None}, {"exp": 1}, {"exp": None}, {"iat": None},
        {"nonce": "another"}, {"nonce": None}, {"nbf": 2**33}, {"at_hash": "AAAA"},
    ],
    ids=str,
)  # fmt: skip
def test_tokens_with_wrong_claims_are_refused(provider: Provider, tmp_path: Path, claims: dict[str, Any]) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    with _gateway(provider, place) as url:
        provider.claims |= claims
        with httpx.Client() as client:
            refused = _log_in(url, client)
            assert refused.status_code == 401, refused.text
            assert client.get(f"{url}/admin/api/me").status_code == 401
        for name in claims:
            provider.claims.pop(name)
        with httpx.Client() as client:  # the same login without the fault
            assert _log_in(url, client).status_code == 303


@pytest.mark.parametrize("fault", ["none", "stranger", "changed", "hmac", "absent", "garbage"])
def test_tokens_with_wrong_signatures_are_refused(provider: Provider, tmp_path: Path, fault: str) -> None:
    stranger = SigningKey("one")

    def changed(claims: dict[str, Any]) -> str:
        head, _, signature = provider.sign_with_first({**claims, "email": "ann@example.org"}).split(".")
        return f"{head}.{_base64(json.dumps(claims).encode())}.{signature}"

    faults: dict[str, Any] = {
        "none": _unsigned, "changed": changed, "hmac": _signed_with_public_key(provider),
        "absent": lambda _claims: None, "garbage": lambda _claims: "a.b.c",
        "stranger": lambda claims: jwt.encode(claims, stranger.private, algorithm="RS256", headers={"kid": "one"}),
    }  # fmt: skip
    provider.sign = faults[fault]
    with _gateway(provider, f"sqlite:///{tmp_path}/g.db") as url, httpx.Client() as client:
        refused = _log_in(url, client)
        assert refused.status_code == 401
        assert provider.url not in refused.text
        assert "interlingua-admin" not in client.cookies


def test_a_provider_may_replace_its_keys(provider: Provider, tmp_path: Path) -> None:
    with _gateway(provider, f"sqlite:///{tmp_path}/g.db") as url:

        def status() -> int:
            with httpx.Client() as client:
                return _log_in(url, client).status_code

        first = provider.keys[0]
        assert status() == 303
        provider.keys = [SigningKey("two", "ES256"), first]
        assert status() == 303
        provider.keys = [provider.keys[0]]
        assert status() == 303
        provider.sign = lambda claims: jwt.encode(claims, first.private, algorithm="RS256", headers={"kid": "one"})
        assert status() == 401  # the key that was taken away counts no longer


@pytest.mark.parametrize(
    ("login", "claims", "status"),
    [
        ({"emails": ["ann@example.org"]}, {}, 403),
        ({}, {"email_verified": False}, 403),
        ({}, {"email_verified": "true"}, 403),
        ({}, {"email": None}, 403),
        ({}, {"email": "olga@example.org.evil.example"}, 403),
        ({"emails": [], "groups": ["admins"]}, {}, 403),
        ({"emails": [], "groups": ["admins"]}, {"groups": ["users", "admins"]}, 303),
        ({"emails": [], "groups": ["admins"]}, {"groups": "admins"}, 303),
        ({"emails": [], "groups": ["admins"]}, {"groups": ["admin", "admins2", 1]}, 403),
        ({"emails": [], "groups": ["admins"], "groups_claim": "roles"}, {"roles": ["admins"], "email": None}, 303),
    ],
)
def test_only_listed_people_become_administrators(
    provider: Provider, tmp_path: Path, login: dict[str, Any], claims: dict[str, Any], status: int
) -> None:
    provider.claims |= claims
    with _gateway(provider, f"sqlite:///{tmp_path}/g.db", **login) as url, httpx.Client() as client:
        assert _log_in(url, client).status_code == status
        assert client.get(f"{url}/admin/api/me").status_code == (200 if status == 303 else 401)


def test_a_login_ends_only_in_the_browser_that_began_it(provider: Provider, tmp_path: Path) -> None:
    with _gateway(provider, f"sqlite:///{tmp_path}/g.db") as url:
        with httpx.Client() as attacker:
            began = attacker.get(f"{url}/admin/login")
            back = httpx.get(began.headers["location"]).headers["location"]
        with httpx.Client() as victim:
            assert victim.get(back).status_code == 400  # no login began here
            victim.get(f"{url}/admin/login")
            assert victim.get(back).status_code == 401  # another state
        with httpx.Client() as client:
            done = _log_in(url, client)
            assert done.status_code == 303
            again = client.get(str(done.request.url))
            assert again.status_code == 400  # once only
        for query in ("", "?error=access_denied&error_description=%3Cb%3E", "?code=x", "?state=x", "?code=x&state=x"):
            with httpx.Client() as client:
                client.get(f"{url}/admin/login")
                answer = client.get(f"{url}/admin/login/done{query}")
                assert answer.status_code == 401, query
                assert "<b>" not in answer.text


def test_sessions_end_and_forged_cookies_open_nothing(provider: Provider, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    logins, olga = Logins(store.database), Administrator(subject="s", email="olga@example.org")
    with _gateway(provider, place) as url:

        def status(token: str) -> int:
            return httpx.get(f"{url}/admin/api/me", cookies={"interlingua-admin": token}).status_code

        good, short = logins.add(olga, 60), logins.add(olga, 0.2)
        assert status(good) == 200
        removed = logins.add(Administrator(subject="s", email="former@example.org"), 60)
        for token in ("", "x", good[:-1], good + "x", "' OR 1=1 --", removed):
            assert status(token) == 401, token
        until(lambda: status(short) == 401)
        assert logins.drop_expired() == 1
        with store.database.begin() as connection:
            assert good not in str(connection.exec_driver_sql("SELECT * FROM gateway_logins").all())
        wrong = httpx.get(
            f"{url}/admin/api/me", cookies={"interlingua-admin": good}, headers={"authorization": "Bearer x"}
        )
        assert wrong.status_code == 401  # a key that is sent decides
    store.close()


def test_a_provider_that_is_away_or_another_is_reported(provider: Provider, tmp_path: Path) -> None:
    with _gateway(provider, f"sqlite:///{tmp_path}/g.db", issuer=f"{provider.url}/other") as url:
        answer = httpx.get(f"{url}/admin/login")
        assert answer.status_code == 503  # its metadata is of another issuer
        assert provider.url not in answer.text
    with _gateway(provider, f"sqlite:///{tmp_path}/h.db", issuer="http://127.0.0.1:9") as url:
        assert httpx.get(f"{url}/admin/login").status_code == 503
        assert httpx.get(f"{url}/health").status_code == 200


GOOD = """\
auth = "keys"

[admin_login]
issuer = "https://login.example.org"
client_id = "c"
url = "https://gateway.example.org"
emails = ["olga@example.org"]
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"https://login.example.org"', '"http://login.example.org"', 4, "admin_login.issuer must be an https address"),
        ('"https://login.example.org"', '"https://login.example.org?a"', 4, "admin_login.issuer must be an https"),
        ('client_id = "c"', 'client_id = ""', 5, "admin_login.client_id must not be empty"),
        ('client_id = "c"', "", 3, "admin_login.client_id is missing"),
        ('"https://gateway.example.org"', '"https://gateway.example.org/"', 6, "admin_login.url must be an address"),
        ('"https://gateway.example.org"', '"http://10.0.0.1"', 6, "admin_login.url must be an address without"),
        ('["olga@example.org"]', "[]", 7, "admin_login.emails must list an address, or groups a group"),
        ('["olga@example.org"]', '"olga@example.org"', 7, "admin_login.emails must be a list of strings"),
        ('["olga@example.org"]', '["a@b.c"]\ngroups = [""]', 7, "admin_login.emails must list an address, or groups"),
        ('client_id = "c"', 'client_id = "c"\nscopes = ["email"]', 6, "admin_login.scopes must have openid"),
        ('client_id = "c"', 'client_id = "c"\nhours = 0', 6, "admin_login.hours must be > 0"),
        ('client_id = "c"', 'client_id = "c"\nclient_secret = "x"', 3, "admin_login has no setting client_secret"),
        ('auth = "keys"', 'auth = "none"', 3, 'admin_login needs auth = "keys"'),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(DecodeError) as refused:
        read_config(file)
    assert f"line {line}, {words}" in refused.value.message


def test_a_secret_that_is_not_there_is_refused_and_check_names_the_administrators(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    text = GOOD.replace('"keys"\n', f'"keys"\nstore = "sqlite:///{tmp_path}/g.db"\n')
    file.write_text(f'{text}client_secret_env = "NO_SUCH_SECRET"\n')
    with pytest.raises(CallerError, match="NO_SUCH_SECRET is not set"):
        create_app(read_config(file), environ={})
    file.write_text(text)
    found = CliRunner().invoke(cli, ["gateway", "check", "--config", str(file)])
    assert "administrators, by https://login.example.org: olga@example.org" in found.output


@pytest.mark.skipif(not is_installed(), reason=SKIP_REASON)
def test_the_page_offers_the_login(provider: Provider, tmp_path: Path) -> None:
    with _gateway(provider, f"sqlite:///{tmp_path}/g.db") as url, browser(tmp_path / "profile") as page:
        page.open(f"{url}/admin")
        page.wait_for("log in with your organisation")
        page.click("log in with your organisation")
        page.wait_for("olga@example.org", "#who")
        page.wait_for("No key has been made", "#keys")
        assert page.run("return document.cookie") == ""
        page.click("Make a key")
        page.wait_for("Requests a minute")
        page.press("Ann\ue007")
        page.wait_for("it is not shown again")
        page.press("\ue00c")
        page.click("Log out")
        page.wait_for("Key of an administrator")
        page.open(f"{url}/admin")
        page.wait_for("log in with your organisation")
        assert "Ann" not in page.run("return document.documentElement.outerHTML")
