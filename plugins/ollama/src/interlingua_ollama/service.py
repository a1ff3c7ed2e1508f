"""The service: a server of one's own or the hosted one, its key, and what its errors mean (sheet ollama §1, §6).

Never sends anything and never puts a key anywhere but into the signer's answer.
The plugin object and the readers come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import (
    AuthenticationError,
    ContextWindowExceededError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    ServerError,
)
from interlingua.json import dumps, loads
from interlingua.plugins.wire import (
    Connection,
    ConnectionSettings,
    WireResponse,
    bearer_auth,
    error_class_for_status,
    error_for_status,
    retry_after,
)
from interlingua_ollama.catalogue import API
from interlingua_ollama.host import base_url_of

HOSTED = "https://ollama.com"
_LOCAL = ("localhost:11434", "127.0.0.1:11434")

# Errors are a sentence without a type (sheet §6); an overflow is one only where `truncate` is off.
_OVERFLOW = ("exceeded max context length", "exceeds the context length", "exceeds maximum context length")
_NO_HEADERS: Mapping[str, str] = {}


def connection(settings: ConnectionSettings) -> Connection:
    """Say how to reach the server; options: `hosted` chooses ollama.com.

    A key the caller gave is always sent; `OLLAMA_API_KEY` only over https, for the environment does not know the host.
    """
    environ = settings.environ
    hosted = bool(settings.options.get("hosted"))
    said = settings.base_url or (HOSTED if hosted else environ.get("OLLAMA_HOST") or "")
    base = base_url_of(said).removesuffix("/api")
    key = settings.api_key or (environ.get("OLLAMA_API_KEY") if base.startswith("https://") else None)
    return Connection(
        base_url=base,
        auth=bearer_auth(key),
        framing="ndjson",
        env=("OLLAMA_HOST", "OLLAMA_API_KEY"),
        has_key=bool(key) or base != HOSTED,
        hosts=(*_LOCAL, "ollama.com"),
        endpoints={API: r"/api/(chat|generate)$"},
    )


def from_wire_error(response: WireResponse) -> ProviderError:
    """Turn a failed answer into its typed error; status alone decides where there is no body."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    if not isinstance(body, dict) or not body.get("error"):
        return error_for_status(response)
    return error_from_body(body, status=response.status, headers=response.headers)


def error_from_body(
    body: Mapping[str, Any], *, status: int | None = None, headers: Mapping[str, str] = _NO_HEADERS
) -> ProviderError:
    """Turn an `error` object, of a failed answer or of a line in a stream, into its typed error."""
    told = body["error"]
    message = told if isinstance(told, str) else dumps(told).decode()
    if status is None or status < 400:
        own = body.get("status")
        status = own if isinstance(own, int) and own >= 400 else None
    return _class_of(message.lower(), status)(message, status=status, retry_after=retry_after(headers))


def _class_of(words: str, status: int | None) -> type[ProviderError]:
    if any(phrase in words for phrase in _OVERFLOW):
        return ContextWindowExceededError
    if status is not None:
        return error_class_for_status(status)
    if words.startswith("model ") and "not found" in words:
        return ModelNotFoundError
    if words == "unauthorized":
        return AuthenticationError
    return OverloadedError if "server busy" in words else ServerError
