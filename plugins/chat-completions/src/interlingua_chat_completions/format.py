"""The front door of the format: what a provider plugin on this wire calls, one method per hook.

Never knows a host or a key (the plugin's `connection` does) and never chooses a model's dialect.
The row-driven providers here and the plugins of services on this format come in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import interlingua_chat_completions as own

if TYPE_CHECKING:  # a provider is found and made without them
    from interlingua.errors import ProviderError
    from interlingua.plugins.wire import RequestContext, WireChunk, WireRequest, WireResponse
    from interlingua.types.events import StreamEvent
    from interlingua.types.messages import Message
    from interlingua.types.options import AdapterOptions
    from interlingua.types.tools import ToolDefinition
    from interlingua_chat_completions.dialect import Dialect
    from interlingua_chat_completions.to_wire import RequestWriter

API = "chat"
ENDPOINT = r"/chat/completions$"


class ChatFormat:
    """Chat Completions for one provider key; every call takes the dialect, so one object serves all models.

    Args:
        provider: the provider key; only messages of this origin get their opaque state back.
        api: name of this wire format among the provider's.
    """

    def __init__(self, provider: str, api: str = API) -> None:
        self.api = api
        self._provider = provider

    @cached_property
    def _writer(self) -> RequestWriter:
        return own.to_wire.RequestWriter(self._provider)

    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions, dialect: Dialect
    ) -> WireRequest:
        """Write a request (hook `to_wire`).

        Raises:
            CapabilityError: a schema or a forced tool cannot be said to this service.
        """
        return self._writer.to_wire(messages, tools, options, dialect, self.api)

    def from_wire_response(self, response: WireResponse, context: RequestContext, dialect: Dialect) -> Message:
        """Read a whole answer (hook `from_wire_response`).

        Raises:
            ProviderError: an error inside a 200.
            MalformedResponseError: not this wire.
        """
        return own.from_wire.from_wire_body(response, context, dialect)

    def stream_response(
        self, source: AsyncIterator[WireChunk], context: RequestContext, dialect: Dialect
    ) -> AsyncIterator[StreamEvent]:
        """Read a stream (hook `stream_response`)."""
        return own.stream.from_wire_stream(source, context, dialect)

    def from_wire_error(self, response: WireResponse, dialect: Dialect) -> ProviderError:
        """Read a failed answer (hook `from_wire_error`)."""
        return own.errors.from_wire_failure(response, dialect)
