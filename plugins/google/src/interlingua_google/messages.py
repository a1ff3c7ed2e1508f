"""Messages -> `contents` and `systemInstruction`: one content a message; all results of an answer in one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    BlockLoss,
    Json,
    Loss,
    dumps,
    encode_each,
    message_loss,
    note_for,
    placeholder_text,
    replay_state,
)
from interlingua.types import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    OpaqueBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)
from interlingua_google.models import API, is_signed

_ASSISTANT, _SYSTEM, _TOOL = Role.ASSISTANT, Role.SYSTEM, Role.TOOL  # finding a member is slow before Python 3.12
# base64 of `skip_thought_signature_validator`: accepted instead of a missing signature (WIRE.md, Thinking)
STAND_IN = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
OTHER_CANDIDATE = "candidate"
"""Kind of the opaque blocks that hold answers beside the first, if a request asks for several."""

Media: TypeAlias = ImageBlock | AudioBlock | VideoBlock | DocumentBlock
MEDIA = (ImageBlock, AudioBlock, VideoBlock, DocumentBlock)
_KINDS: dict[str, type[Any]] = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}
_DATA = ("inlineData", "fileData")
_READ_OF_DATA = ("mimeType", "data", "fileUri")
_IN_RESULTS = ("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain")
_RESULTS = ("output", "error", "result", "content", "return_value")  # names that callers use for the only member
_FIRST_USER = b'{"text":"(The conversation begins with the assistant.)"}'
_OPEN = {"user": b'{"role":"user","parts":[', "model": b'{"role":"model","parts":['}
_NEXT = {role: b"]}," + opened for role, opened in _OPEN.items()}


class Contents(NamedTuple):
    """The conversation on this wire."""

    system: bytes | None
    contents: Json
    losses: tuple[Loss, ...]


class WrittenResult(NamedTuple):
    """A result without its call's name and id, which depend on the call; `rest` is the JSON after them.

    `whole`: the result is from a caller's request, and `rest` is all of it.
    """

    name: str
    call_id: str
    rest: bytes
    whole: bool = False


class MessageParts(NamedTuple):
    """One message on this wire: role, parts joined, losses.

    Attributes:
        role: role of its content.
        joined: its parts as JSON, separated by commas.
        rows: ledger rows of its losses.
        calls: wire id of a call -> its name, and whether the id is sent.
        results: the results of a TOOL message; `joined` is empty then.
    """

    role: str
    joined: bytes
    rows: tuple[BlockLoss, ...] = ()
    calls: Mapping[str, tuple[str, bool]] = {}
    results: tuple[WrittenResult, ...] = ()


# ---- all messages


def to_wire_contents(messages: Sequence[Message], model: str) -> Contents:
    """Join the projected conversation; neighbours of one role are not merged, so that the prefix never changes."""
    pieces = encode_messages(messages, model)
    leading = next((at for at, message in enumerate(messages) if message.role is not _SYSTEM), len(messages))
    system = b",".join([piece.joined for piece in pieces[:leading] if piece.joined])
    losses: list[Loss] = [row.at(at, messages[at].id) for at in range(leading) for row in pieces[at].rows]
    body: list[bytes | memoryview] = [b"["]
    last: str | None = None
    calls: Mapping[str, tuple[str, bool]] = {}
    for at, (role, joined, rows, made_calls, results) in enumerate(pieces[leading:], leading):
        is_tool = messages[at].role is _TOOL
        calls = calls if is_tool else made_calls
        written = join_results(results, calls) if is_tool else joined
        if rows:
            losses += [row.at(at, messages[at].id) for row in rows]
        if not written:
            continue
        if last is None and role == "model":
            reason = "the first content on this wire must be the user's; a placeholder was inserted before it"
            losses.append(message_loss(at, reason, messages[at].id))
            body += (_OPEN["user"], _FIRST_USER)
            last = "user"
        batch = is_tool and last == "results"
        body += (b"," if batch else _NEXT[role] if last else _OPEN[role], written)
        last = "results" if is_tool else role
    if last is None:
        text = "a request must contain a message in addition to the system prompt: add a user message"
        raise CapabilityError(text, path="messages")
    if last == "model":
        reason = "the history ends with an answer; this wire has no prefill and answers instead of continuing it"
        losses.append(message_loss(len(messages) - 1, reason, messages[-1].id))
    body.append(b"]}]")
    said = replay_state(messages[0], API).get("role") if leading else None  # as a caller's request said it
    opened = b'{"role":' + dumps(said) + b',"parts":[' if said else b'{"parts":['
    return Contents(opened + system + b"]}" if system else None, body, tuple(losses))


def encode_messages(messages: Sequence[Message], model: str) -> list[MessageParts]:
    """Write the parts of every message."""
    return encode_each(messages, ("google", model), lambda message: to_wire_parts(message, model))


def join_results(results: Sequence[WrittenResult], calls: Mapping[str, tuple[str, bool]]) -> bytes:
    """Join results, each with its call's name, and with its id only if the model sent one."""
    written = []
    name, issued = calls.get(results[0].call_id, (None, False)) if results else (None, False)
    for result in results:
        if result.whole:
            written.append(result.rest)
            continue
        call_id = b'"id":' + dumps(result.call_id) + b"," if issued else b""
        written.append(b'{"functionResponse":{' + call_id + b'"name":' + dumps(name or result.name) + result.rest)
    return b",".join(written)


