"""Laws of the doctor over damaged histories: a second visit repairs nothing, the repair can be sent, nothing is lost.

Histories are those of the contract's published strategies, damaged by leaving out, doubling and moving messages.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from interlingua._request.rules import validate_conversation
from interlingua.codec import encode_message
from interlingua_cli.doctor.examine import examine
from interlingua_cli.doctor.findings import Diagnosis
from interlingua_cli.doctor.repair import diff_repair
from interlingua_contract.strategies import conversations
from tests.support.counts import examples

_ORDER = {"results_answer_earlier_calls", "calls_are_answered"}
relaxed = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def damaged(draw: st.DrawFn) -> list[str]:
    """Lines of a history after a crash, an edit, a bad merge."""
    lines = [json.dumps(encode_message(message), default=str) for message in draw(conversations())]
    for _ in range(draw(st.integers(0, 4))):
        if not lines:
            break
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(("drop", "double", "move", "cut", "nul")))
        line = lines.pop(at)
        if kind == "double":
            lines[at:at] = [line, line]
        elif kind == "move":
            lines.insert(draw(st.integers(0, len(lines))), line)
        elif kind == "cut":
            lines.insert(at, line[: len(line) // 2])
        elif kind == "nul":
            lines.insert(at, line.replace('"text": "', '"text": "\\u0000', 1))
    return lines


def visit(lines: list[str]) -> Diagnosis:
    return examine(line.encode("utf-8", "surrogatepass") for line in lines)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


@relaxed
@given(damaged())
@example(lines=['{"role": "us', '{"role": "assis'])  # the second line is the cut-off end, the first one stays
def test_a_second_visit_repairs_nothing_and_changes_no_byte(lines: list[str]) -> None:
    once = visit(lines)
    again = visit([f"{line.text}\n" for line in once.after])  # the repaired file: every line has its end

    assert again.repairs == ()
    assert [line.text for line in again.after] == [line.text for line in once.after]
    assert list(diff_repair(again, "s")) == []


@relaxed
@given(damaged())
def test_every_call_is_answered_and_every_result_answers_one(lines: list[str]) -> None:
    found = visit(lines)
    broken = {violation.rule for violation in validate_conversation(found.messages)}
    assert not broken & _ORDER or not found.is_readable  # what stands in a line that cannot be read is not known


@relaxed
@given(damaged())
def test_every_line_is_kept_changed_with_what_it_was_or_handed_over(lines: list[str]) -> None:
    found = visit(lines)
    kept = Counter(line.number for line in found.after)
    told = {finding.line for finding in found.repairs if finding.was is not None}

    assert max(kept[number] for number in found.before) <= 1 if found.before else True
    for number, text in found.before.items():
        after = next((line.text for line in found.after if line.number == number), None)
        assert after == text or number in told


@relaxed
@given(damaged())
def test_a_line_is_removed_only_as_a_message_or_as_the_cut_off_end(lines: list[str]) -> None:
    found = visit(lines)
    kept = {line.number: line.text for line in found.after}
    for number, text in found.before.items():
        try:
            json.loads(text)
        except ValueError:
            assert kept.get(number) == text or number == len(lines)


@relaxed
@given(damaged())
def test_no_words_are_lost(lines: list[str]) -> None:
    found = visit(lines)
    there = {line.text for line in found.after}  # a line that cannot be read is kept as it is
    there |= {text for message in found.messages for text in texts(encode_message(message))}
    there |= {text for finding in found.repairs for value in (finding.was, finding.now) for text in texts(value)}
    for raw in found.before.values():
        try:
            data = json.loads(raw)
        except ValueError:
            assert raw in there  # a line that is no JSON is kept or handed over
            continue
        clean = [text for text in texts(data.get("content")) if "\0" not in text and text.isprintable()]
        assert [text for text in clean if text.strip() and text not in there] == []
