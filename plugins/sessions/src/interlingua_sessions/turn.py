"""One turn of a session: the question stored, a model chosen for each step, the answers stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.types import ContentBlock, Message, ToolDefinition, ToolUseBlock, user
from interlingua_agents.calls import Answer
from interlingua_agents.tools import Phase
from interlingua_sessions.routing.needs import Delegation, RoutedTurn
from interlingua_sessions.routing.router import Decision
from interlingua_sessions.state import SessionState
from interlingua_sessions.store import EntryKind, SessionEntry, Store, ToolCallStatus

CALL_STATUS = {
    Phase.PENDING: ToolCallStatus.PENDING,
    Phase.RUNNING: ToolCallStatus.PENDING,
    Phase.COMPLETED: ToolCallStatus.SUCCEEDED,
    Phase.FAILED: ToolCallStatus.FAILED,
    Phase.CANCELLED: ToolCallStatus.CANCELLED,
}
"""The store's word for each phase of a call; a running call is pending there, with its start time."""


@attrs.frozen(kw_only=True)
class Plan:
    """One step, ready to be sent: `client.send(plan.messages, **plan.arguments)`."""

    messages: Sequence[Message]
    decision: Decision
    tools: Sequence[ToolDefinition]
    options: Mapping[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """Everything besides the messages."""
        decision = self.decision
        return {"model": decision.model, "tools": self.tools, "routing": decision.record, **self.options}

    @property
    def preview(self) -> dict[str, Any]:
        """The arguments of `client.to_wire`."""
        return {"messages": self.messages, "model": self.decision.model, "tools": self.tools, **self.options}


class TurnFacts(ABC):
    """The facts of one turn over one session."""

    def __init__(self, core: SessionState, options: Mapping[str, Any]) -> None:
        self._core = core
        self._options = {**core.setup.options, **options}

    @property
    @abstractmethod
    def decision(self) -> Decision:
        """The decision of the turn so far."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self._core.id

    @property
    def store(self) -> Store:
        """Where the session is kept."""
        return self._core.store

    @property
    def messages(self) -> Sequence[Message]:
        """The stored history."""
        return self._core.messages

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """The session-only entries."""
        return self._core.entries

    @property
    def model(self) -> str:
        """Canonical id of the model this turn asks."""
        return self.decision.model

    @property
    def window(self) -> int:
        """The context window of `model` in tokens; 0 when unknown."""
        router = self._core.router
        return router.window(router.registry.resolve(self.model), self._options)

    def context(self) -> Sequence[Message]:
        """What the next step would send."""
        return self._core.context()

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> int:
        """Estimate the input tokens of messages and tools at `model`."""
        router = self._core.router
        return router.estimated(router.registry.resolve(self.model), messages, tools, self._options)

    def add(self, message: Message) -> Message:
        """Append a message to the session; returns it as stored."""
        return self._core.append([message])[0]

    def start_call(self, call: ToolUseBlock, at: datetime) -> None:
        """Record in the store that a call's tool runs since `at`."""
        self.store.update_tool_call(call.id, started_at=at)

    def was_started(self, call: ToolUseBlock) -> bool:
        """Tell whether a call was started and has no result."""
        return self.store.tool_call(call.id).is_running

    def is_answered(self, call: ToolUseBlock) -> bool:
        """Tell whether a call's result is stored."""
        return self.store.tool_call(call.id).result_message_id is not None

    def add_result(self, message: Message, answer: Answer) -> Message:
        """Append a tool's result, with how the call ended and the full result where the message is shortened."""
        rows = self.store.append_result(
            self._core.owned(message),
            status=CALL_STATUS[answer.phase],
            completed_at=answer.ended_at,
            error=answer.error,
            whole=answer.whole,
            after=self._core.last_id,
        )
        self._core.take_in(rows)
        return rows[-1]

    def add_entry(
        self, kind: EntryKind, text: str = "", *, custom_type: str | None = None, data: Mapping[str, Any] | None = None
    ) -> SessionEntry:
        """Append a session-only entry."""
        entry = self.store.append_entry(self.id, kind, text, custom_type=custom_type, data=data)
        self._core.entries.append(entry)
        return entry


Content: TypeAlias = str | Message | Iterable[ContentBlock] | None
"""What a turn may be begun with; None answers the conversation as it stands."""


class Beginning(NamedTuple):
    """What a turn is about to store, and the model it chose."""

    opening: Message | None
    question: list[Message]
    decision: Decision


class TurnCore(TurnFacts):
    """What the blocking and the asynchronous turn share; satisfies `Facts`."""

    def __init__(
        self,
        core: SessionState,
        content: Content,
        *,
        model: str | None,
        delegate: str | Delegation | None,
        tools: Sequence[ToolDefinition],
        options: Mapping[str, Any],
    ) -> None:
        offered: Any = tools
        if not isinstance(offered, Sequence):
            text = "a stream is one answer and runs no tools: send(…, tools=AgentLoop(toolbox, listen=…)) runs them and"
            raise CallerError(f"{text} tells of each answer as it streams; tools=toolbox.definitions only offers them")
        super().__init__(core, options)
        self._content = content
        self._override = model
        self._delegation = Delegation(model=delegate) if isinstance(delegate, str) else delegate
        self._tools = tools
        self._decision: Decision | None = None

    @property
    def decision(self) -> Decision:
        """The decision of the turn so far."""
        if self._decision is None:
            self.begin()
        assert self._decision is not None  # noqa: S101  begin decides
        return self._decision

    def observe(self, event: Mapping[str, Any]) -> None:
        """Tell the plugins' `observe` hooks of an event."""
        self._core.router.observe(event)

    @property
    def begun(self) -> bool:
        """True once the question is stored."""
        return self._decision is not None

    def begin(self) -> None:
        """Store the question, once a model that can answer it is known; the size is judged after compaction.

        Raises:
            SwapRefused: the model named for this message cannot answer it; nothing was stored.
            NoRoute: no model can; nothing was stored.
        """
        if not self.begun:
            self._core.refresh()
            self.keep(self.beginning())

    def beginning(self) -> Beginning:
        """Return how the turn begins, of what the session was when it was last read; raises as `begin`."""
        core, (opening, question) = self._core, self._fresh()
        prospect = self._prospect(opening, question)
        decision = core.router.decide(core.chain, self._routed(prospect, self._tools), sized=False)
        return Beginning(opening, question, decision)

    def keep(self, beginning: Beginning) -> None:
        """Store what the turn begins with."""
        opening, question, decision = beginning
        if opening is not None or question:
            self._core.append(question, opening)
        self._decision = decision

    def preview(self) -> Plan:
        """Return what the first step would be; nothing is stored and no observer told of a decision."""
        prospect, core = self._prospect(*self._fresh()), self._core
        decision = core.router.decide(core.chain, self._routed(prospect, self._tools))
        return Plan(messages=prospect, decision=decision, tools=self._tools, options=self._options)

    def _fresh(self) -> tuple[Message | None, list[Message]]:
        return self._core.opening(), self._question()

    def _prospect(self, opening: Message | None, question: Sequence[Message]) -> Sequence[Message]:
        """Return what would be sent with these."""
        core = self._core
        fresh = [*([] if opening is None else [opening]), *question]
        return core.setup.context([*core.messages, *fresh], core.entries)

    def plan(self, tools: Sequence[ToolDefinition]) -> Plan:
        """Return the next step; the turn's model stays as long as it can carry what came since.

        Raises:
            SwapRefused, NoRoute: as for `begin`.
        """
        decision, core = self.decision, self._core
        messages = self.context()
        routed = self._routed(messages, tools)
        if not core.router.still(decision, routed):
            decision = core.router.decide(core.chain, routed)
        return self._planned(decision, messages, tools)

    def after(self, plan: Plan, error: InterlinguaError) -> Plan:
        """Return the step to make instead of one that failed, at the next allowed model.

        Raises:
            InterlinguaError: the same error, where there is none.
        """
        core = self._core
        if isinstance(error.partial, Message) and error.partial.content:
            raise error
        found = core.router.after_failure(core.chain, self._routed(plan.messages, plan.tools), plan.decision, error)
        if found is None:
            raise error
        return self._planned(found, plan.messages, plan.tools)

    def aside(self) -> dict[str, Any]:
        """Return the client's arguments for asking the turn's model beside the conversation."""
        return {"model": self.model, "routing": self.decision.record, **self._core.setup.options}

    def _planned(self, decision: Decision, messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> Plan:
        self._decision = decision
        self.observe(decision.event(self.id, messages[-1].id if messages else ""))
        return Plan(messages=messages, decision=decision, tools=tools, options=self._options)

    def _routed(self, messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> RoutedTurn:
        return RoutedTurn(
            session_id=self.id,
            messages=messages,
            tools=tools,
            options=self._options,
            override=self._override,
            delegation=self._delegation,
            record=self._core.needs,
        )

    def _question(self) -> list[Message]:
        content = self._content
        if content is None:
            return []
        return [self._core.owned(content if isinstance(content, Message) else user(content))]
