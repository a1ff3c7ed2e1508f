"""Runs the tool calls of one answer, side by side if allowed, and reports what happens to each call."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import attrs

from interlingua.plugins import InstrumentedWork
from interlingua.types import Message, MessageMetadata, MessageStatus, Role, ToolDefinition, ToolUseBlock
from interlingua_agents.inputs import InputViolation, check_call, describe_violations, parse_json_strings
from interlingua_agents.outcomes import (
    RESULT_LIMIT,
    ToolOutcome,
    cancelled_outcome,
    outcome_of_error,
    outcome_of_output,
)
from interlingua_agents.protocols import ConversationPort
from interlingua_agents.results import DEFER, CallDecision, Defer, PendingCall
from interlingua_agents.toolbox import Toolbox
from interlingua_agents.tools import (
    Confirmation,
    Permission,
    Policy,
    Tool,
    ToolContext,
    by_side_effects,
)

UNKNOWN_EFFECT = "interrupted while it ran; whether it took effect is unknown"
_UNDECIDED = "was not run: the user continued without a decision about it"


@attrs.frozen(kw_only=True)
class ToolLimits:
    """Limits of calls.

    Attributes:
        side_by_side: number of calls that run at once.
        timeout: seconds that one call may take; None for no limit. A tool's own limit takes precedence.
        result: characters of a result that the model is sent. A tool's own limit takes precedence.
    """

    side_by_side: int = 8
    timeout: float | None = 120.0
    result: int = RESULT_LIMIT


@attrs.frozen
class CallTaken:
    """Work on a call starts."""

    call: ToolUseBlock


@attrs.frozen
class CallRunning:
    """The call's tool started at `at`."""

    call: ToolUseBlock
    at: datetime


@attrs.frozen
class CallProgress:
    """The call's tool reported a partial result."""

    call: ToolUseBlock
    partial: Any


@attrs.frozen
class CallMisread:
    """The call's input breaks the tool's schema, the function's types reject it, or no such tool exists."""

    call: ToolUseBlock
    violations: tuple[InputViolation, ...]


@attrs.frozen
class CallAnswered:
    """The call at this place of the batch has its outcome; each call gets exactly one, or is left open."""

    place: int
    outcome: ToolOutcome


@attrs.frozen
class CallLeftOpen:
    """The call at this place of the batch waits for a person or for the application."""

    place: int
    pending: PendingCall


CallReport: TypeAlias = CallTaken | CallRunning | CallProgress | CallMisread | CallAnswered | CallLeftOpen
InstrumentCall: TypeAlias = Callable[[ToolUseBlock, ToolDefinition], InstrumentedWork | None]
AskPerson: TypeAlias = Callable[[Confirmation], Awaitable[bool]]


class ToolTimeoutError(Exception):
    """The tool exceeded its time limit."""


async def invoke(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, timeout: float | None) -> Any:
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


_GRACE = 1.0  # seconds that cancelled tools have for cleanup


