"""A whole answer -> canonical Message: one chunk, or the JSON array of a stream without `alt=sse` (sheet gemini §1).

Never reads differently from the stream: both roads go through the reader.
The plugin object comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.errors import MalformedResponseError, StreamInterruptedError
from interlingua.json import loads
from interlingua.plugins.wire import RequestContext, WireResponse
from interlingua.response.assemble import Assembler
from interlingua.types.events import MessageComplete
from interlingua.types.messages import Message, MessageStatus, StopReason
from interlingua_google.failures import envelope_in, error_from_envelope
from interlingua_google.reader import Reader

# an answer leaves out what is empty, so one that says nothing at all may hold no more than its counts (sheet §6)
_ANSWERS = ("candidates", "promptFeedback", "usageMetadata")


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Read a body.

    Raises:
        ProviderError: an error object with status 200, a blocked prompt, or an answer that failed with nothing said.
        MalformedResponseError: not an answer.
        StreamInterruptedError: an array that ends before a finish reason.
    """
    body: Any = loads(response.body)
    error = envelope_in(body)
    if error is not None and not isinstance(body, list):
        raise error_from_envelope(error, status=response.status, headers=response.headers)
    if not isinstance(body, list) and not (isinstance(body, dict) and any(name in body for name in _ANSWERS)):
        raise MalformedResponseError("the answer has no candidates", path="candidates")
    reader, assembler = Reader(context), Assembler(context)
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
        # a whole body without a reason is a model error (sheet MAPPING, stop reason)
        assembler.feed([MessageComplete(stop_reason=StopReason.ERROR)])
    return assembler.message(MessageStatus.COMPLETE)
