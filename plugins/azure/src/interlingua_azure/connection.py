"""How to reach a resource on Azure: its host, its addresses, keys and Entra tokens (WIRE.md, Connection)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import isawaitable
from typing import Any
from urllib.parse import quote

import attrs

from interlingua.errors import AuthenticationError, CallerError, ProviderError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    HttpRequest,
    WireRequest,
    bearer_auth,
    no_auth,
    quote_model,
)

_Auth = Callable[[WireRequest], Mapping[str, str]]
_Credentials = Callable[[ProviderError | None], Any]
CHAT, RESPONSES, MESSAGES = "chat", "responses", "messages"
DEPLOYMENT = "deployment"
"""In a request's echo: the deployment that is asked, for the older addresses."""

_ENDPOINT, _KEY = "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"
_TOKEN, _VERSION = "AZURE_OPENAI_AD_TOKEN", "OPENAI_API_VERSION"
_CLAUDE_KEY, _CLAUDE_URL = "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_BASE_URL"
_CLAUDE_RESOURCE = "ANTHROPIC_FOUNDRY_RESOURCE"
_ENV = (_KEY, _TOKEN, _CLAUDE_KEY, _ENDPOINT, _VERSION, _CLAUDE_URL, _CLAUDE_RESOURCE)
_NO_ENDPOINT = f"no endpoint: set {_ENDPOINT} or pass base_url=, for example https://RESOURCE.openai.azure.com"
_IDENTITY = "azure.identity"
_SCOPE, _DATED_SCOPE = "https://ai.azure.com/.default", "https://cognitiveservices.azure.com/.default"
_PATHS = re.compile(r"(/openai(/v1)?|/anthropic(/v1)?)?/*$")  # what users copy behind the host of a resource
_WITHOUT_DATE = ("v1", "preview", "latest")
_CHAT_PATHS = r"/(openai/v1/|openai/deployments/(?P<model>[^/]+)/|models/)?chat/completions"


@attrs.frozen
class EntraToken:
    """An Entra token, and its expiry if that is known."""

    text: str = attrs.field(repr=False)
    expires_at: datetime | None = None


def connection(settings: ConnectionSettings) -> Connection:
    """Return the connection to the resource.

    Options: `api_version` (a date selects the older addresses); `credentials` (an Entra token, a function that returns
    one or an awaitable of one, or a credential of azure-identity) and its `scope`; `deployments` (deployment -> model).
    """
    environ, options = settings.environ, settings.options
    given = settings.base_url or environ.get(_ENDPOINT)
    claude = environ.get(_CLAUDE_URL) if settings.base_url is None else None
    if claude is None and settings.base_url is None and (resource := environ.get(_CLAUDE_RESOURCE)):
        claude = f"https://{resource}.services.ai.azure.com"
    base = _PATHS.sub("", given or claude or "https://resource.openai.azure.com")
    version = str(options.get("api_version") or environ.get(_VERSION) or "v1")
    options.get("deployments")  # read by `to_wire` and `capabilities`
    key_of, credentials = _secrets(settings, _SCOPE if version in _WITHOUT_DATE else _DATED_SCOPE)
    has_key = key_of is not None or credentials is not None
    sign = None if credentials is None else _bearer
    if given is None and claude is None:
        credentials, sign = _no_endpoint, None
    return Connection(
        base_url=base,
        auth=key_of or no_auth,
        credentials=credentials,
        sign=sign,
        url=partial(
            _url,
            base,
            _PATHS.sub("", claude) if claude else base.replace(".openai.azure.com", ".services.ai.azure.com"),
            version,
        ),
        list_headers=("anthropic-beta",),
        request_id_headers=("apim-request-id", "x-ms-request-id"),
        env_vars=_ENV,
        has_key=has_key or settings.base_url is not None,
        hosts=("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com", "models.ai.azure.com"),
        endpoints={
            RESPONSES: r"/openai(/v1)?/responses",
            CHAT: _CHAT_PATHS,
            MESSAGES: r"/anthropic/v1/messages",
        },
        unread_endpoints={
            "embeddings": r"/(openai/v1|openai/deployments/(?P<model>[^/]+)|models)/embeddings",
            "images": r"/(openai/v1|openai/deployments/(?P<model>[^/]+))/images/\w+",
            "audio": r"/(openai/v1|openai/deployments/(?P<model>[^/]+))/audio/\w+",
        },
    )


def _url(base: str, claude: str, version: str, request: WireRequest) -> str:
    """Return the URL: a dated version is appended to the older addresses, which contain the deployment (WIRE.md)."""
    if request.path.startswith("/anthropic/"):
        return claude + request.path
    if version == "v1" or request.api not in (CHAT, RESPONSES):
        return base + request.path
    query = f"?api-version={quote(version, safe='')}"
    if version in _WITHOUT_DATE:
        return base + request.path + query
    if request.api == RESPONSES or DEPLOYMENT not in request.echo:
        return base + request.path.replace("/openai/v1/", "/openai/") + query
    deployment = quote_model(request.echo[DEPLOYMENT])
    return f"{base}/openai/deployments/{deployment}/chat/completions{query}"


def _secrets(settings: ConnectionSettings, scope: str) -> tuple[_Auth | None, _Credentials | None]:
    """Return the headers of a fixed secret, or a source of tokens; settings have precedence over the environment."""
    environ = settings.environ
    given = settings.options.get("credentials")
    scope = str(settings.options.get("scope") or scope)
    key = settings.api_key
    if given is None and key is None:
        given = environ.get(_TOKEN)
    if isinstance(given, str):
        return bearer_auth(given), None
    if given is not None:
        return None, partial(_read_token, given, scope)
    key, claude = key or environ.get(_KEY), key or environ.get(_CLAUDE_KEY)
    if key or claude:
        return partial(_key_headers, str(key or claude), str(claude or key)), None
    return None, partial(_read_signed_in, scope) if find_spec("azure") and find_spec(_IDENTITY) else None


def _key_headers(key: str, claude: str, request: WireRequest) -> Mapping[str, str]:
    """Return the key's headers; Claude's endpoint reads `x-api-key`, and its gateway `api-key`."""
    if request.path.startswith("/anthropic/"):
        return {"x-api-key": claude, "api-key": claude}
    return {"api-key": key}


def _bearer(_outgoing: HttpRequest, token: EntraToken) -> Mapping[str, str]:
    return {"authorization": f"Bearer {token.text}"}


def _no_endpoint(_refused: ProviderError | None) -> Any:
    raise CallerError(_NO_ENDPOINT)


def _read_signed_in(scope: str, _refused: ProviderError | None) -> Any:
    """Get a token of the signed-in user from azure-identity."""
    return _token(import_module(_IDENTITY).DefaultAzureCredential().get_token(scope))


def _read_token(given: Any, scope: str, _refused: ProviderError | None) -> Any:
    """Ask a function, or a credential of azure-identity."""
    made = given.get_token(scope) if hasattr(given, "get_token") else given()
    return _wait_for(made) if isawaitable(made) else _token(made)


async def _wait_for(made: Awaitable[Any]) -> EntraToken:
    return _token(await made)


def _token(made: Any) -> EntraToken:
    """Make a token from a string or from azure-identity's AccessToken.

    Raises:
        AuthenticationError: `made` is neither.
    """
    text, expires = getattr(made, "token", made), getattr(made, "expires_on", None)
    if not isinstance(text, str) or not text:
        raise AuthenticationError("the credentials gave no token", retryable=False)
    return EntraToken(text, datetime.fromtimestamp(expires, UTC) if expires is not None else None)
