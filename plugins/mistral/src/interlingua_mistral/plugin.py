"""The provider object for Mistral: the shared format's hooks, its connection and its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    BatchLimits,
    Connection,
    ConnectionSettings,
    ModelInfo,
    WireRequest,
    WireResponse,
    bearer_auth,
    hookimpl,
)
from interlingua.types import ModelCapabilities, RequestOptions
from interlingua_chat_completions.dialect import API, ENDPOINT
from interlingua_chat_completions.provider import (
    UPLOAD_ABOVE,
    ChatProvider,
    file_request,
    from_wire_model_list,
    list_models_request,
    read_file,
    upload_request,
    wire_rules,
)
from interlingua_mistral.dialect import capabilities_for, dialect_of, models

_HOSTS = {"": "api.mistral.ai", "eu": "api.eu.mistral.ai", "us": "api.us.mistral.ai"}


class _Mistral(ChatProvider):
    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return capabilities_for(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return models()

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Option: `region` (`eu`, `us`).

        Raises:
            CapabilityError: an unknown region.
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
            env_vars=("MISTRAL_API_KEY", "MISTRAL_BASE_URL"),
            has_key=bool(key) or base != own,
            hosts=tuple(_HOSTS.values()),
            endpoints={API: ENDPOINT},
            batch_limits=BatchLimits(1_000_000, 512 * 1024 * 1024),
            upload_above=UPLOAD_ABOVE,
        )

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        if kind.startswith("batch_"):
            from interlingua_mistral.batches import batch_request  # noqa: PLC0415  for batches only

            return batch_request(kind, arguments)
        if kind == "upload":
            if arguments["block"].media_type != "application/pdf" or arguments["in_result"]:
                return None  # the API refers to documents only
            return upload_request("ocr", arguments["data"], arguments["name"], "application/pdf", API)
        return file_request(kind, arguments.get("file", ""), API) or list_models_request(kind)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        if kind.startswith("batch_"):
            from interlingua_mistral.batches import read_batch  # noqa: PLC0415  for batches only

            return read_batch(kind, response)
        if kind in ("upload", "delete_file"):
            return read_file(kind, response)
        return from_wire_model_list(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [*wire_rules("format", "pairing"), files("interlingua_mistral").joinpath("lint.toml").read_text("utf-8")]


plugin = _Mistral("mistral", dialect_of)
