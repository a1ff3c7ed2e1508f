"""The provider object for Z.ai: the shared format's hooks, its connection, and its deviations in requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    Loss,
    ModelInfo,
    WireRequest,
    bearer_auth,
    hookimpl,
    option_loss,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, ToolDefinition
from interlingua_chat_completions.dialect import API, ENDPOINT
from interlingua_chat_completions.provider import ChatProvider, wire_rules
from interlingua_zai.dialect import capabilities_for, dialect_of, facts_of, find_listed, models

_HOSTS = {"international": "https://api.z.ai", "china": "https://open.bigmodel.cn"}
_PATHS = {"standard": "/api/paas/v4", "coding": "/api/coding/paas/v4"}  # the second one is recorded
_KEYS = {"international": ("ZAI_API_KEY",), "china": ("ZHIPUAI_API_KEY", "ZAI_API_KEY")}
# The range of top_p is open (WIRE.md, Sampling): these are the values nearest to its ends that the service's SDK sends.
_LOWEST, _HIGHEST = 0.01, 0.99


class _Zai(ChatProvider):
    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return capabilities_for(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return models()

    @hookimpl
    def model_info(self, model: str) -> ModelInfo | None:
        return find_listed(model)

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Options: `region`, `plan` and `attribution`.

        `region` is `international` or `china`; `plan` is `standard` or `coding` (the endpoint of coding-plan keys);
        `attribution` is a table, see `attribution_headers`.

        Raises:
            CapabilityError: an unknown region or plan.
        """
        region = _choice("region", settings.options.get("region") or "international", _HOSTS)
        plan = _choice("plan", settings.options.get("plan") or "standard", _PATHS)
        environ = settings.environ
        key = settings.api_key or next((environ[name] for name in _KEYS[region] if environ.get(name)), None)
        own = _HOSTS[region] + _PATHS[plan]
        base = settings.base_url or environ.get("ZAI_BASE_URL") or own
        language = {"accept-language": "en-US,en"} if region == "international" else {}
        return Connection(
            base_url=base.rstrip("/"),
            auth=bearer_auth(key),
            headers={**language, **attribution_headers(settings.options.get("attribution") or {})},
            env_vars=(*_KEYS[region], "ZAI_BASE_URL"),
            has_key=bool(key) or base != own,
            hosts=("api.z.ai", "open.bigmodel.cn"),
            endpoints={API: ENDPOINT},
        )

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        """Write the request, with sampling moved into its range and streamed arguments requested.

        Raises:
            CapabilityError: a schema, which the service does not have (WIRE.md, Tools).
        """
        from interlingua_chat_completions.request import to_wire  # noqa: PLC0415  with the first request

        losses: list[Loss] = []
        changes = _move_sampling(options, losses)
        extra: dict[str, Any] = {}
        if options.stream and tools and options.tool_choice != "none":
            extra["tool_stream"] = True  # without it a call arrives whole
        if options.thinking and facts_of(options.model).get("thinking") == "always":
            changes["thinking"] = None
        if extra:
            changes["provider_options"] = {**extra, **options.provider_options}
        changed = attrs.evolve(options, **changes) if changes else options
        request = to_wire(self.key, messages, tools, changed, dialect_of(options.model))
        return attrs.evolve(request, losses=(*request.losses, *losses)) if losses else request

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [*wire_rules("format"), files("interlingua_zai").joinpath("lint.toml").read_text("utf-8")]


def _move_sampling(options: RequestOptions, losses: list[Loss]) -> dict[str, Any]:
    """Move a temperature into 0 to 1, both of which are accepted (recorded), and top_p into the open range."""
    changes: dict[str, Any] = {}
    for name, low, high in (("temperature", 0.0, 1.0), ("top_p", _LOWEST, _HIGHEST)):
        value = getattr(options, name)
        if value is None or low <= value <= high or (name == "top_p" and 0 < value < 1):
            continue
        moved = changes[name] = low if value <= 0 else high
        ends = "both excluded, " if name == "top_p" else ""
        reason = f"this service takes values between 0 and 1, {ends}not {value}; {moved} is sent"
        losses.append(option_loss(name, "rewritten", reason))
    return changes


def attribution_headers(attribution: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers with which a client identifies itself; empty if there is no attribution.

    Args:
        attribution: `user_agent`, sent unchanged; `project`, `session`, `request`, `client` and further names become
            `x-<agent>-<name>`, where `agent` is the client's name, `opencode` by default.
    """
    agent = str(attribution.get("agent") or "opencode")
    found = {"user-agent": str(attribution["user_agent"])} if attribution.get("user_agent") else {}
    names = [name for name in attribution if name not in ("agent", "user_agent") and attribution[name]]
    return found | {f"x-{agent}-{name.replace('_', '-')}".lower(): str(attribution[name]) for name in names}


def _choice(option: str, value: Any, choices: Mapping[str, str]) -> str:
    if value not in choices:
        raise CapabilityError(f"{option} is one of {', '.join(choices)}, not {value!r}", path=f"options.{option}")
    return str(value)


plugin = _Zai("zai", dialect_of)
