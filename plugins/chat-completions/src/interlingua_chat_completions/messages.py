"""Write one canonical message as wire objects, with the losses of this wire."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.plugins import EMPTY, BlockLoss, dumps, dumps_trimmed, note_for, placeholder_text, replay_state
from interlingua.types import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)
from interlingua_chat_completions.cache_markers import Hint, cache_control
from interlingua_chat_completions.dialect import Dialect

_ASSISTANT, _TOOL, _USER = Role.ASSISTANT, Role.TOOL, Role.USER  # an enum's member is slow before Python 3.12
_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}
_NO_MARKERS = "tool results take no cache marker on this wire"
_TEXT_ALONE = "only text and tools take a cache marker on this wire"
_EMPTY_RESULT = "a result that says nothing takes no cache marker"
_UNSIGNED = "reasoning has no signature on this wire; its text is kept"


class MessageProfile(NamedTuple):
    """The facts that determine a message's wire form, with the message itself: the key of the cached form.

    Attributes:
        provider: the provider key; state of messages from this origin is sent back.
        dialect: the service's deviations.
        thinking: the request leaves reasoning on.
        marked: the blocks of this message that get a cache marker.
        moving: markers move between requests (`cache="auto"`), so results have the form with markers without one, too.
    """

    provider: str
    dialect: Dialect
    thinking: bool = True
    marked: tuple[Hint, ...] = ()
    moving: bool = False


class ChatElement(NamedTuple):
    """A message on this wire: JSON objects separated by commas, its losses, its usable cache hints."""

    wire: bytes
    losses: tuple[BlockLoss, ...] = ()
    hints: tuple[Hint, ...] = ()


def to_wire_message(message: Message, profile: MessageProfile) -> ChatElement:
    """Write one message; `wire` is empty if it cannot be sent at all."""
    role, content = message.role, message.content
    losses: list[BlockLoss] = []
    if role is _ASSISTANT:
        body = _assistant(message, profile, losses)
        return ChatElement(b"" if body is None else dumps_trimmed(body), tuple(losses))
    if role is _TOOL:
        return _tool(message, profile, losses)
    dialect = profile.dialect
    if len(content) == 1 and type(content[0]) is TextBlock and not dialect.cache_breakpoints:  # most are such
        name = "user" if role is _USER else dialect.system_role
        return ChatElement(dumps_trimmed({"role": name, "content": content[0].text}))
    return _user(message, profile, losses)


def _user(message: Message, profile: MessageProfile, losses: list[BlockLoss]) -> ChatElement:
    """Write a user's or a system message."""
    dialect, blocks = profile.dialect, message.content
    system = message.role is not _USER
    parts: list[dict[str, Any]] = []
    hints: list[Hint] = []
    for at, block in enumerate(blocks):
        part = to_wire_part(block, at, dialect, losses)
        if part is None and (note := note_for(message, at, losses)) is not None:
            part = {"type": "text", "text": note}
        if part is not None:
            parts.append(_marked(part, at, profile) if profile.marked else part)
        if dialect.cache_breakpoints and (hint := getattr(block, "cache", None)) is not None:
            if dialect.cache_style == "cache_control" and part is not None and part.get("type") != "text":
                losses.append(BlockLoss(at, block.type, "rewritten", _TEXT_ALONE))
            else:
                hints.append(Hint(at, hint.ttl))
    if not parts and not system:  # without the turn the model would be asked something else
        parts = [{"type": "text", "text": placeholder_text(losses)}]
    if not parts:
        return ChatElement(b"", tuple(losses))
    content: Any = parts
    # markers need parts; without markers, use the short form, which every service accepts
    if not dialect.cache_breakpoints and (system or len(parts) == 1):
        texts = [part["text"] for part in parts if part.get("type") == "text"]
        if len(texts) == len(parts):
            content = "\n\n".join(texts)
    body = {"role": dialect.system_role if system else "user", "content": content}
    return ChatElement(dumps_trimmed(body), tuple(losses), tuple(hints))


def _marked(part: dict[str, Any], at: int, profile: MessageProfile) -> dict[str, Any]:
    for hint in profile.marked:
        if hint.block == at:
            if profile.dialect.cache_style == "cache_control":
                return {**part, "cache_control": cache_control(hint.ttl)}
            return {**part, "prompt_cache_breakpoint": {"mode": "explicit"}}
    return part


