"""The router: finds what a turn needs, and the first proposed model that can answer it; a turn's input and plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import attrs

from interlingua import CallerError, CapabilityError, InterlinguaError
from interlingua.errors import PluginError
from interlingua.plugins import Provider, Registry, estimate_tokens
from interlingua.types import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    ModelCapabilities,
    ModelId,
    RequestOptions,
    Role,
    RoutingDecision,
    SideEffects,
    TextBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)
from interlingua_sessions.routing.policy import (
    MODES,
    Candidate,
    ChainPolicy,
    ConstraintFailure,
    NoRouteError,
    RefusedCandidate,
    RoutingPolicy,
    RoutingRule,
    SwapRefusedError,
    constraint_failure_event,
)

_QUESTION_PATH = re.compile(r"messages\[(\d+)\]\.content")
_MEDIA = (ImageBlock, AudioBlock, VideoBlock, DocumentBlock)
_Word: TypeAlias = tuple[str, str | None]
_NOTHING: frozenset[_Word] = frozenset()


@attrs.frozen(kw_only=True)
class Needs:
    """The capabilities that a turn needs.

    Attributes:
        media: (block type, media type) pairs; the media type of a URL may be unknown and is then empty.
        history_tools: the conversation contains tool calls.
        offered_tools: tools are offered.
        system: there is a system prompt.
        structured: the answer must follow a schema.
        side_effects: classes of the tools that are offered, the most careful last.
    """

    media: frozenset[tuple[str, str]] = frozenset()
    history_tools: bool = False
    offered_tools: bool = False
    system: bool = False
    structured: bool = False
    side_effects: tuple[SideEffects, ...] = ()

    def has(self, block_type: str) -> bool:
        """Tell whether there are media of a block type."""
        return any(kind == block_type for kind, _ in self.media)


class NeedsRecord:
    """The needs of conversations, found once per message: a continued conversation costs its new messages only."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._found: list[frozenset[_Word]] = []  # of all messages up to this one

    def needs(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), *, structured: bool = False
    ) -> Needs:
        """Return what these messages and this request need."""
        found = self._read(messages)
        return Needs(
            media=frozenset((kind, media_type) for kind, media_type in found if media_type is not None),
            history_tools=("tool_use", None) in found,
            offered_tools=bool(tools),
            system=("system", None) in found,
            structured=structured,
            side_effects=side_effects_of(tools),
        )

    def _read(self, messages: Sequence[Message]) -> frozenset[_Word]:
        same = 0
        for before, now in zip(self._messages, messages, strict=False):
            if before is not now:
                break
            same += 1
        del self._messages[same:], self._found[same:]
        found = self._found[-1] if same else _NOTHING
        for message in messages[same:]:
            if len(message.content) != 1 or type(message.content[0]) is not TextBlock or message.role is Role.SYSTEM:
                found = found | frozenset(_words(message))
            self._messages.append(message)
            self._found.append(found)
        return found


def side_effects_of(tools: Sequence[ToolDefinition]) -> tuple[SideEffects, ...]:
    """Return the classes of side effects of tools, each once, in the order of the enum."""
    found = {tool.side_effects for tool in tools}
    return tuple(one for one in SideEffects if one in found)


def has_media(messages: Sequence[Message]) -> bool:
    """Tell whether messages contain images, audio, video or documents."""
    return any(media_type is not None for message in messages for _, media_type in _words(message))


def _words(message: Message) -> Iterator[_Word]:
    if message.role is Role.SYSTEM:
        yield "system", None
    for block in message.content:
        inner = block.content if isinstance(block, ToolResultBlock) else ()
        for part in (block, *inner):
            if isinstance(part, _MEDIA):
                yield part.type, part.media_type
            elif isinstance(part, ToolUseBlock):
                yield "tool_use", None


_MEDIA_NAMES = {"image": "images", "audio": "audio", "video": "video", "document": "documents"}


