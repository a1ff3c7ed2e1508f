"""Resolve references to media and hold media against the target's limits."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from interlingua.errors import CallerError, CapabilityError
from interlingua.frozen import replace
from interlingua.plugins.provider import Target
from interlingua.plugins.wire import Loss
from interlingua.request.project_blocks import media_refusal
from interlingua.types.blocks import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    ImageSource,
    ToolResultBlock,
    VideoBlock,
)
from interlingua.types.factories import image_media_type, to_pil_image
from interlingua.types.messages import Message, Role
from interlingua.types.options import AdapterCapabilities

SIZE_LIMIT = 32 * 1024 * 1024
"""Bytes one file or image may have."""

MEDIA = frozenset((ImageBlock, AudioBlock, VideoBlock, DocumentBlock))
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
        pins: reference -> SHA-256 of the content it was pinned to when it was first sent.
        smaller: images made smaller, and the message with them, by what they were made of.
    """

    message: Message
    references: tuple[tuple[str, str], ...]
    resolved: dict[bool, Message] = attrs.field(factory=dict)
    pins: dict[str, str] = attrs.field(factory=dict)
    smaller: dict[Any, Any] = attrs.field(factory=dict)


def find_media(message: Message) -> MessageMedia | None:
    """Return the media of a message, not resolved yet; None for a message without."""
    found: list[tuple[str, str]] | None = None
    for part in message.content:
        kind = type(part)
        if kind is not ToolResultBlock and kind not in MEDIA:
            continue
        for block in part.content if type(part) is ToolResultBlock else (part,):
            if type(block) not in MEDIA:
                continue
            found = [] if found is None else found
            source: ImageSource = block.source  # type: ignore[union-attr]
            if source.kind == "file_ref" or (source.kind == "url" and type(block) is ImageBlock):
                found.append((source.kind, source.data))
    return None if found is None else MessageMedia(message, tuple(found))


def urls_to_fetch(media: Iterable[MessageMedia]) -> list[str]:
    """Return the image URLs that are not pinned yet, each once, in order."""
    urls = [
        reference for one in media if True not in one.resolved for kind, reference in one.references if kind == "url"
    ]
    return list(dict.fromkeys(urls))


def resolve_references(
    messages: Sequence[Message],
    media: Mapping[int, MessageMedia],
    *,
    inline_urls: bool,
    workspace: str | Path | None,
    fetched: Mapping[str, Fetched] | None,
) -> Sequence[Message]:
    """Return the conversation with references embedded; the same object for the same message each turn.

    Args:
        messages: the conversation.
        media: those of its messages that hold media, by index.
        inline_urls: the target takes images, but not by URL.
        workspace: root of `file_ref` paths.
        fetched: what the URLs to fetch gave; None where nothing is to be fetched, so their addresses stand for them.

    Raises:
        CallerError: a file is outside the workspace, missing or too large, or its media type cannot be told.
    """
    resolved: list[Message] | None = None
    for index, one in media.items():
        if one.references:
            made = _resolve(one, inline_urls, workspace, fetched)
            if made is not messages[index]:
                resolved = list(messages) if resolved is None else resolved
                resolved[index] = made
    return messages if resolved is None else resolved


def unfetched_losses(messages: Sequence[Message], media: Mapping[int, MessageMedia]) -> tuple[Loss, ...]:
    """Return a row for each image that is yet to be fetched: its address stands for it."""
    return tuple(
        Loss(
            path=f"messages[{index}]",
            block_type="image",
            verdict="rewritten",
            reason=f"{url} is fetched when this is sent; in this request its address stands in the place of its data",
            message_id=messages[index].id,
        )
        for index, one in media.items()
        for url in urls_to_fetch((one,))
    )


