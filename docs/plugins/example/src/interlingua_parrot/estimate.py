"""How many input tokens a request will cost, roughly, without asking the service.

Never exact: four characters of the request a token.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.json import dumps
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition

_CHARACTERS_PER_TOKEN = 4
_PER_MESSAGE = 3


def estimate_input_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """Return the estimate, in tokens."""
    size = sum(_size(message) for message in messages)
    size += sum(len(tool.name) + len(tool.description) + len(dumps(tool.input_schema)) for tool in tools)
    return size // _CHARACTERS_PER_TOKEN + _PER_MESSAGE * len(messages)


def _size(message: Message) -> int:
    results = [part for block in message.content for part in getattr(block, "content", ())]
    texts = [getattr(block, "text", "") for block in (*message.content, *results)]
    return sum(map(len, texts)) + sum(len(call.input_json) for call in message.tool_calls())
