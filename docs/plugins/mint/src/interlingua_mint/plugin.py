"""The provider object: core exchanges the key for a token, and the project is in the body of each request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any
from urllib.parse import urlencode

import attrs
from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    CapabilityError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    ServerError,
)
from interlingua.plugins import (
    BlockLoss,
    Connection,
    ConnectionSettings,
    HttpRequest,
    KeyExchange,
    Loss,
    ModelInfo,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    dumps,
    encode_each,
    error_for_status,
    find_model,
    hookimpl,
    load_catalogue,
    loads,
    option_loss,
    retry_after,
)
from interlingua.types import (
    ErrorEvent,
    Message,
    MessageComplete,
    ModelCapabilities,
    RawUpdate,
    RequestOptions,
    Role,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ToolDefinition,
    Usage,
    UsageUpdate,
)

API = "chat"
PATH = "/v1/chat"
DEFAULTS = ModelCapabilities(supports_system_prompt=True, supports_streaming=True, api=API, assumed=True)

_FIELDS = {"max_tokens": "limit", "temperature": "heat"}
_UNSUPPORTED = ("top_p", "top_k", "seed", "stop", "user_id", "effort", "thinking", "thinking_budget")
_REASONS = {"finished": StopReason.END_TURN, "limit": StopReason.MAX_TOKENS}
_CODES: Mapping[str, type[ProviderError]] = {
    "bad_key": AuthenticationError,
    "no_project": BadRequestError,
    "no_model": ModelNotFoundError,
    "busy": OverloadedError,
}


@attrs.frozen
class Token:
    """The answer to an exchange of the key; core replaces it before it expires."""

    text: str = attrs.field(repr=False)
    expires_at: datetime


def read_token(response: WireResponse) -> Token:
    """Read the answer to the exchange."""
    body = _read_object(response.body)
    token = body.get("access_token")
    if not isinstance(token, str):
        raise MalformedResponseError("the answer has no token", path="/access_token")
    return Token(token, datetime.fromtimestamp(body["expiration"], UTC))


def sign(_request: HttpRequest, token: Token) -> Mapping[str, str]:
    """Return the secret header of a request."""
    return {"authorization": f"Bearer {token.text}"}


class _Mint:
    contract_version = 1

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Option `project`, or else MINT_PROJECT, is in every body; `token_url` is the address of the exchange."""
        key = settings.api_key or settings.environ.get("MINT_API_KEY")
        base = settings.base_url or settings.environ.get("MINT_BASE_URL") or "https://mint.example"
        token_url = settings.options.get("token_url") or "https://keys.mint.example/token"
        project = settings.options.get("project") or settings.environ.get("MINT_PROJECT")

        def exchange(time: datetime) -> HttpRequest:
            headers = {"content-type": "application/x-www-form-urlencoded"}
            return HttpRequest("POST", token_url, headers, urlencode({"apikey": key}).encode(), time)

        return Connection(
            base_url=base.rstrip("/"),
            key_exchange=KeyExchange(request=exchange, read=read_token),
            sign=sign,
            options={"project": project} if project else {},
            env_vars=("MINT_API_KEY", "MINT_BASE_URL", "MINT_PROJECT"),
            has_key=bool(key),
            hosts=("mint.example",),
            endpoints={API: rf"{PATH}$"},
        )

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return capabilities_of(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return _models()

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        losses = _option_losses(options)
        system = list(takewhile(lambda message: message.role is Role.SYSTEM, messages))
        elements = encode_each(messages, "mint", _to_wire_message)
        for at, (message, (_, lost)) in enumerate(zip(messages, elements, strict=True)):
            losses += [loss.at(at, message.id) for loss in lost]
        body: dict[str, Any] = {"model": options.model, "stream": options.stream}
        if project := options.connection.get("project"):
            body["project"] = project
        if system:
            body["system"] = "\n\n".join(message.text for message in system)
        body["messages"] = [element for element, _ in elements[len(system) :]]
        values = {field: getattr(options, name) for name, field in _FIELDS.items()}
        body |= {field: value for field, value in values.items() if value is not None}
        body |= options.provider_options
        return WireRequest(path=PATH, body=dumps(body), losses=tuple(losses), api=API, stream=options.stream)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int:
        return sum(len(message.text) for message in messages) // 4 + 3 * len(messages)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        """Read a whole answer."""
        answer = _read_object(response.body)
        if error := _find_error(answer):
            raise error
        if not isinstance(answer.get("text"), str):
            raise MalformedResponseError("the answer has no text", path="/text")
        return context.message(
            [TextBlock(text=answer["text"])],
            stop_reason=_REASONS.get(str(answer.get("reason")), StopReason.OTHER),
            stop_reason_raw=answer.get("reason"),
            usage=_read_usage(answer),
            trace={"id": answer.get("id")},
        )

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        return _stream_response(response_stream)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        try:
            found = _find_error(_read_object(response.body), response)
        except MalformedResponseError:
            found = None
        return found or error_for_status(response)


async def _stream_response(response_stream: AsyncIterator[WireChunk]) -> AsyncIterator[StreamEvent]:
    async for chunk in response_stream:
        data = _read_object(chunk.data)
        if error := _find_error(data):
            yield ErrorEvent(error=error)
            return
        if isinstance(data.get("text"), str):
            yield TextDelta(index=0, text=data["text"])
        if "reason" in data:
            yield RawUpdate(trace={"id": data.get("id")})
            if usage := _read_usage(data):
                yield UsageUpdate(usage=usage)
            reason = _REASONS.get(str(data["reason"]), StopReason.OTHER)
            yield MessageComplete(stop_reason=reason, stop_reason_raw=data["reason"])
            return


def _to_wire_message(message: Message) -> tuple[dict[str, Any], tuple[BlockLoss, ...]]:
    """Write one message; core passes text, and nothing else, as the capabilities declare."""
    lost = [
        BlockLoss(at, block.type, "dropped", "this wire has text only")
        for at, block in enumerate(message.content)
        if not isinstance(block, TextBlock)
    ]
    role = "user" if message.role is Role.USER else "model"
    return {"role": role, "text": "".join(b.text for b in message.content if isinstance(b, TextBlock))}, tuple(lost)


def _option_losses(options: RequestOptions) -> list[Loss]:
    if options.response_schema is not None:
        raise CapabilityError("this wire has no answers by schema", path="options.response_schema")
    dropped = [name for name in _UNSUPPORTED if getattr(options, name) not in (None, ())]
    return [option_loss(name, "dropped", "this wire has no such option") for name in dropped]


def _find_error(body: Mapping[str, Any], response: WireResponse | None = None) -> ProviderError | None:
    """Return the error in a body or an event, or None."""
    error = body.get("error")
    if error is None:
        return None
    given = error if isinstance(error, dict) else {"text": error}
    code, status = str(given.get("code") or ""), None if response is None else response.status
    kind = _CODES.get(code, ServerError)
    wait = None if response is None else retry_after(response.headers)
    return kind(str(given.get("text")), status=status, code=code or None, retry_after=wait)


def _read_usage(body: Mapping[str, Any]) -> Usage | None:
    counts = body.get("usage")
    if not isinstance(counts, dict):
        return None
    read = {name: value if type(value) is int and value >= 0 else None for name, value in counts.items()}
    return Usage(input_tokens=read.get("in"), output_tokens=read.get("out"))


def _read_object(data: bytes) -> dict[str, Any]:
    try:
        found = loads(data)
    except ValueError as error:
        raise MalformedResponseError(f"this is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise MalformedResponseError("this is not an object")
    return found


@cache
def _models() -> Sequence[ModelInfo]:
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def capabilities_of(model: str) -> ModelCapabilities:
    """Return what a model accepts; a model that is not listed gets the defaults, marked assumed."""
    info = find_model(_models(), model)
    if info is None:
        return DEFAULTS
    return attrs.evolve(DEFAULTS, assumed=False, max_context_tokens=info.max_context_tokens or 0)


plugin = _Mint()
