"""Project a conversation into what a target can carry; every change is a row of the loss ledger."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from operator import is_
from threading import Lock
from typing import Any, NamedTuple

import attrs

from interlingua.frozen import replace
from interlingua.plugins.provider import Target
from interlingua.plugins.wire import Loss, Verdict
from interlingua.request.project_blocks import (
    WireIds,
    movable_media,
    project_content,
    wire_name,
    wire_tools,
)
from interlingua.types.blocks import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import SILENTLY_ANSWERED, Message, MessageMetadata, Role
from interlingua.types.plain import CALLS, RESULT, TEXT, plainness

MISSING_RESULT = "No result: the tool call was interrupted before it was answered."


class Open(NamedTuple):
    """A call waiting for its result."""

    wire_id: str
    canonical: str
    name: str
    at: int


def of_one(message: Message, place: int) -> Message:
    """One result of several as a message of its own; the same one every time."""

    def make() -> Message:
        critical: tuple[int, ...] = (0,) if place in message.metadata.critical else ()
        metadata = attrs.evolve(message.metadata, critical=critical)
        return attrs.evolve(message, content=(message.content[place],), metadata=metadata)

    return _remembered(message, ("single", place), make)


def loss(path: str, block_type: str, verdict: Verdict, reason: str, message: Message) -> Loss:
    """Make a line of the ledger."""
    return Loss(path=path, block_type=block_type, verdict=verdict, reason=reason, message_id=message.id)


def _remembered(message: Message, key: Any, make: Any) -> Message:
    made: Message | None = message.memo.get(key)
    if made is None:
        made = message.memo[key] = make()
    return made


def filled(assistant: Message, call: Open) -> Message:
    """The same error result every time, so that the prefix stays stable."""

    def make() -> Message:
        text = TextBlock(text=MISSING_RESULT)
        block = ToolResultBlock(tool_use_id=call.wire_id, content=(text,), is_error=True, tool_name=call.name)
        metadata = MessageMetadata(parent_tool_use_id=call.wire_id)
        return attrs.evolve(assistant, role=Role.TOOL, content=(block,), metadata=metadata)

    return _remembered(assistant, ("filled", call.wire_id), make)


def tagged(message: Message, target: Target) -> Message:
    """A system message as a user's, where the target takes none."""

    def make() -> Message:
        hints = [block.cache for block in message.content if type(block) is TextBlock and block.cache is not None]
        text = f"<system>\n{message.text_content()}\n</system>"
        block = TextBlock(text=text, cache=hints[-1] if hints else None)
        return attrs.evolve(message, role=Role.USER, content=(block,))

    return _remembered(message, ("tagged", target), make)


def of_media(assistant: Message, media: list[ContentBlock], target: Target) -> Message:
    """Media of results as a user message behind them, where the target's results hold text only."""

    def make() -> Message:
        lead = TextBlock(text="Media from the tool results above:")
        return attrs.evolve(assistant, role=Role.USER, content=(lead, *media), metadata=MessageMetadata())

    key = ("moved", target, tuple(map(id, media)))  # the message holds the media, so these ids cannot be reused
    return _remembered(assistant, key, make)


_SYSTEM = Role.SYSTEM  # an enum's member is found by a slow call before Python 3.12


class _Row(NamedTuple):
    """A loss before its message's place in the conversation is known."""

    block: int
    block_type: str
    verdict: Verdict
    reason: str


class _Piece(NamedTuple):
    """What one message became; memoised on the message under the target."""

    wire_ids: tuple[str, ...]
    message: Message | None
    rows: tuple[_Row, ...]
    moved: tuple[ContentBlock, ...] = ()


@attrs.define
class _Batch:
    """The calls of one assistant message and the results that came for them."""

    assistant: Message
    calls: list[Open]
    results: dict[str, _Piece] = attrs.field(factory=dict)
    later: list[Message] = attrs.field(factory=list)

    def awaits(self, block: ContentBlock) -> str | None:
        """Return the wire id of the first call that this block may answer, or None."""
        if isinstance(block, ToolResultBlock):
            for call in self.calls:
                if call.canonical == block.tool_use_id and call.wire_id not in self.results:
                    return call.wire_id
        return None