# ---- one message


def to_wire_parts(message: Message, model: str) -> MessageParts:
    """Write one message for a model."""
    rows: list[BlockLoss] = []
    if message.role is _TOOL:
        blocks = enumerate(message.content)
        kept = replay_state(message, API).get("parts")
        results = [
            _as_it_came(block, kept) or _result(block, index, rows)
            for index, block in blocks
            if isinstance(block, ToolResultBlock)
        ]
        return MessageParts("user", b"", tuple(rows), results=tuple(results))
    calls: dict[str, tuple[str, bool]] = {}
    parts: list[Any] = []
    part: Any
    for index, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            if block.citations:
                reason = "this wire takes no citations back; the text is kept"
                rows.append(BlockLoss(index, block.type, "rewritten", reason))
            part = {"text": block.text}
            if block.signature:
                part["thoughtSignature"] = block.signature
        elif isinstance(block, ToolUseBlock):
            part = _call(block, index, rows, calls, message.metadata, model)
        elif isinstance(block, ThinkingBlock):
            part = _thinking(block, index, rows)
        elif isinstance(block, OpaqueBlock):
            part = _opaque(block, index, rows, message.metadata, model)
        elif isinstance(block, MEDIA):
            part = _media(block, index, rows, message, model)
        else:
            rows.append(BlockLoss(index, block.type, "dropped", f"this wire has no {block.type} block"))
            part = None
        if part is None and (note := note_for(message, index, rows)) is not None:
            part = {"text": note}
        if part is not None:
            parts.append(part)
    role = "model" if message.role is _ASSISTANT else "user"
    parts = parts or _stand_in(message, rows)
    written = _divided(message) or dumps(parts)[1:-1]
    return MessageParts(role, written, tuple(rows), calls)


def _divided(message: Message) -> bytes | None:
    """Return an answer as the contents and parts that a caller sent; None if it was one part."""
    pieces = replay_state(message, API).get("pieces")
    text, at = message.text, 0
    if pieces is None or sum(map(sum, pieces)) != len(text):
        return None
    contents: list[bytes] = []
    for lengths in pieces:
        parts: list[dict[str, str]] = []
        for length in lengths:
            parts.append({"text": text[at : at + length]})
            at += length
        contents.append(dumps(parts)[1:-1])
    return _NEXT["model"].join(contents)


def _stand_in(message: Message, rows: list[BlockLoss]) -> list[Any]:
    """Return a placeholder for a user message that cannot be sent at all."""
    return [{"text": placeholder_text(rows)}] if message.role is Role.USER else []


