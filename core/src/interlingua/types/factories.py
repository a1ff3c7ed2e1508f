"""Short ways in and out: make messages and media blocks."""

from __future__ import annotations

import base64
import binascii
import io
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from interlingua._ids import new_ulid, ulid_before
from interlingua._values import replace
from interlingua.errors import CallerError
from interlingua.types.blocks import (
    AudioBlock,
    ChangeBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaBlock,
    MediaSource,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)
from interlingua.types.messages import DEFAULT_SESSION, Message, MessageMetadata, Role, changes_in

if TYPE_CHECKING:
    from pathlib import Path

    from interlingua.types.options import Effort
    from interlingua.types.tools import ToolDefinition

_SAME = {"audio/x-wav": "audio/wav", "audio/x-flac": "audio/flac", "video/x-m4v": "video/mp4"}


def media_type_of(data: bytes, kind: str | None = None) -> str | None:
    """Return the media type that the first bytes show, or None.

    Args:
        data: the bytes.
        kind: `image`, `audio`, `video` or `document`: the result is None for bytes of another kind. A document may be
            UTF-8 text, which has no magic bytes.
    """
    import filetype  # type: ignore[import-untyped]  # noqa: PLC0415  as costly as all of `import interlingua`

    found: str | None = filetype.guess_mime(data) if data else None
    if found is None:
        with suppress(UnicodeDecodeError):
            return "text/plain" if kind == "document" and data and "\0" not in data.decode() else None
        return None
    is_document = not found.startswith(("image/", "audio/", "video/"))
    fits = kind is None or (is_document if kind == "document" else found.startswith(kind))
    return _SAME.get(found, found) if fits else None


def shown_media_type(block: MediaBlock) -> str | None:
    """Return the media type that a block's embedded bytes show, if it fits the block; else None."""
    try:
        found = media_type_of(_head(block.source.data))
    except CallerError:
        return None
    return found if found and found.startswith("application/" if block.type == "document" else block.type) else None


B = TypeVar("B", ImageBlock, AudioBlock, VideoBlock, DocumentBlock)
_HEAD = 12_288  # base64 characters that hold every byte a media type is recognised by


def image_block(value: Any) -> ImageBlock:
    """Make an ImageBlock.

    Args:
        value: a PIL image, bytes, base64 text, a data: URL, an http(s) URL, a `file:` path or a Path.

    Raises:
        CallerError: the string is not base64, a URL or a path, or the bytes are not a known image.
        OSError: the file cannot be read.
    """
    if hasattr(value, "save") and not isinstance(value, (str, bytes, bytearray, os.PathLike)):
        buffer = io.BytesIO()
        value.save(buffer, format=getattr(value, "format", None) or "PNG")
        value = buffer.getvalue()
    return _block(value, ImageBlock)


def audio_block(value: Any) -> AudioBlock:
    """Make an AudioBlock; as `image_block`, without PIL images and http(s) URLs.

    Bytes that are not recognised count as `audio/mpeg`.
    """
    return _block(value, AudioBlock)


def video_block(value: Any) -> VideoBlock:
    """Make a VideoBlock; as `image_block`, without PIL images."""
    return _block(value, VideoBlock)


def document_block(value: Any, *, title: str | None = None) -> DocumentBlock:
    """Make a DocumentBlock; as `image_block`, without PIL images.

    Args:
        value: the document; PDF, office files and UTF-8 text are recognised. A URL counts as a PDF.
        title: its title; without one, the name of the file.
    """
    made = _block(value, DocumentBlock)
    path = _path_of(value)
    return replace(made, title=made.title or title or (None if path is None else path.name))


def media_bytes(block: MediaBlock) -> bytes:
    """Return the bytes of a block that holds them as base64.

    Raises:
        CallerError: the block holds a reference, or its data is not base64.
    """
    if block.source.kind != "base64":
        raise CallerError(f"the {block.type} is a {block.source.kind} reference: the message does not hold its bytes")
    try:
        return base64.b64decode(block.source.data, validate=True)
    except binascii.Error as error:
        raise CallerError(f"the {block.type}'s data is not base64: {error}") from error