def _tool(message: Message, profile: MessageProfile, losses: list[BlockLoss]) -> ChatElement:
    """Write the results of a tool message."""
    dialect = profile.dialect
    markers = dialect.cache_style == "cache_control"
    out: list[bytes] = []
    hints: list[Hint] = []
    for at, block in enumerate(message.content):
        if not isinstance(block, ToolResultBlock):
            continue
        texts: list[str] = []
        others: list[ContentBlock] = []
        for part in block.content:
            if isinstance(part, TextBlock):
                texts.append(part.text)
            else:
                others.append(part)
        text = texts[0] if len(texts) == 1 else "\n".join(texts)
        if others and not dialect.result_parts:
            losses += [_unwritable_in_result(at, part) for part in others]
            others = []
        if block.is_error:
            text = dialect.error_prefix + text
            reason = "no error flag for tool results on this wire; the text says that it is one"
            losses.append(BlockLoss(at, block.type, "rewritten", reason))
        made = [one for other in others if (one := to_wire_part(other, at, dialect, losses)) is not None]
        documents = [one["text"] for one in made if one["type"] == "text"]
        text = "\n".join([text, *documents] if text else documents)
        content: Any = text
        if len(made) > len(documents):
            media = [one for one in made if one["type"] != "text"]
            content = [*([{"type": "text", "text": text}] if text else []), *media]
        takes_marker = markers and bool(text.strip())
        if takes_marker and (block.cache is not None or profile.moving):  # parts with or without the marker
            marked = _marked({"type": "text", "text": text}, at, profile)
            content = [marked, *content[1:]] if isinstance(content, list) else [marked]
        if block.cache is not None:
            if takes_marker and dialect.cache_breakpoints:
                hints.append(Hint(at, block.cache.ttl))
            elif not takes_marker:
                losses.append(BlockLoss(at, block.type, "rewritten", _EMPTY_RESULT if markers else _NO_MARKERS))
        out.append(dumps_trimmed({"role": "tool", "tool_call_id": block.tool_use_id, "content": content}))
    return ChatElement(out[0] if len(out) == 1 else b",".join(out), tuple(losses), tuple(hints))


def _unwritable_in_result(at: int, part: ContentBlock) -> BlockLoss:
    kind = part.kind if isinstance(part, OpaqueBlock) else part.type
    return BlockLoss(at, part.type, "dropped", f"tool results hold text only on this wire, no {kind}")


def _assistant(  # noqa: C901, PLR0912  one pass over the blocks
    message: Message, profile: MessageProfile, losses: list[BlockLoss]
) -> dict[str, Any] | None:
    """Return an assistant message with its text, its calls, and its reasoning if the service wants it; or None."""
    dialect = profile.dialect
    metadata = message.metadata
    own = metadata.provider == profile.provider and metadata.model is not None
    replay = replay_state(message) if own else EMPTY
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    call_losses: list[BlockLoss] = []
    others: list[ContentBlock] = []
    for at, block in enumerate(message.content):
        if type(block) is TextBlock:
            texts.append(block.text)
            if block.citations:
                reason = "citations have no place in a request on this wire"
                losses.append(BlockLoss(at, block.type, "rewritten", reason))
            if block.cache is not None:
                reason = "assistant text takes no cache marker on this wire"
                losses.append(BlockLoss(at, block.type, "rewritten", reason))
        elif type(block) is ToolUseBlock:
            calls.append(_call(block, at, replay, call_losses, own=own))
            if block.cache is not None:
                losses.append(BlockLoss(at, block.type, "rewritten", "a call takes no cache marker on this wire"))
        else:
            others.append(block)
            if not _is_written_elsewhere(block, replay, dialect):
                losses.append(BlockLoss(at, block.type, "dropped", "an assistant turn cannot carry it on this wire"))
    text = None if not texts else texts[0] if len(texts) == 1 else "\n".join(texts)
    body: dict[str, Any] = {"role": "assistant", "content": text}
    if texts and dialect.refusal_parts and replay.get("refusal"):
        parts = [{"type": "text", "text": text} for text in texts[:-1]]
        body["content"] = [*parts, {"type": "refusal", "refusal": texts[-1]}]  # a refusal is the last text
    elif dialect.content_chunks:
        body["content"] = to_wire_chunks(message, text or "", closed=replay.get("thinking_closed"))
    if others or (calls and dialect.reasoning_missing is not None):
        body.update(_reasoning(message, profile, replay, losses))
    if others and (audio := replay.get("audio")) and any(isinstance(block, AudioBlock) for block in others):
        body["audio"] = {"id": audio}
    if calls:
        body["tool_calls"] = calls
        losses += call_losses
    if body["content"] is None:
        if len(body) == 2:
            return None
        body["content"] = dialect.empty_content if calls else ""
    return body


