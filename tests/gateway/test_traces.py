"""Spans of the gateway: one for each request of a caller, and under it those of the requests to models.

The attributes follow OpenTelemetry's conventions for HTTP servers
(https://github.com/open-telemetry/semantic-conventions/blob/main/docs/http/http-spans.md), whose names are taken from
OpenTelemetry's own list.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.semconv.attributes import (
    client_attributes,
    error_attributes,
    http_attributes,
    network_attributes,
    server_attributes,
    url_attributes,
    user_agent_attributes,
)
from opentelemetry.trace import SpanKind, StatusCode

from interlingua.plugins import Registry
from tests.gateway.apis import APIS, Api
from tests.gateway.conftest import Upstream, chat_chunks, gateway, refuse
from tests.otel.conftest import Telemetry
from tests.support.loopback import send_bytes
from tests.support.waiting import until

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"  # example of W3C Trace Context
every_api = pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry()
    yield made
    made.meters.shutdown()
    made.loggers.shutdown()
    made.tracers.shutdown()


def _ask(url: str, api: Api, **headers: str) -> httpx.Response:
    return httpx.post(url + api.path, json=api.body, headers=headers)


def _two(telemetry: Telemetry) -> tuple[ReadableSpan, ReadableSpan]:
    """Return the span of the caller's request and that of the model's; the answer may come before they end."""
    until(lambda: len(telemetry.spans) > 1)
    inner, outer = telemetry.spans
    return outer, inner


@every_api
def test_a_request_is_a_span_of_the_callers_trace(upstream: Upstream, telemetry: Telemetry, api: Api) -> None:
    with gateway(upstream, registry=Registry([telemetry.plugin()])) as url:
        _ask(url, api, traceparent=CALLER, authorization="Bearer SECRET", **{"user-agent": "caller/1"})
        outer, inner = _two(telemetry)

    port = int(url.rpartition(":")[2])
    path, _, _ = api.path.partition("?")
    route = path.replace("/m:", "/{model:path}:")
    assert (outer.name, outer.kind, outer.status.status_code) == (f"POST {route}", SpanKind.SERVER, StatusCode.UNSET)
    assert dict(outer.attributes or {}) == {
        http_attributes.HTTP_REQUEST_METHOD: "POST",
        http_attributes.HTTP_ROUTE: route,
        http_attributes.HTTP_RESPONSE_STATUS_CODE: 200,
        url_attributes.URL_PATH: path,
        url_attributes.URL_SCHEME: "http",
        network_attributes.NETWORK_PROTOCOL_VERSION: "1.1",
        server_attributes.SERVER_ADDRESS: "127.0.0.1",
        server_attributes.SERVER_PORT: port,
        client_attributes.CLIENT_ADDRESS: "127.0.0.1",
        user_agent_attributes.USER_AGENT_ORIGINAL: "caller/1",
    }
    assert outer.parent is not None
    assert outer.context is not None
    assert inner.parent is not None
    assert f"{outer.parent.trace_id:032x}-{outer.parent.span_id:016x}" == CALLER[3:52]
    assert (inner.parent.trace_id, inner.parent.span_id) == (outer.context.trace_id, outer.context.span_id)
    assert (inner.name, inner.kind) == ("chat up-1", SpanKind.CLIENT)
    assert "SECRET" not in telemetry.everything()
    [point] = telemetry.points()["http.server.request.duration"]
    assert point.attributes == {
        http_attributes.HTTP_REQUEST_METHOD: "POST",
        http_attributes.HTTP_ROUTE: route,
        http_attributes.HTTP_RESPONSE_STATUS_CODE: 200,
        url_attributes.URL_SCHEME: "http",
        network_attributes.NETWORK_PROTOCOL_VERSION: "1.1",
    }


@every_api
def test_a_whole_answer_has_the_same_two_spans(upstream: Upstream, telemetry: Telemetry, api: Api) -> None:
    path = api.path.replace("streamG", "g").replace("?alt=sse", "")
    with gateway(upstream, registry=Registry([telemetry.plugin()])) as url:
        httpx.post(url + path, json={**api.body, **({} if api.name == "generate" else {"stream": False})})
        outer, inner = _two(telemetry)

    assert outer.parent is None
    assert outer.context is not None
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    assert (outer.attributes or {})[http_attributes.HTTP_RESPONSE_STATUS_CODE] == 200


def _slowly(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
    first, *_ = chat_chunks({"role": "assistant", "content": "Hel"})
    data = b"data: " + json.dumps(first).encode() + b"\n\n"
    send_bytes(handler, 200, "text/event-stream", data, **{"content-length": "1000000"})
    time.sleep(0.3)
    handler.close_connection = True  # before what was announced


@every_api
def test_a_stream_that_breaks_is_an_error_though_its_status_was_200(
    upstream: Upstream, telemetry: Telemetry, api: Api
) -> None:
    upstream.answers = [_slowly]
    with gateway(upstream, registry=Registry([telemetry.plugin()])) as url:
        _ask(url, api)
        outer, _ = _two(telemetry)

    attributes = dict(outer.attributes or {})
    assert outer.status.status_code is StatusCode.ERROR
    assert attributes[http_attributes.HTTP_RESPONSE_STATUS_CODE] == 200
    assert attributes[error_attributes.ERROR_TYPE] == "StreamInterruptedError"
    assert outer.end_time is not None
    assert outer.start_time is not None
    assert (outer.end_time - outer.start_time) / 1e9 > 0.3


@pytest.mark.parametrize(("status", "kind"), [(503, "OverloadedError"), (400, None)])
def test_what_the_caller_did_wrong_is_no_error_of_the_server(
    upstream: Upstream, telemetry: Telemetry, status: int, kind: str | None
) -> None:
    upstream.answers = [refuse(status)]
    with gateway(upstream, registry=Registry([telemetry.plugin()])) as url:
        answer = _ask(url, APIS[0])
        outer, inner = _two(telemetry)

    attributes = dict(outer.attributes or {})
    assert attributes[http_attributes.HTTP_RESPONSE_STATUS_CODE] == answer.status_code
    assert attributes.get(error_attributes.ERROR_TYPE) == kind
    assert outer.status.status_code is (StatusCode.UNSET if kind is None else StatusCode.ERROR)
    assert outer.status.description is None
    assert inner.status.status_code is StatusCode.ERROR  # of the client's span every error is one


def test_a_request_that_is_not_let_in_has_no_model_asked(upstream: Upstream, telemetry: Telemetry) -> None:
    with gateway(upstream, registry=Registry([telemetry.plugin()])) as url:
        httpx.post(url + APIS[0].path, content=b"{", headers={"content-type": "application/json"})

    [span] = telemetry.spans
    assert (span.attributes or {})[http_attributes.HTTP_RESPONSE_STATUS_CODE] == 400
    assert span.status.status_code is StatusCode.UNSET


def test_no_span_where_the_web_frameworks_instrumentation_has_made_one(
    upstream: Upstream, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    from interlingua_gateway import exchange

    answer = exchange.ApiEndpoint.__call__

    async def inside_a_span(self: Any, *arguments: Any) -> None:
        with telemetry.tracers.get_tracer("framework").start_as_current_span("POST", kind=SpanKind.SERVER):
            await answer(self, *arguments)

    monkeypatch.setattr(exchange.ApiEndpoint, "__call__", inside_a_span)
    with gateway(upstream, registry=Registry([telemetry.plugin()])) as url:
        _ask(url, APIS[0])
        outer, inner = _two(telemetry)

    assert outer.name == "POST"
    assert outer.context is not None
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id


def test_a_plugin_that_fails_stops_nothing(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    from interlingua.plugins import hookimpl

    class Broken:
        @hookimpl
        def instrument(self, kind: str, facts: Any) -> Any:
            raise RuntimeError(kind)

    with gateway(upstream, registry=Registry([Broken()])) as url:
        assert APIS[0].finished in _ask(url, APIS[0]).content
    assert "a plugin failed in instrument serve_request" in caplog.text
