"""What the doctor found and what it would do about it.

Never looks for anything. All modules of the room make these; whoever asked the doctor reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import attrs

from interlingua.types.messages import Message

Remedy = Literal["removed", "replaced", "inserted", "moved"]


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that would make a provider reject the conversation.

    Attributes:
        rule: what is wrong, in words joined by hyphens.
        line: line of the file, from 1; None where it is about a request.
        path: place in the message on that line, or in the request.
        message: one sentence for a person.
        citation: where the rule is from.
        remedy: what the repair does; None where only a person can.
        was: the JSON that the repair takes away or changes, whole.
        now: the JSON that it puts there.
        hint: what a person can do where there is no remedy.
    """

    rule: str
    line: int | None
    path: str
    message: str
    citation: str
    remedy: Remedy | None = None
    was: Any = None
    now: Any = None
    hint: str | None = None


@attrs.frozen(kw_only=True)
class Line:
    """One line of the repaired conversation.

    Attributes:
        number: of the line it comes from; None for one put in.
        text: its JSON, without line end; the very same text where nothing changed.
        message: what it says.
    """

    number: int | None
    text: str
    message: Message


@attrs.frozen(kw_only=True)
class Diagnosis:
    """A conversation file, examined.

    Attributes:
        findings: in the file's order.
        before: the lines that hold anything, as they were: number -> text.
        after: the lines after the repair.
    """

    findings: tuple[Finding, ...]
    before: dict[int, str]
    after: tuple[Line, ...]

    @property
    def messages(self) -> list[Message]:
        """The conversation after the repair."""
        return [line.message for line in self.after]

    @property
    def repairs(self) -> tuple[Finding, ...]:
        """The findings that the repair takes care of."""
        return tuple(finding for finding in self.findings if finding.remedy is not None)

    @property
    def left(self) -> tuple[Finding, ...]:
        """The findings that need a person."""
        return tuple(finding for finding in self.findings if finding.remedy is None)

    def with_findings(self, more: Sequence[Finding]) -> Diagnosis:
        """Return the diagnosis with further findings behind its own."""
        return attrs.evolve(self, findings=(*self.findings, *more))
