"""Project a conversation into what a target can carry; every change is a row of the loss ledger.

The rules are in docs/reference/format.md, Projection and losses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import is_
from typing import Any, TypeVar

import attrs

from interlingua._plugins.encoding import ProjectedConversation
from interlingua._plugins.losses import BlockLoss, message_loss, placeholder_text
from interlingua._plugins.provider import ProjectionTarget
from interlingua._request.media import MEDIA, media_refusal
from interlingua._request.wire_names import WireIds, wire_name
from interlingua._values import replace
from interlingua.types.blocks import (
    ChangeBlock,
    ContentBlock,
    DocumentBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from interlingua.types.factories import shown_media_type
from interlingua.types.messages import (
    ANSWER_WAS_DROPPED,
    Loss,
    Message,
    MessageMetadata,
    MessageStatus,
    Role,
    Severity,
    Verdict,
)

MISSING_RESULT = "No result: the tool call was interrupted before it was answered."
_ASSISTANT, _SYSTEM, _TOOL, _USER = Role.ASSISTANT, Role.SYSTEM, Role.TOOL, Role.USER
_COMPLETE = MessageStatus.COMPLETE
B = TypeVar("B", bound=Any)
NOTED = "; replaced by a note"
"""The end of the reason of a row about a user's block for which a note is sent."""


def project_conversation(
    messages: Sequence[Message], target: ProjectionTarget
) -> tuple[ProjectedConversation, tuple[Loss, ...]]:
    """Return the messages as the target can carry them, and the losses, in conversation order."""
    projection = Projection(target)
    projection.extend(messages)
    return projection.result()


@attrs.define
class _Call:
    """A call waiting for its result; media of the result that results cannot hold here follow in a message."""

    wire_id: str
    canonical: str
    name: str
    at: int
    result: Message | None = None
    moved: Sequence[ContentBlock] = ()


@attrs.define
class _Turn:
    """An assistant message with its open calls, its media that follow in a message, and the system messages behind."""

    message: Message
    calls: list[_Call]
    moved: Sequence[ContentBlock] = ()
    later: list[Message] = attrs.field(factory=list)


