"""The provider object for OpenAI: its hooks and its connection.

Hooks import modules when they are called, so that making a client does not import both APIs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from interlingua.plugins import hookimpl

if TYPE_CHECKING:
    from interlingua.errors import ProviderError
    from interlingua.plugins import (
        Connection,
        ConnectionSettings,
        FollowUp,
        ModelInfo,
        RequestContext,
        WireChunk,
        WireRequest,
        WireResponse,
    )
    from interlingua.types import Message, ModelCapabilities, RequestOptions, StreamEvent, ToolDefinition

# ruff: noqa: PLC0415  see above

_UPLOAD_ABOVE = 1024 * 1024  # bytes
_KEY = "openai"  # hosts of these APIs have different batches
_BASE_URL = "https://api.openai.com/v1"
_CHAT = "chat"
_RESPONSES = "responses"
ENDPOINT = r"/responses$"
# fields of a request that the token count takes (WIRE.md, Connection)
_COUNTED = ("model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text")


class _OpenAI:
    contract_version = 1

    def __init__(self, key: str = _KEY) -> None:
        self.key = key

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        from interlingua_openai.catalogue import api_of, capabilities_of, capabilities_with_changes

        read = capabilities_with_changes if self.key == _KEY else capabilities_of
        return read(model, api_of(model, options.api if options else None))

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        from interlingua_openai.catalogue import models

        return models()

    @hookimpl
    def model_info(self, model: str) -> ModelInfo | None:
        from interlingua_openai.catalogue import model_of

        return model_of(model)

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Options `organization` and `project`, or else OPENAI_ORG_ID and OPENAI_PROJECT_ID, become headers."""
        from interlingua.plugins import BatchLimits, Connection, bearer_auth

        environ = settings.environ
        key = settings.api_key or environ.get("OPENAI_API_KEY")
        base = settings.base_url or environ.get("OPENAI_BASE_URL") or _BASE_URL
        headers = {
            "openai-organization": settings.options.get("organization") or environ.get("OPENAI_ORG_ID"),
            "openai-project": settings.options.get("project") or environ.get("OPENAI_PROJECT_ID"),
        }
        return Connection(
            base_url=base.rstrip("/"),
            auth=bearer_auth(key),
            headers={name: str(value) for name, value in headers.items() if value},
            env_vars=("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),
            has_key=bool(key) or base != _BASE_URL,
            hosts=("api.openai.com",),
            endpoints={_RESPONSES: ENDPOINT, _CHAT: r"/chat/completions$"},
            batch_limits=BatchLimits(50_000, 200 * 1024 * 1024) if self.key == _KEY else None,
            upload_above=_UPLOAD_ABOVE if self.key == _KEY else None,
        )

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        from interlingua_openai.catalogue import api_of

        if api_of(options.model, options.api) == _CHAT:
            from interlingua_openai import chat

            return chat.to_wire(self.key, messages, tools, options)
        from interlingua_openai.responses.request import to_wire

        return to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int:
        from interlingua_chat_completions.request import estimate_tokens

        return estimate_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        if context.origin.api == _CHAT:
            from interlingua_chat_completions import response as chat
            from interlingua_openai.chat import dialect_of

            return chat.from_wire_response(response, context, dialect_of(context.origin.model))
        from interlingua_openai.responses.response import from_wire_response

        return from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        if context.origin.api == _CHAT:
            from interlingua_chat_completions import stream as chat
            from interlingua_openai.chat import dialect_of

            return chat.stream_response(response_stream, context, dialect_of(context.origin.model))
        from interlingua_openai.responses.stream import stream_response

        return stream_response(response_stream, context)

    @hookimpl
    def follow_up(self, response: WireResponse, context: RequestContext) -> FollowUp | None:
        """Ask again for a response that is generated in the background (option `background`)."""
        if context.origin.api == _CHAT or b'"background"' not in response.body:
            return None
        from interlingua_openai.responses.background import follow_up

        return follow_up(response, context)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        from interlingua_openai.errors import from_wire_error

        return from_wire_error(response, context.origin.api, has_chat=self.key == _KEY)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Build the request for `models` (no arguments), `count_tokens` (`request`; only for Responses) or `decide`."""
        from interlingua.plugins import WireRequest, dumps, loads

        if kind == "models":
            return WireRequest(method="GET", path="/models", body=b"", api=_RESPONSES)
        if kind == "count_tokens" and arguments["request"].api == _RESPONSES:
            body = loads(arguments["request"].body)
            counted = dumps({name: body[name] for name in _COUNTED if name in body})
            headers = {"content-type": "application/json"}
            return WireRequest(path="/responses/input_tokens", headers=headers, body=counted, api=_RESPONSES)
        if kind.startswith("batch_") and self.key == _KEY:
            from interlingua_openai.batches import batch_request

            return batch_request(kind, arguments)
        if kind == "decide" and self.key == _KEY:
            from interlingua_openai.decisions import decision_request

            return decision_request(arguments["request"], arguments["questions"])
        if kind in ("upload", "delete_file") and self.key == _KEY:
            from interlingua_openai.files import file_request

            return file_request(kind, arguments)
        return None

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Return a list of model ids for `models`, an int for `count_tokens`."""
        from interlingua.plugins import loads

        if kind.startswith("batch_"):
            from interlingua_openai.batches import read_batch

            return read_batch(kind, response)
        if kind == "decide":
            from interlingua_openai.decisions import read_decisions

            return read_decisions(response)
        if kind in ("upload", "delete_file"):
            from interlingua_chat_completions.provider import read_file

            return read_file(kind, response)
        body = loads(response.body)
        if kind == "models":
            return [model["id"] for model in body["data"]]
        return body["input_tokens"] if kind == "count_tokens" else None

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        from interlingua_chat_completions.provider import wire_rules

        own = files("interlingua_openai").joinpath("lint")
        texts = (own.joinpath(f"{name}.toml").read_text("utf-8") for name in ("chat", "responses"))
        return [*wire_rules("format", "pairing"), *texts]


plugin = _OpenAI()
