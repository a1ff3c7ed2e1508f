"""Runs the tool calls of one answer, side by side where they may be, and turns what they return into results."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

from interlingua.plugins import InstrumentedWork
from interlingua.types import (
    ContentBlock,
    Message,
    MessageMetadata,
    MessageStatus,
    Role,
    TextBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_agents.inputs import InputViolation, check_call
from interlingua_agents.results import DEFER, Decision, Defer, Pending
from interlingua_agents.tools import (
    Confirmation,
    Permission,
    Phase,
    Policy,
    Tool,
    Toolbox,
    ToolContext,
    ToolError,
    ToolOutput,
    by_side_effects,
    decode_json_strings,
    describe_violations,
)

if TYPE_CHECKING:
    from interlingua_agents.protocols import Facts

UNKNOWN_EFFECT = "interrupted while it ran; whether it took effect is unknown"
_WENT_ON = "was not run: nobody decided about it before the user went on"
RESULT_LIMIT = 40_000
"""Characters of text of one result that a model is sent, by default."""

_HEAD = 0.8  # most outputs say what they are at the beginning, and how it ended at the end


def shorten(blocks: Sequence[ContentBlock], limit: int) -> tuple[ContentBlock, ...] | None:
    """Return the content with at most `limit` characters of text besides the notes, or None where it fits.

    Blocks share the limit in their order; media stay as they are.
    """
    if sum(len(block.text) for block in blocks if isinstance(block, TextBlock)) <= limit:
        return None
    made: list[ContentBlock] = []
    left = limit
    for block in blocks:
        if isinstance(block, TextBlock) and len(block.text) > left:
            made.append(attrs.evolve(block, text=_shorten_text(block.text, left)))
            left = 0
        else:
            made.append(block)
            left -= len(block.text) if isinstance(block, TextBlock) else 0
    return tuple(made)


def _shorten_text(text: str, limit: int) -> str:
    head = int(limit * _HEAD)
    tail = limit - head
    note = f"[… {len(text) - limit} of {len(text)} characters left out; the whole result is kept in the session …]"
    return "\n".join(filter(None, [text[:head], note, text[len(text) - tail :] if tail else ""]))


@attrs.frozen(kw_only=True)
class Answer:
    """What became of one call.

    Attributes:
        call: the call.
        phase: how it ended.
        result: what the model reads.
        ended_at: UTC.
        whole: the full result, where `result` is shortened.
        error: why it failed, for the store; None for a success.
    """

    call: ToolUseBlock
    phase: Phase
    result: ToolResultBlock
    ended_at: datetime
    whole: ToolResultBlock | None = None
    error: str | None = None


def answer_from_output(call: ToolUseBlock, returned: Any, *, limit: int, at: datetime) -> Answer:
    """Make the answer of what a tool returned.

    Raises:
        TypeError: it is neither text, nor blocks, nor anything that can be written as JSON.
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
    return Answer(
        call=call,
        phase=Phase.FAILED if output.is_error else Phase.COMPLETED,
        result=whole if short is None else attrs.evolve(whole, content=short),
        ended_at=at,
        whole=None if short is None else whole,
        error=_text_of(whole.content) if output.is_error else None,
    )


def answer_from_error(call: ToolUseBlock, why: str | BaseException, *, limit: int, at: datetime) -> Answer:
    """Make the answer of a call that failed: the model reads why."""
    if isinstance(why, ToolError):
        text = why.message
    elif isinstance(why, BaseException):
        text = f"{type(why).__name__}: {why}" if str(why) else type(why).__name__
    else:
        text = why
    return answer_from_output(call, ToolOutput(content=text, is_error=True), limit=limit, at=at)


def answer_cancelled(call: ToolUseBlock, why: str, *, at: datetime) -> Answer:
    """Make the answer of a call that was cancelled or not permitted."""
    block = ToolResultBlock(tool_use_id=call.id, content=(TextBlock(text=why),), is_error=True, tool_name=call.name)
    return Answer(call=call, phase=Phase.CANCELLED, result=block, ended_at=at, error=why)


def _to_content(value: Any) -> Any:
    """Return text and blocks as they are, anything else as JSON values."""
    if value is None:
        return ()
    if isinstance(value, str | ContentBlock):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(one, ContentBlock) for one in value):
        return tuple(value)
    import msgspec  # noqa: PLC0415  most results are text, which needs no msgspec

    made = msgspec.to_builtins(value, str_keys=True, enc_hook=_to_plain)
    return made if made != [] else "[]"  # an empty list is a result; no blocks would be none


def _to_json(value: Any) -> Any:
    import msgspec  # noqa: PLC0415  as above

    return msgspec.to_builtins(value, str_keys=True, enc_hook=_to_plain)


def _to_object(value: Any) -> Mapping[str, Any]:
    made = _to_json(value)
    if not isinstance(made, dict):
        raise TypeError(f"the metadata of a tool's output is an object, not {type(value).__name__}")
    return made


