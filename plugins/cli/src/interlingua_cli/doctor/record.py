"""Lines of a conversation file, read one by one however broken: bytes to text, text to JSON, JSON to a message.

Never stops at a bad line: each becomes a record or a finding; only a file of another kind is refused. `examine` comes
in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from interlingua.codec.stored import decode_message, dumps_message, encode_message
from interlingua.errors import CallerError, DecodeError
from interlingua.json import line_fault, loads, replace_lone_surrogates
from interlingua.types.messages import Message
from interlingua_cli.doctor.finding import Finding, Remedy

_STRINGS = "REGRESSIONS case 22"


@attrs.define
class Record:
    """A message under examination: where it stood, and what has been found wrong with it.

    Attributes:
        number: line of the file; None for a message put in.
        text: the line as it was.
        message: the message as it is now.
        changed: the line has to be written anew.
    """

    number: int | None
    text: str
    message: Message
    changed: bool = False

    def put(self, message: Message) -> None:
        """Take a changed message."""
        self.message, self.changed = message, True

    def written(self) -> str:
        """Return the line as it is now."""
        return dumps_message(self.message) if self.changed else self.text

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


def read_records(lines: Iterable[bytes], findings: list[Finding]) -> tuple[dict[int, str], list[Record]]:
    """Read a file.

    Args:
        lines: its lines, with or without line ends.
        findings: told of every line that is not what it should be.

    Raises:
        CallerError: it holds records of another kind, such as a store's export.

    Returns:
        The text of each line that holds anything, and the records of those that hold a message.
    """
    before: dict[int, str] = {}
    records: list[Record] = []
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        text = _decoded(raw.rstrip(b"\r\n"), number, findings)
        before[number] = text
        record = _record(text, number, findings)
        if record is not None:
            records.append(record)
    return before, records


def _decoded(raw: bytes, number: int, findings: list[Finding]) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {error.start} is not UTF-8; U+FFFD stands for it"
        findings.append(
            Finding(
                rule="not-utf-8",
                line=number,
                path="",
                message=what,
                citation=_STRINGS,
                remedy="replaced",
                was=raw.hex(),
            )
        )
        return raw.decode("utf-8", "replace")


def _record(text: str, number: int, findings: list[Finding]) -> Record | None:
    """Return the message of a line, or None after telling why there is none."""
    changed = bool(findings) and findings[-1].line == number  # the bytes were not UTF-8
    try:
        data = loads(text)
    except ValueError as error:
        what = f"the line is not JSON: {line_fault(error)}"
        findings.append(
            Finding(
                rule="not-json", line=number, path="", message=what, citation="seed 003 §9", remedy="removed", was=text
            )
        )
        return None
    if isinstance(data, dict) and "type" in data and not data.keys() & {"role", "content"}:
        raise CallerError(
            f"line {number} is a record of the type {data['type']!r:.40}, not a message: the file is more than a"
            " conversation, and a repair would take that away; write its messages alone to a file"
        )
    clean = _cleaned(data, "", lambda path, was, now: _bad_string(findings, number, path, was, now))
    changed = changed or clean is not data
    try:
        return Record(number, text, decode_message(clean), changed)
    except DecodeError as error:
        what = f"the line is no message: {error}"
        findings.append(
            Finding(
                rule="not-a-message",
                line=number,
                path=error.path,
                message=what,
                citation="seed 003 §4",
                remedy="removed",
                was=text,
            )
        )
        return None


def _bad_string(findings: list[Finding], number: int, path: str, was: str, now: str) -> None:
    what = "text with NUL or half a surrogate pair, which wires and databases refuse; U+FFFD stands for it"
    findings.append(
        Finding(
            rule="bad-text",
            line=number,
            path=path,
            message=what,
            citation=_STRINGS,
            remedy="replaced",
            was=json.dumps(was),
            now=now,
        )
    )


def _cleaned(value: Any, path: str, told: Callable[[str, str, str], None]) -> Any:
    """Return a JSON value whose strings can be sent; the very same object where all can."""
    if isinstance(value, str):
        now = replace_lone_surrogates(value).replace("\0", "\ufffd")
        if now != value:
            told(path, value, now)
            return now
        return value
    if isinstance(value, list):
        items = [_cleaned(item, f"{path}[{at}]", told) for at, item in enumerate(value)]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        pairs = {_cleaned(key, path, told): _cleaned(item, f"{path}.{key}".lstrip("."), told)
                 for key, item in value.items()}  # fmt: skip
        same = all(new is old for new, old in zip(pairs.values(), value.values(), strict=False))
        return value if same and pairs.keys() == value.keys() else pairs
    return value
