"""Blocks that only this service has, sent back as they came: server tools, search results, compaction (sheet §8).

Never changes one, except where the service would refuse the whole request for it (sheet §1, §4).
`elements` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.types.blocks import OpaqueBlock
from interlingua.types.messages import Message, MessageStatus, Role, StopReason

_WAITING = (StopReason.PAUSE_TURN, StopReason.TOOL_USE)  # the result comes with the next answer


def unanswered_server_calls(message: Message) -> frozenset[str]:
    """Return ids of server calls whose result never came: sent back, the service refuses them (sheet §4)."""
    opaque = [block.data for block in message.content if type(block) is OpaqueBlock]
    if not opaque:
        return frozenset()
    metadata = message.metadata
    if metadata.status is MessageStatus.COMPLETE and metadata.stop_reason in (None, *_WAITING):
        return frozenset()
    data = [item for item in opaque if isinstance(item, Mapping)]
    asked = {str(item.get("id")) for item in data if str(item.get("type")).endswith("_tool_use")}
    return frozenset(asked - {str(item.get("tool_use_id")) for item in data})


def refusal_in(block: OpaqueBlock, message: Message, unanswered: frozenset[str]) -> str | None:
    """Say why this block may not be sent back in this message, or None."""
    data = block.data
    if unanswered and isinstance(data, Mapping) and data.get("id") in unanswered:
        return "the server call was cut off before its result came"
    if block.kind == "document" and message.role is Role.ASSISTANT:
        return "this wire takes no document in an assistant message"
    return None


def without_citations(data: Any) -> Any:
    """Return a search result whose text carries no citations, which user messages may not hold (sheet §1).

    The very same object where there are none.
    """
    parts = data.get("content") if isinstance(data, Mapping) and data.get("type") == "search_result" else None
    if not isinstance(parts, list) or not any(_cites(part) for part in parts):
        return data
    bare = [{key: item for key, item in part.items() if key != "citations"} if _cites(part) else part for part in parts]
    return {**data, "content": bare}


def _cites(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("citations"), list) and bool(part["citations"])
