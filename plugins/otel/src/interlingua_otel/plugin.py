"""The plugin: a span for each piece of work, with metrics and events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import trace

from interlingua.plugins import hookimpl
from interlingua_otel.scopes import AgentScope, RequestScope, ServedScope, SpanScope, ToolScope
from interlingua_otel.telemetry import Telemetry

_SCOPES: dict[str, Callable[[Telemetry, Mapping[str, Any]], SpanScope]] = {
    "chat": RequestScope,
    "execute_tool": ToolScope,
    "invoke_agent": AgentScope,
    "serve_request": ServedScope,
}


class OpenTelemetry(Telemetry):
    """Makes spans, metrics and events of requests, tool calls and agent runs; a general plugin of a `Registry`.

    It takes the arguments of `Telemetry`.
    """

    @hookimpl
    def instrument(self, kind: str, facts: Mapping[str, Any]) -> SpanScope | None:
        """Return a span for a piece of work, or None if no provider records it."""
        if kind == "serve_request" and trace.get_current_span().get_span_context().is_valid:
            return None  # an instrumentation of the web framework has made the server's span
        make = _SCOPES.get(kind)
        return make(self, facts) if make is not None and self.is_recorded() else None


plugin = OpenTelemetry()
"""The global providers, and settings from the environment: `INTERLINGUA_PLUGINS=interlingua_otel:plugin`."""
