"""Canonical JSON: messages and tools written and read, exactly or tolerantly."""

from __future__ import annotations

from interlingua.codec.stored import (
    decode_message,
    decode_messages,
    decode_tool,
    dumps_message,
    encode_message,
    encode_messages,
    encode_tool,
    loads_message,
    read_jsonl,
)

__all__ = [
    "decode_message",
    "decode_messages",
    "decode_tool",
    "dumps_message",
    "encode_message",
    "encode_messages",
    "encode_tool",
    "loads_message",
    "read_jsonl",
]
