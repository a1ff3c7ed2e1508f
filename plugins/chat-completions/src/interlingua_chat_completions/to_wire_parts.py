"""User and system content blocks to content parts (sheet openai_chat §2).

Never fetches and never re-encodes: bytes go as the block holds them.
The message writers come in.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from interlingua.plugins.wire import BlockLoss
from interlingua.types.blocks import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    VideoBlock,
)
from interlingua_chat_completions.dialect import Dialect

_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}


def to_wire_part(block: ContentBlock, at: int, dialect: Dialect, rows: list[BlockLoss]) -> dict[str, Any] | None:
    """Write one block as a part, or report why it cannot be one."""
    part: dict[str, Any] | None = None
    if isinstance(block, TextBlock):
        part = {"type": "text", "text": block.text}
    elif isinstance(block, ImageBlock):
        part = _image(block, dialect)
    elif isinstance(block, AudioBlock):
        part = _audio(block, dialect)
    elif isinstance(block, DocumentBlock):
        part = _document(block, at, dialect, rows)
    elif isinstance(block, VideoBlock):
        url = _url(block, block.media_type)
        part = None if url is None else {"type": "video_url", "video_url": {"url": url}}
    elif isinstance(block, OpaqueBlock) and isinstance(block.data, dict):
        part = block.data
    if part is None:
        rows.append(BlockLoss(at, block.type, "dropped", "this wire has no form for it"))
    return part


def _url(block: ImageBlock | VideoBlock | DocumentBlock, media_type: str) -> str | None:
    source = block.source
    if source.kind == "url":
        return source.data
    return f"data:{media_type};base64,{source.data}" if source.kind == "base64" else None


def _image(block: ImageBlock, dialect: Dialect) -> dict[str, Any] | None:
    bare = block.source.kind == "base64" and not dialect.image_data_urls
    url = block.source.data if bare else _url(block, block.media_type or "image/png")
    if url is None:
        return None
    image = {"url": url} if block.detail is None else {"url": url, "detail": block.detail}
    return {"type": "image_url", "image_url": image}


def _audio(block: AudioBlock, dialect: Dialect) -> dict[str, Any] | None:
    if dialect.audio_style == "string" and block.source.kind in ("base64", "url"):
        return {"type": "input_audio", "input_audio": block.source.data}
    if block.source.kind != "base64":
        return None
    form = _AUDIO_FORMATS.get(block.media_type) or block.media_type.rpartition("/")[2] or "wav"
    return {"type": "input_audio", "input_audio": {"data": block.source.data, "format": form}}


def _document(block: DocumentBlock, at: int, dialect: Dialect, rows: list[BlockLoss]) -> dict[str, Any] | None:
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
            rows.append(BlockLoss(at, block.type, "rewritten", "a text document goes as text on this wire"))
            return {"type": "text", "text": f"{block.title}\n\n{text}" if block.title else text}
    if kind == "url" and not dialect.file_urls:
        return None
    url = _url(block, block.media_type)
    if named:
        name = {"document_name": block.title} if block.title else {}
        return None if url is None else {"type": "document_url", "document_url": url, **name}
    # the service wants a name with file_data; the block's title is the only one there is
    return None if url is None else {"type": "file", "file": {"filename": block.title or "document", "file_data": url}}


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
