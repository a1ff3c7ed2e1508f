"""Conversations and tools in files: read for a command, and written after each turn of a chat.

Never changes what it read. The commands come in.
A conversation is JSON Lines, one canonical message a line; tools are a JSON array, canonical or in a wire's wrapping.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from interlingua.codec.stored import decode_tool, dumps_message, read_jsonl
from interlingua.errors import DecodeError, InterlinguaError
from interlingua.json import loads
from interlingua.types.messages import Message
from interlingua.types.tool_schemas import from_wire_tool
from interlingua.types.tools import SideEffects, ToolDefinition


def read_conversation(path: str) -> list[Message]:
    """Read a conversation; `-` is standard input.

    Raises:
        DecodeError: a line is no canonical message, or there is none; the message names file and line.
        OSError: the file cannot be read.
    """
    with click.open_file(path, "rb") as lines:
        try:
            messages = list(read_jsonl(lines))
        except DecodeError as error:
            raise DecodeError(f"{path}: {error} (`interlingua doctor` finds and mends such lines)") from error
    if not messages:
        raise DecodeError(f"{path} holds no message")
    return messages


def read_tools(path: str) -> list[ToolDefinition]:
    """Read tool definitions: a JSON array, or one definition.

    Raises:
        DecodeError: not JSON, or not a tool; the message names the file and which one.
    """
    with click.open_file(path, "rb") as file:
        try:
            data = loads(file.read())
        except ValueError as error:
            raise DecodeError(f"{path} is not JSON: {error}") from error
    tools = []
    for number, tool in enumerate(data if isinstance(data, list) else [data]):
        canonical = not isinstance(tool, dict) or "side_effects" in tool
        try:  # a wire does not say what running it may change: take the widest
            tools.append(decode_tool(tool) if canonical else from_wire_tool(tool, side_effects=SideEffects.EXECUTE))
        except InterlinguaError as error:
            raise DecodeError(f"{path}: {error}", path=f"[{number}]") from error
    return tools


def write_conversation(path: Path, messages: Sequence[Message]) -> None:
    """Write a conversation whole, so that a crash leaves the old file or the new one."""
    write_whole(path, "".join(f"{dumps_message(message)}\n" for message in messages))


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    file = tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False)  # noqa: SIM115
    try:
        with file:
            file.write(text)
        os.replace(file.name, path)  # noqa: PTH105  Path.replace says the same and hides that it is atomic
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise
