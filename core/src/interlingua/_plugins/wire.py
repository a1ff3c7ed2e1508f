"""What crosses the seam between core and a plugin: requests, responses, chunks, connections, the context."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import unquote

import attrs

from interlingua._ids import new_tool_use_id, new_ulid
from interlingua._json import EMPTY
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
    RoutingDecision,
    StopReason,
    Usage,
    limit_trace,
    utc_now,
)
from interlingua.types.options import Effort

Verdict = Literal["rewritten", "dropped", "blocked"]
_EFFORTS = get_args(Effort)


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
        place, block_type, verdict, reason = self
        path = f"messages[{index}].content[{place}]"
        return Loss(path=path, block_type=block_type, verdict=verdict, reason=reason, message_id=message_id)


def placeholder_text(rows: Iterable[BlockLoss | Loss]) -> str:
    """Return the text sent in place of a user's message of which no block can be sent: a user's turn never vanishes."""
    lines = [f"[{row.block_type} not sent: {row.reason}]" for row in rows if row.block_type != "text"]
    return "\n".join(lines) or "[empty message]"


def option_loss(name: str, verdict: Verdict, reason: str) -> Loss:
    """Return the ledger line of an option by its name in `RequestKwargs`."""
    return Loss(path=f"options.{name}", block_type="option", verdict=verdict, reason=reason)


def nearest_effort(wanted: str, accepted: Sequence[str], losses: list[Loss], option: str = "effort") -> str | None:
    """Return the effort to send: the wanted one, or the nearest that the model takes, with a row in `losses`.

    Of two that are equally near it is the lower. A model that cannot stop thinking gets its lowest effort instead of
    `none`, and `none` stands for no other effort.

    Args:
        wanted: one of `Effort`.
        accepted: the efforts of the model.
        losses: the ledger.
        option: the option that asked for it, where that is not `effort`.

    Returns:
        None where the model takes none of the efforts with which it thinks.
    """
    if wanted in accepted:
        return wanted
    place = _EFFORTS.index(wanted)
    steps = [effort for effort in _EFFORTS[1:] if effort in accepted]
    found = min(steps, key=lambda effort: abs(_EFFORTS.index(effort) - place), default=None)
    verdict: Verdict = "dropped" if found is None else "rewritten"
    losses.append(option_loss(option, verdict, f"this model has no effort {wanted!r}; {found or 'nothing'} is sent"))
    return found


def message_loss(index: int, reason: str, message_id: str | None = None, *, block_type: str = "message") -> Loss:
    """Return the ledger line of a message that goes in another form, or with something put before or behind it."""
    path = f"messages[{index}]"
    return Loss(path=path, block_type=block_type, verdict="rewritten", reason=reason, message_id=message_id)


class _Pair(NamedTuple):
    event: str
    data: bytes


class WireChunk(_Pair):
    """One framed event of a stream: a pair of its name and its payload.

    Attributes:
        event: name of the event; "" where the framing gives none.
        data: payload bytes.
        headers: what a framing says about the event besides; no part of the pair.
    """

    headers: Mapping[str, Any] = EMPTY

    def __new__(cls, event: str, data: bytes, headers: Mapping[str, Any] = EMPTY) -> WireChunk:
        """Make a pair with headers."""
        made = super().__new__(cls, event, data)
        if headers:
            made.headers = headers
        return made


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
        losses: what its API could not say, where an adapter wrote it (`to_wire_response`).
    """

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b""
    losses: tuple[Loss, ...] = ()


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


