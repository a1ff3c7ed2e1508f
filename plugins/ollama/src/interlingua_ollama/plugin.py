"""The provider object: its hooks, how to reach the server, and the capabilities of this API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua.errors import CallerError, ProviderError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    ModelInfo,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    bearer_auth,
    hookimpl,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, StreamEvent, ToolDefinition
from interlingua_ollama.errors import from_wire_error
from interlingua_ollama.messages import API
from interlingua_ollama.request import estimate_input_tokens, to_wire
from interlingua_ollama.response import from_wire_auxiliary, from_wire_response
from interlingua_ollama.stream import stream_response

HOSTED = "https://ollama.com"
_LOCAL = ("localhost:11434", "127.0.0.1:11434")
_OWN_MODELS = r"(?!.*[:-]cloud$).*"  # a local server passes the others on to ollama.com
PORT = 11434
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  a server listens there; a client cannot call it

# Which models there are, only the server knows: every model gets these, marked assumed.
DEFAULTS = ModelCapabilities(
    supports_thinking=True,
    supports_images=True,
    supports_tools=True,
    supports_system_prompt=True,
    supports_structured_output=True,
    supports_streaming=True,
    supports_parallel_tool_calls=True,
    supports_system_messages_in_list=True,  # no rules of order: the model's template decides
    accepted_image_media_types=("image/jpeg", "image/png", "image/webp"),
    thinking_scope="model",
    accepts_unsigned_thinking=True,  # plain text, no signature
    tool_id_pattern=r"[A-Za-z0-9_.:-]{1,64}",  # ids are free here; these are the characters of ids in use
    tool_name_pattern=r"[^\s]{1,128}",  # free
    tool_name_max_length=128,
    json_mode={"format": "json"},
    structured_output_streams=True,  # a grammar allows no calls, and the model is not shown it
    schema_open_maps=True,
    api=API,
    assumed=True,
)


class _Ollama:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return capabilities_of(options)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return ()  # what there is, the server knows: the auxiliary request `models`

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        return to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int:
        return estimate_input_tokens(messages, tools, options)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        return from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        return stream_response(response_stream, context)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return from_wire_error(response)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return auxiliary_request(kind)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [files("interlingua_ollama").joinpath("lint.toml").read_text("utf-8")]


def capabilities_of(options: RequestOptions | None) -> ModelCapabilities:
    """Return the capabilities; the context window is the request's `num_ctx`, else unknown (0)."""
    extra = options.provider_options if options is not None else {}
    inner = extra.get("options")
    window = extra.get("num_ctx", inner.get("num_ctx") if isinstance(inner, dict) else None)
    return _with_window(window) if isinstance(window, int) and window > 0 else DEFAULTS


@cache
def _with_window(tokens: int) -> ModelCapabilities:
    return attrs.evolve(DEFAULTS, max_context_tokens=tokens)


def connection(settings: ConnectionSettings) -> Connection:
    """Return the connection to the server; the option `hosted` selects ollama.com.

    The caller's `api_key` is always sent; `OLLAMA_API_KEY` only over https, because it may belong to another host.
    """
    environ = settings.environ
    hosted = bool(settings.options.get("hosted"))
    address = settings.base_url or (HOSTED if hosted else environ.get("OLLAMA_HOST") or "")
    base = base_url_of(address).removesuffix("/api")
    key = settings.api_key or (environ.get("OLLAMA_API_KEY") if base.startswith("https://") else None)
    return Connection(
        base_url=base,
        auth=bearer_auth(key),
        framing="ndjson",
        env_vars=("OLLAMA_HOST", "OLLAMA_API_KEY"),
        has_key=bool(key) or base != HOSTED,
        hosts=(*_LOCAL, "ollama.com"),
        endpoints={API: r"/api/(chat|generate)$"},
        self_hosted="" if base == HOSTED else _OWN_MODELS,
    )


def base_url_of(host: str) -> str:
    """Return the base URL of `host`, `host:port`, `:port`, `host/path` or a URL, as the official clients read it.

    A URL without a port has its scheme's port; other forms have this service's default port.

    Raises:
        CallerError: the value is not an address.
    """
    scheme, marker, rest = host.strip().partition("://")
    if not marker:
        scheme, rest = "http", host.strip()
    try:
        split = urlsplit(f"{scheme}://{rest}")
        name = split.hostname or "127.0.0.1"
        given = split.port
    except ValueError as error:
        raise CallerError(
            f"{host!r} is not an address: write host, host:port or a URL (OLLAMA_HOST, or base_url)"
        ) from error
    name = _ANY.get(name, name)
    default = _DEFAULT_PORTS.get(scheme)
    port = given or (default if marker else PORT)
    shown = f"[{name}]" if ":" in name else name
    place = shown if port in (None, default) else f"{shown}:{port}"
    return f"{scheme}://{place}{split.path.rstrip('/')}"


def auxiliary_request(kind: str) -> WireRequest | None:
    """Return the request for `models`, the list of the running server."""
    return WireRequest(method="GET", path="/api/tags", body=b"", api=API) if kind == "models" else None


plugin = _Ollama()
