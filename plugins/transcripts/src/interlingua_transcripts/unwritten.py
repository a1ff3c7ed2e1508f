"""Count what a session's messages hold and a written file does not, by blocks and facts, found by value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from interlingua.codec import encode_message
from interlingua.types import (
    ContentBlock,
    Message,
    MessageStatus,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts.opened import OpenTranscript, open_entries
from interlingua_transcripts.system import SessionFormat, session_format
from interlingua_transcripts.transcript import Transcript
from interlingua_transcripts.values import Haystack, find_form, leaves
from interlingua_transcripts.writing import new_conversation, write_entries
from interlingua_transcripts.written import WrittenEntries


def count_unwritten(transcript: Transcript | OpenTranscript, target: str | SessionFormat) -> Counter[str]:
    """Count what a file written for a system does not get of a session's messages: words such as `images` -> how many.

    For the session's own system, messages that are unchanged are not read: their entries are written unchanged.

    Args:
        transcript: the session.
        target: the system that the file is written for.

    Raises:
        TranscriptError: the system's files are only read, or cannot hold this conversation.
    """
    system = target if isinstance(target, SessionFormat) else session_format(target)
    found: Counter[str] = Counter()
    if isinstance(transcript, OpenTranscript):
        if system.name == transcript.system.name:
            return found
        transcript = transcript.transcript()
    if system.name == transcript.system and transcript.entries:
        _count_changed(found, transcript, system)
        return found
    issued: dict[str, str] = {}
    with WrittenEntries.of(system, new_conversation(transcript, transcript.messages, system)) as written:
        for message in transcript.messages:
            _count_message(found, message, [*written.stacks([message.id]), written.header], issued)
        if ends := _ends(transcript.messages):  # the words for them differ: the file tells what is read of it
            found["stop reason"] = (ends - _ends(open_entries(system, written.entries))).total()
    return +found


def _ends(messages: Iterable[Message]) -> Counter[StopReason]:
    """Count the ends of answers that their content does not show."""
    ends = (message.metadata.stop_reason for message in messages)
    return Counter(end for end in ends if end not in (None, StopReason.END_TURN, StopReason.TOOL_USE))


def count_missing(messages: Sequence[Message], found: Sequence[Message]) -> Counter[str]:
    """Count what other messages lack of a conversation, by value; their calls have other ids, and the issued ones."""
    stack = Haystack(*[encode_message(message) for message in found])
    missing: Counter[str] = Counter()
    issued: dict[str, str] = {}
    for message in messages:
        _count_message(missing, message, [stack], issued)
    return missing


def describe_unwritten(found: Counter[str], target: str) -> str:
    """Return the counts in one line; "" for nothing."""
    if not found:
        return ""
    parts = [f"{count:,} {word if count == 1 else _plural(word)}" for word, count in found.most_common()]
    return f"not in the {session_format(target).title} file: {', '.join(parts)}"


def _plural(word: str) -> str:
    head, of, rest = word.partition(" of ")
    return f"{head}s{of}{rest}" if not head.endswith("s") else word


def _count_changed(found: Counter[str], transcript: Transcript, system: SessionFormat) -> None:
    """Count what the entries that were changed or added lack of the messages that were changed or added."""
    before = open_entries(system, transcript.entries)
    old = {message.id: message for message in before} if _is_changed(before, transcript) else {}
    if not old:
        return
    kept = Counter(map(hash, transcript.entries))
    stack = Haystack()
    for entry in write_entries(transcript, system):
        if kept[hash(entry)] > 0:
            kept[hash(entry)] -= 1
        else:
            stack.add(system.load(entry))
    issued: dict[str, str] = {}
    for message in transcript.messages:
        issued.update(_issued_by(message))
        if old.get(message.id) != message:
            _count_message(found, message, [stack], issued)


def _is_changed(before: OpenTranscript, transcript: Transcript) -> bool:
    return any(one != other for one, other in zip_longest(before, transcript.messages))


def _issued_by(message: Message) -> dict[str, str]:
    return {call.id: call.provider_id or call.id for call in message.tool_calls}


def _count_message(found: Counter[str], message: Message, stacks: Sequence[Haystack], issued: dict[str, str]) -> None:
    issued.update(_issued_by(message))
    for block in message.content:
        found.update(_missing(block, stacks, issued))
    metadata = message.metadata
    if message.role is Role.ASSISTANT:
        if metadata.model is not None and not _has(metadata.model, stacks) and not _has(_name(metadata.model), stacks):
            found["model name"] += 1
        if metadata.usage is not None:
            found.update(_missing_usage(metadata.usage, stacks))
        if metadata.error is not None and metadata.error.message and not _has(metadata.error.message, stacks):
            found["error message"] += 1
        if metadata.status is MessageStatus.CANCELLED and not any(
            stack.has(word) for stack in stacks for word in ("cancelled", "aborted", "abort", "partial")
        ):
            found["mark of a stopped answer"] += 1


def _name(model: str) -> str:
    return model.partition(":")[2]


def _missing_usage(usage: Usage, stacks: Sequence[Haystack]) -> Iterator[str]:
    if usage.output_tokens and not _has(usage.output_tokens, stacks):
        yield "token count"
    if usage.cost_usd and not _has(str(usage.cost_usd), stacks) and not _has(float(usage.cost_usd), stacks):
        yield "cost"


def _missing(block: ContentBlock, stacks: Sequence[Haystack], issued: dict[str, str]) -> Iterator[str]:
    """Yield a word for each part of a block that is not there."""
    if isinstance(block, ToolUseBlock):
        yield from _missing_call(block, stacks)
    elif isinstance(block, ToolResultBlock):
        yield from _missing_result(block, stacks, issued)
    else:
        word, value, signature = _said(block)
        if not all(_take(leaf, stacks) for _, leaf in leaves(value)):
            yield word
        elif signature is not None and not _take(signature, stacks):
            yield f"signature of {word.removesuffix(' block')}"


def _said(block: ContentBlock) -> tuple[str, Any, str | None]:
    """Return what a block is called, the value that it holds, and its signature."""
    if isinstance(block, TextBlock):
        return "text", block.text, block.signature
    if isinstance(block, ThinkingBlock):
        return "thinking block", block.text, block.signature
    if isinstance(block, RedactedThinkingBlock):
        return "redacted thinking block", block.data, None
    source = getattr(block, "source", None)
    if source is not None:
        return block.type, source.data, None
    data = block.data if isinstance(block, OpaqueBlock) else None
    return "block of a provider's own", data, None


def _missing_call(block: ToolUseBlock, stacks: Sequence[Haystack]) -> Iterator[str]:
    raw = block.raw_input
    there = _take(block.name, stacks) and ((raw is not None and _take(raw, stacks)) or _has_values(block, stacks))
    if not there:
        yield "call"
    elif block.parse_error is not None and not _take(block.parse_error, stacks):
        yield "fault of arguments"


def _missing_result(block: ToolResultBlock, stacks: Sequence[Haystack], issued: dict[str, str]) -> Iterator[str]:
    texts = [inner for inner in block.content if isinstance(inner, TextBlock)]
    own = issued.get(block.tool_use_id, block.tool_use_id)
    if not _has(own, stacks) and not any(stack.was(own) for stack in stacks):
        yield "result"
        return
    if not all(_take(inner.text, stacks) for inner in texts):
        yield "result"
    elif block.is_error and not any(_says_failed(stack) for stack in stacks):
        yield "mark of a failed result"
    for inner in block.content:
        if not isinstance(inner, TextBlock):
            yield from (f"{word} of a result" for word in _missing(inner, stacks, issued))
    for name, value in (("details", block.details), ("metadata", block.metadata or None)):
        if value is not None and not all(_take(leaf, stacks) for _, leaf in leaves(value)):
            yield f"{name} of a result"


def _says_failed(stack: Haystack) -> bool:
    return "error" in stack.names or any(stack.has(word) for word in (True, "error", "failed"))


def _has_values(block: ToolUseBlock, stacks: Sequence[Haystack]) -> bool:
    return all(_take(leaf, stacks) for _, leaf in leaves(block.input))


def _take(value: Any, stacks: Sequence[Haystack]) -> bool:
    return any(stack.take(value) for stack in stacks) or find_form(value, stacks) is not None


def _has(value: Any, stacks: Sequence[Haystack]) -> bool:
    return any(stack.has(value) for stack in stacks)
