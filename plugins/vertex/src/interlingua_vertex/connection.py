"""How to reach Vertex AI: its hosts, its addresses, access tokens and API keys (WIRE.md, Connection)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import isawaitable
from typing import Any

import attrs

from interlingua.errors import AuthenticationError, CallerError, ProviderError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    HttpRequest,
    WireRequest,
    bearer_auth,
    no_auth,
)

_Auth = Callable[[WireRequest], Mapping[str, str]]
_Credentials = Callable[[ProviderError | None], Any]
GENERATE, INTERACTIONS, MESSAGES = "generate", "interactions", "messages"

_PROJECTS = ("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID")  # the first that is set wins
_LOCATIONS = ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")
_KEY = "GOOGLE_API_KEY"
_ENV = (_KEY, *_PROJECTS, *_LOCATIONS)
_MULTI_REGIONS = ("us", "eu")
_NO_PROJECT = f"no project: set {_PROJECTS[0]} or pass settings={{'vertex': {{'options': {{'project': …}}}}}}"
_AUTH, _TRANSPORT = "google.auth", "google.auth.transport.requests"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_MODEL = r"/models/(?P<model>[^/:]+)"


@attrs.frozen
class GoogleToken:
    """An access token, and its expiry if that is known."""

    text: str = attrs.field(repr=False)
    expires_at: datetime | None = None


def connection(settings: ConnectionSettings) -> Connection:
    """Return the connection to the service.

    Options: `project` and `location` (global by default); `credentials` (an access token, a function that returns one
    or an awaitable of one, or credentials of google-auth); `version` of the addresses; `user_project`, the project to
    bill. With a project, `api_key` is an access token; without one it is an API key.
    """
    environ, options = settings.environ, settings.options
    project = str(options.get("project") or "") or _first(environ, _PROJECTS)
    location = str(options.get("location") or "") or _first(environ, _LOCATIONS) or "global"
    auth, credentials = _secrets(settings, project)
    has_key = auth is not None or credentials is not None
    sign = None if credentials is None else _bearer
    base = (settings.base_url or f"https://{host_of(location)}").rstrip("/")
    if credentials is not None and not project:
        credentials, sign = _no_project, None
    user_project = options.get("user_project")
    return Connection(
        base_url=base,
        auth=auth or no_auth,
        credentials=credentials,
        sign=sign,
        url=partial(_url, base, options.get("version"), f"/projects/{project}/locations/{location}" if project else ""),
        headers={"x-goog-user-project": str(user_project)} if user_project else {},
        list_headers=("anthropic-beta",),
        env_vars=_ENV,
        has_key=has_key or settings.base_url is not None,
        hosts=("aiplatform.googleapis.com", "aiplatform.*.rep.googleapis.com"),
        endpoints={
            GENERATE: rf"{_MODEL}:(g|streamG)enerateContent",
            INTERACTIONS: r"/interactions$",
            MESSAGES: rf"{_MODEL}:(r|streamR)awPredict",
        },
        unread_endpoints={
            "tokens": r"/models/count-tokens:rawPredict|" + rf"{_MODEL}:countTokens",
            "predict": r"/models/[^/:]+:(predict|predictLongRunning|embedContent)",
        },
    )


def host_of(location: str) -> str:
    """Return the host of a location: global, a multi-region or a region."""
    if location == "global":
        return "aiplatform.googleapis.com"
    if location in _MULTI_REGIONS:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def _url(base: str, version: str | None, place: str, request: WireRequest) -> str:
    """Return the URL: the API version of the SDK, project and location, then the path."""
    version = version or ("v1" if request.api == MESSAGES else "v1beta1")
    return f"{base}/{version}{place}{request.path}"


def _secrets(settings: ConnectionSettings, project: str) -> tuple[_Auth | None, _Credentials | None]:
    """Return the headers of a fixed secret, or a source of tokens; settings have precedence over the environment."""
    given = settings.options.get("credentials")
    if given is None and project:
        given = settings.api_key
    if isinstance(given, str):
        return bearer_auth(given), None
    if given is not None:
        return None, partial(_read_token, given)
    key = settings.api_key or settings.environ.get(_KEY)
    if key and not project:
        return partial(_key_header, key), None
    return None, _read_signed_in if project and find_spec("google") and find_spec(_AUTH) else None


def _key_header(key: str, _request: WireRequest) -> Mapping[str, str]:
    return {"x-goog-api-key": key}


def _bearer(_outgoing: HttpRequest, token: GoogleToken) -> Mapping[str, str]:
    return {"authorization": f"Bearer {token.text}"}


def _no_project(_refused: ProviderError | None) -> Any:
    raise CallerError(_NO_PROJECT)


def _read_signed_in(refused: ProviderError | None) -> Any:
    """Get a token of this machine's default credentials from google-auth."""
    return _read_token(import_module(_AUTH).default(scopes=[_SCOPE])[0], refused)


def _read_token(given: Any, refused: ProviderError | None) -> Any:
    """Get a token from a function or from google-auth's credentials, refreshed if they expired or were rejected."""
    if not hasattr(given, "refresh"):
        made = given()
        return _wait_for(made) if isawaitable(made) else _token(made)
    if refused is not None or not given.valid:
        given.refresh(import_module(_TRANSPORT).Request())
    return _token(given.token, given.expiry)


async def _wait_for(made: Awaitable[Any]) -> GoogleToken:
    return _token(await made)


def _token(text: Any, expires: datetime | None = None) -> GoogleToken:
    """Make a token; google-auth's expiry is in UTC without a time zone.

    Raises:
        AuthenticationError: `text` is not a string.
    """
    if not isinstance(text, str) or not text:
        raise AuthenticationError("the credentials gave no token", retryable=False)
    return GoogleToken(text, expires if expires is None or expires.tzinfo else expires.replace(tzinfo=UTC))
