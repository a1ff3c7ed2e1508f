"""The service: its hosts and its key (sheet mistral §1).

Never sends anything and never puts a key anywhere but into the signer's answer.
The plugin object comes in.
"""

from __future__ import annotations

from interlingua.errors import CapabilityError
from interlingua.plugins.wire import Connection, ConnectionSettings, bearer_auth
from interlingua_chat_completions.format import API, ENDPOINT

_HOSTS = {"": "api.mistral.ai", "eu": "api.eu.mistral.ai", "us": "api.us.mistral.ai"}


def connection(settings: ConnectionSettings) -> Connection:
    """Say how to reach the service; option: `region` (`eu`, `us`).

    Raises:
        CapabilityError: a region that is not there.
    """
    region = str(settings.options.get("region") or "")
    if region not in _HOSTS:
        raise CapabilityError(f"region is one of eu, us, not {region!r}", path="options.region")
    environ = settings.environ
    key = settings.api_key or environ.get("MISTRAL_API_KEY")
    own = f"https://{_HOSTS[region]}/v1"
    base = settings.base_url or environ.get("MISTRAL_BASE_URL") or own

    return Connection(
        base_url=base.rstrip("/"),
        auth=bearer_auth(key),
        env=("MISTRAL_API_KEY", "MISTRAL_BASE_URL"),
        has_key=bool(key) or base != own,
        hosts=tuple(_HOSTS.values()),
        endpoints={API: ENDPOINT},
    )
