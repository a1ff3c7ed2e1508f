"""Rules on usage: what is reported is kept, parts lie within their totals, what is not reported is None.

Never computes a price.
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlingua.contract.frames import Frames
from interlingua.contract.reading import Read, read_stream, read_whole
from interlingua.contract.rule import Finding, rule
from interlingua.contract.rules.decoding import places
from interlingua.contract.rules.returning import answers
from interlingua.contract.subject import Subject
from interlingua.errors import MalformedResponse
from interlingua.replay.cassettes import Exchange
from interlingua.trees import Path, leaves, removed, replaced, shown

_ODD: tuple[Any, ...] = (None, "many", -1, 1.5, True, [], {})
_COUNTS = (
    "input_tokens", "output_tokens", "cached_input_tokens", "cache_creation_input_tokens", "reasoning_tokens",
)  # fmt: skip


@rule(
    "C38",
    "Cached tokens are part of the input, reasoning is part of the output, and no count is negative.",
    source="DESIGN 3 (Usage); sheet MAPPING",
    fix="""`input_tokens` is the inclusive total: add cached reads and writes where the wire reports them apart, and
    do not where it includes them. `reasoning_tokens` is part of `output_tokens` likewise.""",
)
def parts_lie_within_totals(subject: Subject) -> Iterator[Finding]:
    """Each recorded answer."""
    for exchange, message in answers(subject):
        usage = message.metadata.usage
        if usage is None or usage.input_tokens is None:
            continue
        parts = (usage.cached_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        too_large = parts > usage.input_tokens or (usage.reasoning_tokens or 0) > (usage.output_tokens or 0)
        if too_large or any((getattr(usage, name) or 0) < 0 for name in _COUNTS):
            yield Finding(why=f"a part is larger than its total: {usage}", where=exchange.cassette)
        told = _told(subject, exchange)
        if told and usage.input_tokens not in _sums(told):
            yield Finding(
                why=f"{usage.input_tokens} input tokens are no sum of reported {told}", where=exchange.cassette
            )


def _told(subject: Subject, exchange: Exchange) -> list[int]:
    bodies = _bodies(subject, exchange)
    return [leaf for body in bodies for path, leaf in leaves(body) if _counts(path) and type(leaf) is int]


def _sums(numbers: list[int]) -> set[int]:
    found = {0}
    for number in set(numbers):
        found |= {one + number for one in found}
    return found


def _bodies(subject: Subject, exchange: Exchange) -> list[Any]:
    if exchange.streamed:
        frames = Frames(subject, exchange)
        return [data for event in frames.events if (data := frames.data(event)) is not None]
    return [json.loads(exchange.body)]


def _counts(path: Path) -> bool:
    words = [str(key).lower() for key in path]
    return any("usage" in word for word in words[:-1]) or (bool(words) and words[-1].endswith(("tokens", "_count")))


@rule(
    "C39",
    "Odd, missing and new counts raise nothing; what is not reported is None, not 0.",
    source="DESIGN 3 (Usage)",
    fix="""Read every count with `.get` and take only integers that are not negative; leave None where nothing was
    reported. A missing usage object is no error.""",
)
def counts_may_be_odd(subject: Subject) -> Iterator[Finding]:
    """Each count of each recorded answer replaced, one by one; then all of them removed."""
    for exchange, message in answers(subject):
        if exchange.streamed:
            found = read_stream(subject, exchange, Frames(subject, exchange).changed(_without_counts))
            yield from _unreported(found, exchange)
            continue
        body = json.loads(exchange.body)
        counts = [path for path, leaf in leaves(body) if _counts(path) and isinstance(leaf, (int, float))]
        for path in [counts[at] for at in places(len(counts), 12)]:
            for odd in _ODD:
                found = read_whole(subject, exchange, json.dumps(replaced(body, path, odd)).encode())
                if found.escaped or (found.error and not isinstance(found.error, MalformedResponse)):
                    why = f"{shown(path)} = {odd!r}: {found.error or found.escaped}"
                    yield Finding(why=why, where=exchange.cassette)
                elif found.message and found.message.text_content() != message.text_content():
                    yield Finding(why=f"{shown(path)} = {odd!r} changes the text", where=exchange.cassette)
        yield from _unreported(read_whole(subject, exchange, json.dumps(_without_counts(body)).encode()), exchange)


def _unreported(found: Read, exchange: Exchange) -> Iterator[Finding]:
    if found.message is None or found.error is not None:
        yield Finding(why=f"without counts: {found.error or found.escaped}", where=exchange.cassette)
        return
    usage = found.message.metadata.usage
    told = [name for name in _COUNTS if usage is not None and getattr(usage, name) is not None]
    if told:
        yield Finding(why=f"without counts {told[0]} is {getattr(usage, told[0])!r}, not None", where=exchange.cassette)


def _without_counts(body: Any) -> Any:
    while True:
        path = next((path for path, leaf in leaves(body) if _counts(path) and not isinstance(leaf, str)), None)
        if path is None:
            return body
        body = removed(body, path)
