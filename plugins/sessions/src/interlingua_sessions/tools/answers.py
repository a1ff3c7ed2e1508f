"""Answers to calls: what a tool returned, or why there is nothing, as the result block a model reads.

Never runs a tool and never stores. The batch, its reports and the run come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from interlingua.types.blocks import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua_sessions.tools.cutting import cut
from interlingua_sessions.tools.values import Phase, ToolFailure, ToolOutput


@attrs.frozen(kw_only=True)
class Answer:
    """What became of one call.

    Attributes:
        call: the call.
        phase: how it ended.
        result: what the model reads.
        ended_at: UTC.
        whole: the result uncut, where `result` is cut.
        error: why it failed, for the store; None for a success.
    """

    call: ToolUseBlock
    phase: Phase
    result: ToolResultBlock
    ended_at: datetime
    whole: ToolResultBlock | None = None
    error: str | None = None


def answered(call: ToolUseBlock, returned: Any, *, limit: int, at: datetime) -> Answer:
    """Make the answer of what a tool returned.

    Raises:
        TypeError: it is neither text, nor blocks, nor anything that can be written as JSON.
    """
    output = returned if isinstance(returned, ToolOutput) else ToolOutput(content=returned)
    whole = ToolResultBlock(
        tool_use_id=call.id,
        content=_plain(output.content),
        is_error=output.is_error,
        tool_name=call.name,
        details=None if output.details is None else _built_in(output.details),
        metadata=_built_in(output.metadata),
        terminate=output.terminate,
    )
    short = cut(whole.content, limit)
    return Answer(
        call=call,
        phase=Phase.FAILED if output.is_error else Phase.COMPLETED,
        result=whole if short is None else attrs.evolve(whole, content=short),
        ended_at=at,
        whole=None if short is None else whole,
        error=_text(whole.content) if output.is_error else None,
    )


def failed(call: ToolUseBlock, why: str | BaseException, *, limit: int, at: datetime) -> Answer:
    """Make the answer of a call that failed: the model reads why."""
    if isinstance(why, ToolFailure):
        text = why.message
    elif isinstance(why, BaseException):
        text = f"{type(why).__name__}: {why}" if str(why) else type(why).__name__
    else:
        text = why
    return answered(call, ToolOutput(content=text, is_error=True), limit=limit, at=at)


def given_up(call: ToolUseBlock, why: str, *, at: datetime) -> Answer:
    """Make the answer of a call that was cancelled or not permitted."""
    block = ToolResultBlock(tool_use_id=call.id, content=(TextBlock(text=why),), is_error=True, tool_name=call.name)
    return Answer(call=call, phase=Phase.CANCELLED, result=block, ended_at=at, error=why)


def _plain(value: Any) -> Any:
    """Text and blocks as they are, anything else as plain JSON values."""
    if value is None:
        return ()
    if isinstance(value, str) or _is_block(value):
        return value
    if isinstance(value, list | tuple) and value and all(map(_is_block, value)):
        return tuple(value)
    import msgspec  # noqa: PLC0415  results are text as a rule

    made = msgspec.to_builtins(value, str_keys=True, enc_hook=str)
    return made if made != [] else "[]"  # no blocks is another thing than an empty list


def _is_block(value: Any) -> bool:
    return isinstance(value, ContentBlock)


def _built_in(value: Any) -> Mapping[str, Any]:
    import msgspec  # noqa: PLC0415  most tools have nothing for the application

    made = msgspec.to_builtins(value, str_keys=True, enc_hook=str)
    if not isinstance(made, dict):
        raise TypeError(f"details and metadata are objects, not {type(value).__name__}")
    return made


def _text(content: tuple[ContentBlock, ...]) -> str:
    return "".join(block.text for block in content if isinstance(block, TextBlock))
