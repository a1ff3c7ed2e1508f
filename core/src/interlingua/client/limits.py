"""What a target takes of media, held against a conversation before it is sent: counts, bytes, pixels, pages.

Never looks at a conversation without media, and changes an image only where the caller asked for it.
The client's exchange comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import attrs

from interlingua.blocks import AudioBlock, DocumentBlock, ImageBlock, ToolResultBlock, VideoBlock
from interlingua.capabilities import AdapterCapabilities
from interlingua.errors import CapabilityError
from interlingua.messages import Message, Role
from interlingua.projection import Target
from interlingua.projection.content import media_refusal
from interlingua.wire import Loss

MEDIA = frozenset((ImageBlock, AudioBlock, VideoBlock, DocumentBlock))
_LIMITS = ("max_images", "max_image_bytes", "max_image_side", "many_images_side", "max_document_pages",
           "max_media_bytes")  # fmt: skip


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


def holds_media(message: Message) -> bool:
    """Tell whether a message holds an image, audio, a video or a document."""
    for block in message.content:
        kind = type(block)
        if kind in MEDIA:
            return True
        if kind is ToolResultBlock and any(type(part) in MEDIA for part in block.content):  # type: ignore[union-attr]
            return True
    return False


def fitted(
    messages: Sequence[Message], places: Sequence[int], target: Target, *, downscale: bool
) -> tuple[Sequence[Message], tuple[Loss, ...]]:
    """Return the conversation as it may be sent; the very same one unless an image was made smaller.

    Args:
        messages: the conversation, references resolved.
        places: which of its messages hold media.
        target: who is to take it; what it refuses by kind is projection's to drop and counts for nothing here.
        downscale: make images smaller that are too large.

    Raises:
        CapabilityError: a limit is passed; `path` names the block, the message the limit.
        CallerError: an image is to be made smaller and Pillow is not installed.
    """
    limits = target.capabilities
    if not any(getattr(limits, name) for name in _LIMITS):
        return messages, ()
    found = [place for at in places for place in _media_of(messages[at], at, target)]
    images = [place for place in found if type(place.media) is ImageBlock]
    if limits.max_images and len(images) > limits.max_images:
        raise _too_much(target, images[limits.max_images], f"this is image {len(images)} of {{limit}}", "max_images")
    _check_documents(found, target)
    side = limits.max_image_side
    if limits.many_images and len(images) > limits.many_images:
        side = limits.many_images_side
    small = {place: _smaller(place, messages[place.message], target, side, downscale) for place in images}
    changes = {place: made for place, made in small.items() if made is not None}
    _check_sum([changes.get(place, place.media) for place in found], found, target)
    if not changes:
        return messages, ()
    return _replaced(messages, changes), tuple(_loss(place, messages, side, limits) for place in changes)


def _media_of(message: Message, at: int, target: Target) -> Iterator[_Place]:
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
    from interlingua.client.measure import pages_of  # noqa: PLC0415  not free, and few conversations hold documents

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


def _smaller(place: _Place, message: Message, target: Target, side: int, downscale: bool) -> ImageBlock | None:
    """Return a smaller image where this one is too large, None where it fits; made once, it dies with the message.

    Raises:
        CapabilityError: it is too large and may not be made smaller, or cannot be.
    """
    image, most = place.media, target.capabilities.max_image_bytes
    if image.source.kind != "base64":
        return None
    size, longest = size_of(image), _longest(image) if side else 0
    too_heavy = bool(most) and size > most
    if not too_heavy and longest <= side:
        return None
    if downscale:
        from interlingua.client.downscale import downscaled  # noqa: PLC0415  few requests hold images, fewer too large

        key = ("client.limits", place.block, place.part, side, most)
        known: ImageBlock | None = message.memo.get(key)
        if known is None:
            known = message.memo[key] = downscaled(image, side=side or None, max_bytes=most or None)
        return known
    if too_heavy:
        raise _too_much(target, place, f"the image has {size:,} bytes of {{limit}}", "max_image_bytes")
    name = "max_image_side" if side == target.capabilities.max_image_side else "many_images_side"
    raise _too_much(target, place, f"the image is {longest:,} pixels long on a side of {{limit}}", name)


def _longest(image: ImageBlock) -> int:
    from interlingua.client.measure import longest_side_of  # noqa: PLC0415

    return longest_side_of(image)


def _too_much(target: Target, place: _Place, what: str, name: str) -> CapabilityError:
    limit: int = getattr(target.capabilities, name)
    hint = "; send fewer, or smaller ones" if name == "max_images" else ""
    hint = hint or "; downscale_images=True makes it smaller" if type(place.media) is ImageBlock else hint
    told = what.format(limit=f"{limit:,} that {target.provider}:{target.model} takes ({name})")
    return CapabilityError(f"{told}{hint}", path=place.path, provider=target.provider, model=target.model)


def _loss(place: _Place, messages: Sequence[Message], side: int, limits: AdapterCapabilities) -> Loss:
    bounds = [f"{side:,} pixels a side"] if side else []
    bounds += [f"{limits.max_image_bytes:,} bytes"] if limits.max_image_bytes else []
    reason = f"the image was made smaller, as asked: this target takes {' and '.join(bounds)}"
    message_id = messages[place.message].id
    return Loss(path=place.path, block_type="image", verdict="rewritten", reason=reason, message_id=message_id)


def _replaced(messages: Sequence[Message], changes: dict[_Place, ImageBlock]) -> list[Message]:
    """Put the smaller images in; the same message for the same images each turn, so that the prefix stays stable."""
    made = list(messages)
    for at in {place.message for place in changes}:
        message = made[at]
        new = {(place.block, place.part): image for place, image in changes.items() if place.message == at}
        key = ("client.limits", tuple((where, id(image)) for where, image in new.items()))
        known = message.memo.get(key)  # the memo holds these images, so their ids are not used again
        if known is None:
            known = message.memo[key] = attrs.evolve(message, content=tuple(_with(message, new)))
        made[at] = known
    return made


def _with(message: Message, new: dict[tuple[int, int | None], ImageBlock]) -> Iterator[Any]:
    for place, block in enumerate(message.content):
        if type(block) is ToolResultBlock:
            content = [new.get((place, part), inner) for part, inner in enumerate(block.content)]
            yield attrs.evolve(block, content=content) if any((place, part) in new for part in range(len(content))) \
                else block  # fmt: skip
        else:
            yield new.get((place, None), block)