def constraint_failures(
    needs: Needs, can: ModelCapabilities, tokens: Callable[[], int] | None = None
) -> list[ConstraintFailure]:
    """Return why a model cannot answer; empty when it can.

    Args:
        needs: capabilities that the turn needs.
        can: capabilities that the model's adapter declares.
        tokens: estimates the input tokens, asked only if the window is known; None leaves size out.
    """
    if can.assumed:
        return []
    found = [*_media_failures(needs, can), *_other_failures(needs, can)]
    if tokens is not None and can.max_context_tokens and (size := tokens()) > can.max_context_tokens:
        window = can.max_context_tokens
        reason = f"session needs about {size:,} tokens and this model's context holds {window:,}"
        found.append(ConstraintFailure(capability="max_context_tokens", reason=reason))
    return found


def _media_failures(needs: Needs, can: ModelCapabilities) -> Iterator[ConstraintFailure]:
    for kind, name in _MEDIA_NAMES.items():
        capability = f"supports_{name}"
        accepted: Sequence[str] = getattr(can, f"accepted_{kind}_media_types")
        types = {media_type for block_type, media_type in needs.media if block_type == kind}
        if types and not getattr(can, capability):
            yield ConstraintFailure(
                capability=capability, reason=f"session contains {name} that this model can't process"
            )
        elif accepted and (others := sorted(types - {*accepted, ""})):
            reason = f"session contains {name} of type {', '.join(others)} that this model can't process"
            yield ConstraintFailure(capability=f"accepted_{kind}_media_types", reason=reason)


def _other_failures(needs: Needs, can: ModelCapabilities) -> Iterator[ConstraintFailure]:
    only_offered = needs.offered_tools and not needs.history_tools
    checks = (
        (needs.history_tools, "supports_tools", "session contains tool calls that this model can't process"),
        (only_offered, "supports_tools", "this turn offers tools that this model can't call"),
        (needs.system, "supports_system_prompt", "session has a system prompt that this model can't take"),
        (needs.structured, "supports_structured_output",
         "this turn asks for structured output that this model can't produce"),
    )  # fmt: skip
    for is_needed, capability, reason in checks:
        if is_needed and not getattr(can, capability):
            yield ConstraintFailure(capability=capability, reason=reason)


@attrs.frozen(kw_only=True)
class RoutedTurn:
    """One turn about to be answered.

    Attributes:
        session_id: id of the session.
        messages: the messages that would be sent, the user's new message last.
        tools: tools that the model would be offered.
        options: further options of the request, by name.
        override: the model named for this message alone.
        delegation: the model a planner asks for.
        tool_models: as in `RoutingPolicy`.
        record: remembers what the messages before needed.
    """

    session_id: str
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)
    override: str | None = None
    delegation: Delegation | None = None
    tool_models: Mapping[SideEffects, Sequence[str]] = attrs.field(factory=dict)
    record: NeedsRecord = attrs.field(factory=NeedsRecord, repr=False, eq=False)

    @cached_property
    def text(self) -> str:
        """The user's last text."""
        return next((one.text for one in reversed(self.messages) if one.role is Role.USER), "")

    @cached_property
    def needs(self) -> Needs:
        """The capabilities that a model needs to answer."""
        return self.record.needs(self.messages, self.tools, structured=self.options.get("response_schema") is not None)


@attrs.frozen(kw_only=True)
class Recommendation:
    """A recommendation of a pattern store: a model, its confidence (0 to 1), and the reason."""

    model: str
    confidence: float
    reason: str = "the pattern store recommends it"


PatternStore: TypeAlias = Callable[[RoutedTurn], Recommendation | None]


@attrs.frozen(kw_only=True)
class Delegation:
    """A planner's request that a given model answers this turn."""

    model: str
    reason: str = "the planner delegates to it"


Estimate = Callable[[str], int]
"""Model -> estimated input tokens of the turn there."""


