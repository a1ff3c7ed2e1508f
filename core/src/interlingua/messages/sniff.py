"""What bytes are: media types by their first bytes, from the library `filetype`, in the IANA names that wires use.

Never opens a file and never trusts a name's ending over the bytes.
The media factories, the client's references and the command line come in.
"""

from __future__ import annotations

_SAME = {"audio/x-wav": "audio/wav", "audio/x-flac": "audio/flac", "video/x-m4v": "video/mp4"}


def media_type_of(data: bytes) -> str | None:
    """Tell a media type from the first bytes, or None; plain text has no magic bytes.

    `filetype` is imported here: half of what it costs to import `interlingua` belongs to those who send media.
    """
    import filetype  # type: ignore[import-untyped]  # noqa: PLC0415

    found: str | None = filetype.guess_mime(data) if data else None
    return None if found is None else _SAME.get(found, found)


def image_media_type(data: bytes) -> str | None:
    """Tell an image's media type: JPEG, PNG, GIF, WEBP (seed 001) and further kinds; None if it is no image."""
    return _of_kind(data, "image/")


def audio_media_type(data: bytes) -> str:
    """Tell audio's media type: MP3, OGG, FLAC, WAV (seed 001) and further kinds; `audio/mpeg` if unrecognised."""
    return _of_kind(data, "audio/") or "audio/mpeg"


def video_media_type(data: bytes) -> str | None:
    """Tell a video's media type, or None if it is none."""
    return _of_kind(data, "video/")


def document_media_type(data: bytes) -> str | None:
    """Tell a document's media type: PDF and office files by their bytes, else text if the bytes are UTF-8 text."""
    found = media_type_of(data)
    if found is not None:
        return None if found.startswith(("image/", "audio/", "video/")) else found
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return "text/plain" if text and "\0" not in text else None


def _of_kind(data: bytes, kind: str) -> str | None:
    found = media_type_of(data)
    return found if found is not None and found.startswith(kind) else None
