"""How this service speaks Chat Completions, as data for the shared format (sheet openai_chat §2).

Never translates: the format library does, by the dialect it is given.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import cache

from interlingua.context import RequestContext
from interlingua.events import StreamEvent
from interlingua.messages import Message
from interlingua.options import AdapterOptions
from interlingua.tools import ToolDefinition
from interlingua.wire import WireChunk, WireRequest, WireResponse
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.from_wire import from_wire_body
from interlingua_chat_completions.stream import from_wire_stream
from interlingua_openai.catalogue import CHAT, capabilities_of, facts_of
from interlingua_openai.service import ERROR_CODES


@cache
def dialect_of(model: str) -> Dialect:
    """Return the dialect of one model; the same object for the same name.

    A reasoning model has `developer` messages where others have `system`; one that always reasons takes no sampling,
    and the later ones take no stop sequences. A model of unknown facts gets what all accept.
    """
    facts = facts_of(model)
    reasons = facts.get("reasoning") in ("off", "on", "always")
    return Dialect(
        system_role="developer" if reasons else "system",
        max_tokens_field="max_completion_tokens",
        sampling=facts.get("sampling") is not False,
        temperature_range=(0.0, 2.0),
        stop=facts.get("stop") is not False,
        stop_limit=4,
        user_field="safety_identifier",
        effort_shape="none" if facts.get("reasoning") == "none" else "field",
        thinking_shape="none" if facts.get("reasoning") in ("none", "always") else "effort",
        reasoning_fields=(),
        refusal_parts=True,
        parallel_tool_calls=True,
        structured="json_schema",
        cache_breakpoints=capabilities_of(model, CHAT).supports_prompt_caching,
        error_codes=ERROR_CODES,
    )


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions) -> WireRequest:
    """Write a Chat Completions request."""
    raise NotImplementedError


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Read a Chat Completions answer."""
    return from_wire_body(response, context, dialect_of(context.origin.model))


def stream_response(response_stream: AsyncIterator[WireChunk], context: RequestContext) -> AsyncIterator[StreamEvent]:
    """Read a Chat Completions stream."""
    return from_wire_stream(response_stream, context, dialect_of(context.origin.model))
