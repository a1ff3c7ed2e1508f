"""A stream of answers in pieces -> canonical events (sheet gemini §7).

Never buffers text and awaits nothing but its stream; it has no terminal event, so the end of the source after a finish
reason is the end of the message. The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from interlingua.json import loads, loads_fast
from interlingua.plugins.wire import RequestContext, WireChunk
from interlingua.types.events import StreamEvent, TextDelta
from interlingua_google.reader import Reader


async def stream_response(
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events."""
    reader = Reader(context)
    fast = loads_fast
    async for _, data in response_stream:
        if data == b"[DONE]":  # some proxies add another wire's end mark
            continue
        chunk = fast(data)
        text = _plain_text(chunk) if reader.open == "text" else None
        if text:
            reader.pieces.append(text)
            if "usageMetadata" in chunk:
                reader.count(chunk["usageMetadata"])
            yield TextDelta(index=reader.index, text=text)
            continue
        for event in reader.read(loads(data)):  # may carry arguments, whose numbers are to stay exact
            yield event
        if reader.over:
            return
    for event in reader.finish():
        yield event


def _plain_text(chunk: Any) -> str | None:
    """Return the text of the commonest chunk, which is nothing but more text; None for any other."""
    try:
        candidates = chunk["candidates"]
        candidate = candidates[0]
        (part,) = candidate["content"]["parts"]
        text = part["text"]
        size = len(candidate)
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    alone = len(candidates) == 1 and len(part) == 1 and (size == 1 or (size == 2 and candidate.get("index") == 0))
    if alone and text.__class__ is str and "error" not in chunk and "promptFeedback" not in chunk:
        return text
    return None
