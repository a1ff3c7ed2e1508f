"""What the doctor found in a conversation file, and the lines it looks at."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs

from interlingua._json import describe_json_error, loads, repair_surrogates
from interlingua.codec import decode_message, dumps_message, encode_message
from interlingua.errors import DecodeError
from interlingua.types import Message
from interlingua_cli.foreign import recognise_format

Remedy = Literal["removed", "replaced", "inserted", "moved"]


@attrs.frozen(kw_only=True)
class DoctorFinding:
    """One thing that would make a provider reject the conversation."""

    rule: str  # name of what is wrong, in words joined by hyphens
    line: int | None = None  # line of the file, from 1; None where it is about a request
    path: str = ""  # place in the message on that line, or in the request
    message: str  # one sentence for a person
    citation: str  # where the rule is from
    remedy: Remedy | None = None  # what the repair does; None where it does nothing
    note: bool = False  # nothing is wrong: worth knowing before the conversation is sent as it stands
    was: Any = None  # the JSON that the repair removes or changes, whole
    now: Any = None  # the JSON that it puts there
    hint: str | None = None  # what a person can do where there is no remedy


@attrs.define
class Line:
    """A line of the file; one that nobody can read as a message stays as it is."""

    number: int | None  # line of the file; None for an inserted message
    text: str  # the line as it is now, without its end; the very same text where nothing changed


@attrs.define
class DoctorRecord(Line):
    """A message of the file, as it was read and as it is repaired so far."""

    message: Message  # the message as it is now

    def replace(self, message: Message) -> None:
        """Put a changed message in place of this one."""
        self.message, self.text = message, dumps_message(message)

    def block(self, index: int) -> Any:
        """Return the stored form of a block."""
        return encode_message(self.message)["content"][index]

    def finding(
        self, rule: str, path: str, message: str, citation: str, remedy: Remedy | None = None, **facts: Any
    ) -> DoctorFinding:
        """Make a finding about this line."""
        return DoctorFinding(
            rule=rule, line=self.number, path=path, message=message, citation=citation, remedy=remedy, **facts
        )


@attrs.frozen(kw_only=True)
class Diagnosis:
    """What was found in a conversation file, and the conversation repaired."""

    findings: tuple[DoctorFinding, ...]  # in the file's order
    before: dict[int, str]  # the lines that hold anything, as they were: number -> text
    after: tuple[Line, ...]  # the lines after the repair

    @property
    def messages(self) -> list[Message]:
        """The conversation after the repair, without the lines that cannot be read."""
        return [line.message for line in self.after if isinstance(line, DoctorRecord)]

    @property
    def is_readable(self) -> bool:
        """True when every line after the repair is a message."""
        return all(isinstance(line, DoctorRecord) for line in self.after)

    @property
    def repairs(self) -> tuple[DoctorFinding, ...]:
        """The findings that the repair mends."""
        return tuple(finding for finding in self.findings if finding.remedy is not None)

    @property
    def left(self) -> tuple[DoctorFinding, ...]:
        """The findings that need a person."""
        return tuple(finding for finding in self.findings if finding.remedy is None and not finding.note)


_ENCODING = "format.md, Canonical JSON"  # cited by findings about a line as such
_BY_HAND = "change or remove the line by hand: a repair keeps it, and repairs no calls and results around it"


def read_lines(lines: Sequence[bytes], findings: list[DoctorFinding]) -> tuple[dict[int, str], list[Line]]:
    """Return the text of each line that holds anything, and the lines; what is wrong goes to `findings`.

    Only what a crash cut off, the end of a file without a line end, is removed. Any other line that is no message is
    kept as it is: it may be the only copy of something said.
    """
    before: dict[int, str] = {}
    read: list[Line] = []
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        text = _decode_line(raw.rstrip(b"\r\n"), number, findings)
        before[number] = text
        cut_off = number == len(lines) and not raw.endswith(b"\n")
        line = _read_line(text, number, findings, cut_off=cut_off)
        if line is not None:
            read.append(line)
    return before, read


def _decode_line(raw: bytes, number: int, findings: list[DoctorFinding]) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {error.start} is not UTF-8; U+FFFD stands for it"
        findings.append(_line_finding("not-utf-8", number, what, "replaced", was=raw.hex()))
        return raw.decode("utf-8", "replace")


def _read_line(text: str, number: int, findings: list[DoctorFinding], *, cut_off: bool) -> Line | None:
    """Return a line, a `DoctorRecord` where it is a message; None where a crash cut it off."""
    changed = bool(findings) and findings[-1].line == number  # the bytes were not UTF-8
    try:
        data = loads(text)
    except ValueError as error:
        what = f"the line is not JSON: {describe_json_error(error)}"
        if cut_off and text.startswith("{"):
            findings.append(
                _line_finding("not-json", number, f"{what}; its end was never written", "removed", was=text)
            )
            return None
        findings.append(_line_finding("not-json", number, what, hint=_BY_HAND))
        return Line(number, text)
    replaced: list[DoctorFinding] = []

    def report(path: str, was: str, now: str) -> None:
        what = "text with NUL or half a surrogate pair, which wires and databases refuse; U+FFFD stands for it"
        replaced.append(_line_finding("bad-text", number, what, "replaced", path=path, was=json.dumps(was), now=now))

    clean = _clean_strings(data, "", report)
    foreign = recognise_format([data])
    try:
        if foreign is not None:
            raise DecodeError(f"it looks like a line of {foreign.name}")
        message = decode_message(clean)
    except DecodeError as error:
        what = f"the line is no message: {error}"
        findings.append(_line_finding("not-a-message", number, what, path=error.path, hint=_BY_HAND))
        return Line(number, text)
    findings += replaced
    return DoctorRecord(number, dumps_message(message) if changed or clean is not data else text, message)


def _line_finding(rule: str, line: int, message: str, remedy: Remedy | None = None, **facts: Any) -> DoctorFinding:
    return DoctorFinding(rule=rule, line=line, message=message, citation=_ENCODING, remedy=remedy, **facts)


def _clean_strings(value: Any, path: str, report: Callable[[str, str, str], None]) -> Any:
    """Return a JSON value whose strings can be sent, reporting each that changed; the same object where none did."""
    if isinstance(value, str):
        now = repair_surrogates(value).replace("\0", "\ufffd")
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
