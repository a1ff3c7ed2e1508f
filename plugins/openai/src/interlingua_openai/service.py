"""The service: host, auth, endpoints, and what its errors mean (sheets openai_chat §1 and §8, openai_responses §1).

Never sends anything and never puts a key anywhere but into the signer's answer.
The plugin object and both wire formats come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import ProviderError
from interlingua.plugins.wire import Connection, ConnectionSettings, WireResponse, bearer_auth
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.errors import from_wire_envelope, from_wire_failure
from interlingua_openai.catalogue import CHAT, RESPONSES

_BASE_URL = "https://api.openai.com/v1"

# Words of a response that failed (sheet openai_responses §5) beyond those both wires share.
ERROR_CODES = {
    "invalid_prompt": "BadRequestError",
    "bio_policy": "ContentRefusedError",
    "misalignment_policy_violation": "ContentRefusedError",
    "data_residency_mismatch": "PermissionDeniedError",
}
_ERRORS = Dialect(error_codes=ERROR_CODES)
_NO_HEADERS: Mapping[str, str] = {}


def connection(settings: ConnectionSettings) -> Connection:
    """Say how to reach the service.

    Options: `organization` and `project` become headers; without them `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID` do.
    """
    environ = settings.environ
    key = settings.api_key or environ.get("OPENAI_API_KEY")
    base = settings.base_url or environ.get("OPENAI_BASE_URL") or _BASE_URL

    headers = {
        "openai-organization": settings.options.get("organization") or environ.get("OPENAI_ORG_ID"),
        "openai-project": settings.options.get("project") or environ.get("OPENAI_PROJECT_ID"),
    }
    return Connection(
        base_url=base.rstrip("/"),
        auth=bearer_auth(key),
        headers={name: str(value) for name, value in headers.items() if value},
        env=("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),
        has_key=bool(key) or base != _BASE_URL,
        hosts=("api.openai.com",),
        endpoints={RESPONSES: r"/responses$", CHAT: r"/chat/completions$"},
    )


def from_wire_error(response: WireResponse) -> ProviderError:
    """Turn a failed answer into the typed error its body names; status alone decides where there is no body."""
    return from_wire_failure(response, _ERRORS)


def error_from_body(
    body: Mapping[str, Any], *, status: int | None = None, headers: Mapping[str, str] = _NO_HEADERS
) -> ProviderError:
    """Turn an error inside a good answer or a stream into its typed error; a status below 400 says nothing."""
    told = status if status is not None and status >= 400 else None
    return from_wire_envelope(body, _ERRORS, status=told, headers=headers)
