"""Messages -> `messages` and `system`: elements of each message, turns, cache markers, bound thinking."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from interlingua.plugins import (
    BlockLoss,
    Json,
    Loss,
    dumps,
    dumps_trimmed,
    encode_each,
    json_object_with,
    message_loss,
    model_saw,
    note_for,
    placeholder_text,
    replay_state,
)
from interlingua.types import (
    CacheHint,
    ChangeBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageStatus,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_anthropic.changes import MEMBERS, changes_of, has_own_turn, members_of, place_changes, to_wire_change
from interlingua_anthropic.claude_tools import fit_error

_ASSISTANT, _SYSTEM = Role.ASSISTANT, Role.SYSTEM  # an enum's member is found by a slow call before Python 3.12
MAX_MARKS = 4
_BETAS = {
    "advisor_tool_result": "advisor-tool-2026-03-01",
    "compaction": "compact-2026-01-12",
    "fallback": "server-side-fallback-2026-07-01",
    "mcp_tool_use": "mcp-client-2025-11-20",
    "mcp_tool_result": "mcp-client-2025-11-20",
    "mcp_tool_listing": "mcp-client-2026-09-15",
}
_SIGNED_COMPACTION = "compact-2026-09-04"  # of a compaction that was asked for
_NO_ANSWER = b'{"type":"text","text":"(No answer.)"}'
_OPEN = {role: b'{"role":"%s","content":[' % role.encode() for role in ("user", "assistant", "system")}
_NEXT = {role: b"]}," + opened for role, opened in _OPEN.items()}
_WAITING = (StopReason.PAUSE_TURN, StopReason.TOOL_USE)  # the next answer brings the result


class Mark(NamedTuple):
    """A cache hint: its element, its lifetime, and its block."""

    element: int
    ttl: str | None
    block: int
    block_type: str


class Notes(NamedTuple):
    """Facts about a written message that are not in its bytes and that joining the messages needs.

    Attributes:
        rows: ledger rows of its losses.
        marks: cache hints that are not written yet.
        parts: each element separately, if there are marks or a trimmed end.
        trimmed: the last element without the white space at its end, which the wire does not always allow.
        betas: the beta features that its blocks belong to (WIRE.md, Server tools).
        floats: a change of tools or effort, which belongs right before the next answer.
        kept: it has what a caller's request has and no text says, and is not moved.
        members: its own members as JSON, each followed by a comma; it shares its turn with no other message.
    """

    rows: tuple[BlockLoss, ...] = ()
    marks: tuple[Mark, ...] = ()
    parts: tuple[bytes, ...] = ()
    trimmed: bytes = b""
    betas: tuple[str, ...] = ()
    members: bytes = b""
    floats: bool = False
    kept: bool = False


class MessageElements(NamedTuple):
    """One message on this wire.

    Attributes:
        role: role of the turn it belongs to.
        joined: its elements as JSON, separated by commas.
        notes: None for most messages; system messages always have them.
        thinks: the message holds thinking; like `digest` only for models that bind thinking to its prefix.
        digest: digest of the written elements.
    """

    role: str
    joined: bytes
    notes: Notes | None = None
    thinks: bool = False
    digest: bytes = b""


class MessagesTurns(NamedTuple):
    """The conversation on this wire.

    Attributes:
        prefix: digest that the answer's thinking will be bound to, or "".
    """

    system: bytes | None
    messages: Json
    losses: tuple[Loss, ...]
    ends_with: str | None
    prefix: str
    betas: tuple[str, ...]


class SpentMarks(NamedTuple):
    """Cache markers before the conversation: how many, and whether one of them is short-lived."""

    used: int = 0
    short: bool = False


# ---- one message


def encode_messages(messages: Sequence[Message], *, bound: bool) -> list[MessageElements]:
    """Write the elements of every message, with digests if the model binds thinking to its prefix."""
    if bound:
        return encode_each(messages, ("anthropic", "bound"), _with_digest)
    return encode_each(messages, "anthropic", to_wire_elements)


def to_wire_elements(message: Message) -> MessageElements:
    """Write the elements of one message, thinking included."""
    return _elements(message, without=None)


def _without_stale_thinking(message: Message) -> MessageElements:
    return _elements(message, without="the conversation before this thinking has changed")


def _without_thinking(message: Message) -> MessageElements:
    return _elements(message, without="without thinking the turn in progress may hold none")


def _with_digest(message: Message) -> MessageElements:
    made = to_wire_elements(message)
    role = b"assistant" if made.role == "assistant" else b"user"
    digest = hashlib.blake2b(role + b"\0" + made.joined, digest_size=16).digest()
    thinks = any(isinstance(block, (ThinkingBlock, RedactedThinkingBlock)) for block in message.content)
    return made._replace(digest=digest, thinks=thinks)


def _elements(message: Message, *, without: str | None) -> MessageElements:
    """Write the elements; `without` is the reason why thinking is left out, None to include it."""
    by_model = message.role is _ASSISTANT
    elements: list[Any] = []
    rows: list[BlockLoss] = []
    marks: list[Mark] = []
    betas: list[str] = []
    changes = changes_of(message) if message.role is _SYSTEM else []
    members = members_of(message, changes) if message.role is _SYSTEM else b""
    kept = replay_state(message).get("changes") if changes else None  # the elements of a caller's request
    sent = iter(kept or ())
    element: Any
    for index, block in enumerate(message.content):
        if type(block) is ChangeBlock:
            elements += to_wire_change(block, betas, next(sent, None))
            continue
        if type(block) is TextBlock:
            element, hint = {"type": "text", "text": block.text}, block.cache
            if block.citations:
                element = _cited_text(block, index, rows, by_model=by_model)
        elif isinstance(block, ToolUseBlock):
            element, hint = _call(block, index, rows, message), block.cache
        elif isinstance(block, ToolResultBlock):
            element = _result(block, index, rows)
            hint = block.cache or _inner_hint(block, index, rows)
        elif isinstance(block, (ThinkingBlock, RedactedThinkingBlock)):
            element, hint = _thinking(block) if without is None else None, None
            if without is not None:
                rows.append(BlockLoss(index, block.type, "dropped", without))
        else:
            element, hint = _other(block, index, rows, message, betas), getattr(block, "cache", None)
        element = element or _note(message, index, rows)
        if element is None:
            continue
        if hint is not None:
            marks.append(Mark(len(elements), hint.ttl, index, block.type))
        elements.append(element)
    elements = elements or ([] if members else _stand_in(message, rows))
    role = "assistant" if by_model else "system" if message.role is _SYSTEM else "user"
    trimmed = _trimmed_end(message, elements) if by_model else b""
    floats = bool(changes) and kept is None
    stays = kept is not None or (message.role is _SYSTEM and any(type(part) is OpaqueBlock for part in message.content))
    if marks or trimmed:
        parts = tuple([dumps_trimmed(element) for element in elements])
        notes = Notes(tuple(rows), tuple(marks), parts, trimmed, tuple(betas), members, floats, stays)
        return MessageElements(role, b",".join(parts), notes)
    noted = Notes(tuple(rows), betas=tuple(betas), members=members, floats=floats, kept=stays)
    return MessageElements(role, dumps(elements)[1:-1], noted if rows or betas or role == "system" else None)


def _note(message: Message, index: int, rows: list[BlockLoss]) -> dict[str, Any] | None:
    note = note_for(message, index, rows)
    return None if note is None else {"type": "text", "text": note}


def _stand_in(message: Message, rows: list[BlockLoss]) -> list[Any]:
    return [{"type": "text", "text": placeholder_text(rows)}] if message.role is Role.USER else []


def _cited_text(block: TextBlock, index: int, rows: list[BlockLoss], *, by_model: bool) -> dict[str, Any]:
    if by_model:
        return {"type": "text", "text": block.text, "citations": list(block.citations)}
    rows.append(BlockLoss(index, block.type, "rewritten", "this wire takes citations on assistant text only"))
    return {"type": "text", "text": block.text}


def _call(block: ToolUseBlock, index: int, rows: list[BlockLoss], message: Message) -> dict[str, Any]:
    value: Any = block.input
    if block.parse_error is not None:
        reason = "arguments are not JSON and this wire wants an object"
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
        value = {"invalid_json": block.raw_input}
    element = {"type": "tool_use", "id": block.id, "name": block.name, "input": value}
    extras = replay_state(message).get("calls")
    return element | extras.get(block.id, {}) if extras else element


def _result(block: ToolResultBlock, index: int, rows: list[BlockLoss]) -> dict[str, Any]:
    content = []
    for part in block.content:
        if isinstance(part, TextBlock) and (not part.text or part.text.isspace()):
            blank = "blank text in a result, which this wire refuses, was left out"
            rows.append(BlockLoss(index, block.type, "rewritten", blank))
        else:
            content.append(part)
    parts: Sequence[Any] = content
    is_error, reason = False, None
    if block.is_error:
        parts, is_error, reason = fit_error(content, is_error=True)
    if reason is not None:
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
    alone = len(parts) == 1 and type(parts[0]) is TextBlock
    inner: Any = parts[0].text if alone else [_result_part(part) for part in parts]
    element: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.tool_use_id}
    if inner:
        element["content"] = inner
    if is_error:
        element["is_error"] = True
    return element


def _result_part(part: Any) -> Any:
    if isinstance(part, TextBlock):
        return {"type": "text", "text": part.text}
    if isinstance(part, OpaqueBlock):
        return _without_citations(part.data)
    return _media(part)


def _inner_hint(block: ToolResultBlock, index: int, rows: list[BlockLoss]) -> CacheHint | None:
    """Return the last cache hint inside a result; the marker is set on the result, the nearest place for one."""
    found: CacheHint | None = None
    last = None
    for part in block.content:
        last = getattr(part, "cache", None)
        found = last or found
    if found is not None and last is None:
        reason = "a cache hint inside a result moved to the result's end"
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
    return found


def _thinking(block: ThinkingBlock | RedactedThinkingBlock) -> dict[str, Any]:
    if isinstance(block, RedactedThinkingBlock):
        return {"type": "redacted_thinking", "data": block.data}
    return {"type": "thinking", "thinking": block.text, "signature": block.signature or ""}


def _other(block: Any, index: int, rows: list[BlockLoss], message: Message, betas: list[str]) -> Any:
    """Return the element of an opaque block or of media; None if this wire does not allow it here."""
    by_model = message.role is _ASSISTANT
    if type(block) is OpaqueBlock:
        if block.kind in _BETAS:
            signed = block.kind == "compaction" and isinstance(block.data, Mapping) and block.data.get("signature")
            betas.append(_SIGNED_COMPACTION if signed else _BETAS[block.kind])
        if block.kind == MEMBERS and message.role is _SYSTEM:
            return None  # `members_of` writes it
        reason = _opaque_refusal(block, message)
        if reason is None:
            data = block.data if by_model else _without_citations(block.data)
            if data is not block.data:
                reason = "this wire takes citations on assistant text only"
                rows.append(BlockLoss(index, block.type, "rewritten", reason))
            return data
    elif type(block) is not ImageBlock and type(block) is not DocumentBlock:
        reason = f"this wire has no {block.type} block"
    elif by_model:
        reason = f"this wire takes no {block.type} in an assistant message"
    else:
        return _media(block)
    rows.append(BlockLoss(index, block.type, "dropped", reason))
    return None


def _trimmed_end(message: Message, elements: list[Any]) -> bytes:
    """Return the last element without white space at the end of its text; b"" if it has none (WIRE.md, Turns)."""
    last = message.content[-1] if message.content else None
    if type(last) is not TextBlock or not last.text[-1:].isspace() or last.text.isspace():
        return b""
    if message.metadata.stop_reason is StopReason.PAUSE_TURN:
        return b""  # sent back unchanged, to be continued
    return dumps({**elements[-1], "text": last.text.rstrip()})


# ---- media (WIRE.md, Media)


def _media(block: ImageBlock | DocumentBlock) -> dict[str, Any]:
    source: dict[str, Any]
    if block.source.kind == "base64":
        source = {"type": "base64", "media_type": block.media_type, "data": block.source.data}
    elif block.source.kind == "file_id":
        source = {"type": "file", "file_id": block.source.data}
    else:
        source = {"type": "url", "url": block.source.data}
    if isinstance(block, ImageBlock):
        return {"type": "image", "source": source}
    if block.media_type == "text/plain" and block.source.kind == "base64":
        source = {"type": "text", "media_type": "text/plain", "data": _decoded(block.source.data)}
    element: dict[str, Any] = {"type": "document", "source": source}
    if block.title is not None:
        element["title"] = block.title
    if block.context is not None:
        element["context"] = block.context
    if block.cite:
        element["citations"] = {"enabled": True}
    return element


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data).decode("utf-8", "replace")
    except binascii.Error:
        return data


# ---- blocks that only this service has (WIRE.md, Server tools)


def _opaque_refusal(block: OpaqueBlock, message: Message) -> str | None:
    """Return why this block may not be sent back in this message, or None."""
    data = block.data
    unanswered = _unanswered_server_calls(message)
    if unanswered and isinstance(data, Mapping) and data.get("id") in unanswered:
        return "the server call was cut off before its result came"
    if block.kind == "document" and message.role is _ASSISTANT:
        return "this wire takes no document in an assistant message"
    return None


def _unanswered_server_calls(message: Message) -> set[str]:
    """Return ids of server calls without a result, which the service rejects."""
    metadata = message.metadata
    if metadata.status is MessageStatus.COMPLETE and metadata.stop_reason in (None, *_WAITING):
        return set()
    opaque = [block.data for block in message.content if type(block) is OpaqueBlock]
    data = [item for item in opaque if isinstance(item, Mapping)]
    called = {str(item.get("id")) for item in data if str(item.get("type")).endswith("_tool_use")}
    return called - {str(item.get("tool_use_id")) for item in data}


def _without_citations(data: Any) -> Any:
    """Return a search result without citations in its text, which user messages must not have."""
    parts = data.get("content") if isinstance(data, Mapping) and data.get("type") == "search_result" else None
    if not isinstance(parts, list) or not any(_cites(part) for part in parts):
        return data
    bare = [{key: item for key, item in part.items() if key != "citations"} if _cites(part) else part for part in parts]
    return {**data, "content": bare}


def _cites(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("citations"), list) and bool(part["citations"])


# ---- all messages


def to_wire_turns(
    messages: Sequence[Message],
    head: bytes,
    spent: SpentMarks,
    *,
    bound: bool,
    bare: Sequence[int] = (),
    drops_unverified: bool = False,
) -> MessagesTurns:
    """Join all messages: neighbours of one role share a turn, so that all results of one answer are in one turn.

    Args:
        messages: the projected conversation.
        head: the bytes before all messages: the tools, without cache markers.
        spent: cache markers already on the tools.
        bound: the model binds thinking to its exact prefix (WIRE.md, Thinking).
        bare: places of the messages to write without thinking.
        drops_unverified: thinking whose prefix is not known is left out, for models that bind it.
    """
    pieces = encode_messages(messages, bound=bound)
    drop = partial(_drop_stale_thinking, drops_unverified=drops_unverified)
    prefix = drop(messages, pieces, head) if bound else ""
    _write_again(messages, pieces, bare, _without_thinking)
    leading = 0
    while leading < len(pieces) and pieces[leading].role == "system" and not has_own_turn(pieces[leading]):
        leading += 1
    losses: list[Loss] = []
    marked: list[int] = []
    betas: list[str] = []
    for at, piece in enumerate(pieces):
        notes = piece.notes
        if notes is None:
            continue
        betas += notes.betas
        if notes.trimmed and model_saw(messages, at):
            pieces[at] = _with_trimmed_end(piece.role, notes, messages[at])
        elif piece.role == "system" and at >= leading:
            pieces[at] = _later_system(piece, notes, messages, at)
        rows, marks = (pieces[at].notes or notes)[:2]
        losses += [row.at(at, messages[at].id) for row in rows]
        if marks:
            marked.append(at)
    if marked:
        _write_marks(pieces, marked, messages, spent, losses)
    system = b",".join([piece.joined for piece in pieces[:leading] if piece.joined])
    body, last = _join_turns(place_changes(pieces[leading:]), leading, losses)
    return MessagesTurns(b"[" + system + b"]" if system else None, body, tuple(losses), last, prefix, tuple(betas))


def _join_turns(
    pieces: Sequence[MessageElements], leading: int, losses: list[Loss]
) -> tuple[list[bytes | memoryview], str | None]:
    """Return the turns behind the leading system messages as JSON in pieces, and the role of the last turn."""
    body: list[bytes | memoryview] = [b"["]
    last: str | None = None
    alone = False  # the open turn takes no other message
    for at, (role, joined, notes, _, _) in enumerate(pieces, leading):
        if notes is not None and notes.members:
            begun = b"%b%b%b" % (_OPEN[role][:1], notes.members, _OPEN[role][1:])
            body += (b"]}," + begun if last else begun, joined)
            last, alone = role, True
            continue
        if not joined:
            continue
        if role == last and not alone:
            body += (b",", joined)
            continue
        if last == "system" and role == "user" and not alone:
            reason = "an answer must follow a system message; a placeholder was inserted for an empty answer"
            losses.append(message_loss(at, reason))
            body += (_NEXT["assistant"], _NO_ANSWER)
        body += (_NEXT[role] if last else _OPEN[role], joined)
        last, alone = role, False
    body.append(b"]}]" if last else b"]")
    return body, last


def _drop_stale_thinking(
    messages: Sequence[Message], pieces: list[MessageElements], head: bytes, *, drops_unverified: bool
) -> str:
    """Replace messages whose thinking is bound to a prefix that has changed since; return the digest of the prefix."""
    running = hashlib.blake2b(head, digest_size=16).digest()
    stale = []
    broken = False
    for at, piece in enumerate(pieces):
        if piece.thinks:
            written = replay_state(messages[at]).get("prefix")
            if written is not None:  # one made after the edit is bound to what was sent then, and is good again
                broken = written != running.hex()
            if broken or (written is None and drops_unverified):
                stale.append(at)
        running = hashlib.blake2b(running + piece.digest, digest_size=16).digest()
    _write_again(messages, pieces, stale, _without_stale_thinking)
    return running.hex()


def _write_again(
    messages: Sequence[Message],
    pieces: list[MessageElements],
    places: Sequence[int],
    write: Callable[[Message], MessageElements],
) -> None:
    """Write some of the messages again with another function."""
    if places:
        written = encode_each(messages, ("anthropic", write), write)
        for at in places:
            pieces[at] = written[at]


def _later_system(piece: MessageElements, notes: Notes, messages: Sequence[Message], at: int) -> MessageElements:
    """Write a later system message: as itself if the wire allows it, else as tagged user text (WIRE.md, System).

    The wire allows it before an answer. An empty answer is not sent back: the message before it stays as it was sent,
    followed by the words that there was no answer.
    """
    if (
        notes.members
        or notes.floats
        or notes.kept
        or (_is_answered_after(messages, at) and _may_precede_system(_message_before(messages, at)))
    ):
        return piece
    text = dumps({"type": "text", "text": f"<system>\n{messages[at].text}\n</system>"})
    row = BlockLoss(0, "text", "rewritten", "this wire has no system message in this place; sent as tagged user text")
    marks = tuple([mark._replace(element=0) for mark in notes.marks[-1:]])
    return MessageElements("user", text, Notes((row,), marks, (text,)))


def _is_answered_after(messages: Sequence[Message], at: int) -> bool:
    """Return whether an answer follows this run of system messages, or will follow it."""
    for place in range(at, len(messages)):
        if messages[place].role is not _SYSTEM:
            return False
        if model_saw(messages, place):
            return True
    return True


def _message_before(messages: Sequence[Message], at: int) -> Message | None:
    """Return the message before this run of system messages; None if it is an empty answer."""
    for place in range(at - 1, -1, -1):
        if messages[place].role is not _SYSTEM:
            return messages[place]
        if model_saw(messages, place):  # and its answer is not here: a system message follows
            return None
    return None


def _may_precede_system(message: Message | None) -> bool:
    if message is None:
        return False
    if message.role in (Role.USER, Role.TOOL):
        return True
    last = message.content[-1] if message.content else None
    return isinstance(last, OpaqueBlock) and "tool" in last.kind  # an assistant turn that ends in server-tool use


def _with_trimmed_end(role: str, notes: Notes, message: Message) -> MessageElements:
    """Trim the end of assistant text that the model should continue.

    Also after another assistant message followed it, so that the prefix does not change.
    """
    parts = (*notes.parts[:-1], notes.trimmed)
    row = BlockLoss(len(message.content) - 1, "text", "rewritten", "white space at the end of the text was trimmed")
    return MessageElements(role, b",".join(parts), notes._replace(parts=parts, rows=(*notes.rows, row)))


def _write_marks(
    pieces: list[MessageElements], marked: list[int], messages: Sequence[Message], spent: SpentMarks, losses: list[Loss]
) -> None:
    """Write the cache markers: the last hints have precedence, and 1h must not follow 5m (WIRE.md, Caching)."""
    noted = [(at, pieces[at].notes or Notes()) for at in marked]
    parts = {at: list(notes.parts) for at, notes in noted}
    wanted = [(at, mark) for at, notes in noted for mark in notes.marks]
    first = max(len(wanted) - (MAX_MARKS - spent.used), 0)
    for at, mark in wanted[:first]:
        row = BlockLoss(mark.block, mark.block_type, "dropped", "more cache hints than the wire takes", "form")
        losses.append(row.at(at, messages[at].id))
    short = spent.short
    for at, mark in wanted[first:]:
        ttl = mark.ttl
        if ttl == "1h" and short:
            reason = "a 1h cache marker may not follow a 5m one; sent as 5m"
            losses.append(BlockLoss(mark.block, mark.block_type, "rewritten", reason).at(at, messages[at].id))
            ttl = None
        short = short or ttl != "1h"
        parts[at][mark.element] = json_object_with(parts[at][mark.element], "cache_control", cache_control(ttl))
    for at in {at for at, _ in wanted[first:]}:
        pieces[at] = pieces[at]._replace(joined=b",".join(parts[at]))


def cache_control(ttl: str | None) -> bytes:
    """Write a cache marker."""
    return dumps({"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl})
