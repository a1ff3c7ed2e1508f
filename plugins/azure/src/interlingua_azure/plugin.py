"""The provider object: the format of its API writes and reads each request, under this host's key (WIRE.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

import attrs

from interlingua.errors import CapabilityError, PluginError, ProviderError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    FollowUp,
    ModelInfo,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    dumps,
    find_model,
    format_provider,
    hookimpl,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, StreamEvent, ToolDefinition
from interlingua_azure.connection import CHAT, DEPLOYMENT, MESSAGES, RESPONSES, connection

KEY = "azure"
_OPENAI, _ANTHROPIC = "openai", "anthropic"
_FORMATS = {RESPONSES: _OPENAI, CHAT: _OPENAI, MESSAGES: _ANTHROPIC}
_PREFIXES = {_OPENAI: "/openai/v1", _ANTHROPIC: "/anthropic"}


class _Azure:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        options = _for_model(options or RequestOptions(model=model))
        found: ModelCapabilities = _of(options).capabilities(model=options.model, options=options)
        return found

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return models()

    @hookimpl
    def model_info(self, model: str) -> ModelInfo | None:
        found: ModelInfo | None = None if _is_claude(model) else _format(_OPENAI).model_info(model=model)
        return found and attrs.evolve(found, maker="openai")

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        of_model = _for_model(options)
        made: WireRequest = _of(of_model).to_wire(messages=messages, tools=tools, options=of_model)
        return _addressed(made, of_model.model, options.model)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int | None:
        options = _for_model(options) if options else None
        found = _of(options) if options else _format(_OPENAI)
        estimate: int | None = found.estimate_input_tokens(messages=messages, tools=tools, options=options)
        return estimate

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        message: Message = _format_of(context).from_wire_response(response=response, context=context)
        return message

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        stream: AsyncIterator[StreamEvent] = _format_of(context).stream_response(
            response_stream=response_stream, context=context
        )
        return stream

    @hookimpl
    def follow_up(self, response: WireResponse, context: RequestContext) -> FollowUp | None:
        """Return what the format asks for, at this host's address, which it takes from the request."""
        hook = getattr(_format_of(context), "follow_up", None)
        found: FollowUp | None = None if hook is None else hook(response=response, context=context)
        return found

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        error: ProviderError = _format_of(context).from_wire_error(response=response, context=context)
        return error

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Build the request for `models` (the resource's base models) or `count_tokens` (`request`; Claude only)."""
        if kind == "models":
            return WireRequest(method="GET", path="/openai/v1/models", body=b"", api=RESPONSES)
        if kind == "count_tokens" and arguments["request"].api == MESSAGES:
            made: WireRequest = _format(_ANTHROPIC).auxiliary_request(kind=kind, arguments=arguments)
            return attrs.evolve(made, path=f"{_PREFIXES[_ANTHROPIC]}{made.path}")
        return None

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Return a list of model ids for `models`, an int for `count_tokens`."""
        return _format(_OPENAI if kind == "models" else _ANTHROPIC).from_wire_auxiliary(kind=kind, response=response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [*chain.from_iterable(found.wire_rules() for found in _installed())]


@cache
def _format(name: str) -> Any:
    """Return the format of another distribution.

    Raises:
        PluginError: the format is not installed; the message says what to install.
    """
    return format_provider(name, KEY)


def _installed() -> list[Any]:
    found = []
    for name in _PREFIXES:
        try:
            found.append(_format(name))
        except PluginError:
            continue  # a request for one of its models raises the error
    return found


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogues of the installed formats (WIRE.md, Models); Claude's models name their API."""
    found = [*chain.from_iterable(of.models() for of in _installed())]
    return tuple(
        attrs.evolve(info, maker="anthropic", api=MESSAGES)
        if _is_claude(info.id)
        else attrs.evolve(info, maker="openai")
        for info in found
    )


def _is_claude(model: str) -> bool:
    return model.startswith("claude")


def _for_model(options: RequestOptions) -> RequestOptions:
    """Return the options for the model that a deployment serves, with the API to use.

    Raises:
        CapabilityError: the model does not have the requested API.
    """
    deployments = options.connection.get("deployments")
    model = (deployments or {}).get(options.model, options.model)
    api = options.api or (MESSAGES if _is_claude(model) else None)
    if api is not None:
        known = _is_claude(model) or (api == MESSAGES and find_model(_format(_OPENAI).models(), model) is not None)
        if api not in _FORMATS or (known and _is_claude(model) != (api == MESSAGES)):
            have = MESSAGES if _is_claude(model) else f"{RESPONSES}, {CHAT}"
            raise CapabilityError(f"no API {api!r} for {model}; available: {have}", path="options.api")
    return attrs.evolve(options, model=model, api=api)


def _of(options: RequestOptions) -> Any:
    return _format(_FORMATS[options.api or RESPONSES])


def _format_of(context: RequestContext) -> Any:
    return _format(_FORMATS.get(context.origin.api, _OPENAI))


def _addressed(made: WireRequest, model: str, deployment: str) -> WireRequest:
    """Return the request with this host's path, the deployment for the model, and Anthropic's version."""
    name = _FORMATS[made.api]
    body, head = made.body, b'{"model":' + dumps(model)
    if model != deployment and body.startswith(head):  # a model that `provider_options` names stays
        body = b'{"model":' + dumps(deployment) + body[len(head) :]
    headers = {**_public_headers(), **made.headers} if name == _ANTHROPIC else made.headers
    echo = {**made.echo, DEPLOYMENT: deployment}
    return attrs.evolve(made, path=f"{_PREFIXES[name]}{made.path}", body=body, headers=headers, echo=echo)


@cache
def _public_headers() -> Mapping[str, str]:
    """Return the headers that every request of Anthropic's API has."""
    made: Connection = _format(_ANTHROPIC).connection(settings=ConnectionSettings())
    return made.headers


plugin = _Azure()
