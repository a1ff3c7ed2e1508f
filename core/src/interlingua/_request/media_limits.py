"""Media checked against the limits of a target, and images shrunk on request. Loaded for messages with media only."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from interlingua._plugins.provider import ProjectionTarget
from interlingua._request.media import MessageMedia, map_media, media_in, media_refusal
from interlingua.errors import CapabilityError
from interlingua.types.blocks import DocumentBlock, ImageBlock, MediaSource
from interlingua.types.factories import to_pil_image
from interlingua.types.messages import Loss, Message, Role
from interlingua.types.options import ModelCapabilities

_HEAD = 256 * 1024  # base64 characters; a JPEG may carry long metadata before its size
_PAGES = re.compile(rb"/Type\s*/Pages\b[^>]*?/Count\s+(\d+)|/Count\s+(\d+)[^>]*?/Type\s*/Pages\b")
_STEPS = 12
_QUALITY = 85  # of JPEG and WEBP; Pillow's default for JPEG is 75
_MARGIN = 0.9  # how much more than computed a step shrinks: compressed size is not proportional to area


class _Place(NamedTuple):
    """A media block and its place: message, block, and part if the block is a tool result."""

    message: int
    block: int
    part: int | None
    media: Any

    @property
    def path(self) -> str:
        inner = "" if self.part is None else f".content[{self.part}]"
        return f"messages[{self.message}].content[{self.block}]{inner}"


def enforce_media_limits(
    messages: Sequence[Message], media: Mapping[int, MessageMedia], target: ProjectionTarget, *, downscale: bool
) -> tuple[Sequence[Message], tuple[Loss, ...]]:
    """Check the media of a conversation; return the same conversation unless images were shrunk (`downscale`).

    Media that the target does not take at all do not count: projection drops them. A limit that is exceeded is a
    CapabilityError, whose `path` is the place of the block.
    """
    can = target.capabilities
    found = find_places(messages, media, target)
    images = [place for place in found if type(place.media) is ImageBlock]
    _check_total(images, target, "max_images", lambda _: 1, "this is image {total} of {limit}")
    pages = "the PDF documents up to this one have {total} pages of {limit}"
    _check_total(found, target, "max_document_pages", pages_of, pages)
    side = can.many_images_side if 0 < can.many_images < len(images) else can.max_image_side
    large = [place for place in images if _passed_limit(place.media, side, can)]
    if large:
        if not downscale:
            raise _too_much(target, large[0], *_passed_limit(large[0].media, side, can))
        messages = list(messages)
        for at in dict.fromkeys(place.message for place in large):
            blocks = {id(place.media) for place in large if place.message == at}
            messages[at] = _with_smaller_images(messages[at], media[at], blocks, side, can.max_image_bytes)
        found = find_places(messages, media, target)
    _check_total(found, target, "max_media_bytes", size_of, "media up to this one have {total:,} bytes of {limit}")
    bounds = [f"{side:,} pixels a side"] if side else []
    bounds += [f"{can.max_image_bytes:,} bytes"] if can.max_image_bytes else []
    reason = f"the image was shrunk, as requested: this target takes {' and '.join(bounds)}"
    row = partial(Loss, block_type="image", verdict="rewritten", reason=reason)
    return messages, tuple([row(path=place.path, message_id=messages[place.message].id) for place in large])


def find_places(messages: Sequence[Message], media: Iterable[int], target: ProjectionTarget) -> list[_Place]:
    """Return the media that count. Media that a model made do not: each plugin decides whether they are sent back."""
    return [
        _Place(at, block, part, found)
        for at in media
        if messages[at].role in (Role.USER, Role.TOOL)
        for block, part, found in media_in(messages[at])
        if media_refusal(found, target) is None
    ]


def size_of(media: Any) -> int:
    """Return the bytes a block holds, 0 for a reference; computed from the length of its base64."""
    data: str = media.source.data
    return 0 if media.source.kind != "base64" else len(data) * 3 // 4 - data[-2:].count("=")


def _check_total(
    found: Sequence[_Place], target: ProjectionTarget, name: str, count: Callable[[Any], int], text: str
) -> None:
    """Raise a CapabilityError if the sum over all media exceeds the limit of this name."""
    most, total = getattr(target.capabilities, name), 0
    for place in found if most else ():
        total += count(place.media)
        if total > most:
            raise _too_much(target, place, name, text.format(total=total, limit="{limit}"))


def _passed_limit(image: ImageBlock, side: int, can: ModelCapabilities) -> tuple[str, str] | tuple[()]:
    """Return the limit that an embedded image exceeds, as its name and a sentence; empty without one."""
    size = size_of(image)
    if 0 < can.max_image_bytes < size:
        return "max_image_bytes", f"the image has {size:,} bytes of {{limit}}"
    longest = _longest_side(image.source.data[:_HEAD]) if side and image.source.kind == "base64" else 0
    name = "max_image_side" if side == can.max_image_side else "many_images_side"
    return (name, f"the image is {longest:,} pixels long on a side of {{limit}}") if 0 < side < longest else ()


def _with_smaller_images(message: Message, media: MessageMedia, large: set[int], side: int, most: int) -> Message:
    """Return the message with the images of these ids shrunk; the same one each turn: the prefix stays stable."""

    def shrink(block: Any) -> Any:
        return downscale_image(block, side=side or None, max_bytes=most or None) if id(block) in large else block

    key = (id(message), side, most)
    if key not in media.smaller:  # holds the message, so its id is not used again
        media.smaller[key] = (message, map_media(message, shrink))
    return media.smaller[key][1]


def _too_much(target: ProjectionTarget, place: _Place, name: str, what: str) -> CapabilityError:
    limit: int = getattr(target.capabilities, name)
    hint = "; send fewer, or smaller ones" if name == "max_images" else ""
    hint = hint or "; downscale_images=True makes it smaller" if type(place.media) is ImageBlock else hint
    text = what.format(limit=f"{limit:,} that {target.provider}:{target.model} takes ({name})")
    return CapabilityError(f"{text}{hint}", path=place.path, provider=target.provider, model=target.model)


@lru_cache(maxsize=256)
def _longest_side(head: str) -> int:
    """Return the longer side in pixels of an image in base64; 0 if its header does not hold it."""
    import imagesize  # type: ignore[import-untyped]  # noqa: PLC0415  only for media

    width, height = imagesize.get(io.BytesIO(_decoded(head)))
    return max(0, int(width), int(height))


@lru_cache(maxsize=64)
def pages_of(document: DocumentBlock) -> int:
    """Return the pages of an embedded PDF by its page tree; 0 for a reference and for one that hides its tree."""
    if document.media_type != "application/pdf" or document.source.kind != "base64":
        return 0
    counts = [int(left or right) for left, right in _PAGES.findall(_decoded(document.source.data))]
    return max(counts, default=0)  # the root of the tree counts all


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b""


def downscale_image(image: ImageBlock, *, side: int | None, max_bytes: int | None) -> ImageBlock:
    """Return the image at most `side` pixels long and `max_bytes` heavy (before base64), in its own format.

    Raises a CallerError if Pillow is not installed, and a CapabilityError if the image cannot be made small enough.
    """
    read = to_pil_image(image)
    from PIL import ImageOps  # noqa: PLC0415  optional dependency; `to_pil_image` explains how to install it

    form = read.format or "PNG"
    picture = ImageOps.exif_transpose(read)  # the tag with the orientation is lost when saving
    scale = min(1.0, side / max(picture.size)) if side else 1.0
    quality = {"quality": _QUALITY} if form in ("JPEG", "WEBP") else {}
    width, height = picture.size
    for _ in range(_STEPS):
        size = (max(1, int(width * scale)), max(1, int(height * scale)))
        buffer = io.BytesIO()
        (picture.resize(size) if scale < 1.0 else picture).save(buffer, format=form, **quality)
        data = buffer.getvalue()
        if max_bytes is None or len(data) <= max_bytes:
            source = MediaSource(kind="base64", data=base64.b64encode(data).decode("ascii"))
            return ImageBlock(source=source, media_type=image.media_type, detail=image.detail, cache=image.cache)
        scale *= (max_bytes / len(data)) ** 0.5 * _MARGIN
    raise CapabilityError(f"the image cannot be made smaller than {max_bytes:,} bytes")
