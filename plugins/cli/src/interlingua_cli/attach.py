"""Files given on the command line as content blocks, by what their bytes are.

Never sends a path and never guesses: bytes that are neither known media nor text are refused.
The commands that talk to a model come in.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from interlingua.errors import CallerError
from interlingua.types.blocks import ContentBlock, TextBlock
from interlingua.types.factories import audio_block, document_block, image_block, media_type_of, video_block

_FACTORIES: dict[str, Callable[[bytes], ContentBlock]] = {
    "image": image_block,
    "audio": audio_block,
    "video": video_block,
}


def attached(path: Path) -> ContentBlock:
    """Return a file as an image, audio, a video, a document, or text under its name.

    Raises:
        CallerError: it is none of these, or empty.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    if not data:
        raise CallerError(f"{path} is empty: there is nothing to attach")
    kind = (media_type_of(data) or "").partition("/")[0]
    if kind in _FACTORIES:
        return _FACTORIES[kind](data)
    if kind == "application":
        return document_block(data, title=path.name)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CallerError(f"{path} is neither an image, audio, a video, a document nor UTF-8 text") from error
    return TextBlock(text=f"{path.name}:\n{text}")