def _thinking(block: ThinkingBlock, index: int, rows: list[BlockLoss]) -> dict[str, Any] | None:
    if not block.text and not block.signature:
        rows.append(BlockLoss(index, block.type, "dropped", "thinking without text or signature says nothing"))
        return None
    part: dict[str, Any] = {"text": block.text, "thought": True}
    return part | {"thoughtSignature": block.signature} if block.signature else part


def _call(
    block: ToolUseBlock,
    index: int,
    rows: list[BlockLoss],
    calls: dict[str, tuple[str, bool]],
    metadata: MessageMetadata,
    model: str,
) -> dict[str, Any]:
    value: Any = block.input
    if block.parse_error is not None:
        reason = "arguments are not JSON and this wire wants an object"
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
        value = {"invalid_json": block.raw_input}
    issued = metadata.api == API and block.provider_id is not None and block.provider_id == block.id
    signature = block.signature
    if not calls and not signature and is_signed(model):  # also in earlier turns: the prefix must not change
        signature = STAND_IN
    calls[block.id] = (block.name, issued)
    call: dict[str, Any] = {"id": block.id} if issued else {}
    call["name"] = block.name
    call["args"] = value
    return {"functionCall": call, "thoughtSignature": signature} if signature else {"functionCall": call}


def _result(block: ToolResultBlock, index: int, rows: list[BlockLoss]) -> WrittenResult:
    """Write a result, followed by the media that it cannot contain (WIRE.md, Tool results)."""
    output: list[Any] = []
    inside: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    for part in block.content:
        if isinstance(part, TextBlock):
            output.append(part.text)
        elif isinstance(part, OpaqueBlock):
            output.append(part.data)
        elif isinstance(part, MEDIA):
            (inside if part.media_type in _IN_RESULTS else beside).append(to_wire_media(part))
            if (names := unsupported_fields(part)) is not None:
                reason = f"this wire has no {names} on a part; the data is kept"
                rows.append(BlockLoss(index, part.type, "rewritten", reason))
            if part.media_type not in _IN_RESULTS:
                reason = f"a result holds no {part.media_type or 'media of unknown type'} here; it follows the result"
                rows.append(BlockLoss(index, part.type, "rewritten", reason))
    value = output[0] if len(output) == 1 else output or ""
    response: dict[str, Any] = {"response": {"error" if block.is_error else "output": value}}
    if inside:
        response["parts"] = inside
    rest = b"," + dumps(response)[1:] + b"}"
    if beside:
        rest += b"," + dumps(beside)[1:-1]
    return WrittenResult(block.tool_name or block.tool_use_id, block.tool_use_id, rest)


def _as_it_came(block: ToolResultBlock, parts: Sequence[Mapping[str, Any]] | None) -> WrittenResult | None:
    """Return the result as in a caller's request, unless it was changed since."""
    if not parts or from_wire_result(parts) != (block.content, block.is_error):
        return None
    return WrittenResult(block.tool_use_id, block.tool_use_id, dumps(list(parts))[1:-1], whole=True)


def from_wire_result(result: Sequence[Mapping[str, Any]]) -> tuple[tuple[ContentBlock, ...], bool]:
    """Return the content of a caller's `functionResponse`, and whether it is an error (WIRE.md, Tool results).

    Args:
        result: its part and the media parts beside it.
    """
    given = result[0]["functionResponse"]
    response = given.get("response")
    is_error = isinstance(response, Mapping) and response.keys() == {"error"}
    value = response
    if isinstance(response, Mapping) and len(response) == 1 and next(iter(response)) in _RESULTS:
        (value,) = response.values()
    text = value if isinstance(value, str) else dumps(value).decode()
    parts = given.get("parts")
    listed = [*(parts if isinstance(parts, (list, tuple)) else ()), *result[1:]]
    media = [from_wire_media(dict(part)) for part in listed if isinstance(part, Mapping)]
    blocks: list[ContentBlock] = [TextBlock(text=text)] if value not in (None, {}) or not media else []
    return (*blocks, *[block for block in media if block is not None]), is_error


