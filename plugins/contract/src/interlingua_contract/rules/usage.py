"""Rules on usage: what is reported is kept, parts lie within their totals, what is not reported is None.

Never computes a price.
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.types.messages import Usage
from interlingua_cli.cassettes import Exchange
from interlingua_contract.frames import Frames
from interlingua_contract.json_paths import Path, leaves, removed, replaced, shown
from interlingua_contract.reading import Read, read_stream, read_whole
from interlingua_contract.rule import Finding, rule
from interlingua_contract.rules.decoding import places
from interlingua_contract.rules.keeping import bodies_of
from interlingua_contract.rules.returning import answers
from interlingua_contract.rules.roads import COUNTS
from interlingua_contract.subject import Subject

_NO_PART = ("audio", "miss")


"""What a name says that is no part of ours: another medium, or the tokens that the cache did not hold."""


_ODD: tuple[Any, ...] = (None, "many", -1, 1.5, True, [], {})


@rule(
    "C38",
    "Cached tokens are part of the input, reasoning is part of the output, and what was told is counted once.",
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
        if too_large or any((getattr(usage, name) or 0) < 0 for name in COUNTS):
            yield Finding(why=f"a part is larger than its total: {usage}", where=exchange.cassette)
        told = _told(subject, exchange)
        for what, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if told and count is not None and count not in _sums(told):
                yield Finding(why=f"{count} {what} tokens are no sum of reported {told}", where=exchange.cassette)
        if why := _untold(usage, told):
            yield Finding(why=why, where=exchange.cassette)


def _told(subject: Subject, exchange: Exchange) -> list[dict[str, int]]:
    """Return the reported counts, those of one body or event together, by the dotted names of their fields."""
    found = [
        {shown(path).lower(): leaf for path, leaf in leaves(body) if _counts(path) and type(leaf) is int}
        for body in bodies_of(subject, exchange)
    ]
    return [counts for counts in found if counts]


def _sums(told: list[dict[str, int]]) -> set[int]:
    """Return what some of the counts that were told together add up to: three parts at the most."""
    return {sum(some) for counts in told for number in (1, 2, 3) for some in combinations(counts.values(), number)}


def _untold(usage: Usage, told: list[dict[str, int]]) -> str:
    """Say which part was told and is not there."""
    parts = {
        "cache": (usage.cached_input_tokens, usage.cache_creation_input_tokens),
        "reasoning": (usage.reasoning_tokens,),
        "thought": (usage.reasoning_tokens,),
        "thinking": (usage.reasoning_tokens,),
    }
    for word, kept in parts.items():
        for name, count in [item for counts in told for item in counts.items()]:
            if any(other in name for other in _NO_PART):
                continue
            if word in name and count and count > max(one or 0 for one in kept):
                return f"{name} = {count} is not told"
    return ""


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
                if found.escaped or (found.error and not isinstance(found.error, MalformedResponseError)):
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
    told = [name for name in COUNTS if usage is not None and getattr(usage, name) is not None]
    if told:
        yield Finding(why=f"without counts {told[0]} is {getattr(usage, told[0])!r}, not None", where=exchange.cassette)


def _without_counts(body: Any) -> Any:
    while True:
        path = next((path for path, leaf in leaves(body) if _counts(path) and not isinstance(leaf, str)), None)
        if path is None:
            return body
        body = removed(body, path)