def to_pil_image(block: ImageBlock) -> Any:
    """Return an image block as a PIL image, for images that a model made.

    Raises:
        CallerError: it holds a reference or something Pillow cannot read, or Pillow is not installed.
    """
    data = media_bytes(block)
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415  optional dependency
    except ModuleNotFoundError as error:
        raise CallerError("Pillow is not installed: pip install 'interlingua[images]'") from error
    try:
        return Image.open(io.BytesIO(data))
    except UnidentifiedImageError as error:
        raise CallerError("Pillow cannot read this image") from error


def _block(value: Any, cls: type[B]) -> B:
    if isinstance(value, cls):
        return value
    path = _path_of(value)
    if path is not None:
        value = path.read_bytes()
    media_type, kind = None, f"{'an' if cls.type[0] in 'ai' else 'a'} {cls.type}"
    if isinstance(value, (bytes, bytearray)):
        head, value = bytes(value), base64.b64encode(value).decode("ascii")
    elif not isinstance(value, str):
        raise CallerError(f"cannot make {kind} of {type(value).__name__}")
    elif value.startswith(("http://", "https://")) and cls is not AudioBlock:
        return cls(source=MediaSource(kind="url", data=value))
    else:
        if value.startswith("data:"):
            header, _, value = value.partition(",")
            if not header.endswith(";base64"):
                raise CallerError("a data: URL must be base64")
            media_type = header[5:].split(";")[0]
        head = b"" if media_type else _head(value)
    media_type = media_type or media_type_of(head, cls.type) or ("audio/mpeg" if cls is AudioBlock else None)
    if media_type is None:
        kinds = " (JPEG, PNG, GIF or WEBP)" if cls is ImageBlock else ""
        raise CallerError(f"these bytes are not {kind} of a known kind{kinds}: pass {cls.__name__}(media_type=…)")
    return cls(source=MediaSource(kind="base64", data=value), media_type=media_type)


def _path_of(value: Any) -> Path | None:
    is_text = isinstance(value, str) and value.startswith("file:")
    if not is_text and not isinstance(value, os.PathLike):
        return None
    from pathlib import Path  # noqa: PLC0415  not free to import, and only for media from files

    return Path(value[5:]) if is_text else Path(value)


