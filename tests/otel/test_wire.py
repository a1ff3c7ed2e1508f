"""Over the wire: the SDK's own OTLP exporters send to a receiver, which reads them with OpenTelemetry's messages."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import interlingua as il
from interlingua_otel import OpenTelemetry
from tests.otel.asking import answer, ask
from tests.support.fake_provider import Reply, served
from tests.support.loopback import loopback, send_bytes

_MESSAGES: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


@contextmanager
def _receiver() -> Iterator[tuple[str, dict[str, list[Any]]]]:
    got: dict[str, list[Any]] = {path: [] for path in _MESSAGES}

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        data = gzip.decompress(body) if handler.headers.get("content-encoding") == "gzip" else body
        got[handler.path].append(_MESSAGES[handler.path].FromString(data))
        send_bytes(handler, 200, "application/x-protobuf", b"")

    with loopback(answer) as url:
        yield url, got


def _value(one: Any) -> Any:
    kind = one.value.WhichOneof("value")
    found = getattr(one.value, kind)
    return [getattr(item, item.WhichOneof("value")) for item in found.values] if kind == "array_value" else found


def test_spans_metrics_and_events_arrive_over_otlp() -> None:
    with _receiver() as (url, got), served(Reply(body=[answer()])) as server:
        tracers, loggers = TracerProvider(), LoggerProvider()
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
        loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs")))
        meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics"))])
        plugin = OpenTelemetry(
            tracer_provider=tracers, meter_provider=meters, logger_provider=loggers, capture="SPAN_AND_EVENT"
        )
        ask(True, server.url, plugin, [il.system("Be short."), il.user("hi")])
        for provider in (tracers, loggers, meters):
            provider.force_flush()
            provider.shutdown()

    [[span]] = [scope.spans for one in got["/v1/traces"] for r in one.resource_spans for scope in r.scope_spans]
    attributes = {one.key: _value(one) for one in span.attributes}
    assert span.name == "chat known"
    assert attributes["gen_ai.usage.input_tokens"] == 3
    assert attributes["gen_ai.response.finish_reasons"] == ["end_turn"]
    assert attributes["gen_ai.system_instructions"] == '[{"type":"text","content":"Be short."}]'
    scopes = [scope for one in got["/v1/metrics"] for r in one.resource_metrics for scope in r.scope_metrics]
    assert "gen_ai.client.inference.duration" in {metric.name for scope in scopes for metric in scope.metrics}
    [[record]] = [scope.log_records for one in got["/v1/logs"] for r in one.resource_logs for scope in r.scope_logs]
    assert record.event_name == "gen_ai.client.inference.operation.details"
    assert record.span_id == span.span_id
    [messages] = [one.value.array_value for one in record.attributes if one.key == "gen_ai.input.messages"]
    assert messages.values[0].kvlist_value.values[0].value.string_value == "user"
