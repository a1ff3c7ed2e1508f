"""The message: a role, blocks in order, metadata with usage and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeAlias

import attrs

from interlingua._ids import new_ulid
from interlingua._json import (
    EMPTY,
    FieldError,
    FrozenDict,
    as_names,
    as_tuple,
    dumps,
    freeze_object,
    freeze_optional,
    raise_field_error,
)
from interlingua._values import CONVERT_ALWAYS, replace, validated
from interlingua.errors import CallerError
from interlingua.types.blocks import ChangeBlock, ContentBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock


class Role(StrEnum):
    """The author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class MessageStatus(StrEnum):
    """How far a message got (format.md, Status and errors)."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    CANCELLED = "cancelled"
    ERROR = "error"


class Provenance(StrEnum):
    """Where a message came from; the rules on model, routing and usage bind generated messages only."""

    GENERATED = "generated"
    AUTHORED = "authored"
    IMPORTED = "imported"
    OTHER = "other"


class StopReason(StrEnum):
    """Why the model stopped; the provider's own word is kept beside it."""

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
    """How the model was chosen, coarsely."""

    OVERRIDE = "override"
    MANUAL = "manual"
    RULE = "rule"
    PATTERN = "pattern"
    DELEGATE = "delegate"
    DEFAULT = "default"
    OTHER = "other"


class TokenBuckets(NamedTuple):
    """Token counts that do not overlap; their sum is everything that was billed as tokens.

    Attributes:
        uncached_input: input that no cache was involved in.
        cached_input: input read from a cache.
        cache_creation_input: input written to a cache.
        visible_output: output without reasoning.
        reasoning: reasoning.
    """

    uncached_input: int
    cached_input: int
    cache_creation_input: int
    visible_output: int
    reasoning: int

    @property
    def total(self) -> int:
        """All tokens in and out."""
        return sum(self)


@validated
@attrs.frozen(kw_only=True)
class CostParts:
    """The cost in USD by token class, exact.

    Attributes:
        input: plain input, audio included.
        output: output, reasoning included.
        cached_read: input read from a cache.
        cache_write: input written to a cache.
        other: units counted in `Usage.extra_units`.
    """

    input: Decimal
    output: Decimal
    cached_read: Decimal
    cache_write: Decimal
    other: Decimal = Decimal(0)