@attrs.frozen(kw_only=True)
class Chain:
    """The policies of one session.

    Attributes:
        policy: the session's own.
        sticky: the model the session was switched to.
        patterns: recommends models, or None.
        defaults: the models used when the policy names none, such as the client's; the first is proposed, and the
            others are its fallbacks.
    """

    policy: RoutingPolicy
    sticky: str | None = None
    patterns: PatternStore | None = None
    defaults: tuple[str, ...] = ()

    def proposals(self, turn: RoutedTurn, estimate: Estimate) -> Iterator[Candidate]:
        """Yield the proposals of the policies, in their order; each is computed when it is requested."""
        if turn.override:
            reason = "the caller named this model for this message"
            yield Candidate(policy=ChainPolicy.PER_MESSAGE_OVERRIDE, model=turn.override, reason=reason)
        if self.sticky:
            yield Candidate(policy=ChainPolicy.MANUAL_STICKY, model=self.sticky, reason=self.policy.manual_reason)
        for rule in self.policy.rules:
            if _matches(rule, turn, estimate):
                reason = f"rule {rule.name!r} matched"
                yield Candidate(policy=ChainPolicy.RULE, model=rule.model, reason=reason, rule_name=rule.name)
        found = self.patterns(turn) if self.patterns is not None else None
        if found is not None and found.confidence >= self.policy.min_confidence:
            yield Candidate(
                policy=ChainPolicy.PATTERN, model=found.model, reason=found.reason, confidence=found.confidence
            )
        if turn.delegation:
            asked = turn.delegation
            yield Candidate(policy=ChainPolicy.DELEGATE_REQUEST, model=asked.model, reason=asked.reason)
        workspace = self.policy.workspace_default
        if workspace:
            yield Candidate(policy=ChainPolicy.WORKSPACE_DEFAULT, model=workspace, reason="workspace default")
        for model in filter(None, (self.policy.global_default, *self.defaults[:1])):
            yield Candidate(policy=ChainPolicy.GLOBAL_DEFAULT, model=model, reason="global default")


def _matches(rule: RoutingRule, turn: RoutedTurn, estimate: Estimate) -> bool:
    when = rule.when
    if when.text is not None and not re.search(when.text, turn.text, re.IGNORECASE):
        return False
    if when.images is not None and turn.needs.has("image") is not when.images:
        return False
    if when.tools is not None and bool(turn.tools) is not when.tools:
        return False
    if when.side_effects and not set(when.side_effects) & set(turn.needs.side_effects):
        return False
    if when.min_tokens is None and when.max_tokens is None:
        return True
    tokens = estimate(rule.model)
    return (when.min_tokens or 0) <= tokens and (when.max_tokens is None or tokens <= when.max_tokens)


@attrs.frozen(kw_only=True)
class RouteDecision:
    """The model of one step.

    Attributes:
        candidate: the candidate that won.
        model: its canonical id.
        refused: candidates proposed before it that cannot answer, or failed.
    """

    candidate: Candidate
    model: str
    refused: tuple[RefusedCandidate, ...] = ()

    @property
    def record(self) -> RoutingDecision:
        """The compact summary that goes onto the assistant's message."""
        passed = "".join(f"; not {one.model}: {one.why}" for one in self.refused)
        return RoutingDecision(
            mode=MODES[self.candidate.policy],
            chosen_model=self.model,
            reason=self.candidate.reason + passed,
            rule_name=self.candidate.rule_name,
            confidence=self.candidate.confidence,
            alternatives_considered=tuple(dict.fromkeys(one.model for one in self.refused)),
        )

    def event(self, session_id: str, after: str, tools: Sequence[ToolDefinition] = ()) -> dict[str, Any]:
        """Return the `route.decided` event.

        Args:
            session_id: id of the session.
            after: id of the message that is answered.
            tools: tools that the model is offered; their side effects declare what this step may change.
        """
        record = self.record
        return {
            "type": "route.decided",
            "session_id": session_id,
            "after": after,
            "policy": str(self.candidate.policy),
            "mode": str(record.mode),
            "chosen_model": self.model,
            "reason": record.reason,
            "rule_name": record.rule_name,
            "confidence": record.confidence,
            "alternatives_considered": list(record.alternatives_considered),
            "side_effects": [str(one) for one in side_effects_of(tools)],
            "chain": [*(_link(one.candidate, one.model, one.why) for one in self.refused),
                      _link(self.candidate, self.model, None)],
        }  # fmt: skip


def _link(candidate: Candidate, model: str, refused: str | None) -> dict[str, Any]:
    facts = {"policy": str(candidate.policy), "mode": str(MODES[candidate.policy]), "model": model}
    return {**facts, "reason": candidate.reason, "refused": refused}