class Walk:
    """The fold; let it take messages in order, ask for `result()` at any point."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.seen: list[Message] = []
        self._out: list[Message] = []
        self._losses: list[Loss] = []
        self._ids = WireIds(target)
        self._tools = target.capabilities.supports_tools
        self._names: dict[str, str] = {}
        self._batch: _Batch | None = None
        self._only_system = True

    def result(self) -> tuple[list[Message], tuple[Loss, ...]]:
        """Return the projected conversation and its ledger so far; the walk can go on afterwards."""
        if self._batch is None:
            return self._out[:], tuple(self._losses)
        out, losses = self._closing(self._batch)
        return self._out + out, (*self._losses, *losses)

    def take(self, messages: Sequence[Message]) -> None:
        """Take the next messages: most of them pass as they are, plain text by itself and plain calls with results."""
        done = 0
        for at, message in enumerate(messages):
            if at < done:
                continue
            kind, width = plainness(message), 0
            if kind is TEXT and message.role is not _SYSTEM and message.metadata.provider_raw is None:
                width = 1
            elif kind is CALLS:
                width = self._answered_plainly(messages, at)
            done = at + (width or 1)
            if width:
                if self._batch is not None:
                    self._close()
                self._only_system = False
                passing = (message,) if width == 1 else messages[at:done]
                self.seen += passing
                self._out += passing
            else:
                self.feed(message)

    def _answered_plainly(self, messages: Sequence[Message], at: int) -> int:
        """Return how many messages from here are calls and all their results, in order, that the target takes so."""
        asking = messages[at]
        if not self._tools or asking.metadata.provider_raw is not None:
            return 0
        end, ids = at + 1, []
        for call in asking.content:
            if type(call) is not ToolUseBlock:
                continue
            if end == len(messages):
                return 0
            answer, name = messages[end], call.name
            if plainness(answer) is not RESULT or answer.metadata.provider_raw is not None:
                return 0
            result: Any = answer.content[0]
            if result.tool_use_id != call.id or not (result.tool_name is None or result.tool_name == name):
                return 0
            if not (call.provider_id is None or call.provider_id == call.id) or self._named(name) != name:
                return 0
            ids.append(call.id)
            end += 1
        return end - at if self._ids.keep(ids) else 0

    def feed(self, message: Message) -> None:
        """Take the next message, whatever it is."""
        index = len(self.seen)
        self.seen.append(message)
        role = message.role
        if role is Role.TOOL:
            self._tool(message, index)
            return
        if role is Role.SYSTEM and self._batch is not None:
            self._batch.later.extend(self._plain(message, index))  # results stay right behind their calls
            return
        self._close()
        if role is Role.ASSISTANT:
            self._only_system = False
            self._assistant(message, index)
            return
        self._out.extend(self._plain(message, index))
        if role is not Role.SYSTEM:
            self._only_system = False

    def _plain(self, message: Message, index: int) -> list[Message]:
        """Project a user or system message."""
        piece: _Piece | None = message.memo.get(self.target)
        if piece is None:
            piece = self._make(message, ())
        if piece.rows:
            self._report(piece.rows, message, index)
        if piece.message is None:
            return []
        if message.role is Role.SYSTEM:
            capabilities = self.target.capabilities
            hoisted = self._only_system and self._batch is None
            if not (capabilities.supports_system_prompt if hoisted else capabilities.supports_system_messages_in_list):
                row = _Row(0, "text", "rewritten", "no system message can stand here; sent as tagged user text")
                self._report((row,), message, index)
                return [tagged(piece.message, self.target)]
        return [piece.message]

    def _assistant(self, message: Message, index: int) -> None:
        origin = message.metadata.origin
        calls = message.tool_calls()
        if not calls:
            out = self._plain(message, index)
            self._out += out or self._silent()
            return
        wire_ids = tuple([self._ids.add(call, origin) for call in calls])
        piece: _Piece | None = message.memo.get(self.target)
        if piece is None or piece.wire_ids != wire_ids:
            piece = self._make(message, wire_ids)
        self._report(piece.rows, message, index)
        if piece.message is None:
            self._out += self._silent()
            return
        self._out.append(piece.message)
        if piece.message is message:
            opened = [Open(call.id, call.id, call.name, index) for call in calls]
        else:
            canonical = dict(zip(wire_ids, [call.id for call in calls], strict=True))
            opened = [Open(call.id, canonical[call.id], call.name, index) for call in piece.message.tool_calls()]
        if opened:
            self._batch = _Batch(piece.message, opened)

    def _silent(self) -> list[Message]:
        """An answer vanished: note on a copy of what stood before it that a model was asked there."""
        if not self._out:
            return []
        noted = attrs.evolve(self._out.pop())
        noted.memo[SILENTLY_ANSWERED] = True
        return [noted]

    def _tool(self, message: Message, index: int) -> None:
        batch = self._batch
        for place, block in enumerate(message.content):
            wire_id = batch.awaits(block) if batch is not None else None
            if batch is None or wire_id is None:
                reason = "it answers no open call" if isinstance(block, ToolResultBlock) else "not a tool result"
                verdict: Verdict = "blocked" if place in message.metadata.critical else "dropped"
                self._report((_Row(place, block.type, verdict, reason),), message, index)
                continue
            single = message if len(message.content) == 1 else of_one(message, place)
            piece: _Piece | None = single.memo.get(self.target)
            if piece is None or piece.wire_ids != (wire_id,):
                piece = self._make(single, (wire_id,))
            self._report([row._replace(block=place) for row in piece.rows], message, index)
            if piece.message is not None:
                batch.results[wire_id] = piece

    def _make(self, message: Message, wire_ids: tuple[str, ...]) -> _Piece:
        """Project one message by itself and remember the outcome on it."""
        content = self._with_ids(message, wire_ids) if wire_ids else message.content
        plain = plainness(message)
        if plain == TEXT or (plain and self.target.capabilities.supports_tools):
            piece = message.memo[self.target] = _Piece(wire_ids, self._rebuilt(message, content), ())
            return piece
        rows: list[_Row] = []
        critical = message.metadata.critical

        def report(block: int, block_type: str, verdict: Verdict, reason: str) -> None:
            blocked = verdict == "dropped" and block in critical
            rows.append(_Row(block, block_type, "blocked" if blocked else verdict, reason))

        blocks = project_content(message, content, self.target, report)
        moved: tuple[ContentBlock, ...] = ()
        if message.role is Role.TOOL:
            moved = tuple(movable_media(message.tool_results()[0], self.target))
        piece = _Piece(wire_ids, self._rebuilt(message, blocks), tuple(rows), moved)
        message.memo[self.target] = piece
        return piece

    def _with_ids(self, message: Message, wire_ids: tuple[str, ...]) -> tuple[ContentBlock, ...]:
        """Put calls, or the one result, into the target's ids and names; by place: calls of one may share an id."""
        ids = iter(wire_ids)
        content = message.content
        on_wire = self._result_on_wire if message.role is Role.TOOL else self._call_on_wire
        made = tuple([on_wire(block, ids) for block in content])
        return content if all(map(is_, made, content)) else made

    def _call_on_wire(self, block: ContentBlock, ids: Iterator[str]) -> ContentBlock:
        if type(block) is not ToolUseBlock:
            return block
        wire_id, name = next(ids), self._named(block.name)
        return block if block.id == wire_id and block.name == name else replace(block, id=wire_id, name=name)

    def _result_on_wire(self, block: ContentBlock, ids: Iterator[str]) -> ContentBlock:
        if type(block) is not ToolResultBlock:
            return block
        wire_id, named = next(ids), None if block.tool_name is None else self._named(block.tool_name)
        if block.tool_use_id == wire_id and block.tool_name == named:
            return block
        return replace(block, tool_use_id=wire_id, tool_name=named)

    def _named(self, name: str) -> str:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = wire_name(name, self.target)
        return found

    def _rebuilt(self, message: Message, blocks: Sequence[ContentBlock]) -> Message | None:
        if not blocks:
            return None
        metadata = message.metadata
        hide = metadata.provider_raw is not None and not self.target.shares_provider(metadata.origin)
        if hide:
            metadata = replace(metadata, provider_raw=None)
        content = message.content
        if not hide and (blocks is content or (len(blocks) == len(content) and all(map(is_, blocks, content)))):
            return message
        return replace(message, content=tuple(blocks), metadata=metadata)

    def _close(self) -> None:
        if self._batch is not None:
            out, losses = self._closing(self._batch)
            self._out += out
            self._losses += losses
            self._batch = None

    def _closing(self, batch: _Batch) -> tuple[list[Message], list[Loss]]:
        """Answer every call of the batch, in the calls' order (REGRESSIONS cases 07, 09)."""
        out: list[Message] = []
        losses: list[Loss] = []
        moved: list[ContentBlock] = []
        for call in batch.calls:
            piece = batch.results.get(call.wire_id)
            if piece is not None and piece.message is not None:
                out.append(piece.message)
                moved.extend(piece.moved)
                continue
            out.append(filled(batch.assistant, call))
            reason = f"call {call.wire_id} of {call.name} has no result; an error result was filled in"
            losses.append(loss(f"messages[{call.at}]", "tool_use", "rewritten", reason, batch.assistant))
        if moved:
            out.append(of_media(batch.assistant, moved, self.target))
        return out + batch.later, losses

    def _report(self, rows: Sequence[_Row], message: Message, index: int) -> None:
        for row in rows:
            path = f"messages[{index}].content[{row.block}]"
            self._losses.append(loss(path, row.block_type, row.verdict, row.reason, message))


class Projector:
    """Projects conversations; a conversation that only grew is continued, not walked again.

    A walk is remembered under its target and first message, and continued only when every message it saw is the very
    same object. A thread takes a walk out while it uses it, so two never share one.
    """

    named = staticmethod(wire_tools)

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._walks: OrderedDict[tuple[int, int], Walk] = OrderedDict()
        self._lock = Lock()

    def project(self, messages: Sequence[Message], target: Target) -> tuple[list[Message], tuple[Loss, ...]]:
        """Return the projected messages and the losses, in conversation order."""
        if not messages:
            return [], ()
        key = (id(target), id(messages[0]))
        with self._lock:
            walk = self._walks.pop(key, None)
        if walk is None or not _continues(walk, messages, target):
            walk = Walk(target)
        walk.take(messages[len(walk.seen) :])
        result = walk.result()
        with self._lock:
            self._walks[key] = walk
            while len(self._walks) > self._limit:
                self._walks.popitem(last=False)
        return result


def _continues(walk: Walk, messages: Sequence[Message], target: Target) -> bool:
    """True when these messages start with the very objects the walk saw (it holds them, so ids cannot lie)."""
    seen = walk.seen
    return walk.target is target and len(seen) <= len(messages) and all(map(is_, seen, messages))
