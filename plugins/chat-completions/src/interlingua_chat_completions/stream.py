"""Read a stream of chunks as events."""

from __future__ import annotations

from collections.abc import AsyncIterator

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireChunk, loads_lossy
from interlingua.types import ErrorEvent, StreamEvent, TextDelta, ThinkingDelta, ToolUseInputDelta
from interlingua_chat_completions.content import REASONING_FIELDS, TEXT, THINKING
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.errors import error_in, from_wire_error_body
from interlingua_chat_completions.response import ChatAnswerReader


async def stream_response(  # noqa: C901, PLR0912, PLR0915  the hot path: a call per chunk would be a third of its cost
    source: AsyncIterator[WireChunk], context: RequestContext, dialect: Dialect
) -> AsyncIterator[StreamEvent]:
    """Translate chunks; an answer without a finish reason is incomplete, but for one that calls tools before `[DONE]`.

    With `Dialect.finish_optional`, `[DONE]` after content also ends a stream whose choices have no such member.

    Raises:
        MalformedResponseError: a chunk is not JSON.
    """
    reader = ChatAnswerReader(context, dialect)
    calls, thoughts, done = reader.calls.by_index, reader.reasoning.texts, False
    has_finish = False  # some choice has the member `finish_reason`, null included
    async for name, data in source:
        if data[:1] != b"{":
            done = data.strip() == b"[DONE]"
            if done:
                break
            if not data.strip():
                continue
        try:
            body = loads_lossy(data)
        except ValueError as error:
            raise MalformedResponseError(f"a chunk is not JSON: {error}") from error
        # most chunks carry a piece of text, of reasoning or of one call's arguments, and nothing else
        try:
            (choice,) = body["choices"]
            ((field, value),) = choice["delta"].items()
            if (
                choice["finish_reason"] is None
                and not choice["index"]
                and body.get("usage") is None
                and choice.get("logprobs") is None
                and "error" not in body
                and "error" not in choice
            ):
                has_finish = True
                if value.__class__ is str:
                    if field == "content":
                        if value:
                            reader.has_text = True
                            yield TextDelta(index=TEXT, text=value)
                        continue
                    if field in REASONING_FIELDS:
                        if value:
                            thoughts.append(value)
                            yield ThinkingDelta(index=THINKING, text=value)
                        continue
                elif field == "tool_calls":
                    (fragment,) = value
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
        holder = error_in(body)
        if holder is not None or (name == "error" and "choices" not in body):
            failure = from_wire_error_body(holder or body, dialect, context=context)
            if failure.partial is not None and failure.partial.content and not reader.has_text:
                yield TextDelta(index=TEXT, text=failure.partial.text)  # what the service refused
            for event in reader.end(complete=False):
                yield event
            yield ErrorEvent(error=failure)
            return
    if (failed := reader.failure()) is not None:
        for event in reader.end(complete=False):
            yield event
        yield ErrorEvent(error=failed)
        return
    finished = reader.finish is not None
    if done and not finished:
        has_content = bool(reader.has_text or reader.has_refusal or thoughts)
        no_member = dialect.finish_optional and not (has_finish or reader.has_finish)
        finished = bool(reader.calls.calls) or (no_member and has_content)
    for event in reader.end(complete=finished):
        yield event
