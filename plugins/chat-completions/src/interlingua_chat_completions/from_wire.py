"""A whole answer to a message.

Never reads a stream, and never reads what the stream's road would not: both go through the same reader, except for
an answer of plain text, which `usual` reads to the same message.
The format's front door comes in.
"""

from __future__ import annotations

from interlingua.errors import MalformedResponseError
from interlingua.json import loads
from interlingua.plugins.wire import RequestContext, WireResponse
from interlingua.types.messages import Message, MessageStatus
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.errors import from_wire_envelope, is_error
from interlingua_chat_completions.usual import from_wire_usual


def from_wire_body(response: WireResponse, context: RequestContext, dialect: Dialect) -> Message:
    """Read a complete body.

    Raises:
        ProviderError: the body is an error although the status is not; `partial` holds what came with it.
        MalformedResponseError: not JSON, or no choice in it.
    """
    try:
        body = loads(response.body)
    except ValueError as error:
        raise MalformedResponseError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise MalformedResponseError(f"the body is a JSON {type(body).__name__}, not an object")
    usual = from_wire_usual(body, context, dialect)
    if usual is not None:
        return usual
    from interlingua.response.assemble import Assembler  # noqa: PLC0415  most answers are usual
    from interlingua_chat_completions.reader import AnswerReader  # noqa: PLC0415  the same

    choices = body.get("choices")
    reader = AnswerReader(context, dialect, whole=True)
    assembler = Assembler(context)
    if is_error(body):
        failure = from_wire_envelope(body, dialect, headers=response.headers)
        if isinstance(choices, list) and choices:
            assembler.feed(reader.read(body) + reader.end(complete=False))
            failure.partial = assembler.message(MessageStatus.ERROR, failure)
        raise failure
    if not isinstance(choices, list) or not choices:
        raise MalformedResponseError("the body holds no choices", path="/choices")
    assembler.feed(reader.read(body) + reader.end(complete=True))
    return assembler.message(MessageStatus.COMPLETE)
