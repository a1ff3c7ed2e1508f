"""One session in memory, and one turn of it: the question stored, a model chosen for each step, the answers stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from inspect import signature
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from interlingua import AsyncClient, CallerError, Client
from interlingua.output import OutputPlan
from interlingua.plugins import InstrumentedWork, Registry, explain_arguments
from interlingua.types import (
    ContentBlock,
    Message,
    MessageStatus,
    Role,
    ToolDefinition,
    ToolUseBlock,
    split_tool_results,
    system,
    user,
)
from interlingua_agents.outcomes import ToolOutcome
from interlingua_agents.protocols import Compactor
from interlingua_agents.tools import CallPhase, Tool
from interlingua_sessions.compaction import SessionContext
from interlingua_sessions.routing.policy import (
    NoRouteError,
    RoutingPolicy,
    SwapRefusedError,
    decode_policy,
    encode_policy,
)
from interlingua_sessions.routing.router import (
    Chain,
    Delegation,
    NeedsRecord,
    PatternStore,
    RouteDecision,
    RoutedTurn,
    Router,
    TurnInput,
    TurnPlan,
    has_media,
)
from interlingua_sessions.store import (
    EntryKind,
    SessionEntry,
    SessionExistsError,
    SessionNotFoundError,
    SessionRecord,
    Store,
    StoreError,
    ToolCallStatus,
)

ClientT = TypeVar("ClientT", Client, AsyncClient)

CALL_STATUS = {
    CallPhase.PENDING: ToolCallStatus.PENDING,
    CallPhase.RUNNING: ToolCallStatus.PENDING,
    CallPhase.COMPLETED: ToolCallStatus.SUCCEEDED,
    CallPhase.FAILED: ToolCallStatus.FAILED,
    CallPhase.CANCELLED: ToolCallStatus.CANCELLED,
}
"""The store's word for each phase of a call; a running call is pending there, with its start time."""


ContextBuilder: TypeAlias = Callable[[Sequence[Message], Sequence[SessionEntry]], Sequence[Message]]
"""From the stored history and the session-only entries to what a model is sent; deterministic.

Returning the same Message objects for an unchanged prefix keeps a turn cheap and its request a byte prefix of the next.
"""


@explain_arguments()
@attrs.frozen(kw_only=True)
class SystemPrompt:
    """The parts of a system prompt: base instructions, and sections such as memory, skills, the workspace.

    Attributes:
        base: the instructions.
        sections: title -> text, in order; empty sections are left out.
        agent: the agent's name as `base` and the sections write it.
        display_name: replaces `agent` everywhere; None keeps it.
    """

    base: str
    sections: Mapping[str, str] = attrs.field(factory=dict)
    agent: str = ""
    display_name: str | None = None

    def text(self) -> str:
        """Return the whole prompt."""
        titled = (f"# {title}\n\n{text.strip()}" for title, text in self.sections.items() if text.strip())
        whole = "\n\n".join(part for part in (self.base.strip(), *titled) if part)
        if not (self.agent and self.display_name):
            return whole
        name = self.display_name
        return re.sub(rf"(?<!\w){re.escape(self.agent)}(?!\w)", lambda _: name, whole)

    def message(self, session_id: str) -> Message | None:
        """Return the prompt as a message; None if it is empty."""
        whole = self.text()
        return system(whole, session_id=session_id) if whole else None


def places_of_settings() -> dict[str, str]:
    """Return hints about arguments that belong elsewhere, not to `Session.open`."""
    places = dict.fromkeys(signature(Client).parameters, "pass a client: client=Client(…, {}=…)")
    agent = "use an Agent(…, {}=…) and its run(session=…)"
    return places | {"tools": "pass it to a turn: session.send(…, {}=…)", "confirm": agent, "budget_usd": agent}


