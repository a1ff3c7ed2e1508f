"""The provider object: the format of its API writes and reads each request, under this host's key (WIRE.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any
from urllib.parse import unquote

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
    format_provider,
    hookimpl,
    loads,
    quote_model,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, StreamEvent, ToolDefinition
from interlingua_vertex.connection import GENERATE, INTERACTIONS, MESSAGES, connection

KEY = "vertex"
ANTHROPIC_VERSION = "vertex-2023-10-16"
_GOOGLE, _ANTHROPIC = "google", "anthropic"
_FORMATS = {GENERATE: _GOOGLE, INTERACTIONS: _GOOGLE, MESSAGES: _ANTHROPIC}
_COUNTED = ("contents", "systemInstruction", "tools", "generationConfig")  # what countTokens takes of a request
# Claude on this host: images as bytes only, of 5 MB in base64 (WIRE.md, Claude)
_CLAUDE_IMAGE_BYTES = 5 * 1024 * 1024 * 3 // 4


class _Vertex:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return capabilities_of(model, api_of(model, options.api if options else None))

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return models()

    @hookimpl
    def model_info(self, model: str) -> ModelInfo | None:
        found: ModelInfo | None = None if _is_claude(model) else _format(_GOOGLE).model_info(model=model)
        return found and attrs.evolve(found, maker="google")

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        api = api_of(options.model, options.api)
        made: WireRequest = _format(_FORMATS[api]).to_wire(
            messages=messages, tools=tools, options=attrs.evolve(options, api=api)
        )
        if api == MESSAGES:
            return _to_prediction(made, options)
        if api == INTERACTIONS:
            return made  # the model is in the body
        # tuned models (`endpoints/…`) belong to the project, the others to their publisher
        return attrs.evolve(made, path=f"/publishers/google{made.path}" if "/" not in options.model else made.path)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int | None:
        api = api_of(options.model, options.api) if options else GENERATE
        found = _format(_FORMATS[api])
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
        """Build the request for `count_tokens` (`request`: the request to count)."""
        if kind != "count_tokens" or arguments["request"].api == INTERACTIONS:
            return None
        return to_count(arguments["request"])

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Return an int for `count_tokens`."""
        counted = loads(response.body)
        if kind != "count_tokens":
            return None
        return counted["input_tokens"] if "input_tokens" in counted else counted.get("totalTokens", 0)

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
    for name in dict.fromkeys(_FORMATS.values()):
        try:
            found.append(_format(name))
        except PluginError:
            continue  # a request for one of its models raises the error
    return found


def _format_of(context: RequestContext) -> Any:
    return _format(_FORMATS.get(context.origin.api, _GOOGLE))


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogues of the installed formats (WIRE.md, Models); Claude's models name their API."""
    found = [info for of in _installed() for info in of.models() if info.api in (None, GENERATE, MESSAGES)]
    return tuple(
        attrs.evolve(info, maker="anthropic", api=MESSAGES)
        if _is_claude(info.id)
        else attrs.evolve(info, maker="google")
        for info in found
    )


def _is_claude(model: str) -> bool:
    return model.startswith("claude")


def api_of(model: str, wanted: str | None) -> str:
    """Return the API by the model's name; a model whose name does not tell its maker may use either.

    Raises:
        CapabilityError: the model does not have the requested API.
    """
    gemini, claude = model.startswith("gemini"), _is_claude(model)
    own = (MESSAGES,) if claude else (GENERATE, INTERACTIONS) if gemini else (GENERATE, INTERACTIONS, MESSAGES)
    if wanted is not None and wanted not in own:
        raise CapabilityError(f"no API {wanted!r} for {model}; available: {', '.join(own)}", path="options.api")
    return wanted or own[0]


@cache
def capabilities_of(model: str, api: str) -> ModelCapabilities:
    """Return the capabilities of a model on this host; the same arguments return the same object."""
    options = RequestOptions(model=model, api=api)
    found: ModelCapabilities = _format(_FORMATS[api]).capabilities(model=model, options=options)
    if api != MESSAGES:
        return found
    return attrs.evolve(found, supports_image_urls=False, max_image_bytes=_CLAUDE_IMAGE_BYTES)


def _to_prediction(made: WireRequest, options: RequestOptions) -> WireRequest:
    """Return a request of the Messages API in this host's form: the model in the path, the version in the body."""
    method = "streamRawPredict" if options.stream else "rawPredict"
    version = options.provider_options.get("anthropic_version", ANTHROPIC_VERSION)
    head = b'{"model":' + dumps(options.model) + b","
    if made.body.startswith(head):
        body = b'{"anthropic_version":' + dumps(version) + b"," + made.body[len(head) :]
    else:  # `provider_options` has another model, but the body must not have one
        fields = loads(made.body)
        del fields["model"]
        body = dumps({"anthropic_version": version, **fields})
    headers = {name: value for name, value in made.headers.items() if name != "anthropic-version"}
    path = f"/publishers/anthropic/models/{quote_model(options.model, safe='@')}:{method}"
    return attrs.evolve(made, path=path, body=body, headers=headers)


def to_count(whole: WireRequest) -> WireRequest:
    """Return the request that counts the tokens of another."""
    publisher, _, named = whole.path.rpartition("/models/")
    model = unquote(named.partition(":")[0])
    body = loads(whole.body)
    if whole.api == MESSAGES:
        made: WireRequest = _format(_ANTHROPIC).auxiliary_request(
            kind="count_tokens", arguments={"request": attrs.evolve(whole, body=dumps({"model": model, **body}))}
        )
        counted = dumps({"anthropic_version": ANTHROPIC_VERSION, **loads(made.body)})
        return attrs.evolve(made, path=f"{publisher}/models/count-tokens:rawPredict", body=counted)
    counted = dumps({name: body[name] for name in _COUNTED if name in body})
    path = f"{whole.path.rpartition(':')[0]}:countTokens"
    return WireRequest(path=path, headers=whole.headers, body=counted, api=GENERATE)


plugin = _Vertex()