class Projection:
    """One conversation's projection into one target: a fold over its messages that grows with it."""

    def __init__(self, target: ProjectionTarget, earlier: Projection | None = None, refused: int = 0) -> None:
        """Begin a projection; it reuses what plugins wrote of the very same messages in `earlier`.

        The service refused the thinking of the first `refused` messages.
        """
        self.target, self.refused = target, refused
        self.sources: list[Message] = []  # the messages taken so far
        self.written: dict[Hashable, tuple[list[Message], list[Any]]] = {}  # by plugins (`encode_each`)
        if earlier is not None:
            self.written = {key: (list(seen), list(made)) for key, (seen, made) in earlier.written.items()}
        self._changed: dict[int, tuple[Message, Message]] = {}  # by its id: a message, which this holds, and its change
        self._earlier = {} if earlier is None else earlier._changed
        self._can = target.capabilities
        self._out: list[Message] = []
        self._losses: list[Loss] = []
        self._ids = WireIds(target)
        self._names: dict[str, str] = {}
        # the last message in `_out` if it has open calls, and assistant messages that came before its results: results
        # stay right behind their calls
        self._open: list[_Turn] = []
        self._only_system = True
        self._at = 0  # the block of the last source that is being projected
        self._calls: list[_Call] = []  # of that message
        self._moved: list[ContentBlock] = []

    def covers(self, messages: Sequence[Message]) -> bool:
        """Return True when these messages begin with the very objects taken so far."""
        return len(self.sources) <= len(messages) and all(map(is_, self.sources, messages))

    def extend(self, messages: Iterable[Message]) -> None:
        """Take the next messages."""
        for message in messages:
            self.sources.append(message)
            role = message.role
            if role is _TOOL:
                self._add_results(message)
            elif role is _SYSTEM:
                self._add_system(message)
            elif role is _ASSISTANT and any(self._unanswered()):  # the result may come after further answers
                if (made := self._project(message)) is not None:
                    self._open.append(_Turn(made, self._calls, self._moved))
            else:
                if self._open:
                    results, losses = self._answer_calls()
                    self._out += results
                    self._losses += losses
                    self._open = []
                self._only_system = False
                if (made := self._project(message)) is not None:
                    self._out.append(made)
                    if role is _ASSISTANT and self._calls:
                        self._open = [_Turn(made, self._calls, self._moved)]
                    elif self._moved:
                        self._out.append(_moved_media(made, self._moved, "answer"))
                elif role is _ASSISTANT and self._out:  # a model was asked there (`model_saw`)
                    asked = self._out[-1]
                    extra = {**asked.metadata.extra, ANSWER_WAS_DROPPED: True}
                    self._out[-1] = replace(asked, metadata=replace(asked.metadata, extra=extra))

    def result(self) -> tuple[ProjectedConversation, tuple[Loss, ...]]:
        """Return the projected conversation and its losses so far; more messages can be taken afterwards."""
        messages = ProjectedConversation(self._out, self.written)
        if not self._open:
            return messages, tuple(self._losses)
        results, losses = self._answer_calls()
        messages += results
        return messages, (*self._losses, *losses)

    def _add_system(self, message: Message) -> None:
        if (made := self._project(message)) is None:
            return
        if not self._takes_system():
            self._at = 0
            self._report("text", "rewritten", "this target takes no system message here; sent as tagged user text")
            hints = [block.cache for block in made.content if type(block) is TextBlock and block.cache is not None]
            block = TextBlock(text=f"<system>\n{made.text}\n</system>", cache=hints[-1] if hints else None)
            made = replace(made, role=_USER, content=(block,))
        (self._open[-1].later if self._open else self._out).append(made)

    def _takes_system(self) -> bool:
        return self._can.supports_system_prompt if self._only_system else self._can.supports_system_messages_in_list

    def _add_results(self, message: Message) -> None:
        content = message.content
        for self._at, block in enumerate(content):
            if type(block) is not ToolResultBlock:
                self._drop(block, "not a tool result")
                continue
            call = next((call for call in self._unanswered() if call.canonical == block.tool_use_id), None)
            if call is None:
                self._drop(block, "it answers no open call")
                continue
            if call not in self._open[-1].calls:
                self._report(block.type, "rewritten", "another answer came before it; it is sent right behind its call")
            made = self._project_result(block, call)
            metadata = message.metadata
            if len(content) > 1 and metadata.critical:  # one of several becomes a separate message
                metadata = replace(metadata, critical=(0,) if self._at in metadata.critical else ())
            call.result = self._rebuild(message, [made], metadata)
            call.moved, self._moved = self._moved, []

    def _unanswered(self) -> Iterator[_Call]:
        """Yield the open calls without a result."""
        return (call for turn in self._open for call in turn.calls if call.result is None)

    def _answer_calls(self) -> tuple[list[Message], list[Loss]]:
        """Return a result for every open call, in the calls' order; media that results cannot hold follow them."""
        out: list[Message] = []
        losses: list[Loss] = []
        for place, turn in enumerate(self._open):
            if place:  # the first is in `_out`
                out.append(turn.message)
            for call in turn.calls:
                if call.result is not None:
                    out.append(call.result)
                    continue  # services refuse a call without a result
                block = ToolResultBlock(
                    tool_use_id=call.wire_id, content=MISSING_RESULT, is_error=True, tool_name=call.name
                )
                metadata = MessageMetadata(parent_tool_use_id=call.wire_id)
                out.append(replace(turn.message, role=_TOOL, content=(block,), metadata=metadata))
                reason = f"call {call.wire_id} of {call.name} has no result; an error result was filled in"
                losses.append(message_loss(call.at, reason, turn.message.id, block_type="tool_use"))
            if moved := [*turn.moved, *[block for call in turn.calls for block in call.moved]]:
                out.append(_moved_media(turn.message, moved, "answer" if turn.moved else "tool results"))
            out += turn.later
        return out, losses

    def _project(self, message: Message) -> Message | None:
        """Return a message as the target can carry it, the very same one where nothing changes; None for nothing."""
        content, before = message.content, len(self._losses)
        kept: list[ContentBlock] = []
        self._calls, self._moved = [], []
        for self._at, block in enumerate(content):
            made = _PROJECT.get(type(block), Projection._project_unknown)(self, block)
            if made is None and message.role is _USER and type(block) is not UnknownBlock:
                made = self._note(block)
            if made is not None:
                kept.append(made)
        if message.role is _USER and not kept:  # or the model would be asked something else
            if not content:
                self._at = 0
                self._report("text", "rewritten", "the message holds nothing")
            kept = [TextBlock(text=placeholder_text(self._losses[before:]))]
        return self._rebuild(message, kept, message.metadata)

    def _rebuild(self, message: Message, content: list[ContentBlock], metadata: MessageMetadata) -> Message | None:
        """Return the message with this content, and without what another provider keeps in it; None for no content."""
        if metadata.provider_raw is not None and (
            self.target.refused_thinking or len(self.sources) <= self.refused or not self._is_own(metadata)
        ):
            metadata = replace(metadata, provider_raw=None)
        if not content or (metadata is message.metadata and _is_same(content, message.content)):
            return message if content else None
        made = replace(message, content=tuple(content), metadata=metadata)
        known = self._earlier.get(id(message))
        if known is not None and known[1] == made:  # `provider_raw` too: same message, same target
            made = known[1]  # the very object that plugins wrote
        self._changed[id(message)] = (message, made)
        return made

    def _is_own(self, metadata: MessageMetadata) -> bool:
        """Return True when this target's provider made the message, with whatever api or model."""
        return metadata.provider == self.target.provider and metadata.model is not None

    def _report(self, block_type: str, verdict: Verdict, reason: str, severity: Severity | None = None) -> None:
        """Add a row about the block that is being projected; a critical block is blocked instead of dropped."""
        message = self.sources[-1]
        if verdict == "dropped" and self._at in message.metadata.critical:
            verdict = "blocked"
        self._losses.append(
            BlockLoss(self._at, block_type, verdict, reason, severity).at(len(self.sources) - 1, message.id)
        )

    # from here on: one block; each returns its replacement, None for nothing
    def _drop(self, block: Any, reason: str, severity: Severity | None = None) -> Any:
        self._report(block.type, "dropped", reason, severity)
        return None

    def _note(self, block: Any) -> TextBlock | None:
        """Return the text that tells the model of a user's block which was dropped; None for empty text."""
        row, cache = self._losses[-1], getattr(block, "cache", None)
        if row.severity == "form":
            return None
        self._losses[-1] = attrs.evolve(row, reason=row.reason + NOTED)
        return TextBlock(text=placeholder_text([row]), cache=cache if self._can.supports_prompt_caching else None)

    def _takes_state(self) -> bool:
        return self.target.takes_state_of(self.sources[-1].metadata.origin)

    def _is_signed(self, block: TextBlock | ToolUseBlock) -> bool:
        return block.signature is not None and block.type in self._can.signed_blocks and self._takes_state()

    def _without_signature(self, block: B) -> B:
        if block.signature is None or self._is_signed(block):
            return block
        reason = "cannot be sent to this target" if self._takes_state() else "belongs to another origin"
        self._report(block.type, "rewritten", f"its signature {reason}")
        return replace(block, signature=None)

    def _without_cache(self, block: B) -> B:
        if block.cache is None or self._can.supports_prompt_caching:
            return block
        self._report(block.type, "rewritten", "this target has no cache markers; its own caching applies")
        return replace(block, cache=None)

    def _project_text(self, block: TextBlock) -> Any:
        if not block.text.strip() and not self._takes_blank(block) and not self._is_signed(block):
            return self._drop(block, "empty text, which services reject", "form")
        block = self._without_signature(block)
        if block.citations and not self.target.takes_citations_of(self.sources[-1].metadata.origin):
            self._report(block.type, "rewritten", "citations cannot be sent to this target; the text is kept")
            block = replace(block, citations=())
        return self._without_cache(block)

    def _takes_blank(self, block: TextBlock) -> bool:
        where, message = self._can.blank_text, self.sources[-1]
        if where == "nowhere" or message.role is _SYSTEM or block.cache is not None:
            return False
        return where == "anywhere" or bool(block.text and message.tool_calls)

    def _project_call(self, block: ToolUseBlock) -> Any:
        metadata = self.sources[-1].metadata
        wire_id = self._ids.add(block, own=self._is_own(metadata))
        if not self._can.supports_tools:
            return self._drop(block, "this target has no tools")
        if block.parse_error is not None and metadata.status is not _COMPLETE:
            return self._drop(block, "the call was cut off before its arguments were whole", "form")
        name = self._wire_name(block.name)
        self._calls.append(_Call(wire_id, block.id, name, len(self.sources) - 1))
        if wire_id != block.id or name != block.name:
            block = replace(block, id=wire_id, name=name)
        return self._without_cache(self._without_signature(block))

    def _wire_name(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = wire_name(name, self.target)
        return self._names[name]

    def _project_thinking(self, block: ThinkingBlock | RedactedThinkingBlock) -> Any:
        signed = type(block) is RedactedThinkingBlock or bool(block.signature)  # type: ignore[union-attr]
        if not self._can.supports_thinking:
            reason = "this target takes no thinking back"
        elif self.target.refused_thinking or len(self.sources) <= self.refused:
            reason = "the service refused it, because it was made in another conversation"
        elif not self._takes_state():
            reason = "thinking belongs to another origin"
        else:
            whole = self.sources[-1].metadata.status is _COMPLETE
            if signed or (whole and self._can.accepts_unsigned_thinking):
                return block
            reason = "thinking without a signature is refused"
        if self.target.thinking_as_text and type(block) is ThinkingBlock and block.text.strip():
            self._report(block.type, "rewritten", f"{reason}; sent in a text block because thinking_as_text is set")
            return TextBlock(text=block.text)
        return self._drop(block, reason)

    def _project_media(self, block: Any) -> Any:
        role, origin = self.sources[-1].role, self.sources[-1].metadata.origin
        if role is _ASSISTANT:
            reason = media_refusal(block, self.target)
            if reason is None and origin and (origin.provider, origin.api) != (self.target.provider, self._can.api):
                self._report(block.type, "rewritten", "another service's model made it; it follows in a user message")
                self._moved.append(self._without_cache(block))
                return TextBlock(text=f"[{block.type} in the next message]")
        else:
            block, reason = self._type_media(block)
        if role is _SYSTEM:
            reason = reason or "system messages carry text only"
        return self._drop(block, reason) if reason else self._without_cache(block)

    def _type_media(self, block: B, *, in_result: bool = False) -> tuple[B, str | None]:
        """Return media with the type that its bytes show, and why the target cannot take it or None."""
        embedded = block.source.kind == "base64"
        shown = shown_media_type(block) if embedded and not block.media_type else None
        typed = attrs.evolve(block, media_type=shown) if shown else block
        reason = media_refusal(typed, self.target, in_result=in_result)
        if reason is None and embedded and not typed.media_type:
            reason = "its media type is not known: pass media_type="
        elif reason is None and shown:
            self._report(block.type, "rewritten", f"it names no media type; its bytes are {shown}")
        return typed, reason

    def _project_result(self, block: ToolResultBlock, call: _Call | None = None) -> Any:
        """Return a result as the answer to this call, by its id and name."""
        if not self._can.supports_tools:
            return self._drop(block, "this target has no tools")
        changes: dict[str, Any] = {}
        if call is not None and call.wire_id != block.tool_use_id:
            changes["tool_use_id"] = call.wire_id
        if call is not None and block.tool_name is not None and block.tool_name != self._wire_name(block.tool_name):
            changes["tool_name"] = self._wire_name(block.tool_name)
        self._moved = []
        parts = [made for part in block.content if (made := self._result_part(part)) is not None]
        if not _is_same(parts, block.content):
            changes["content"] = parts
        return self._without_cache(replace(block, **changes) if changes else block)

    def _result_part(self, part: Any) -> Any:
        if type(part) is TextBlock:
            return part if part.text else None
        if type(part) in MEDIA:
            part, reason = self._type_media(part, in_result=True)
            if reason:
                self._report(part.type, "rewritten", f"{reason}; replaced by a note in the result", "content")
                return TextBlock(text=f"[{part.type} omitted: {reason}]")
            can, document = self._can, type(part) is DocumentBlock
            if not (can.supports_tool_result_documents if document else can.supports_tool_result_images):
                self._report(part.type, "rewritten", "results hold text only here; it follows in a user message")
                self._moved.append(part)
                return TextBlock(text=f"[{part.type} in the next message]")
        elif type(part) is not OpaqueBlock or part.provider != self.target.provider:
            return self._drop(part, f"a tool result for this target cannot hold {part.type}")
        return part

    def _project_opaque(self, block: OpaqueBlock) -> Any:
        role, origin = self.sources[-1].role, self.sources[-1].metadata.origin
        if block.provider == self.target.provider and (origin is None or origin.api in ("", self._can.api)):
            reason = "this target takes system messages as user messages only, which hold no such block"
            return block if role is not _SYSTEM or self._takes_system() else self._drop(block, reason)
        return self._drop(block, f"{block.kind} content belongs to {block.provider} and goes only there")

    def _project_change(self, block: ChangeBlock) -> Any:
        """Return the parts of a change that the target takes in this place; the rest is in the request's own fields."""
        again = "the request says it as a whole, and what was cached of the conversation is read again"
        can, left = self._can, block
        for what, able, nothing in (
            ("tools", can.supports_tool_changes, {"tools_added": (), "tools_removed": ()}),
            ("effort", can.supports_effort_changes, {"effort": None}),
            ("format", can.supports_format_changes, {"response_schema": None}),
        ):
            if not able and (without := attrs.evolve(left, **nothing)) != left:
                self._report(block.type, "rewritten", f"this target takes no change of {what} here: {again}")
                left = without
        if left == ChangeBlock():
            return None
        if any(tool.deferred and not tool.extra_of(can.api) for tool in left.tools_added):
            self._report(block.type, "rewritten", "a tool that a change adds is sent whole, not deferred")
        added = [attrs.evolve(tool, name=self._wire_name(tool.name), deferred=False) for tool in left.tools_added]
        return replace(left, tools_added=added, tools_removed=[*map(self._wire_name, left.tools_removed)])

    def _project_unknown(self, block: Any) -> Any:
        wrote = block.raw.get("type") if type(block) is UnknownBlock else type(block).__name__
        return self._drop(block, f"block type {wrote!r} was written by a newer version")


_PROJECT: dict[type, Callable[[Projection, Any], Any]] = {
    TextBlock: Projection._project_text,
    ToolUseBlock: Projection._project_call,
    ToolResultBlock: Projection._project_result,
    ThinkingBlock: Projection._project_thinking,
    RedactedThinkingBlock: Projection._project_thinking,
    OpaqueBlock: Projection._project_opaque,
    ChangeBlock: Projection._project_change,
    **dict.fromkeys(MEDIA, Projection._project_media),
}


def _is_same(made: list[ContentBlock], content: Sequence[ContentBlock]) -> bool:
    return len(made) == len(content) and all(map(is_, made, content))


def _moved_media(message: Message, moved: Sequence[ContentBlock], where: str) -> Message:
    """Return the message of the user that holds media of an answer or its results."""
    lead = TextBlock(text=f"Media from the {where} above:")
    return replace(message, role=Role.USER, content=(lead, *moved), metadata=MessageMetadata())


BLOCK_PATH = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?")
"""The path of a row about a message: its index, and that of the block, if it is about one."""


def locate_losses(
    rows: Iterable[Loss], projected: Sequence[Message], messages: Sequence[Message], before: Iterable[Loss]
) -> tuple[Loss, ...]:
    """Return the rows of a plugin with paths counted in the messages of the caller instead of the projected ones.

    `before` are the rows of the projection itself, which tell which blocks are gone.
    """
    places = {message.id: index for index, message in enumerate(messages)}
    gone = {row.path for row in before if row.verdict != "rewritten" and not row.reason.endswith(NOTED)}
    located: list[Loss] = []
    for row in rows:
        match = BLOCK_PATH.match(row.path)
        given = projected[int(match[1])] if match is not None and int(match[1]) < len(projected) else None
        index = None if given is None else places.get(given.id)
        if match is None or given is None or index is None:
            located.append(row)
            continue
        path = f"messages[{index}]"
        block = _locate_block(given, messages[index], path, match[2], gone)
        path += ("" if block is None else f".content[{block}]") + row.path[match.end() :]
        located.append(attrs.evolve(row, path=path, message_id=given.id))
    return tuple(located)


def _locate_block(given: Message, message: Message, path: str, at: str | None, gone: set[str]) -> int | None:
    """Return the block's place in the caller's message; None for a message that projection put in beside it."""
    if at is None or (given.role is not message.role and message.role is not _SYSTEM):
        return None
    content = message.content
    if given.role is _TOOL and len(given.content) == 1 < len(content):  # one result of several, its id perhaps another
        made: Any = given.content[0]
        same = [place for place, block in enumerate(content) if block is made]
        same = same or [place for place, b in enumerate(content) if getattr(b, "content", None) is made.content]
        return same[0] if len(same) == 1 else int(at)
    kept = [place for place in range(len(content)) if f"{path}.content[{place}]" not in gone]
    return kept[int(at)] if int(at) < len(kept) else int(at)
