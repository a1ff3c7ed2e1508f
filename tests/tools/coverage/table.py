"""The table of all words and what becomes of them, found by asking and reading; one row a word."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

from tests.tools.coverage import anthropic_openai, chat_apis, decisions, google_others, readings, requests
from tests.tools.coverage.places import Place
from tests.tools.coverage.wire import Wire

APIS: tuple[Callable[[], Wire], ...] = (
    anthropic_openai.messages_api, anthropic_openai.responses_api, chat_apis.openai_chat,
    google_others.generate_api, google_others.interactions_api, chat_apis.mistral_chat, google_others.cohere_api,
    google_others.converse_api, google_others.ollama_api, chat_apis.groq_chat, chat_apis.together_chat,
    chat_apis.openrouter_chat, chat_apis.zai_chat,
)  # fmt: skip


def sections(wire: Wire) -> Iterator[tuple[str, Iterator[tuple[str, Place]]]]:
    """Yield the groups of an API's words: their title, and what becomes of each."""
    yield "parameters", requests.parameters(wire)
    yield "blocks of a request", requests.sent_blocks(wire)
    yield "tools", requests.tools(wire)
    yield "fields of an answer", _fields(wire)
    yield "blocks of an answer", readings.blocks(wire)
    yield "streamed fields", _chunk_fields(wire)
    yield "streamed blocks", readings.streamed_blocks(wire)
    yield "events", readings.events(wire)


def _fields(wire: Wire) -> Iterator[tuple[str, Place]]:
    for part in wire.parts:
        read = lambda body: readings.read_whole(wire, body)  # noqa: E731
        for name, place in readings.members_of(wire, part, wire.answer, read, wire.parameters):
            yield f"{part.label}.{name}".lstrip("."), place


def _chunk_fields(wire: Wire) -> Iterator[tuple[str, Place]]:
    for at, parts in wire.chunks:

        def read(event: Any, at: int = at) -> Any:
            events = list(wire.stream)
            events[at] = event
            return readings.read_stream(wire, events)

        def read_cut(event: Any, at: int = at) -> Any:
            return readings.read_cut(wire, [*wire.stream[:at], event])

        cut = read_cut if len(wire.stream) > 1 else None
        for part in parts:
            for name, place in readings.members_of(wire, part, wire.stream[at], read, wire.parameters, cut):
                yield f"{part.label}.{name}".lstrip("."), place


def made() -> dict[str, Any]:
    """Return the table: the SDKs' versions, and each API's words by group."""
    found = [(wire.name, wire.sdk, sections(wire)) for wire in (make() for make in APIS)]
    found += [(api.name, api.sdk, decisions.sections(api)) for api in (make() for make in decisions.APIS)]
    return {
        "sdks": {name: version(name) for name in sorted({sdk for _, sdk, _ in found})},
        "apis": {
            name: {
                "sdk": sdk,
                "groups": {title: {word: list(place) for word, place in rows} for title, rows in groups},
            }
            for name, sdk, groups in found
        },
    }


def main() -> None:
    """Print the table as JSON."""
    print(json.dumps(made(), indent=1))


if __name__ == "__main__":
    main()
