"""Compaction: keeps the context sent to a model within its window, and builds it from the stored history."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import attrs

from interlingua import CallerError, ProviderError
from interlingua.errors import WireError
from interlingua.plugins import explain_arguments
from interlingua.types import (
    ContentBlock,
    Message,
    MessageMetadata,
    MessageStatus,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    system,
    user,
)
from interlingua_agents.protocols import AsyncSteps, ConversationPort, Steps
from interlingua_sessions.store import EntryKind, SessionEntry

_log = logging.getLogger("interlingua")
LETTERS_PER_TOKEN = 4
_MEDIA = 1_500  # tokens of an image of usual size, by the services' own figures


def weight(message: Message) -> int:
    """Return the rough number of tokens of a message."""
    return sum(map(_letters, message.content)) // LETTERS_PER_TOKEN + 4


def _letters(block: ContentBlock) -> int:
    if isinstance(block, TextBlock | ThinkingBlock):
        return len(block.text)
    if isinstance(block, ToolUseBlock):
        return len(block.name) + len(block.input_json)
    if isinstance(block, ToolResultBlock):
        return sum(map(_letters, block.content))
    return _MEDIA * LETTERS_PER_TOKEN


PRUNING = "interlingua.tool_pruning"
"""`custom_type` of the entry that lists the tool results that are left out from then on."""

COMPACTED = {"interlingua.compacted": True}
"""`metadata.app` of a message that replaces earlier messages; traces then report a compacted context."""

COVERS = "covers"
"""Field of a compaction entry: number of messages, from the first, that its summary replaces."""

PRUNED = "pruned"
"""Field of a pruning entry: the places of the tool messages whose content is left out."""


@attrs.frozen
class Layout:
    """The effect of entries on a history, by places in it: places do not change when ids do (an imported copy).

    Attributes:
        covers: number of messages that `summary` replaces.
        summary: the newest compaction entry, or None.
        pruned: places of tool messages whose content is left out.
        branches: branch entries.
    """

    covers: int
    summary: SessionEntry | None
    pruned: frozenset[int]
    branches: tuple[SessionEntry, ...]


def layout_of(entries: Sequence[SessionEntry], messages: Sequence[Message]) -> Layout:
    """Read the entries; custom entries of applications have no effect.

    A system prompt that was prepended to the history after an entry was made moves the places in the entry.
    """
    opened = messages[0].created_at if messages and messages[0].role is Role.SYSTEM else None

    def moved(entry: SessionEntry) -> int:
        return int(opened is not None and opened > entry.created_at)

    summary: SessionEntry | None = None
    pruned: set[int] = set()
    branches = []
    for entry in entries:
        if entry.kind is EntryKind.COMPACTION_SUMMARY and isinstance(entry.data.get(COVERS), int):
            summary = entry
        elif entry.kind is EntryKind.BRANCH_SUMMARY:
            branches.append(entry)
        elif entry.custom_type == PRUNING:
            pruned.update(place + moved(entry) for place in entry.data.get(PRUNED, ()))
    covers = 0 if summary is None else summary.data[COVERS] + moved(summary)
    return Layout(covers, summary, frozenset(pruned), tuple(branches))


_SUMMARY = "The conversation so far was summarised to save space. The summary:\n\n<summary>\n{}\n</summary>"

_BRANCH = (
    "The conversation branched off here: another branch was tried and left. Its summary:\n\n<summary>\n{}\n</summary>"
)


def build_context(messages: Sequence[Message], entries: Sequence[SessionEntry]) -> Sequence[Message]:
    """Return the context that a model is sent: a `SessionContext` used once."""
    return SessionContext()(messages, entries)


class SessionContext:
    """Builds the context that a model is sent, from a session's history and its session-only entries.

    Deterministic; it never changes a stored message. Each message is converted once: the same history returns the
    same objects again, so that a client recognises them and the prefix stays cached.
    """

    def __init__(self) -> None:
        self._made: dict[
            tuple[str, str], tuple[object, Message]
        ] = {}  # by kind and id: the source and the message made of it

    def __call__(self, messages: Sequence[Message], entries: Sequence[SessionEntry]) -> Sequence[Message]:
        """Return the context.

        The newest compaction's summary is first, as a user message after all system messages that it covers, followed
        by the messages that it does not cover. A branch's summary is at the start of the branch, as a user message.
        Pruned tool results report that they were left out. Without these entries the same object is returned.
        """
        layout = layout_of(entries, messages)
        if layout.summary is None and not layout.pruned and not layout.branches:
            return messages
        covered = messages[: layout.covers]
        made = [message for message in covered if message.role is Role.SYSTEM]
        if layout.summary is not None:
            made += self._summary(covered, layout.summary)
        waiting = _branches_by_place(messages, layout)
        for place in range(len(covered), len(messages)):
            message = messages[place]
            if waiting and message.role is not Role.TOOL:  # never between a call and its result
                made += self._branches(waiting, place, message.session_id)
            made.append(self._pruned(message) if place in layout.pruned else message)
        return made + self._branches(waiting, len(messages), messages[-1].session_id if messages else "")

    def _summary(self, covered: Sequence[Message], entry: SessionEntry) -> list[Message]:
        """Return the summary under the id of the last message it replaces, so that ids keep increasing."""
        last = next((message for message in reversed(covered) if message.role is not Role.SYSTEM), None)
        if last is None:
            return []

        def make() -> Message:
            text = TextBlock(text=_SUMMARY.format(entry.text))
            return attrs.evolve(last, role=Role.USER, content=(text,), metadata=MessageMetadata(app=COMPACTED))

        return [self._once(("summary", entry.id), last, make)]

    def _branches(self, waiting: dict[int, list[SessionEntry]], place: int, session_id: str) -> list[Message]:
        """Return the branches that begin at or before this place."""
        begun = [entry for at in sorted(waiting) if at <= place for entry in waiting.pop(at)]
        return [self._branch(entry, session_id) for entry in begun]

    def _branch(self, entry: SessionEntry, session_id: str) -> Message:
        def make() -> Message:
            text = TextBlock(text=_BRANCH.format(entry.text))
            return Message(
                id=entry.id, session_id=session_id, role=Role.USER, content=(text,), created_at=entry.created_at
            )

        return self._once(("branch", entry.id), entry, make)

    def _pruned(self, message: Message) -> Message:
        def make() -> Message:
            content = [_emptied(block) if isinstance(block, ToolResultBlock) else block for block in message.content]
            known = message.metadata
            return attrs.evolve(message, content=content, metadata=attrs.evolve(known, app={**known.app, **COMPACTED}))

        return self._once(("pruned", message.id), message, make)

    def _once(self, key: tuple[str, str], source: object, make: Callable[[], Message]) -> Message:
        """Return the cached conversion of `source`, or convert it now."""
        kept = self._made.get(key)
        if kept is None or kept[0] is not source:
            kept = self._made[key] = source, make()
        return kept[1]


def _branches_by_place(messages: Sequence[Message], layout: Layout) -> dict[int, list[SessionEntry]]:
    """Return the branch entries by the place of the next message; entries in the covered part are in the summary."""
    if not layout.branches:
        return {}
    places = {message.id: place + 1 for place, message in enumerate(messages)}
    found: dict[int, list[SessionEntry]] = {}
    for entry in layout.branches:
        place = places.get(entry.after, 0) if entry.after is not None else 0
        if place >= layout.covers:
            found.setdefault(place, []).append(entry)
    return found


def _emptied(block: ToolResultBlock) -> ToolResultBlock:
    text = f"[the result of {block.tool_name or 'this call'} was removed to save space]"
    return attrs.evolve(block, content=(TextBlock(text=text),))


_LONGEST_RESULT = 2_000  # characters; the answer after a longer result repeats what matters of it


def pieces(messages: Sequence[Message], size: int) -> Iterator[str]:
    """Yield the transcript in pieces of about `size` characters at most, cut between messages if possible."""
    held: list[str] = []
    length = 0
    for line in _lines(messages):
        for part in [line[at : at + size] for at in range(0, len(line), size)]:
            if held and length + len(part) > size:
                yield "\n\n".join(held)
                held, length = [], 0
            held.append(part)
            length += len(part)
    if held:
        yield "\n\n".join(held)


def _lines(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        if message.role is not Role.SYSTEM:  # instructions stay in the context themselves
            yield from (f"[{message.role.value}] {text}" for block in message.content if (text := _text(block)))


def _text(block: ContentBlock) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ToolUseBlock):
        return f"called {block.name}({block.input_json})"
    if isinstance(block, ToolResultBlock):
        said = " ".join(filter(None, map(_text, block.content)))
        short = said if len(said) <= _LONGEST_RESULT else f"{said[:_LONGEST_RESULT]} [… {len(said)} characters]"
        return f"{'failed' if block.is_error else 'answered'}: {short}"
    return "" if block.type in ("thinking", "redacted_thinking", "opaque", "unknown") else f"({block.type})"


class SessionFacts(ConversationPort, Protocol):
    """The facts that compaction reads of a session during a turn, and the methods by which it adds entries."""

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """The session-only entries, oldest first; do not change it."""

    @property
    def window(self) -> int:
        """The context window of `model` in tokens; 0 when unknown."""

    def context(self) -> Sequence[Message]:
        """The messages that the next step would send."""

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> int:
        """Estimate the input tokens of messages and tools at `model`."""

    def add_entry(
        self,
        kind: EntryKind,
        content: str | Sequence[ContentBlock] = "",
        *,
        custom_type: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> SessionEntry:
        """Append a session-only entry of text or blocks."""


class SessionSteps(SessionFacts, Steps, Protocol):
    """A session's turn in progress, for blocking code."""

    def complete(self, messages: Sequence[Message]) -> Message:
        """Ask the turn's model outside the conversation, for example for a summary; nothing is stored."""


