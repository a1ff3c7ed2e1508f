"""The providers and settings of telemetry, and the tracer, instruments and logger made from them."""

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
from interlingua.plugins import explain_arguments
from interlingua_otel.content import VARIABLE, CaptureContent, fit, read_capture
from interlingua_otel.metrics import Conventions, Instruments

ContentFilter = Callable[[str, Any], Any]

_SCOPE = "interlingua"
_NOTHING = (NoOpTracerProvider, NoOpMeterProvider, NoOpLoggerProvider)


class Telemetry:
    """The tracer, the instruments and the logger, with the settings for content.

    Args:
        tracer_provider: makes the tracer; None uses the global one, whenever it is set.
        meter_provider: the same for metrics.
        logger_provider: the same for events.
        capture: places where prompts and answers are recorded; None reads the environment variable
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, without which they are not recorded.
        content_filter: called with an attribute's name and its structured value before it is recorded; returns the
            value to record instead, or None to leave it out.
        content_limit: the most characters of JSON in one attribute with content.
        conventions: the version of the metric names: `latest`, or `1.41`, which many backends still read.

    Raises:
        CallerError: `conventions` is another word, or `content_limit` is less than 256.
    """

    @explain_arguments()
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
            raise CallerError(f"conventions must be 'latest' or '1.41', not {conventions!r}")
        if content_limit < 256:
            raise CallerError(f"content_limit must be at least 256 characters, not {content_limit}")
        self.capture = read_capture(os.environ.get(VARIABLE) if capture is None else capture)
        self.conventions = conventions
        self._filter = content_filter
        self._limit = content_limit
        self._tracers, self._meters, self._loggers = tracer_provider, meter_provider, logger_provider
        self._given_records = any(map(_records, (tracer_provider, meter_provider, logger_provider)))

    @cached_property
    def tracer(self) -> Tracer:
        """The tracer, for spans."""
        return trace.get_tracer(_SCOPE, version("interlingua-otel"), self._tracers)

    @cached_property
    def instruments(self) -> Instruments:
        """The instruments, for metrics."""
        meter: Meter = metrics.get_meter(_SCOPE, version("interlingua-otel"), self._meters)
        return Instruments(meter, self.conventions)

    @cached_property
    def logger(self) -> Logger:
        """The logger, for events."""
        return (self._loggers or get_logger_provider()).get_logger(_SCOPE, version("interlingua-otel"))

    def prepare_content(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content to record: filtered, within the limit, and without empty values."""
        prepared = {}
        for name, value in found.items():
            kept = value if self._filter is None or value in ([], None) else self._filter(name, value)
            if kept not in ([], None):
                prepared[name] = fit(kept, self._limit)
        return prepared

    def is_recorded(self) -> bool:
        """Return whether a provider records spans, metrics or events."""
        return (
            self._given_records
            or (self._tracers is None and _records(trace.get_tracer_provider()))
            or (self._meters is None and _records(metrics.get_meter_provider()))
            or (self._loggers is None and _records(get_logger_provider()))
        )


def _records(provider: Any) -> bool:
    """Return whether a provider records; those that the API uses until one is set do not."""
    kind = type(provider)
    if kind not in _known:  # `issubclass` with an abstract class is slow
        _known[kind] = not issubclass(kind, (*_NOTHING, NoneType)) and "Proxy" not in kind.__name__
    return _known[kind]


_known: dict[type, bool] = {}
