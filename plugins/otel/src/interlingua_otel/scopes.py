"""Spans around pieces of work: their names, and their attributes at the start and at the end."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from contextvars import Token
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry._logs import SeverityNumber
from opentelemetry.context import Context, attach, detach
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode

from interlingua.types import DEFAULT_SESSION, Message, RequestOptions, ToolResultBlock
from interlingua_otel import content, names
from interlingua_otel.telemetry import Telemetry

_SLACK = 0.0002  # seconds; less than any first chunk takes
_PORTS = {"https": 443, "http": 80}


class SpanScope:
    """A span that is current during its work; `end` ends it, and so does the garbage collection of a dropped scope."""

    kind: ClassVar[SpanKind] = SpanKind.INTERNAL
    _token: Token[Context] | None = None
    _ended = True  # until there is a span

    def __init__(
        self, telemetry: Telemetry, name: str, attributes: dict[str, Any], parent: Context | None = None
    ) -> None:
        self._telemetry = telemetry
        self._attributes = attributes
        self._span = telemetry.tracer.start_span(name, parent, self.kind, attributes)
        self._context = trace.set_span_in_context(self._span, parent)
        self._began = time.perf_counter()
        self._ended = False

    def __enter__(self) -> None:
        self._token = attach(self._context)

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            detach(self._token)
            self._token = None

    def __del__(self) -> None:
        if not self._ended:
            self.end(None, None, {})

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        """Add the attributes that are known now, record the metrics and end the span."""
        self._ended = True
        seconds = time.perf_counter() - self._began
        known: dict[str, Any] = {}
        kind = self._error_type(result, error)
        if kind is not None:
            known[names.ERROR_TYPE] = kind
        self._describe(known, result, facts)
        self._attributes |= known
        if self._span.is_recording():
            self._span.set_attributes(known)
            self._add_content(result, facts)
            if kind is not None:
                said = str(error) if error is not None and self._telemetry.capture.on_spans else None
                self._span.set_status(Status(StatusCode.ERROR, said))
        self._record(seconds, result, facts)
        self._span.end()

    def _error_type(self, result: Any, error: BaseException | None) -> str | None:
        return None if error is None else type(error).__name__

    def _describe(self, known: dict[str, Any], result: Any, facts: Mapping[str, Any]) -> None:
        """Add the attributes that are known at the end."""

    def _add_content(self, result: Any, facts: Mapping[str, Any]) -> None:
        """Add content, if the settings ask for it."""

    def _record(self, seconds: float, result: Any, facts: Mapping[str, Any]) -> None:
        """Record metrics."""


class RequestScope(SpanScope):
    """The span of one request to a model, over all its attempts."""

    kind = SpanKind.CLIENT

    def __init__(self, telemetry: Telemetry, facts: Mapping[str, Any]) -> None:
        key, model = facts["provider"], facts["model"]
        operation = names.operation_name(key, model)
        attributes = {
            names.OPERATION: operation,
            names.PROVIDER: names.provider_name(key),
            names.REQUEST_MODEL: model,
            **_server(facts["base_url"]),
        }
        options: RequestOptions = facts["options"]
        self._facts, self._streams, self._times = facts, options.stream, array("d")
        super().__init__(telemetry, f"{operation} {model}", attributes)
        if self._span.is_recording():
            self._span.set_attributes(_of_request(facts))

    def __exit__(self, *error: object) -> None:
        super().__exit__()
        if self._streams and error[:1] == (None,):
            self._times.append(time.perf_counter())

    def _describe(self, known: dict[str, Any], result: Any, facts: Mapping[str, Any]) -> None:
        message: Message | None = result
        url = facts.get("url")
        if url:
            known |= _server(url)
        known[names.ATTEMPTS] = facts.get("attempts", 0)
        known[names.LOSSES] = len(facts.get("losses", ()))
        if facts.get("first_event_s") is not None:
            known[names.TIME_TO_FIRST_CHUNK] = facts["first_event_s"]
        metadata = message.metadata if message is not None else None
        reason = metadata and (metadata.stop_reason_raw or metadata.stop_reason)
        known[names.FINISH_REASONS] = [str(reason or "error")]
        if metadata is None:
            return
        raw: Mapping[str, Any] = metadata.provider_raw or {}
        trace_of_answer = raw.get("trace") or {}
        for name, attribute in (("id", names.RESPONSE_ID), ("model", names.RESPONSE_MODEL)):
            if isinstance(found := trace_of_answer.get(name), str) and found:
                known[attribute] = found
        usage = metadata.usage
        if usage is not None:
            written = names.CACHE_WRITE_1_41 if self._telemetry.conventions == "1.41" else None
            for field, attribute in names.USAGE.items():
                count = getattr(usage, field)
                if count is not None:
                    known[written or attribute if field == "cache_creation_input_tokens" else attribute] = count
            units: Mapping[str, Any] = usage.extra_units or {}
            known |= {attribute: units[unit] for unit, attribute in names.EXTRA_UNITS.items() if unit in units}
            if usage.cost_usd is not None:
                known[names.COST] = float(usage.cost_usd)

    def _add_content(self, result: Any, facts: Mapping[str, Any]) -> None:
        telemetry = self._telemetry
        if not (telemetry.capture.on_spans or telemetry.capture.on_events):
            return
        messages: Sequence[Message] = self._facts["messages"]
        found = {
            names.SYSTEM_INSTRUCTIONS: content.to_instructions(messages),
            names.INPUT_MESSAGES: content.to_messages(messages),
            names.OUTPUT_MESSAGES: [] if result is None else content.to_messages([result]),
            names.TOOL_DEFINITIONS: content.to_definitions(self._facts["tools"]),
        }
        found = telemetry.prepare_content(found)
        if telemetry.capture.on_spans:
            self._span.set_attributes({name: content.to_text(value) for name, value in found.items()})
        if telemetry.capture.on_events:
            telemetry.logger.emit(
                event_name=names.EVENT_DETAILS,
                context=self._context,
                attributes=self._attributes | _of_request(self._facts) | found,
            )

    def _record(self, seconds: float, result: Any, facts: Mapping[str, Any]) -> None:
        usage = None if result is None else result.metadata.usage
        first = facts.get("first_event_s")
        chunks: Sequence[float] = ()
        if first is not None:
            begun = self._began + seconds - facts["duration_s"]  # the start for `first`, slightly late
            times = [at for at in self._times if at - begun >= first - _SLACK]
            chunks = [after - before for before, after in pairwise(times)]
        self._telemetry.instruments.record_request(self._attributes, seconds, first, chunks, usage, self._context)

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        """As `SpanScope.end`; an exception is also an event, whose message is recorded only if events have content."""
        if error is not None:
            kind = type(error)
            told = {names.EXCEPTION_TYPE: f"{kind.__module__}.{kind.__qualname__}"}
            if self._telemetry.capture.on_events:
                told[names.EXCEPTION_MESSAGE] = str(error)
            self._telemetry.logger.emit(
                event_name=names.EVENT_EXCEPTION,
                severity_number=SeverityNumber.WARN,
                context=self._context,
                attributes=told,
            )
        super().end(result, error, facts)


class ToolScope(SpanScope):
    """The span of one call of a tool."""

    def __init__(self, telemetry: Telemetry, facts: Mapping[str, Any]) -> None:
        self._call, definition = facts["call"], facts["tool"]
        attributes = {
            names.OPERATION: "execute_tool",
            names.TOOL_NAME: self._call.name,
            names.TOOL_CALL_ID: self._call.id,
            names.TOOL_TYPE: "function",
        }
        if definition is not None and definition.description:
            attributes[names.TOOL_DESCRIPTION] = definition.description
        super().__init__(telemetry, f"execute_tool {self._call.name}", attributes)

    def _error_type(self, result: Any, error: BaseException | None) -> str | None:
        if error is None and isinstance(result, ToolResultBlock) and result.is_error:
            return "tool_error"
        return super()._error_type(result, error)

    def _add_content(self, result: Any, facts: Mapping[str, Any]) -> None:
        if self._telemetry.capture.on_spans:
            found = {names.TOOL_ARGUMENTS: content.to_arguments(self._call)}
            if result is not None:
                found[names.TOOL_RESULT] = content.to_response(result)
            found = self._telemetry.prepare_content(found)
            self._span.set_attributes({name: content.to_text(value) for name, value in found.items()})

    def _record(self, seconds: float, result: Any, facts: Mapping[str, Any]) -> None:
        self._telemetry.instruments.record_tool(self._attributes, seconds, self._context)


class AgentScope(SpanScope):
    """The span of one run of an agent, around its requests and calls."""

    def __init__(self, telemetry: Telemetry, facts: Mapping[str, Any]) -> None:
        name, description = facts.get("name"), facts.get("description")
        attributes = {names.OPERATION: "invoke_agent", names.REQUEST_MODEL: facts["model"].partition(":")[2]}
        if name:
            attributes[names.AGENT_NAME] = name
        if description:
            attributes[names.AGENT_DESCRIPTION] = description
        if facts["session_id"] not in ("", DEFAULT_SESSION):
            attributes[names.CONVERSATION] = facts["session_id"]
        self._messages, self._tools = tuple(facts["messages"]), facts["tools"]
        super().__init__(telemetry, f"invoke_agent {name}" if name else "invoke_agent", attributes)

    def _describe(self, known: dict[str, Any], result: Any, facts: Mapping[str, Any]) -> None:
        usages = facts.get("usages", ())
        for field, attribute in (("input_tokens", names.INPUT_TOKENS), ("output_tokens", names.OUTPUT_TOKENS)):
            counts = [count for usage in usages if (count := getattr(usage, field)) is not None]
            if counts:
                known[attribute] = sum(counts)
        costs = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
        if costs:
            known[names.COST] = float(sum(costs))
        metadata = None if result is None else result.metadata
        reason = metadata and (metadata.stop_reason_raw or metadata.stop_reason)
        known[names.FINISH_REASONS] = [str(reason or "error")]

    def _add_content(self, result: Any, facts: Mapping[str, Any]) -> None:
        if self._telemetry.capture.on_spans:
            found = {
                names.SYSTEM_INSTRUCTIONS: content.to_instructions(self._messages),
                names.INPUT_MESSAGES: content.to_messages(self._messages),
                names.OUTPUT_MESSAGES: [] if result is None else content.to_messages([result]),
                names.TOOL_DEFINITIONS: content.to_definitions(self._tools),
            }
            found = self._telemetry.prepare_content(found)
            self._span.set_attributes({name: content.to_text(value) for name, value in found.items()})

    def _record(self, seconds: float, result: Any, facts: Mapping[str, Any]) -> None:
        turns, calls = facts.get("turns", 0), facts.get("tool_calls", 0)
        self._telemetry.instruments.record_agent(self._attributes, seconds, turns, calls, self._context)


class ServedScope(SpanScope):
    """The span of a request to a gateway, a child of the caller's span if the request has trace headers."""

    kind = SpanKind.SERVER

    def __init__(self, telemetry: Telemetry, facts: Mapping[str, Any]) -> None:
        headers: Mapping[str, str] = facts["headers"]
        attributes = {
            names.HTTP_METHOD: facts["method"],
            names.HTTP_ROUTE: facts["route"],
            names.URL_PATH: facts["path"],
            names.URL_SCHEME: facts["scheme"],
            names.HTTP_VERSION: facts["http_version"],
            **_server(f"{facts['scheme']}://{headers.get('host', '')}"),
        }
        if facts["client"]:
            attributes[names.CLIENT_ADDRESS] = facts["client"][0]
        if "user-agent" in headers:
            attributes[names.USER_AGENT] = headers["user-agent"]
        super().__init__(telemetry, f"{facts['method']} {facts['route']}", attributes, extract(headers))

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        """As `SpanScope.end`; a mistake of the caller (a status of 4xx) is not an error of the server."""
        status = facts["status"]
        super().end(result, None if status is not None and 400 <= status < 500 else error, facts)

    def _describe(self, known: dict[str, Any], result: Any, facts: Mapping[str, Any]) -> None:
        if facts["status"] is not None:
            known[names.HTTP_STATUS] = facts["status"]

    def _record(self, seconds: float, result: Any, facts: Mapping[str, Any]) -> None:
        self._telemetry.instruments.record_served(self._attributes, seconds, self._context)


