"""One canonical message to its wire elements, as bytes, with the losses only this wire knows.

Never looks at another message or at the request's options beyond what its key names (DESIGN 8).
The request writer comes in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from interlingua.blocks import ContentBlock, OpaqueBlock, TextBlock, ToolResultBlock
from interlingua.jsontext import dumps
from interlingua.messages import Message, Role
from interlingua.wire import Verdict
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.to_wire_assistant import to_wire_assistant
from interlingua_chat_completions.to_wire_parts import Row, to_wire_part


class Profile(NamedTuple):
    """What an element depends on besides its message: the key it is remembered under."""

    provider: str
    dialect: Dialect
    thinking: bool = True
    marked: tuple[int, ...] = ()


class Element(NamedTuple):
    """A message on the wire: ready JSON objects, its losses, and which blocks carry a cache hint."""

    wire: tuple[bytes, ...]
    rows: tuple[Row, ...] = ()
    hints: tuple[int, ...] = ()


def to_wire_message(message: Message, profile: Profile) -> Element:
    """Write one message."""
    rows: list[Row] = []
    if message.role is Role.USER and not profile.dialect.cache_breakpoints and len(message.content) == 1:
        (only,) = message.content
        if type(only) is TextBlock and only.cache is None:
            return Element((dumps({"role": "user", "content": only.text}),))
    if message.role is Role.TOOL:
        return Element(tuple(_results(message, profile.dialect, rows)), tuple(rows))
    if message.role is Role.ASSISTANT:
        body = to_wire_assistant(message, profile.provider, profile.dialect, rows, thinking=profile.thinking)
        return Element((dumps(body),) if body is not None else (), tuple(rows))
    role = profile.dialect.system_role if message.role is Role.SYSTEM else "user"
    parts = _parts(message, profile, rows)
    hints = tuple(at for at, block in enumerate(message.content) if getattr(block, "cache", None) is not None)
    if not parts:
        return Element((), tuple(rows))
    content: Any = parts
    # markers need parts; where there are none, the short form is what every service takes
    if not profile.dialect.cache_breakpoints and _is_plain(parts, message):
        content = "\n\n".join([part["text"] for part in parts])
    return Element((dumps({"role": role, "content": content}),), tuple(rows), hints)


def _is_plain(parts: list[dict[str, Any]], message: Message) -> bool:
    return (len(parts) == 1 or message.role is Role.SYSTEM) and all(part.get("type") == "text" for part in parts)


def _parts(message: Message, profile: Profile, rows: list[Row]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for at, block in enumerate(message.content):
        part = to_wire_part(block, at, profile.dialect, rows)
        if part is None:
            continue
        if at in profile.marked:
            part = {**part, "prompt_cache_breakpoint": {"mode": "explicit"}}
        found.append(part)
    return found


def _results(message: Message, dialect: Dialect, rows: list[Row]) -> list[bytes]:
    out = []
    for at, block in enumerate(message.content):
        if not isinstance(block, ToolResultBlock):
            continue
        text = "\n".join([part.text for part in block.content if isinstance(part, TextBlock)])
        rows += [_result_row(at, part) for part in block.content if not isinstance(part, TextBlock)]
        if block.is_error:
            text = dialect.error_prefix + text
            reason = "no error flag for tool results on this wire; the text says that it is one"
            rows.append(Row(at, block.type, "rewritten", reason))
        if block.cache is not None:
            rows.append(Row(at, block.type, "rewritten", "tool results take no cache marker on this wire"))
        out.append(dumps({"role": "tool", "tool_call_id": block.tool_use_id, "content": text}))
    return out


def _result_row(at: int, part: ContentBlock) -> Row:
    verdict: Verdict = "dropped"
    kind = part.kind if isinstance(part, OpaqueBlock) else part.type
    return Row(at, part.type, verdict, f"tool results hold text only on this wire, no {kind}")
