"""Which media a target takes, references to media resolved, and media held against the target's limits."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from operator import is_
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from interlingua._plugins.losses import Loss, message_loss
from interlingua._plugins.provider import ProjectionTarget
from interlingua._values import replace
from interlingua.errors import CallerError, CapabilityError
from interlingua.types.blocks import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    ToolResultBlock,
    VideoBlock,
)
from interlingua.types.factories import media_type_of, to_pil_image
from interlingua.types.messages import Message, Role
from interlingua.types.options import ModelCapabilities

SIZE_LIMIT = 32 * 1024 * 1024
"""Bytes one file or image may have."""

MEDIA = {
    ImageBlock: ("supports_images", "accepted_image_media_types"),
    AudioBlock: ("supports_audio", "accepted_audio_media_types"),
    VideoBlock: ("supports_video", "accepted_video_media_types"),
    DocumentBlock: ("supports_documents", "accepted_document_media_types"),
}
"""The kinds of media, each with the capabilities that say whether a target takes it, and of which media types."""

_HEAD = 256 * 1024  # base64 characters; a JPEG may carry long metadata before its size
_PAGES = re.compile(rb"/Type\s*/Pages\b[^>]*?/Count\s+(\d+)|/Count\s+(\d+)[^>]*?/Type\s*/Pages\b")
_STEPS = 12
_QUALITY = 85  # of JPEG and WEBP; Pillow's default for JPEG is 75
_MARGIN = 0.9  # how much more than computed a step shrinks: compressed size is not proportional to area

_LIMITS = (
    "max_images",
    "max_image_bytes",
    "max_image_side",
    "many_images_side",
    "max_document_pages",
    "max_media_bytes",
)


def media_refusal(block: Any, target: ProjectionTarget, *, in_result: bool = False) -> str | None:
    """Say why the target cannot take this media block, or None."""
    flag, accepted_name = MEDIA[type(block)]
    if in_result and type(block) is DocumentBlock and target.capabilities.supports_tool_result_documents:
        flag = "supports_tool_result_documents"
    if not getattr(target.capabilities, flag):
        return f"this target takes no {block.type}"
    accepted: tuple[str, ...] = getattr(target.capabilities, accepted_name)
    if block.media_type and accepted and block.media_type not in accepted:
        return f"this target takes no {block.media_type}"
    if block.source.kind == "file_ref":
        return "a file_ref must be resolved to data before sending"
    return None


class Fetched(NamedTuple):
    """What a URL gave: its bytes and the media type it claims, or ""."""

    data: bytes
    media_type: str


@attrs.define(eq=False)
class MessageMedia:
    """What was resolved and made smaller of one message's media, so that every turn sends the same bytes.

    Attributes:
        message: whose media these are.
        references: (kind, reference) of each file and image URL in it.
        resolved: the message with its references embedded, by whether image URLs are.
        smaller: (a message, it with its images made smaller), by the message's id and the limits.
    """

    message: Message
    references: tuple[tuple[str, str], ...]
    resolved: dict[bool, Message] = attrs.field(factory=dict)
    smaller: dict[tuple[int, int, int], tuple[Message, Message]] = attrs.field(factory=dict)

    @property
    def fetched_images(self) -> int:
        """How many images were fetched and embedded."""
        return sum(kind == "url" for kind, _ in self.references) if True in self.resolved else 0

    @property
    def resolved_bytes(self) -> int:
        """Bytes of the media with image URLs embedded, in base64."""
        return sum(len(media.source.data) for _, _, media in _media_in(self.resolved[True]))


def _media_in(message: Message) -> Iterator[tuple[int, int | None, Any]]:
    """Yield a message's media, each with its place: its block, and its part where the block is a result."""
    for at, block in enumerate(message.content):
        if type(block) in MEDIA:
            yield at, None, block
        elif type(block) is ToolResultBlock:
            yield from ((at, part, inner) for part, inner in enumerate(block.content) if type(inner) in MEDIA)


def _map_media(message: Message, change: Callable[[Any], Any]) -> Message:
    """Return the message with its media changed; the very same one where none is."""

    def mapped(block: Any) -> Any:
        if type(block) is ToolResultBlock:
            parts = [*map(mapped, block.content)]
            return block if all(map(is_, parts, block.content)) else replace(block, content=parts)
        return change(block) if type(block) in MEDIA else block

    content = tuple(map(mapped, message.content))
    return message if all(map(is_, content, message.content)) else replace(message, content=content)


