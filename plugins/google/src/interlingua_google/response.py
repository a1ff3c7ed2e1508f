"""A whole answer -> canonical message, read as one chunk of a stream; and continuing a paused answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import MalformedResponseError, StreamInterruptedError
from interlingua.plugins import MessageAssembler, RequestContext, WireResponse, loads
from interlingua.types import Message, MessageComplete, MessageStatus, StopReason
from interlingua_google.errors import envelope_in, error_from_envelope
from interlingua_google.models import API
from interlingua_google.stream import GeminiStreamReader

# an answer leaves out what is empty, so one that says nothing at all may hold no more than its counts
_ANSWERS = ("candidates", "promptFeedback", "usageMetadata")


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Return the message of an answer: one chunk, or the JSON array of a stream without `alt=sse`.

    Raises:
        ProviderError: an error object with status 200, a blocked prompt, or an answer that failed.
        MalformedResponseError: not an answer.
        StreamInterruptedError: an array that ends before a finish reason.
    """
    body: Any = loads(response.body)
    error = envelope_in(body)
    if error is not None and not isinstance(body, list):
        raise error_from_envelope(error, status=response.status, headers=response.headers)
    if not isinstance(body, list) and not (isinstance(body, dict) and any(name in body for name in _ANSWERS)):
        raise MalformedResponseError("the answer has no candidates", path="candidates")
    reader, assembler = GeminiStreamReader(context), MessageAssembler(context)
    assembler.feed(reader.read_earlier())
    assembler.feed(reader.read(body))
    assembler.feed(reader.finish())
    if assembler.error is not None:
        assembler.error.partial = assembler.message(MessageStatus.ERROR, assembler.error)
        raise assembler.error
    if assembler.complete is None:
        if isinstance(body, list):
            interrupted = StreamInterruptedError("the array ended before a finish reason")
            interrupted.partial = assembler.message(MessageStatus.ERROR, interrupted)
            raise interrupted
        # a whole body without a reason is an error of the model
        assembler.feed([MessageComplete(stop_reason=StopReason.ERROR)])
    return assembler.message(MessageStatus.COMPLETE)


def continuation_token(message: Message) -> str | None:
    """Return the token that continues a paused answer; None if it has no token or its trace was trimmed.

    The client continues paused answers itself, unless the service returned the same token twice. Send the
    conversation again without the answer, with `provider_options={"continuationToken": token}`.
    """
    origin, raw = message.metadata.origin, message.metadata.provider_raw
    trace = raw.get("trace") if raw is not None and origin is not None and origin.api == API else None
    token = trace.get("continuationToken") if isinstance(trace, Mapping) else None
    return token if isinstance(token, str) else None
