"""Rules that compare a plugin with `approved.jsonl`: results of every hook that its author has read and approved."""

from __future__ import annotations

from collections.abc import Iterator

from interlingua_contract.approved.table import APPROVED_FILE, compare
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.subject import Subject

_FIX = f"""If the change is intended, run `interlingua check KEY --approve`, which writes {APPROVED_FILE} beside the
    cassettes again, and read its difference: every line is a result that changed. If it is not intended, correct the
    plugin. The file only knows what changed; other rules say what is true."""


def _compare(subject: Subject, *sections: str) -> Iterator[RuleFinding]:
    if subject.unwritten:
        raise NotApplicable("results are compared when every function is written")
    for where, why in compare(subject, *sections):
        yield RuleFinding(why, where)


@rule("C94", "Requests are written as approved, byte for byte.", source="hook to_wire", fix=_FIX)
def requests_are_as_approved(subject: Subject) -> Iterator[RuleFinding]:
    """Fixed conversations, each kind of block, options with neighbours, and recorded answers sent back."""
    yield from _compare(subject, "requests")


@rule(
    "C95",
    "Recorded answers and failures are read as approved: messages, events, usage, costs, errors and what follows.",
    source="hook from_wire_response; hook stream_response; hook from_wire_error; hook follow_up",
    fix=_FIX,
)
def answers_are_as_approved(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded exchange; each status."""
    yield from _compare(subject, "answers", "errors", "follow-ups")


@rule(
    "C96",
    "Capabilities, catalogue, connections and estimates are as approved.",
    source="hook capabilities; hook models; hook connection",
    fix=_FIX,
)
def declarations_are_as_approved(subject: Subject) -> Iterator[RuleFinding]:
    """Each model; connections in several environments."""
    yield from _compare(subject, "declarations", "connections", "estimates")


@rule("C97", "Auxiliary requests are written as approved.", source="hook auxiliary_request", fix=_FIX)
def auxiliary_requests_are_as_approved(subject: Subject) -> Iterator[RuleFinding]:
    """Counts of fixed conversations, batches, and the other kinds."""
    yield from _compare(subject, "auxiliary")


@rule(
    "C98",
    "Requests of a served API are read as approved: messages, tools, options, and what only this API has.",
    source="hook from_wire_request",
    fix=_FIX,
)
def served_requests_are_as_approved(subject: Subject) -> Iterator[RuleFinding]:
    """The requests of C94, and the recorded ones with what is written of them again."""
    yield from _compare(subject, "served requests")


@rule(
    "C99",
    "Answers and failures of a served API are written as approved, whole and streamed.",
    source="hook to_wire_response; hook stream_to_wire; hook to_wire_error",
    fix=_FIX,
)
def served_answers_are_as_approved(subject: Subject) -> Iterator[RuleFinding]:
    """Answers of this provider and another, the recorded ones, and every class of errors."""
    yield from _compare(subject, "served answers", "served errors")
