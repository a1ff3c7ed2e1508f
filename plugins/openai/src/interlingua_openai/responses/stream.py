"""A stream of the Responses API -> canonical events (sheet openai_responses §6).

Never buffers a delta and awaits nothing but its stream; unknown events are passed over, never fatal.
The plugin object comes in.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from interlingua.context import RequestContext
from interlingua.events import StreamEvent, TextDelta, ToolUseInputDelta
from interlingua.jsontext import loads, loads_fast
from interlingua.wire import WireChunk
from interlingua_openai.responses.reader import Reader
from interlingua_openai.responses.slots import SPAN

# items without a canonical form are kept exact, so whole items are read again where they may hold a long integer
_WHOLE = frozenset(("response.output_item.done", "response.completed", "response.incomplete", "response.failed"))
_LONG_NUMBER = re.compile(rb"\d{17}")


async def stream_response(  # noqa: C901, PLR0912  the hot path stays in one frame
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events; a block's index is its item's place times SPAN plus its part's."""
    reader = Reader(context)
    texts = reader.texts
    inputs = reader.inputs
    async for _, data in response_stream:
        try:
            event = loads_fast(data)
        except ValueError:
            if data.strip() == b"[DONE]":
                break
            raise
        if not isinstance(event, dict):
            continue
        kind = event.get("type")
        if kind == "response.output_text.delta":
            if "output_index" in event and "content_index" in event:
                index = event["output_index"] * SPAN + event["content_index"]
                if index in texts:
                    text = event["delta"]
                    texts[index] += len(text)
                    yield TextDelta(index=index, text=text)
                    continue
        elif kind == "response.function_call_arguments.delta" and "output_index" in event:
            index = event["output_index"] * SPAN
            if index in inputs:
                text = event["delta"]
                inputs[index] += len(text)
                yield ToolUseInputDelta(index=index, partial_json=text)
                continue
        elif kind in _WHOLE and _LONG_NUMBER.search(data):
            event = loads(data)
        for made in reader.read(event):
            yield made
        if reader.over:
            return
    for made in reader.flush():
        yield made