@attrs.frozen(kw_only=True)
class SessionSetup:
    """The settings of an opened session, without its store and id.

    Attributes:
        registry: the providers it may use.
        defaults: the models used when its policy names none: the first of them, and the next if one fails.
        prompt: prepended to a conversation that has no system message.
        patterns: recommends models.
        user_id: stable pseudonymous id written onto every message; it is not sent to a provider.
        team_id: same, for a team.
        context: builds the context from history and entries; None: `SessionContext`.
        options: request options of every turn.
    """

    registry: Registry
    defaults: tuple[str, ...] = ()
    prompt: SystemPrompt | None = None
    patterns: PatternStore | None = None
    user_id: str | None = None
    team_id: str | None = None
    context: ContextBuilder | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)


class SessionState:
    """A session as it was last read, with the messages added since; used by one thread at a time.

    Others may write to the same session: what they stored is read before each turn, and with each append.
    """

    def __init__(self, store: Store, record: SessionRecord, setup: SessionSetup) -> None:
        self.store = store
        self.record = record
        self.setup = setup
        self.router = Router(setup.registry)
        self.needs = NeedsRecord()
        self.messages: list[Message] = list(store.messages(record.id))
        self.entries: list[SessionEntry] = store.entries(record.id)
        self._unfinished = _unfinished(self.messages)
        self._context = SessionContext()
        self._policy: tuple[Mapping[str, Any] | None, RoutingPolicy] | None = None

    @classmethod
    def open(
        cls, store: Store, session_id: str | None, setup: SessionSetup, *, workspace: str, policy: RoutingPolicy | None
    ) -> SessionState:
        """Read a session, or make it; a policy that is given replaces the stored one."""
        written = None if policy is None else encode_policy(policy)
        record = None
        if session_id is not None:
            with suppress(SessionNotFoundError):
                record = store.session(session_id)
        if record is None:
            try:
                record = store.create_session(session_id, workspace_path=workspace, routing_policy=written)
            except SessionExistsError:  # another process made it meanwhile
                record = store.session(str(session_id))
        if written is not None and written != record.routing_policy:
            record = store.update_session(record.id, routing_policy=written)
        return cls(store, record, setup)

    @property
    def id(self) -> str:
        """The session's id."""
        return self.record.id

    @property
    def policy(self) -> RoutingPolicy:
        """The session's routing policy; decoded again only if the stored one changed."""
        stored = self.record.routing_policy
        if self._policy is None or self._policy[0] != stored:
            self._policy = stored, decode_policy(stored)
        return self._policy[1]

    @property
    def chain(self) -> Chain:
        """The current policies."""
        setup, sticky = self.setup, self.record.active_model
        return Chain(policy=self.policy, sticky=sticky, patterns=setup.patterns, defaults=setup.defaults)

    def context(self, more: Sequence[Message] = (), opening: Message | None = None) -> Sequence[Message]:
        """Return what the next step sends, with `more` appended to the history and `opening` prepended."""
        messages = [*self.messages, *more] if more else self.messages
        if opening is not None:
            messages = [opening, *messages]
        if self.setup.context is not None:
            return self.setup.context(messages, self.entries)
        return self._context(messages, self.entries) if self.entries else messages

    @property
    def last_id(self) -> str:
        """Id of the newest message that was read; empty if there is no message."""
        return self.messages[-1].id if self.messages else ""

    def refresh(self) -> None:
        """Read what other writers added since: one statement, unless an answer was unfinished or entries were added."""
        if self._unfinished:
            current = {one: self.store.message(one) for one in self._unfinished}
            self.messages = [current.get(message.id, message) for message in self.messages]
            self._unfinished = _unfinished(current.values())
        changes = self.store.changes(self.id, after=self.last_id)
        self.record = changes.record
        self.messages += changes.messages
        self._unfinished += _unfinished(changes.messages)
        if changes.entry_count != len(self.entries):
            self.entries = self.store.entries(self.id)

    def append(self, messages: Sequence[Message], opening: Message | None = None) -> list[Message]:
        """Store messages of this session in one transaction; returns them as stored. `opening` as `Store.extend`.

        Tool results inside a user's message become separate messages.
        """
        parts = [self.as_own(part) for message in messages for part in split_tool_results(message)]
        rows = self.store.extend(
            parts,
            opening=None if opening is None else self.as_own(opening),
            after=self.last_id,
        )
        self.add_rows(rows)
        return rows[len(rows) - len(parts) :]

    def add_rows(self, rows: Sequence[Message]) -> None:
        """Add the stored messages, and those that others stored before them; a PARTIAL read earlier is replaced."""
        last = self.last_id
        fresh = [message for message in rows if message.id > last]
        if len(fresh) < len(rows):
            others = {message.id: message for message in rows if message.id <= last}
            self.messages = [others.pop(message.id, message) for message in self.messages]
            self.messages = [*others.values(), *self.messages]  # a system prompt
        self.messages += fresh
        self._unfinished += _unfinished(fresh)

    def as_own(self, message: Message) -> Message:
        """Return a message as this session's, credited to its user and team unless it names others."""
        metadata, setup = message.metadata, self.setup
        user_id, team_id = metadata.user_id or setup.user_id, metadata.team_id or setup.team_id
        if (user_id, team_id) != (metadata.user_id, metadata.team_id):
            message = attrs.evolve(message, metadata=attrs.evolve(metadata, user_id=user_id, team_id=team_id))
        return message if message.session_id == self.id else attrs.evolve(message, session_id=self.id)

    def opening(self) -> Message | None:
        """Return the system prompt as a message if the conversation has none yet."""
        prompt = self.setup.prompt
        if prompt is None or any(message.role is Role.SYSTEM for message in self.messages):
            return None
        return prompt.message(self.id)

    def switch(self, model: str | None, reason: str | None) -> str | None:
        """Use this model for the session from now on; None returns to the policy.

        Returns:
            Its canonical id.

        Raises:
            SwapRefusedError: it cannot carry the session; nothing changed.
            CallerError: the name is neither a model id nor an alias, or its provider is not installed.
        """
        self.refresh()
        name = None
        if model is not None:
            turn = RoutedTurn(
                session_id=self.id, messages=self.context(), options=self.setup.options, record=self.needs
            )
            name = self.router.check_swap(self.chain, turn, model)
        policy = self.policy
        policy = attrs.evolve(policy, manual_reason=reason or RoutingPolicy().manual_reason)
        self.record = self.store.update_session(
            self.id, active_model=name, routing_policy=encode_policy(policy) or None
        )
        return name


