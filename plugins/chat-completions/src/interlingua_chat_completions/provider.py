"""The hooks that are the same for every service on this format, for the plugin of a service to inherit.

Never knows a host, a key, a catalogue or a rule file: those hooks are the plugin's own, and it may answer any of these
itself. The row-driven providers here and the plugins of services on this format come in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import interlingua_chat_completions as own
from interlingua.plugins.hookspecs import hookimpl

if TYPE_CHECKING:  # a provider is found and made without them
    from interlingua.errors import ProviderError
    from interlingua.plugins.wire import RequestContext, WireChunk, WireRequest, WireResponse
    from interlingua.types.events import StreamEvent
    from interlingua.types.messages import Message
    from interlingua.types.options import AdapterOptions
    from interlingua.types.tools import ToolDefinition
    from interlingua_chat_completions.dialect import Dialect
    from interlingua_chat_completions.format import ChatFormat


class ChatProvider:
    """A provider whose requests and answers are Chat Completions, each in the dialect of its model.

    Args:
        chat: the format for this provider key.
        dialect_of: the dialect by model name; the same object for the same name.
    """

    contract_version = 1

    def __init__(self, chat: ChatFormat, dialect_of: Callable[[str], Dialect]) -> None:
        self._chat = chat
        self._dialect_of = dialect_of

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
    ) -> WireRequest:
        """Write a request."""
        return self._chat.to_wire(messages, tools, options, self._dialect_of(options.model))

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions | None
    ) -> int:
        """Estimate a request's input tokens."""
        return own.estimate.estimate_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        """Read a whole answer."""
        return self._chat.from_wire_response(response, context, self._dialect_of(context.origin.model))

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        """Read a stream."""
        return self._chat.stream_response(response_stream, context, self._dialect_of(context.origin.model))

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        """Read a failed answer."""
        return self._chat.from_wire_error(response, self._dialect_of(context.origin.model))
