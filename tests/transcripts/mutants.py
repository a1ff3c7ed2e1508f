"""Broken readers and writers, one fault each: does the suite find it? `python -m tests.transcripts.mutants` prints.

A mutant is found when a law of `check_format` does not hold, or a second reader reads another conversation. The files
are the small history, the documents' examples, and a tree with a branch and a compaction; of formats that are
only read, whose readers alone are broken, the samples of `agent_samples` with their facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import attrs
import orjson

from interlingua.types import (
    ContentBlock,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_transcripts import (
    Conversation,
    MessageGroup,
    ReadPlan,
    SessionFormat,
    Written,
    read_transcript,
    session_format,
)
from interlingua_transcripts.contract import check_format
from tests.transcripts import agent_readers
from tests.transcripts.agent_samples import FACTS, SAMPLES, Facts
from tests.transcripts.histories import own_file, writable_systems
from tests.transcripts.second_readers import READERS
from tests.transcripts.test_documents import FILES
from tests.transcripts.test_files import FILE, lines
from tests.transcripts.test_second_readers import compare, items_of

_STAMP = {"timestamp": "2026-02-01T11:00:00.000Z"}
_COMPACTED = FILE + lines(
    {"type": "compaction", "id": "bbbbbbb1", "parentId": "aaaaaaa6", **_STAMP, "summary": "The first summary.",
     "firstKeptEntryId": "aaaaaaa4", "tokensBefore": 9},
    {"type": "compaction", "id": "bbbbbbb2", "parentId": "bbbbbbb1", **_STAMP, "summary": "The second summary.",
     "firstKeptEntryId": "aaaaaaa6", "tokensBefore": 9},
)  # fmt: skip

Blocks = Callable[[ContentBlock], ContentBlock | None]


def _each(change: Blocks) -> Callable[[list[Message]], list[Message]]:
    """Return a mutation of every block; None leaves it out."""

    def mutated(messages: list[Message]) -> list[Message]:
        made = []
        for message in messages:
            content = [block for block in map(change, message.content) if block is not None]
            made.append(attrs.evolve(message, content=content))
        return [message for message in made if message.content]

    return mutated


def _of(kind: type, change: Callable[[Any], ContentBlock | None]) -> Callable[[list[Message]], list[Message]]:
    return _each(lambda block: change(block) if isinstance(block, kind) else block)


def _facts(**facts: Any) -> Callable[[list[Message]], list[Message]]:
    def mutated(messages: list[Message]) -> list[Message]:
        return [attrs.evolve(one, metadata=attrs.evolve(one.metadata, **facts)) for one in messages]

    return mutated


def _roles(old: Role, new: Role) -> Callable[[list[Message]], list[Message]]:
    return lambda messages: [attrs.evolve(one, role=new) if one.role is old else one for one in messages]


def _doubled(messages: list[Message]) -> list[Message]:
    return [
        attrs.evolve(one, content=[*one.content, *[block for block in one.content if isinstance(block, TextBlock)]])
        for one in messages
    ]


def _swapped_blocks(messages: list[Message]) -> list[Message]:
    return [attrs.evolve(one, content=list(reversed(one.content))) for one in messages]


def _one_call(messages: list[Message]) -> list[Message]:
    found = []
    for message in messages:
        calls = message.tool_calls[1:]
        found.append(attrs.evolve(message, content=[block for block in message.content if block not in calls]))
    return found


def _smaller(call: ToolUseBlock) -> ToolUseBlock:
    return attrs.evolve(call, input=dict(list(call.input.items())[:-1]), raw_input=None)


def _is_media(block: ContentBlock) -> bool:
    return hasattr(block, "source")


MESSAGES: Mapping[str, Callable[[list[Message]], list[Message]]] = {
    "drops every result": _of(ToolResultBlock, lambda _: None),
    "drops failed results": _of(ToolResultBlock, lambda block: None if block.is_error else block),
    "drops what results say": _of(ToolResultBlock, lambda block: attrs.evolve(block, content=())),
    "drops the mark of failed results": _of(ToolResultBlock, lambda block: attrs.evolve(block, is_error=False)),
    "marks every result as failed": _of(ToolResultBlock, lambda block: attrs.evolve(block, is_error=True)),
    "drops every call": _of(ToolUseBlock, lambda _: None),
    "drops calls after the first": _one_call,
    "drops the last argument of calls": _of(ToolUseBlock, _smaller),
    "names every call read": _of(ToolUseBlock, lambda block: attrs.evolve(block, name="read")),
    "drops thinking": _of(ThinkingBlock, lambda _: None),
    "makes thinking text": _of(ThinkingBlock, lambda block: TextBlock(text=block.text)),
    "drops signatures of thinking": _of(ThinkingBlock, lambda block: attrs.evolve(block, signature=None)),
    "cuts signatures of thinking": _of(
        ThinkingBlock, lambda block: attrs.evolve(block, signature=(block.signature or "")[:4] or None)
    ),
    "drops pictures": _each(lambda block: None if _is_media(block) else block),
    "doubles texts": _doubled,
    "cuts texts": _of(TextBlock, lambda block: attrs.evolve(block, text=block.text[:12])),
    "drops what is not ASCII": _of(
        TextBlock, lambda block: attrs.evolve(block, text=block.text.encode("ascii", "ignore").decode())
    ),
    "drops texts of answers": lambda messages: [
        attrs.evolve(one, content=[block for block in one.content if not isinstance(block, TextBlock)])
        if one.role is Role.ASSISTANT
        else one
        for one in messages
    ],
    "turns blocks round": _swapped_blocks,
    "makes answers the user's": _roles(Role.ASSISTANT, Role.USER),
    "makes the user's messages answers": _roles(Role.USER, Role.ASSISTANT),
    "drops usage": _facts(usage=None),
    "drops the model": _facts(model=None),
}


def _plan_without(drop: Callable[[Sequence[MessageGroup]], list[MessageGroup]]) -> Callable[[ReadPlan], None]:
    def mutated(plan: ReadPlan) -> None:
        plan.groups[:] = drop(plan.groups)
        if plan.context is not None:
            plan.context = [at for at in plan.context if (at if isinstance(at, int) else at[0]) < len(plan.groups)]

    return mutated


def _whole_context(plan: ReadPlan) -> None:
    if plan.context is not None:
        plan.context = list(range(len(plan.groups)))


PLANS: Mapping[str, Callable[[ReadPlan], None]] = {
    "drops the first message": _plan_without(lambda groups: list(groups[1:])),
    "drops the last message": _plan_without(lambda groups: list(groups[:-1])),
    "drops every third message": _plan_without(lambda groups: [one for at, one in enumerate(groups) if at % 3 != 2]),
    "turns the conversation round": _plan_without(lambda groups: list(reversed(groups))),
    "swaps two messages": _plan_without(lambda groups: [*groups[1::-1], *groups[2:]]),
}


def _doubled_entries(written: list[Written]) -> list[Written]:
    return [one for entry in written for one in ([entry, entry] if entry.messages else [entry])]


def _as_answers(written: list[Written]) -> list[Written]:
    made = [orjson.dumps(one.value) for one in written]
    answer = b'"gemini"' if any(b'"type":"gemini"' in text for text in made) else b'"assistant"'
    texts = [text.replace(b'"user"', answer) for text in made]
    return [attrs_written(one, orjson.loads(text)) for one, text in zip(written, texts, strict=True)]


ENTRIES: Mapping[str, Callable[[list[Written]], list[Written]]] = {
    "writes every entry twice": _doubled_entries,
    "writes no last entry": lambda written: written[:-1],
    "writes two entries the wrong way round": lambda written: [*written[:-2], *reversed(written[-2:])],
    "writes no entry of a tool": lambda written: [
        one for one in written if b"tool" not in orjson.dumps(one.value).lower()
    ],
    "writes the user's entries as answers": _as_answers,
}


def attrs_written(entry: Written, value: Any) -> Written:
    """Return an entry with another value."""
    return entry._replace(value=value)


def mutants() -> Iterator[tuple[str, str]]:
    """Yield the step and the name of each mutant."""
    yield from (("read", name) for name in MESSAGES)
    yield from (("plan", name) for name in PLANS)
    yield from (("write", name) for name in MESSAGES)
    yield from (("entries", name) for name in ENTRIES)


_FACTS: Mapping[bytes, Facts] = {data: FACTS.get(name, Facts()) for name, data in SAMPLES.items()}

SAME: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("entries", "writes two entries the wrong way round"): ("wolo",),  # Wolo orders messages by their time
    ("read", "drops the model"): ("wolo",),  # its files name none; what the reader adds, test_statements tries
}
"""Mutants that change no conversation of these files, and in which systems."""


@contextmanager
def broken(system: SessionFormat, step: str, name: str) -> Iterator[None]:
    """Break a system for a while."""
    kind = type(system)
    read, plan, write = kind.to_messages, kind.plan, kind.write

    def to_messages(self: SessionFormat, *arguments: Any) -> list[Message]:
        return MESSAGES[name](list(read(self, *arguments)))

    def planned(self: SessionFormat, values: Sequence[Any]) -> ReadPlan:
        found = plan(self, values)
        PLANS[name](found)
        return found

    def written(self: SessionFormat, conversation: Conversation) -> Iterator[Written]:
        changed = MESSAGES[name](list(conversation.messages))
        return write(self, attrs.evolve(conversation, messages=changed))

    def entries(self: SessionFormat, conversation: Conversation) -> Iterator[Written]:
        return iter(ENTRIES[name](list(write(self, conversation))))

    member, made = {
        "read": ("to_messages", to_messages),
        "plan": ("plan", planned),
        "write": ("write", written),
        "entries": ("write", entries),
    }[step]
    with patch.object(kind, member, made):
        yield


def read_systems() -> list[SessionFormat]:
    """Return the systems whose files are only read."""
    names = dict.fromkeys(name.partition(",")[0] for name in SAMPLES)
    return [system for system in map(session_format, names) if not system.writable]


@cache
def files_of(name: str) -> list[bytes]:
    """Return the files that a system is tried with."""
    system = session_format(name)
    if not system.writable:
        return [data for title, data in SAMPLES.items() if title.partition(",")[0] == name]
    found = [own_file(system), *[data for title, data in FILES.items() if title.partition(",")[0] == name]]
    return [*found, FILE, _COMPACTED] if name == "pi" else found


def fault(system: SessionFormat, files: Sequence[bytes]) -> str:
    """Return what the suite finds wrong; "" for nothing."""
    try:
        for data in files:
            reader = (READERS if system.writable else agent_readers.READERS)[system.name]
            found = compare(reader(data), list(items_of(read_transcript(data, system).messages)))
            if found.count:
                return f"second reader: {len(found.missing)} missing, {len(found.doubled)} doubled, order {found.order}"
            facts = agent_readers.facts_of(read_transcript(data, system).messages)
            if not system.writable and facts != _FACTS[data]:
                return f"other facts: {facts}"
        check_format(system, files)
    except Exception as error:  # a broken writer may fail anywhere
        return f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
    return ""


def has_effect(system: SessionFormat, step: str, name: str, files: Sequence[bytes]) -> bool:
    """Tell whether a mutant reads or writes anything else than the system does."""

    def outcome() -> list[Any]:
        made: list[Any] = []
        for data in files:
            try:
                made.append(read_transcript(data, system).messages)
            except Exception as error:
                made.append(repr(error))
        try:
            made.append(own_file(system))
        except Exception as error:
            made.append(repr(error))
        return made

    before = outcome()
    with broken(system, step, name):
        return outcome() != before


def tried(step: str, name: str) -> Iterator[tuple[str, str | None]]:
    """Yield each system with what found the mutant; "" where nothing did, None where it changes nothing."""
    for system in [*writable_systems(), *(read_systems() if step in ("read", "plan") else ())]:
        files = files_of(system.name)
        if not has_effect(system, step, name, files):
            yield system.name, None
            continue
        with broken(system, step, name):
            yield system.name, fault(system, files)


def _print() -> None:
    count = found = 0
    print("| step | mutant | found | not found in | no effect in |\n|---|---|---|---|---|")
    for step, name in mutants():
        results = dict(tried(step, name))
        missed = [system for system, why in results.items() if why == ""]
        idle = [system for system, why in results.items() if why is None]
        made = len(results) - len(idle)
        count, found = count + made, found + made - len(missed)
        print(
            f"| {step} | {name} | {made - len(missed)} of {made} | {', '.join(missed)} | {', '.join(idle)} |",
            flush=True,
        )
    print(f"\n{found} of {count} found")


if __name__ == "__main__":
    _print()
