"""Short ways to make messages by hand (seed 001's factories).

Never invents metadata: what they make is authored, so rules on model, routing and usage do not bind it.
Applications, tests and the client may come in, through `interlingua.messages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from interlingua.blocks import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.blocks.tool import result_content
from interlingua.errors import CallerError
from interlingua.ids import new_ulid
from interlingua.messages.message import DEFAULT_SESSION, SCHEMA_VERSION, Message, Role
from interlingua.messages.metadata import NO_METADATA, MessageMetadata
from interlingua.values import maker

_message = maker(Message)
_metadata = maker(MessageMetadata)
_result = maker(ToolResultBlock)
_text = maker(TextBlock)
_USER, _TOOL = Role.USER, Role.TOOL  # an enum's member is found by a slow call before Python 3.12


def _saying(role: Role, text: str, session_id: str) -> Message:
    if not isinstance(text, str):
        raise _no_text(text)
    block = _text(text, (), None, None)
    return _message(new_ulid(), session_id, role, (block,), NO_METADATA, datetime.now(UTC), SCHEMA_VERSION)


def _no_text(given: object) -> CallerError:
    return CallerError(f"a message says a text or content blocks, not {type(given).__name__}")


def user(
    text: str | Iterable[ContentBlock] = "",
    *,
    images: Iterable[Any] = (),
    audio: Iterable[Any] = (),
    video: Iterable[Any] = (),
    documents: Iterable[Any] = (),
    session_id: str = DEFAULT_SESSION,
) -> Message:
    """Make a user message of text, then images, audio, video and documents.

    Args:
        text: the text, or ready blocks.
        images: each a PIL image, bytes, base64 text, data URL, http(s) URL or path (seed 001, ImageContent).
        audio: each bytes, base64 text or `file:` path (seed 001, AudioContent).
        video: each bytes, base64 text, URL or path.
        documents: each bytes, base64 text, URL or path; PDF, office files and text.
        session_id: the session it belongs to.

    Raises:
        CallerError: something is not media of its kind, or `text` is neither text nor blocks.
        OSError: a file cannot be read.
    """
    if text and isinstance(text, str) and not (images or audio or video or documents):
        return _saying(_USER, text, session_id)
    blocks: list[ContentBlock] = [TextBlock(text=text)] if isinstance(text, str) and text else []
    if not isinstance(text, str):
        if not isinstance(text, Iterable):
            raise _no_text(text)
        blocks.extend(text)
    if images or audio or video or documents:
        blocks.extend(_media(images, audio, video, documents))
    return Message(role=Role.USER, content=tuple(blocks), session_id=session_id)


def _media(
    images: Iterable[Any], audio: Iterable[Any], video: Iterable[Any], documents: Iterable[Any]
) -> Iterator[ContentBlock]:
    from interlingua.messages import media  # noqa: PLC0415  few conversations hold any

    yield from map(media.image_block, images)
    yield from map(media.audio_block, audio)
    yield from map(media.video_block, video)
    yield from map(media.document_block, documents)


def system(text: str, *, session_id: str = DEFAULT_SESSION) -> Message:
    """Make a system message."""
    return _saying(Role.SYSTEM, text, session_id)


def assistant(content: str | Iterable[ContentBlock], *, session_id: str = DEFAULT_SESSION) -> Message:
    """Make an assistant message by hand, for few-shot examples and imported histories."""
    if not isinstance(content, Iterable):
        raise _no_text(content)
    return Message(role=Role.ASSISTANT, content=content, session_id=session_id)


def tool_result(
    call: ToolUseBlock | str,
    result: Any,
    *,
    is_error: bool = False,
    tool_name: str | None = None,
    session_id: str = DEFAULT_SESSION,
    **facts: Any,
) -> Message:
    """Make the TOOL message that answers one call.

    Args:
        call: the call, or its canonical id.
        result: text, blocks, or any JSON value (written as JSON text).
        is_error: the tool failed and `result` says how.
        tool_name: taken from the call when that is given.
        session_id: the session it belongs to.
        **facts: `details`, `metadata`, `terminate` of the block; never sent to a model.
    """
    if isinstance(call, ToolUseBlock):
        tool_use_id, tool_name = call.id, tool_name or call.name
    else:
        tool_use_id = call
    content = result_content(result)
    if facts:
        block = ToolResultBlock(
            tool_use_id=tool_use_id, content=content, is_error=is_error, tool_name=tool_name, **facts
        )
    else:
        block = _result(tool_use_id, content, is_error, tool_name)
    metadata = _metadata(parent_tool_use_id=tool_use_id)
    return _message(new_ulid(), session_id, _TOOL, (block,), metadata, datetime.now(UTC), SCHEMA_VERSION)


def tool_results(
    results: Iterable[tuple[ToolUseBlock | str, Any]], *, session_id: str = DEFAULT_SESSION
) -> list[Message]:
    """Make one TOOL message per (call, result) pair (seed 001's batch factory; one message per call, DESIGN 3)."""
    return [tool_result(call, result, session_id=session_id) for call, result in results]
