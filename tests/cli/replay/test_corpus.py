"""Recorded traffic of every API an installed adapter reads: nothing fails, nothing a model said is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua.codec import encode_message
from interlingua.plugins import Registry
from interlingua_cli.replay.exchange import Matcher, Outcome, replay
from interlingua_cli.replay.source import Entry, open_recording, read_entry
from tests.cli.replay import leaves
from tests.support.corpus import Corpus

APIS = ("anthropic-messages", "openai-chat", "openai-responses")


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(Registry())


def _replayed(corpus: Corpus, api: str, matcher: Matcher) -> Iterator[tuple[Entry, Outcome]]:
    with open_recording(str(corpus.file(api))) as recording:
        for name, line in recording.lines():
            entry = read_entry(line, name)
            yield entry, replay(entry, matcher)


@pytest.mark.parametrize("api", APIS)
def test_every_exchange_is_decoded_and_no_leaf_is_lost(api: str, corpus: Corpus, matcher: Matcher) -> None:
    failed, lost, checked = [], [], 0
    for entry, outcome in _replayed(corpus, api, matcher):
        if not outcome.decoded:
            failed.append(f"{entry.id}: {outcome.error!r}"[:300])
        elif outcome.message is not None:
            held = "\0".join(_strings(encode_message(outcome.message)["content"]))
            for leaf in _leaves(entry):
                checked += 1
                if not _held(leaf, held):
                    lost.append(f"{entry.id}: {leaf[:100]!r}")

    assert not failed, "\n".join(failed[:20])
    assert not lost, "\n".join(lost[:20])
    assert checked > 1000  # the reader itself has not gone blind


def _leaves(entry: Entry) -> list[str]:
    text = entry.body.decode("utf-8", "replace")
    return list(leaves.of_stream(text) if entry.streamed else leaves.of_whole(json.loads(text)))


def _held(leaf: str, held: str) -> bool:
    """Arguments may have become an object: then each of its strings counts."""
    if leaf in held:
        return True
    try:
        return all(part in held for part in _strings(json.loads(leaf)))
    except ValueError:
        return False


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)
