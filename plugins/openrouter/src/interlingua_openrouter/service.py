"""The service: host, auth, attribution, and what a failed answer means (sheet openrouter §1, §5).

Never sends anything and never puts a key anywhere but into the signer's answer.
The plugin object comes in.
"""

from __future__ import annotations

from interlingua.errors import ProviderError
from interlingua.plugins.wire import Connection, ConnectionSettings, WireResponse, bearer_auth
from interlingua_chat_completions.format import API, ENDPOINT
from interlingua_openrouter.dialect import DIALECT, FORMAT

_BASE_URL = "https://openrouter.ai/api/v1"
_HEADERS = {
    "referer": "http-referer",
    "title": "x-openrouter-title",
    "categories": "x-openrouter-categories",
    "metadata": "x-openrouter-metadata",
}


def connection(settings: ConnectionSettings) -> Connection:
    """Say how to reach the service.

    Options: `referer` (the app's URL), `title` (its name), `categories` (comma-separated) say who calls; `metadata`
    asks for `openrouter_metadata` in the answer. Each becomes its header; none is sent unasked.
    """
    environ = settings.environ
    key = settings.api_key or environ.get("OPENROUTER_API_KEY")
    base = settings.base_url or environ.get("OPENROUTER_BASE_URL") or _BASE_URL

    options = settings.options
    return Connection(
        base_url=base.rstrip("/"),
        auth=bearer_auth(key),
        headers={header: str(options[name]) for name, header in _HEADERS.items() if options.get(name)},
        env=("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
        has_key=bool(key) or base != _BASE_URL,
        hosts=("openrouter.ai",),
        endpoints={API: ENDPOINT},
    )


def from_wire_error(response: WireResponse) -> ProviderError:
    """Turn a failed answer into the typed error its body names; a 402 is worth another try only when it says when."""
    error = FORMAT.from_wire_error(response, DIALECT)
    if response.status == 402:
        error.retryable = error.retry_after is not None
    return error
