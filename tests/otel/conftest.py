"""Providers of an SDK that keep what they get in memory, and a client of the fake provider that uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from interlingua_otel import OpenTelemetry


@attrs.define
class Telemetry:
    """An SDK in memory."""

    spans_kept: InMemorySpanExporter = attrs.field(factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = attrs.field(factory=InMemoryMetricReader)
    logs_kept: InMemoryLogRecordExporter = attrs.field(factory=InMemoryLogRecordExporter)
    tracers: TracerProvider = attrs.field(factory=TracerProvider)
    loggers: LoggerProvider = attrs.field(factory=LoggerProvider)
    meters: MeterProvider = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans_kept))
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self.logs_kept))
        self.meters = MeterProvider([self.reader])

    def plugin(self, **settings: Any) -> OpenTelemetry:
        """Return a plugin that uses these providers."""
        return OpenTelemetry(
            tracer_provider=self.tracers, meter_provider=self.meters, logger_provider=self.loggers, **settings
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in that order."""
        return list(self.spans_kept.get_finished_spans())

    @property
    def events(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Names and attributes of the events."""
        return [
            (one.log_record.event_name or "", dict(one.log_record.attributes or {}))
            for one in self.logs_kept.get_finished_logs()
        ]

    def points(self) -> dict[str, list[Any]]:
        """Return the data points of each metric."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}

    def everything(self) -> str:
        """Return all that would leave the process, as text."""
        spans = "".join(span.to_json() for span in self.spans)
        logs = "".join(one.log_record.to_json() if hasattr(one.log_record, "to_json") else repr(one) for one in
                       self.logs_kept.get_finished_logs())  # fmt: skip
        data = self.reader.get_metrics_data()
        return spans + logs + repr(self.events) + ("" if data is None else data.to_json())


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry()
    yield made
    made.meters.shutdown()
    made.loggers.shutdown()
    made.tracers.shutdown()


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)
