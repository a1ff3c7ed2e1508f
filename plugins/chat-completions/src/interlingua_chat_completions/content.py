"""The `content` of a message or delta in every form services send: text, a part list, an object, nothing.

Never drops a part: what is not understood comes out as an opaque block, exact.
The reader of answers comes in.
"""

from __future__ import annotations

from typing import Any

import attrs

from interlingua.json import dumps
from interlingua.types.blocks import ImageBlock, ImageSource


@attrs.define
class Pieces:
    """What one `content` value holds, by kind, each in order."""

    text: list[str] = attrs.field(factory=list)
    thinking: list[str] = attrs.field(factory=list)
    refusal: list[str] = attrs.field(factory=list)
    images: list[ImageBlock] = attrs.field(factory=list)
    other: list[dict[str, Any]] = attrs.field(factory=list)
    signature: str | None = None
    closed: bool | None = None


def from_wire_content(content: Any) -> Pieces:
    """Read a content value that is neither a string nor null."""
    pieces = Pieces()
    if isinstance(content, list):
        for part in content:
            _part(part, pieces)
    elif content is not None:
        pieces.text.append(_text(content))  # an object where a service parsed its own structured answer
    return pieces


def from_wire_image(part: Any) -> ImageBlock | None:
    """Read an `image_url` part, or return None when it is none."""
    url = part.get("image_url") if isinstance(part, dict) else None
    if isinstance(url, dict):
        url = url.get("url")
    if not isinstance(url, str) or not url:
        return None
    if url.startswith("data:"):
        header, _, data = url.partition(",")
        source = ImageSource(kind="base64", data=data)
        return ImageBlock(source=source, media_type=header[5:].split(";")[0])
    return ImageBlock(source=ImageSource(kind="url", data=url))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value).decode()


def _part(part: Any, pieces: Pieces) -> None:
    if not isinstance(part, dict):
        pieces.text.append(_text(part))
        return
    kind = part.get("type")
    if kind in ("text", "output_text") and isinstance(part.get("text"), str):
        pieces.text.append(part["text"])
    elif kind == "thinking":
        _thinking(part, pieces)
    elif kind == "refusal" and isinstance(part.get("refusal"), str):
        pieces.refusal.append(part["refusal"])
    elif kind == "image_url" and (image := from_wire_image(part)) is not None:
        pieces.images.append(image)
    else:
        pieces.other.append(part)


def _thinking(part: dict[str, Any], pieces: Pieces) -> None:
    """Read a thinking chunk: a list of text chunks, or a string (sheet mistral §4)."""
    thought = part.get("thinking")
    for chunk in thought if isinstance(thought, list) else [thought]:
        if isinstance(chunk, dict) and isinstance(chunk.get("text"), str):
            pieces.thinking.append(chunk["text"])
        elif isinstance(chunk, str):
            pieces.thinking.append(chunk)
        elif chunk is not None:
            pieces.other.append({"type": "thinking", "thinking": [chunk]})
    signature = part.get("signature")
    if isinstance(signature, str) and signature:
        pieces.signature = signature
    if isinstance(part.get("closed"), bool):
        pieces.closed = part["closed"]