def _is_written_elsewhere(block: ContentBlock, replay: Mapping[str, Any], dialect: Dialect) -> bool:
    if isinstance(block, AudioBlock):
        return bool(replay.get("audio"))
    if isinstance(block, OpaqueBlock) and dialect.content_chunks:
        return is_own_chunk(block)
    if isinstance(block, OpaqueBlock):
        return dialect.reasoning_details and block.data in (replay.get("reasoning_details") or ())
    return isinstance(block, (ThinkingBlock, RedactedThinkingBlock))


def _reasoning(
    message: Message, profile: MessageProfile, replay: Mapping[str, Any], losses: list[BlockLoss]
) -> dict[str, Any]:
    """Return the fields for an assistant message's reasoning: its details unchanged, or its text."""
    dialect = profile.dialect
    blocks = message.content
    thoughts = [(at, block) for at, block in enumerate(blocks) if isinstance(block, ThinkingBlock)]
    details = replay.get("reasoning_details") if dialect.reasoning_details else None
    if details and (thoughts or any(isinstance(block, RedactedThinkingBlock | OpaqueBlock) for block in blocks)):
        return {"reasoning_details": details}
    reason = "encoded reasoning has no place on this wire"
    losses += [
        BlockLoss(at, block.type, "dropped", reason)
        for at, block in enumerate(blocks)
        if isinstance(block, RedactedThinkingBlock)
    ]
    if dialect.reasoning_echo is None:
        return {}
    if thoughts:
        losses += [BlockLoss(at, block.type, "rewritten", _UNSIGNED) for at, block in thoughts if block.signature]
        return {dialect.reasoning_echo: "".join([block.text for _, block in thoughts])}
    if dialect.reasoning_missing is not None and profile.thinking and message.tool_calls:
        return {dialect.reasoning_echo: dialect.reasoning_missing}
    return {}


def _call(
    block: ToolUseBlock, at: int, replay: Mapping[str, Any], losses: list[BlockLoss], *, own: bool
) -> dict[str, Any]:
    custom = replay.get("custom_calls")
    if custom and block.id in custom and isinstance(block.input.get("input"), str):
        return {"id": block.id, "type": "custom", "custom": {"name": block.name, "input": block.input["input"]}}
    raw = block.raw_input
    if raw is None:
        arguments = None
    elif not raw.strip():
        arguments = "{}"
    elif own or (block.parse_error is None and raw.lstrip().startswith("{")):
        arguments = raw  # the very string that came
    else:
        arguments = None
    if arguments is None and block.parse_error is not None:
        losses.append(BlockLoss(at, block.type, "rewritten", "its arguments are no JSON; sent inside a JSON object"))
        arguments = dumps({"invalid_arguments": raw or ""}).decode()
    elif arguments is None:
        arguments = dumps(block.input).decode()
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def is_own_chunk(block: OpaqueBlock) -> bool:
    """Return True for a chunk of an unknown kind, such as a reference; other opaque state is not content."""
    return isinstance(block.data, dict) and block.data.get("type") == block.kind


def to_wire_chunks(message: Message, text: str, *, closed: Any = None) -> list[dict[str, Any]] | str | None:
    """Write the content: a string if there is only text, else chunks; None if there is no content.

    Args:
        message: the assistant message.
        text: all its text.
        closed: the member `closed` that the thinking had, or None.
    """
    blocks: tuple[ContentBlock, ...] = message.content
    chunks = [_thinking(block, closed) for block in blocks if isinstance(block, ThinkingBlock)]
    others = [block.data for block in blocks if isinstance(block, OpaqueBlock) and is_own_chunk(block)]
    if not chunks and not others:
        return text or None
    return [*chunks, *([{"type": "text", "text": text}] if text else []), *others]


