"""Recorded answers of the two wires, read by the adapter that the replay would choose, ready to be compared.

What the SDK makes of them is in `openai_sdk`; nothing is judged here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs

from interlingua._json import thaw
from interlingua._plugins.registry import Registry
from interlingua.plugins import WireResponse, build_request
from interlingua.types.factories import user
from interlingua.types.messages import Message
from interlingua.types.options import RequestOptions
from interlingua_cli.replay.exchange import Match, Matcher, decode_entry, make_context
from interlingua_cli.replay.source import Entry, read_entry
from tests.oracle.openai_sdk import Reading
from tests.support.corpus import Corpus
from tests.support.counts import chosen

_MATCHER = Matcher(Registry())
_PART = 5


@attrs.frozen(kw_only=True)
class Answer:
    """One successful exchange and who reads it."""

    entry: Entry
    match: Match

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.entry.id

    @property
    def body(self) -> bytes:
        """The body."""
        return self.entry.body

    def message(self, chunk: int | None = None) -> Message:
        """Return the message, a stream cut into pieces of `chunk` bytes."""
        return decode_entry(self.entry, self.match, chunk=chunk)

    def of_whole(self, body: bytes) -> Message:
        """Return the message of a whole body that says the same, with the same ids."""
        response = WireResponse(status=200, headers=self.entry.headers, body=body)
        return self.match.provider.from_wire_response(response, make_context(self.entry, self.match))

    def next_turn(self, message: Message) -> bytes:
        """Return the request that sends the message back."""
        options = RequestOptions(model=self.entry.model, api=self.match.api)
        return build_request(self.match.provider, [user("a"), message, user("b")], [], options).body


def answers(corpus: Corpus, file: str, *, streamed: bool) -> Iterator[Answer]:
    """Yield the successful answers of one kind: all in CI, and otherwise a fixed one in five."""
    for row in corpus.entries(file):
        if chosen(row["id"], _PART) and (row["status"] or 200) < 400 and (row["kind"] == "sse") is streamed:
            entry = read_entry(json.dumps(row).encode(), row["id"])
            yield Answer(entry=entry, match=_MATCHER.match(entry))


def reading(message: Message) -> Reading:
    """Take from our message what is compared; arguments as they were written."""
    usage = message.metadata.usage
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_creation_input_tokens", "reasoning_tokens")
    stop = message.metadata.stop_reason
    assert stop is not None
    calls = [
        (call.name, json.dumps(thaw(call.input)) if call.raw_input is None else call.raw_input)
        for call in message.tool_calls
    ]
    return Reading(
        text=message.text,
        calls=tuple(calls),
        stop=stop,
        usage=tuple(getattr(usage, name, None) for name in names),
    )


def differences(theirs: Reading, ours: Reading) -> list[str]:
    """Return in what the two differ; a count that the SDK has no type for may be known to us alone."""
    found = [
        f"{name}: {getattr(ours, name)!r} != {getattr(theirs, name)!r}"[:300]
        for name in ("text", "calls", "stop")
        if getattr(ours, name) != getattr(theirs, name)
    ]
    if any(told is not None and told != read for told, read in zip(theirs.usage, ours.usage, strict=True)):
        found.append(f"usage: {ours.usage} != {theirs.usage}")
    return found
