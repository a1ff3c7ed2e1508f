"""The plugin: which work gets a span, and where spans, metrics and events go."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import version
from types import NoneType
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry._logs import Logger, LoggerProvider, NoOpLoggerProvider, get_logger_provider
from opentelemetry.metrics import Meter, MeterProvider, NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider, Tracer, TracerProvider

from interlingua.errors import CallerError
from interlingua.plugins import hookimpl
from interlingua_otel.content import VARIABLE, CaptureContent, fit, read_capture
from interlingua_otel.metrics import Conventions, Instruments
from interlingua_otel.scopes import AgentScope, RequestScope, ServedScope, SpanScope, ToolScope

ContentFilter = Callable[[str, Any], Any]

_SCOPE = "interlingua"
_NOTHING = (NoOpTracerProvider, NoOpMeterProvider, NoOpLoggerProvider)
_SCOPES: dict[str, Callable[[OpenTelemetry, Mapping[str, Any]], SpanScope]] = {
    "chat": RequestScope,
    "execute_tool": ToolScope,
    "invoke_agent": AgentScope,
    "serve_request": ServedScope,
}


class OpenTelemetry:
    """Makes spans, metrics and events of requests, tool calls and agents' runs; a general plugin of a `Registry`.

    Args:
        tracer_provider: makes the tracer; None takes the global one, whenever it is set.
        meter_provider: likewise, of metrics.
        logger_provider: likewise, of events.
        capture: where prompts and answers go; None reads `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, and
            without that captures nothing.
        content_filter: called with an attribute's name and its structured value, before it leaves; returns what is
            recorded instead, None for nothing.
        content_limit: characters of JSON that one attribute with content has at most.
        conventions: whose metric names are used: `latest`, or `1.41`, which many backends still read.

    Raises:
        CallerError: `conventions` is another word, or `content_limit` less than 256.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        capture: CaptureContent | str | None = None,
        content_filter: ContentFilter | None = None,
        content_limit: int = 60_000,
        conventions: Conventions = "latest",
    ) -> None:
        if conventions not in ("latest", "1.41"):
            raise CallerError(f"conventions is 'latest' or '1.41', not {conventions!r}")
        if content_limit < 256:
            raise CallerError("content_limit is at least 256 characters: less holds no message")
        self.capture = read_capture(os.environ.get(VARIABLE) if capture is None else capture)
        self.conventions = conventions
        self._filter = content_filter
        self._limit = content_limit
        self._tracers, self._meters, self._loggers = tracer_provider, meter_provider, logger_provider
        self._given_is_heard = any(map(_is_heard, (tracer_provider, meter_provider, logger_provider)))

    @cached_property
    def tracer(self) -> Tracer:
        """Makes the spans."""
        return trace.get_tracer(_SCOPE, version("interlingua-otel"), self._tracers)

    @cached_property
    def instruments(self) -> Instruments:
        """Records the metrics."""
        meter: Meter = metrics.get_meter(_SCOPE, version("interlingua-otel"), self._meters)
        return Instruments(meter, self.conventions)

    @cached_property
    def logger(self) -> Logger:
        """Takes the events."""
        return (self._loggers or get_logger_provider()).get_logger(_SCOPE, version("interlingua-otel"))

    @hookimpl
    def instrument(self, kind: str, facts: Mapping[str, Any]) -> SpanScope | None:
        """Return a span for a piece of work; None where nobody would get it."""
        if kind == "serve_request" and trace.get_current_span().get_span_context().is_valid:
            return None  # an instrumentation of the web framework has made the server's span
        make = _SCOPES.get(kind)
        return make(self, facts) if make is not None and self._is_heard() else None

    def prepare_content(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is recorded of content: without what is empty, filtered, and within the limit."""
        prepared = {}
        for name, value in found.items():
            kept = value if self._filter is None or value in ([], None) else self._filter(name, value)
            if kept not in ([], None):
                prepared[name] = fit(kept, self._limit)
        return prepared

    def _is_heard(self) -> bool:
        return (
            self._given_is_heard
            or (self._tracers is None and _is_heard(trace.get_tracer_provider()))
            or (self._meters is None and _is_heard(metrics.get_meter_provider()))
            or (self._loggers is None and _is_heard(get_logger_provider()))
        )


def _is_heard(provider: Any) -> bool:
    """Tell a provider that records from the API's stand-ins for one that nobody has set, which are named so."""
    kind = type(provider)
    if kind not in _heard:  # to ask an abstract class costs more than all else here
        _heard[kind] = not issubclass(kind, (*_NOTHING, NoneType)) and "Proxy" not in kind.__name__
    return _heard[kind]


_heard: dict[type, bool] = {}


plugin = OpenTelemetry()
"""The global providers, settings from the environment; for `INTERLINGUA_PLUGINS=interlingua_otel:plugin`."""
