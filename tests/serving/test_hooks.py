"""How a serving hook is called, and what of a request an upstream gets."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from interlingua.errors import CallerError, CapabilityError, PluginError, ServerError
from interlingua.plugins import Registry, WireRequest, WireResponse
from interlingua.types import (
    Message,
    Origin,
    Provenance,
    RequestOptions,
    SideEffects,
    TextDelta,
    WireTool,
    system,
    user,
)
from interlingua.types.messages import MessageMetadata
from interlingua_serving import (
    SERVING_VERSION,
    InboundRequest,
    ServeContext,
    ServedApi,
    ServedRoute,
    find_apis,
    find_serving_plugin,
    hookimpl,
)
from tests.support.fake_provider import Fake

ECHOED = Message(
    role="assistant",
    content=(),
    metadata=MessageMetadata(provider="fake", api="fake", model="fake:m", provenance=Provenance.IMPORTED),
)


def test_only_an_upstream_of_the_same_api_gets_what_only_that_api_has() -> None:
    request = InboundRequest(
        messages=(system("x-header"), user("Hi."), ECHOED),
        options=RequestOptions(model="m", api="fake", max_tokens=9),
        extra={"store": False},
        private=(0,),
        provider="fake",
    )

    messages, options, losses = request.for_upstream("fake", "fake", "real-m")
    assert (len(messages), options.model, options.provider_options, losses) == (3, "real-m", {"store": False}, ())
    assert messages[2].metadata.model == "fake:real-m"

    messages, options, losses = request.for_upstream("host", "fake", "m")
    assert (len(messages), options.provider_options, [loss.path for loss in losses]) == (
        2,
        {"store": False},
        ["messages[0]"],
    )

    messages, options, losses = request.for_upstream("acme", "talk", "acme-1")
    assert [message.role for message in messages] == ["user", "assistant"]
    assert (options.model, options.api, options.max_tokens, options.provider_options) == ("acme-1", "talk", 9, {})
    assert [(loss.path, loss.verdict) for loss in losses] == [
        ("options.provider_options.store", "dropped"),
        ("messages[0]", "dropped"),
    ]


def test_the_exact_form_of_an_option_is_for_the_very_model_that_was_asked_for() -> None:
    request = InboundRequest(
        messages=(user("Hi."),),
        options=RequestOptions(model="m", api="fake", max_tokens=9, thinking=True),
        extra={"limit": 9, "thinking": {"type": "adaptive"}},
        covered={"limit": ("max_tokens",), "thinking": ()},
        provider="fake",
    )

    _, exact, _ = request.for_upstream("fake", "fake", "m")
    assert (exact.max_tokens, exact.thinking, exact.provider_options) == (None, True, request.extra)
    for upstream in (("fake", "fake", "other"), ("host", "fake", "m"), ("acme", "talk", "m")):
        _, options, losses = request.for_upstream(*upstream)
        assert (options.max_tokens, options.thinking, options.provider_options, losses) == (9, True, {}, ())


def test_a_tool_of_a_request_keeps_name_and_schema() -> None:
    schema = {"$schema": "x", "type": "object", "properties": {"a": {"anyOf": [{"type": "null"}]}}}
    tool = WireTool(name="Read", description="d", input_schema=schema, extra={"strict": True}, api="fake")

    assert (tool.name, tool.input_schema, tool.side_effects) == ("Read", schema, SideEffects.EXECUTE)
    assert (tool.extra_of("fake"), tool.extra_of("talk")) == ({"strict": True}, {})


class _Writer:
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self.losses: list[Any] = []

    def feed(self, events: Any) -> bytes:
        return b"x" * len(list(events))

    def end(self) -> bytes:
        return b"."


class _Serving(Fake):
    @hookimpl
    def served_apis(self) -> list[ServedApi]:
        return [ServedApi(name="fake", routes=(ServedRoute(path="/talk"),))]

    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        body = json.loads(request.body)
        options = RequestOptions(model=body["model"], api=request.api)
        return InboundRequest(messages=(user(body["text"]),), options=options, provider=context.provider)

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        return WireResponse(body=message.text.encode())

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> _Writer:
        return _Writer()

    @hookimpl
    def to_wire_error(self, error: Exception, context: ServeContext) -> WireResponse:
        return WireResponse(status=500)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        return WireResponse(body=str(value).encode()) if kind == "count_tokens" else None


def test_the_hooks_are_reached_and_a_request_that_cannot_be_read_is_the_callers_mistake() -> None:
    plugin = find_serving_plugin(Registry(providers={"fake": _Serving()}, entry_points=[]), "fake")
    context = ServeContext(provider="fake", api="fake", model="m", origin=Origin("fake", "fake", "m"))
    request = WireRequest(path="/talk", body=b'{"model": "m", "text": "Hi."}', api="fake")

    assert plugin.from_wire_request(request, context).messages[0].text == "Hi."
    assert plugin.to_wire_response(user("Hi."), context).body == b"Hi."
    assert plugin.stream_to_wire(context).feed([TextDelta(index=0, text="x")]) == b"x"
    assert plugin.to_wire_error(ServerError("x"), context).status == 500
    assert plugin.to_wire_auxiliary("count_tokens", 3, context).body == b"3"
    assert context.is_own
    assert context.answer_id != ServeContext(provider="fake", api="fake").answer_id
    with pytest.raises(CapabilityError):
        plugin.to_wire_auxiliary("models", [], context)
    for body in (b"{", b"[]", b"{}", b'{"model": 3, "text": 4}'):
        with pytest.raises(CallerError):
            plugin.from_wire_request(WireRequest(path="/talk", body=body, api="fake"), context)


def test_a_provider_without_the_hooks_serves_nothing() -> None:
    registry = Registry(providers={"fake": Fake()}, entry_points=[])

    with pytest.raises(CapabilityError, match="does not serve"):
        find_serving_plugin(registry, "fake")
    assert find_apis(registry) == []


class _Next(_Serving):
    serving_version = SERVING_VERSION + 1


class _Wordless(_Serving):
    serving_version = "1"


class _Half(Fake):
    @hookimpl
    def served_apis(self) -> list[ServedApi]:
        return [ServedApi(name="fake")]


class _Strange(_Serving):
    @hookimpl
    def served_apis(self) -> list[Any]:
        return ["fake"]


class _Misnamed(_Serving):
    @hookimpl
    def stream_to_wire(self, asked: ServeContext) -> _Writer:
        return _Writer()


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        (_Next(), "upgrade interlingua-serving"),
        (_Wordless(), "serving_version must be an integer"),
        (_Half(), "lacks the hook"),
        (_Strange(), "must return ServedApi values"),
        (_Misnamed(), "does not match the hook specs"),
    ],
)
def test_a_serving_plugin_that_breaks_the_specs_is_left_out(
    plugin: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(providers={"fake": plugin}, entry_points=[])

    with pytest.raises(PluginError, match=text):
        find_serving_plugin(registry, "fake")
    assert find_apis(registry) == []
    assert text in caplog.text


def test_a_plugin_of_an_entry_point_that_cannot_be_imported_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    entries = [
        EntryPoint("fake", "tests.support.fake_provider:Fake", "interlingua.providers"),
        EntryPoint("fake", "tests.support.no_such_module:plugin", "interlingua.serving"),
        EntryPoint("elsewhere", "tests.support.no_such_module:plugin", "interlingua.serving"),  # no such provider
    ]

    assert find_apis(Registry(entry_points=entries)) == []
    assert "serving plugin 'fake'" in caplog.text
    assert "elsewhere" not in caplog.text


def test_apis_are_in_the_wanted_order_then_by_key() -> None:
    providers = {key: _Serving() for key in ("a", "b", "c")}
    registry = Registry(providers=providers, entry_points=[])

    assert [found.plugin.key for found in find_apis(registry)] == ["a", "b", "c"]
    assert [found.plugin.key for found in find_apis(registry, ["c", "none", "b"])] == ["c", "b", "a"]


class _Louder:
    """A general plugin that wraps a serving hook."""

    @hookimpl(wrapper=True)
    def to_wire_response(self) -> Any:
        response = yield
        return WireResponse(body=response.body.upper())


def test_a_general_plugin_wraps_a_serving_hook() -> None:
    registry = Registry([_Louder()], providers={"fake": _Serving()}, entry_points=[])
    context = ServeContext(provider="fake", api="fake")

    assert find_serving_plugin(registry, "fake").to_wire_response(user("Hi."), context).body == b"HI."
