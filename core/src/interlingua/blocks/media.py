"""Blocks that carry images, audio, video and documents, and where their bytes are.

Never fetches a URL or opens a file (the client resolves references before a request).
Messages and every room above may come in, through `interlingua.blocks`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from interlingua.cache import CacheHint


@attrs.frozen(kw_only=True)
class ImageSource:
    """Where the bytes of a media block are (seed 003 §4.2).

    Attributes:
        kind: base64 (data in the message), url, file_ref (a path relative to the workspace), or
            file_id (uploaded to the provider named in the message's origin; additive).
        data: the base64 text, URL, path or id.
    """

    kind: Literal["base64", "url", "file_ref", "file_id"]
    data: str


MediaSource = ImageSource


@attrs.frozen(kw_only=True)
class ImageBlock:
    """An image (seed 003 §4.2).

    Attributes:
        source: where its bytes are.
        media_type: IANA media type such as `image/png`; empty when a URL does not tell.
        detail: how closely to look, where a wire knows it (the wire sheets): low, high, auto, original.
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["image"]] = "image"
    source: ImageSource
    media_type: str = ""
    detail: str | None = None
    cache: CacheHint | None = None


@attrs.frozen(kw_only=True)
class AudioBlock:
    """A piece of audio, in or out.

    Attributes:
        source: where its bytes are.
        media_type: IANA media type such as `audio/wav`.
        transcript: what is said in it, where the provider tells.
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["audio"]] = "audio"
    source: ImageSource
    media_type: str = "audio/mpeg"
    transcript: str | None = None
    cache: CacheHint | None = None


@attrs.frozen(kw_only=True)
class VideoBlock:
    """A video."""

    type: ClassVar[Literal["video"]] = "video"
    source: ImageSource
    media_type: str = "video/mp4"
    cache: CacheHint | None = None


@attrs.frozen(kw_only=True)
class DocumentBlock:
    """A document such as a PDF or a plain text file.

    Attributes:
        source: where its bytes are; plain text is base64 of UTF-8, like any other bytes.
        media_type: IANA media type such as `application/pdf`.
        title: file name or title, where known.
        context: what the reader should know about it.
        cite: ask the model to cite from it.
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["document"]] = "document"
    source: ImageSource
    media_type: str = "application/pdf"
    title: str | None = None
    context: str | None = None
    cite: bool = False
    cache: CacheHint | None = None
