"""What a turn needs of a model, and whether a model's capabilities meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import attrs

from interlingua.types import (
    AdapterCapabilities,
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)

_MEDIA = (ImageBlock, AudioBlock, VideoBlock, DocumentBlock)


_Word: TypeAlias = tuple[str, str | None]
_NOTHING: frozenset[_Word] = frozenset()


@attrs.frozen(kw_only=True)
class Needs:
    """What must be carried.

    Attributes:
        media: (block type, media type) pairs found; the type of what is behind an address may be unknown, thus empty.
        history_tools: tool calls stand in the conversation.
        offered_tools: tools are offered.
        system: there is a system prompt.
        structured: the answer must follow a schema.
    """

    media: frozenset[tuple[str, str]] = frozenset()
    history_tools: bool = False
    offered_tools: bool = False
    system: bool = False
    structured: bool = False

    def has(self, block_type: str) -> bool:
        """Tell whether media of a block type are there."""
        return any(kind == block_type for kind, _ in self.media)


class NeedsRecord:
    """What conversations need, found once per message: a conversation that goes on costs its new messages only."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._found: list[frozenset[_Word]] = []  # of all messages up to this one

    def needs(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), *, structured: bool = False
    ) -> Needs:
        """Return what these messages and this request need."""
        found = self._read(messages)
        return Needs(
            media=frozenset((kind, media_type) for kind, media_type in found if media_type is not None),
            history_tools=("tool_use", None) in found,
            offered_tools=bool(tools),
            system=("system", None) in found,
            structured=structured,
        )

    def _read(self, messages: Sequence[Message]) -> frozenset[_Word]:
        same = 0
        for before, now in zip(self._messages, messages, strict=False):
            if before is not now:
                break
            same += 1
        del self._messages[same:], self._found[same:]
        found = self._found[-1] if same else _NOTHING
        for message in messages[same:]:
            if len(message.content) != 1 or type(message.content[0]) is not TextBlock or message.role is Role.SYSTEM:
                found = found | frozenset(_words(message))
            self._messages.append(message)
            self._found.append(found)
        return found


def _words(message: Message) -> Iterator[_Word]:
    if message.role is Role.SYSTEM:
        yield "system", None
    for block in message.content:
        inner = block.content if isinstance(block, ToolResultBlock) else ()
        for part in (block, *inner):
            if isinstance(part, _MEDIA):
                yield part.type, part.media_type
            elif isinstance(part, ToolUseBlock):
                yield "tool_use", None


_NAMES = {"image": "images", "audio": "audio", "video": "video", "document": "documents"}


@attrs.frozen(kw_only=True)
class ConstraintFailure:
    """One thing a model cannot do that a turn needs.

    Attributes:
        capability: the field of `AdapterCapabilities` that says so, or `provider` where there is none to ask.
        reason: for a person, as it stands behind "Cannot swap to X: ".
    """

    capability: str
    reason: str


def constraint_failures(
    needs: Needs, can: AdapterCapabilities, tokens: Callable[[], int] | None = None
) -> list[ConstraintFailure]:
    """Return why a model cannot answer; empty when it can.

    Args:
        needs: what the turn needs.
        can: what the model's adapter declares.
        tokens: estimates the input tokens, asked only where the window is known; None leaves size out.
    """
    if can.assumed:
        return []
    found = [*_media(needs, can), *_others(needs, can)]
    if tokens is not None and can.max_context_tokens and (size := tokens()) > can.max_context_tokens:
        window = can.max_context_tokens
        reason = f"session needs about {size:,} tokens and this model's context holds {window:,}"
        found.append(ConstraintFailure(capability="max_context_tokens", reason=reason))
    return found


def _media(needs: Needs, can: AdapterCapabilities) -> Iterator[ConstraintFailure]:
    for kind, name in _NAMES.items():
        capability = f"supports_{name}"
        accepted: Sequence[str] = getattr(can, f"accepted_{kind}_media_types")
        types = {media_type for block_type, media_type in needs.media if block_type == kind}
        if types and not getattr(can, capability):
            yield ConstraintFailure(
                capability=capability, reason=f"session contains {name} that this model can't process"
            )
        elif accepted and (others := sorted(types - {*accepted, ""})):
            reason = f"session contains {name} of type {', '.join(others)} that this model can't process"
            yield ConstraintFailure(capability=f"accepted_{kind}_media_types", reason=reason)


def _others(needs: Needs, can: AdapterCapabilities) -> Iterator[ConstraintFailure]:
    if needs.history_tools and not can.supports_tools:
        yield ConstraintFailure(
            capability="supports_tools", reason="session contains tool calls that this model can't process"
        )
    elif needs.offered_tools and not can.supports_tools:
        yield ConstraintFailure(capability="supports_tools", reason="this turn offers tools that this model can't call")
    if needs.system and not can.supports_system_prompt:
        yield ConstraintFailure(
            capability="supports_system_prompt", reason="session has a system prompt that this model can't take"
        )
    if needs.structured and not can.supports_structured_output:
        reason = "this turn asks for structured output that this model can't give"
        yield ConstraintFailure(capability="supports_structured_output", reason=reason)


@attrs.frozen(kw_only=True)
class RoutedTurn:
    """One turn about to be answered.

    Attributes:
        session_id: of the session.
        messages: what would be sent, the user's new message last.
        tools: what the model would be offered.
        options: what else is asked, by name of the option.
        override: the model named for this message alone.
        delegation: the model a planner asks for.
        record: remembers what the messages before needed.
    """

    session_id: str
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)
    override: str | None = None
    delegation: Delegation | None = None
    record: NeedsRecord = attrs.field(factory=NeedsRecord, repr=False, eq=False)

    @cached_property
    def text(self) -> str:
        """The user's last text."""
        return next((one.text_content() for one in reversed(self.messages) if one.role is Role.USER), "")

    @cached_property
    def needs(self) -> Needs:
        """What a model must be capable of to answer."""
        return self.record.needs(self.messages, self.tools, structured=self.options.get("response_schema") is not None)


@attrs.frozen(kw_only=True)
class Recommendation:
    """What a pattern store recommends: a model, how sure it is (0 to 1), and why."""

    model: str
    confidence: float
    reason: str = "the pattern store recommends it"


PatternStore: TypeAlias = Callable[[RoutedTurn], Recommendation | None]


@attrs.frozen(kw_only=True)
class Delegation:
    """A planner's request that a model of its choice does this turn."""

    model: str
    reason: str = "the planner delegates to it"
