"""References in media blocks made bytes: files under the workspace root, and image URLs a target cannot take.

Never fetches (the client does, and hands the bytes in), and reads no file outside the workspace.
The client's exchange comes in, the two clients that fetch, and dry runs.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from interlingua.blocks import AudioBlock, ContentBlock, DocumentBlock, ImageBlock, ImageSource, VideoBlock
from interlingua.blocks import ToolResultBlock as _Result
from interlingua.errors import CallerError
from interlingua.messages import Message

SIZE_LIMIT = 32 * 1024 * 1024
"""Bytes one file or image may have."""

_MEDIA = (ImageBlock, AudioBlock, VideoBlock, DocumentBlock)
_REFERENCES = "client.resolve:references"
_RESOLVED = "client.resolve:resolved"
PINS = "client.resolve:pins"
"""Memo key: reference -> SHA-256 of the content it was pinned to when it was first sent."""


class Fetched(NamedTuple):
    """What a URL gave: its bytes and the media type it claims, or ""."""

    data: bytes
    media_type: str


def referring(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that hold a reference; a look into the memo for those seen before."""
    unsure = [message for message in messages if message.memo.get(_REFERENCES) != ()]
    return [message for message in unsure if message.memo.get(_REFERENCES) or _references(message)]


def wanted_urls(messages: Sequence[Message]) -> list[str]:
    """Return the image URLs that are not pinned yet, each once, in order."""
    urls = [
        reference
        for message in messages
        for kind, reference in message.memo[_REFERENCES]
        if kind == "url" and (_RESOLVED, True) not in message.memo
    ]
    return list(dict.fromkeys(urls))


def resolved(
    messages: Sequence[Message],
    marked: Sequence[Message],
    *,
    inline_urls: bool,
    workspace: str | Path | None,
    fetched: Mapping[str, Fetched],
) -> list[Message]:
    """Return the conversation with references inlined; the same object for the same message each turn.

    Args:
        messages: the conversation.
        marked: those of them that hold a reference.
        inline_urls: the target takes images, but not by URL.
        workspace: root of `file_ref` paths.
        fetched: what the wanted URLs gave.

    Raises:
        CallerError: a file is outside the workspace, missing or too large, or its media type cannot be told.
    """
    done = {id(message): _resolved(message, inline_urls, workspace, fetched) for message in marked}
    return [done.get(id(message), message) for message in messages]


def _references(message: Message) -> tuple[tuple[str, str], ...]:
    found = tuple(
        (block.source.kind, block.source.data)
        for part in message.content
        for block in (part.content if type(part) is _Result else (part,))
        if isinstance(block, _MEDIA)
        and (block.source.kind == "file_ref" or (block.source.kind == "url" and type(block) is ImageBlock))
    )
    message.memo[_REFERENCES] = found
    return found


def _resolved(
    message: Message, inline_urls: bool, workspace: str | Path | None, fetched: Mapping[str, Fetched]
) -> Message:
    key = (_RESOLVED, inline_urls)
    known: Message | None = message.memo.get(key)
    if known is not None:
        return known
    pins: dict[str, str] = {}

    def inline(block: Any) -> Any:
        source = block.source
        if source.kind == "file_ref":
            content = Fetched(_read(source.data, workspace), "")
        elif source.kind == "url" and inline_urls and type(block) is ImageBlock:
            content = fetched[source.data]
        else:
            return block
        pins[source.data] = hashlib.sha256(content.data).hexdigest()
        embedded = ImageSource(kind="base64", data=base64.b64encode(content.data).decode("ascii"))
        return attrs.evolve(block, source=embedded, media_type=_media_type(block, content))

    content = tuple(_each(part, inline) for part in message.content)
    made = attrs.evolve(message, content=content) if pins else message
    message.memo[PINS] = {**message.memo.get(PINS, {}), **pins}
    message.memo[key] = made
    return made


def _each(part: ContentBlock, inline: Callable[[Any], Any]) -> ContentBlock:
    if type(part) is _Result and any(isinstance(block, _MEDIA) for block in part.content):
        content = [inline(block) if isinstance(block, _MEDIA) else block for block in part.content]
        return attrs.evolve(part, content=content)
    return inline(part) if isinstance(part, _MEDIA) else part


def _media_type(block: Any, content: Fetched) -> str:
    if block.media_type:
        return str(block.media_type)
    from interlingua.messages.sniff import image_media_type  # noqa: PLC0415  only for images without a type

    found = image_media_type(content.data) or content.media_type
    if not found:
        raise CallerError(f"cannot tell the media type of {block.source.data!r}; give the block its media_type")
    return found


def _read(reference: str, workspace: str | Path | None) -> bytes:
    if workspace is None:
        raise CallerError(f"the conversation refers to the file {reference!r}; give the client its workspace=")
    root = Path(workspace).resolve()
    path = (root / reference).resolve()  # links too must stay inside
    if not path.is_relative_to(root):
        raise CallerError(f"the file {reference!r} is outside the workspace")
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise CallerError(f"the file {reference!r} is larger than {SIZE_LIMIT} bytes")
        return path.read_bytes()
    except OSError as error:
        raise CallerError(f"the file {reference!r} cannot be read: {error.strerror}") from error
