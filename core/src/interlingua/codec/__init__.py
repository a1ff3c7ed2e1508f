"""The codec: canonical messages and tools to JSON and back, exactly (seed 003 §9, §10; DESIGN 3).

Never coerces a value and never loses what a newer version wrote; it neither validates a conversation nor repairs one.
Stores, the command line and the contract suite come in, by this door only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from interlingua.codec.converter import configure_converter, make_converter

__all__ = [
    "configure_converter",
    "decode_message",
    "decode_messages",
    "decode_tool",
    "dumps_message",
    "encode_message",
    "encode_messages",
    "encode_tool",
    "loads_message",
    "make_converter",
    "read_jsonl",
]


def __getattr__(name: str) -> Any:
    if name not in ("configure_converter", "make_converter"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from interlingua.codec import converter  # noqa: PLC0415  cattrs is not free to import

    return getattr(converter, name)