def _resolve(
    media: MessageMedia, inline_urls: bool, workspace: str | Path | None, fetched: Mapping[str, Fetched] | None
) -> Message:
    known = media.resolved.get(inline_urls)
    if known is not None:
        return known
    pins: dict[str, str] = {}

    def embed(block: Any) -> Any:
        source = block.source
        if source.kind == "file_ref":
            content = Fetched(_read_file(source.data, workspace), "")
        elif source.kind == "url" and inline_urls and type(block) is ImageBlock:
            if fetched is None:
                return _with_address(block)
            content = fetched[source.data]
        else:
            return block
        pins[source.data] = hashlib.sha256(content.data).hexdigest()
        embedded = ImageSource(kind="base64", data=base64.b64encode(content.data).decode("ascii"))
        return attrs.evolve(block, source=embedded, media_type=_media_type(block, content))

    content = tuple([_map_media(part, embed) for part in media.message.content])
    if fetched is None and inline_urls and any(kind == "url" for kind, _ in media.references):
        return replace(media.message, content=content)  # not what will be sent
    made = replace(media.message, content=content) if pins else media.message
    media.pins.update(pins)
    media.resolved[inline_urls] = made
    return made


def _with_address(block: ImageBlock) -> ImageBlock:
    address = base64.b64encode(block.source.data.encode()).decode("ascii")
    media_type = block.media_type or "image/png"
    return attrs.evolve(block, source=ImageSource(kind="base64", data=address), media_type=media_type)


def _map_media(part: ContentBlock, change: Callable[[Any], Any]) -> ContentBlock:
    if type(part) is ToolResultBlock and any(type(block) in MEDIA for block in part.content):
        return replace(part, content=[change(block) if type(block) in MEDIA else block for block in part.content])
    return change(part) if type(part) in MEDIA else part


def _media_type(block: Any, content: Fetched) -> str:
    if block.media_type:
        return str(block.media_type)
    found = image_media_type(content.data) or content.media_type
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
    messages: Sequence[Message], media: Mapping[int, MessageMedia], target: Target, *, downscale: bool
) -> tuple[Sequence[Message], tuple[Loss, ...]]:
    """Return the conversation as it may be sent; the very same one unless an image was made smaller.

    Args:
        messages: the conversation, references resolved.
        media: those of its messages that hold media, by index.
        target: who is to take it; what it refuses by kind is projection's to drop and counts for nothing here.
        downscale: make images smaller that are too large.

    Raises:
        CapabilityError: a limit is passed; `path` names the block, the message the limit.
        CallerError: an image is to be made smaller and Pillow is not installed.
    """
    limits = target.capabilities
    if not any(getattr(limits, name) for name in _LIMITS):
        return messages, ()
    found = [place for at in media for place in _places_in(messages[at], at, target)]
    images = [place for place in found if type(place.media) is ImageBlock]
    if limits.max_images and len(images) > limits.max_images:
        raise _too_much(target, images[limits.max_images], f"this is image {len(images)} of {{limit}}", "max_images")
    _check_documents(found, target)
    side = limits.max_image_side
    if limits.many_images and len(images) > limits.many_images:
        side = limits.many_images_side
    small = {place: _shrink(place, media[place.message], target, side, downscale) for place in images}
    changes = {place: made for place, made in small.items() if made is not None}
    _check_sum([changes.get(place, place.media) for place in found], found, target)
    if not changes:
        return messages, ()
    return _replace_images(messages, media, changes), tuple(_loss(place, messages, side, limits) for place in changes)


def _places_in(message: Message, at: int, target: Target) -> Iterator[_Place]:
    if message.role is not Role.USER and message.role is not Role.TOOL:
        return  # whether a model's own media go back is each wire's affair
    for place, block in enumerate(message.content):
        parts = enumerate(block.content) if type(block) is ToolResultBlock else ((None, block),)
        for part, media in parts:
            if type(media) in MEDIA and media_refusal(media, target) is None:
                yield _Place(at, place, part, media)


def size_of(media: Any) -> int:
    """Return the bytes a block holds, 0 for a reference; told from the length of its base64."""
    data: str = media.source.data
    return 0 if media.source.kind != "base64" else len(data) * 3 // 4 - data[-2:].count("=")


def _check_documents(found: Sequence[_Place], target: Target) -> None:
    most, pages = target.capabilities.max_document_pages, 0
    if not most:
        return
    for place in found:
        if type(place.media) is DocumentBlock:
            pages += pages_of(place.media)
            if pages > most:
                raise _too_much(target, place, f"the PDF documents up to this one have {pages} pages of {{limit}}",
                                "max_document_pages")  # fmt: skip


