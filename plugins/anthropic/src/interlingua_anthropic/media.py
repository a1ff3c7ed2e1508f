"""Images and documents -> their elements on this wire (sheet anthropic §2).

Never fetches anything and never holds audio or video: this wire has no block for them.
`elements` comes in.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from interlingua.types.blocks import DocumentBlock, ImageBlock


def to_wire_media(block: ImageBlock | DocumentBlock) -> dict[str, Any]:
    """Write one image or document."""
    return _image(block) if isinstance(block, ImageBlock) else _document(block)


def _source(block: ImageBlock | DocumentBlock) -> dict[str, Any]:
    source = block.source
    if source.kind == "base64":
        return {"type": "base64", "media_type": block.media_type, "data": source.data}
    if source.kind == "file_id":
        return {"type": "file", "file_id": source.data}
    return {"type": "url", "url": source.data}


def _image(block: ImageBlock) -> dict[str, Any]:
    return {"type": "image", "source": _source(block)}


def _document(block: DocumentBlock) -> dict[str, Any]:
    source = _source(block)
    if block.media_type == "text/plain" and block.source.kind == "base64":
        source = {"type": "text", "media_type": "text/plain", "data": _plain(block.source.data)}
    element: dict[str, Any] = {"type": "document", "source": source}
    if block.title is not None:
        element["title"] = block.title
    if block.context is not None:
        element["context"] = block.context
    if block.cite:
        element["citations"] = {"enabled": True}
    return element


def _plain(data: str) -> str:
    try:
        return base64.b64decode(data).decode("utf-8", "replace")
    except binascii.Error:
        return data
