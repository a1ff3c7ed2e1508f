"""The calls of one answer, run side by side as far as they may be; the only place where tools are run.

Never stores and never emits events: it reports, in the order things happen, to whoever made it. The loop comes in.
Written once, in asyncio: blocking code runs it in a loop of its own (`driving`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from interlingua.types.blocks import ToolUseBlock
from interlingua.types.tools import validate_input
from interlingua_sessions.tools.answers import Answer, answered, failed, given_up
from interlingua_sessions.tools.context import ToolContext
from interlingua_sessions.tools.function import Tool
from interlingua_sessions.tools.invoking import OutOfTime, invoke
from interlingua_sessions.tools.policy import Policy, by_side_effects
from interlingua_sessions.tools.reports import Answered, Ask, Limits, Misread, Progress, Report, Running, Taken
from interlingua_sessions.tools.toolbox import Toolbox
from interlingua_sessions.tools.values import Confirmation, Permission

_GRACE = 1.0  # seconds that cancelled tools have to put things in order


class Batch:
    """Runs calls and reports every answer; whatever happens, each call has got one when `run` ends.

    Args:
        calls: of one answer, in its order.
        toolbox: the tools.
        limits: what calls may take.
        policy: which tools may run.
        ask: puts a question to a person; None where there is nobody, and what would be asked is refused.
        report: told of everything, from the event loop's thread.
    """

    def __init__(
        self,
        calls: Sequence[ToolUseBlock],
        toolbox: Toolbox,
        *,
        limits: Limits | None = None,
        policy: Policy | None = None,
        ask: Ask | None = None,
        report: Callable[[Report], None],
    ) -> None:
        self.calls = tuple(calls)
        self._toolbox = toolbox
        self._limits = limits or Limits()
        self._policy = policy or by_side_effects()
        self._ask = ask
        self._report = report
        self._open = dict(enumerate(self.calls))
        self._slots = asyncio.Semaphore(self._limits.side_by_side)
        self._asking = asyncio.Lock()
        self._halt = asyncio.Event()

    def cancel(self) -> None:
        """Give up what has no answer yet; `run` then returns soon. Only from the event loop's thread."""
        self._halt.set()

    async def run(self) -> None:
        """Run the calls: those that only look side by side, each other one alone, in the order of the answer."""
        try:
            for group in self._groups():
                if self._halt.is_set():
                    break
                await self._together(group)
        finally:
            for place, call in list(self._open.items()):
                self._settle(place, given_up(call, "cancelled before it was finished", at=_now()))

    def _groups(self) -> Iterable[list[int]]:
        """Split the calls so that one that changes something sees what stands before it done, and nothing else."""
        group: list[int] = []
        for place, call in enumerate(self.calls):
            tool = self._toolbox.get(call.name)
            if tool is not None and tool.is_exclusive:
                if group:
                    yield group
                yield [place]
                group = []
            else:
                group.append(place)
        if group:
            yield group

    async def _together(self, group: list[int]) -> None:
        halt = asyncio.ensure_future(self._halt.wait())
        waiting = {asyncio.ensure_future(self._one(place)) for place in group}
        try:
            while waiting and not halt.done():
                done, _ = await asyncio.wait({halt, *waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting -= done
                for task in done - {halt}:
                    task.result()
        finally:
            halt.cancel()
            for task in waiting:
                task.cancel()
            if waiting:
                await asyncio.wait(waiting, timeout=_GRACE)

    async def _one(self, place: int) -> None:
        call = self.calls[place]
        self._report(Taken(call))
        tool = self._toolbox.get(call.name)
        if tool is None:
            self._fail(place, self._unknown(call))
        elif why := _wrong_input(tool, call):
            self._fail(place, why)
        else:
            try:
                arguments = tool.read(call.input)
            except ValueError as error:
                self._report(Misread(call, str(error)))
                self._fail(place, f"invalid input: {error}")
                return
            if await self._permitted(place, tool):
                async with self._slots:
                    await self._run_tool(place, tool, arguments)

    async def _permitted(self, place: int, tool: Tool) -> bool:
        call = self.calls[place]
        permission = self._policy(tool.definition)
        if permission is Permission.ALLOW:
            return True
        if permission is Permission.ASK and self._ask is not None:
            async with self._asking:  # one question at a time, in the order of the calls
                if await self._ask(Confirmation(tool=tool.definition, call=call)):
                    return True
            why = f"{tool.name} was not run: the user said no"
        elif permission is Permission.ASK:
            why = f"{tool.name} was not run: it needs a person's consent and nobody can be asked"
        else:
            why = f"{tool.name} was not run: it is not permitted here"
        self._settle(place, given_up(call, why, at=_now()))
        return False

    async def _run_tool(self, place: int, tool: Tool, arguments: Mapping[str, Any]) -> None:
        call = self.calls[place]
        timeout = self._limits.timeout if tool.timeout is None else tool.timeout
        limit = self._result_limit(tool)
        loop = asyncio.get_running_loop()

        def tell(partial: Any) -> None:
            loop.call_soon_threadsafe(self._progress, place, partial)

        self._report(Running(call, _now()))
        try:
            returned = await invoke(tool, arguments, ToolContext(call, tell), timeout)
            answer = answered(call, returned, limit=limit, at=_now())
        except OutOfTime:
            answer = failed(
                call, f"{tool.name} took longer than {timeout:g} s and was given up", limit=limit, at=_now()
            )
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            answer = failed(call, error, limit=limit, at=_now())  # the tool cancelled itself
        except Exception as error:  # whatever a tool raises is the model's to read
            answer = failed(call, error, limit=limit, at=_now())
        self._settle(place, answer)

    def _result_limit(self, tool: Tool | None) -> int:
        own = tool.result_limit if tool is not None else None
        return self._limits.result if own is None else own

    def _unknown(self, call: ToolUseBlock) -> str:
        known = ", ".join(tool.name for tool in self._toolbox) or "none"
        return f"there is no tool {call.name!r}; the tools are: {known}"

    def _progress(self, place: int, partial: Any) -> None:
        if place in self._open:
            self._report(Progress(self.calls[place], partial))

    def _fail(self, place: int, why: str) -> None:
        call = self.calls[place]
        limit = self._result_limit(self._toolbox.get(call.name))
        self._settle(place, failed(call, why, limit=limit, at=_now()))

    def _settle(self, place: int, answer: Answer) -> None:
        if self._open.pop(place, None) is not None:
            self._report(Answered(place, answer))


def _wrong_input(tool: Tool, call: ToolUseBlock) -> str | None:
    """Say what is wrong with an input, for the model to do better."""
    if call.parse_error is not None:
        return f"invalid input: {call.parse_error}"
    found = validate_input(tool.definition, call.input)
    if not found:
        return None
    return "invalid input: " + "; ".join(f"{one.path or '/'}: {one.message}" for one in found)


def _now() -> datetime:
    return datetime.now(UTC)
