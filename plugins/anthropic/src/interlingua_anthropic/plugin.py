"""The provider object: its hooks, how to reach the service, and auxiliary requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from interlingua.errors import ProviderError
from interlingua.plugins import (
    BatchLimits,
    Connection,
    ConnectionSettings,
    ModelInfo,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    dumps,
    hookimpl,
    loads,
    no_auth,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, ToolDefinition
from interlingua_anthropic import errors, models, request
from interlingua_anthropic.claude_tools import restore_events, restore_message
from interlingua_anthropic.response import from_wire_response

if TYPE_CHECKING:
    from interlingua.types import StreamEvent

# ruff: noqa: PLC0415  few requests need what is imported inside functions

VERSION = "2026-10-21"
ENDPOINT = r"/messages$"
_COUNTED = ("model", "system", "messages", "tools", "tool_choice", "thinking")


class _Anthropic:
    contract_version = 1

    def __init__(self, capabilities_of: Callable[[str], ModelCapabilities]) -> None:
        self._capabilities_of = capabilities_of

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return self._capabilities_of(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return models.models()

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        return request.to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int:
        return request.estimate_input_tokens(messages, tools, options)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        return restore_message(from_wire_response(response, context), context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        from interlingua_anthropic.stream import stream_response

        return restore_events(stream_response(response_stream, context), context)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return errors.from_wire_error(response, context)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return auxiliary_request(kind, arguments)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [files("interlingua_anthropic").joinpath("lint.toml").read_text("utf-8")]


def connection(settings: ConnectionSettings) -> Connection:
    """Return the connection to the service (WIRE.md, Connection).

    Options: `version` pins `anthropic-version`; `workspace_id`, `user_profile_id` and `betas` become headers; `auth:
    bearer` sends the key as a bearer token instead of `x-api-key`; exactly one of them is sent.
    """
    key = settings.api_key or settings.environ.get("ANTHROPIC_API_KEY")
    base = settings.base_url or settings.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
    bearer = settings.options.get("auth") == "bearer"

    def auth(_request: WireRequest) -> Mapping[str, str]:
        return {"authorization": f"Bearer {key}"} if bearer else {"x-api-key": str(key)}

    headers = {"anthropic-version": str(settings.options.get("version", VERSION))}
    if betas := settings.options.get("betas"):
        headers["anthropic-beta"] = betas if isinstance(betas, str) else ",".join(betas)
    for option in ("workspace_id", "user_profile_id"):
        if value := settings.options.get(option):
            headers[f"anthropic-{option.replace('_', '-')}"] = str(value)
    return Connection(
        base_url=base.rstrip("/").removesuffix("/v1"),
        auth=auth if key else no_auth,
        headers=headers,
        list_headers=("anthropic-beta",),  # a list: a request adds to what the connection set
        env_vars=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        has_key=bool(key) or settings.base_url is not None,
        hosts=("api.anthropic.com",),
        endpoints={models.API: ENDPOINT},
        batch_limits=BatchLimits(100_000, 256 * 1024 * 1024),
        upload_above=1024 * 1024,
    )


def auxiliary_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for `models` (no arguments) or `count_tokens` (`request`: the request to count)."""
    if kind == "models":
        return WireRequest(method="GET", path="/v1/models?limit=1000", body=b"", api=models.API)
    if kind == "count_tokens":
        whole: WireRequest = arguments["request"]
        body = loads(whole.body)
        counted = dumps({name: body[name] for name in _COUNTED if name in body})
        return WireRequest(path="/v1/messages/count_tokens", headers=whole.headers, body=counted, api=models.API)
    if kind.startswith("batch_"):
        from interlingua_anthropic.batches import batch_request

        return batch_request(kind, arguments)
    if kind in ("upload", "delete_file"):
        from interlingua_anthropic.files import file_request

        return file_request(kind, arguments)
    return None


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model ids for `models`, an int for `count_tokens`."""
    if kind.startswith("batch_"):
        from interlingua_anthropic.batches import read_batch

        return read_batch(kind, response)
    if kind in ("upload", "delete_file"):
        from interlingua_anthropic.files import read_file

        return read_file(kind, response)
    body = loads(response.body)
    if kind == "models":
        return [model["id"] for model in body["data"]]
    return body["input_tokens"] if kind == "count_tokens" else None


plugin = _Anthropic(models.capabilities_with_changes)
on_host = _Anthropic(models.capabilities_of)
"""The API on another host: nothing is declared that Anthropic alone offers."""