class AsyncSessionSteps(SessionFacts, AsyncSteps, Protocol):
    """`SessionSteps` for asynchronous code."""

    async def complete(self, messages: Sequence[Message]) -> Message:
        """See `SessionSteps.complete`."""


@attrs.frozen(kw_only=True)
class ToolPruning:
    """Leaves out the content of old tool results; the calls and their order stay.

    Attributes:
        keep: newest results that are kept, as a share of the token limit.
        least: the least saving that is worth a new prefix, as a share of the limit.
        shortest: tokens; shorter results are kept, because the note that replaces a result costs about as much.
    """

    keep: float = 0.25
    least: float = 0.05
    shortest: int = 100

    def apply(self, facts: SessionFacts, limit: int) -> Generator[Sequence[Message], Message, None]:
        """Store which results are left out from now on; asks no model."""
        old = self.choose(facts.messages, layout_of(facts.entries, facts.messages).covers, limit)
        fresh = sorted(set(old) - layout_of(facts.entries, facts.messages).pruned)
        saved = sum(weight(facts.messages[place]) for place in fresh)
        if fresh and saved >= self.least * limit:
            facts.add_entry(EntryKind.CUSTOM, custom_type=PRUNING, data={PRUNED: fresh, "tokens": saved})
        yield from ()

    def choose(self, messages: Sequence[Message], covers: int, limit: int) -> list[int]:
        """Return the places of the results that are old enough and long enough."""
        left = self.keep * limit
        seen = False  # results that the model has not answered to yet stay in any case
        chosen = []
        for place in range(len(messages) - 1, covers - 1, -1):
            message = messages[place]
            if message.role is not Role.TOOL:
                seen = True
                continue
            heavy = weight(message)
            if not seen or left > 0:
                left -= heavy
            elif heavy > self.shortest:
                chosen.append(place)
        return chosen