def _head(text: str) -> bytes:
    head = text[:_HEAD]
    try:
        return base64.b64decode(head[: len(head) // 4 * 4], validate=True)
    except (binascii.Error, ValueError) as error:
        raise CallerError("media text is base64, a data: or http(s) URL or file:path; Path(...) is a file") from error


def user(
    text: str | Iterable[ContentBlock] = "",
    *,
    images: Iterable[Any] = (),
    audio: Iterable[Any] = (),
    video: Iterable[Any] = (),
    documents: Iterable[Any] = (),
    session_id: str = DEFAULT_SESSION,
) -> Message:
    """Make a user message: the text first, then images, audio, video and documents.

    Args:
        text: the text, or ready blocks.
        images: each a PIL image, bytes, base64 text, data URL, http(s) URL or path.
        audio: each bytes, base64 text or `file:` path.
        video: each bytes, base64 text, URL or path.
        documents: each bytes, base64 text, URL or path; PDF, office files and text.
        session_id: the session it belongs to.

    Raises:
        CallerError: a value is not media of its kind, or `text` is neither a string nor blocks.
        OSError: a file cannot be read.
    """
    media: list[ContentBlock] = [*map(image_block, images), *map(audio_block, audio)]
    media += (*map(video_block, video), *map(document_block, documents))
    message = Message(role=Role.USER, content=() if text == "" else text, session_id=session_id)
    return replace(message, content=(*message.content, *media)) if media else message


def system(text: str, *, session_id: str = DEFAULT_SESSION) -> Message:
    """Make a system message."""
    return Message(role=Role.SYSTEM, content=text, session_id=session_id)


def change(
    *,
    add: Iterable[ToolDefinition] = (),
    remove: Iterable[str] = (),
    effort: Effort | None = None,
    response_schema: Mapping[str, Any] | None = None,
    session_id: str = DEFAULT_SESSION,
) -> Message:
    """Make the system message that changes tools, effort and answers' schema for the rest of the conversation.

    The request's `tools` stay those that the conversation began with, so that services keep their caches.

    Args:
        add: tools that the model may call from here on; one of a known name replaces it.
        remove: names of tools that it may not call any more.
        effort: how hard to think; None: as before.
        response_schema: JSON Schema that answers must follow; `{}`: any text; None: as before.
        session_id: the session it belongs to.
    """
    made = ChangeBlock(tools_added=add, tools_removed=remove, effort=effort, response_schema=response_schema)
    return Message(role=Role.SYSTEM, content=(made,), session_id=session_id)


def tools_at(tools: Iterable[ToolDefinition], messages: Iterable[Message]) -> tuple[ToolDefinition, ...]:
    """Return the tools that the model may call after these messages, which began with `tools`."""
    now = {tool.name: tool for tool in tools}
    for change in changes_in(messages):
        kept = {name: tool for name, tool in now.items() if name not in change.tools_removed}
        now = kept | {tool.name: tool for tool in change.tools_added}
    return tuple(now.values())


def assistant(content: str | Iterable[ContentBlock], *, session_id: str = DEFAULT_SESSION) -> Message:
    """Make an assistant message by hand, for few-shot examples and imported histories."""
    return Message(role=Role.ASSISTANT, content=content, session_id=session_id)


def tool_result(
    call: ToolUseBlock | str,
    result: Any,
    *,
    is_error: bool = False,
    tool_name: str | None = None,
    session_id: str = DEFAULT_SESSION,
    **fields: Any,
) -> Message:
    """Make the TOOL message that answers one call.

    Args:
        call: the call, or its canonical id.
        result: text, blocks, or any JSON value (written as JSON text).
        is_error: the tool failed, and `result` describes how.
        tool_name: default: the name in the call, if `call` is a block.
        session_id: the session it belongs to.
        **fields: `details`, `metadata`, `terminate` of the block; never sent to a model.
    """
    if isinstance(call, ToolUseBlock):
        tool_use_id, tool_name = call.id, tool_name or call.name
    else:
        tool_use_id = call
    block = ToolResultBlock(tool_use_id=tool_use_id, content=result, is_error=is_error, tool_name=tool_name, **fields)
    metadata = MessageMetadata(parent_tool_use_id=tool_use_id)
    return Message(role=Role.TOOL, content=(block,), session_id=session_id, metadata=metadata)


def tool_results(
    results: Iterable[tuple[ToolUseBlock | str, Any]], *, session_id: str = DEFAULT_SESSION
) -> list[Message]:
    """Make one TOOL message per (call, result) pair of a turn."""
    return [tool_result(call, result, session_id=session_id) for call, result in results]


def split_tool_results(message: Message) -> list[Message]:
    """Split a message into one TOOL message for each tool result and one for the rest (format.md, Rule 5).

    Some APIs send results inside a user message. They come before the rest of it, which keeps the message's id and
    metadata. An assistant message, and one that needs no splitting, is returned unchanged.
    """
    results = [at for at, block in enumerate(message.content) if type(block) is ToolResultBlock]
    is_tool = message.role is Role.TOOL
    if not results or message.role is Role.ASSISTANT or (is_tool and len(message.content) == 1):
        return [message]
    rest = [at for at in range(len(message.content)) if at not in results]
    parts = []
    for steps, places in enumerate(reversed([*([at] for at in results), *([rest] if rest else ())])):
        content: Any = [message.content[at] for at in places]
        role, call = (Role.USER if is_tool else message.role), None
        if places is not rest:
            role, call = Role.TOOL, content[0].tool_use_id
        critical = [places.index(at) for at in message.metadata.critical if at in places]
        about = attrs.evolve(message.metadata, critical=critical, parent_tool_use_id=call)
        try:
            message_id = ulid_before(message.id, steps) if steps else message.id
        except CallerError:  # an imported history may use other ids
            message_id = new_ulid()
        parts.append(attrs.evolve(message, id=message_id, role=role, content=content, metadata=about))
    return parts[::-1]
