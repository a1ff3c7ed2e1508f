"""The examination: every line, every message, the calls across messages, the end, and what the rules still say.

Never changes its input; the repaired conversation is made beside it. The room's front door comes in.
"""

from __future__ import annotations

from collections.abc import Iterable

from interlingua.request.validate import check_sendable
from interlingua_cli.doctor.calls import answer_calls
from interlingua_cli.doctor.content import check_content
from interlingua_cli.doctor.ending import check_ending
from interlingua_cli.doctor.finding import Diagnosis, Finding, Line
from interlingua_cli.doctor.record import Record, read_records


def examine(lines: Iterable[bytes]) -> Diagnosis:
    """Examine a conversation stored as JSON Lines.

    Args:
        lines: of the file, in bytes, as iterating over a file opened with `rb` gives them.

    Raises:
        CallerError: the file is no conversation but of another kind, such as a store's export.
    """
    findings: list[Finding] = []
    before, records = read_records(lines, findings)
    records = [record for record in records if check_content(record, findings)]
    records = answer_calls(records, findings)
    check_ending(records, findings)
    findings += _rules(records)
    order = sorted(findings, key=lambda finding: finding.line or 0)
    after = tuple(Line(number=each.number, text=each.written(), message=each.message) for each in records)
    return Diagnosis(findings=tuple(order), before=before, after=after)


def _rules(records: list[Record]) -> Iterable[Finding]:
    """Tell what the numbered rules forbid and no repair here mends."""
    numbers = {record.message.id: record.number for record in records}
    for broken in check_sendable([record.message for record in records]):
        yield Finding(
            rule=f"rule-{broken.number:02}",
            line=numbers.get(broken.message_id or ""),
            path=broken.path.partition("].")[2],
            message=broken.message,
            citation=f"invariant {broken.number}, {broken.rule.replace('_', ' ')}",
            hint="change the line by hand",
        )