_SHORTEST_PIECE = 2_000  # characters; a limit below that is a mistake, not a reason to ask a thousand times
_INPUT_SHARE = 0.8  # of the window; the rest is for the summary and for the estimate's error

INSTRUCTION = """\
You write the memory of a conversation between a user and an assistant that goes on after you. Summarise the \
transcript for the assistant: the user's goals and exact requirements; decisions and their reasons; what was done and \
found, with names, paths, numbers and error messages as they were; what is unfinished and what comes next. Where the \
transcript begins with an earlier summary, keep what still matters of it. Write only the summary."""


@attrs.frozen(kw_only=True)
class Summary:
    """Replaces the oldest part of the context by a summary.

    Attributes:
        keep: newest messages that are kept word for word, as a share of the token limit.
        instruction: the system prompt for the summary.
    """

    keep: float = 0.25
    instruction: str = INSTRUCTION

    def apply(self, facts: SessionFacts, limit: int) -> Generator[Sequence[Message], Message, None]:
        """Ask for a summary and store it; without a summary the context is unchanged."""
        messages = facts.messages
        done = layout_of(facts.entries, facts.messages).covers
        covers = self.cut(messages, done, limit)
        if covers <= done:
            return
        before = facts.estimate(facts.context())
        text, answer = "", None
        for piece in self._pieces(facts, build_context(messages[:covers], facts.entries), limit):
            text_and_piece = f"<earlier-summary>\n{text}\n</earlier-summary>\n\n{piece}" if text else piece
            answer = yield [system(self.instruction), user(text_and_piece)]
            text = answer.text.strip()
            if not text or answer.metadata.status is not MessageStatus.COMPLETE:
                _log.warning("session %s: the model wrote no summary, the context is unchanged", facts.id)
                return
        if answer is not None:
            facts.add_entry(EntryKind.COMPACTION_SUMMARY, text, data=_account(answer, covers, before))

    def _pieces(self, facts: SessionFacts, covered: Sequence[Message], limit: int) -> list[str]:
        """Return the transcript, in as few pieces as fit the model by the provider's estimate."""
        most = max(limit, int((facts.window or UNKNOWN_WINDOW) * _INPUT_SHARE))
        size = 2 * LETTERS_PER_TOKEN * sum(map(weight, covered))  # and as much for the roles
        while size > _SHORTEST_PIECE:
            first = next(pieces(covered, size), "")
            if facts.estimate([system(self.instruction), user(first)]) <= most:
                break
            size = size * 3 // 4
        return list(pieces(covered, max(size, 1)))

    def cut(self, messages: Sequence[Message], done: int, limit: int) -> int:
        """Return how many messages the summary may replace: never part of a batch of calls, and never the question.

        The question under way is only cut off from what followed it when both together would fill the limit anyway.
        """
        left = self.keep * limit
        best = len(messages)
        for place in range(len(messages) - 1, done - 1, -1):
            left -= weight(messages[place])
            if left < 0 and best < len(messages):
                break
            if messages[place].role in (Role.USER, Role.ASSISTANT):
                best = place
        question = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.USER), best)
        if question < best and sum(map(weight, messages[question:])) <= limit / 2:
            best = question
        return best if best < len(messages) else done


