"""One block -> one content part of an input item (sheet openai_responses §2, content parts).

Never builds an item and never reports a loss by itself: a part that cannot be said is None.
`elements` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.types import ContentBlock, DocumentBlock, ImageBlock, OpaqueBlock, TextBlock

_ENDINGS = {
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
_INPUT_PARTS = ("input_text", "input_image", "input_file")


def to_wire_part(block: ContentBlock) -> dict[str, Any] | None:
    """Return the input part of a block, or None where this wire has none for it."""
    if isinstance(block, TextBlock):
        return {"type": "input_text", "text": block.text}
    if isinstance(block, ImageBlock):
        return _image(block)
    if isinstance(block, DocumentBlock):
        return _file(block)
    if isinstance(block, OpaqueBlock) and block.kind in _INPUT_PARTS and isinstance(block.data, Mapping):
        return dict(block.data)
    return None


def _image(block: ImageBlock) -> dict[str, Any]:
    source = block.source
    if source.kind == "file_id":
        where = {"file_id": source.data}
    elif source.kind == "base64":
        where = {"image_url": f"data:{block.media_type or 'image/png'};base64,{source.data}"}
    else:
        where = {"image_url": source.data}
    return {"type": "input_image", "detail": block.detail or "auto", **where}


def _file(block: DocumentBlock) -> dict[str, Any]:
    source = block.source
    if source.kind == "file_id":
        return {"type": "input_file", "file_id": source.data}
    if source.kind == "url":
        return {"type": "input_file", "file_url": source.data}
    name = block.title or "document" + _ENDINGS.get(block.media_type, "")
    data = f"data:{block.media_type};base64,{source.data}"
    return {"type": "input_file", "filename": name, "file_data": data}
