"""Project a conversation into what a target can carry; every change is a row of the loss ledger.

The rules are in docs/reference/format.md, Projection and losses.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple

import attrs

from interlingua.frozen import replace
from interlingua.plugins.encoding import ProjectedMessages
from interlingua.plugins.provider import Target
from interlingua.plugins.wire import BlockLoss, Loss, Verdict, message_loss
from interlingua.request.project_blocks import WireIds, project_blocks, wire_name
from interlingua.types.blocks import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import SILENTLY_ANSWERED, Message, MessageMetadata, Role

MISSING_RESULT = "No result: the tool call was interrupted before it was answered."
_ASSISTANT, _SYSTEM, _TOOL = Role.ASSISTANT, Role.SYSTEM, Role.TOOL  # an enum's member is slow before Python 3.12


def project_conversation(messages: Sequence[Message], target: Target) -> tuple[ProjectedMessages, tuple[Loss, ...]]:
    """Return the messages as the target can carry them, and the losses, in conversation order."""
    projection = Projection(target)
    projection.extend(messages)
    return projection.result()


class _Projected(NamedTuple):
    """What one message became."""

    source: Message
    wire_ids: tuple[str, ...]
    message: Message | None
    rows: Sequence[BlockLoss]
    moved: Sequence[ContentBlock] = ()


class _Call(NamedTuple):
    """A call waiting for its result."""

    wire_id: str
    canonical: str
    name: str
    at: int


@attrs.define
class _OpenCalls:
    """The calls of one assistant message and the results that came for them."""

    assistant: Message
    calls: list[_Call]
    results: dict[str, _Projected] = attrs.field(factory=dict)
    later: list[Message] = attrs.field(factory=list)

    def find(self, block: ContentBlock) -> str | None:
        """Return the wire id of the first call that this block may answer, or None."""
        if isinstance(block, ToolResultBlock):
            for call in self.calls:
                if call.canonical == block.tool_use_id and call.wire_id not in self.results:
                    return call.wire_id
        return None


class Projection:
    """One conversation's projection into one target: a fold over its messages that grows with it.

    Attributes:
        target: who is to carry the messages.
        sources: the messages taken so far.
        written: what adapters wrote of the projected messages (`encode_each`).
    """

    def __init__(self, target: Target, earlier: Projection | None = None) -> None:
        """Begin a projection; what `earlier` made of the very same messages is used again."""
        self.target = target
        self.sources: list[Message] = []
        self.written: dict[Hashable, tuple[list[Message], list[Any]]] = {}
        self._changed: dict[int, _Projected] = {}  # by id(source), which it holds
        self._earlier: dict[int, _Projected] = {} if earlier is None else earlier._changed
        if earlier is not None:
            self.written = {key: (list(seen), list(made)) for key, (seen, made) in earlier.written.items()}
        self._out: list[Message] = []
        self._losses: list[Loss] = []
        self._ids = WireIds(target)
        self._names: dict[str, str] = {}
        self._open: _OpenCalls | None = None
        self._only_system = True

    def covers(self, messages: Sequence[Message]) -> bool:
        """Return True when these messages begin with the very objects taken so far."""
        return len(self.sources) <= len(messages) and all(map(is_, self.sources, messages))

    def extend(self, messages: Iterable[Message]) -> None:
        """Take the next messages."""
        for message in messages:
            self._add(message)

    def result(self) -> tuple[ProjectedMessages, tuple[Loss, ...]]:
        """Return the projected conversation and its losses so far; more messages can be taken afterwards."""
        messages = ProjectedMessages(self._out, self.written)
        if self._open is None:
            return messages, tuple(self._losses)
        out, losses = self._answer_all(self._open)
        messages += out
        return messages, (*self._losses, *losses)

    def _add(self, message: Message) -> None:
        index, role = len(self.sources), message.role
        self.sources.append(message)
        if role is _TOOL:
            self._add_results(message, index)
        elif role is _SYSTEM and self._open is not None:
            self._open.later += self._add_alone(message, index)  # results stay right behind their calls
        else:
            if self._open is not None:
                self._close(self._open)
            if role is _ASSISTANT:
                self._only_system = False
                self._add_answer(message, index)
            else:
                self._out += self._add_alone(message, index)
                if role is not _SYSTEM:
                    self._only_system = False

    def _add_alone(self, message: Message, index: int) -> list[Message]:
        """Project a message without calls and results."""
        made = self._project(message, message.content)
        if made.rows:
            self._report(made.rows, message, index)
        if made.message is None:
            return []
        if message.role is _SYSTEM:
            can = self.target.capabilities
            hoisted = self._only_system and self._open is None
            if not (can.supports_system_prompt if hoisted else can.supports_system_messages_in_list):
                row = BlockLoss(0, "text", "rewritten", "no system message can stand here; sent as tagged user text")
                self._report((row,), message, index)
                return [_system_as_user(made.message)]
        return [made.message]

    def _add_answer(self, message: Message, index: int) -> None:
        own = self._is_own(message.metadata)
        calls: list[_Call] = []
        content: list[ContentBlock] = []
        for block in message.content:
            if type(block) is ToolUseBlock:
                wire_id, name = self._ids.add(block, own=own), self._name(block.name)
                calls.append(_Call(wire_id, block.id, name, index))
                if block.id != wire_id or block.name != name:
                    block = replace(block, id=wire_id, name=name)  # noqa: PLW2901
            content.append(block)
        made = self._project(message, content, tuple([call.wire_id for call in calls]))
        if made.rows:
            self._report(made.rows, message, index)
        if made.message is None:
            self._mark_silent_answer()
            return
        self._out.append(made.message)
        if calls and made.rows:
            sent = {call.id for call in made.message.tool_calls()}
            calls = [call for call in calls if call.wire_id in sent]
        if calls:
            self._open = _OpenCalls(made.message, calls)

    def _mark_silent_answer(self) -> None:
        """Mark a copy of the message before an answer that vanished: a model was asked there (`was_answered`)."""
        if self._out:
            asked = self._out.pop()
            extra = {**asked.metadata.extra, SILENTLY_ANSWERED: True}
            self._out.append(replace(asked, metadata=replace(asked.metadata, extra=extra)))

    def _add_results(self, message: Message, index: int) -> None:
        opened = self._open
        content = message.content
        for place, block in enumerate(content):
            wire_id = opened.find(block) if opened is not None else None
            if opened is None or wire_id is None:
                reason = "it answers no open call" if isinstance(block, ToolResultBlock) else "not a tool result"
                verdict: Verdict = "blocked" if place in message.metadata.critical else "dropped"
                self._report((BlockLoss(place, block.type, verdict, reason),), message, index)
                continue
            single = message if len(content) == 1 else _split_result(message, place)
            made = self._project(single, (self._rename_result(block, wire_id),), (wire_id,))
            if made.rows:
                self._report([row._replace(block=place) for row in made.rows], message, index)
            if made.message is not None:
                opened.results[wire_id] = made

    def _project(self, message: Message, content: Sequence[ContentBlock], wire_ids: tuple[str, ...] = ()) -> _Projected:
        """Project one message by itself; its `content` has the target's ids, those of `wire_ids`, and names."""
        known = self._earlier.get(id(message))
        if known is not None and known.source is message and known.wire_ids == wire_ids:
            self._changed[id(message)] = known
            return known
        blocks, rows, moved = project_blocks(message, content, self.target)
        made = _Projected(message, wire_ids, self._rebuild(message, blocks) if blocks else None, rows, moved)
        if made.message is not message:
            self._changed[id(message)] = made
        return made

    def _rebuild(self, message: Message, blocks: Sequence[ContentBlock]) -> Message:
        metadata = message.metadata
        if metadata.provider_raw is not None and not self._is_own(metadata):
            return replace(message, content=tuple(blocks), metadata=replace(metadata, provider_raw=None))
        content = message.content
        if blocks is content or (len(blocks) == len(content) and all(map(is_, blocks, content))):
            return message
        return replace(message, content=tuple(blocks))

    def _is_own(self, metadata: MessageMetadata) -> bool:
        """Return True when this target's provider made the message, with whatever api or model."""
        return metadata.provider == self.target.provider and metadata.model is not None

    def _rename_result(self, block: ContentBlock, wire_id: str) -> ContentBlock:
        """Put a result into the target's id and name."""
        if type(block) is not ToolResultBlock:
            return block
        name = None if block.tool_name is None else self._name(block.tool_name)
        if block.tool_use_id == wire_id and block.tool_name == name:
            return block
        return replace(block, tool_use_id=wire_id, tool_name=name)

    def _name(self, name: str) -> str:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = wire_name(name, self.target)
        return found

    def _close(self, opened: _OpenCalls) -> None:
        out, losses = self._answer_all(opened)
        self._out += out
        self._losses += losses
        self._open = None

    def _answer_all(self, opened: _OpenCalls) -> tuple[list[Message], list[Loss]]:
        """Return a result for every call, in the calls' order; media that results cannot hold follow them."""
        out: list[Message] = []
        losses: list[Loss] = []
        moved: list[ContentBlock] = []
        for call in opened.calls:
            made = opened.results.get(call.wire_id)
            if made is not None and made.message is not None:
                out.append(made.message)
                moved += made.moved
                continue
            out.append(_missing_result(opened.assistant, call))
            reason = f"call {call.wire_id} of {call.name} has no result; an error result was filled in"
            losses.append(message_loss(call.at, reason, opened.assistant.id, block_type="tool_use"))
        if moved:
            out.append(_media_message(opened.assistant, moved))
        return out + opened.later, losses

    def _report(self, rows: Iterable[BlockLoss], message: Message, index: int) -> None:
        self._losses += [row.at(index, message.id) for row in rows]


