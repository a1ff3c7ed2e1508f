"""Images, audio, video and documents, both directions (sheet gemini §2).

Never fetches anything: what is not in the message stays a reference. The reader and the part writers come in.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

from interlingua.types.blocks import AudioBlock, DocumentBlock, ImageBlock, MediaSource, VideoBlock

Media: TypeAlias = ImageBlock | AudioBlock | VideoBlock | DocumentBlock
MEDIA = (ImageBlock, AudioBlock, VideoBlock, DocumentBlock)
_KINDS: dict[str, type[Any]] = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}
_DATA = ("inlineData", "fileData")


def from_wire_media(part: dict[str, Any]) -> Media | None:
    """Read a part with data or a file; None where it is neither in full."""
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


def extras_of(part: dict[str, Any]) -> dict[str, Any]:
    """Return what a media part carries beside its data (its signature, for one), to be sent back with it."""
    return {name: value for name, value in part.items() if name not in _DATA}


def key_of(block: Media) -> str:
    """Name a media block by what it holds, so that what belongs to it is found again wherever it stands."""
    return hashlib.blake2b(block.source.data.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def to_wire_media(block: Media) -> dict[str, Any]:
    """Write one media part; a URL or an uploaded file goes by its address (recorded: audio, video, PDF by https)."""
    if block.source.kind == "base64":
        return {"inlineData": {"mimeType": block.media_type or "image/png", "data": block.source.data}}
    file = {"mimeType": block.media_type} if block.media_type else {}
    return {"fileData": file | {"fileUri": block.source.data}}


def unsaid(block: Media) -> str | None:
    """Name what this wire has no words for in a block, or None."""
    if isinstance(block, DocumentBlock):
        names = [name for name in ("title", "context") if getattr(block, name) is not None]
        names += ["cite"] if block.cite else []
    elif isinstance(block, ImageBlock):
        names = [] if block.detail in (None, "auto") else ["detail"]
    elif isinstance(block, AudioBlock):
        names = [] if block.transcript is None else ["transcript"]
    else:
        names = []
    return " and ".join(names) or None
