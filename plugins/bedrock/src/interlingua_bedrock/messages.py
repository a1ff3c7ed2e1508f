"""Messages -> `messages` and `system`: blocks of each message, turns, cache points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    BlockLoss,
    Loss,
    dumps,
    encode_each,
    json_array,
    message_loss,
    model_saw,
    note_for,
    placeholder_text,
)
from interlingua.types import (
    CacheHint,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_anthropic.claude_tools import fit_error
from interlingua_bedrock.media import MEDIA, Media, to_wire_media
from interlingua_bedrock.models import Family

_ASSISTANT, _SYSTEM = Role.ASSISTANT, Role.SYSTEM  # an enum's member is found by a slow call before Python 3.12
_THINKING = (ThinkingBlock, RedactedThinkingBlock)
MAX_POINTS = 4
_MAX_DOCUMENTS = 5  # of one message (WIRE.md, Media)
_FIRST_USER = b'{"text":"(The conversation begins with the assistant.)"}'
_BARE = "without thinking the turn in progress may hold none"
_ALONE = "this model refuses an earlier turn that is nothing but thinking; it was left out"
_BESIDE_DOCUMENT = b'{"text":"(See the document.)"}'
_OPEN = {role: b'{"role":"%s","content":[' % role.encode() for role in ("user", "assistant")}


class Point(NamedTuple):
    """A cache hint: the part before it, its lifetime, and its block."""

    part: int
    ttl: str | None
    block: int
    block_type: str


class ConverseParts(NamedTuple):
    """One message on this wire.

    Attributes:
        role: role of the turn it belongs to.
        parts: its content blocks as JSON.
        rows: ledger rows of its losses.
        points: cache hints that are not written yet.
        names: names of its documents, in lower case.
        trimmed: the last part without the white space at its end, which the end of a request must not have.
        added: a text block was added to a document.
    """

    role: str
    parts: tuple[bytes, ...]
    rows: tuple[BlockLoss, ...] = ()
    points: tuple[Point, ...] = ()
    names: frozenset[str] = frozenset()
    trimmed: bytes = b""
    added: bool = False


class ConverseTurns(NamedTuple):
    """The conversation on this wire."""

    system: bytes | None
    messages: bytes
    losses: tuple[Loss, ...]
    ends_with: str


class SpentPoints(NamedTuple):
    """Cache points before the conversation: how many, and whether one of them is short-lived."""

    used: int = 0
    short: bool = False


# ---- one message


def encode_messages(messages: Sequence[Message], family: Family) -> list[ConverseParts]:
    """Write the parts of every message."""
    return encode_each(messages, ("bedrock", family), lambda message: to_wire_parts(message, family))


def to_wire_parts(
    message: Message, family: Family, taken: frozenset[str] = frozenset(), *, bare: bool = False
) -> ConverseParts:
    """Write one message, `bare` without thinking; `taken` holds the names of documents in earlier messages."""
    by_model = message.role is _ASSISTANT
    parts: list[Any] = []
    rows: list[BlockLoss] = []
    points: list[Point] = []
    names = set(taken)
    part: Any
    for index, block in enumerate(message.content):
        hint: CacheHint | None = getattr(block, "cache", None)
        if isinstance(block, TextBlock):
            part = _text(block, index, rows, by_model=by_model)
        elif isinstance(block, ToolUseBlock):
            part = _call(block, index, rows)
        elif isinstance(block, ToolResultBlock):
            part = _result(block, index, rows, names, family)
            hint = hint or _inner_hint(block, index, rows)
        elif isinstance(block, _THINKING):
            part = None if bare else _thinking(block)
            if bare:
                rows.append(BlockLoss(index, block.type, "dropped", _BARE))
        elif isinstance(block, OpaqueBlock):
            part = block.data
        elif isinstance(block, MEDIA) and not by_model:
            part = _users_media(block, index, rows, names, family)
        else:
            where = " in an assistant message" if by_model else ""
            rows.append(BlockLoss(index, block.type, "dropped", f"this wire takes no {block.type}{where}"))
            part = None
        part = part or _note(message, index, rows)
        if part is None:
            continue
        if hint is not None:
            points.append(Point(len(parts), hint.ttl, index, block.type))
        parts.append(part)
    if not parts and message.role is Role.USER:
        parts.append({"text": placeholder_text(rows)})
    written = tuple([dumps(each) for each in parts])
    added = any("document" in each for each in parts) and not any("text" in each for each in parts)
    return ConverseParts(
        role="assistant" if by_model else "system" if message.role is _SYSTEM else "user",
        parts=(*written, _BESIDE_DOCUMENT) if added else written,
        rows=tuple(rows),
        points=tuple(points),
        names=frozenset(names - taken),
        trimmed=_trimmed_end(message, parts) if by_model else b"",
        added=added,
    )


def _note(message: Message, index: int, rows: list[BlockLoss]) -> dict[str, Any] | None:
    note = note_for(message, index, rows)
    return None if note is None else {"text": note}


def _text(block: TextBlock, index: int, rows: list[BlockLoss], *, by_model: bool) -> dict[str, Any]:
    if block.citations and by_model:
        return {"citationsContent": {"content": [{"text": block.text}], "citations": list(block.citations)}}
    if block.citations and not by_model:
        rows.append(BlockLoss(index, block.type, "rewritten", "this wire takes citations on assistant text only"))
    return {"text": block.text}


def _call(block: ToolUseBlock, index: int, rows: list[BlockLoss]) -> dict[str, Any]:
    value: Any = block.input
    if block.parse_error is not None:
        reason = "arguments are not JSON and this wire wants an object"
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
        value = {"invalid_json": block.raw_input}
    return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": value}}


def _users_media(
    block: Media, index: int, rows: list[BlockLoss], names: set[str], family: Family
) -> dict[str, Any] | None:
    if f"s3 {block.type}" in family.refused and block.source.kind != "base64":
        rows.append(BlockLoss(index, block.type, "dropped", f"this model takes the bytes of a {block.type} only"))
        return None
    return to_wire_media(block, index, rows, names)


def _result(
    block: ToolResultBlock, index: int, rows: list[BlockLoss], names: set[str], family: Family
) -> dict[str, Any]:
    content: list[Any] = []
    given, is_error = block.content, block.is_error
    if is_error and family.reasoning == "claude":
        said = [part for part in given if not isinstance(part, TextBlock) or part.text.strip()]
        fitted, is_error, why = fit_error(said, is_error=True)
        if why is not None:
            rows.append(BlockLoss(index, block.type, "rewritten", why))
            given = tuple(fitted)
    for part in given:
        if isinstance(part, TextBlock):
            if not part.text or part.text.isspace():
                reason = "blank text in a result, which this wire refuses, was left out"
                rows.append(BlockLoss(index, block.type, "rewritten", reason))
                continue
            content.append({"text": part.text})
        elif isinstance(part, OpaqueBlock):
            content.append(part.data)
        elif isinstance(part, MEDIA):
            if part.type == "audio" or f"result {part.type}" in family.refused:
                rows.append(BlockLoss(index, part.type, "dropped", f"a result holds no {part.type} for this model"))
            elif (made := to_wire_media(part, index, rows, names)) is not None:
                content.append(made)
    element: dict[str, Any] = {"toolUseId": block.tool_use_id, "content": content}
    if is_error and family.result_status:
        element["status"] = "error"
    elif is_error:
        reason = "only Claude and Nova have an error flag on results; the content alone shows the error"
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
    return {"toolResult": element}


def _inner_hint(block: ToolResultBlock, index: int, rows: list[BlockLoss]) -> CacheHint | None:
    """Return the last cache hint inside a result; its cache point follows the result."""
    hints = [getattr(part, "cache", None) for part in block.content]
    found = next((hint for hint in reversed(hints) if hint is not None), None)
    if found is not None and hints[-1] is None:
        reason = "a cache hint inside a result moved to the result's end"
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
    return found


def _thinking(block: ThinkingBlock | RedactedThinkingBlock) -> dict[str, Any]:
    if isinstance(block, RedactedThinkingBlock):
        return {"reasoningContent": {"redactedContent": block.data}}
    text: dict[str, Any] = {"text": block.text}
    return {"reasoningContent": {"reasoningText": text | ({"signature": block.signature} if block.signature else {})}}


def _trimmed_end(message: Message, parts: list[Any]) -> bytes:
    """Return the last part without white space at the end of its text; b"" if it has none (WIRE.md, Turns)."""
    last = message.content[-1] if message.content else None
    if type(last) is not TextBlock or last.citations or not last.text[-1:].isspace() or last.text.isspace():
        return b""
    if message.metadata.stop_reason is StopReason.PAUSE_TURN:
        return b""
    return dumps({**parts[-1], "text": last.text.rstrip()})


# ---- all messages


def to_wire_turns(
    messages: Sequence[Message],
    family: Family,
    spent: SpentPoints,
    bare: Sequence[int] = (),
    *,
    thoughts_alone: bool = True,
) -> ConverseTurns:
    """Join all messages: neighbours of one role share a turn, so that all results of one answer are in one turn.

    Args:
        messages: the projected conversation.
        family: the maker's models.
        spent: cache points already among the tools.
        bare: places of the messages to write without thinking.
        thoughts_alone: the model takes an earlier turn that is nothing but thinking.

    Raises:
        CapabilityError: there are no messages other than the system prompt, or a message has too many documents.
    """
    pieces = encode_messages(messages, family)
    for at in bare:
        pieces[at] = to_wire_parts(messages[at], family, bare=True)
    losses: list[Loss] = []
    _rename_documents(messages, pieces, family)
    for at, piece in enumerate(pieces):
        if piece.trimmed and model_saw(messages, at):
            row = BlockLoss(len(messages[at].content) - 1, "text", "rewritten", "white space at its end was trimmed")
            pieces[at] = piece._replace(parts=(*piece.parts[:-1], piece.trimmed), rows=(*piece.rows, row))
        losses += [row.at(at, messages[at].id) for row in pieces[at].rows]
        if piece.added:
            reason = "this wire wants text beside a document; one that points to it was added"
            losses.append(message_loss(at, reason, messages[at].id))
    if any(piece.points for piece in pieces):
        _write_points(messages, pieces, spent, losses, with_ttl=family.reasoning == "claude")
    leading = next((at for at, piece in enumerate(pieces) if piece.role != "system"), len(pieces))
    system = [part for piece in pieces[:leading] for part in piece.parts]
    turns: list[tuple[str, list[bytes]]] = []
    left_out = () if thoughts_alone else _thoughts_alone(messages, pieces, leading)
    for at in left_out:
        losses.append(message_loss(at, _ALONE, messages[at].id))
    for at, piece in enumerate(pieces[leading:], leading):
        if not piece.parts or at in left_out:
            continue
        role = "user" if piece.role == "system" else piece.role
        if not turns and role == "assistant":
            reason = "the first message on this wire must be the user's; a placeholder was inserted before it"
            losses.append(message_loss(at, reason, messages[at].id))
            turns.append(("user", [_FIRST_USER]))
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(piece.parts)
        else:
            turns.append((role, list(piece.parts)))
    if not turns:
        text = "a request must contain a message in addition to the system prompt: add a user message"
        raise CapabilityError(text, path="messages")
    _check_documents(turns)
    body = b",".join([_OPEN[role] + b",".join(parts) + b"]}" for role, parts in turns])
    return ConverseTurns(json_array(system) if system else None, b"[" + body + b"]", tuple(losses), turns[-1][0])


def _check_documents(turns: Sequence[tuple[str, list[bytes]]]) -> None:
    for _, parts in turns:
        count = sum(part.startswith(b'{"document"') for part in parts)
        if count > _MAX_DOCUMENTS:
            text = (
                f"a message has {count} documents and this wire takes {_MAX_DOCUMENTS}; spread them over several turns"
            )
            raise CapabilityError(text, path="messages")


def _thoughts_alone(messages: Sequence[Message], pieces: Sequence[ConverseParts], leading: int) -> list[int]:
    """Return the places of assistant turns that are nothing but thinking and that another turn follows."""
    found: list[int] = []
    turn: list[int] = []
    for at, piece in enumerate(pieces[leading:], leading):
        if piece.role == "assistant":
            turn += [at] if piece.parts else []
        elif piece.parts:
            if all(isinstance(block, _THINKING) for place in turn for block in messages[place].content):
                found += turn
            turn = []
    return found


def _rename_documents(messages: Sequence[Message], pieces: list[ConverseParts], family: Family) -> None:
    """Write messages again whose documents have names of earlier ones: names are unique within a request."""
    taken: frozenset[str] = frozenset()
    for at, piece in enumerate(pieces):
        if piece.names:
            if piece.names & taken:
                pieces[at] = to_wire_parts(messages[at], family, taken)
            taken |= pieces[at].names


def _write_points(
    messages: Sequence[Message], pieces: list[ConverseParts], spent: SpentPoints, losses: list[Loss], *, with_ttl: bool
) -> None:
    """Write the cache points: the last hints have precedence, and 1h must not follow 5m (WIRE.md, Caching)."""
    wanted = [(at, point) for at, piece in enumerate(pieces) for point in piece.points]
    first = max(len(wanted) - (MAX_POINTS - spent.used), 0)
    for at, point in wanted[:first]:
        row = BlockLoss(point.block, point.block_type, "dropped", "more cache hints than the wire takes", "form")
        losses.append(row.at(at, messages[at].id))
    short = spent.short
    chosen: dict[int, list[tuple[int, bytes]]] = {}
    for at, point in wanted[first:]:
        ttl, reason = fit_ttl(point.ttl, with_ttl=with_ttl, short=short)
        if reason is not None:
            losses.append(BlockLoss(point.block, point.block_type, "rewritten", reason).at(at, messages[at].id))
        short = short or ttl != "1h"
        chosen.setdefault(at, []).append((point.part, cache_point(ttl)))
    for at, points in chosen.items():
        parts = list(pieces[at].parts)
        for part, written in reversed(points):
            parts.insert(part + 1, written)
        pieces[at] = pieces[at]._replace(parts=tuple(parts))


def fit_ttl(ttl: str | None, *, with_ttl: bool, short: bool) -> tuple[str | None, str | None]:
    """Return the lifetime to send and, if it differs from the requested one, the reason."""
    if ttl is not None and not with_ttl:
        return None, "only Claude's cache points have a time; sent without" if ttl == "1h" else None
    if ttl == "1h" and short:
        return None, "a 1h cache point may not follow a 5m one; sent as 5m"
    return ttl, None


def cache_point(ttl: str | None) -> bytes:
    """Write a cache point."""
    return dumps({"cachePoint": {"type": "default"} if ttl is None else {"type": "default", "ttl": ttl}})
