"""The instruments of the conventions, and what is recorded of a request, a tool's call and an agent's run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, Meter

from interlingua.types import Usage
from interlingua_otel import names

Conventions = Literal["latest", "1.41"]
_OF_REQUEST = (names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.RESPONSE_MODEL)
_OF_SERVER = (names.SERVER_ADDRESS, names.SERVER_PORT)
_OF_SERVED = (names.HTTP_METHOD, names.URL_SCHEME, names.HTTP_ROUTE, names.HTTP_VERSION, names.HTTP_STATUS)


class Instruments:
    """Records measurements.

    Args:
        meter: makes the instruments.
        conventions: the version of the names of metrics.
    """

    def __init__(self, meter: Meter, conventions: Conventions) -> None:
        def seconds(name: str, what: str, buckets: Sequence[float] = names.SECONDS) -> Histogram:
            return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=list(buckets))

        def counts(name: str, unit: str, what: str, buckets: Sequence[float]) -> Histogram:
            return meter.create_histogram(name, unit, what, explicit_bucket_boundaries_advisory=list(buckets))

        self._new = conventions == "latest"
        found = names.METRICS if self._new else names.METRICS_1_41
        self._duration = seconds(found["duration"], "Duration of a request, its retries included.")
        self._first_chunk = seconds(found["time_to_first_chunk"], "Time to the first chunk of a stream.")
        self._chunk = seconds(found["time_per_output_chunk"], "Time between two chunks of a stream.")
        self._counters = {}
        self._tokens = {}
        if self._new:
            for field, name in names.TOKEN_COUNTERS.items():
                self._counters[field] = meter.create_counter(name, "{token}", "Tokens used.")
            for field, name in names.TOKEN_HISTOGRAMS.items():
                self._tokens[field] = counts(name, "{token}", "Tokens of one request.", names.TOKENS)
        else:
            usage = counts(names.TOKEN_USAGE_1_41, "{token}", "Tokens of one request.", names.TOKENS)
            self._tokens = dict.fromkeys(names.TOKEN_HISTOGRAMS, usage)
        self._tool = seconds(names.TOOL_DURATION, "Duration of a tool's call.")
        self._agent = seconds(names.AGENT_DURATION, "Duration of an agent's run.", names.AGENT_SECONDS)
        self._served = seconds(names.SERVER_DURATION, "Duration of HTTP server requests.", names.SERVER_SECONDS)
        self._agent_requests = counts(
            names.AGENT_INFERENCE_CALLS, "{inference_call}", "Requests of an agent's run.", names.CALLS
        )
        self._agent_calls = counts(names.AGENT_TOOL_CALLS, "{tool_call}", "Tool calls of an agent's run.", names.CALLS)

    def record_request(
        self,
        attributes: Mapping[str, Any],
        seconds: float,
        first_chunk: float | None,
        chunks: Sequence[float],
        usage: Usage | None,
        context: Context,
    ) -> None:
        """Record a request.

        Args:
            attributes: attributes of its span.
            seconds: how long it took.
            first_chunk: seconds to a stream's first chunk.
            chunks: seconds between further chunks.
            usage: its tokens, if known.
            context: context that holds its span, for exemplars.
        """
        common = {name: attributes[name] for name in (*_OF_REQUEST, *_OF_SERVER) if name in attributes}
        self._duration.record(seconds, _with_error(common, attributes), context)
        if first_chunk is not None:
            self._first_chunk.record(first_chunk, common, context)
        for one in chunks:
            self._chunk.record(one, common, context)
        modality = common | {names.TOKEN_MODALITY: "unknown"}  # most counts of services cover all modalities
        for field, counter in self._counters.items():
            count = getattr(usage, field, None)
            if count is not None or field in self._tokens:
                counter.add(count or 0, modality, context)
        for field, histogram in self._tokens.items():
            count = getattr(usage, field, None)
            if count is not None:
                typed = common if self._new else common | {names.TOKEN_TYPE: field.partition("_")[0]}
                histogram.record(count, typed, context)

    def record_tool(self, attributes: Mapping[str, Any], seconds: float, context: Context) -> None:
        """Record a tool's call."""
        common = {name: attributes[name] for name in (names.OPERATION, names.TOOL_NAME, names.TOOL_TYPE)}
        self._tool.record(seconds, _with_error(common, attributes), context)

    def record_agent(
        self, attributes: Mapping[str, Any], seconds: float, requests: int, calls: int, context: Context
    ) -> None:
        """Record an agent's run, with how often it asked a model and called a tool."""
        wanted = (names.OPERATION, names.AGENT_NAME, names.REQUEST_MODEL)
        common = {name: attributes[name] for name in wanted if name in attributes}
        self._agent.record(seconds, _with_error(common, attributes), context)
        self._agent_requests.record(requests, common, context)
        self._agent_calls.record(calls, common, context)

    def record_served(self, attributes: Mapping[str, Any], seconds: float, context: Context) -> None:
        """Record a request that a gateway answered."""
        common = {name: attributes[name] for name in _OF_SERVED if name in attributes}
        self._served.record(seconds, _with_error(common, attributes), context)


def _with_error(common: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    error = attributes.get(names.ERROR_TYPE)
    return common if error is None else common | {names.ERROR_TYPE: error}