@lru_cache(maxsize=64)
def _server(url: str) -> Mapping[str, Any]:
    """Return address and port of a URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return {}
    if not parts.hostname:
        return {}
    return {names.SERVER_ADDRESS: parts.hostname} | ({} if port is None else {names.SERVER_PORT: port})


def _of_request(facts: Mapping[str, Any]) -> dict[str, Any]:
    options: RequestOptions = facts["options"]
    session = facts["session_id"]
    found = {name: value for field, name in names.OPTIONS.items() if (value := getattr(options, field)) is not None}
    if options.stop:
        found[names.REQUEST_STOP] = list(options.stop)
    if options.stream:
        found[names.REQUEST_STREAM] = True
    if options.effort is not None:
        found[names.REQUEST_REASONING] = options.effort
    if facts["typed"] or options.response_schema is not None:
        found[names.OUTPUT_TYPE] = "json"
    if session not in ("", DEFAULT_SESSION):
        found[names.CONVERSATION] = session
    if any(app.get(names.COMPACTED_MESSAGE) for message in facts["messages"] if (app := message.metadata.app)):
        found[names.COMPACTED] = True
    for field, (name, kind) in names.PROVIDER_OPTIONS.items():
        value = options.provider_options.get(field)
        if isinstance(value, (kind, int) if kind is float else kind) and not (field == "n" and value == 1):
            found[name] = kind(value)
    return found
