"""The reply payload of seed 000 §7: what a channel (chat, mail, voice) is given of an answer.

Never sends it anywhere.
Applications that answer on a channel come in, through the room's front door.
"""

from __future__ import annotations

from typing import Any

import attrs

from interlingua.types.blocks import AudioBlock, DocumentBlock, ImageBlock, VideoBlock
from interlingua.types.messages import Message, MessageStatus


def _urls(value: Any) -> tuple[str, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True)
class ReplyPayload:
    """What goes back to a channel after a run (seed 000 §7).

    Attributes:
        text: Markdown, or None.
        media_url: the one attachment, where there is one.
        media_urls: all attachments, where there are several.
        reply_to_id: id of the message this replies to.
        is_error: the run failed, and `text` says how.
    """

    text: str | None = None
    media_url: str | None = None
    media_urls: tuple[str, ...] = attrs.field(default=(), converter=_urls)
    reply_to_id: str | None = None
    is_error: bool = False


def reply_payload(message: Message, *, reply_to_id: str | None = None) -> ReplyPayload:
    """Make the payload of an answer: its text, and its media as addresses (`data:` where they came as data).

    Args:
        message: the last answer of a run.
        reply_to_id: id of the message it replies to, in the channel's own ids.
    """
    metadata = message.metadata
    failed = metadata.status is MessageStatus.ERROR
    text = message.text_content()
    if failed and not text:
        text = metadata.error.message if metadata.error else "the answer failed"
    urls = [url for block in message.content if (url := _url(block))]
    return ReplyPayload(
        text=text or None,
        media_url=urls[0] if len(urls) == 1 else None,
        media_urls=urls if len(urls) > 1 else (),
        reply_to_id=reply_to_id,
        is_error=failed,
    )


def to_wire_reply(payload: ReplyPayload) -> dict[str, Any]:
    """Write a payload as the seed's JSON object; what is absent is left out."""
    fields: dict[str, Any] = {
        "text": payload.text,
        "mediaUrl": payload.media_url,
        "mediaUrls": list(payload.media_urls) or None,
        "replyToId": payload.reply_to_id,
        "isError": payload.is_error or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _url(block: object) -> str | None:
    if not isinstance(block, ImageBlock | AudioBlock | VideoBlock | DocumentBlock):
        return None
    source = block.source
    if source.kind == "base64":
        return f"data:{block.media_type};base64,{source.data}"
    return source.data if source.kind == "url" else None
