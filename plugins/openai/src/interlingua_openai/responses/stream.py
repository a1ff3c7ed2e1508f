"""A stream of the Responses API -> canonical events (sheet openai_responses §6).

Never buffers a delta and awaits nothing but its stream; unknown events are passed over, never fatal.
The plugin object comes in.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from interlingua.plugins import RequestContext, WireChunk, loads, loads_fast
from interlingua.types import StreamEvent, TextDelta, ToolUseInputDelta
from interlingua_openai.responses.items import CALLS
from interlingua_openai.responses.reader import Reader
from interlingua_openai.responses.slots import SPAN

# an item without a canonical form is kept exact, so its event is read again where it may hold a long integer
_WHOLE = frozenset(("response.output_item.done", "response.completed", "response.incomplete", "response.failed"))
_READ = frozenset(("message", "reasoning", *CALLS))
_LONG_NUMBER = re.compile(rb"\d{17}")
_TEXT = "response.output_text.delta"
_INPUT = "response.function_call_arguments.delta"


async def stream_response(  # noqa: C901, PLR0912  the hot path stays in one frame
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events; a block's index is its item's place times SPAN plus its part's.

    Most events carry more of the block that the event before them was about: those are passed on here, and counted
    when another comes.
    """
    reader = Reader(context)
    index, place, part, table = -1, -1, -1, reader.texts
    run = 0
    async for _, data in response_stream:
        try:
            event = loads_fast(data)
        except ValueError:
            if data.strip() == b"[DONE]":
                break
            raise
        try:
            kind = event["type"]
            if kind == _TEXT and event["output_index"] == place and event["content_index"] == part:
                text = event["delta"]
                if text.__class__ is str:
                    run += len(text)
                    yield TextDelta(index=index, text=text)
                    continue
            if kind == _INPUT and event["output_index"] == place and part < 0:
                text = event["delta"]
                if text.__class__ is str:
                    run += len(text)
                    yield ToolUseInputDelta(index=index, partial_json=text)
                    continue
        except (KeyError, TypeError):
            kind = None
        if run:
            table[index] += run
            run = 0
        if not isinstance(event, dict):
            continue
        if kind in _WHOLE and not _READ.issuperset(_item_types(event)) and _LONG_NUMBER.search(data):
            event = loads(data)
        for made in reader.read(event):
            yield made
        if reader.over:
            return
        index, place, part, table = _more_of(event, kind, reader)
    if run:
        table[index] += run
    for made in reader.close():
        yield made


def _item_types(event: dict[str, Any]) -> set[str]:
    items = [event["item"]] if "item" in event else (event.get("response") or {}).get("output") or ()
    return {str(item.get("type")) for item in items if isinstance(item, dict)}


def _more_of(event: dict[str, Any], kind: Any, reader: Reader) -> tuple[int, int, int, dict[int, int]]:
    """Return which block more of the same would be about: index, place, part (-1 for a call) and its table."""
    place, part = event.get("output_index"), event.get("content_index")
    if kind == _TEXT and isinstance(place, int) and isinstance(part, int):
        index = (place + reader.offset) * SPAN + part
        if index in reader.texts:
            return index, place, part, reader.texts
    elif kind == _INPUT and isinstance(place, int):
        index = (place + reader.offset) * SPAN
        if index in reader.inputs:
            return index, place, -1, reader.inputs
    return -1, -1, -1, reader.texts
