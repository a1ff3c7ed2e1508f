"""Files given on the command line as content blocks, by what their bytes are.

Never sends a path and never guesses: bytes that are neither known media nor text are refused.
The commands that talk to a model come in.
"""

from __future__ import annotations

import base64
from pathlib import Path

from interlingua.blocks import ContentBlock, DocumentBlock, ImageSource, TextBlock
from interlingua.errors import CallerError
from interlingua.messages.media import audio_block, audio_media_type, image_block, image_media_type

_AUDIO_STARTS = (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"OggS", b"fLaC")


def attached(path: Path) -> ContentBlock:
    """Return a file as an image, audio, a PDF document, or text under its name.

    Raises:
        CallerError: it is none of these.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    if image_media_type(data):
        return image_block(data)
    if data.startswith(_AUDIO_STARTS) or audio_media_type(data) == "audio/wav":
        return audio_block(data)
    if data.startswith(b"%PDF-"):
        source = ImageSource(kind="base64", data=base64.b64encode(data).decode("ascii"))
        return DocumentBlock(source=source, media_type="application/pdf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CallerError(f"{path} is neither an image, audio, a PDF nor UTF-8 text") from error
    return TextBlock(text=f"{path.name}:\n{text}")
