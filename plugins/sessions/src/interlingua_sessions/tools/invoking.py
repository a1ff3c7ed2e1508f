"""One call of one tool: in the event loop where it is `async`, else in a thread of its own, and never for too long.

Never decides whether to call and never makes an answer of the outcome. The batch comes in.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from interlingua_sessions.tools.context import ToolContext
from interlingua_sessions.tools.function import Tool


class OutOfTime(Exception):
    """The tool took longer than it may."""


async def invoke(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, timeout: float | None) -> Any:
    """Call the tool and return what it returned.

    A blocking tool that is out of time or cancelled cannot be stopped: its thread is left behind, and told through the
    context.

    Raises:
        OutOfTime: `timeout` seconds have passed.
        Exception: whatever the tool raised.
    """
    given = dict(arguments)
    if tool.context is not None:
        given[tool.context] = context
    try:
        async with asyncio.timeout(timeout) as limit:
            if tool.is_async:
                return await tool.function(**given)
            return await _in_thread(lambda: tool.function(**given))
    except TimeoutError:
        if limit.expired():
            raise OutOfTime from None
        raise
    finally:
        context.stop()


async def _in_thread(work: Callable[[], Any]) -> Any:
    """As `asyncio.to_thread`, in a daemon thread: one that hangs keeps neither the loop nor the process from ending."""
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
        except BaseException as error:  # a tool that wants to end the process only ends itself
            failure = RuntimeError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):  # the loop is gone: nobody waits
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="interlingua-tool", daemon=True).start()
    return await done
