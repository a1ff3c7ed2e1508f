"""What an adapter may not mint or read by itself while it reads an answer.

Never reaches the network or the clock of its own accord: the client fills it, tests fill it with fixed values.
Adapters, assembly, the client and the contract suite may come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from interlingua.blocks import ContentBlock, TextBlock
from interlingua.errors import MalformedResponse
from interlingua.ids import new_tool_use_id, new_ulid
from interlingua.messages import (
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
from interlingua.values import quick


def _now() -> datetime:
    return datetime.now(UTC)


# a model may answer nothing at all, and the canonical content of a complete message is not empty (seed 003 §4.1)
_SAID_NOTHING = (TextBlock(text=""),)


@quick
@attrs.frozen(kw_only=True)
class RequestContext:
    """Everything core knows about the exchange an answer belongs to (DESIGN 4).

    Attributes:
        origin: provider key, api and model that will be credited.
        message_id: id of the message to be made.
        session_id: its session.
        mint_tool_use_id: gives a fresh canonical tool-use id per call, in order of appearance.
        clock: gives the time the message is credited with, UTC.
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
            MalformedResponse: the wire gave something else than text for a name.
        """
        if not isinstance(wire_name, str):
            raise MalformedResponse(f"a called tool's name is {type(wire_name).__name__}, not text")
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
        """Make the assistant message of this exchange: both roads end here, so they agree on everything else.

        Args:
            content: the blocks, in order.
            stop_reason: why the model stopped; None while it has not.
            stop_reason_raw: the provider's word.
            usage: token counts; None when nothing was reported.
            replay: what this adapter needs to send the message back exactly; never trimmed.
            trace: what is good to know; trimmable.
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
            content = _SAID_NOTHING
        return Message(
            id=self.message_id,
            session_id=self.session_id,
            role=Role.ASSISTANT,
            content=tuple(content),
            metadata=metadata,
            created_at=self.clock(),
        )
