"""The provider object: its hooks, how to reach the service, and auxiliary requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import unquote, urlsplit

from interlingua.errors import ProviderError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    HttpRequest,
    ModelInfo,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    bearer_auth,
    dumps,
    hookimpl,
    loads,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, StreamEvent, ToolDefinition
from interlingua_anthropic.claude_tools import restore_events, restore_message
from interlingua_bedrock import models
from interlingua_bedrock.credentials import (
    BEARER,
    KEY_NAMES,
    PROFILE_NAMES,
    find_bearer,
    find_credentials,
    may_find_key,
)
from interlingua_bedrock.errors import REQUEST_ID, from_wire_error
from interlingua_bedrock.event_stream import EventStreamFramer
from interlingua_bedrock.request import OWN_THINKING, estimate_input_tokens, to_wire
from interlingua_bedrock.response import from_wire_response
from interlingua_bedrock.signature import AwsKey, region_of, sign
from interlingua_bedrock.stream import stream_response

DEFAULT_REGION = "us-east-1"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_BASES = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
_COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")
_LISTED = "/foundation-models"
_ENDPOINTS = {models.API: r"/model/(?P<model>[^/]+)/converse(-stream)?"}
_UNREAD = {
    "invoke": r"/model/(?P<model>[^/]+)/invoke(-with-response-stream|-with-bidirectional-stream)?",
    "count-tokens": r"/model/(?P<model>[^/]+)/count-tokens",
    "guardrail": r"/guardrail/[^/]+/version/[^/]+/apply",
    "async-invoke": r"/async-invoke(/[^/]+)?",
}


class _Bedrock:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return models.capabilities_of(model)

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
        return to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int:
        return estimate_input_tokens(messages, tools, options)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        return restore_message(from_wire_response(response, context), context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        return restore_events(stream_response(response_stream, context), context)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return from_wire_error(response, own_thinking=OWN_THINKING in context.echo)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return auxiliary_request(kind, arguments)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [files("interlingua_bedrock").joinpath("lint.toml").read_text("utf-8")]


def connection(settings: ConnectionSettings) -> Connection:
    """Return the connection to the service (WIRE.md, Connection).

    Options: `region`; `access_key_id`, `secret_access_key`, `session_token`, `profile` or `credentials`
    (`credentials.find_credentials`). A request whose model is an ARN is sent to the ARN's region.
    """
    environ, options = settings.environ, settings.options
    given = next((environ[name] for name in _REGIONS if environ.get(name)), DEFAULT_REGION)
    region = str(options.get("region") or given)
    own = settings.base_url or next((environ[name] for name in _BASES if environ.get(name)), None)
    base = (own or _host("bedrock-runtime", region)).rstrip("/")
    bearer = find_bearer(settings)
    credentials = find_credentials(settings)  # checks the options, even if they are not needed

    def url(request: WireRequest) -> str:
        if own is not None:
            return base + request.path
        if request.path.startswith(_LISTED):
            return _host("bedrock", region) + request.path
        return _host("bedrock-runtime", _region_in_path(request.path) or region) + request.path

    def signed(outgoing: HttpRequest, key: AwsKey) -> Mapping[str, str]:
        in_path = _region_in_path(urlsplit(outgoing.url).path)
        return sign(outgoing, key, region_of(outgoing.url, in_path or region))

    facts: dict[str, Any] = {"auth": bearer_auth(bearer)} if bearer else {"credentials": credentials, "sign": signed}
    return Connection(
        base_url=base,
        url=url,
        request_id_headers=(REQUEST_ID,),
        framing=EventStreamFramer,
        env_vars=(BEARER, *KEY_NAMES, *PROFILE_NAMES, *_REGIONS, *_BASES),
        has_key=bool(bearer) or may_find_key(settings),
        hosts=("bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com", "bedrock-runtime.*.api.aws"),
        endpoints=_ENDPOINTS,
        unread_endpoints=_UNREAD,
        **facts,
    )


def _host(service: str, region: str) -> str:
    ending = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://{service}.{region}.{ending}"


def _region_in_path(path: str) -> str | None:
    """Return the region of the model's ARN in a path, if any."""
    parts = path.split("/")
    return models.region_of_arn(unquote(parts[2])) if len(parts) > 2 and parts[1] == "model" else None


def auxiliary_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for `models` (no arguments) or `count_tokens` (`request`: the request to count)."""
    if kind == "models":
        return WireRequest(method="GET", path=f"{_LISTED}?byOutputModality=TEXT", body=b"", api=models.API)
    if kind == "count_tokens":
        whole: WireRequest = arguments["request"]
        body = loads(whole.body)
        counted = {name: body[name] for name in _COUNTED if name in body}
        return WireRequest(
            path=whole.path.rpartition("/")[0] + "/count-tokens",
            headers=whole.headers,
            body=dumps({"input": {"converse": counted}}),
            api=models.API,
        )
    return None


def from_wire_auxiliary(kind: str, response: WireResponse) -> Any:
    """Return a list of model ids for `models`, an int for `count_tokens`."""
    body = loads(response.body)
    if kind == "models":
        return [model["modelId"] for model in body["modelSummaries"]]
    return body["inputTokens"] if kind == "count_tokens" else None


plugin = _Bedrock()
