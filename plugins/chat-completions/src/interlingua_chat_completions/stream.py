"""A framed stream of chunks to events, as they come.

Never awaits anything but its source and never keeps text it has passed on.
The format's front door comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from interlingua.errors import MalformedResponseError
from interlingua.frozen import maker
from interlingua.json import loads_fast
from interlingua.plugins.wire import RequestContext, WireChunk
from interlingua.types.events import ErrorEvent, StreamEvent, TextDelta, ToolUseInputDelta
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.errors import from_wire_envelope, is_error
from interlingua_chat_completions.reader import AnswerReader
from interlingua_chat_completions.slots import TEXT

text_delta = maker(TextDelta)


async def from_wire_stream(  # noqa: C901, PLR0912  the hot path: a call per chunk would be a third of its cost
    source: AsyncIterator[WireChunk], context: RequestContext, dialect: Dialect
) -> AsyncIterator[StreamEvent]:
    """Translate chunks; complete when a finish reason or `[DONE]` came, else the message stays unfinished."""
    reader = AnswerReader(context, dialect)
    calls, done = reader.calls.by_index, False
    async for name, data in source:
        if data[:1] != b"{":
            done = data.strip() == b"[DONE]"
            if done:
                break
            if not data.strip():
                continue
        try:
            body = loads_fast(data)
        except ValueError as error:
            raise MalformedResponseError(f"a chunk is not JSON: {error}") from error
        # most chunks carry a piece of text or of one call's arguments, and nothing else
        try:
            (choice,) = body["choices"]
            delta = choice["delta"]
            if (
                len(delta) == 1
                and choice["finish_reason"] is None
                and not choice["index"]
                and body.get("usage") is None
                and choice.get("logprobs") is None
                and "error" not in body
            ):
                text = delta.get("content")
                if text.__class__ is str:
                    if text:
                        reader.texted = True
                        yield text_delta(TEXT, text)
                    continue
                (fragment,) = delta["tool_calls"]
                function = fragment["function"]
                call = calls[fragment["index"]]
                piece = function["arguments"]
                if piece.__class__ is str and len(function) == 1 and not fragment.get("id"):
                    call.pieces.append(piece)
                    yield ToolUseInputDelta(index=call.start.index, partial_json=piece)
                    continue
        except (KeyError, ValueError, TypeError, AttributeError):
            pass
        if not isinstance(body, dict):
            continue
        for event in reader.read(body):
            yield event
        if is_error(body) or (name == "error" and "choices" not in body):
            for event in reader.end(complete=False):
                yield event
            yield ErrorEvent(error=from_wire_envelope(body, dialect))
            return
    for event in reader.end(complete=done or reader.finish is not None):
        yield event
