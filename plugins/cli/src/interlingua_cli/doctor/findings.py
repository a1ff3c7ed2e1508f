"""The doctor's findings in a conversation file, and the lines that it examines."""

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
    """One fault that would make a provider reject the conversation."""

    rule: str  # name of the fault, in words joined by hyphens
    line: int | None = None  # line of the file, from 1; None if the finding is about a request
    path: str = ""  # place in the message on that line, or in the request
    message: str  # one sentence for the user
    citation: str  # source of the rule
    remedy: Remedy | None = None  # what the repair does; None if nothing
    note: bool = False  # no fault, but good to know before the conversation is sent unchanged
    was: Any = None  # the JSON that the repair removes or changes, whole
    now: Any = None  # the JSON that it puts there
    hint: str | None = None  # advice if there is no remedy


@attrs.define
class Line:
    """A line of the file; a line that is not a message stays unchanged."""

    number: int | None  # line of the file; None for an inserted message
    text: str  # the current line without its end; the very same string if nothing changed


@attrs.define
class DoctorRecord(Line):
    """A message of the file, with the repairs so far."""

    message: Message  # the current message

    def replace(self, message: Message) -> None:
        """Replace this message by a changed one."""
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
    """The findings in a conversation file, and the repaired conversation."""

    findings: tuple[DoctorFinding, ...]  # in the file's order
    before: dict[int, str]  # the original non-empty lines: number -> string
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
    """Return the string of each non-empty line, and the lines; add faults to `findings`.

    Only a last line that a crash cut off, without a line end, is removed. Any other line that is not a message is kept
    unchanged: it may be the only copy of its content.
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
        what = f"byte {error.start} is not UTF-8; U+FFFD replaces it"
        findings.append(_line_finding("not-utf-8", number, what, "replaced", was=raw.hex()))
        return raw.decode("utf-8", "replace")


def _read_line(text: str, number: int, findings: list[DoctorFinding], *, cut_off: bool) -> Line | None:
    """Return a line, a `DoctorRecord` if it is a message; None if a crash cut it off."""
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
        what = "text with NUL or a lone surrogate, which services and databases reject; U+FFFD replaces it"
        replaced.append(_line_finding("bad-text", number, what, "replaced", path=path, was=json.dumps(was), now=now))

    clean = _clean_strings(data, "", report)
    foreign = recognise_format([data])
    try:
        if foreign is not None:
            raise DecodeError(f"it looks like a line of {foreign.name}")
        message = decode_message(clean)
    except DecodeError as error:
        what = f"the line is not a message: {error}"
        findings.append(_line_finding("not-a-message", number, what, path=error.path, hint=_BY_HAND))
        return Line(number, text)
    findings += replaced
    return DoctorRecord(number, dumps_message(message) if changed or clean is not data else text, message)


def _line_finding(rule: str, line: int, message: str, remedy: Remedy | None = None, **facts: Any) -> DoctorFinding:
    return DoctorFinding(rule=rule, line=line, message=message, citation=_ENCODING, remedy=remedy, **facts)


def _clean_strings(value: Any, path: str, report: Callable[[str, str, str], None]) -> Any:
    """Return a JSON value whose strings can be sent, and report each change; the same object if nothing changed."""
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