def _thinking(block: ThinkingBlock, closed: Any) -> dict[str, Any]:
    """Write a thinking chunk unchanged (mistral/WIRE.md, Reasoning)."""
    thought = [{"type": "text", "text": block.text}] if block.text else []
    chunk: dict[str, Any] = {"type": "thinking", "thinking": thought}
    if block.signature is not None:
        chunk["signature"] = block.signature
    return chunk if closed is None else {**chunk, "closed": closed}


def to_wire_part(block: ContentBlock, at: int, dialect: Dialect, losses: list[BlockLoss]) -> dict[str, Any] | None:
    """Write one block as a part, or report why it cannot be one."""
    part: dict[str, Any] | None = None
    if isinstance(block, TextBlock):
        part = {"type": "text", "text": block.text}
    elif isinstance(block, ImageBlock):
        part = _image(block, at, dialect, losses)
    elif isinstance(block, AudioBlock):
        part = _audio(block, dialect)
    elif isinstance(block, DocumentBlock):
        part = _document(block, at, dialect, losses)
    elif isinstance(block, VideoBlock):
        url = _url(block, block.media_type)
        part = None if url is None else {"type": "video_url", "video_url": {"url": url}}
    elif isinstance(block, OpaqueBlock) and isinstance(block.data, dict):
        part = block.data
    if part is None:
        losses.append(BlockLoss(at, block.type, "dropped", "this wire has no form for it"))
    return part


def _url(block: ImageBlock | VideoBlock | DocumentBlock, media_type: str) -> str | None:
    source = block.source
    if source.kind == "url":
        return source.data
    return f"data:{media_type};base64,{source.data}" if source.kind == "base64" else None


def fit_detail(block: ImageBlock, at: int, accepted: Sequence[str], losses: list[BlockLoss]) -> str | None:
    """Return the image's detail; None, the service's default, if the service does not know the word."""
    if block.detail is None or block.detail in accepted:
        return block.detail
    losses.append(
        BlockLoss(
            at, block.type, "rewritten", f"this wire has no detail {block.detail!r}; the service's default applies"
        )
    )
    return None


def _image(block: ImageBlock, at: int, dialect: Dialect, losses: list[BlockLoss]) -> dict[str, Any] | None:
    bare = block.source.kind == "base64" and not dialect.image_data_urls
    url = block.source.data if bare else _url(block, block.media_type or "image/png")
    if url is None:
        return None
    detail = fit_detail(block, at, dialect.image_details, losses)
    return {"type": "image_url", "image_url": {"url": url} if detail is None else {"url": url, "detail": detail}}


def _audio(block: AudioBlock, dialect: Dialect) -> dict[str, Any] | None:
    if dialect.audio_style == "string" and block.source.kind in ("base64", "url"):
        return {"type": "input_audio", "input_audio": block.source.data}
    if block.source.kind != "base64":
        return None
    form = _AUDIO_FORMATS.get(block.media_type) or block.media_type.rpartition("/")[2] or "wav"
    return {"type": "input_audio", "input_audio": {"data": block.source.data, "format": form}}


def _document(block: DocumentBlock, at: int, dialect: Dialect, losses: list[BlockLoss]) -> dict[str, Any] | None:
    kind = block.source.kind
    if not dialect.file_parts and not (block.media_type.startswith("text/") and kind == "base64"):
        return None
    named = dialect.document_style == "document_url"
    if kind == "file_id":
        return {
            "type": "file",
            **({"file_id": block.source.data} if named else {"file": {"file_id": block.source.data}}),
        }
    if block.media_type.startswith("text/") and kind == "base64":
        text = _decoded(block.source.data)
        if text is not None:
            losses.append(BlockLoss(at, block.type, "rewritten", "sent as text: this wire has no text documents"))
            return {"type": "text", "text": f"{block.title}\n\n{text}" if block.title else text}
    if kind == "url" and not dialect.file_urls:
        return None
    url = _url(block, block.media_type)
    if named:
        name = {"document_name": block.title} if block.title else {}
        return None if url is None else {"type": "document_url", "document_url": url, **name}
    # the service requires a name with file_data; the block's title is the only one there is
    return None if url is None else {"type": "file", "file": {"filename": block.title or "document", "file_data": url}}


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