def _split_result(message: Message, place: int) -> Message:
    """Return one result of several as a message of its own."""
    critical: tuple[int, ...] = (0,) if place in message.metadata.critical else ()
    metadata = replace(message.metadata, critical=critical)
    return replace(message, content=(message.content[place],), metadata=metadata)


def _missing_result(assistant: Message, call: _Call) -> Message:
    """Return an error result for a call without one: wires refuse a call that is not answered."""
    text = TextBlock(text=MISSING_RESULT)
    block = ToolResultBlock(tool_use_id=call.wire_id, content=(text,), is_error=True, tool_name=call.name)
    metadata = MessageMetadata(parent_tool_use_id=call.wire_id)
    return replace(assistant, role=_TOOL, content=(block,), metadata=metadata)


def _system_as_user(message: Message) -> Message:
    """Return a system message as a user's, where the target takes none."""
    hints = [block.cache for block in message.content if type(block) is TextBlock and block.cache is not None]
    text = f"<system>\n{message.text_content()}\n</system>"
    block = TextBlock(text=text, cache=hints[-1] if hints else None)
    return replace(message, role=Role.USER, content=(block,))


def _media_message(assistant: Message, media: Sequence[ContentBlock]) -> Message:
    """Return media of results as a user message behind them, where the target's results hold text only."""
    lead = TextBlock(text="Media from the tool results above:")
    return replace(assistant, role=Role.USER, content=(lead, *media), metadata=MessageMetadata())
