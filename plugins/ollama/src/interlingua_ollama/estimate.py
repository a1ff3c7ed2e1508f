"""How many input tokens a request will cost, roughly, without asking the server.

Never exact: 4 bytes of wire a token, and a flat 1,000 an image, whatever the model's own tokenizer would say.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.types.blocks import ImageBlock
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition
from interlingua_ollama.conversation import element_of
from interlingua_ollama.tools import to_wire_tools

_BYTES_PER_TOKEN = 4
_PER_IMAGE = 1000


def estimate_input_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """Return the estimate, in tokens."""
    size = len(to_wire_tools(tools)[0]) if tools else 0
    media = 0
    for at, message in enumerate(messages):
        size += len(element_of(messages, at).wire or b"")
        for block in message.content:
            if isinstance(block, ImageBlock) and block.source.kind == "base64":
                size -= len(block.source.data)
                media += _PER_IMAGE
    return max(size, 0) // _BYTES_PER_TOKEN + media
