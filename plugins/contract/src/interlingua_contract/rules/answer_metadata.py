"""Rules on stop reasons and token counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.types import StopReason, Usage
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.facts import event_names, replaced_word
from interlingua_contract.json_paths import Path, format_path, leaves, with_value, without
from interlingua_contract.recordings import (
    USAGE_COUNTS,
    Frames,
    ReadResult,
    json_payloads,
    read_answer,
    read_stream,
    read_whole,
    recorded_answers,
    spread_places,
)
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.subject import Subject

_NEW_WORD = "contract_new_reason"

_BY_CONTENT = {StopReason.TOOL_USE, StopReason.REFUSAL}
"""Stop reasons that follow from the content alone, whatever the provider's word."""

_COMMON_WORDS = {
    r"length|max_(output_)?tokens": (StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW),
    r"refus|filter|safety|sensitive|prohibited": (StopReason.REFUSAL,),
    r"tool": (StopReason.TOOL_USE, StopReason.ERROR),
}
"""Words that mean the same in every service that uses them."""


@rule(
    "C36",
    "An unknown stop reason is OTHER (or what calls or a refusal imply), with the provider's word; it never raises.",
    source="format.md, Metadata",
    fix="""Map stop reasons with a table and `.get(word, StopReason.OTHER)`, and set `stop_reason_raw` to the
    provider's word, both whole and streamed.""",
)
def unknown_stop_reasons_are_other(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded answer with its word replaced."""
    for exchange, message in recorded_answers(subject):
        word = message.metadata.stop_reason_raw
        if not word:
            yield RuleFinding("stop_reason_raw is empty: the provider's word is not kept", exchange.cassette)
            continue
        found = replaced_word(subject, exchange, word, _NEW_WORD)
        if found is None and word in event_names(subject, exchange):
            continue  # another name would be another event, not another reason
        if found is None:
            yield RuleFinding(f"stop_reason_raw is {word!r}, a word that is not in the answer", exchange.cassette)
        elif found.escaped or found.error or found.message is None:
            yield RuleFinding(f"an unknown word leads to {found.error or found.escaped}", exchange.cassette)
        else:
            got = (found.message.metadata.stop_reason, found.message.metadata.stop_reason_raw)
            allowed = _BY_CONTENT & {message.metadata.stop_reason} | {StopReason.OTHER}
            if got[0] not in allowed or got[1] != _NEW_WORD:
                yield RuleFinding(f"{word!r} replaced by {_NEW_WORD!r} is read as {got}", exchange.cassette)


@rule(
    "C37",
    "A good answer has a stop reason that fits: `tool_use` for calls; a word for length or refusal keeps that meaning.",
    source="format.md, Metadata",
    fix="""Some services report `stop` although the answer has calls: set TOOL_USE for a finished answer with calls,
    and keep the provider's word in `stop_reason_raw`.""",
)
def stop_reasons_fit_the_content(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded answer."""
    for exchange, message in recorded_answers(subject):
        reason = message.metadata.stop_reason
        word = (message.metadata.stop_reason_raw or "").lower()
        for pattern, meant in _COMMON_WORDS.items():
            if re.search(pattern, word) and reason not in meant:
                yield RuleFinding(f"{word!r} is read as {reason}", exchange.cassette)
        if reason is None:
            yield RuleFinding("a complete message without a stop reason", exchange.cassette)
        elif message.tool_calls and reason in (StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.OTHER):
            yield RuleFinding(f"{len(message.tool_calls)} calls, but the stop reason is {reason}", exchange.cassette)
        elif reason is StopReason.TOOL_USE and not message.tool_calls:
            yield RuleFinding("stop reason tool_use without a call", exchange.cassette)
        if reason is StopReason.ERROR and read_answer(subject, exchange).error is None:
            yield RuleFinding("a good answer with stop reason error", exchange.cassette)


_NO_PART = ("audio", "miss")
"""Words in the names of counts that ours exclude: another medium, or tokens that the cache did not hold."""

_ODD: tuple[Any, ...] = (None, "many", -1, 1.5, True, [], {})


@rule(
    "C38",
    "Cached tokens are part of the input, reasoning is part of the output, and every token is counted once.",
    source="format.md, Usage",
    fix="""`input_tokens` is the inclusive total: add cached reads and writes if the service reports them
    separately, and do not add them if its total includes them. The same holds for `reasoning_tokens`, which are
    part of `output_tokens`.""",
)
def parts_lie_within_totals(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded answer."""
    for exchange, message in recorded_answers(subject):
        usage = message.metadata.usage
        if usage is None or usage.input_tokens is None or exchange.continued:
            continue
        parts = (usage.cached_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        too_large = parts > usage.input_tokens or (usage.reasoning_tokens or 0) > (usage.output_tokens or 0)
        if too_large or any((getattr(usage, name) or 0) < 0 for name in USAGE_COUNTS):
            yield RuleFinding(f"a part is larger than its total: {usage}", exchange.cassette)
        reported = _reported_counts(subject, exchange)
        for what, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if reported and count is not None and count not in _possible_sums(reported):
                yield RuleFinding(f"{count} {what} tokens are not a sum of counts in {reported}", exchange.cassette)
        if why := _find_unreported_part(usage, reported):
            yield RuleFinding(why, exchange.cassette)


def _reported_counts(subject: Subject, exchange: RecordedExchange) -> list[dict[str, int]]:
    """Return the reported counts, those of one body or event together, by the dotted names of their fields."""
    found = [
        {format_path(path).lower(): leaf for path, leaf in leaves(body) if _is_count(path) and type(leaf) is int}
        for body in json_payloads(subject, exchange)
    ]
    return [counts for counts in found if counts]


def _possible_sums(reported: list[dict[str, int]]) -> set[int]:
    """Return the sums of up to three counts that were reported together."""
    return {sum(some) for counts in reported for number in (1, 2, 3) for some in combinations(counts.values(), number)}


def _find_unreported_part(usage: Usage, reported: list[dict[str, int]]) -> str:
    """Return which reported part is missing; empty if all are there."""
    parts = {
        "cache": (usage.cached_input_tokens, usage.cache_creation_input_tokens),
        "reasoning": (usage.reasoning_tokens,),
        "thought": (usage.reasoning_tokens,),
        "thinking": (usage.reasoning_tokens,),
    }
    for word, kept in parts.items():
        for name, count in [item for counts in reported for item in counts.items()]:
            counted = word in name and not any(other in name for other in _NO_PART)
            if counted and count > max(0, *(one or 0 for one in kept)):
                return f"{name} = {count} is reported, but missing in the usage"
    return ""


def _is_count(path: Path) -> bool:
    words = [str(key).lower() for key in path]
    return any("usage" in word for word in words[:-1]) or (bool(words) and words[-1].endswith(("tokens", "_count")))


@rule(
    "C39",
    "Odd, missing and new counts raise nothing; an unreported count is None, not 0.",
    source="format.md, Usage",
    fix="""Read every count with `.get` and accept only non-negative integers; use None for a count that was not
    reported. A missing usage object is not an error.""",
)
def counts_may_be_odd(subject: Subject) -> Iterator[RuleFinding]:
    """Each count of each recorded answer replaced, one by one; then all of them removed."""
    for exchange, message in recorded_answers(subject):
        if exchange.continued:
            continue
        if exchange.streamed:
            found = read_stream(subject, exchange, Frames(subject, exchange).changed(_without_counts))
            yield from _check_without_counts(found, exchange)
            continue
        body = json.loads(exchange.body)
        counts = [path for path, leaf in leaves(body) if _is_count(path) and isinstance(leaf, (int, float))]
        for path in [counts[at] for at in spread_places(len(counts), 12)]:
            for odd in _ODD:
                found = read_whole(subject, exchange, json.dumps(with_value(body, path, odd)).encode())
                if found.escaped or (found.error and not isinstance(found.error, MalformedResponseError)):
                    yield RuleFinding(
                        f"{format_path(path)} = {odd!r}: {found.error or found.escaped}", exchange.cassette
                    )
                elif found.message and found.message.text != message.text:
                    yield RuleFinding(f"{format_path(path)} = {odd!r} changes the text", exchange.cassette)
        yield from _check_without_counts(
            read_whole(subject, exchange, json.dumps(_without_counts(body)).encode()), exchange
        )


def _check_without_counts(found: ReadResult, exchange: RecordedExchange) -> Iterator[RuleFinding]:
    if found.message is None or found.error is not None:
        yield RuleFinding(f"without counts: {found.error or found.escaped}", exchange.cassette)
        return
    usage = found.message.metadata.usage
    reported = [name for name in USAGE_COUNTS if usage is not None and getattr(usage, name) is not None]
    if reported:
        yield RuleFinding(
            f"without counts {reported[0]} is {getattr(usage, reported[0])!r}, not None", exchange.cassette
        )


def _without_counts(body: Any) -> Any:
    while True:
        path = next((path for path, leaf in leaves(body) if _is_count(path) and not isinstance(leaf, str)), None)
        if path is None:
            return body
        body = without(body, path)