_OPTIONS = ("api", "capabilities", "thinking_as_text")  # the options that a plugin's capabilities may depend on


class Router:
    """Chooses models with one registry; the facts of a session are passed with each call."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._found: dict[str, tuple[ModelId, Provider]] = {}

    @cached_property
    def _is_observed(self) -> bool:
        return any(hasattr(plugin, "observe") for plugin in self.registry.plugins)

    def observe(self, event: Mapping[str, Any]) -> None:
        """Pass an event to the plugins' `observe` hooks, if a plugin has one."""
        if self._is_observed:
            self.registry.observe(event)

    def decide(self, chain: Chain, turn: RoutedTurn, *, sized: bool = True) -> RouteDecision:
        """Return the model of a turn.

        Args:
            chain: the policies.
            turn: the turn to be answered.
            sized: compare the conversation's size with the model's window; False before compaction.

        Raises:
            SwapRefusedError: the model named for this message cannot answer it.
            NoRouteError: no proposal can.
        """
        refused: list[RefusedCandidate] = []
        for candidate in chain.proposals(turn, lambda model: self._estimate_turn(model, turn)):
            found = self._check(candidate, turn, sized=sized)
            if isinstance(found, RouteDecision):
                return attrs.evolve(found, refused=tuple(refused))
            self.observe(constraint_failure_event(found, turn.session_id, chain.sticky))
            if candidate.policy is ChainPolicy.PER_MESSAGE_OVERRIDE:
                raise SwapRefusedError(found)
            refused.append(found)
        raise NoRouteError(tuple(refused))

    def can_answer(self, decision: RouteDecision, turn: RoutedTurn) -> bool:
        """Tell whether the model of an earlier decision can answer this turn too."""
        return isinstance(self._check(decision.candidate, turn, sized=True), RouteDecision)

    def check_swap(self, chain: Chain, turn: RoutedTurn, model: str) -> str:
        """Return the canonical id of a model that the session will be switched to.

        Raises:
            SwapRefusedError: it cannot carry the session.
            CallerError: the name is neither a model id nor an alias.
            UnknownProviderError: its provider is not installed.
        """
        name, _ = self.find(model)
        candidate = Candidate(policy=ChainPolicy.MANUAL_STICKY, model=model, reason="")
        found = self._check(candidate, turn, sized=True)
        if isinstance(found, RefusedCandidate):
            self.observe(constraint_failure_event(found, turn.session_id, chain.sticky))
            raise SwapRefusedError(found)
        return str(name)

    def fallbacks(
        self, chain: Chain, turn: RoutedTurn, decision: RouteDecision, named: Sequence[str] = ()
    ) -> dict[str, RouteDecision]:
        """Return the models that the client asks if the service of the chosen one fails, by canonical id.

        They are those that the turn names, else the policy's `fallbacks`, else the other default models if the first
        of them was chosen. Those that cannot answer are left out.
        """
        names = named or chain.policy.fallbacks
        if not names and chain.defaults and decision.candidate.model == chain.defaults[0]:
            names = chain.defaults[1:]
        why = ConstraintFailure(capability="provider", reason="its service failed, or it rests after failures")
        refused = [
            *decision.refused,
            RefusedCandidate(candidate=decision.candidate, model=decision.model, failures=(why,)),
        ]
        allowed: dict[str, RouteDecision] = {}
        for model in names:
            candidate = attrs.evolve(decision.candidate, model=model, reason="fallback after a failure of the service")
            found = self._check(candidate, turn, sized=True)
            if isinstance(found, RefusedCandidate):
                refused.append(found)
            elif found.model != decision.model:
                allowed[found.model] = attrs.evolve(found, refused=tuple(refused))
        return allowed

    def estimate(
        self, model: str, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: Mapping[str, Any]
    ) -> int:
        """Estimate the input tokens of messages and tools at a model."""
        name, provider = self.find(model)
        return estimate_tokens(provider, messages, tools, _options(name, options))

    def window(self, model: str, options: Mapping[str, Any]) -> int:
        """Return a model's context window in tokens; 0 when unknown."""
        name, provider = self.find(model)
        return provider.capabilities(name.name, _options(name, options)).max_context_tokens

    def find(self, model: str) -> tuple[ModelId, Provider]:
        """Return a model's canonical id and its provider, looked up once.

        Raises:
            CallerError: the name is neither a model id nor an alias.
            UnknownProviderError: its provider is not installed.
        """
        found = self._found.get(model)
        if found is None:
            name = self.registry.resolve(model)
            found = self._found[model] = name, self.registry.provider(name.provider)
        return found

    def _estimate_turn(self, model: str, turn: RoutedTurn) -> int:
        return self.estimate(model, turn.messages, turn.tools, turn.options)

    def _check(self, candidate: Candidate, turn: RoutedTurn, *, sized: bool) -> RouteDecision | RefusedCandidate:
        try:
            name, provider = self.find(candidate.model)
        except (CallerError, PluginError) as error:
            failure = ConstraintFailure(capability="provider", reason=error.message)
            return RefusedCandidate(candidate=candidate, model=candidate.model, failures=(failure,))
        can = provider.capabilities(name.name, _options(name, turn.options))
        tokens = partial(self._estimate_turn, candidate.model, turn) if sized else None
        needs = attrs.evolve(turn.needs, media=frozenset()) if turn.options.get("allow_loss") else turn.needs
        found = [*constraint_failures(needs, can, tokens), *_tool_failures(turn, str(name))]
        if found:
            return RefusedCandidate(candidate=candidate, model=str(name), failures=tuple(found))
        return RouteDecision(candidate=candidate, model=str(name))


