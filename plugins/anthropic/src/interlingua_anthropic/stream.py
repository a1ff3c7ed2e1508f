"""A stream of the Messages API -> canonical events (sheet anthropic §9).

Never buffers a delta and awaits nothing but its stream; unknown events and fields are passed over, never fatal.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from interlingua.frozen import maker
from interlingua.json import loads, loads_fast
from interlingua.plugins.wire import RequestContext, WireChunk
from interlingua.types.events import StreamEvent, TextDelta, ThinkingDelta, ToolUseInputDelta
from interlingua_anthropic.reader import Reader

text_delta = maker(TextDelta)
_EXACT = ("content_block_start", "message_start")  # may carry whole blocks, whose numbers are to stay exact


async def stream_response(  # noqa: C901, PLR0912  the hot path stays in one frame: a call a delta would double it
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events."""
    reader = Reader(context)
    fast = loads_fast
    opened = reader.open
    async for name, data in response_stream:
        if data == b"[DONE]":
            for made in reader.end_mark():
                yield made
            continue
        try:
            event = fast(data)
        except ValueError:
            if name != "error":
                raise
            event = {"error": data.decode("utf-8", "replace")}
        if event.__class__ is not dict:
            continue
        if event.get("type") == "content_block_delta":
            delta = event["delta"]
            kind = delta["type"]
            block = opened.get(event["index"])
            if block is not None and block.takes == kind:
                text = delta[block.field]
                if text.__class__ is str:
                    if kind == "text_delta":
                        yield text_delta(block.index, text)
                    elif kind == "thinking_delta":
                        yield ThinkingDelta(index=block.index, text=text)
                    else:
                        block.moved |= text != ""
                        yield ToolUseInputDelta(index=block.index, partial_json=text)
                    continue
        elif event.get("type") in _EXACT:
            event = loads(data)
        elif name == "error":  # whatever its body is (the official SDK's rule)
            event = {**event, "type": "error"}
        for made in reader.read(event):
            yield made
        if reader.over:
            return
    for made in reader.flush():
        yield made
