"""Every recorded answer of the two wires that the official SDK parses: it and we read the same; and two roads agree."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interlingua.errors import ProviderError
from interlingua.types.messages import Message
from tests.oracle import openai_sdk as sdk
from tests.oracle.openai_recorded import Answer, answers, differences, reading
from tests.oracle.readings import disagreements
from tests.support.corpus import Corpus
from tests.support.counts import examples

LARGE = 200_000
LISTED = disagreements("openai")
WIRES: dict[str, tuple[Callable[[bytes], Any], Callable[[bytes], Any], Callable[[Any], sdk.Reading]]] = {
    "openai-chat": (sdk.whole_chat, sdk.streamed_chat, sdk.read_chat),
    "openai-responses": (sdk.whole_response, sdk.streamed_response, sdk.read_response),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Recorded answers are full of unanswered calls, and of values the SDK's models did not expect."""
    logger = logging.getLogger("interlingua")
    before = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logger.setLevel(before)


def _listed(test: str) -> set[str]:
    return {name.partition("#")[0] for name in LISTED if name.partition("#")[2] == test}


def _surprises(found: dict[str, Any], explained: set[str], seen: set[str]) -> str:
    """Return the entries that differ and are not listed, and those that are listed, were seen and do not differ."""
    unlisted = [f"{name}: {what}" for name, what in found.items() if name not in explained]
    return "\n".join(unlisted + [f"{name}: listed, but agrees" for name in (explained & seen) - found.keys()])


def _failed(answer: Answer) -> bool:
    """An error inside a 200 is for the tests of errors."""
    try:
        answer.message()
    except ProviderError:
        return True
    return False


@pytest.mark.parametrize(("file", "streamed", "least"), [
    ("openai-chat", False, 1800), ("openai-chat", True, 490),
    ("openai-responses", False, 1050), ("openai-responses", True, 470),
])  # fmt: skip
def test_the_sdk_reads_the_same(file: str, streamed: bool, least: int, corpus: Corpus) -> None:
    whole, stream, read = WIRES[file]
    wrong: dict[str, Any] = {}
    seen = set()
    for answer in answers(corpus, file, streamed=streamed):
        try:
            theirs = read((stream if streamed else whole)(answer.body))
        except sdk.Unparsed:
            continue
        seen.add(answer.id)
        if found := differences(theirs, reading(answer.message())):
            wrong[answer.id] = found

    assert len(seen) >= examples(least, least // 8)
    assert not _surprises(wrong, _listed("sdk"), seen)


@pytest.mark.parametrize("file", WIRES)
def test_streams_are_the_same_at_every_chunking(file: str, corpus: Corpus) -> None:
    wrong: dict[str, Any] = {}
    seen = set()
    for answer in answers(corpus, file, streamed=True):
        if _failed(answer):
            continue
        seen.add(answer.id)
        message = answer.message()
        for size in (7,) if len(answer.body) > LARGE else (1, 7):
            again = answer.message(size)
            if again != message or again.metadata.provider_raw != message.metadata.provider_raw:
                wrong[answer.id] = size

    assert seen
    assert not wrong


def _roads(answer: Answer, body: bytes, streamed: Message) -> list[str]:
    whole = answer.of_whole(body)
    found = [] if whole == streamed else [f"roads: {_first_difference(whole, streamed)}"[:600]]
    if answer.next_turn(whole) != answer.next_turn(streamed):
        found.append(f"next turn: {answer.next_turn(whole)[-300:]!r} != {answer.next_turn(streamed)[-300:]!r}")
    return found


def _first_difference(one: Message, two: Message) -> str:
    for left, right in zip(one.content, two.content, strict=False):
        if left != right:
            return f"{left!r} != {right!r}"
    return f"{len(one.content)} and {len(two.content)} blocks; {one.metadata} != {two.metadata}"


def test_chat_streams_equal_the_whole_message_the_sdk_accumulates(corpus: Corpus) -> None:
    wrong: dict[str, Any] = {}
    seen = set()
    for answer in answers(corpus, "openai-chat", streamed=True):
        try:
            accumulated = sdk.streamed_chat(answer.body)
        except sdk.Unparsed:
            continue
        seen.add(answer.id)
        if found := _roads(answer, json.dumps(accumulated).encode(), answer.message()):
            wrong[answer.id] = found

    assert len(seen) > examples(490, 60)
    assert not _surprises(wrong, _listed("roads"), seen)


def test_responses_streams_equal_their_terminal_response(corpus: Corpus) -> None:
    wrong: dict[str, Any] = {}
    seen = set()
    for answer in answers(corpus, "openai-responses", streamed=True):
        body = terminal(answer.body)
        if body is None or _failed(answer):
            continue
        seen.add(answer.id)
        if found := _roads(answer, body, answer.message()):
            wrong[answer.id] = found

    assert len(seen) > examples(450, 56)
    assert not _surprises(wrong, _listed("roads"), seen)


def terminal(stream: bytes) -> bytes | None:
    """Return the response of the last terminal event, with the items of earlier answers in the body before its own.

    One service sends every item and then an empty output with the end: what was done stands in for it.
    """
    items: dict[int, Any] = {}
    earlier: list[Any] = []
    found = None
    for line in stream.replace(b"\r\n", b"\n").split(b"\n"):
        if not line.startswith((b"data: {", b"data:{")):
            continue
        event = json.loads(line[5:])
        if event.get("type") == "response.output_item.done":
            items[event["output_index"]] = event["item"]
        elif event.get("type") in sdk.ENDS:
            found = event["response"]
            earlier += found.get("output") or [item for _, item in sorted(items.items())]
            found["output"] = earlier
            items.clear()
    return json.dumps(found).encode() if found else None


def test_every_disagreement_is_explained_and_of_an_entry_there_is(corpus: Corpus) -> None:
    known = {entry["id"] for file in WIRES for entry in corpus.entries(file)}

    assert not {name for name in LISTED if name.partition("#")[0] not in known}
    assert all(reason.strip() for reason in LISTED.values())