def _account(answer: Message, covers: int, before: int) -> dict[str, object]:
    usage = answer.metadata.usage
    cost = None if usage is None or usage.cost_usd is None else str(usage.cost_usd)
    return {COVERS: covers, "tokens_before": before, "model": answer.metadata.model, "cost_usd": cost}


class CompactionPolicy(Protocol):
    """One way to make the context smaller."""

    def apply(self, facts: SessionFacts, limit: int) -> Generator[Sequence[Message], Message, None]:
        """Add entries that make the context smaller; yields messages for a model, and is sent its answer.

        Args:
            facts: the turn; add entries by `add_entry`.
            limit: tokens that the context must not exceed.
        """


UNKNOWN_WINDOW = 32_000
"""Assumed tokens of a model's context window if it is unknown, with one warning for each model."""


def reported_tokens(messages: Sequence[Message], entries: Sequence[SessionEntry], model: str) -> int | None:
    """Return the size of a context by the tokens that a service reported for its last answer; None without a report.

    The messages after that answer are estimated. An answer of another provider, or from before a compaction, counts
    another context.
    """
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        known = message.metadata
        if message.role is not Role.ASSISTANT or known.status is not MessageStatus.COMPLETE or known.usage is None:
            continue
        given, made = known.usage.input_tokens, known.usage.output_tokens
        changed = any(entry.after is not None and entry.after >= message.id for entry in entries)
        if given is None or made is None or changed or known.provider != model.partition(":")[0]:
            return None
        return given + made + sum(map(weight, messages[at + 1 :]))
    return None