def find_media(message: Message) -> MessageMedia | None:
    """Return the media of a message, not resolved yet; None for a message without."""
    found = [media for _, _, media in _media_in(message)]
    sources = [
        (media.source.kind, media.source.data)
        for media in found
        if media.source.kind == "file_ref" or (media.source.kind == "url" and type(media) is ImageBlock)
    ]
    return MessageMedia(message, tuple(sources)) if found else None


def urls_to_fetch(media: Iterable[MessageMedia]) -> list[str]:
    """Return the image URLs whose content is not known yet, each once, in order."""
    urls = [
        reference for one in media if True not in one.resolved for kind, reference in one.references if kind == "url"
    ]
    return list(dict.fromkeys(urls))


def resolve_references(
    messages: Sequence[Message],
    media: Mapping[int, MessageMedia],
    inline_urls: bool,
    workspace: str | Path | None,
    fetched: Mapping[str, Fetched] | None,
) -> tuple[Sequence[Message], tuple[Loss, ...]]:
    """Return the conversation with references embedded, a message as the same object each turn.

    Where nothing is to be fetched (None), an image's address stands for it, with a row; `media` are by index.

    Raises:
        CallerError: a file is outside the workspace, missing or too large, or its media type cannot be told.
    """
    resolved = list(messages)
    reason = "is fetched when this is sent; in this request its address stands in the place of its data"
    waiting: list[Loss] = []
    for index, one in media.items():
        if one.references:
            if fetched is None and inline_urls:
                rows = [f"{url} {reason}" for url in urls_to_fetch((one,))]
                waiting += [message_loss(index, row, one.message.id, block_type="image") for row in rows]
            resolved[index] = _resolve(one, inline_urls, workspace, fetched)
    return resolved, tuple(waiting)


def _resolve(
    media: MessageMedia, inline_urls: bool, workspace: str | Path | None, fetched: Mapping[str, Fetched] | None
) -> Message:
    if inline_urls in media.resolved:
        return media.resolved[inline_urls]

    def embed(block: Any) -> Any:
        source = block.source
        if source.kind == "file_ref":
            content = Fetched(_read_file(source.data, workspace), "")
        elif source.kind == "url" and inline_urls and type(block) is ImageBlock:
            content = Fetched(source.data.encode(), "image/png") if fetched is None else fetched[source.data]
        else:
            return block
        embedded = MediaSource(kind="base64", data=base64.b64encode(content.data).decode("ascii"))
        return attrs.evolve(block, source=embedded, media_type=_media_type(block, content))

    made = _map_media(media.message, embed)
    if fetched is None and inline_urls and any(kind == "url" for kind, _ in media.references):
        return made  # not what will be sent
    media.resolved[inline_urls] = made
    return made


def _media_type(block: Any, content: Fetched) -> str:
    if block.media_type:
        return str(block.media_type)
    found = media_type_of(content.data, "image") or content.media_type
    if not found:
        raise CallerError(f"cannot tell the media type of {block.source.data!r}; give the block its media_type")
    return found


def _read_file(reference: str, workspace: str | Path | None) -> bytes:
    if workspace is None:
        raise CallerError(f"the conversation refers to the file {reference!r}; give the client its workspace=")
    root = Path(workspace).resolve()
    path = (root / reference).resolve()  # links too must stay inside
    if not path.is_relative_to(root):
        raise CallerError(f"the file {reference!r} is outside the workspace")
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise CallerError(f"the file {reference!r} is larger than {SIZE_LIMIT} bytes")
        return path.read_bytes()
    except OSError as error:
        raise CallerError(f"the file {reference!r} cannot be read: {error.strerror}") from error


class _Place(NamedTuple):
    """A media block and where it is: message, block, and the part of a result."""

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
    """Return the conversation as it may be sent; the very same one unless an image was made smaller (`downscale`).

    What the target refuses by kind is projection's to drop and counts for nothing here.

    Raises:
        CapabilityError: a limit is passed; `path` names the block, the message the limit.
        CallerError: an image is to be made smaller and Pillow is not installed.
    """
    can = target.capabilities
    if not any(getattr(can, name) for name in _LIMITS):
        return messages, ()
    found = _find_places(messages, media, target)
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
        found = _find_places(messages, media, target)
    _check_total(found, target, "max_media_bytes", size_of, "media up to this one have {total:,} bytes of {limit}")
    bounds = [f"{side:,} pixels a side"] if side else []
    bounds += [f"{can.max_image_bytes:,} bytes"] if can.max_image_bytes else []
    reason = f"the image was made smaller, as asked: this target takes {' and '.join(bounds)}"
    row = partial(Loss, block_type="image", verdict="rewritten", reason=reason)
    return messages, tuple([row(path=place.path, message_id=messages[place.message].id) for place in large])