def _to_plain(value: Any) -> Any:
    """Return what msgspec cannot write: a pydantic model as its fields, anything else as text."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) and not isinstance(value, type) else str(value)


def _text_of(content: tuple[ContentBlock, ...]) -> str:
    return "".join(block.text for block in content if isinstance(block, TextBlock))


@attrs.frozen(kw_only=True)
class ToolLimits:
    """How much calls may take.

    Attributes:
        side_by_side: how many run at once.
        timeout: seconds of one call, unless its tool says otherwise; None for no limit.
        result: characters of a result that the model is sent, unless its tool says otherwise.
    """

    side_by_side: int = 8
    timeout: float | None = 120.0
    result: int = RESULT_LIMIT


@attrs.frozen
class Taken:
    """A call is about to be looked at."""

    call: ToolUseBlock


@attrs.frozen
class Running:
    """Its tool runs since `at`."""

    call: ToolUseBlock
    at: datetime


@attrs.frozen
class Progress:
    """Its tool reported a partial result."""

    call: ToolUseBlock
    partial: Any


@attrs.frozen
class Misread:
    """The call's input breaks the tool's schema, the function's types reject it, or no such tool exists."""

    call: ToolUseBlock
    violations: tuple[InputViolation, ...]


@attrs.frozen
class Answered:
    """The call at this place of the batch has its answer; each call gets exactly one, or is left open."""

    place: int
    answer: Answer


@attrs.frozen
class LeftOpen:
    """The call at this place of the batch waits for a person or for the application."""

    place: int
    pending: Pending


CallReport: TypeAlias = Taken | Running | Progress | Misread | Answered | LeftOpen
Around: TypeAlias = Callable[[ToolUseBlock, ToolDefinition], InstrumentedWork | None]
AskPerson: TypeAlias = Callable[[Confirmation], Awaitable[bool]]


class ToolTimeoutError(Exception):
    """The tool took longer than it may."""