@validated
@attrs.frozen(kw_only=True)
class Usage:
    """Tokens, money and time of one generated message (format.md, Usage).

    Attributes:
        input_tokens: all input, cached reads and cache writes included; None when not reported.
        output_tokens: all output, reasoning included; None when not reported.
        cached_input_tokens: part of input that was read from a cache.
        cache_creation_input_tokens: part of input that was written to a cache.
        cache_creation_1h_input_tokens: part of the cache writes that is kept for an hour, at its own price.
        audio_input_tokens: part of input that was audio, if the provider reports it.
        cached_audio_input_tokens: part of the cached reads that was audio.
        reasoning_tokens: part of output that was reasoning.
        extra_units: units with separate prices, counted by name: the service's tools by use (`web_search`,
            `file_search`), the units it bills instead of tokens (`search_units`), and tokens of output that is not text
            (`image_output_tokens`, part of `output_tokens`).
        service_tier: the tier that the provider reports.
        cost_usd: sum of `cost` in USD; None, never 0, when unknown.
        cost: its parts, exact.
        cost_note: why the cost is unknown, or which part is not in it.
        pricing_version: source and date of the prices; `reported` if the service reported its charge, `source` if
            another system computed the cost, `self-hosted` if tokens have no price.
        latency_ms: milliseconds from sending the request to the end of the answer.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation_1h_input_tokens: int | None = None
    audio_input_tokens: int | None = None
    cached_audio_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    extra_units: FrozenDict | None = attrs.field(default=None, converter=freeze_optional)
    service_tier: str | None = None
    cost_usd: Decimal | None = None
    cost: CostParts | None = None
    cost_note: str | None = None
    pricing_version: str | None = None
    latency_ms: int | None = None

    def buckets(self) -> TokenBuckets:
        """Split the inclusive counts into disjoint ones; what was not reported counts as 0 here."""
        cached = self.cached_input_tokens or 0
        created = self.cache_creation_input_tokens or 0
        reasoning = self.reasoning_tokens or 0
        return TokenBuckets(
            uncached_input=max((self.input_tokens or 0) - cached - created, 0),
            cached_input=cached,
            cache_creation_input=created,
            visible_output=max((self.output_tokens or 0) - reasoning, 0),
            reasoning=reasoning,
        )

    @property
    def cache_saving_usd(self) -> Decimal | None:
        """How much prompt caches saved in USD, by the prices of `cost`; below 0 if writing cost more; None: unknown."""
        cached = (self.cached_input_tokens or 0) + (self.cache_creation_input_tokens or 0)
        plain, cost = (self.input_tokens or 0) - cached, self.cost
        if cost is None or plain <= 0 or self.audio_input_tokens or self.pricing_version in ("reported", "source"):
            return None
        return cost.input / plain * cached - cost.cached_read - cost.cache_write

    def updated(self, other: Usage) -> Usage:
        """Return this with the counts that `other` reports: they are totals and replace earlier ones."""
        changes = {name: value for name in _COUNTS if (value := getattr(other, name)) is not None}
        return replace(self, **changes) if changes else self

    def _repr_html_(self) -> str:
        from interlingua._display import usage_html  # noqa: PLC0415  only for values that are shown

        return usage_html(self)


NO_USAGE = Usage()
"""The usage of a message whose provider reported none: every field is None."""

_COSTS = {"cost_usd", "cost", "cost_note", "pricing_version", "latency_ms"}
_COUNTS = tuple(name for name in attrs.fields_dict(Usage) if name not in _COSTS)


def _share(value: Any) -> Any:
    if isinstance(value, (int, float)) and not 0 <= value <= 1:
        raise FieldError("expected a number from 0 to 1")
    return value


def _indexes(value: Iterable[int]) -> tuple[int, ...]:
    return as_tuple(value)


@validated
@attrs.frozen(kw_only=True)
class RoutingDecision:
    """Why a model was chosen, in short.

    Attributes:
        mode: how it was chosen, coarsely.
        chosen_model: canonical model id, the same as the message's.
        reason: one sentence for a person.
        rule_name: name of the rule, in mode RULE.
        confidence: confidence from 0 to 1, in mode PATTERN.
        alternatives_considered: canonical model ids.

    Raises:
        CallerError: a confidence outside 0 to 1, or a rule without its name.
    """

    mode: RoutingMode
    chosen_model: str
    reason: str
    rule_name: str | None = None
    confidence: float | None = attrs.field(default=None, converter=_share, metadata=CONVERT_ALWAYS)
    alternatives_considered: tuple[str, ...] = attrs.field(default=(), converter=as_names)

    def __attrs_post_init__(self) -> None:
        if self.mode is RoutingMode.RULE and not self.rule_name:
            try:
                raise FieldError("a decision by a rule needs its name", ".rule_name")
            except FieldError as problem:  # the codec reads it from the context
                raise CallerError(f"RoutingDecision{problem.path}: {problem}") from None


@validated
@attrs.frozen(kw_only=True)
class ErrorInfo:
    """The error that ended a message.

    Attributes:
        type: class name in `interlingua.errors`.
        message: its message.
    """

    type: str
    message: str


class Origin(NamedTuple):
    """The origin of a generated message: provider, API and model.

    Attributes:
        provider: provider key.
        api: which of the provider's APIs.
        model: model name without provider key.
    """

    provider: str
    api: str
    model: str


Verdict: TypeAlias = Literal["rewritten", "dropped", "blocked"]
Severity: TypeAlias = Literal["form", "content"]

_READ = frozenset(
    {"text", "image", "audio", "video", "document", "tool_use", "tool_result", "opaque", "unknown", "message"}
)


@attrs.frozen(kw_only=True)
class Loss:
    """One row of the loss ledger: something a target did not receive unchanged (format.md, Projection and losses).

    Attributes:
        path: place in the conversation, `messages[3].content[1]` or `tools[0].input_schema…`.
        block_type: the block's `type`, or `tool`, `message`, `option`.
        verdict: rewritten (sent in another form), dropped, or blocked (the request failed because of it).
        reason: one sentence for people.
        message_id: id of the message, or None.
        severity: `content` if the model does not read something that the conversation holds, such as a dropped
            document; `form` if it reads the same in another form, or does without an option or another model's
            thinking. The default follows from verdict and block type.
    """

    path: str
    block_type: str
    verdict: Verdict
    reason: str
    message_id: str | None = None
    severity: Severity = attrs.field()

    @severity.default
    def _usual(self) -> Severity:
        if self.verdict == "blocked":
            return "content"
        lost = self.block_type in _READ or (self.block_type == "tool" and self.path.endswith("]"))
        return "content" if lost and self.verdict == "dropped" else "form"


def _extra(value: Mapping[str, Any] | None) -> FrozenDict:
    extra = freeze_object(value)
    for name in extra if type(extra) is FrozenDict else ():
        if name in _METADATA_FIELDS and name != "extra":
            raise FieldError(f"{name!r} is a field, not an extra")
    return extra


@validated
@attrs.frozen(kw_only=True)
class MessageMetadata:
    """Facts about a message, apart from its content (format.md, Metadata).

    Attributes:
        model: canonical model id, `<provider>:<name>`.
        provider: provider key.
        api: which of the provider's APIs.
        routing: why this model was chosen.
        usage: tokens, money, time.
        parent_tool_use_id: id of the call that a TOOL message answers.
        status: how far it got; a plain string is converted.
        stop_reason: why the model stopped.
        stop_reason_raw: the provider's word for it.
        error: the error that ended a message that failed.
        provenance: origin of the message; None means authored, or generated if `model` is set.
        critical: indexes of blocks that must not be dropped: a target that cannot take them raises CapabilityError.
        user_id: stable pseudonymous id of the user.
        team_id: stable pseudonymous id of the team.
        losses: ledger rows of the request, on an answer just received; not stored, not part of equality or hash.
        app: free JSON of applications, each under its own key, such as the name of its package; never sent.
        provider_raw: `{origin, replay, trace}` of the plugin that wrote it; not part of equality or hash.
        extra: metadata fields written by a newer version, kept on re-save.
    """

    model: str | None = None
    provider: str | None = None
    api: str | None = None
    routing: RoutingDecision | None = None
    usage: Usage | None = None
    parent_tool_use_id: str | None = None
    status: MessageStatus = attrs.field(default=MessageStatus.COMPLETE, converter=MessageStatus)
    stop_reason: StopReason | None = None
    stop_reason_raw: str | None = None
    error: ErrorInfo | None = None
    provenance: Provenance | None = None
    critical: tuple[int, ...] = attrs.field(default=(), converter=_indexes)
    user_id: str | None = None
    team_id: str | None = None
    losses: tuple[Loss, ...] = attrs.field(default=(), eq=False, repr=False)
    app: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    provider_raw: FrozenDict | None = attrs.field(default=None, eq=False, repr=False, converter=freeze_optional)
    extra: FrozenDict = attrs.field(default=EMPTY, converter=_extra, metadata=CONVERT_ALWAYS)

    @property
    def origin(self) -> Origin | None:
        """The public origin, or None for a message no model made."""
        if self.provider is None or self.model is None:
            return None
        return Origin(self.provider, self.api or "", self.model.partition(":")[2] or self.model)


_METADATA_FIELDS = attrs.fields_dict(MessageMetadata)
NO_METADATA = MessageMetadata()
_SYSTEM = Role.SYSTEM  # an enum's member is slow before Python 3.12
SCHEMA_VERSION = 1

THINKING_WAS_REFUSED = "interlingua.thinking_was_refused"
"""Key in the metadata of an answer before which the service refused the thinking of the conversation."""
ANSWER_WAS_DROPPED = "interlingua.silently_answered"
"""Key of `metadata.extra` on a projected message whose answer held nothing that could be sent (`model_saw`)."""

DEFAULT_SESSION = "default"


def _content(value: str | ContentBlock | Iterable[ContentBlock]) -> tuple[ContentBlock, ...]:
    if type(value) is tuple:
        return value
    if isinstance(value, str):
        return (TextBlock(text=value),)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping)):
        return tuple(value)
    return (value,) if attrs.has(type(value)) else raise_field_error("a string or content blocks", value)  # type: ignore[return-value]


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


@validated
@attrs.frozen(kw_only=True)
class Message:
    """One message of a conversation (format.md, Messages).

    Attributes:
        id: ULID, monotonic per session.
        session_id: the session it belongs to.
        role: role of the author; a plain string is converted.
        content: blocks in order; a string is converted to one TextBlock.
        metadata: everything else that is known.
        created_at: time in UTC, to the microsecond.
        schema_version: version of the canonical format that it was written in.
    """

    id: str = attrs.field(factory=new_ulid)
    session_id: str = DEFAULT_SESSION
    role: Role = attrs.field(converter=Role)
    content: tuple[ContentBlock, ...] = attrs.field(converter=_content)
    metadata: MessageMetadata = NO_METADATA
    created_at: datetime = attrs.field(factory=utc_now)
    schema_version: int = SCHEMA_VERSION

    @property
    def text(self) -> str:
        """The text of all TextBlocks, joined."""
        return "".join([block.text for block in self.content if type(block) is TextBlock])

    @property
    def tool_calls(self) -> list[ToolUseBlock]:
        """The tool calls, in order."""
        return [block for block in self.content if type(block) is ToolUseBlock]

    @property
    def tool_results(self) -> list[ToolResultBlock]:
        """The tool results, in order."""
        return [block for block in self.content if type(block) is ToolResultBlock]

    @property
    def thinking_blocks(self) -> list[ThinkingBlock]:
        """The thinking blocks, in order."""
        return [block for block in self.content if type(block) is ThinkingBlock]

    @property
    def usage(self) -> Usage:
        """Tokens, money and time; if nothing was reported, every field is None."""
        return self.metadata.usage or NO_USAGE

    @property
    def model(self) -> str | None:
        """Canonical id of the model that generated the message; None if no model did."""
        return self.metadata.model

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the model stopped."""
        return self.metadata.stop_reason

    @property
    def status(self) -> MessageStatus:
        """How far the message got."""
        return self.metadata.status

    def _repr_markdown_(self) -> str:
        from interlingua._display import messages_markdown  # noqa: PLC0415  only for values that are shown

        return messages_markdown([self])


TRACE_LIMIT = 65_536
"""Bytes of JSON that the trace of one message may take, by default."""


def limit_trace(trace: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the trace, or a note of its size if it is larger than TRACE_LIMIT."""
    size = len(dumps(trace)) if trace else 0
    return trace if size <= TRACE_LIMIT else {"trimmed_bytes": size}


def changes_in(messages: Iterable[Message]) -> list[ChangeBlock]:
    """Return the changes in a conversation."""
    return [part for each in messages if each.role is _SYSTEM for part in each.content if type(part) is ChangeBlock]
