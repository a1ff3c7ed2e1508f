"""Rules across messages: identity, and that calls and results belong together.

Never looks into a message again: it works on what was learnt about each one. The check module comes in.
Messages that are not COMPLETE are known, so that results may answer their calls, but never blamed (seed 003 §5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from interlingua.invariants.violation import Violation, broken, rule
from interlingua.messages import Message, Role


class Learnt(NamedTuple):
    """What one message tells about its place in a conversation; remembered on the message.

    Attributes:
        complete: False for messages no rule blames.
        ulid: the id of a generated message when it is a ULID, else "".
        calls: (block index, call id) of each tool call.
        results: (block index, call id) of each result.
        violations: of the rules on single messages.
    """

    complete: bool
    ulid: str
    calls: tuple[tuple[int, str], ...]
    results: tuple[tuple[int, str], ...]
    violations: tuple[Violation, ...]


Known = Sequence[tuple[Message, Learnt]]


@rule
def i17_one_session(known: Known) -> Iterator[Violation]:
    """All messages of a conversation belong to one session (seed 003 §4.1). No wire sees it."""
    first = next((message.session_id for message, learnt in known if learnt.complete), None)
    for index, (message, learnt) in enumerate(known):
        if learnt.complete and message.session_id != first:
            text = f"session {message.session_id!r}, the conversation began in {first!r}"
            yield _at(i17_one_session, index, "session_id", text, message)


@rule
def i18_ids_are_unique(known: Known) -> Iterator[Violation]:
    """No two messages of a conversation share an id (seed 003 §6.1). No wire sees it."""
    seen: dict[str, int] = {}
    for index, (message, learnt) in enumerate(known):
        if learnt.complete and seen.setdefault(message.id, index) != index:
            text = f"{message.id!r} is the id of messages[{seen[message.id]}] too"
            yield _at(i18_ids_are_unique, index, "id", text, message)


@rule
def i19_generated_ids_increase(known: Known) -> Iterator[Violation]:
    """The ULIDs of generated messages increase along a conversation (seed 003 §6.1). No wire sees it."""
    last = ""
    for index, (message, learnt) in enumerate(known):
        if learnt.ulid and learnt.ulid < last:
            text = f"{learnt.ulid} was minted before {last}, which stands before it"
            yield _at(i19_generated_ids_increase, index, "id", text, message)
        last = max(last, learnt.ulid)


@rule
def i20_call_ids_are_unique(known: Known) -> Iterator[Violation]:
    """No two calls of a conversation share an id (seed 003 §6.2). Projection gives the later one another."""
    seen: set[str] = set()
    for index, (message, learnt) in enumerate(known):
        for place, call in learnt.calls:
            if learnt.complete and call in seen:
                text = f"{call!r} is the id of an earlier call too"
                yield _at(i20_call_ids_are_unique, index, f"content[{place}].id", text, message)
            seen.add(call)


@rule
def i21_results_answer_earlier_calls(known: Known) -> Iterator[Violation]:
    """Each result answers a call that stands before it, and no call is answered twice (seed 003 §4.2, §5).

    Projection leaves orphans out (REGRESSIONS case 08).
    """
    this = i21_results_answer_earlier_calls
    open_calls: dict[str, bool] = {}
    for index, (message, learnt) in enumerate(known):
        for place, call in learnt.results:
            if learnt.complete and not open_calls.get(call):
                text = f"{call!r} {'was answered before' if call in open_calls else 'is no call that stands before it'}"
                yield _at(this, index, f"content[{place}].tool_use_id", text, message)
            if call in open_calls:
                open_calls[call] = False
        for _, call in learnt.calls:
            open_calls[call] = True


@rule
def i22_calls_are_answered(known: Known) -> Iterator[Violation]:
    """Each call is answered before the next user or assistant message (seed 003 §5).

    Projection fills in an error result (REGRESSIONS case 07). At the end of a conversation a call may still be open.
    """
    waiting: dict[str, tuple[int, int]] = {}
    for index, (message, learnt) in enumerate(known):
        if message.role is Role.USER or message.role is Role.ASSISTANT:
            for call, (asked, place) in waiting.items():
                text = f"{call!r} has no answer before messages[{index}]"
                yield _at(i22_calls_are_answered, asked, f"content[{place}]", text, known[asked][0])
            waiting.clear()
        for _, call in learnt.results:
            waiting.pop(call, None)
        if learnt.complete:
            waiting.update({call: (index, place) for place, call in learnt.calls})


ORDER_RULES: tuple[Callable[[Known], Iterator[Violation]], ...] = (
    i17_one_session,
    i18_ids_are_unique,
    i19_generated_ids_increase,
    i20_call_ids_are_unique,
    i21_results_answer_earlier_calls,
    i22_calls_are_answered,
)


def _at(function: Callable[..., object], index: int, path: str, text: str, message: Message) -> Violation:
    where = f"messages[{index}].{path}"
    return broken(function, where, text, repairable=True, message_id=message.id)