def _places() -> dict[str, str]:
    policies = dict.fromkeys(("keep", "instruction"), "pass it to a policy: Compaction(policies=[Summary({}=…)])")
    return policies | dict.fromkeys(("max_tokens", "threshold", "window"), "use limit=…, in tokens, or share=…")


class Compaction:
    """Keeps a session's context under a limit; pass it to a session as its compactor.

    The size is the number of tokens that the service reported for the last answer, or the provider's estimate if that
    is larger, for example after long tool results.

    Args:
        limit: tokens; None: a share of the model's context window, or of 32,000 tokens if the window is unknown.
        share: part of the window for input; the rest is for the answer and for the estimate's error.
        policies: tried in order until the context is under the limit.
        tools: the tools that are sent with the messages, for the estimate.
    """

    @explain_arguments(places=_places)
    def __init__(
        self,
        *,
        limit: int | None = None,
        share: float = 0.8,
        policies: Sequence[CompactionPolicy] | None = None,
        tools: Sequence[ToolDefinition] = (),
    ) -> None:
        if not 0 < share <= 1:
            raise CallerError(f"share must be above 0 and at most 1, not {share}")
        self._limit = limit
        self._share = share
        self._policies = (ToolPruning(), Summary()) if policies is None else tuple(policies)
        self._tools = tools
        self._unknown: set[str] = set()  # models whose window is unknown, and that the log has named

    def compact(self, steps: SessionSteps) -> None:
        """Make the context smaller if it is over the limit; a failed summary is logged and the turn continues."""
        course = self._course(steps)
        try:
            wanted = next(course)
            while True:
                wanted = course.send(steps.complete(wanted))
        except StopIteration:
            pass
        except (ProviderError, WireError) as error:
            _given_up(steps, error)

    async def compact_async(self, steps: AsyncSessionSteps) -> None:
        """As `compact`."""
        course = self._course(steps)
        try:
            wanted = next(course)
            while True:
                wanted = course.send(await steps.complete(wanted))
        except StopIteration:
            pass
        except (ProviderError, WireError) as error:
            _given_up(steps, error)

    def over(self, facts: SessionFacts) -> int:
        """Return by how many tokens the context is over the limit; 0 when it fits."""
        context = facts.context()
        reported = reported_tokens(context, facts.entries, facts.model) or 0
        return max(reported - self._tokens(facts), facts.estimate(context, self._tools) - self._tokens(facts), 0)

    def _tokens(self, facts: SessionFacts) -> int:
        if self._limit is not None:
            return self._limit
        if not facts.window and facts.model not in self._unknown:
            self._unknown.add(facts.model)
            how = "pass limit= if it is another"
            _log.warning("the context window of %s is unknown; it is taken as %d: %s", facts.model, UNKNOWN_WINDOW, how)
        return int((facts.window or UNKNOWN_WINDOW) * self._share)

    def _course(self, facts: SessionFacts) -> Generator[Sequence[Message], Message, None]:
        for policy in self._policies:
            if not self.over(facts):
                return
            yield from policy.apply(facts, self._tokens(facts))
        if left := self.over(facts):
            _log.warning("session %s: the context is still %d tokens over the limit", facts.id, left)


def _given_up(facts: SessionFacts, error: Exception) -> None:
    _log.warning("session %s: cannot create a summary, the context is unchanged: %s", facts.id, error)
