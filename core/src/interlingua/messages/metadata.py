"""What is known about a message besides what it says: origin, routing, status, stop reason, opaque replay state.

Never interprets `provider_raw` (only the adapter that wrote it does) and never computes a cost.
Messages and every room above may come in, through `interlingua.messages`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import attrs

from interlingua.errors import CallerError
from interlingua.jsontext import EMPTY, FrozenDict, freeze_object, freeze_optional
from interlingua.messages.usage import Usage
from interlingua.values import READY, quick


class MessageStatus(StrEnum):
    """How far a message got (seed 003 §4.3)."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    CANCELLED = "cancelled"
    ERROR = "error"


class Provenance(StrEnum):
    """Where a message came from; rules on model, routing and usage bind generated ones only (DESIGN 3)."""

    GENERATED = "generated"
    AUTHORED = "authored"
    IMPORTED = "imported"


class StopReason(StrEnum):
    """Why the model stopped, closed; the provider's own word is kept beside it (sheet MAPPING, stop reason)."""

    END_TURN = "end_turn"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    CONTEXT_WINDOW = "context_window"
    REFUSAL = "refusal"
    PAUSE_TURN = "pause_turn"
    ERROR = "error"
    OTHER = "other"


class RoutingMode(StrEnum):
    """Coarse summary of why this model was picked (seed 003 §4.3)."""

    OVERRIDE = "override"
    MANUAL = "manual"
    RULE = "rule"
    PATTERN = "pattern"
    DELEGATE = "delegate"
    DEFAULT = "default"


# type checkers cannot see through a bare `tuple` as converter
def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


def _status(value: str) -> MessageStatus:
    try:
        return MessageStatus(value)
    except ValueError:
        raise CallerError(f"a status is one of {', '.join(MessageStatus)}, not {value!r}") from None


def _indexes(value: Iterable[int]) -> tuple[int, ...]:
    return tuple(value)


@quick
@attrs.frozen(kw_only=True)
class RoutingDecisionRecord:
    """Compact summary of a routing decision (seed 003 §4.3).

    Attributes:
        mode: the coarse class.
        chosen_model: canonical model id; echoes the message's model.
        reason: one sentence for a person.
        rule_name: for RULE mode.
        confidence: for PATTERN mode, 0 to 1.
        alternatives_considered: canonical model ids.
    """

    mode: RoutingMode
    chosen_model: str
    reason: str
    rule_name: str | None = None
    confidence: float | None = None
    alternatives_considered: tuple[str, ...] = attrs.field(default=(), converter=_names)


@attrs.frozen(kw_only=True)
class ErrorInfo:
    """What ended a message that failed: class name in `interlingua.errors`, and its message."""

    type: str
    message: str


class Origin(NamedTuple):
    """Who produced a message: the public origin of DESIGN 3."""

    provider: str
    api: str
    model: str


@quick
@attrs.frozen(kw_only=True)
class MessageMetadata:
    """Everything known about a message besides its content (seed 003 §4.3; DESIGN 3).

    Attributes:
        model: canonical model id, `<provider>:<name>`.
        provider: provider key.
        api: which of the provider's wire formats.
        routing: why this model.
        usage: tokens, money, time.
        parent_tool_use_id: for TOOL messages, the call they answer.
        status: complete, partial, cancelled or error; the word alone is taken as well.
        stop_reason: why the model stopped.
        stop_reason_raw: the provider's word for it.
        error: what ended a message that failed.
        provenance: generated, authored or imported; None means authored unless `model` is set.
        critical: indexes of blocks that may not be dropped by a lossy projection.
        user_id: stable pseudonymous id of the user.
        team_id: stable pseudonymous id of the team.
        provider_raw: `{origin, replay, trace}` of the adapter that wrote it; not part of equality or hash.
        extra: metadata fields written by a newer version, kept on re-save.
    """

    model: str | None = None
    provider: str | None = None
    api: str | None = None
    routing: RoutingDecisionRecord | None = None
    usage: Usage | None = None
    parent_tool_use_id: str | None = None
    status: MessageStatus = attrs.field(
        default=MessageStatus.COMPLETE, converter=_status, metadata={READY: MessageStatus}
    )
    stop_reason: StopReason | None = None
    stop_reason_raw: str | None = None
    error: ErrorInfo | None = None
    provenance: Provenance | None = None
    critical: tuple[int, ...] = attrs.field(default=(), converter=_indexes)
    user_id: str | None = None
    team_id: str | None = None
    provider_raw: FrozenDict | None = attrs.field(default=None, eq=False, repr=False, converter=freeze_optional)
    extra: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)

    @property
    def origin(self) -> Origin | None:
        """The public origin, or None for a message no model made."""
        if self.provider is None or self.model is None:
            return None
        return Origin(self.provider, self.api or "", self.model.partition(":")[2] or self.model)


NO_METADATA = MessageMetadata()
