"""Input tokens of a request, estimated without sending it.

The method: UTF-8 bytes of the conversation's text and JSON divided by 4, plus 4 per message and 8 per tool, plus a flat
1,000 per image, audio, video or document. Never exact: for English and code expect 0.7 to 1.4 times the service's own
count, for other scripts up to 2 times. The format's front door comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.json import dumps
from interlingua.plugins.encoding import remembered
from interlingua.types.blocks import RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition

BYTES_PER_TOKEN = 4
PER_MESSAGE = 4
PER_TOOL = 8
PER_MEDIA = 1000
_KEY = "interlingua_chat_completions.estimate"


def estimate_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """Return the estimate, in tokens."""
    total = sum([remembered(message, _KEY, _message_bytes) for message in messages])
    total += sum([len(dumps(tool.input_schema)) + len(tool.description.encode("utf-8", "replace")) for tool in tools])
    return -(-total // BYTES_PER_TOKEN) + PER_MESSAGE * len(messages) + PER_TOOL * len(tools)


def _message_bytes(message: Message) -> int:
    return sum([_block_bytes(block) for block in message.content])


def _block_bytes(block: Any) -> int:
    if isinstance(block, TextBlock | ThinkingBlock):
        return len(block.text.encode("utf-8", "replace"))
    if isinstance(block, ToolUseBlock):
        return len(block.input_json.encode("utf-8", "replace")) + len(block.name)
    if isinstance(block, ToolResultBlock):
        return sum([_block_bytes(part) for part in block.content])
    if isinstance(block, RedactedThinkingBlock):
        return len(block.data)
    return PER_MEDIA * BYTES_PER_TOKEN
