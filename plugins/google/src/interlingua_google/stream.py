"""A stream of answers in pieces -> canonical events (sheet gemini §7).

Never buffers text and awaits nothing but its stream; it has no terminal event, so the end of the source after a finish
reason is the end of the message. The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from interlingua.context import RequestContext
from interlingua.events import StreamEvent, TextDelta
from interlingua.jsontext import loads, loads_fast
from interlingua.wire import WireChunk
from interlingua_google.reader import Reader

_TEXT_ONLY = {"text"}
_PLAIN = {"content", "index", "role"}  # a candidate that says nothing about itself


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
            reader.count(chunk.get("usageMetadata"))
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
    if chunk.__class__ is not dict or "error" in chunk or "promptFeedback" in chunk:
        return None
    candidates = chunk.get("candidates")
    if candidates.__class__ is not list or len(candidates) != 1:
        return None
    candidate = candidates[0]
    if candidate.__class__ is not dict or not candidate.keys() <= _PLAIN or candidate.get("index"):
        return None
    content = candidate.get("content")
    parts = content.get("parts") if content.__class__ is dict else None
    if (
        parts.__class__ is not list
        or len(parts) != 1
        or parts[0].__class__ is not dict
        or parts[0].keys() != _TEXT_ONLY
    ):
        return None
    text = parts[0]["text"]
    return text if text.__class__ is str else None
