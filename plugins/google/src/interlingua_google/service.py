"""The service: hosts, versions, auth, and where a model's methods are (sheet gemini §1).

Never sends anything and never puts a key anywhere but into the signer's answer.
The plugin object, `to_wire` and `auxiliary` come in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from interlingua.plugins.wire import Connection, ConnectionSettings, WireRequest, no_auth
from interlingua_google.catalogue import API

HOST = "https://generativelanguage.googleapis.com"
# The SDK's default is v1 since its 3.0, but the `*-latest` aliases, some previews and the speech models exist on v1beta
# only, and everything v1 has is there too (sheet §1).
VERSION = "v1beta"
CLOUD_VERSION = "v1beta1"
_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")  # the first wins (sheet §1)
_BASE = "GOOGLE_GEMINI_BASE_URL"
_ENDPOINTS = {API: r":(g|streamG)enerateContent$"}
_HOSTS = ("generativelanguage.googleapis.com", "aiplatform.googleapis.com")
_has_version = re.compile(r"/v\d+(alpha|beta)?\d*(/|$)").search


def connection(settings: ConnectionSettings) -> Connection:
    """Say how to reach the service.

    Options: `version` (v1beta by default); `user_project` becomes `x-goog-user-project`. With `project` the request
    goes to the cloud host of `region` (global by default) with a bearer token: the option `token` (text, or a function
    that gives a fresh one), else the key.
    """
    if settings.options.get("project"):
        return _cloud(settings)
    key = settings.api_key or next((found for name in _KEYS if (found := settings.environ.get(name))), None)
    base = settings.base_url or settings.environ.get(_BASE) or HOST
    version = str(settings.options.get("version") or VERSION)

    def auth(_request: WireRequest) -> Mapping[str, str]:
        return {"x-goog-api-key": str(key)}

    return Connection(
        base_url=_versioned(base, version),
        auth=auth if key else no_auth,
        headers=_headers(settings.options),
        env=(*_KEYS, _BASE),
        has_key=bool(key) or settings.base_url is not None,
        hosts=_HOSTS,
        endpoints=_ENDPOINTS,
    )


def _cloud(settings: ConnectionSettings) -> Connection:
    options = settings.options
    region = str(options.get("region") or "global")
    token = options.get("token") or settings.api_key
    host = "aiplatform.googleapis.com" if region == "global" else f"{region}-aiplatform.googleapis.com"
    base = _versioned(settings.base_url or f"https://{host}", str(options.get("version") or CLOUD_VERSION))

    def auth(_request: WireRequest) -> Mapping[str, str]:
        return {"authorization": f"Bearer {token() if callable(token) else token}"}

    return Connection(
        base_url=f"{base}/projects/{options['project']}/locations/{region}/publishers/google",
        auth=auth if token else no_auth,
        headers=_headers(options),
        has_key=bool(token) or settings.base_url is not None,
        hosts=_HOSTS,
        endpoints=_ENDPOINTS,
    )


def _versioned(base: str, version: str) -> str:
    base = base.rstrip("/")
    return base if _has_version(base) else f"{base}/{version}"


def _headers(options: Mapping[str, Any]) -> dict[str, str]:
    project = options.get("user_project")
    return {"x-goog-user-project": str(project)} if project else {}


def model_path(model: str) -> str:
    """Return the path of a model; a name with a slash (`tunedModels/…`, `endpoints/…`) is one already."""
    return f"/{model.lstrip('/')}" if "/" in model else f"/models/{model}"


def method_path(model: str, *, stream: bool) -> str:
    """Return the path of the method that answers; without `alt=sse` a stream would be one JSON array (sheet §1)."""
    return f"{model_path(model)}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
