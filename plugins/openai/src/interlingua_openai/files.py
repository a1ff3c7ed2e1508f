"""Files that are uploaded once: documents, and pictures of Responses (WIRE.md, Files)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.plugins import WireRequest
from interlingua_chat_completions import provider as chat
from interlingua_openai.catalogue import RESPONSES

_PURPOSES = {"document": "user_data", "image": "vision"}


def file_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for `upload` or `delete_file`; None for media that a request of the API cannot refer to."""
    if kind == "delete_file":
        return chat.file_request(kind, arguments["file"], RESPONSES)
    block, api = arguments["block"], arguments["api"]
    purpose = _PURPOSES.get(block.type)
    if purpose is None or (api != RESPONSES and block.media_type != "application/pdf"):
        return None  # Chat Completions takes pictures as bytes or by URL, and text as text
    return chat.upload_request(purpose, arguments["data"], arguments["name"], block.media_type, api)
