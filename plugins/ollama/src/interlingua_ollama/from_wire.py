"""A whole answer of the native chat API -> canonical Message.

Never reads a stream, and never reads what the stream's road would not: both go through the same reader.
The plugin object comes in.
"""

from __future__ import annotations

from interlingua.errors import MalformedResponseError
from interlingua.json import loads
from interlingua.plugins.wire import RequestContext, WireResponse
from interlingua.response.assemble import Assembler
from interlingua.types.messages import Message, MessageStatus
from interlingua_ollama.reader import AnswerReader
from interlingua_ollama.service import error_from_body


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Read a body.

    Raises:
        ProviderError: an error inside a 200.
        MalformedResponseError: not an answer of this wire.
    """
    try:
        body = loads(response.body)
    except ValueError as error:
        raise MalformedResponseError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise MalformedResponseError(f"the body is a JSON {type(body).__name__}, not an object")
    if body.get("error"):
        raise error_from_body(body, headers=response.headers)
    if not isinstance(body.get("message"), dict) and not isinstance(body.get("response"), str):
        raise MalformedResponseError("the answer holds no message", path="/message")
    reader = AnswerReader(context)
    assembler = Assembler(context)
    assembler.feed(reader.read(body) + reader.end(complete=True))
    return assembler.message(MessageStatus.COMPLETE)
