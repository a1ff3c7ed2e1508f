"""One call of a tool: its function is called, and what it returns or raises becomes a result that the model reads."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import attrs

from interlingua.types import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua_agents.tools import CallPhase, Tool, ToolContext, ToolError, ToolOutput

RESULT_LIMIT = 40_000
"""Default limit of one result, in characters."""

_HEAD = 0.8  # most outputs say what they are at the beginning, and how it ended at the end


@attrs.frozen(kw_only=True)
class ToolOutcome:
    """How one call ended.

    Attributes:
        call: the call.
        phase: COMPLETED, FAILED or CANCELLED.
        result: the result that the model reads.
        ended_at: UTC.
        whole: the full result if `result` is shortened.
        error: the reason of a failure, which a store keeps; None for a success.
    """

    call: ToolUseBlock
    phase: CallPhase
    result: ToolResultBlock
    ended_at: datetime
    whole: ToolResultBlock | None = None
    error: str | None = None


async def call_tool(
    tool: Tool,
    call: ToolUseBlock,
    arguments: Mapping[str, Any],
    context: ToolContext,
    timeout: float | None,
    limit: int,
) -> tuple[ToolOutcome, BaseException | None]:
    """Call a tool's function; return the outcome, and the exception that the function raised.

    Args:
        tool: the tool.
        call: the call.
        arguments: the call's input as arguments.
        context: passed to a function that takes it.
        timeout: seconds that the call may take; None for no limit.
        limit: characters of the result that the model is sent.
    """
    failure: BaseException
    try:
        returned = await _invoke(tool, arguments, context, timeout)
        return outcome_of_output(call, returned, limit=limit, at=_now()), None
    except ToolTimeoutError as error:
        why = f"{tool.name} took longer than {timeout:g} s and was cancelled"
        return outcome_of_error(call, why, limit=limit, at=_now()), error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        failure = error  # the tool cancelled itself
    except Exception as error:  # the model reads the errors of tools
        failure = error
    return outcome_of_error(call, failure, limit=limit, at=_now()), failure


class ToolTimeoutError(Exception):
    """The tool exceeded its time limit."""


async def _invoke(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, timeout: float | None) -> Any:
    """Call the tool and return its result.

    A blocking tool that is out of time or cancelled cannot be stopped: its thread continues, and `context.cancelled`
    becomes True.

    Raises:
        ToolTimeoutError: `timeout` seconds have passed.
        Exception: raised by the tool.
    """
    values = dict(arguments)
    if tool.context is not None:
        values[tool.context] = context
    try:
        async with asyncio.timeout(timeout) as limit:
            if tool.is_async:
                return await tool.function(**values)
            return await _in_thread(lambda: tool.function(**values))
    except TimeoutError:
        if limit.expired():
            raise ToolTimeoutError from None
        raise
    finally:
        context.stop()


async def _in_thread(work: Callable[[], Any]) -> Any:
    """`asyncio.to_thread` in a daemon thread: a tool that hangs keeps neither the loop nor the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def run() -> None:
        value: Any = None
        failure: Exception | None = None
        try:
            value = work()
        except Exception as error:
            # a future cannot hold a StopIteration
            failure = RuntimeError(f"StopIteration: {error}") if isinstance(error, StopIteration) else error
        except BaseException as error:  # a tool that ends the process only ends itself
            failure = RuntimeError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):  # the loop is closed and the result no longer needed
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="interlingua-tool", daemon=True).start()
    return await done


