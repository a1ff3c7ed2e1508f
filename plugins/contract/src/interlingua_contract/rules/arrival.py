"""Rules on strings that look like the wire, on events that arrive as one, and on large conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from interlingua.types import Message, system, tool_result, user
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.json_paths import append_to_texts, texts
from interlingua_contract.recordings import Frames, read_answer, read_stream, recorded_streams
from interlingua_contract.rule import NotApplicable, RuleFinding, around_difference, rule
from interlingua_contract.scenes import READ, assistant_turn, call
from interlingua_contract.subject import Subject

_WORDS = (
    *("[DONE]", "error", "null", "data: x", "event: error", "a\\nb", "\u2028", "\x85", "\x1e", "message_stop"),
    *('{"error":{"message":"m"}}', '"finish_reason":"stop"', "<|im_end|>", "content_filter", "tool_calls"),
    *("e\u0301\u200b\ufeff\u202e\U0001f9d1", "\x07 \r\n\t\xa0", "Dr.  No <b>&amp;</b> `x`"),
)
_HARMLESS = "mkw1q"
_DEPTH = 60
_CALLS = 120
_EDGE = " \r\n\t"


@rule(
    "C101",
    "Words of the wire in an answer's content are content: `[DONE]`, `error`, `null`, line ends, JSON, spaces.",
    source="format.md, Streaming; hook stream_response",
    fix="""Parse each event and read its fields; never search for words in its bytes, and do not unescape a string
    that the JSON parser returned. Split lines at line feeds only: `str.splitlines` splits at U+2028 and others. Trim
    and normalise nothing.""",
)
def words_of_the_wire_are_text(subject: Subject) -> Iterator[RuleFinding]:
    """Such words appended to the strings of recorded answers, whole and streamed."""
    found = False
    forms: dict[tuple[Any, ...], int] = {}
    for exchange in subject.exchanges:
        at = (subject.api_of(exchange), exchange.streamed)
        if not exchange.good or forms.get(at, 0) == 2 or _HARMLESS not in _read_with(subject, exchange, _HARMLESS):
            continue
        forms[at] = forms.get(at, 0) + 1
        found = True
        for words in _WORDS:
            if words + _HARMLESS not in (text := _read_with(subject, exchange, words + _HARMLESS)):
                yield RuleFinding(
                    f"with {words!r} in its text, the answer is read as {text[:100]!r}", exchange.cassette
                )
                break
        wanted = _read_with(subject, exchange, "mke1q", "mkb1q")
        wanted = wanted.replace("mkb1q", f"{_EDGE}mkb1q").replace("mke1q", f"mke1q{_EDGE}")
        if wanted != (text := _read_with(subject, exchange, f"mke1q{_EDGE}", f"{_EDGE}mkb1q")):
            shown = around_difference(wanted, text)
            yield RuleFinding("space around strings is not read exactly", exchange.cassette, **shown)
    if not found:
        raise NotApplicable("no recorded answer has text: record one")


def _read_with(subject: Subject, exchange: RecordedExchange, words: str, before: str = "") -> str:
    """Return the text of an answer as it is read with words around each of its strings."""
    plain = read_answer(subject, exchange).text

    change = partial(append_to_texts, words=words, within=plain, before=before)
    if exchange.streamed:
        return read_stream(subject, exchange, Frames(subject, exchange).changed(change)).text
    body = json.dumps(change(json.loads(exchange.body)), ensure_ascii=False).encode()
    return read_answer(subject, exchange, body).text


@rule(
    "C102",
    "Neighbouring events that say different things are the same answer as one event that says both.",
    source="format.md, Streaming; hook stream_response",
    fix="""Read every field of every event. Services put the last delta, the stop reason and the counts into
    one event or into several, and change that without notice; an event with a stop reason may have text.""",
)
def events_may_arrive_as_one(subject: Subject) -> Iterator[RuleFinding]:
    """Each pair of neighbouring events with nothing in common, of streams whose events are all of one kind."""
    tried = 0
    for exchange in recorded_streams(subject):
        frames = Frames(subject, exchange)
        data = [frames.data(event) for event in frames.events]
        if (
            frames.framing == "own"
            or len({frames.name(event) for event in frames.events}) > 1
            or not _of_one_kind(data)
        ):
            continue
        plain = read_stream(subject, exchange)
        if plain.message is None or plain.error is not None or plain.message.tool_calls:
            continue  # two parts of a list may be two calls, or two pieces of one
        for at in range(max(len(data) - 4, 0), len(data) - 1):
            try:
                both = _merged(data[at], data[at + 1], plain.text)
            except ValueError:
                continue
            tried += 1
            event = frames.with_data(frames.events[at], both)
            read = read_stream(subject, exchange, frames.join([*frames.events[:at], event, *frames.events[at + 2 :]]))
            if (got := _facts(read.message)) != (wanted := _facts(plain.message)):
                values = around_difference(f"{wanted}", f"{got}")
                yield RuleFinding(f"events {at + 1} and {at + 2} in one", exchange.cassette, **values)
                break
    if not tried:
        raise NotApplicable("the events of this wire are of several kinds, so no two of them are one")


def _of_one_kind(data: list[Any]) -> bool:
    return all(one is None or (isinstance(one, dict) and not {"type", "event"} & set(one)) for one in data) and any(
        data
    )


def _merged(one: Any, other: Any, text: str) -> Any:
    """Return one object that says what both say.

    Raises:
        ValueError: they say different things in one place.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one | {key: _merged(one[key], item, text) if key in one else item for key, item in other.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) == 1:
        return [_merged(one[0], other[0], text)]
    if one in (None, "", False, []) or one == other:
        return other
    if other in (None, "", False, []):
        return one
    if isinstance(one, str) and isinstance(other, str) and one + other in text:
        return one + other
    raise ValueError(f"{one!r} and {other!r}")


