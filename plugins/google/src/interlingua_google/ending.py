"""How an answer ended: complete, refused, or failed by the model's own fault (sheet gemini §6, REGRESSIONS case 15).

Never drops content for it: a failure with something said is a stop reason, one with nothing said is a typed error.
The reader comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.errors import ContentRefusedError, ProviderError, ServerError
from interlingua.plugins.wire import RequestContext
from interlingua.types.events import ErrorEvent, MessageComplete, StreamEvent
from interlingua.types.messages import StopReason
from interlingua_google.facts import from_wire_stop


def ending(
    last: Mapping[str, Any], feedback: Any, *, empty: bool, calls: bool, context: RequestContext
) -> Iterator[StreamEvent]:
    """Yield the terminal event, or nothing where the answer never said that it is over.

    Args:
        last: `finishReason` and `finishMessage` of the answer, {} while it has none.
        feedback: the prompt's feedback, where there was any.
        empty: nothing was said.
        calls: calls are among what was said.
        context: whose exchange it is.
    """
    reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
    if reason is not None and empty:
        said = feedback.get("blockReasonMessage")
        yield _failed(ContentRefusedError, f"the prompt was blocked: {said or reason}", reason, context)
        return
    if not last:
        return
    raw, words = last["finishReason"], last.get("finishMessage")
    stop = from_wire_stop(raw, calls=calls)
    if empty and stop in (StopReason.REFUSAL, StopReason.ERROR):
        kind = ContentRefusedError if stop is StopReason.REFUSAL else ServerError
        yield _failed(kind, str(words or f"the model gave nothing and stopped with {raw}"), raw, context)
        return
    yield MessageComplete(stop_reason=stop, stop_reason_raw=str(raw))


def _failed(kind: type[ProviderError], message: str, code: Any, context: RequestContext) -> ErrorEvent:
    origin = context.origin
    return ErrorEvent(error=kind(message, code=str(code), provider=origin.provider, model=origin.model))