class CallBatch:
    """Runs the calls of one answer and reports what happens; when `run` ends, each call has its outcome or is pending.

    The first report of a call is `CallTaken`, the last `CallAnswered` or `CallLeftOpen`. Reports are in order of time.

    Args:
        calls: the calls of one answer, in its order.
        toolbox: the tools.
        workspace: the folder that tools work in; without it, calls of tools that require one are rejected.
        limits: limits of calls.
        policy: decides which tools may run.
        ask: asks a person for consent. With None, calls that need consent are rejected; `DEFER` leaves them open.
        decisions: earlier decisions by call id.
        instrument: begins a call of a tool's function, for plugins that wrap it.
        decode_strings: True to parse strings that hold JSON if the schema expects an object or an array, before the
            person is asked.
        report: called with every report, in the event loop's thread.
    """

    def __init__(
        self,
        calls: Sequence[ToolUseBlock],
        toolbox: Toolbox,
        *,
        workspace: str = "",
        limits: ToolLimits | None = None,
        policy: Policy | None = None,
        ask: AskPerson | Defer | None = None,
        decisions: Mapping[str, CallDecision] | None = None,
        decode_strings: bool = False,
        instrument: InstrumentCall | None = None,
        report: Callable[[CallReport], None],
    ) -> None:
        self.calls = tuple([_decoded(toolbox, call) for call in calls] if decode_strings else calls)
        self._decisions = decisions or {}
        self._instrument = instrument
        self._toolbox = toolbox
        self._workspace = workspace
        self._limits = limits or ToolLimits()
        self._policy = policy or by_side_effects()
        self._ask = ask
        self._report = report
        self._open = dict(enumerate(self.calls))
        self._slots = asyncio.Semaphore(self._limits.side_by_side)
        self._asking = asyncio.Lock()
        self._halt = asyncio.Event()

    def cancel(self) -> None:
        """Cancel calls without an outcome; `run` then returns soon. Call it in the event loop's thread only."""
        self._halt.set()

    async def run(self) -> None:
        """Run the calls in order: calls that only read run side by side, every other call alone."""
        try:
            for group in self._groups():
                if self._halt.is_set():
                    break
                await self._run_group(group)
        finally:
            for place, call in list(self._open.items()):
                self._settle(place, cancelled_outcome(call, "cancelled before it was finished", at=_now()))

    def _groups(self) -> Iterable[list[int]]:
        """Split the calls so that a call that changes something runs alone, after all calls before it."""
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

    async def _run_group(self, group: list[int]) -> None:
        halt = asyncio.ensure_future(self._halt.wait())
        waiting = {asyncio.ensure_future(self._run_call(place)) for place in group}
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

    async def _run_call(self, place: int) -> None:
        call = self.calls[place]
        self._report(CallTaken(call))
        tool = self._toolbox.get(call.name)
        if tool is None:
            known = ", ".join(one.name for one in self._toolbox) or "none"
            why = f"there is no tool {call.name!r}; the tools are: {known}"
            self._report(CallMisread(call, (InputViolation(message=why, rule="tools"),)))
            self._fail(place, why)
        elif found := check_call(tool.definition, call):
            self._report(CallMisread(call, found))
            self._fail(place, describe_violations(tool.definition, call, found))
        elif tool.is_external:
            self._leave_open(place, tool, "external")
        else:
            try:
                arguments = tool.read(call.input)
            except ValueError as error:
                why = f"invalid input: {error}"
                self._report(CallMisread(call, (InputViolation(message=why, rule="parameters"),)))
                self._fail(place, why)
                return
            if await self._is_permitted(place, tool):
                async with self._slots:
                    await self._run_tool(place, tool, arguments)

    async def _is_permitted(self, place: int, tool: Tool) -> bool:
        call = self.calls[place]
        if tool.definition.requires_workspace and not self._workspace:
            why = f"{tool.name} was not run: it requires a workspace, and this conversation has none"
            self._settle(place, cancelled_outcome(call, why, at=_now()))
            return False
        permission = self._policy(tool.definition)
        if permission is Permission.ALLOW:
            return True
        decision = self._decisions.get(call.id)
        if permission is Permission.ASK and decision is not None:
            if decision.approved:
                return True
            why = f"{tool.name} was not run: the user said no" + (f": {decision.why}" if decision.why else "")
        elif permission is Permission.ASK and self._ask is DEFER:
            self._leave_open(place, tool, "approval")
            return False
        elif permission is Permission.ASK and callable(self._ask):
            async with self._asking:  # one question at a time, in the order of the calls
                if await self._ask(Confirmation(tool=tool.definition, call=call)):
                    return True
            why = f"{tool.name} was not run: the user said no"
        elif permission is Permission.ASK:
            why = f"{tool.name} was not run: it needs a person's consent, and no person can be asked"
        else:
            why = f"{tool.name} was not run: it is not permitted here"
        self._settle(place, cancelled_outcome(call, why, at=_now()))
        return False

    async def _run_tool(self, place: int, tool: Tool, arguments: Mapping[str, Any]) -> None:
        call = self.calls[place]
        loop = asyncio.get_running_loop()

        def update(partial: Any) -> None:
            loop.call_soon_threadsafe(self._progress, place, partial)

        self._report(CallRunning(call, _now()))
        activity = None if self._instrument is None else self._instrument(call, tool.definition)
        outcome, failure = None, None
        try:
            with activity or nullcontext():
                outcome, failure = await self._call_tool(
                    tool, call, arguments, ToolContext(call, update, self._workspace)
                )
        except BaseException as error:
            failure = error
            raise
        finally:
            if activity is not None:
                activity.end(outcome and outcome.result, failure, {})
        self._settle(place, outcome)

    async def _call_tool(
        self, tool: Tool, call: ToolUseBlock, arguments: Mapping[str, Any], context: ToolContext
    ) -> tuple[ToolOutcome, BaseException | None]:
        """Return the outcome of a call, and the exception that its tool raised."""
        timeout = self._limits.timeout if tool.timeout is None else tool.timeout
        limit = self._result_limit(tool)
        failure: BaseException
        try:
            returned = await invoke(tool, arguments, context, timeout)
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

    def _result_limit(self, tool: Tool | None) -> int:
        own = tool.result_limit if tool is not None else None
        return self._limits.result if own is None else own

    def _progress(self, place: int, partial: Any) -> None:
        if place in self._open:
            self._report(CallProgress(self.calls[place], partial))

    def _fail(self, place: int, why: str) -> None:
        call = self.calls[place]
        limit = self._result_limit(self._toolbox.get(call.name))
        self._settle(place, outcome_of_error(call, why, limit=limit, at=_now()))

    def _leave_open(self, place: int, tool: Tool, reason: Literal["approval", "external"]) -> None:
        if (call := self._open.pop(place, None)) is not None:
            self._report(CallLeftOpen(place, PendingCall.of(call, tool.definition, reason)))

    def _settle(self, place: int, outcome: ToolOutcome) -> None:
        if self._open.pop(place, None) is not None:
            self._report(CallAnswered(place, outcome))


