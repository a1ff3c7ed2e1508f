"""What the doctor found in a conversation file, and the lines it looks at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal

import attrs

from interlingua.codec import decode_message, dumps_message, encode_message
from interlingua.errors import CallerError, DecodeError
from interlingua.json import line_fault, loads, replace_lone_surrogates
from interlingua.types import Message

Remedy = Literal["removed", "replaced", "inserted", "moved"]


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that would make a provider reject the conversation."""

    rule: str  # name of what is wrong, in words joined by hyphens
    line: int | None = None  # line of the file, from 1; None where it is about a request
    path: str = ""  # place in the message on that line, or in the request
    message: str  # one sentence for a person
    citation: str  # where the rule is from
    remedy: Remedy | None = None  # what the repair does; None where only a person can mend it
    was: Any = None  # the JSON that the repair removes or changes, whole
    now: Any = None  # the JSON that it puts there
    hint: str | None = None  # what a person can do where there is no remedy


@attrs.define
class Record:
    """A message of the file, as it was read and as it is repaired so far."""

    number: int | None  # line of the file; None for an inserted message
    text: str  # the line as it is now, without its end; the very same text where nothing changed
    message: Message  # the message as it is now

    def replace(self, message: Message) -> None:
        """Put a changed message in place of this one."""
        self.message, self.text = message, dumps_message(message)

    def block(self, index: int) -> Any:
        """Return the stored form of a block."""
        return encode_message(self.message)["content"][index]

    def finding(
        self, rule: str, path: str, message: str, citation: str, remedy: Remedy | None = None, **facts: Any
    ) -> Finding:
        """Make a finding about this line."""
        return Finding(
            rule=rule, line=self.number, path=path, message=message, citation=citation, remedy=remedy, **facts
        )


@attrs.frozen(kw_only=True)
class Diagnosis:
    """What was found in a conversation file, and the conversation repaired."""

    findings: tuple[Finding, ...]  # in the file's order
    before: dict[int, str]  # the lines that hold anything, as they were: number -> text
    after: tuple[Record, ...]  # the lines after the repair

    @property
    def messages(self) -> list[Message]:
        """The conversation after the repair."""
        return [record.message for record in self.after]

    @property
    def repairs(self) -> tuple[Finding, ...]:
        """The findings that the repair mends."""
        return tuple(finding for finding in self.findings if finding.remedy is not None)

    @property
    def left(self) -> tuple[Finding, ...]:
        """The findings that need a person."""
        return tuple(finding for finding in self.findings if finding.remedy is None)


_ENCODING = "format.md, Canonical JSON"  # cited by findings about a line as such


def read_records(lines: Iterable[bytes], findings: list[Finding]) -> tuple[dict[int, str], list[Record]]:
    """Return the text of each line that holds anything, and the messages; what is wrong goes to `findings`."""
    before: dict[int, str] = {}
    records: list[Record] = []
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        text = _decode_line(raw.rstrip(b"\r\n"), number, findings)
        before[number] = text
        record = _read_record(text, number, findings)
        if record is not None:
            records.append(record)
    return before, records


def _decode_line(raw: bytes, number: int, findings: list[Finding]) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {error.start} is not UTF-8; U+FFFD stands for it"
        findings.append(_line_finding("not-utf-8", number, what, "replaced", was=raw.hex()))
        return raw.decode("utf-8", "replace")


def _read_record(text: str, number: int, findings: list[Finding]) -> Record | None:
    """Return the message of a line; None where there is none, with a finding that says why."""
    changed = bool(findings) and findings[-1].line == number  # the bytes were not UTF-8
    try:
        data = loads(text)
    except ValueError as error:
        what = f"the line is not JSON: {line_fault(error)}"
        findings.append(_line_finding("not-json", number, what, "removed", was=text))
        return None
    if isinstance(data, dict) and "type" in data and not data.keys() & {"role", "content"}:
        raise CallerError(
            f"line {number} is a record of the type {data['type']!r:.40}, not a message: the file is more than a"
            " conversation, and a repair would take that away; write its messages alone to a file"
        )

    def report(path: str, was: str, now: str) -> None:
        what = "text with NUL or half a surrogate pair, which wires and databases refuse; U+FFFD stands for it"
        findings.append(_line_finding("bad-text", number, what, "replaced", path=path, was=json.dumps(was), now=now))

    clean = _clean_strings(data, "", report)
    changed = changed or clean is not data
    try:
        message = decode_message(clean)
        return Record(number, dumps_message(message) if changed else text, message)
    except DecodeError as error:
        what = f"the line is no message: {error}"
        findings.append(_line_finding("not-a-message", number, what, "removed", path=error.path, was=text))
        return None


def _line_finding(rule: str, line: int, message: str, remedy: Remedy, **facts: Any) -> Finding:
    return Finding(rule=rule, line=line, message=message, citation=_ENCODING, remedy=remedy, **facts)


def _clean_strings(value: Any, path: str, report: Callable[[str, str, str], None]) -> Any:
    """Return a JSON value whose strings can be sent, reporting each that changed; the same object where none did."""
    if isinstance(value, str):
        now = replace_lone_surrogates(value).replace("\0", "\ufffd")
        if now != value:
            report(path, value, now)
            return now
        return value
    if isinstance(value, list):
        items = [_clean_strings(item, f"{path}[{at}]", report) for at, item in enumerate(value)]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        pairs = {_clean_strings(key, path, report): _clean_strings(item, f"{path}.{key}".lstrip("."), report)
                 for key, item in value.items()}  # fmt: skip
        same = all(new is old for new, old in zip(pairs.values(), value.values(), strict=False))
        return value if same and pairs.keys() == value.keys() else pairs
    return value
