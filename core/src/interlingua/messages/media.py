"""Media blocks from what applications hold: bytes, base64 text, URLs, paths, PIL images (seed 001).

Never fetches a URL; reads a file only when it is given one as such.
The message factories may come in.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

from interlingua.blocks import AudioBlock, ImageBlock, ImageSource
from interlingua.errors import CallerError

_IMAGE_MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_AUDIO_MAGIC = {
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"\xff\xf3": "audio/mpeg",
    b"\xff\xf2": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}


def _sniff(data: bytes, table: dict[bytes, str], riff: dict[bytes, str]) -> str | None:
    for magic, media_type in table.items():
        if data.startswith(magic):
            return media_type
    return riff.get(data[8:12]) if data.startswith(b"RIFF") else None


def image_media_type(data: bytes) -> str | None:
    """Tell an image's media type from its first bytes: JPEG, PNG, GIF, WEBP, else None (seed 001)."""
    return _sniff(data, _IMAGE_MAGIC, {b"WEBP": "image/webp"})


def audio_media_type(data: bytes) -> str:
    """Tell audio's media type from its first bytes: MP3, OGG, FLAC, WAV; `audio/mpeg` if unrecognised (seed 001)."""
    return _sniff(data, _AUDIO_MAGIC, {b"WAVE": "audio/wav"}) or "audio/mpeg"


def _embedded(data: bytes) -> ImageSource:
    return ImageSource(kind="base64", data=base64.b64encode(data).decode("ascii"))


def _head(text: str) -> bytes:
    head = text[:64]
    try:
        return base64.b64decode(head[: len(head) // 4 * 4], validate=True)
    except (binascii.Error, ValueError) as error:
        raise CallerError("media text must be base64, a data: URL, an http(s) URL or a file: path") from error


def image_block(value: Any) -> ImageBlock:
    """Make an ImageBlock from an image in any of seed 001's forms.

    Raises:
        CallerError: the text is no base64, URL or path, or the bytes are no image known here.
        OSError: the file cannot be read.
    """
    if isinstance(value, ImageBlock):
        return value
    if isinstance(value, str):
        if value.startswith(("http://", "https://")):
            return ImageBlock(source=ImageSource(kind="url", data=value))
        if value.startswith("file:"):
            return image_block(Path(value[5:]))
        if value.startswith("data:"):
            header, _, data = value.partition(",")
            return ImageBlock(source=ImageSource(kind="base64", data=data), media_type=header[5:].split(";")[0])
        media_type = image_media_type(_head(value))
        return ImageBlock(source=ImageSource(kind="base64", data=value), media_type=_known(media_type))
    if isinstance(value, Path):
        value = value.read_bytes()
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value)
        return ImageBlock(source=_embedded(value), media_type=_known(image_media_type(value)))
    return image_block(_pil_bytes(value))


def _known(media_type: str | None) -> str:
    if media_type is None:
        raise CallerError("not a JPEG, PNG, GIF or WEBP image; make an ImageBlock with its media_type yourself")
    return media_type


def _pil_bytes(image: Any) -> bytes:
    if not hasattr(image, "save"):
        raise CallerError(f"cannot make an image of {type(image).__name__}")
    import io  # noqa: PLC0415  only for PIL users

    buffer = io.BytesIO()
    image.save(buffer, format=getattr(image, "format", None) or "PNG")
    return buffer.getvalue()


def audio_block(value: Any) -> AudioBlock:
    """Make an AudioBlock from bytes, base64 text, a `file:` path or a Path (seed 001).

    Raises:
        CallerError: the text is neither base64 nor a path.
        OSError: the file cannot be read.
    """
    if isinstance(value, AudioBlock):
        return value
    if isinstance(value, str):
        if value.startswith("file:"):
            return audio_block(Path(value[5:]))
        return AudioBlock(source=ImageSource(kind="base64", data=value), media_type=audio_media_type(_head(value)))
    if isinstance(value, Path):
        value = value.read_bytes()
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value)
        return AudioBlock(source=_embedded(value), media_type=audio_media_type(value))
    raise CallerError(f"cannot make audio of {type(value).__name__}")
