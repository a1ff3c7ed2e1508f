"""The service: its two hosts, auth, the language of its errors, attribution (sheet zai §1, seed 004).

Never sends anything and never puts a key anywhere but into the signer's answer.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins.wire import Connection, ConnectionSettings, bearer_auth
from interlingua_chat_completions.format import API, ENDPOINT

_HOSTS = {"international": "https://api.z.ai", "china": "https://open.bigmodel.cn"}
_PATHS = {"standard": "/api/paas/v4", "coding": "/api/coding/paas/v4"}  # the second one is recorded
_KEYS = {"international": ("ZAI_API_KEY",), "china": ("ZHIPUAI_API_KEY", "ZAI_API_KEY")}


def connection(settings: ConnectionSettings) -> Connection:
    """Say how to reach the service.

    Options: `region` (`international`, `china`), `plan` (`standard`, `coding`: the endpoint of coding-plan keys),
    `attribution` (a table, see `attribution_headers`).

    Raises:
        CapabilityError: a region or plan that is not there.
    """
    region = _known("region", settings.options.get("region") or "international", _HOSTS)
    plan = _known("plan", settings.options.get("plan") or "standard", _PATHS)
    environ = settings.environ
    key = settings.api_key or next((environ[name] for name in _KEYS[region] if environ.get(name)), None)
    own = _HOSTS[region] + _PATHS[plan]
    base = settings.base_url or environ.get("ZAI_BASE_URL") or own

    language = {"accept-language": "en-US,en"} if region == "international" else {}
    return Connection(
        base_url=base.rstrip("/"),
        auth=bearer_auth(key),
        headers={**language, **attribution_headers(settings.options.get("attribution") or {})},
        env=(*_KEYS[region], "ZAI_BASE_URL"),
        has_key=bool(key) or base != own,
        hosts=("api.z.ai", "open.bigmodel.cn"),
        endpoints={API: ENDPOINT},
    )


def attribution_headers(said: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers by which a client says who it is (seed 004, special feature 4); none when nothing is said.

    Args:
        said: `user_agent` as it is; `project`, `session`, `request`, `client` and further names become
            `x-<agent>-<name>`, where `agent` is the client's name, `opencode` as the seed has it.
    """
    agent = str(said.get("agent") or "opencode")
    found = {"user-agent": str(said["user_agent"])} if said.get("user_agent") else {}
    names = [name for name in said if name not in ("agent", "user_agent") and said[name]]
    return found | {f"x-{agent}-{name.replace('_', '-')}".lower(): str(said[name]) for name in names}


def _known(option: str, value: Any, choices: Mapping[str, str]) -> str:
    if value not in choices:
        raise CapabilityError(f"{option} is one of {', '.join(choices)}, not {value!r}", path=f"options.{option}")
    return str(value)
