"""Calls and results that do not belong together: dangling calls, orphan results, results that stand too late.

Never invents an answer: what is put in for a missing result says that it is missing, the same every time.
`examine` comes in.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from interlingua.codec.stored import dumps_message, encode_message
from interlingua.request.project import MISSING_RESULT
from interlingua.types.blocks import ToolResultBlock, ToolUseBlock
from interlingua.types.factories import tool_result
from interlingua.types.messages import Message, Provenance, Role
from interlingua_cli.doctor.content import without
from interlingua_cli.doctor.finding import Finding
from interlingua_cli.doctor.record import Record

_DANGLING = "REGRESSIONS case 07"


_ORPHAN = "REGRESSIONS case 08"


def answer_calls(records: Sequence[Record], findings: list[Finding]) -> list[Record]:
    """Return the records with every call answered right behind it, and without results that answer none."""
    out: list[Record] = []
    taken: set[int] = set()
    for at, record in enumerate(records):
        if at in taken:
            continue
        if record.message.role is Role.TOOL:
            _orphans(record, set(), findings, out)
            continue
        out.append(record)
        calls = record.message.tool_calls() if record.message.role is Role.ASSISTANT else []
        if calls:
            _answer(calls, record, at, records, taken, findings, out)
    return out


def _answer(
    calls: Sequence[ToolUseBlock],
    asking: Record,
    at: int,
    records: Sequence[Record],
    taken: set[int],
    findings: list[Finding],
    out: list[Record],
) -> None:
    """Put behind an asking message what answers it: what stands there, what stands later, what is missing."""
    waiting = [call.id for call in calls]
    for place in range(at + 1, len(records)):
        role = records[place].message.role
        if role is Role.USER or role is Role.ASSISTANT:
            break
        taken.add(place)
        if role is Role.TOOL:
            _orphans(records[place], waiting, findings, out)
        else:
            out.append(records[place])
    for call in [call for call in calls if call.id in waiting]:
        late = _late(call.id, at, records, taken)
        if late is not None:
            taken.add(late)
            what = f"the result of {call.name} stands after other messages; it belongs right behind its call"
            moved = records[late]
            findings.append(moved.finding("late-result", "", what, _DANGLING, "moved"))
            out.append(moved)
        else:
            out.append(_filled(call, asking, findings))


def _orphans(record: Record, waiting: list[str] | set[str], findings: list[Finding], out: list[Record]) -> None:
    """Keep of a TOOL message the results that are waited for, each once."""
    content, critical = record.message.content, record.message.metadata.critical
    gone = []
    for at, block in enumerate(content):
        if type(block) is ToolResultBlock and block.tool_use_id in waiting:
            waiting.remove(block.tool_use_id)
        elif at in critical:
            what = "a result that answers no open call; it is marked critical and stays"
            findings.append(record.finding("orphan-result", f"content[{at}]", what, _ORPHAN, hint="unmark it"))
        else:
            gone.append(at)
    if len(gone) == len(content):
        what = "a result that answers no open call"
        was = encode_message(record.message)
        findings.append(record.finding("orphan-result", "", what, _ORPHAN, "removed", was=was))
        return
    findings += [
        record.finding(
            "orphan-result",
            f"content[{at}]",
            "a result that answers no open call",
            _ORPHAN,
            "removed",
            was=record.block(at),
        )
        for at in gone
    ]
    if gone:
        record.put(without(record, gone))
    out.append(record)


def _late(call_id: str, at: int, records: Sequence[Record], taken: set[int]) -> int | None:
    """Return the place of a later message that holds nothing but this call's result, unless the id is asked again."""
    for place in range(at + 1, len(records)):
        message = records[place].message
        if message.role is Role.ASSISTANT and any(call.id == call_id for call in message.tool_calls()):
            return None
        results = message.tool_results()
        if place not in taken and len(message.content) == 1 and results and results[0].tool_use_id == call_id:
            return place
    return None


def _filled(call: ToolUseBlock, asking: Record, findings: list[Finding]) -> Record:
    """Make the result of a call that has none: nothing in it depends on when or where it is made (case 07)."""
    message = asking.message
    made = tool_result(call, MISSING_RESULT, is_error=True, session_id=message.session_id)
    filled: Message = attrs.evolve(
        made,
        id=f"{message.id}-{call.id}",
        created_at=message.created_at,
        metadata=attrs.evolve(made.metadata, provenance=Provenance.AUTHORED),
    )
    place = next(at for at, block in enumerate(message.content) if block is call)
    what = f"the call of {call.name} has no result; an error result says so"
    findings.append(
        asking.finding("dangling-call", f"content[{place}]", what, _DANGLING, "inserted", now=encode_message(filled))
    )
    return Record(None, dumps_message(filled), filled)
