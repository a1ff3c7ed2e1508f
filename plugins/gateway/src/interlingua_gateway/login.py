"""Administrators log in with OpenID Connect: the authorization code flow, and sessions in the gateway's database."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Mapping
from typing import Any

import attrs
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from interlingua.errors import CallerError, InterlinguaError, PermissionDeniedError
from interlingua_gateway.config import AdminLogin
from interlingua_gateway.database import LOGINS, GatewayDatabase
from interlingua_gateway.seal import Sealer
from interlingua_gateway.store import ask_store, note_change

LOGIN_PATH = "/admin/login"
"""The path that starts a login; the provider sends browsers back to `/done` below it."""
_TENANT = "admin-login"  # of seals: no key has this id
_FLOW_SECONDS = 600  # most seconds between the start of a login and its end
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
_HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
_log = logging.getLogger("interlingua.gateway")


@attrs.frozen(kw_only=True)
class Administrator:
    """Someone who has logged in.

    Attributes:
        subject: the provider's name for this person, which never changes.
        email: the address, if the provider has verified it; else empty.
        groups: the groups in the token.
    """

    subject: str
    email: str = ""
    groups: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name for the audit log."""
        return self.email or f"subject {self.subject}"


class Logins:
    """The sessions of administrators. The methods block, as those of `GatewayStore` do.

    Args:
        database: the database; it has digests of the tokens of sessions, not the tokens.
    """

    def __init__(self, database: GatewayDatabase) -> None:
        self._database = database

    def add(self, who: Administrator, seconds: float) -> str:
        """Add a session; return its token."""
        token, now = secrets.token_urlsafe(32), time.time()
        row = {"hash": _digest(token), "created": now, "expires": now + seconds, **attrs.asdict(who)}
        row["groups"] = json.dumps(who.groups)
        with self._database.begin() as connection:
            connection.execute(LOGINS.insert().values(row))
            note_change(connection, who.name, "log in", who.subject, {})
        return token

    def find(self, token: str) -> Administrator | None:
        """Return whose session a token is of; None if it has ended."""
        valid = (LOGINS.c.hash == _digest(token)) & (LOGINS.c.expires > time.time())
        with self._database.begin() as connection:
            row = connection.execute(LOGINS.select().where(valid)).first()
        if row is None:
            return None
        return Administrator(subject=row.subject, email=row.email, groups=tuple(json.loads(row.groups)))

    def end(self, token: str) -> None:
        """End a session."""
        with self._database.begin() as connection:
            ended = LOGINS.delete().where(LOGINS.c.hash == _digest(token)).returning(LOGINS.c.subject, LOGINS.c.email)
            row = connection.execute(ended).first()
            if row is not None:
                note_change(connection, Administrator(**row._asdict()).name, "log out", row.subject, {})

    def drop_expired(self) -> int:
        """Delete the sessions that have expired; return how many."""
        with self._database.begin() as connection:
            return connection.execute(LOGINS.delete().where(LOGINS.c.expires <= time.time())).rowcount