def _is_same_model(metadata: MessageMetadata, model: str) -> bool:
    origin = metadata.origin
    return origin is None or origin.model == model


def _opaque(block: OpaqueBlock, index: int, rows: list[BlockLoss], metadata: MessageMetadata, model: str) -> Any:
    data = block.data
    if block.kind == OTHER_CANDIDATE:
        rows.append(BlockLoss(index, block.type, "dropped", "an alternative answer that was not chosen"))
        return None
    if _is_same_model(metadata, model) or not isinstance(data, Mapping) or "thoughtSignature" not in data:
        return data
    rest = {name: value for name, value in data.items() if name != "thoughtSignature"}
    reason = "its signature belongs to another origin"
    rows.append(BlockLoss(index, block.type, "rewritten" if rest else "dropped", reason))
    return rest or None


# ---- media, both directions (WIRE.md, Parts)


def _media(block: Media, index: int, rows: list[BlockLoss], message: Message, model: str) -> dict[str, Any]:
    if (names := unsupported_fields(block)) is not None:
        reason = f"this wire has no {names} on a part; the data is kept"
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
    kept: Mapping[str, Any] = replay_state(message).get("media") or {}
    extras = kept.get(media_key(block)) if kept else None
    made = to_wire_media(block)
    return with_extras(made, extras) if extras and _is_same_model(message.metadata, model) else made


def to_wire_media(block: Media) -> dict[str, Any]:
    """Write one media part; a URL or an uploaded file is sent as its address."""
    if block.source.kind == "base64":
        return {"inlineData": {"mimeType": block.media_type or "image/png", "data": block.source.data}}
    file = {"mimeType": block.media_type} if block.media_type else {}
    return {"fileData": file | {"fileUri": block.source.data}}


def from_wire_media(part: dict[str, Any]) -> Media | None:
    """Return the block of a part with data or a file; None if it has neither in full."""
    inline, file = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, dict) and isinstance(inline.get("data"), str):
        source, media_type = MediaSource(kind="base64", data=inline["data"]), inline.get("mimeType")
    elif isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        source, media_type = MediaSource(kind="file_id", data=file["fileUri"]), file.get("mimeType")
    else:
        return None
    if not isinstance(media_type, str):
        return None
    made: Media = _KINDS.get(media_type.partition("/")[0], DocumentBlock)(source=source, media_type=media_type)
    return made


def media_extras(part: dict[str, Any]) -> dict[str, Any]:
    """Return the further members of a media part, such as its signature, to send them back."""
    more = {name: value for name, value in part.items() if name not in _DATA}
    for name in _DATA:
        inner = part.get(name)
        if isinstance(inner, Mapping) and (
            rest := {key: one for key, one in inner.items() if key not in _READ_OF_DATA}
        ):
            more[name] = rest
    return more


def with_extras(part: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """Return a media part with the members that `media_extras` found."""
    inner = {name: {**part[name], **extras[name]} for name in _DATA if name in part and name in extras}
    return {**part, **{name: value for name, value in extras.items() if name not in _DATA}, **inner}


def media_key(block: Media) -> str:
    """Return a name for the content of a media block, so that its extras are found again in any place."""
    return hashlib.blake2b(block.source.data.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def unsupported_fields(block: Media) -> str | None:
    """Return the names of a block's fields that this wire does not have, or None."""
    names: list[str] = []
    if isinstance(block, DocumentBlock):
        names = [name for name in ("title", "context") if getattr(block, name) is not None]
        names += ["cite"] if block.cite else []
    elif isinstance(block, ImageBlock):
        names = [] if block.detail in (None, "auto") else ["detail"]
    elif isinstance(block, AudioBlock):
        names = [] if block.transcript is None else ["transcript"]
    return " and ".join(names) or None
