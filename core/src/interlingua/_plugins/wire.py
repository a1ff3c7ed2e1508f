"""Requests, responses and stream chunks as bytes, and the context in which an answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

import attrs

from interlingua._ids import new_tool_use_id, new_ulid
from interlingua._json import EMPTY
from interlingua.errors import MalformedResponseError
from interlingua.types.blocks import ContentBlock, TextBlock
from interlingua.types.messages import (
    DEFAULT_SESSION,
    Loss,
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


class _Pair(NamedTuple):
    event: str
    data: bytes


class WireChunk(_Pair):
    """One framed event of a stream: a pair of name and payload.

    Attributes:
        event: name of the event; "" if the framing has no names.
        data: payload bytes.
        headers: further facts of the framing about the event; not part of the pair.
    """

    headers: Mapping[str, Any] = EMPTY

    def __new__(cls, event: str, data: bytes, headers: Mapping[str, Any] = EMPTY) -> WireChunk:
        """Create a chunk, with headers if there are any."""
        made = super().__new__(cls, event, data)
        if headers:
            made.headers = headers
        return made


@attrs.frozen(kw_only=True)
class WireRequest:
    """One request as bytes, without authentication.

    Attributes:
        method: HTTP method.
        path: path below the connection's base URL, starting with a slash; may carry a query. Of a `FollowUp` also a
            complete address.
        headers: headers that the API itself requires; never a secret.
        body: the exact bytes to send.
        losses: the ledger of this projection, in conversation order.
        api: the API of the provider that this request uses; part of the origin of the answer.
        stream: True if the answer will be a stream of events, or, of `batch_results`, lines that are read one by one.
        tool_names: name in the request -> canonical name, for tools whose names had to change; filled by core.
        echo: facts about this request that the plugin needs to read the answer (`RequestContext.echo`).
    """

    method: str = "POST"
    path: str
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = attrs.field(repr=lambda body: f"<{len(body):,} bytes>")
    losses: tuple[Loss, ...] = ()
    api: str
    stream: bool = False
    tool_names: Mapping[str, str] = attrs.field(factory=dict)
    echo: Mapping[str, Any] = attrs.field(factory=dict)

    def _repr_html_(self) -> str:
        from interlingua._display import losses_html  # noqa: PLC0415  only for values that are shown

        return losses_html(self.losses, f"{self.method} {self.path}, {len(self.body):,} bytes; {self.api}")


@attrs.frozen(kw_only=True)
class WireResponse:
    """A complete answer: status, headers (names in lower case) and the whole body.

    Attributes:
        status: HTTP status.
        headers: names in lower case.
        body: the whole body.
        losses: rows for an answer that a plugin wrote: content that the API could not express.
    """

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = attrs.field(default=b"", repr=lambda body: f"<{len(body):,} bytes>")
    losses: tuple[Loss, ...] = ()


def _check_wait(_follow_up: object, _field: object, value: Any) -> None:
    if not isinstance(value, (int, float)) or not 0 <= value < inf:
        raise ValueError(f"FollowUp.after must be a number of seconds from 0, not {value!r}")


@attrs.frozen(kw_only=True)
class FollowUp:
    """The request that has to follow an answer, because the message is not, or not whole, in it.

    It is the result of the hook `follow_up`, or announced in a stream (`RawUpdate.follow_up`).

    Core sends no key to an address that is not of the service: a complete one needs the origin of `base_url`, or a host
    of `Connection.hosts` if `base_url` has one.

    Attributes:
        request: the next request; with `stream=True` its answer is read by `stream_response`.
        after: seconds to wait before it is sent; any other value is a ValueError.
        cancel: request that ends the work; sent if the caller leaves or a time limit passes.
        usage: request for the usage, if the answer to `request` has none; sent when that is complete, and its answer is
            read by `from_wire_response`.
    """

    request: WireRequest
    after: float = attrs.field(default=0.0, validator=_check_wait)
    cancel: WireRequest | None = None
    usage: WireRequest | None = None


def replay_state(message: Message, api: str | None = None) -> Mapping[str, Any]:
    """Return the replay state that this plugin stored with a message (`RequestContext.message`), or an empty mapping.

    For use in `to_wire`, whose messages hold no state of other providers.

    Args:
        message: any message.
        api: return only state that this API wrote; None for any API.
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
    """Everything core knows about the request that an answer belongs to.

    Attributes:
        origin: provider key, API and model that the message is credited to.
        message_id: id of the message.
        session_id: session of the message.
        mint_tool_use_id: returns a new canonical tool-use id; call it once per tool call, in order.
        clock: returns the time of the message, UTC.
        routing: the decision of a router, or None.
        tool_names: name in the request -> canonical name, for tools whose names had to change.
        echo: the value of `WireRequest.echo`.
        request: the request that was sent, if the plugin has the hook `follow_up`.
        response_headers: headers of the answer, names in lower case.
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
    request: WireRequest | None = None
    response_headers: Mapping[str, str] = EMPTY
    user_id: str | None = None
    team_id: str | None = None

    def tool_name(self, wire_name: str) -> str:
        """Return the canonical name of a tool that the model called.

        Raises:
            MalformedResponseError: the name is not a string.
        """
        if not isinstance(wire_name, str):
            raise MalformedResponseError(f"the name of a called tool must be a string, not {type(wire_name).__name__}")
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
        losses: tuple[Loss, ...] = (),
    ) -> Message:
        """Create the assistant message of this request, for whole and streamed answers alike.

        Args:
            content: the blocks, in order.
            stop_reason: why the model stopped; None while it is still writing.
            stop_reason_raw: the reason in the words of the service.
            usage: token counts, or None if the service reported none.
            replay: state that this plugin needs to send the message back exactly; never trimmed.
            trace: details that help to understand the answer; may be trimmed.
            status: status of the message.
            error: ErrorInfo of a failed message.
            losses: rows for content that the service reports it left out of the request.
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
            losses=losses,
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


EVENT_LIMIT = 64 * 1024 * 1024
"""Default limit of a whole body, and of one event of a stream, in bytes."""
