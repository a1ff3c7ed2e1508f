"""The content blocks of a message, one value class each, and their union.

Never serialises (the codec does) and never knows which target can carry which block (capabilities say).
Messages and every room above may come in.
"""

from __future__ import annotations

from typing import TypeAlias

from interlingua.blocks.media import AudioBlock, DocumentBlock, ImageBlock, ImageSource, MediaSource, VideoBlock
from interlingua.blocks.opaque import OpaqueBlock, UnknownBlock
from interlingua.blocks.text import RedactedThinkingBlock, TextBlock, ThinkingBlock
from interlingua.blocks.tool import ToolResultBlock, ToolUseBlock, read_tool_input

MediaBlock: TypeAlias = ImageBlock | AudioBlock | VideoBlock | DocumentBlock
ContentBlock: TypeAlias = (
    TextBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | AudioBlock
    | VideoBlock
    | DocumentBlock
    | OpaqueBlock
    | UnknownBlock
)

__all__ = [
    "AudioBlock",
    "ContentBlock",
    "DocumentBlock",
    "ImageBlock",
    "ImageSource",
    "MediaBlock",
    "MediaSource",
    "OpaqueBlock",
    "RedactedThinkingBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "UnknownBlock",
    "VideoBlock",
    "read_tool_input",
]