def _decoded(toolbox: Toolbox, call: ToolUseBlock) -> ToolUseBlock:
    tool = toolbox.get(call.name)
    return call if tool is None else parse_json_strings(tool.definition, call)


def _now() -> datetime:
    return datetime.now(UTC)


def unanswered_calls(messages: Sequence[Message]) -> tuple[Message | None, list[ToolUseBlock]]:
    """Return the last answer of a history and its calls without a result; (None, []) if every call has one."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role is Role.TOOL:
            answered |= {result.tool_use_id for result in message.tool_results}
            continue
        whole = message.role is Role.ASSISTANT and message.metadata.status is MessageStatus.COMPLETE
        calls = [call for call in message.tool_calls if call.id not in answered] if whole else []
        return (message, calls) if calls else (None, [])
    return None, []


def settle_open_calls(conversation: ConversationPort) -> tuple[Message, ...]:
    """Add results for the open calls of a history, because the user continues without them; return the messages."""
    _, calls = unanswered_calls(conversation.messages)
    now = datetime.now(UTC)
    whys = {call.id: UNKNOWN_EFFECT if conversation.was_started(call) else _UNDECIDED for call in calls}
    return tuple([add_outcome(conversation, cancelled_outcome(call, whys[call.id], at=now)) for call in calls])


def add_outcome(conversation: ConversationPort, outcome: ToolOutcome) -> Message:
    """Append the message of a call's outcome to the history; return the stored message."""
    message = Message(
        role=Role.TOOL,
        content=(outcome.result,),
        metadata=MessageMetadata(parent_tool_use_id=outcome.call.id),
        session_id=conversation.id,
    )
    return conversation.add_result(message, outcome)