def _find_places(messages: Sequence[Message], media: Iterable[int], target: ProjectionTarget) -> list[_Place]:
    """Return the media that count: whether a model's own go back is each wire's affair."""
    return [
        _Place(at, block, part, found)
        for at in media
        if messages[at].role in (Role.USER, Role.TOOL)
        for block, part, found in _media_in(messages[at])
        if media_refusal(found, target) is None
    ]


def size_of(media: Any) -> int:
    """Return the bytes a block holds, 0 for a reference; told from the length of its base64."""
    data: str = media.source.data
    return 0 if media.source.kind != "base64" else len(data) * 3 // 4 - data[-2:].count("=")


def _check_total(
    found: Sequence[_Place], target: ProjectionTarget, name: str, count: Callable[[Any], int], text: str
) -> None:
    """Raise a CapabilityError where the sum over all media passes the limit of this name."""
    most, total = getattr(target.capabilities, name), 0
    for place in found if most else ():
        total += count(place.media)
        if total > most:
            raise _too_much(target, place, name, text.format(total=total, limit="{limit}"))


def _passed_limit(image: ImageBlock, side: int, can: ModelCapabilities) -> tuple[str, str] | tuple[()]:
    """Return the limit that an embedded image passes: its name, and a text; nothing where it passes none."""
    size = size_of(image)
    if 0 < can.max_image_bytes < size:
        return "max_image_bytes", f"the image has {size:,} bytes of {{limit}}"
    longest = _longest_side(image.source.data[:_HEAD]) if side and image.source.kind == "base64" else 0
    name = "max_image_side" if side == can.max_image_side else "many_images_side"
    return (name, f"the image is {longest:,} pixels long on a side of {{limit}}") if 0 < side < longest else ()


def _with_smaller_images(message: Message, media: MessageMedia, large: set[int], side: int, most: int) -> Message:
    """Return the message with the images of these ids made smaller; the same one each turn: the prefix stays stable."""

    def shrink(block: Any) -> Any:
        return downscale_image(block, side=side or None, max_bytes=most or None) if id(block) in large else block

    key = (id(message), side, most)
    if key not in media.smaller:  # holds the message, so its id is not used again
        media.smaller[key] = (message, _map_media(message, shrink))
    return media.smaller[key][1]


def _too_much(target: ProjectionTarget, place: _Place, name: str, what: str) -> CapabilityError:
    limit: int = getattr(target.capabilities, name)
    hint = "; send fewer, or smaller ones" if name == "max_images" else ""
    hint = hint or "; downscale_images=True makes it smaller" if type(place.media) is ImageBlock else hint
    text = what.format(limit=f"{limit:,} that {target.provider}:{target.model} takes ({name})")
    return CapabilityError(f"{text}{hint}", path=place.path, provider=target.provider, model=target.model)


@lru_cache(maxsize=256)
def _longest_side(head: str) -> int:
    """Return the longer side in pixels of an image in base64; 0 where its header does not tell."""
    import imagesize  # type: ignore[import-untyped]  # noqa: PLC0415  only for media

    width, height = imagesize.get(io.BytesIO(_decoded(head)))
    return max(0, int(width), int(height))


def pages_of(document: DocumentBlock) -> int:
    """Return the pages of an embedded PDF by its page tree; 0 for a reference and for one that hides its tree."""
    if document.media_type != "application/pdf" or document.source.kind != "base64":
        return 0
    return _pages(document.source.data)


@lru_cache(maxsize=64)
def _pages(data: str) -> int:
    counts = [int(left or right) for left, right in _PAGES.findall(_decoded(data))]
    return max(counts, default=0)  # the root of the tree counts all


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b""


def downscale_image(image: ImageBlock, *, side: int | None, max_bytes: int | None) -> ImageBlock:
    """Return the image at most `side` pixels long and `max_bytes` heavy (before base64), in its own format.

    Raises:
        CallerError: Pillow is not installed.
        CapabilityError: it is no image Pillow reads, or cannot be made small enough.
    """
    read = to_pil_image(image)
    from PIL import ImageOps  # noqa: PLC0415  an extra of its own, and `image_of` says so where it is missing

    form = read.format or "PNG"
    picture = ImageOps.exif_transpose(read)  # what says which way is up does not survive
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
