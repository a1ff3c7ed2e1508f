"""The provider object: its hooks, how to reach the service, and auxiliary requests."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from interlingua.errors import ProviderError
from interlingua.plugins import (
    BatchLimits,
    Connection,
    ConnectionSettings,
    FollowUp,
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
from interlingua.types import Message, ModelCapabilities, RequestOptions, StreamEvent, ToolDefinition
from interlingua_google import models
from interlingua_google.errors import from_wire_error
from interlingua_google.request import estimate_input_tokens, to_wire
from interlingua_google.response import from_wire_response
from interlingua_google.stream import stream_response

# ruff: noqa: PLC0415  what only batches and interactions need is imported when they are used

HOST = "https://generativelanguage.googleapis.com"
# The SDK's default is v1 since its 3.0, but the `*-latest` aliases, some previews and the speech models exist on v1beta
# only, and everything v1 has is there too.
VERSION = "v1beta"
_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")  # the first wins
_BASE = "GOOGLE_GEMINI_BASE_URL"
FILES = frozenset({"upload", "file_status", "delete_file"})
# The service takes 2 GB. These limits are ours: an expired batch has no results at all, so batches are kept small.
_BATCHES = BatchLimits(2_000, 200 * 1024 * 1024)
ENDPOINTS = {models.API: r"/(?P<model>[^/]+):(g|streamG)enerateContent$"}
_has_version = re.compile(r"/v\d+(alpha|beta)?\d*(/|$)").search
_COUNTED = ("systemInstruction", "tools", "toolConfig", "contents", "generationConfig", "cachedContent")


class _Google:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return models.capabilities_of(model, options.api if options else None)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return models.models()

    @hookimpl
    def model_info(self, model: str) -> ModelInfo | None:
        return models.model_of(model)

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        if models.api_of(options.model, options.api) == models.INTERACTIONS:
            from interlingua_google.interactions import request

            return request.to_wire(messages, tools, options)
        return to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int:
        return estimate_input_tokens(messages, tools, options)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        if context.origin.api == models.INTERACTIONS:
            from interlingua_google.interactions import response as interactions

            return interactions.from_wire_response(response, context)
        return from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        if context.origin.api == models.INTERACTIONS:
            from interlingua_google.interactions import stream

            return stream.stream_response(response_stream, context)
        return stream_response(response_stream, context)

    @hookimpl
    def follow_up(self, response: WireResponse, context: RequestContext) -> FollowUp | None:
        """Ask again for an interaction that runs in the background, or for the rest of a long answer."""
        if context.origin.api == models.INTERACTIONS:
            from interlingua_google.interactions.response import follow_up as poll

            return poll(response, context)
        if b"continuationToken" not in response.body:
            return None
        from interlingua_google.continuation import follow_up

        return follow_up(response, context)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return from_wire_error(response)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return auxiliary_request(kind, arguments)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        own = files("interlingua_google")
        return [own.joinpath(name).read_text("utf-8") for name in ("lint.toml", "interactions/lint.toml")]


def connection(settings: ConnectionSettings) -> Connection:
    """Return the connection to the service (WIRE.md, Connection).

    Options: `version` (v1beta by default); `user_project` becomes `x-goog-user-project`; `stateful` lets the service
    keep interactions, so that a request has only what is new.
    """
    key = settings.api_key or next((found for name in _KEYS if (found := settings.environ.get(name))), None)
    base = settings.base_url or settings.environ.get(_BASE) or HOST
    version = str(settings.options.get("version") or VERSION)
    settings.options.get("stateful")  # read by `to_wire`

    def auth(_request: WireRequest) -> Mapping[str, str]:
        return {"x-goog-api-key": str(key)}

    own = _versioned(base, version)

    def url(request: WireRequest) -> str:
        path = request.path
        return f"{_unversioned(own)}{path}" if path.startswith("/upload/") else f"{own}{path}"

    return Connection(
        base_url=own,
        url=url,
        auth=auth if key else no_auth,
        headers=_headers(settings.options),
        env_vars=(*_KEYS, _BASE),
        has_key=bool(key) or settings.base_url is not None,
        hosts=("generativelanguage.googleapis.com",),
        endpoints={**ENDPOINTS, models.INTERACTIONS: r"/interactions$"},
        batch_limits=_BATCHES,
        upload_above=1024 * 1024,
    )


def _versioned(base: str, version: str) -> str:
    base = base.rstrip("/")
    return base if _has_version(base) else f"{base}/{version}"


def _unversioned(base: str) -> str:
    """Return an address up to the version: files are uploaded above it."""
    found = _has_version(base)
    return base if found is None else base[: found.start()]


def _headers(options: Mapping[str, Any]) -> dict[str, str]:
    project = options.get("user_project")
    return {"x-goog-user-project": str(project)} if project else {}


def auxiliary_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for `models` (no arguments) or `count_tokens` (`request`: the request to count)."""
    if kind == "models":
        return WireRequest(method="GET", path="/models?pageSize=1000", body=b"", api=models.API)
    if kind == "count_tokens":
        whole: WireRequest = arguments["request"]
        if whole.api != models.API:
            return None
        model = whole.path.rpartition(":")[0]
        body = loads(whole.body)
        counted = {"model": model.lstrip("/")} | {name: body[name] for name in _COUNTED if name in body}
        return WireRequest(
            path=f"{model}:countTokens",
            headers=whole.headers,
            body=dumps({"generateContentRequest": counted}),
            api=models.API,
        )
    if kind.startswith("batch_"):
        from interlingua_google.batches import batch_request

        return batch_request(kind, arguments)
    if kind == "decide":
        from interlingua_google.decisions import decision_request

        return decision_request(arguments["request"], arguments["questions"])
    if kind in FILES:
        from interlingua_google.files import file_request

        return file_request(kind, arguments)
    return None


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model names for `models`, an int for `count_tokens`."""
    if kind.startswith("batch_"):
        from interlingua_google.batches import read_batch

        return read_batch(kind, response)
    if kind == "decide":
        from interlingua_google.decisions import read_decisions

        return read_decisions(response)
    if kind in FILES:
        from interlingua_google.files import read_file

        return read_file(kind, response)
    body = loads(response.body)
    if kind == "models":
        return [str(model["name"]).removeprefix("models/") for model in body.get("models", ())]
    return body.get("totalTokens", 0) if kind == "count_tokens" else None


plugin = _Google()