def _facts(message: Message | None) -> Any:
    if message is None:
        return None
    thoughts = "".join(block.text for block in message.thinking_blocks)
    usage = message.metadata.usage
    counts = usage and (usage.input_tokens, usage.output_tokens)
    return message.text, thoughts, message.metadata.stop_reason_raw, counts


@rule(
    "C103",
    "A large conversation arrives whole: over a hundred calls with different ids, and deeply nested arguments.",
    source="format.md, Identity; hook to_wire",
    fix="""Do not limit what you write: no fixed depth, no ids that repeat after a while, no cut of long values. Core
    checks the limits that `capabilities` declares.""",
)
def large_conversations_arrive_whole(subject: Subject) -> Iterator[RuleFinding]:
    """Many rounds of calls, each result with its own mark, and arguments nested deeply."""
    aims = {aim.api: aim for aim in reversed(subject.aims) if aim.capabilities.supports_tools}
    if not aims:
        raise NotApplicable("no model has tools: declare supports_tools and record a call")
    for aim in aims.values():
        history: list[Message] = [user("q")]
        for number in range(_CALLS):
            one = call(number + 1, f"mka{number:04}q")
            history += [assistant_turn([one], None), tool_result(one, f"mku{number:04}q")]
        deep: Any = "mkd0001q"
        for _ in range(_DEPTH):
            deep = {"in": [deep]}
        nested = call(9001, deep)
        history += [assistant_turn([nested], None), tool_result(nested, "mkr0001q"), user("n")]
        if aim.capabilities.supports_system_prompt:
            history.insert(0, system("mkp0001q"))
        found = texts(subject.body(aim, history, [READ]))
        marks = [f"mk{kind}{number:04}q" for number in range(_CALLS) for kind in "au"]
        for mark in [*marks, "mkd0001q", "mkr0001q"]:
            if not any(mark in leaf for leaf in found):
                yield RuleFinding(f"{mark!r} of {len(history)} messages is missing", aim.name)
                break
        repeated = [leaf for leaf in set(found) if leaf.count("q") < 2 and 3 <= found.count(leaf) <= 9 and _is_id(leaf)]
        if repeated:
            yield RuleFinding(f"{sorted(repeated)[0]!r} is the id of several calls", aim.name)


def _is_id(leaf: str) -> bool:
    return " " not in leaf and any(letter.isdigit() for letter in leaf)
