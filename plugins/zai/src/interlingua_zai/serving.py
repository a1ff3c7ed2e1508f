"""The serving plugin: Chat Completions as Z.ai's models use it, which declares no paths."""

from __future__ import annotations

from typing import Any

import attrs

from interlingua.plugins import WireRequest
from interlingua_chat_completions.serving import ChatServing
from interlingua_serving import InboundRequest, ServeContext, hookimpl
from interlingua_zai.dialect import dialect_of


class _ZaiServing(ChatServing):
    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        """Read a request; what its caller left out has the service's default, not this plugin's."""
        read = super().from_wire_request(request, context)
        defaults: dict[str, Any] = {}
        if dialect_of(read.options.model).thinking_members:
            defaults["thinking"] = {"type": "enabled"}  # and earlier reasoning is cleared (WIRE.md, Reasoning)
        if read.options.stream and read.tools:
            defaults["tool_stream"] = False
        return attrs.evolve(read, extra={**defaults, **read.extra}) if defaults else read


plugin = _ZaiServing(dialect_of)
