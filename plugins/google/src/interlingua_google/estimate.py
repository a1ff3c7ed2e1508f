"""How many input tokens a request will cost, roughly, without asking the service.

Never exact: the auxiliary request `count_tokens` is.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.json import dumps
from interlingua.plugins.encoding import remembered
from interlingua.types.messages import Message, Role
from interlingua.types.tools import ToolDefinition
from interlingua_google.contents import parts_of
from interlingua_google.media import MEDIA
from interlingua_google.results import to_wire_result
from interlingua_google.tools import to_wire_tools

_BYTES_PER_TOKEN = 4.0
_PER_MESSAGE = 4
_PER_IMAGE = 1100
_BYTES_PER_TOKEN_OF_MEDIA = 40


def estimate_input_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition], model: str) -> int:
    """Estimate by bytes: 4 bytes a token plus 4 a message, media by kind and size."""
    key = ("google", "estimate", model)
    size = sum(remembered(message, key, lambda asked: _estimate(asked, model)) for message in messages)
    return size + int(len(dumps(to_wire_tools(tools, []))) / _BYTES_PER_TOKEN) if tools else size


def _estimate(message: Message, model: str) -> int:
    made = to_wire_result(message, None, with_id=False) if message.role is Role.TOOL else parts_of(message, model)
    size, media = len(made.joined), 0
    for block in message.content:
        for part in (block, *getattr(block, "content", ())):
            if isinstance(part, MEDIA) and part.source.kind == "base64":
                length = len(part.source.data)
                size -= length
                media += _PER_IMAGE if part.type == "image" else length // _BYTES_PER_TOKEN_OF_MEDIA
    return int(max(size, 0) / _BYTES_PER_TOKEN) + media + _PER_MESSAGE
