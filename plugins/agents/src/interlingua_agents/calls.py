"""The tool calls of one answer: run side by side if allowed, and their results added to the conversation in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import Any, TypeAlias

import attrs

from interlingua.plugins import InstrumentedWork, explain_arguments
from interlingua.types import (
    Message,
    MessageMetadata,
    MessageStatus,
    Role,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_agents.events import ToolEnd, ToolStart, ToolUpdate
from interlingua_agents.inputs import InputViolation, check_call, describe_violations, parse_json_strings
from interlingua_agents.outcomes import RESULT_LIMIT, ToolOutcome, call_tool, cancelled_outcome, outcome_of_error
from interlingua_agents.protocols import ConversationPort
from interlingua_agents.results import (
    DEFER,
    CallDecision,
    Defer,
    PendingCall,
    PendingReason,
)
from interlingua_agents.run_events import RunEvents
from interlingua_agents.tools import Confirmation, Permission, Policy, Tool, Toolbox, ToolContext, by_side_effects

UNKNOWN_EFFECT = "interrupted while it ran; whether it took effect is unknown"
_UNDECIDED = "was not run: the user continued without a decision about it"


def _places() -> dict[str, str]:
    agents = dict.fromkeys(("max_turns", "budget_usd"), "set it on the agent: Agent(…, {}=…)")
    return agents | {
        "result_limit": "use result=…",
        "concurrency": "use side_by_side=…",
        "parallel": "use side_by_side=…",
    }


@explain_arguments(places=_places)
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
    """The call's tool starts at `at`. One that may change something waits until this is stored.

    So a process that dies leaves no effect behind of a call that is not recorded as started.
    """

    call: ToolUseBlock
    at: datetime
    stored: asyncio.Future[None]

    def release(self) -> None:
        """Let the tool run; any thread may call it."""
        with suppress(RuntimeError):  # the loop has ended, and with it the batch
            self.stored.get_loop().call_soon_threadsafe(self._release)

    def _release(self) -> None:
        if not self.stored.done():
            self.stored.set_result(None)


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
        uncertain: ids of calls that an earlier run started without reporting their end; a person decides about them.
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
        uncertain: frozenset[str] = frozenset(),
        decode_strings: bool = False,
        instrument: InstrumentCall | None = None,
        report: Callable[[CallReport], None],
    ) -> None:
        self.calls = tuple([_decoded(toolbox, call) for call in calls] if decode_strings else calls)
        self._decisions = decisions or {}
        self._uncertain = uncertain
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
        if call.id in self._uncertain and not self._is_wanted_again(place, tool):
            return
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
        if permission is Permission.ALLOW or (call.id in self._uncertain and permission is Permission.ASK):
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

    def _is_wanted_again(self, place: int, tool: Tool | None) -> bool:
        """Tell whether a person decided that a call runs again which may have had its effect.

        Without a decision about this, `DEFER` leaves the call open, else the model is told. A function that is asked
        for consent does not decide it: it may say yes to every call.
        """
        call = self.calls[place]
        decision = self._decisions.get(call.id)
        is_decided = decision is not None and decision.again
        if is_decided and decision is not None and decision.approved and tool is not None:
            return True
        if self._ask is DEFER and tool is not None and not is_decided:
            self._leave_open(place, tool, "uncertain")
        else:
            why = UNKNOWN_EFFECT + (f": {decision.why}" if decision is not None and decision.why else "")
            self._settle(place, cancelled_outcome(call, why, at=_now()))
        return False

    async def _run_tool(self, place: int, tool: Tool, arguments: Mapping[str, Any]) -> None:
        call = self.calls[place]
        loop = asyncio.get_running_loop()

        def update(partial: Any) -> None:
            loop.call_soon_threadsafe(self._progress, place, partial)

        running = CallRunning(call, _now(), loop.create_future())
        self._report(running)
        if tool.may_change:
            await running.stored
            if self._halt.is_set():
                return
        activity = None if self._instrument is None else self._instrument(call, tool.definition)
        outcome, failure = None, None
        try:
            with activity or nullcontext():
                context = ToolContext(call, update, self._workspace)
                timeout = self._limits.timeout if tool.timeout is None else tool.timeout
                limit = self._result_limit(tool)
                outcome, failure = await call_tool(tool, call, arguments, context, timeout=timeout, limit=limit)
        except BaseException as error:
            failure = error
            raise
        finally:
            if activity is not None:
                activity.end(outcome and outcome.result, failure, {})
        self._settle(place, outcome)

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

    def _leave_open(self, place: int, tool: Tool, reason: PendingReason) -> None:
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


class CallResults:
    """Handles the reports of a run's calls: emits events, and adds results in the order of the calls.

    Args:
        conversation: gets the results.
        toolbox: the tools.
        shown: emits the events.
        add: called with each result as it is stored.

    Attributes:
        messages: the results of the last answer's calls.
        pending: calls that were left open.
        whole: whole results of calls whose message holds a shortened result, by call id.
        called: number of calls whose function was called.
    """

    def __init__(
        self, conversation: ConversationPort, toolbox: Toolbox, shown: RunEvents, add: Callable[[Message], None]
    ) -> None:
        self.messages: list[Message] = []
        self.pending: list[PendingCall] = []
        self.whole: dict[str, ToolResultBlock] = {}
        self.called = 0
        self._conversation = conversation
        self._toolbox = toolbox
        self._shown = shown
        self._add_message = add
        self._message_id = ""
        self._turn = 0
        self._began: dict[str, datetime] = {}
        self._waiting: dict[int, ToolOutcome | None] = {}  # by place
        self._next_place = 0

    def begin(self, answer: Message, turn: int) -> None:
        """Begin with the calls of an answer, which has this number in its run."""
        self._message_id, self._turn = answer.id, turn
        self.messages = []
        self._waiting, self._next_place = {}, 0

    def find_uncertain(self, calls: Sequence[ToolUseBlock]) -> frozenset[str]:
        """Return the ids of open calls that ran when a process died, and may have changed something."""
        tools = [(call, self._toolbox.get(call.name)) for call in calls]
        may_change = [call for call, tool in tools if tool is None or tool.may_change]
        return frozenset(call.id for call in may_change if self._conversation.was_started(call))

    def instrument(self, call: ToolUseBlock, tool: ToolDefinition) -> InstrumentedWork | None:
        """Begin a call of a tool's function, for plugins that wrap it."""
        self.called += 1
        facts = {"call": call, "tool": tool, "session_id": self._conversation.id}
        return self._conversation.instrument("execute_tool", facts)

    def take(self, report: CallReport) -> None:
        """Handle a report of a running call.

        Ctrl-C may interrupt this anywhere. The same report then arrives again; its result is added only once.
        """
        if isinstance(report, CallAnswered):
            self._take_outcome(report.place, report.outcome)
            return
        if isinstance(report, CallLeftOpen):
            if report.place not in self._waiting:
                self.pending.append(report.pending)
            self._waiting[report.place] = None
            self._add_ready()
            return
        call, turn = report.call, self._turn
        if isinstance(report, CallTaken):
            tool = self._toolbox.get(call.name)
            effects, kind = (None, call.kind) if tool is None else (tool.definition.side_effects, tool.definition.kind)
            self._shown.emit(ToolStart(turn=turn, call=call, side_effects=effects, kind=kind))
        elif isinstance(report, CallRunning):
            self._began[call.id] = report.at
            self._conversation.start_call(call, report.at)
            report.release()
        elif isinstance(report, CallProgress):
            self._shown.emit(ToolUpdate(turn=turn, call=call, partial=report.partial))
        else:
            assert isinstance(report, CallMisread)  # noqa: S101  the last kind of report
            about = {"session_id": self._conversation.id, "message_id": self._message_id, "tool_use_id": call.id}
            for broken in report.violations:  # without its message, which may quote the input
                place = {"tool": call.name, "path": broken.path, "rule": broken.rule}
                self._conversation.observe({"type": "tool_input_invalid", **about, **place})

    def add(self, outcome: ToolOutcome) -> None:
        """Add a result at once."""
        added = add_outcome(self._conversation, outcome)
        if outcome.whole is not None:
            self.whole[outcome.call.id] = outcome.whole
        self.messages.append(added)
        self._add_message(added)

    def cancel(self, calls: Sequence[ToolUseBlock]) -> None:
        """Add results that report a cancellation."""
        for call in calls:
            self.add(cancelled_outcome(call, "cancelled before it was read", at=_now()))

    def _take_outcome(self, place: int, outcome: ToolOutcome) -> None:
        call, result = outcome.call, outcome.result
        if place in self._waiting and self._conversation.is_answered(call):
            self._next_place = max(self._next_place, place + 1)
            return
        began = self._began.get(call.id)
        elapsed = None if began is None else (outcome.ended_at - began).total_seconds()
        self._shown.emit(ToolEnd(turn=self._turn, call=call, result=result, status=outcome.phase, elapsed_s=elapsed))
        self._waiting[place] = outcome
        self._add_ready()

    def _add_ready(self) -> None:
        """Add results as far as all earlier calls have ended."""
        while self._next_place in self._waiting:
            ready = self._waiting[self._next_place]
            if ready is not None:
                self.add(ready)
            self._next_place += 1


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
