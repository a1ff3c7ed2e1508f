"""Media blocks from what applications hold: bytes, base64 text, URLs, paths, PIL images (seed 001), and back.

Never fetches a URL; reads a file only when it is given one as such, and never imports PIL: the caller's image or
`image_of` brings it. The message factories, the command line and applications come in.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from interlingua.blocks import AudioBlock, DocumentBlock, ImageBlock, ImageSource, MediaBlock, VideoBlock
from interlingua.errors import CallerError
from interlingua.messages.sniff import audio_media_type, document_media_type, image_media_type, video_media_type

B = TypeVar("B", ImageBlock, AudioBlock, VideoBlock, DocumentBlock)
_HEAD = 12_288  # base64 characters that hold all a media type is told from


def image_block(value: Any) -> ImageBlock:
    """Make an ImageBlock from an image in any of seed 001's forms.

    Args:
        value: a PIL image, bytes, base64 text, a data: URL, an http(s) URL, a `file:` path or a Path.

    Raises:
        CallerError: the text is no base64, URL or path, or the bytes are no image known here.
        OSError: the file cannot be read.
    """
    if hasattr(value, "save") and not isinstance(value, (str, bytes, bytearray, Path)):
        value = _pil_bytes(value)
    return _block(value, ImageBlock, image_media_type)


def audio_block(value: Any) -> AudioBlock:
    """Make an AudioBlock from bytes, base64 text, a data: URL, a `file:` path or a Path (seed 001).

    Bytes that are not recognised are taken for `audio/mpeg`.

    Raises:
        CallerError: the text is neither base64 nor a path.
        OSError: the file cannot be read.
    """
    return _block(value, AudioBlock, audio_media_type)


def video_block(value: Any) -> VideoBlock:
    """Make a VideoBlock from bytes, base64 text, a data: URL, an http(s) URL, a `file:` path or a Path.

    Raises:
        CallerError: the text is no base64, URL or path, or the bytes are no video known here.
        OSError: the file cannot be read.
    """
    return _block(value, VideoBlock, video_media_type)


def document_block(value: Any, *, title: str | None = None) -> DocumentBlock:
    """Make a DocumentBlock from bytes, base64 text, a data: URL, an http(s) URL, a `file:` path or a Path.

    Args:
        value: the document; PDF, office files and UTF-8 text are recognised. A URL counts as a PDF.
        title: its name; a path gives its own where there is none.

    Raises:
        CallerError: the text is no base64, URL or path, or the bytes are no document known here.
        OSError: the file cannot be read.
    """
    if isinstance(value, str) and value.startswith("file:"):
        value = Path(value[5:])
    made = _block(value, DocumentBlock, document_media_type)
    named = title or (value.name if isinstance(value, Path) else None)
    if named is None or made.title is not None:
        return made
    return DocumentBlock(source=made.source, media_type=made.media_type, title=named)


def bytes_of(block: MediaBlock) -> bytes:
    """Return the bytes of a block that holds them (seed 001, `to_base64`, undone).

    Raises:
        CallerError: it holds a reference, or what it holds is not base64.
    """
    if block.source.kind != "base64":
        raise CallerError(f"the {block.type} is a {block.source.kind} reference, its bytes are not here")
    try:
        return base64.b64decode(block.source.data, validate=True)
    except binascii.Error as error:
        raise CallerError(f"the {block.type}'s data is not base64: {error}") from error


def image_of(block: ImageBlock) -> Any:
    """Return an image block as a PIL image, for images that a model made.

    Raises:
        CallerError: it holds a reference or something Pillow cannot read, or Pillow is not installed.
    """
    data = bytes_of(block)
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415  an extra of its own
    except ModuleNotFoundError as error:
        raise CallerError("Pillow is not installed: pip install 'interlingua[images]'") from error
    import io  # noqa: PLC0415

    try:
        return Image.open(io.BytesIO(data))
    except UnidentifiedImageError as error:
        raise CallerError("Pillow cannot read this image") from error


def _block(value: Any, cls: type[B], tell: Callable[[bytes], str | None]) -> B:
    if isinstance(value, cls):
        return value
    if isinstance(value, str):
        if value.startswith("file:"):
            return _block(Path(value[5:]), cls, tell)
        return _of_text(value, cls, tell)
    if isinstance(value, Path):
        value = value.read_bytes()
    if isinstance(value, (bytes, bytearray)):
        data = base64.b64encode(value).decode("ascii")
        return cls(source=ImageSource(kind="base64", data=data), media_type=_known(tell(bytes(value)), cls))
    raise CallerError(f"cannot make {_name(cls)} of {type(value).__name__}")


def _of_text(value: str, cls: type[B], tell: Callable[[bytes], str | None]) -> B:
    if value.startswith(("http://", "https://")) and cls is not AudioBlock:
        return cls(source=ImageSource(kind="url", data=value))
    if value.startswith("data:"):
        header, _, data = value.partition(",")
        if not header.endswith(";base64"):
            raise CallerError("a data: URL must be base64")
        media_type = header[5:].split(";")[0] or _known(tell(_head(data)), cls)
        return cls(source=ImageSource(kind="base64", data=data), media_type=media_type)
    return cls(source=ImageSource(kind="base64", data=value), media_type=_known(tell(_head(value)), cls))


def _head(text: str) -> bytes:
    head = text[:_HEAD]
    try:
        return base64.b64decode(head[: len(head) // 4 * 4], validate=True)
    except (binascii.Error, ValueError) as error:
        raise CallerError("media text must be base64, a data: URL, an http(s) URL or a file: path") from error


def _name(cls: Any) -> str:
    kind = cls.type
    return f"{'an' if kind[0] in 'ai' else 'a'} {kind}"


def _known(media_type: str | None, cls: Any) -> str:
    if media_type is None:
        kinds = " (JPEG, PNG, GIF or WEBP)" if cls is ImageBlock else ""
        raise CallerError(
            f"these bytes are not {_name(cls)} known here{kinds}; {cls.__name__}(media_type=…) says what they are"
        )
    return media_type


def _pil_bytes(image: Any) -> bytes:
    import io  # noqa: PLC0415  only for PIL users

    buffer = io.BytesIO()
    image.save(buffer, format=getattr(image, "format", None) or "PNG")
    return buffer.getvalue()
