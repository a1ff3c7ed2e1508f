"""One canonical message to its wire elements, as bytes, with the losses only this wire knows.

Never looks at another message or at the request's options beyond what its key names (DESIGN 8).
The request writer comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from interlingua.json import dumps
from interlingua.plugins.wire import BlockLoss, Verdict
from interlingua.types.blocks import ContentBlock, OpaqueBlock, TextBlock, ToolResultBlock
from interlingua.types.messages import Message, Role
from interlingua_chat_completions.cache_marks import Hint, cache_control
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.to_wire_assistant import to_wire_assistant
from interlingua_chat_completions.to_wire_parts import to_wire_part


class Profile(NamedTuple):
    """What an element depends on besides its message: the key it is remembered under."""

    provider: str
    dialect: Dialect
    thinking: bool = True
    marked: tuple[Hint, ...] = ()


class Element(NamedTuple):
    """A message on the wire: ready JSON objects, its losses, and which blocks carry a cache hint."""

    wire: tuple[bytes, ...]
    rows: tuple[BlockLoss, ...] = ()
    hints: tuple[Hint, ...] = ()


_NO_MARKER = (
    "tool results take no cache marker on this wire",
    "a result that says nothing takes no cache marker",
)


def to_wire_message(message: Message, profile: Profile) -> Element:
    """Write one message."""
    rows: list[BlockLoss] = []
    if message.role is Role.USER and not profile.dialect.cache_breakpoints and len(message.content) == 1:
        (only,) = message.content
        if type(only) is TextBlock and only.cache is None:
            return Element((dumps({"role": "user", "content": only.text}),))
    if message.role is Role.TOOL:
        usual = _usual_result(message)
        if usual is not None:
            return usual
        wire = tuple(_results(message, profile, rows))
        unmarked = {row.block for row in rows if row.reason in _NO_MARKER}
        return Element(wire, tuple(rows), tuple([hint for hint in _hints(message) if hint.block not in unmarked]))
    if message.role is Role.ASSISTANT:
        body = to_wire_assistant(message, profile.provider, profile.dialect, rows, thinking=profile.thinking)
        return Element((dumps(body),) if body is not None else (), tuple(rows))
    role = profile.dialect.system_role if message.role is Role.SYSTEM else "user"
    parts = _parts(message, profile, rows)
    hints = _hints(message)
    if not parts:
        return Element((), tuple(rows))
    content: Any = parts
    # markers need parts; where there are none, the short form is what every service takes
    if not profile.dialect.cache_breakpoints and _is_plain(parts, message):
        content = "\n\n".join([part["text"] for part in parts])
    return Element((dumps({"role": role, "content": content}),), tuple(rows), hints)


def _usual_result(message: Message) -> Element | None:
    """Write one result of one text the short way; None: it is not that."""
    block, *more = message.content
    if more or type(block) is not ToolResultBlock or block.is_error or block.cache is not None:
        return None
    if len(block.content) != 1 or type(block.content[0]) is not TextBlock:
        return None
    return Element((dumps({"role": "tool", "tool_call_id": block.tool_use_id, "content": block.content[0].text}),))


def _hints(message: Message) -> tuple[Hint, ...]:
    found = [(at, getattr(block, "cache", None)) for at, block in enumerate(message.content)]
    return tuple([Hint(at, cache.ttl) for at, cache in found if cache is not None])


def _is_plain(parts: list[dict[str, Any]], message: Message) -> bool:
    return (len(parts) == 1 or message.role is Role.SYSTEM) and all(part.get("type") == "text" for part in parts)


def _parts(message: Message, profile: Profile, rows: list[BlockLoss]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for at, block in enumerate(message.content):
        part = to_wire_part(block, at, profile.dialect, rows)
        if part is None:
            continue
        found.append(_marked(part, at, profile))
    return found


def _marked(part: dict[str, Any], at: int, profile: Profile) -> dict[str, Any]:
    ttl = next((hint.ttl for hint in profile.marked if hint.block == at), "none")
    if ttl == "none":
        return part
    if profile.dialect.cache_style == "cache_control":
        return {**part, "cache_control": cache_control(ttl)}
    return {**part, "prompt_cache_breakpoint": {"mode": "explicit"}}


def _results(message: Message, profile: Profile, rows: list[BlockLoss]) -> list[bytes]:
    out = []
    dialect = profile.dialect
    for at, block in enumerate(message.content):
        if not isinstance(block, ToolResultBlock):
            continue
        text = "\n".join([part.text for part in block.content if isinstance(part, TextBlock)])
        parts = [part for part in block.content if not isinstance(part, TextBlock)] if dialect.result_parts else []
        rows += [_result_row(at, part) for part in block.content if not parts and not isinstance(part, TextBlock)]
        if block.is_error:
            text = dialect.error_prefix + text
            reason = "no error flag for tool results on this wire; the text says that it is one"
            rows.append(BlockLoss(at, block.type, "rewritten", reason))
        content: Any = _with_parts(text, parts, at, dialect, rows) if parts else text
        if block.cache is not None and dialect.cache_style == "cache_control" and text.strip():
            content = [_marked({"type": "text", "text": text}, at, profile)]  # parts with or without the marker
        elif block.cache is not None:
            rows.append(BlockLoss(at, block.type, "rewritten", _NO_MARKER[dialect.cache_style == "cache_control"]))
        out.append(dumps({"role": "tool", "tool_call_id": block.tool_use_id, "content": content}))
    return out


def _with_parts(
    text: str, parts: Sequence[ContentBlock], at: int, dialect: Dialect, rows: list[BlockLoss]
) -> list[dict[str, Any]] | str:
    """Return a result's content as parts, its text first."""
    made = [part for block in parts if (part := to_wire_part(block, at, dialect, rows)) is not None]
    lead = [{"type": "text", "text": text}] if text else []
    return [*lead, *made] if made else text


def _result_row(at: int, part: ContentBlock) -> BlockLoss:
    verdict: Verdict = "dropped"
    kind = part.kind if isinstance(part, OpaqueBlock) else part.type
    return BlockLoss(at, part.type, verdict, f"tool results hold text only on this wire, no {kind}")