def _tool_failures(turn: RoutedTurn, model: str) -> Iterator[ConstraintFailure]:
    for effects in turn.needs.side_effects:
        models = turn.tool_models.get(effects)
        if models is not None and not any(fnmatchcase(model, pattern) for pattern in models):
            reason = f"this turn offers tools with side effects {effects!s}, which the policy leaves to"
            yield ConstraintFailure(capability="side_effects", reason=f"{reason} {', '.join(models) or 'no model'}")


def _options(model: ModelId, options: Mapping[str, Any]) -> RequestOptions:
    return RequestOptions(model=model.name, **{name: options[name] for name in _OPTIONS if options.get(name)})


class TurnInput(NamedTuple):
    """The messages that a turn will store, the context that its model will be sent, and the decision on the model.

    If no model can answer, `decision` is the router's error.
    """

    opening: Message | None
    question: list[Message]
    context: Sequence[Message]
    decision: RouteDecision | SwapRefusedError | NoRouteError

    @property
    def model(self) -> str:
        """Canonical id of the chosen model, or of the first that cannot answer; empty without candidates."""
        if isinstance(self.decision, RouteDecision):
            return self.decision.model
        return self.decision.refused[0].model if self.decision.refused else ""

    def decided(self) -> RouteDecision:
        """Return the decision, or raise the router's error."""
        if not isinstance(self.decision, RouteDecision):
            raise self.decision
        return self.decision

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Raise what building the request says about a block of the question; other errors are raised by the step."""
        try:
            yield
        except CapabilityError as error:
            found = _QUESTION_PATH.match(error.path or "")
            if found is not None and int(found[1]) >= len(self.context) - len(self.question):
                raise
        except InterlinguaError:
            pass


@attrs.frozen(kw_only=True)
class TurnPlan:
    """One step, ready to be sent: `client.send(plan.messages, **plan.arguments)`."""

    messages: Sequence[Message]
    decision: RouteDecision
    tools: Sequence[ToolDefinition]
    options: Mapping[str, Any]
    fallbacks: Mapping[str, RouteDecision] = attrs.field(factory=dict)  # by model: the decision if it answers instead

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments but the messages."""
        decision = self.decision
        models = [decision.model, *self.fallbacks] if self.fallbacks else decision.model
        return {"model": models, "tools": self.tools, "routing": decision.record, **self.options}

    @property
    def preview(self) -> dict[str, Any]:
        """The arguments of `client.build_request`."""
        return {"messages": self.messages, "model": self.decision.model, "tools": self.tools, **self.options}
