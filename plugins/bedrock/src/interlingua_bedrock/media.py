"""Images, documents, audio and video of a request (WIRE.md, Media)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import splitext
from typing import Any

from interlingua.plugins import BlockLoss
from interlingua.types import AudioBlock, DocumentBlock, ImageBlock, VideoBlock
from interlingua_bedrock.models import AUDIOS, DOCUMENTS, IMAGES, VIDEOS

Media = ImageBlock | DocumentBlock | AudioBlock | VideoBlock
MEDIA = (ImageBlock, DocumentBlock, AudioBlock, VideoBlock)
_FORMATS: Mapping[str, Mapping[str, str]] = {"image": IMAGES, "document": DOCUMENTS, "audio": AUDIOS, "video": VIDEOS}
_ENDINGS = {"jpg": "jpeg", "3gp": "three_gp"}
_NAME_LIMIT = 200
_refused = re.compile(r"[^A-Za-z0-9\-()\[\]]+").sub


def to_wire_media(block: Media, index: int, rows: list[BlockLoss], taken: set[str]) -> dict[str, Any] | None:
    """Return the element of a media block; None if its source has no form here.

    Args:
        block: the block.
        index: index of the block in its message.
        rows: receives ledger rows of losses.
        taken: names of the documents so far, in lower case; a request must not repeat one. Receives the new name.
    """
    source: dict[str, Any]
    if block.source.kind == "base64":
        source = {"bytes": block.source.data}
    elif block.source.data.startswith("s3://"):
        source = {"s3Location": {"uri": block.source.data}}
    else:
        reason = f"this wire takes the bytes of a {block.type} or its place in Amazon S3 (s3://…), no other address"
        rows.append(BlockLoss(index, block.type, "dropped", reason))
        return None
    form = _format_of(block)
    if form is None:
        reason = f"this wire has no {block.type} of the type {block.media_type or 'unknown'}"
        rows.append(BlockLoss(index, block.type, "dropped", reason))
        return None
    element: dict[str, Any] = {"format": form}
    if isinstance(block, DocumentBlock):
        element["name"] = _document_name(block, taken)
        stem, ending = splitext(block.title or "")
        said = stem if ending.lower() == f".{form}" else block.title  # the format says what the ending does
        if block.title and element["name"] != said:
            reason = "this wire names documents in letters, digits, spaces, - ( ) [ ], each once; the name was changed"
            rows.append(BlockLoss(index, block.type, "rewritten", reason))
        element["source"] = source
        if block.context is not None:
            element["context"] = block.context
        if block.cite:
            element["citations"] = {"enabled": True}
    else:
        element["source"] = source
        if (name := _unsupported_field(block)) is not None:
            reason = f"this wire has no {name} of a {block.type}; the data is kept"
            rows.append(BlockLoss(index, block.type, "rewritten", reason))
    return {block.type: element}


def _format_of(block: Media) -> str | None:
    known = _FORMATS[block.type]
    if block.source.kind == "base64" or block.media_type in known:
        return known.get(block.media_type)
    ending = splitext(block.source.data)[1].lower().lstrip(".")
    form = _ENDINGS.get(ending, ending)
    return form if form in known.values() else None


def _document_name(block: DocumentBlock, taken: set[str]) -> str:
    """Return a name that the service accepts: letters, digits, hyphens, brackets and single spaces; unique."""
    title = splitext(block.title)[0] if block.title else ""
    name = _refused(" ", title).strip()[: _NAME_LIMIT - 8].strip() or "document"
    made, number = name, 1
    while made.lower() in taken:
        number += 1
        made = f"{name} ({number})"
    taken.add(made.lower())
    return made


def _unsupported_field(block: Media) -> str | None:
    if isinstance(block, ImageBlock) and block.detail not in (None, "auto"):
        return "detail"
    if isinstance(block, AudioBlock) and block.transcript is not None:
        return "transcript"
    return None