def outcome_of_output(call: ToolUseBlock, returned: Any, *, limit: int, at: datetime) -> ToolOutcome:
    """Convert a tool's return value.

    Args:
        call: the call.
        returned: a string, blocks, a `ToolOutput`, or a value that can be written as JSON.
        limit: characters of the text in the result.
        at: when the call ended (UTC).

    Raises:
        TypeError: the value cannot be written as JSON.
    """
    output = returned if isinstance(returned, ToolOutput) else ToolOutput(content=returned)
    whole = ToolResultBlock(
        tool_use_id=call.id,
        content=_to_content(output.content),
        is_error=output.is_error,
        tool_name=call.name,
        details=_to_json(output.details),
        metadata=_to_object(output.metadata),
        terminate=output.terminate,
    )
    short = shorten(whole.content, limit)
    return ToolOutcome(
        call=call,
        phase=CallPhase.FAILED if output.is_error else CallPhase.COMPLETED,
        result=whole if short is None else attrs.evolve(whole, content=short),
        ended_at=at,
        whole=None if short is None else whole,
        error=_text_of(whole.content) if output.is_error else None,
    )


def outcome_of_error(call: ToolUseBlock, why: str | BaseException, *, limit: int, at: datetime) -> ToolOutcome:
    """Return the outcome of a call that failed; the model reads the reason."""
    if isinstance(why, ToolError):
        text = why.message
    elif isinstance(why, BaseException):
        text = f"{type(why).__name__}: {why}" if str(why) else type(why).__name__
    else:
        text = why
    return outcome_of_output(call, ToolOutput(content=text, is_error=True), limit=limit, at=at)


def cancelled_outcome(call: ToolUseBlock, why: str, *, at: datetime) -> ToolOutcome:
    """Return the outcome of a call that was cancelled or not permitted."""
    block = ToolResultBlock(tool_use_id=call.id, content=(TextBlock(text=why),), is_error=True, tool_name=call.name)
    return ToolOutcome(call=call, phase=CallPhase.CANCELLED, result=block, ended_at=at, error=why)


def shorten(blocks: Sequence[ContentBlock], limit: int) -> tuple[ContentBlock, ...] | None:
    """Shorten the content's text to `limit` characters, notes not counted; return None if it fits.

    Blocks share the limit in their order; media are kept.
    """
    if sum(len(block.text) for block in blocks if isinstance(block, TextBlock)) <= limit:
        return None
    shortened: list[ContentBlock] = []
    left = limit
    for block in blocks:
        if isinstance(block, TextBlock) and len(block.text) > left:
            shortened.append(attrs.evolve(block, text=_shorten_text(block.text, left)))
            left = 0
        else:
            shortened.append(block)
            left -= len(block.text) if isinstance(block, TextBlock) else 0
    return tuple(shortened)


def _shorten_text(text: str, limit: int) -> str:
    head = int(limit * _HEAD)
    tail = limit - head
    note = f"[… {len(text) - limit} of {len(text)} characters left out; the whole result is kept in the session …]"
    return "\n".join(filter(None, [text[:head], note, text[len(text) - tail :] if tail else ""]))


def _to_content(value: Any) -> Any:
    """Return strings and blocks unchanged, anything else as JSON values."""
    if value is None:
        return ()
    if isinstance(value, str | ContentBlock):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(one, ContentBlock) for one in value):
        return tuple(value)
    import msgspec  # noqa: PLC0415  most results are strings, which need no msgspec

    converted = msgspec.to_builtins(value, str_keys=True, enc_hook=_to_plain)
    return converted if converted != [] else "[]"  # an empty list is a result; no blocks would mean no result


def _to_json(value: Any) -> Any:
    import msgspec  # noqa: PLC0415  as above

    return msgspec.to_builtins(value, str_keys=True, enc_hook=_to_plain)


def _to_object(value: Any) -> Mapping[str, Any]:
    converted = _to_json(value)
    if not isinstance(converted, dict):
        raise TypeError(f"ToolOutput.metadata must be an object, not {type(value).__name__}")
    return converted


def _to_plain(value: Any) -> Any:
    """Convert a type that msgspec does not know: a pydantic model to its fields, anything else to a string."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) and not isinstance(value, type) else str(value)


def _text_of(content: tuple[ContentBlock, ...]) -> str:
    return "".join(block.text for block in content if isinstance(block, TextBlock))


def _now() -> datetime:
    return datetime.now(UTC)
