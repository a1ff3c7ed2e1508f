"""Find what a provider would reject in a stored conversation, and repair a copy of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from interlingua import validate_conversation
from interlingua._request.prepare import RequestDraft
from interlingua._request.project import MISSING_RESULT
from interlingua.codec import dumps_message, encode_message
from interlingua.errors import CapabilityError, InvalidConversationError
from interlingua.plugins import estimate_tokens
from interlingua.types import (
    ContentBlock,
    Message,
    MessageStatus,
    Provenance,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    split_tool_results,
    tool_result,
)
from interlingua_cli.doctor.findings import Diagnosis, DoctorFinding, DoctorRecord, read_lines
from interlingua_cli.foreign import refuse_foreign
from interlingua_cli.lint import lint_request
from interlingua_cli.plan import add_next_message

# citations of findings
_EMPTY = "format.md, Projection"
_UNFINISHED = "format.md, Status and errors"
_DANGLING = "format.md, Rule 22"
_ORPHAN = "format.md, Rule 21"
_MISPLACED = "format.md, Rule 5"
_LAST_ANSWER = "documented by services that continue an answer, and by those that do not"
_CAPABILITIES = "the target's capabilities"
_ADD_MESSAGE = "add a user message before sending"

_DESCRIPTIONS = {
    "empty-text": "blank text, which providers reject",
    "half-done": "an unfinished part of an interrupted answer: a call without whole arguments, or unsigned thinking",
}


def examine(lines: Iterable[bytes], file: str = "the file") -> Diagnosis:
    """Examine a conversation stored as JSON Lines.

    Args:
        lines: lines of the file.
        file: name of the file, for the error.

    Raises:
        DecodeError: the file is another program's session file; the message says what to do.
    """
    read = list(lines)
    refuse_foreign(read, file)
    findings: list[DoctorFinding] = []
    before, after = read_lines(read, findings)
    after = [line for line in after if not isinstance(line, DoctorRecord) or _repair_content(line, findings)]
    records = [line for line in after if isinstance(line, DoctorRecord)]
    if len(records) == len(after):
        records = [part for record in records for part in _split_results(record, findings)]
        records = _CallRepair(records, findings).run()
        _repair_ending(records, findings)
        findings += _check_rules(records)
        after = [*records]
    order = sorted(findings, key=lambda finding: finding.line or 0)
    return Diagnosis(findings=tuple(order), before=before, after=tuple(after))


def _check_rules(records: list[DoctorRecord]) -> Iterable[DoctorFinding]:
    """Yield the violations of numbered rules that remain after the repair."""
    numbers = {record.message.id: record.number for record in records}
    for broken in validate_conversation([record.message for record in records]):
        if broken.repairable:
            continue
        yield DoctorFinding(
            rule=f"rule-{broken.number:02}",
            line=numbers.get(broken.message_id or ""),
            path=broken.path.partition("].")[2],
            message=broken.message,
            citation=f"format.md, Rule {broken.number}",
            hint="change the line by hand",
        )


def check_target(
    messages: Sequence[Message], plan: Callable[[Sequence[Message]], RequestDraft]
) -> tuple[DoctorFinding, ...]:
    """Return what one target would reject: by its capabilities, its context window and its linter; nothing is sent.

    A conversation that ends with an answer is checked with a next user message; what the target rejects without that
    message is a note.
    """
    if not messages:
        return ()
    found = _check_request(messages, plan)
    continued = add_next_message(messages)
    if continued is messages:
        return found
    answered = _check_request(continued, plan)
    rules = {finding.rule for finding in answered}
    notes = (attrs.evolve(each, note=True, hint=_ADD_MESSAGE) for each in found if each.rule not in rules)
    return (*answered, *notes)


def _check_request(
    messages: Sequence[Message], plan: Callable[[Sequence[Message]], RequestDraft]
) -> tuple[DoctorFinding, ...]:
    try:
        request = plan(messages)
    except CapabilityError as error:
        hint = "choose another target, or change the content it cannot take"
        return (DoctorFinding(rule="cannot", path=error.path, message=str(error), citation=_CAPABILITIES, hint=hint),)
    except InvalidConversationError:
        return ()  # `examine` reports broken rules
    hint = "see the loss ledger (`explain`) for what this part of the request was made of"
    findings = [
        DoctorFinding(rule=found.rule, path=f"request.{found.path}" if found.path else "request", message=found.message,
                citation=found.citation, hint=hint)
        for found in lint_request(request.provider, request.wire)
    ]  # fmt: skip
    window = request.target.capabilities.max_context_tokens
    tokens = estimate_tokens(request.provider, request.messages, request.tools, request.options)
    if window and tokens > window:
        what = f"about {tokens:,} input tokens, but the window has {window:,}"
        hint = "compact the conversation"
        findings.append(DoctorFinding(rule="too-long", path="request", message=what, citation=_CAPABILITIES, hint=hint))
    return tuple(findings)


def _repair_content(record: DoctorRecord, findings: list[DoctorFinding]) -> bool:
    """Remove content that no provider accepts from a message; return False if nothing is left."""
    unfinished = record.message.metadata.status is not MessageStatus.COMPLETE
    _remove(record, lambda block: unfinished and _is_half_done(block), "half-done", _UNFINISHED, findings)
    _remove(record, _is_empty_text, "empty-text", _EMPTY, findings)
    _clean_results(record, findings)
    message = record.message
    if message.content or message.role is Role.SYSTEM:
        return True
    was = encode_message(message)
    findings.append(record.finding("empty-message", "", "a message without content", _EMPTY, "removed", was=was))
    return False


def _is_empty_text(block: ContentBlock) -> bool:
    return type(block) is TextBlock and not block.text.strip() and block.signature is None


def _is_half_done(block: ContentBlock) -> bool:
    if type(block) is ToolUseBlock:
        return block.parse_error is not None
    return type(block) is ThinkingBlock and not block.signature


def _remove(
    record: DoctorRecord, bad: Callable[[ContentBlock], bool], rule: str, citation: str, findings: list[DoctorFinding]
) -> None:
    places = [at for at, block in enumerate(record.message.content) if bad(block)]
    _drop_blocks(record, places, rule, _DESCRIPTIONS[rule], citation, findings, hint="change it, or unmark it")


def _drop_blocks(
    record: DoctorRecord,
    places: Sequence[int],
    rule: str,
    what: str,
    citation: str,
    findings: list[DoctorFinding],
    *,
    hint: str,
) -> None:
    """Remove these blocks except critical ones, and report both; `critical` still refers to the same blocks."""
    message, critical = record.message, record.message.metadata.critical
    stays = f"{what}; it is marked critical and kept"
    findings += [record.finding(rule, f"content[{at}]", stays, citation, hint=hint) for at in places if at in critical]
    gone = [at for at in places if at not in critical]
    findings += [record.finding(rule, f"content[{at}]", what, citation, "removed", was=record.block(at)) for at in gone]
    if gone:
        kept = [at for at in range(len(message.content)) if at not in gone]
        moved = tuple(kept.index(at) for at in critical if at in kept)
        content = tuple(message.content[at] for at in kept)
        record.replace(attrs.evolve(message, content=content, metadata=attrs.evolve(message.metadata, critical=moved)))


def _clean_results(record: DoctorRecord, findings: list[DoctorFinding]) -> None:
    """Remove empty text from results that have other content."""
    content = list(record.message.content)
    for at, block in enumerate(content):
        if type(block) is not ToolResultBlock or len(block.content) < 2:
            continue
        kept = [part for part in block.content if not _is_empty_text(part)]
        if kept and len(kept) < len(block.content):
            content[at] = attrs.evolve(block, content=kept)
            path, what = f"content[{at}].content", _DESCRIPTIONS["empty-text"]
            findings.append(record.finding("empty-text", path, what, _EMPTY, "removed", was=record.block(at)))
    if any(new is not old for new, old in zip(content, record.message.content, strict=True)):
        record.replace(attrs.evolve(record.message, content=tuple(content)))


def _split_results(record: DoctorRecord, findings: list[DoctorFinding]) -> list[DoctorRecord]:
    """Return messages with each result in a separate tool message; a tool message may keep several results."""
    message = record.message
    parts = [message] if message.role is Role.TOOL else split_tool_results(message)
    if parts == [message]:
        return [record]
    what = f"a tool result inside a {message.role} message; it belongs into a separate tool message"
    for at, block in enumerate(message.content):
        if type(block) is ToolResultBlock:
            findings.append(record.finding("misplaced-result", f"content[{at}]", what, _MISPLACED, "moved"))
    *split, last = parts
    return [
        *(DoctorRecord(None, dumps_message(part), part) for part in split),
        DoctorRecord(record.number, dumps_message(last), last),
    ]


class _CallRepair:
    """Puts every call's result directly after it, and removes results that answer no call."""

    def __init__(self, records: Sequence[DoctorRecord], findings: list[DoctorFinding]) -> None:
        self._records = records
        self._findings = findings
        self._out: list[DoctorRecord] = []
        self._taken: set[int] = set()  # places of records that are in `_out` already, or removed

    def run(self) -> list[DoctorRecord]:
        """Return the repaired records."""
        for at, record in enumerate(self._records):
            if at in self._taken:
                continue
            if record.message.role is Role.TOOL:
                self._append_results(record, [])
                continue
            self._out.append(record)
            calls = record.message.tool_calls if record.message.role is Role.ASSISTANT else []
            if calls:
                self._answer(calls, at)
        return self._out

    def _answer(self, calls: Sequence[ToolUseBlock], at: int) -> None:
        """Append the results of the message at `at`: those directly after it, then late ones, then error results."""
        waiting = [call.id for call in calls]
        for place in range(at + 1, len(self._records)):
            record = self._records[place]
            if record.message.role in (Role.USER, Role.ASSISTANT):
                break
            self._taken.add(place)
            if record.message.role is Role.TOOL:
                self._append_results(record, waiting)
            else:
                self._out.append(record)
        for call in [call for call in calls if call.id in waiting]:
            late = self._find_late_result(call.id, at)
            if late is not None:
                self._taken.add(late)
                what = f"the result of {call.name} is after other messages; it belongs directly after its call"
                moved = self._records[late]
                self._findings.append(moved.finding("late-result", "", what, _DANGLING, "moved"))
                self._out.append(moved)
            else:
                self._out.append(_make_missing_result(call, self._records[at], self._findings))

    def _append_results(self, record: DoctorRecord, waiting: list[str]) -> None:
        """Append a tool message with only the awaited results, each once."""
        content, critical = record.message.content, record.message.metadata.critical
        what, unasked = "a result that answers no open call", []
        for at, block in enumerate(content):
            if type(block) is ToolResultBlock and block.tool_use_id in waiting:
                waiting.remove(block.tool_use_id)
            else:
                unasked.append(at)
        if len(unasked) == len(content) and not set(unasked) & set(critical):
            was = encode_message(record.message)
            self._findings.append(record.finding("orphan-result", "", what, _ORPHAN, "removed", was=was))
            return
        _drop_blocks(record, unasked, "orphan-result", what, _ORPHAN, self._findings, hint="unmark it")
        self._out.append(record)

    def _find_late_result(self, call_id: str, at: int) -> int | None:
        """Return the place of a later message with only this call's result; None if the id is used again before it."""
        for place in range(at + 1, len(self._records)):
            message = self._records[place].message
            if message.role is Role.ASSISTANT and any(call.id == call_id for call in message.tool_calls):
                return None
            results = message.tool_results
            only = len(message.content) == 1 and bool(results) and results[0].tool_use_id == call_id
            if only and place not in self._taken:
                return place
        return None