class HttpRequest(NamedTuple):
    """One HTTP request as it is sent, but for its signature. `headers` hold secrets: the representation omits them.

    Attributes:
        method: HTTP method.
        url: the whole address, encoded.
        headers: names in lower case; the connection's, the request's and the caller's, merged.
        body: the exact bytes.
        time: of this attempt, UTC.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    time: datetime

    def __repr__(self) -> str:
        return f"<Outgoing {self.method} {self.url}, {len(self.body)} bytes>"


Auth = Callable[[WireRequest], Mapping[str, str]]
Credentials = Callable[[ProviderError | None], Any]
Sign = Callable[[HttpRequest, Any], Mapping[str, str]]


def no_auth(_request: WireRequest) -> Mapping[str, str]:
    """Add nothing: a local server needs no key."""
    return {}


def bearer_auth(key: str | None) -> Auth:
    """Return a signer that sends the key as a bearer token, as most services want it; without a key `no_auth`."""
    if not key:
        return no_auth
    headers = {"authorization": f"Bearer {key}"}
    return lambda _request: headers


class Endpoint(NamedTuple):
    """What a request's path says: the API, the model where the path names it, and whether this adapter reads it.

    Attributes:
        api: name of the API.
        model: the model, or None.
        read: False for an endpoint of the service that this adapter knows and does not read.
    """

    api: str
    model: str | None
    read: bool = True


class BatchLimits(NamedTuple):
    """What one batch may hold: requests of one model and one wire format.

    Attributes:
        requests: most requests.
        size: most bytes of what is uploaded or sent.
    """

    requests: int
    size: int


@attrs.frozen(kw_only=True)
class Connection:
    """How to reach a provider (the answer of the `connection` hook).

    Attributes:
        base_url: scheme, host and path prefix, without a trailing slash.
        auth: secret headers of a request, where a fixed key is all it takes; called for every attempt.
        credentials: gives the secret that `sign` takes (any value but None), or an awaitable of it. Called before the
            first attempt, with None, and once more with the error of an attempt that failed with an
            AuthenticationError; in between the secret is kept, until its attribute `expires_at` (a datetime with
            time zone) is near, where it has one. It may block: an asynchronous client calls it in a thread.
        sign: secret headers of the finished request, from it and the secret (None without `credentials`); called for
            every attempt, after `auth`; pure.
        url: the whole address of a request, where that is not `base_url` and the request's path; pure.
        headers: public headers for every request.
        list_headers: lower-case names of list headers: the values of connection, request and caller are joined.
        request_id_headers: lower-case names of further response headers that hold the request id.
        framing: `sse`, `ndjson`, or a factory of an incremental framer.
        env_vars: names of the environment variables that were looked at, for error messages and `providers`.
        has_key: False when a key is needed and none was found.
        hosts: host names this service answers on, for recognising recorded traffic; `*` stands for any letters.
        endpoints: api name -> path (regular expression, matched at the end of a URL's path); a group `model` is the
            model's name, percent-encoded.
        unread_endpoints: the same for endpoints of the service that this adapter does not read.
        self_hosted: models (regular expression, matched whole) that run on machines of whoever runs the server: their
            tokens have no price, so they cost 0; empty for none.
        batch_limits: what a batch may hold, as `BatchLimits`; None where the service takes no batches.
    """

    base_url: str
    auth: Auth = no_auth
    credentials: Credentials | None = None
    sign: Sign | None = None
    url: Callable[[WireRequest], str] | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    list_headers: tuple[str, ...] = ()
    request_id_headers: tuple[str, ...] = ()
    framing: str | Callable[[], Any] = "sse"
    env_vars: tuple[str, ...] = ()
    has_key: bool = True
    hosts: tuple[str, ...] = ()
    endpoints: Mapping[str, str] = attrs.field(factory=dict)
    unread_endpoints: Mapping[str, str] = attrs.field(factory=dict)
    self_hosted: str = ""
    batch_limits: BatchLimits | None = None

    def find_endpoint(self, path: str) -> Endpoint | None:
        """Return the endpoint that a URL's path ends with, or None."""
        for endpoints, read in ((self.endpoints, True), (self.unread_endpoints, False)):
            for api, pattern in endpoints.items():
                if found := re.search(f"(?:{pattern})$", path.rstrip("/")):
                    model = found.groupdict().get("model")
                    return Endpoint(api, model and unquote(model), read)
        return None

    def claims_host(self, host: str) -> int:
        """Return how exactly this service claims a host: the length of the name that matches, 0 for not at all.

        A host may end with the name, after a dot or (as with regions) a hyphen.
        """
        patterns = ((name, re.escape(name).replace(r"\*", ".*")) for name in self.hosts)
        return max((len(name) for name, pattern in patterns if re.fullmatch(f"(.*[.-])?{pattern}", host)), default=0)


def replay_state(message: Message, api: str | None = None) -> Mapping[str, Any]:
    """Return the replay state that this adapter wrote with a message (`RequestContext.message`), or an empty mapping.

    In `to_wire`, whose messages have no other provider's state.

    Args:
        message: any message.
        api: the wire format that must have written it, where the state is of use to that one only.
    """
    raw: Mapping[str, Any] = message.metadata.provider_raw or EMPTY
    origin: Sequence[str] = raw.get("origin") or ()
    if api is not None and (len(origin) != 3 or origin[1] != api):
        return EMPTY
    found = raw.get("replay")
    return found if isinstance(found, dict) else EMPTY


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
        response_headers: of the answer, names in lower case.
        user_id: stable pseudonymous id of the user.
        team_id: stable pseudonymous id of the team.
    """

    origin: Origin
    message_id: str = attrs.field(factory=new_ulid)
    session_id: str = DEFAULT_SESSION
    mint_tool_use_id: Callable[[], str] = new_tool_use_id
    clock: Callable[[], datetime] = utc_now
    routing: RoutingDecision | None = None
    tool_names: Mapping[str, str] = attrs.field(factory=dict)
    echo: Mapping[str, Any] = attrs.field(factory=dict)
    response_headers: Mapping[str, str] = EMPTY
    user_id: str | None = None
    team_id: str | None = None

    def after(self, headers: Mapping[str, str]) -> RequestContext:
        """Return the context of an answer that came with these headers."""
        return attrs.evolve(self, response_headers=headers)

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
            raw = {"origin": list(origin), "replay": replay or {}, "trace": limit_trace(trace or {})}
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
            content=content,
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


_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|title|h1)\b", re.I | re.S
)
_TITLE = re.compile(rb"<(title|h1)\b[^>]*>(.*?)</\1", re.I | re.S)


def describe_html(response: WireResponse) -> str | None:
    """Say that the body is an HTML page, with its title, for an error's message; None for others and for redirects."""
    if 300 <= response.status < 400 or _HTML.match(response.body, 0, 4096) is None:
        return None
    found = _TITLE.search(response.body, 0, 65536)
    title = " ".join(found[2].decode("utf-8", "replace").split())[:200] if found else ""
    hint = "; is the base URL right?" if response.status < 500 else ""
    return f"an HTML page{f' ({title})' if title else ''} instead of an answer{hint}"


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Read `retry-after-ms` or `retry-after` (seconds or an HTTP date) in seconds; None when absent or unreadable."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return max(float(headers[name]) / unit, 0.0)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)


Step = Callable[[StreamEvent], Iterable[StreamEvent]]


def map_stream(
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
            return map_stream(stream, lambda event: [event])
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