def _check_sum(media: Sequence[Any], found: Sequence[_Place], target: Target) -> None:
    most, total = target.capabilities.max_media_bytes, 0
    for block, place in zip(media, found, strict=True) if most else ():
        total += size_of(block)
        if total > most:
            raise _too_much(target, place, f"media up to this one have {total:,} bytes of {{limit}}", "max_media_bytes")


def _shrink(place: _Place, media: MessageMedia, target: Target, side: int, downscale: bool) -> ImageBlock | None:
    """Return a smaller image where this one is too large, None where it fits; made once, it dies with the message.

    Raises:
        CapabilityError: it is too large and may not be made smaller, or cannot be.
    """
    image, most = place.media, target.capabilities.max_image_bytes
    if image.source.kind != "base64":
        return None
    size, longest = size_of(image), longest_side_of(image) if side else 0
    too_heavy = bool(most) and size > most
    if not too_heavy and longest <= side:
        return None
    if downscale:
        key = (id(image), side, most)
        known: tuple[ImageBlock, ImageBlock] | None = media.smaller.get(key)
        if known is None:
            small = downscale_image(image, side=side or None, max_bytes=most or None)
            known = media.smaller[key] = (image, small)  # holds the image, so its id is not used again
        return known[1]
    if too_heavy:
        raise _too_much(target, place, f"the image has {size:,} bytes of {{limit}}", "max_image_bytes")
    name = "max_image_side" if side == target.capabilities.max_image_side else "many_images_side"
    raise _too_much(target, place, f"the image is {longest:,} pixels long on a side of {{limit}}", name)


def _too_much(target: Target, place: _Place, what: str, name: str) -> CapabilityError:
    limit: int = getattr(target.capabilities, name)
    hint = "; send fewer, or smaller ones" if name == "max_images" else ""
    hint = hint or "; downscale_images=True makes it smaller" if type(place.media) is ImageBlock else hint
    text = what.format(limit=f"{limit:,} that {target.provider}:{target.model} takes ({name})")
    return CapabilityError(f"{text}{hint}", path=place.path, provider=target.provider, model=target.model)


def _loss(place: _Place, messages: Sequence[Message], side: int, limits: AdapterCapabilities) -> Loss:
    bounds = [f"{side:,} pixels a side"] if side else []
    bounds += [f"{limits.max_image_bytes:,} bytes"] if limits.max_image_bytes else []
    reason = f"the image was made smaller, as asked: this target takes {' and '.join(bounds)}"
    message_id = messages[place.message].id
    return Loss(path=place.path, block_type="image", verdict="rewritten", reason=reason, message_id=message_id)


def _replace_images(
    messages: Sequence[Message], media: Mapping[int, MessageMedia], changes: dict[_Place, ImageBlock]
) -> list[Message]:
    """Put the smaller images in; the same message for the same images each turn, so that the prefix stays stable."""
    made = list(messages)
    for at in {place.message for place in changes}:
        message = made[at]
        new = {(place.block, place.part): image for place, image in changes.items() if place.message == at}
        key = (id(message), tuple((where, id(image)) for where, image in new.items()))  # all held in `smaller`
        known = media[at].smaller.get(key)
        if known is None:
            known = media[at].smaller[key] = (message, replace(message, content=tuple(_with(message, new))))
        made[at] = known[1]
    return made


def _with(message: Message, new: dict[tuple[int, int | None], ImageBlock]) -> Iterator[Any]:
    for place, block in enumerate(message.content):
        if type(block) is ToolResultBlock:
            content = [new.get((place, part), inner) for part, inner in enumerate(block.content)]
            changed = any((place, part) in new for part in range(len(content)))
            yield replace(block, content=content) if changed else block
        else:
            yield new.get((place, None), block)


def longest_side_of(image: ImageBlock) -> int:
    """Return the longer side of an embedded image in pixels; 0 where its header does not tell."""
    data = image.source.data
    return _longest(data[:_HEAD])


@lru_cache(maxsize=256)
def _longest(head: str) -> int:
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
    """Return the image at most `side` pixels long and `max_bytes` heavy, in its own format.

    Args:
        image: one that holds its bytes.
        side: longest side in pixels, None for any.
        max_bytes: largest size before base64, None for any.

    Raises:
        CallerError: Pillow is not installed.
        CapabilityError: it is no image Pillow reads, or cannot be made small enough.
    """
    read = to_pil_image(image)
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