def _make_missing_result(call: ToolUseBlock, caller: DoctorRecord, findings: list[DoctorFinding]) -> DoctorRecord:
    """Make the result of a call that has none: the same every time, so that prompt caches keep matching."""
    message = caller.message
    made = tool_result(call, MISSING_RESULT, is_error=True, session_id=message.session_id)
    filled: Message = attrs.evolve(
        made,
        id=f"{message.id}-{call.id}",
        created_at=message.created_at,
        metadata=attrs.evolve(made.metadata, provenance=Provenance.AUTHORED),
    )
    place = next(at for at, block in enumerate(message.content) if block is call)
    what = f"the call of {call.name} has no result; an error result is added"
    findings.append(
        caller.finding("dangling-call", f"content[{place}]", what, _DANGLING, "inserted", now=encode_message(filled))
    )
    return DoctorRecord(None, dumps_message(filled), filled)


def _repair_ending(records: Sequence[DoctorRecord], findings: list[DoctorFinding]) -> None:
    """Remove white space at the end of a last answer, and report a last answer: many models reject both."""
    if not records or records[-1].message.role is not Role.ASSISTANT:
        return
    last = records[-1]
    message = last.message
    if message.metadata.stop_reason is StopReason.PAUSE_TURN:
        return  # sent back unchanged; the model continues it
    block = message.content[-1] if message.content else None
    at = len(message.content) - 1
    if type(block) is TextBlock and block.text != block.text.rstrip() and block.signature is None:
        what = "white space at the end of the last answer, which services that continue an answer reject"
        was, stripped = last.block(at), attrs.evolve(block, text=block.text.rstrip())
        last.replace(attrs.evolve(message, content=(*message.content[:-1], stripped)))
        now = last.block(at)
        findings.append(
            last.finding("trailing-space", f"content[{at}].text", what, _LAST_ANSWER, "replaced", was=was, now=now)
        )
    what = "the conversation ends with an answer; models that cannot continue one reject it unchanged"
    findings.append(last.finding("ends-with-answer", "", what, _LAST_ANSWER, note=True, hint=_ADD_MESSAGE))
