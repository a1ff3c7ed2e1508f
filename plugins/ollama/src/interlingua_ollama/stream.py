"""Lines of a stream -> canonical events (WIRE.md, Streaming)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireChunk, loads, loads_fast
from interlingua.types import ErrorEvent, StreamEvent, TextDelta
from interlingua_ollama.errors import error_from_body
from interlingua_ollama.response import TEXT, AnswerReader


async def stream_response(source: AsyncIterator[WireChunk], context: RequestContext) -> AsyncIterator[StreamEvent]:
    """Translate lines; complete when one of them says `done`, else the message stays unfinished."""
    reader = AnswerReader(context)
    async for chunk in source:
        line = _load(chunk.data)
        # most lines carry a piece of text and nothing else
        try:
            message = line["message"]
            text = message["content"]
            if (
                text.__class__ is str
                and len(message) == 2
                and "role" in message
                and len(line) == 4
                and line["done"] is False
                and "created_at" in line
                and "model" in line
            ):
                if text:
                    yield TextDelta(index=TEXT, text=text)
                continue
        except (KeyError, TypeError):
            pass
        if not isinstance(line, dict):
            continue
        for event in reader.read(line):
            yield event
        if line.get("error"):
            for event in reader.end(complete=False):
                yield event
            yield ErrorEvent(error=error_from_body(line))
            return
        if reader.done:
            break
    for event in reader.end(complete=bool(reader.done)):
        yield event


def _load(data: bytes) -> Any:
    try:
        return loads(data) if b'"tool_calls"' in data else loads_fast(data)
    except ValueError as error:
        raise MalformedResponseError(f"a line is not JSON: {error}") from error
