"""Media of a conversation: which ones a target takes, and references to files and image URLs resolved."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from interlingua._plugins.losses import BlockLoss, message_loss
from interlingua._plugins.provider import ProjectionTarget
from interlingua._values import replace
from interlingua.errors import CallerError
from interlingua.types.blocks import AudioBlock, DocumentBlock, ImageBlock, MediaSource, ToolResultBlock, VideoBlock
from interlingua.types.factories import media_type_of
from interlingua.types.messages import Loss, Message

SIZE_LIMIT = 32 * 1024 * 1024
"""Bytes one file or image may have."""

MEDIA = {
    ImageBlock: ("supports_images", "accepted_image_media_types"),
    AudioBlock: ("supports_audio", "accepted_audio_media_types"),
    VideoBlock: ("supports_video", "accepted_video_media_types"),
    DocumentBlock: ("supports_documents", "accepted_document_media_types"),
}
"""The kinds of media, each with the capabilities that say whether a target takes it, and of which media types."""


def media_refusal(block: Any, target: ProjectionTarget, *, in_result: bool = False) -> str | None:
    """Return the reason why the target cannot take this media block, or None."""
    flag, accepted_name = MEDIA[type(block)]
    if in_result and type(block) is DocumentBlock and target.capabilities.supports_tool_result_documents:
        flag = "supports_tool_result_documents"
    if not getattr(target.capabilities, flag):
        return f"this target takes no {block.type}"
    accepted: tuple[str, ...] = getattr(target.capabilities, accepted_name)
    if block.media_type and accepted and block.media_type not in accepted:
        return f"this target takes no {block.media_type}"
    return "a file_ref must be resolved to data before sending" if block.source.kind == "file_ref" else None


class Fetched(NamedTuple):
    """The contents of a URL: bytes, and the media type in the response header or ""."""

    data: bytes
    media_type: str


@attrs.define(eq=False)
class MessageMedia:
    """One message's media with references resolved and images shrunk once, so that every turn sends the same bytes."""

    message: Message
    references: tuple[tuple[str, str], ...]  # (kind, reference) of each file and image URL in it
    resolved: dict[bool, Message] = attrs.field(factory=dict)  # references embedded; the key: image URLs too
    # (a message, the message with smaller images), by the id of the message and the limits
    smaller: dict[tuple[int, int, int], tuple[Message, Message]] = attrs.field(factory=dict)
    # the same for messages that refer to uploaded files, by the ids of those
    referring: dict[tuple[Any, ...], tuple[Message, Message]] = attrs.field(factory=dict)


def media_in(message: Message) -> Iterator[tuple[int, int | None, Any]]:
    """Yield a message's media, each with its place: block, and part if the block is a tool result."""
    for at, block in enumerate(message.content):
        if type(block) in MEDIA:
            yield at, None, block
        elif type(block) is ToolResultBlock:
            yield from ((at, part, inner) for part, inner in enumerate(block.content) if type(inner) in MEDIA)


def map_media(message: Message, change: Callable[[Any], Any]) -> Message:
    """Return the message with its media changed; the very same one if nothing changes."""

    def mapped(block: Any) -> Any:
        if type(block) is ToolResultBlock:
            parts = [*map(mapped, block.content)]
            return block if all(map(is_, parts, block.content)) else replace(block, content=parts)
        return change(block) if type(block) in MEDIA else block

    content = tuple(map(mapped, message.content))
    return message if all(map(is_, content, message.content)) else replace(message, content=content)


def find_media(message: Message) -> MessageMedia | None:
    """Return the media of a message, not resolved yet; None for a message without."""
    found = [media for _, _, media in media_in(message)]
    images = [(media.source, type(media) is ImageBlock) for media in found]
    references = [one for one, image in images if one.kind == "file_ref" or (one.kind == "url" and image)]
    return MessageMedia(message, tuple([(one.kind, one.data) for one in references])) if found else None


def urls_to_fetch(media: Iterable[MessageMedia]) -> list[str]:
    """Return the image URLs whose content is not known yet, each once, in order."""
    waiting = [one.references for one in media if True not in one.resolved]
    return list(dict.fromkeys(url for references in waiting for kind, url in references if kind == "url"))


def resolve_references(
    messages: Sequence[Message],
    media: Mapping[int, MessageMedia],
    inline_urls: bool,
    workspace: str | Path | None,
    fetched: Mapping[str, Fetched] | None,
) -> tuple[Sequence[Message], tuple[Loss, ...]]:
    """Return the conversation with references embedded, and a row for each URL that a preview does not fetch.

    A message is the same object each turn. `inline_urls`: image URLs are embedded too, for targets that take no URLs;
    `fetched` is None for a preview, which shows the URLs instead.
    """
    resolved = list(messages)
    reason = "is fetched when the request is sent; this preview shows its URL instead of its data"
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
        shown = block.media_type or media_type_of(content.data, "image") or content.media_type
        if not shown:
            raise CallerError(f"cannot determine the media type of {source.data!r}: pass media_type=")
        return attrs.evolve(block, source=embedded, media_type=shown)

    made = map_media(media.message, embed)
    if fetched is None and inline_urls and any(kind == "url" for kind, _ in media.references):
        return made  # not what will be sent
    media.resolved[inline_urls] = made
    return made


def refer_to_uploads(
    messages: Sequence[Message],
    media: Mapping[int, MessageMedia],
    uploaded: Mapping[MediaSource, MediaSource],
    *,
    images: bool,
) -> tuple[Sequence[Message], tuple[Loss, ...]]:
    """Return the conversation with uploaded images, or the other media, as references, and a row for each.

    A message is the same object each turn.
    """
    made, rows = list(messages), list[Loss]()

    def file_of(block: Any) -> MediaSource | None:
        return uploaded.get(block.source) if images is (type(block) is ImageBlock) else None

    for at, one in media.items() if uploaded else ():
        found = [(block, part, each, file) for block, part, each in media_in(made[at]) if (file := file_of(each))]
        for block, part, each, file in found:
            path = f"messages[{at}].content[{block}]" + ("" if part is None else f".content[{part}]")
            row = BlockLoss(block, each.type, "rewritten", f"it was uploaded, and is sent as the file {file.data}")
            rows.append(attrs.evolve(row.at(at, made[at].id), path=path))
        if found:
            key = (id(made[at]), *(file.data for *_, file in found))
            new = map_media(made[at], lambda each: attrs.evolve(each, source=file_of(each) or each.source))
            made[at] = one.referring.setdefault(key, (made[at], new))[1]
    return made if rows else messages, tuple(rows)


def _read_file(reference: str, workspace: str | Path | None) -> bytes:
    if workspace is None:
        raise CallerError(f"the conversation references the file {reference!r}: pass workspace= to the client")
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