async def invoke(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, timeout: float | None) -> Any:
    """Call the tool and return what it returned.

    A blocking tool that is out of time or cancelled cannot be stopped: its thread goes on, and `context.cancelled`
    turns true.

    Raises:
        ToolTimeoutError: `timeout` seconds have passed.
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
            raise ToolTimeoutError from None
        raise
    finally:
        context.stop()


async def _in_thread(work: Callable[[], Any]) -> Any:
    """As `asyncio.to_thread`, in a daemon thread: a tool that hangs keeps neither the loop nor the process alive."""
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


_GRACE = 1.0  # seconds that cancelled tools have to put things in order


class CallBatch:
    """Runs the calls of one answer and reports what happens; when `run` ends, each call has its answer or is pending.

    Every call is `Taken` first and `Answered` or `LeftOpen` last. Reports are in the order things happen.

    Args:
        calls: of one answer, in its order.
        toolbox: the tools.
        workspace: the folder that tools work in; without one a tool that requires it is refused.
        limits: what calls may take.
        policy: which tools may run.
        ask: puts a question to a person; None where there is nobody, and what would be asked is refused; `DEFER`
            leaves it open.
        decisions: by call id, what a person decided before.
        around: begins a call of a tool's function, for plugins that put something around it.
        decode_strings: whether JSON text is read where a schema wants an object or an array, before anybody is asked.
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
        decisions: Mapping[str, Decision] | None = None,
        decode_strings: bool = False,
        around: Around | None = None,
        report: Callable[[CallReport], None],
    ) -> None:
        self.calls = tuple([_decoded(toolbox, call) for call in calls] if decode_strings else calls)
        self._decisions = decisions or {}
        self._instrument = around
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
        """Cancel what has no answer yet; `run` then returns soon. Only from the event loop's thread."""
        self._halt.set()

    async def run(self) -> None:
        """Run the calls: those that only read side by side, each other one alone, in the order of the answer."""
        try:
            for group in self._groups():
                if self._halt.is_set():
                    break
                await self._run_group(group)
        finally:
            for place, call in list(self._open.items()):
                self._settle(place, answer_cancelled(call, "cancelled before it was finished", at=_now()))

    def _groups(self) -> Iterable[list[int]]:
        """Split the calls so that one that changes something runs alone, after all calls before it."""
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
        self._report(Taken(call))
        tool = self._toolbox.get(call.name)
        if tool is None:
            known = ", ".join(one.name for one in self._toolbox) or "none"
            why = f"there is no tool {call.name!r}; the tools are: {known}"
            self._report(Misread(call, (InputViolation(message=why, rule="tools"),)))
            self._fail(place, why)
        elif found := check_call(tool.definition, call):
            self._report(Misread(call, found))
            self._fail(place, describe_violations(tool, call, found))
        elif tool.is_external:
            self._leave_open(place, tool, "external")
        else:
            try:
                arguments = tool.read(call.input)
            except ValueError as error:
                why = f"invalid input: {error}"
                self._report(Misread(call, (InputViolation(message=why, rule="parameters"),)))
                self._fail(place, why)
                return
            if await self._is_permitted(place, tool):
                async with self._slots:
                    await self._run_tool(place, tool, arguments)

    async def _is_permitted(self, place: int, tool: Tool) -> bool:
        call = self.calls[place]
        if tool.definition.requires_workspace and not self._workspace:
            why = f"{tool.name} was not run: it requires a workspace, and this conversation was given none"
            self._settle(place, answer_cancelled(call, why, at=_now()))
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
            why = f"{tool.name} was not run: it needs a person's consent and nobody can be asked"
        else:
            why = f"{tool.name} was not run: it is not permitted here"
        self._settle(place, answer_cancelled(call, why, at=_now()))
        return False

    async def _run_tool(self, place: int, tool: Tool, arguments: Mapping[str, Any]) -> None:
        call = self.calls[place]
        loop = asyncio.get_running_loop()

        def update(partial: Any) -> None:
            loop.call_soon_threadsafe(self._progress, place, partial)

        self._report(Running(call, _now()))
        activity = None if self._instrument is None else self._instrument(call, tool.definition)
        answer, failure = None, None
        try:
            with activity or nullcontext():
                answer, failure = await self._call_tool(
                    tool, call, arguments, ToolContext(call, update, self._workspace)
                )
        except BaseException as error:
            failure = error
            raise
        finally:
            if activity is not None:
                activity.end(answer and answer.result, failure, {})
        self._settle(place, answer)

    async def _call_tool(
        self, tool: Tool, call: ToolUseBlock, arguments: Mapping[str, Any], context: ToolContext
    ) -> tuple[Answer, BaseException | None]:
        """Return what became of a call, and what its tool raised."""
        timeout = self._limits.timeout if tool.timeout is None else tool.timeout
        limit = self._result_limit(tool)
        failure: BaseException
        try:
            returned = await invoke(tool, arguments, context, timeout)
            return answer_from_output(call, returned, limit=limit, at=_now()), None
        except ToolTimeoutError as error:
            why = f"{tool.name} took longer than {timeout:g} s and was given up"
            return answer_from_error(call, why, limit=limit, at=_now()), error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failure = error  # the tool cancelled itself
        except Exception as error:  # whatever a tool raises is the model's to read
            failure = error
        return answer_from_error(call, failure, limit=limit, at=_now()), failure

    def _result_limit(self, tool: Tool | None) -> int:
        own = tool.result_limit if tool is not None else None
        return self._limits.result if own is None else own

    def _progress(self, place: int, partial: Any) -> None:
        if place in self._open:
            self._report(Progress(self.calls[place], partial))

    def _fail(self, place: int, why: str) -> None:
        call = self.calls[place]
        limit = self._result_limit(self._toolbox.get(call.name))
        self._settle(place, answer_from_error(call, why, limit=limit, at=_now()))

    def _leave_open(self, place: int, tool: Tool, reason: Literal["approval", "external"]) -> None:
        if (call := self._open.pop(place, None)) is not None:
            self._report(LeftOpen(place, Pending.of(call, tool.definition, reason)))

    def _settle(self, place: int, answer: Answer) -> None:
        if self._open.pop(place, None) is not None:
            self._report(Answered(place, answer))


def _decoded(toolbox: Toolbox, call: ToolUseBlock) -> ToolUseBlock:
    tool = toolbox.get(call.name)
    return call if tool is None else decode_json_strings(tool, call)


def _now() -> datetime:
    return datetime.now(UTC)


def unanswered_calls(messages: Sequence[Message]) -> tuple[Message | None, list[ToolUseBlock]]:
    """Return the answer a history ends with and its calls without a result; (None, []) where there are none."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role is Role.TOOL:
            answered |= {result.tool_use_id for result in message.tool_results}
            continue
        whole = message.role is Role.ASSISTANT and message.metadata.status is MessageStatus.COMPLETE
        calls = [call for call in message.tool_calls if call.id not in answered] if whole else []
        return (message, calls) if calls else (None, [])
    return None, []


def settle_open_calls(facts: Facts) -> tuple[Message, ...]:
    """Answer the calls that a history ends with, since the user goes on without them; returns what was added."""
    _, calls = unanswered_calls(facts.messages)
    now = datetime.now(UTC)
    whys = {call.id: UNKNOWN_EFFECT if facts.was_started(call) else _WENT_ON for call in calls}
    return tuple([add_answer(facts, answer_cancelled(call, whys[call.id], at=now)) for call in calls])


def add_answer(facts: Facts, answer: Answer) -> Message:
    """Add the message of a call's answer to the history; returns it as it was added."""
    message = Message(
        role=Role.TOOL,
        content=(answer.result,),
        metadata=MessageMetadata(parent_tool_use_id=answer.call.id),
        session_id=facts.id,
    )
    return facts.add_result(message, answer)
