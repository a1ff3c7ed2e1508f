"""What crosses the seam between core and a plugin: requests, responses, chunks, connections, the context."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

import attrs

from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    ContextWindowExceededError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from interlingua.ids import new_tool_use_id, new_ulid
from interlingua.types.blocks import ContentBlock, TextBlock
from interlingua.types.events import StreamEvent
from interlingua.types.messages import (
    DEFAULT_SESSION,
    Message,
    MessageMetadata,
    MessageStatus,
    Origin,
    Provenance,
    Role,
    RoutingDecisionRecord,
    StopReason,
    Usage,
    capped_trace,
)

Verdict = Literal["rewritten", "dropped", "blocked"]


@attrs.frozen(kw_only=True)
class Loss:
    """One row of the loss ledger: what a target did not get as it was (format.md, Projection and losses).

    Attributes:
        path: place in the conversation, `messages[3].content[1]` or `tools[0].input_schema…`.
        block_type: the block's `type`, or `tool`, `message`, `option`.
        verdict: rewritten (carried in another form), dropped, or blocked (the request failed for it).
        reason: one sentence for a person.
        message_id: id of the message, where it has one.
    """

    path: str
    block_type: str
    verdict: Verdict
    reason: str
    message_id: str | None = None


class BlockLoss(NamedTuple):
    """A loss of one block, before its message's place in the conversation is known.

    Attributes:
        block: index of the block in its message.
        block_type: the block's `type`.
        verdict: rewritten, dropped or blocked.
        reason: one sentence for a person.
    """

    block: int
    block_type: str
    verdict: Verdict
    reason: str

    def at(self, index: int, message_id: str) -> Loss:
        """Return the ledger line, given where the message stands and its id."""
        path = f"messages[{index}].content[{self.block}]"
        return Loss(
            path=path, block_type=self.block_type, verdict=self.verdict, reason=self.reason, message_id=message_id
        )


def option_loss(name: str, verdict: Verdict, reason: str) -> Loss:
    """Return the ledger line of an option by its name in `AdapterOptions`."""
    return Loss(path=f"options.{name}", block_type="option", verdict=verdict, reason=reason)


def message_loss(index: int, reason: str, message_id: str | None = None) -> Loss:
    """Return the ledger line of a message that goes in another form, or with something put before or behind it."""
    return Loss(
        path=f"messages[{index}]", block_type="message", verdict="rewritten", reason=reason, message_id=message_id
    )


class WireChunk(NamedTuple):
    """One framed event of a stream: its name ("" when the framing gives none) and its payload bytes.

    Attributes:
        event: name of the event; "" where the framing gives none.
        data: payload bytes.
    """

    event: str
    data: bytes


@attrs.frozen(kw_only=True)
class WireRequest:
    """One request as bytes, without auth.

    Attributes:
        method: HTTP method.
        path: path below the connection's base URL, starting with a slash; may carry a query.
        headers: what the wire itself demands; never a secret.
        body: the exact bytes to send.
        losses: the ledger of this projection, in conversation order.
        api: which of the provider's wire formats this is (part of the origin of the answer).
        stream: True when the answer will be framed events.
        tool_names: wire name -> canonical name, where names had to change; filled by core.
        echo: facts about this request that the adapter wants to see again with the answer (`RequestContext.echo`).
    """

    method: str = "POST"
    path: str
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes
    losses: tuple[Loss, ...] = ()
    api: str
    stream: bool = False
    tool_names: Mapping[str, str] = attrs.field(factory=dict)
    echo: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class WireResponse:
    """A complete answer: status, headers (names in lower case) and the whole body.

    Attributes:
        status: HTTP status.
        headers: names in lower case.
        body: the whole body.
    """

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b""


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """What a user or the environment says about reaching a provider; the input of the `connection` hook.

    Attributes:
        api_key: given by the caller; None lets the adapter look into `environ`.
        base_url: overrides the adapter's own.
        environ: the environment, passed in so that the hook stays pure.
        api: the wire format wanted, where the provider has several.
        options: the provider's own connection options (region, organisation, version, …).
    """

    api_key: str | None = None
    base_url: str | None = None
    environ: Mapping[str, str] = attrs.field(factory=dict)
    api: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)


Auth = Callable[[WireRequest], Mapping[str, str]]


def no_auth(_request: WireRequest) -> Mapping[str, str]:
    """Add nothing: a local server needs no key."""
    return {}


def bearer_auth(key: str | None) -> Auth:
    """Return a signer that sends the key as a bearer token, as most services want it; without a key `no_auth`."""
    if not key:
        return no_auth
    headers = {"authorization": f"Bearer {key}"}
    return lambda _request: headers


@attrs.frozen(kw_only=True)
class Connection:
    """How to reach a provider (the answer of the `connection` hook).

    Attributes:
        base_url: scheme, host and path prefix, without a trailing slash.
        auth: a signer: WireRequest -> secret headers, called by the transport just before sending.
        headers: public headers for every request.
        joined: names in lower case of headers that are lists: what connection, request and caller say adds up.
        framing: `sse`, `ndjson`, or a factory of an incremental framer.
        env: names of the environment variables that were looked at, for error messages and `providers`.
        has_key: False when a key is needed and none was found.
        hosts: host names this service answers on, for recognising recorded traffic.
        endpoints: api name -> path (regular expression, matched at the end of a URL's path).
    """

    base_url: str
    auth: Auth = no_auth
    headers: Mapping[str, str] = attrs.field(factory=dict)
    joined: tuple[str, ...] = ()
    framing: str | Callable[[], Any] = "sse"
    env: tuple[str, ...] = ()
    has_key: bool = True
    hosts: tuple[str, ...] = ()
    endpoints: Mapping[str, str] = attrs.field(factory=dict)


def _now() -> datetime:
    return datetime.now(UTC)


# a model may answer nothing at all, and a complete message is not empty (format.md, Rule 1)
_EMPTY_ANSWER = (TextBlock(text=""),)


@attrs.frozen(kw_only=True)
class RequestContext:
    """Everything core knows about the exchange an answer belongs to.

    Attributes:
        origin: provider key, api and model that will be credited.
        message_id: id of the message to be made.
        session_id: its session.
        mint_tool_use_id: gives a fresh canonical tool-use id per call, in order of appearance.
        clock: gives the time of the message, UTC.
        routing: why this model, where a router decided.
        tool_names: wire name -> canonical name, where projection had to change names.
        echo: what the adapter put into `WireRequest.echo`.
        user_id: stable pseudonymous id of the user.
        team_id: stable pseudonymous id of the team.
    """

    origin: Origin
    message_id: str = attrs.field(factory=new_ulid)
    session_id: str = DEFAULT_SESSION
    mint_tool_use_id: Callable[[], str] = new_tool_use_id
    clock: Callable[[], datetime] = _now
    routing: RoutingDecisionRecord | None = None
    tool_names: Mapping[str, str] = attrs.field(factory=dict)
    echo: Mapping[str, Any] = attrs.field(factory=dict)
    user_id: str | None = None
    team_id: str | None = None

    def tool_name(self, wire_name: str) -> str:
        """Return the canonical name of a tool the model called by its wire name.

        Raises:
            MalformedResponseError: the wire gave something else than text for a name.
        """
        if not isinstance(wire_name, str):
            raise MalformedResponseError(f"a called tool's name is {type(wire_name).__name__}, not text")
        return self.tool_names.get(wire_name, wire_name)

    def message(
        self,
        content: Sequence[ContentBlock],
        *,
        stop_reason: StopReason | None,
        stop_reason_raw: str | None = None,
        usage: Usage | None = None,
        replay: Mapping[str, Any] | None = None,
        trace: Mapping[str, Any] | None = None,
        status: MessageStatus = MessageStatus.COMPLETE,
        error: Any = None,
    ) -> Message:
        """Make the assistant message of this exchange: whole and streamed answers are both made here, so they agree.

        Args:
            content: the blocks, in order.
            stop_reason: why the model stopped; None while it has not.
            stop_reason_raw: the provider's word.
            usage: token counts; None when nothing was reported.
            replay: what this adapter needs to send the message back exactly; never trimmed.
            trace: what helps to understand the answer; may be trimmed.
            status: complete unless the stream says otherwise.
            error: ErrorInfo of a message that failed.
        """
        origin = self.origin
        raw: dict[str, Any] | None = None
        if replay or trace:
            raw = {"origin": list(origin), "replay": replay or {}, "trace": capped_trace(trace or {})}
        metadata = MessageMetadata(
            model=f"{origin.provider}:{origin.model}",
            provider=origin.provider,
            api=origin.api,
            routing=self.routing,
            usage=usage if usage is not None or status is not MessageStatus.COMPLETE else Usage(),
            status=status,
            stop_reason=stop_reason,
            stop_reason_raw=stop_reason_raw,
            error=error,
            provenance=Provenance.GENERATED,
            user_id=self.user_id,
            team_id=self.team_id,
            provider_raw=raw,
        )
        if not content and status is MessageStatus.COMPLETE:
            content = _EMPTY_ANSWER
        return Message(
            id=self.message_id,
            session_id=self.session_id,
            role=Role.ASSISTANT,
            content=tuple(content),
            metadata=metadata,
            created_at=self.clock(),
        )


_BY_STATUS: dict[int, type[ProviderError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    402: QuotaExceededError,
    403: PermissionDeniedError,
    404: ModelNotFoundError,
    408: ServerError,
    409: ServerError,
    413: ContextWindowExceededError,
    422: BadRequestError,
    429: RateLimitError,
    503: OverloadedError,
    529: OverloadedError,
}


def error_class_for_status(status: int) -> type[ProviderError]:
    """Return the error class a status alone suggests."""
    return _BY_STATUS.get(status) or (ServerError if status >= 500 else BadRequestError)


def error_for_status(response: WireResponse) -> ProviderError:
    """Return the error a status alone suggests, with the delay its headers ask for."""
    text = response.body[:300].decode("utf-8", "replace").strip()
    if response.status < 400 and (address := response.headers.get("location")):
        text = f"the service is at {address.partition('?')[0]}, and redirects are not followed: give that as base URL"
    kind = error_class_for_status(response.status)
    return kind(text or "no body", status=response.status, retry_after=retry_after(response.headers))


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Read `retry-after-ms` or `retry-after` (seconds or an HTTP date) in seconds; None when absent or unreadable."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None:
        try:
            return max(float(milliseconds) / 1000, 0.0)
        except ValueError:
            pass
    text = headers.get("retry-after")
    if text is None:
        return None
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)


Step = Callable[[StreamEvent], Iterable[StreamEvent]]


def wrap_stream(
    stream: AsyncIterator[StreamEvent], each: Step, last: Callable[[], Iterable[StreamEvent]] | None = None
) -> AsyncIterator[StreamEvent]:
    """Return a stream that passes every event of `stream` through `each`, for use in a `stream_response` wrapper.

    Args:
        stream: what the wrapped hook returned.
        each: takes one event, returns the events to hand on in its place.
        last: called when the wrapped stream has ended, for events to add.

    Example of a plugin::

        @hookimpl(wrapper=True)
        def stream_response(response_stream, context):
            stream = yield
            return wrap_stream(stream, lambda event: [event])
    """

    async def wrapped() -> AsyncGenerator[StreamEvent, None]:
        try:
            async for event in stream:
                for made in each(event):
                    yield made
            if last is not None:
                for made in last():
                    yield made
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    return wrapped()
