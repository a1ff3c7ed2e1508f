"""Hooks that are the same for every service of this format, for plugins to inherit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from interlingua.plugins import WireRequest, WireResponse, form_body, hookimpl, loads
from interlingua_chat_completions.dialect import API, Dialect

if TYPE_CHECKING:  # a provider is found and a client is made without them
    from interlingua.errors import ProviderError
    from interlingua.plugins import RequestContext, WireChunk
    from interlingua.types import Message, RequestOptions, StreamEvent, ToolDefinition

FORMAT_RULES = "format"
PAIRING_RULES = "pairing"
UPLOAD_ABOVE = 1024 * 1024
"""Bytes of one medium above which it is uploaded, by services that keep files."""

_LINT = files("interlingua_chat_completions").joinpath("lint")


class ChatProvider:
    """A provider whose requests and answers are Chat Completions, each in the dialect of its model.

    Args:
        key: the provider key; opaque state is sent back only for messages of this origin.
        dialect_of: returns the dialect of a model name; the same name must return the same object.
    """

    contract_version = 1

    def __init__(self, key: str, dialect_of: Callable[[str], Dialect]) -> None:
        self.key = key
        self._dialect_of = dialect_of

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        """Write a request."""
        from interlingua_chat_completions.request import to_wire  # noqa: PLC0415  with the first request

        return to_wire(self.key, messages, tools, options, self._dialect_of(options.model))

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int:
        """Estimate a request's input tokens."""
        from interlingua_chat_completions.request import estimate_tokens  # noqa: PLC0415  with the first request

        return estimate_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        """Read a whole answer."""
        from interlingua_chat_completions.response import from_wire_response  # noqa: PLC0415  with the first answer

        return from_wire_response(response, context, self._dialect_of(context.origin.model))

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        """Read a stream."""
        from interlingua_chat_completions.stream import stream_response  # noqa: PLC0415  with the first stream

        return stream_response(response_stream, context, self._dialect_of(context.origin.model))

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        """Read a failed answer."""
        from interlingua_chat_completions.errors import from_wire_error  # noqa: PLC0415  with the first failure

        return from_wire_error(response, self._dialect_of(context.origin.model), context)


def list_models_request(kind: str) -> WireRequest | None:
    """Return the request for the live model list if `kind` is `models`; services of this format share its path."""
    return WireRequest(method="GET", path="/models", body=b"", api=API) if kind == "models" else None


def from_wire_model_list(kind: str, response: WireResponse) -> Any:
    """Return the model ids of a list if `kind` is `models`; an object with `data`, or a list (one service)."""
    body = loads(response.body)
    listed: Sequence[Mapping[str, Any]] = body["data"] if isinstance(body, dict) else body
    return [model["id"] for model in listed] if kind == "models" else None


def upload_batch_request(lines: bytes, name: str, api: str) -> WireRequest:
    """Return the request that uploads a batch's lines as a file; equal lines result in equal bytes."""
    return upload_request("batch", lines, f"{name}.jsonl", "application/jsonl", api)


def upload_request(purpose: str, data: bytes, name: str, media_type: str, api: str) -> WireRequest:
    """Return the request that uploads a file; services of this format share path and form."""
    content_type, body = form_body({"purpose": purpose}, name, media_type, data)
    return WireRequest(path="/files", headers={"content-type": content_type}, body=body, api=api)


def file_request(kind: str, file: str, api: str) -> WireRequest | None:
    """Return the request for `delete_file`; None for another kind."""
    path = f"/files/{quote(file, safe='')}"
    return WireRequest(method="DELETE", path=path, body=b"", api=api) if kind == "delete_file" else None


def read_file(kind: str, response: WireResponse) -> Any:
    """Return the id of an uploaded file and when it expires; None for a deletion."""
    if kind != "upload":
        return None
    body = loads(response.body)
    expires = body.get("expires_at")
    return {"id": body["id"], "expires_at": None if expires is None else datetime.fromtimestamp(expires, UTC)}


def wire_rules(*names: str) -> list[str]:
    """Return the contents of the format's rule files, about requests that its services reject.

    Args:
        names: `format` applies to all services, `pairing` to those that check which result answers which call;
            the other files in `lint/` apply to one service each.

    Raises:
        FileNotFoundError: there is no file of that name.
    """
    return [_LINT.joinpath(f"{name}.toml").read_text("utf-8") for name in names]


def has_wire_rules(name: str) -> bool:
    """Return whether there is a rule file of that name."""
    return _LINT.joinpath(f"{name}.toml").is_file()