class LoginService:
    """Logs administrators in with Authlib's OpenID Connect client (extra `oidc`).

    Args:
        config: the provider, and who may log in.
        secret: the client's secret; empty for a public client, which PKCE alone protects.
        database: keeps the sessions.
        sealer: seals what a browser carries while it is at the provider.

    Raises:
        CallerError: Authlib is not installed.
    """

    def __init__(self, config: AdminLogin, secret: str, database: GatewayDatabase, sealer: Sealer) -> None:
        try:
            from authlib.integrations.starlette_client import OAuth  # type: ignore[import-untyped]  # noqa: PLC0415
        except ImportError as error:
            raise CallerError("admin_login needs Authlib: pip install 'interlingua-gateway[oidc]'") from error
        self._config, self._sealer = config, sealer
        self.logins = Logins(database)
        secure = config.url.startswith("https:")
        prefix = "__Host-" if secure else ""  # no other host can set a cookie with this prefix
        self._flow, self._session = f"{prefix}interlingua-login", f"{prefix}interlingua-admin"
        self._cookie: dict[str, Any] = {"secure": secure, "httponly": True, "path": "/"}
        client = {"scope": " ".join(config.scopes), "code_challenge_method": "S256", "timeout": 10.0}
        if not secret:
            client["token_endpoint_auth_method"] = "none"  # noqa: S105  of the protocol
        self._client = OAuth().register(
            "admin", client_id=config.client_id, client_secret=secret or None, client_kwargs=client,
            server_metadata_url=f"{config.issuer.rstrip('/')}/.well-known/openid-configuration",
        )  # fmt: skip

    async def begin(self, request: Request) -> Response:
        """Redirect a browser to the provider."""
        flow: dict[str, Any] = {}
        request.scope["session"] = flow
        try:
            await self._read_metadata()
            answer: Response = await self._client.authorize_redirect(request, f"{self._config.url}{LOGIN_PATH}/done")
        except Exception as error:  # of Authlib, of its HTTP client, of a provider with a wrong address
            _log.error("the login provider %s does not respond as expected: %r", self._config.issuer, error)
            return _refusal(503, "the login provider does not respond; the gateway's log has the reason")
        seal = self._sealer.seal({"flow": flow, "began": time.time()}, _TENANT)
        answer.headers.update(_HEADERS)
        # Lax, because the provider sends the browser back from another site
        answer.set_cookie(self._flow, seal, max_age=_FLOW_SECONDS, samesite="lax", **self._cookie)
        return answer

    async def finish(self, request: Request) -> Response:
        """Start a session for a browser that the provider has sent back."""
        kept = self._sealer.unseal(request.cookies.get(self._flow, ""), _TENANT) or {}
        if not kept or kept["began"] < time.time() - _FLOW_SECONDS:
            return _refusal(400, f"this login did not begin here, or too long ago: begin again at {LOGIN_PATH}")
        request.scope["session"] = dict(kept["flow"])
        try:
            claims = await self._read_token(request)
        except Exception as error:  # as above; its text may quote what the browser sent
            _log.info("a login was refused: %.300r", error)
            return self._without_flow(_refusal(401, "the login failed; the gateway's log has the reason"))
        who = _administrator_of(claims, self._config.groups_claim)
        if not self.is_allowed(who):
            _log.info("%.200a logged in, but admin_login does not list the address or a group", who.name)
            return self._without_flow(_refusal(403, "you are not an administrator of this gateway"))
        seconds = self._config.hours * 3600
        try:
            token = await ask_store(self.logins.add, who, seconds)
        except InterlinguaError as error:
            return _refusal(503, error.message)
        answer = self._without_flow(RedirectResponse("/admin", 303, _HEADERS))
        answer.set_cookie(self._session, token, max_age=int(seconds), samesite="strict", **self._cookie)
        return answer

    async def find(self, request: Request) -> Administrator | None:
        """Return who is logged in with the browser of a request; None without a session.

        Raises:
            PermissionDeniedError: the request would change something, and is not of a page of this gateway.
            OverloadedError: the database does not respond.
        """
        token = request.cookies.get(self._session)
        who = await ask_store(self.logins.find, token) if token else None
        if who is None or not self.is_allowed(who):
            return None
        if request.method != "GET" and request.headers.get("origin") != self._config.url:
            raise PermissionDeniedError(f"only pages of {self._config.url} may change something")
        return who

    async def end(self, request: Request, answer: Response) -> None:
        """End the session of a browser.

        Raises:
            OverloadedError: the database does not respond.
        """
        await ask_store(self.logins.end, request.cookies.get(self._session, ""))
        answer.delete_cookie(self._session, samesite="strict", **self._cookie)

    def is_allowed(self, who: Administrator) -> bool:
        """Return True if the configuration lists a verified address or a group of a person."""
        emails = {email.lower() for email in self._config.emails}
        return who.email.lower() in emails or not set(self._config.groups).isdisjoint(who.groups)

    def _without_flow(self, answer: Response) -> Response:
        answer.delete_cookie(self._flow, samesite="lax", **self._cookie)
        return answer

    async def _read_metadata(self) -> None:
        """Read the provider's metadata, once; it must be of the configured issuer.

        Keys are read again for each login, so that the provider's present keys count.
        """
        found = await self._client.load_server_metadata()
        if found.get("issuer") != self._config.issuer:
            self._client.server_metadata.clear()
            raise ValueError(f"its metadata is of the issuer {found.get('issuer')!a}")
        offered = found.get("id_token_signing_alg_values_supported") or ()
        found["id_token_signing_alg_values_supported"] = [one for one in offered if one in _ALGORITHMS] or ["RS256"]
        found.pop("jwks", None)

    async def _read_token(self, request: Request) -> Mapping[str, Any]:
        """Return the claims of the ID token for the code in a request; Authlib checks state, nonce and signature."""
        await self._read_metadata()
        expected = {
            "iss": {"essential": True, "value": self._config.issuer},
            "aud": {"essential": True, "value": self._config.client_id},
        }
        token = await self._client.authorize_access_token(request, claims_options=expected)
        claims: Mapping[str, Any] | None = token.get("userinfo")
        if claims is None:
            raise ValueError("the provider's answer has no ID token")
        return claims


def _administrator_of(claims: Mapping[str, Any], groups_claim: str) -> Administrator:
    email, groups = claims.get("email"), claims.get(groups_claim)
    verified = claims.get("email_verified") is True and isinstance(email, str)
    named = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    return Administrator(
        subject=str(claims["sub"]),
        email=str(email) if verified else "",
        groups=tuple([name for name in named if isinstance(name, str)]),
    )


def _refusal(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, _HEADERS)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