def model_names(model: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the models of a `model=` argument: one name, or several in their order."""
    return () if model is None else (model,) if isinstance(model, str) else tuple(model)


def with_refused(message: Message, decision: RouteDecision | None) -> Message:
    """Return the answer of a fallback; its record lists the models that the router refused, too."""
    routing = message.metadata.routing
    if decision is None or routing is None:
        return message
    others = dict.fromkeys((*decision.record.alternatives_considered, *routing.alternatives_considered))
    routing = attrs.evolve(routing, alternatives_considered=tuple(others))
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, routing=routing))


def _unfinished(messages: Iterable[Message]) -> list[str]:
    """Return the ids of answers that some process is, or was, still receiving."""
    partial = MessageStatus.PARTIAL
    return [message.id for message in messages if message.metadata.status is partial]


Content: TypeAlias = str | Message | Iterable[ContentBlock] | None
"""The user's message of a turn; None answers the conversation without a new message."""


class TurnBase(Generic[ClientT]):
    """The parts of a turn that do not wait, shared by the blocking and the asynchronous turn.

    Satisfies `interlingua_agents.protocols.ConversationPort` and `compaction.SessionFacts`.

    Attributes:
        instructions: a system message that is sent before the conversation and not stored, or None.
        hidden: ids of messages that this turn does not send.
    """

    def __init__(
        self,
        state: SessionState,
        client: ClientT,
        compactor: Compactor | None,
        content: Content,
        *,
        model: str | Sequence[str] | None,
        delegate: str | Delegation | None,
        tools: Sequence[ToolDefinition],
        options: Mapping[str, Any],
    ) -> None:
        offered: Any = tools
        if offered is None:
            raise CallerError("tools must be a sequence of ToolDefinition values, not None: leave it out without tools")
        if not isinstance(offered, Sequence) or any(isinstance(tool, Tool) for tool in offered):
            raise CallerError("a turn takes definitions: pass tools=toolbox.definitions, or run an Agent with session=")
        self._state = state
        self._client: ClientT = client
        self._compactor = compactor
        self._options = {**({"allow_loss": True} if client.allow_loss else {}), **state.setup.options, **options}
        self.instructions: Message | None = None
        self.hidden: set[str] = set()
        self._content = content
        names = model_names(model)
        self._override, self._fallbacks = names[0] if names else None, names[1:]
        self._delegation = Delegation(model=delegate) if isinstance(delegate, str) else delegate
        self._tools = tools
        self._decision: RouteDecision | None = None

    @property
    def decision(self) -> RouteDecision:
        """The decision of the turn so far."""
        if self._decision is None:
            self.begin()
        assert self._decision is not None  # noqa: S101  begin decides
        return self._decision

    @property
    def id(self) -> str:
        """The session's id."""
        return self._state.id

    @property
    def store(self) -> Store:
        """Where the session is kept."""
        return self._state.store

    @property
    def messages(self) -> Sequence[Message]:
        """The stored history."""
        return self._state.messages

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """The session-only entries."""
        return self._state.entries

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the turn's requests, by name."""
        return self._options

    @property
    def workspace(self) -> str:
        """The folder the session works in: its own, else the client's, else empty."""
        return self._state.record.workspace_path or self._client.workspace

    @property
    def model(self) -> str:
        """Canonical id of the model this turn asks."""
        return self.decision.model

    @property
    def window(self) -> int:
        """The context window of `model` in tokens; 0 when unknown."""
        return self._state.router.window(self.model, self._options)

    def context(self) -> Sequence[Message]:
        """Return the messages that the next step would send."""
        stored: Sequence[Message] = self._state.context()
        if self.instructions is None and not self.hidden:
            return stored
        lead = [] if self.instructions is None else [self.instructions]
        return lead + [message for message in stored if message.id not in self.hidden]

    def plan_output(self, output: Any, tools: Sequence[ToolDefinition], *, stream: bool) -> OutputPlan[Any]:
        """Return how the turn's model is asked for a typed answer; without `tool_choice`, which the loop handles."""
        options = {name: value for name, value in self._options.items() if name != "tool_choice"}
        return self._client.plan_output(output, model=self.model, tools=tools, stream=stream, **options)

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> int:
        """Estimate the input tokens of messages and tools at `model`."""
        return self._state.router.estimate(self.model, messages, tools, self._options)

    def add(self, message: Message) -> Message:
        """Append a message to the session; returns it as stored. If the store fails, its error has it as `partial`."""
        try:
            return self._state.append([message])[-1]
        except StoreError as error:
            error.partial = message
            raise

    def start_call(self, call: ToolUseBlock, at: datetime) -> None:
        """Record in the store that a call's tool runs since `at`."""
        self.store.update_tool_call(call.id, started_at=at)

    def was_started(self, call: ToolUseBlock) -> bool:
        """Tell whether a call was started and has no result."""
        return self.store.tool_call(call.id).is_running

    def is_answered(self, call: ToolUseBlock) -> bool:
        """Tell whether a call's result is stored."""
        return self.store.tool_call(call.id).result_message_id is not None

    def add_result(self, message: Message, outcome: ToolOutcome) -> Message:
        """Append a tool's result, with the state of the call, and the whole result if the message shortens it."""
        rows = self.store.append_result(
            self._state.as_own(message),
            status=CALL_STATUS[outcome.phase],
            completed_at=outcome.ended_at,
            error=outcome.error,
            whole=outcome.whole,
            after=self._state.last_id,
        )
        self._state.add_rows(rows)
        return rows[-1]

    def add_entry(
        self,
        kind: EntryKind,
        content: str | Sequence[ContentBlock] = "",
        *,
        custom_type: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> SessionEntry:
        """Append a session-only entry of text or blocks."""
        entry = self.store.append_entry(self.id, kind, content, custom_type=custom_type, data=data)
        self._state.entries.append(entry)
        return entry

    def observe(self, event: Mapping[str, Any]) -> None:
        """Pass an event to the plugins' `observe` hooks."""
        self._state.router.observe(event)

    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentedWork | None:
        """Begin a piece of work that plugins may instrument."""
        registry = self._state.setup.registry
        return registry.instrument(kind, facts) if registry.plugins else None

    @property
    def is_started(self) -> bool:
        """True once the question is stored."""
        return self._decision is not None

    def begin(self) -> None:
        """Store the question, once a model that can answer it is known; the size is judged after compaction.

        Raises:
            SwapRefusedError: the model named for this message cannot answer it; nothing was stored.
            NoRouteError: no model can; nothing was stored.
        """
        if not self.is_started:
            self._state.refresh()
            self.store_start(self.prepare_start())

    def media_check(self, start: TurnInput) -> dict[str, Any] | None:
        """Return the arguments of `build_request` that show whether the question's media are taken, if it has any."""
        if not start.model or not has_media(start.question):
            return None
        return {"messages": start.context, **self._options, "model": start.model}

    def prepare_start(self, *, sized: bool = False) -> TurnInput:
        """Return the input of the turn, from the session as it was last read."""
        state, content = self._state, self._content
        question: list[Message] = []
        if content is not None:
            message = content if isinstance(content, Message) else user(content)
            question = [state.as_own(part) for part in split_tool_results(message)]
        opening: Message | None = state.opening()
        context = state.context(question, opening)
        routed = self._routed_turn(context, self._tools, self._options)
        decision: RouteDecision | SwapRefusedError | NoRouteError
        try:
            decision = state.router.decide(state.chain, routed, sized=sized)
        except (SwapRefusedError, NoRouteError) as error:
            decision = error
        return TurnInput(opening, question, context, decision)

    def store_start(self, prepared: TurnInput) -> None:
        """Store the input of the turn; raises as `begin`."""
        decision = prepared.decided()
        if prepared.opening is not None or prepared.question:
            self._state.append(prepared.question, prepared.opening)
        self._decision = decision

    def preview(self) -> TurnPlan:
        """Return the first step; nothing is stored and no decision observed."""
        start = self.prepare_start(sized=True)
        return TurnPlan(messages=start.context, decision=start.decided(), tools=self._tools, options=self._options)

    def plan(self, tools: Sequence[ToolDefinition], options: Mapping[str, Any] | None = None) -> TurnPlan:
        """Return the next step. The turn keeps its model as long as it can answer the newer messages.

        Args:
            tools: the tools that the model may call.
            options: options of this step, overriding the turn's.

        Raises:
            SwapRefusedError, NoRouteError: as for `begin`.
        """
        decision, state = self.decision, self._state
        messages = self.context()
        used = {**self._options, **(options or {})}
        routed = self._routed_turn(messages, tools, used)
        if not state.router.can_answer(decision, routed):
            decision = state.router.decide(state.chain, routed)
        return self._make_plan(decision, messages, tools, used)

    def note_model(self, plan: TurnPlan, answer: Message) -> RouteDecision | None:
        """Note which model answers a step; return the new decision if it is a fallback, which the turn then keeps."""
        found = plan.fallbacks.get(answer.metadata.model or "")
        if found is not None:
            self._decision = found
            self.observe(found.event(self.id, plan.messages[-1].id if plan.messages else "", plan.tools))
        return found

    def complete_arguments(self) -> dict[str, Any]:
        """Return the client's arguments for asking the turn's model outside the conversation."""
        return {"model": self.model, "routing": self.decision.record, **self._state.setup.options}

    def _make_plan(
        self,
        decision: RouteDecision,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        options: Mapping[str, Any],
    ) -> TurnPlan:
        self._decision = decision
        self.observe(decision.event(self.id, messages[-1].id if messages else "", tools))
        routed = self._routed_turn(messages, tools, options)
        fallbacks = self._state.router.fallbacks(self._state.chain, routed, decision, self._fallbacks)
        return TurnPlan(messages=messages, decision=decision, tools=tools, options=options, fallbacks=fallbacks)

    def _routed_turn(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: Mapping[str, Any]
    ) -> RoutedTurn:
        return RoutedTurn(
            session_id=self.id,
            messages=messages,
            tools=tools,
            options=options,
            override=self._override,
            delegation=self._delegation,
            tool_models=self._state.policy.tool_models,
            record=self._state.needs,
        )
