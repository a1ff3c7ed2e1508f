"""Images made smaller on request, with Pillow.

Never runs unless asked for and never enlarges; the same image gives the same bytes, so that the prefix stays stable.
The client's limits come in.
"""

from __future__ import annotations

import base64
import io
from typing import Any

from interlingua.blocks import ImageBlock, ImageSource
from interlingua.errors import CapabilityError
from interlingua.messages import image_of

_STEPS = 12
_QUALITY = 85  # of JPEG and WEBP; Pillow's default for JPEG is 75
_MARGIN = 0.9  # how much more than computed a step shrinks: compressed size is not proportional to area


def downscaled(image: ImageBlock, *, side: int | None, max_bytes: int | None) -> ImageBlock:
    """Return the image at most `side` pixels long and `max_bytes` heavy, in its own format.

    Args:
        image: one that holds its bytes.
        side: longest side in pixels, None for any.
        max_bytes: largest size before base64, None for any.

    Raises:
        CallerError: Pillow is not installed.
        CapabilityError: it is no image Pillow reads, or cannot be made small enough.
    """
    read = image_of(image)
    from PIL import ImageOps  # noqa: PLC0415  an extra of its own, and `image_of` says so where it is missing

    form = read.format or "PNG"
    picture = ImageOps.exif_transpose(read)  # what says which way is up does not survive
    scale = min(1.0, side / max(picture.size)) if side else 1.0
    for _ in range(_STEPS):
        data = _written(picture, form, scale)
        if max_bytes is None or len(data) <= max_bytes:
            source = ImageSource(kind="base64", data=base64.b64encode(data).decode("ascii"))
            return ImageBlock(source=source, media_type=image.media_type, detail=image.detail, cache=image.cache)
        scale *= (max_bytes / len(data)) ** 0.5 * _MARGIN
    raise CapabilityError(f"the image cannot be made smaller than {max_bytes:,} bytes")


def _written(picture: Any, form: str, scale: float) -> bytes:
    small = picture
    if scale < 1.0:
        width, height = picture.size
        small = picture.resize((max(1, int(width * scale)), max(1, int(height * scale))))
    buffer = io.BytesIO()
    small.save(buffer, format=form, **({"quality": _QUALITY} if form in ("JPEG", "WEBP") else {}))
    return buffer.getvalue()
