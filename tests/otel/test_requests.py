"""The span of a request: whole, streamed, failed, cancelled, left, retried; for both clients."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.trace import SpanKind, StatusCode

import interlingua as il
from interlingua.plugins import Registry, hookimpl
from interlingua_agents import tool
from interlingua_agents.loop import AgentLoop
from interlingua_otel import OpenTelemetry
from interlingua_output import Output
from interlingua_sessions.compaction import Compaction, Summary, ToolPruning, build_context
from tests.agents.scripted import Say, Theatre, call, playing
from tests.otel.asking import answer, ask
from tests.otel.conftest import Telemetry
from tests.support.fake_provider import STREAM, Fake, Reply, served

BUSY = Reply(status=503, body=[b"{}"])


@pytest.fixture(params=[True, False], ids=["blocking", "async"])
def blocking(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_whole_answer(telemetry: Telemetry, blocking: bool) -> None:
    with served(Reply(body=[answer()])) as server:
        ask(blocking, server.url, telemetry.plugin(), max_tokens=9, temperature=0.5, stop=["x"], seed=7)

    [span] = telemetry.spans
    port = int(server.url.rpartition(":")[2])
    assert (span.name, span.kind, span.status.status_code) == ("chat known", SpanKind.CLIENT, StatusCode.UNSET)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "fake",
        "gen_ai.request.model": "known",
        "server.address": "127.0.0.1",
        "server.port": port,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("x",),
        "gen_ai.request.seed": 7,
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 2,
        "interlingua.attempts": 1,
        "interlingua.losses": 0,
    }
    assert telemetry.events == []


def test_a_stream(telemetry: Telemetry, blocking: bool) -> None:
    with served(Reply(body=[STREAM[0], 0.05, *STREAM[1:]])) as server:
        ask(blocking, server.url, telemetry.plugin(), stream=True)

    [span] = telemetry.spans
    attributes = dict(span.attributes or {})
    first = attributes["gen_ai.response.time_to_first_chunk"]
    assert isinstance(first, float)
    assert span.end_time is not None
    assert span.start_time is not None
    assert 0 < first < (span.end_time - span.start_time) / 1e9
    assert (span.end_time - span.start_time) / 1e9 > 0.05
    assert attributes["gen_ai.request.stream"] is True
    assert attributes["gen_ai.response.finish_reasons"] == ("end_turn",)
    assert attributes["gen_ai.usage.output_tokens"] == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_names_the_class_and_nothing_of_its_text(telemetry: Telemetry, blocking: bool, stream: bool) -> None:
    refused = Reply(status=401, body=[b'{"error": "SECRET"}'])
    with served(refused) as server, pytest.raises(il.errors.AuthenticationError):
        ask(blocking, server.url, telemetry.plugin(), stream=stream)

    [span] = telemetry.spans
    attributes = dict(span.attributes or {})
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert (attributes["error.type"], attributes["interlingua.attempts"]) == ("AuthenticationError", 1)
    assert attributes["gen_ai.response.finish_reasons"] == ("error",)
    assert span.events == ()
    assert telemetry.events == [
        ("gen_ai.client.operation.exception", {"exception.type": "interlingua.errors.AuthenticationError"})
    ]
    assert "SECRET" not in telemetry.everything()


def test_retries_are_one_span_and_the_last_answer_counts(telemetry: Telemetry, blocking: bool) -> None:
    with served(BUSY, Reply(body=[answer()])) as server:
        ask(blocking, server.url, telemetry.plugin())

    [span] = telemetry.spans
    attributes = dict(span.attributes or {})
    assert (attributes["interlingua.attempts"], span.status.status_code) == (2, StatusCode.UNSET)


def test_a_broken_stream_keeps_what_was_counted(telemetry: Telemetry, blocking: bool) -> None:
    body = [STREAM[2], STREAM[0], None]
    with served(Reply(body=body)) as server, pytest.raises(il.errors.StreamInterruptedError):
        ask(blocking, server.url, telemetry.plugin(), stream=True)

    [span] = telemetry.spans
    attributes = dict(span.attributes or {})
    assert attributes["error.type"] == "StreamInterruptedError"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.response.finish_reasons"]) == (3, ("error",))


def test_a_stream_that_is_left_ends_its_span(telemetry: Telemetry, blocking: bool) -> None:
    with served(Reply(body=[STREAM[0], 0.2, *STREAM[1:]])) as server:
        ask(blocking, server.url, telemetry.plugin(), stream=True, leave=True)

    [span] = telemetry.spans
    attributes = dict(span.attributes or {})
    assert "error.type" not in attributes
    assert attributes["gen_ai.response.finish_reasons"] == ("error",)


def test_a_stream_that_is_dropped_unread_ends_its_span(telemetry: Telemetry) -> None:
    with served(Reply(body=STREAM)) as server:
        found = Registry([telemetry.plugin()], providers={"fake": Fake()}, entry_points=[])
        with il.Client("fake:known", registry=found, base_url=server.url, api_key="k", environ={}) as client:
            entered = client.stream("hi").__enter__()
            never_entered = client.stream("hi")
            assert telemetry.spans == []
            del entered, never_entered
            gc.collect()

    assert len(telemetry.spans) == 2


def test_a_cancelled_task_ends_its_span(telemetry: Telemetry) -> None:
    async def cancelled(url: str) -> None:
        found = Registry([telemetry.plugin()], providers={"fake": Fake()}, entry_points=[])
        async with il.AsyncClient("fake:known", registry=found, base_url=url, api_key="k", environ={}) as client:
            task = asyncio.create_task(client.send("hi"))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with served(Reply(wait=2.0)) as server:
        asyncio.run(cancelled(server.url))

    [span] = telemetry.spans
    assert dict(span.attributes or {})["error.type"] == "CancelledError"


class Signing(Fake):
    """Notes the current span when a request is signed, which is just before it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    @hookimpl
    def connection(self, settings: Any) -> Any:
        def sign(_outgoing: Any, _secret: Any) -> dict[str, str]:
            self.seen.append(trace.get_current_span().get_span_context().span_id)
            return {}

        return il.plugins.Connection(base_url=settings.base_url, sign=sign)


@pytest.mark.parametrize("stream", [False, True])
def test_the_span_is_current_while_core_works_and_never_for_the_caller(
    telemetry: Telemetry, blocking: bool, stream: bool
) -> None:
    fake = Signing()
    tracer = telemetry.tracers.get_tracer("test")
    reply = Reply(body=STREAM if stream else [answer()])
    with served(reply) as server, tracer.start_as_current_span("caller") as caller:
        ask(blocking, server.url, telemetry.plugin(), fake=fake, stream=stream)
        assert trace.get_current_span() is caller

    span, outer = telemetry.spans
    assert fake.seen == [span.context.span_id]
    assert span.parent is not None
    assert outer.context is not None
    assert span.parent.span_id == outer.context.span_id


def test_the_span_of_an_http_instrumentation_is_a_child(telemetry: Telemetry, blocking: bool) -> None:
    HTTPXClientInstrumentor().instrument(tracer_provider=telemetry.tracers)
    try:
        with served(Reply(body=STREAM)) as server:
            ask(blocking, server.url, telemetry.plugin(), stream=True)
    finally:
        HTTPXClientInstrumentor().uninstrument()

    below, span = telemetry.spans
    assert (below.name, span.name) == ("POST", "chat known")
    assert below.parent is not None
    assert below.parent.span_id == span.context.span_id


def test_samplers_see_what_is_known_at_the_start(blocking: bool) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler

    seen: list[dict[str, Any]] = []

    class Looks(Sampler):
        def should_sample(self, *given: Any, **named: Any) -> Any:
            seen.append(dict(named.get("attributes") or (given[4] if len(given) > 4 else {}) or {}))
            return ALWAYS_OFF.should_sample(*given, **named)

        def get_description(self) -> str:
            return "looks"

    with served(Reply(body=[answer()])) as server:
        ask(blocking, server.url, OpenTelemetry(tracer_provider=TracerProvider(sampler=Looks())))

    [attributes] = seen
    assert list(attributes) == [
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "server.address",
        "server.port",
    ]


def test_a_session_is_a_conversation_and_a_fresh_message_has_none(telemetry: Telemetry) -> None:
    with served(Reply(body=[answer()])) as server:
        ask(True, server.url, telemetry.plugin(), il.user("hi", session_id="moons"))
        ask(True, server.url, telemetry.plugin(), "hi")

    first, second = (dict(span.attributes or {}) for span in telemetry.spans)
    assert first["gen_ai.conversation.id"] == "moons"
    assert "gen_ai.conversation.id" not in second


def test_without_an_sdk_nothing_is_made() -> None:
    plugin = OpenTelemetry()
    assert plugin.instrument("chat", {}) is None
    assert "tracer" not in vars(plugin)


def test_other_kinds_of_work_have_no_span(telemetry: Telemetry) -> None:
    assert telemetry.plugin().instrument("something.new", {}) is None


ANTHROPIC = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5-20251001",
    "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {
        "input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 7,
    },
}  # fmt: skip
OPENAI = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5-mini-2025-08-07",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
    "usage": {
        "prompt_tokens": 30, "completion_tokens": 9, "total_tokens": 39,
        "prompt_tokens_details": {"cached_tokens": 10, "audio_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
}  # fmt: skip
GOOGLE = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6},
    "modelVersion": "gemini-2.5-flash", "responseId": "r1",
}  # fmt: skip


def _attributes_of(telemetry: Telemetry, model: str, body: Any, **options: Any) -> dict[str, Any]:
    http = httpx.Client(transport=httpx.MockTransport(lambda _request: httpx.Response(200, json=body)))
    settings: dict[str, Any] = {"api_key": "k", "http_client": http, "environ": {}}
    with il.Client(model, registry=Registry([telemetry.plugin()]), **settings) as client:
        client.send("hi", **options)
    return dict(telemetry.spans[-1].attributes or {})


def test_cache_cost_id_and_model_of_messages(telemetry: Telemetry) -> None:
    found = _attributes_of(telemetry, "anthropic:claude-haiku-4-5", ANTHROPIC, top_k=5, top_p=0.9)

    assert found["gen_ai.provider.name"] == "anthropic"
    assert (found["server.address"], found["server.port"]) == ("api.anthropic.com", 443)
    assert (found["gen_ai.response.id"], found["gen_ai.response.model"]) == ("msg_1", "claude-haiku-4-5-20251001")
    assert (found["gen_ai.request.top_k"], found["gen_ai.request.top_p"]) == (5, 0.9)
    assert found["gen_ai.usage.input_tokens"] == 35
    assert found["gen_ai.usage.cache_read.input_tokens"] == 20
    assert found["gen_ai.usage.cache_write.input_tokens"] == 5
    # list prices: 1 USD in, 5 out, 0.1 read, 1.25 written, each a million tokens
    assert found["interlingua.cost_usd"] == pytest.approx((10 * 1 + 7 * 5 + 20 * 0.1 + 5 * 1.25) / 1e6)


def test_reasoning_audio_and_body_fields_of_chat_completions(telemetry: Telemetry) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    body_fields = {"frequency_penalty": 1, "presence_penalty": 0.5, "n": 2}
    options: dict[str, Any] = {"effort": "low", "response_schema": schema, "provider_options": body_fields}
    found = _attributes_of(telemetry, "openai:gpt-5-mini", OPENAI, api="chat", **options)

    assert found["gen_ai.usage.reasoning.output_tokens"] == 5
    assert found["gen_ai.usage.audio.input_tokens"] == 4
    assert found["gen_ai.usage.cache_read.input_tokens"] == 10
    assert found["gen_ai.request.reasoning.level"] == "low"
    assert found["gen_ai.output.type"] == "json"
    assert found["gen_ai.request.choice.count"] == 2
    assert (found["gen_ai.request.frequency_penalty"], found["gen_ai.request.presence_penalty"]) == (1.0, 0.5)
    assert found["gen_ai.response.finish_reasons"] == ("stop",)


def test_audio_and_images_of_the_output_are_counted(telemetry: Telemetry) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 6, "image_tokens": 2}}
    body = OPENAI | {"usage": {**OPENAI["usage"], **details}}  # type: ignore[dict-item]
    found = _attributes_of(telemetry, "openai:gpt-5-mini", body, api="chat")

    assert found["gen_ai.usage.audio.output_tokens"] == 6
    assert found["gen_ai.usage.image.output_tokens"] == 2


@pytest.mark.parametrize("policies", [[ToolPruning(keep=0)], [Summary()]], ids=["pruned", "summarised"])
def test_a_compacted_conversation_says_so_and_no_other_does(
    telemetry: Telemetry, tmp_path: Path, policies: list[Any]
) -> None:
    @tool(side_effects="none")
    def read() -> str:
        """Read."""
        return "word " * 300

    theatre = Theatre(Say(parts=[call("read")]), "word " * 400, "word " * 400, *["Short."] * 4)
    compactor = Compaction(limit=1_200, policies=policies)
    more: dict[str, Any] = {"plugins": [telemetry.plugin()], "context": build_context, "compactor": compactor}
    with playing(theatre, tmp_path / "s.db", **more) as session:
        for question in ("one", "two", "three", "four"):
            session.send(question, tools=AgentLoop([read]))
        assert session.entries != ()

    chats = [dict(span.attributes or {}) for span in telemetry.spans if span.name.startswith("chat")]
    told = [one.get("gen_ai.conversation.compacted") for one in chats]
    assert (told[0], told[-1]) == (None, True)
    assert False not in told


def test_a_typed_answer_is_json_however_it_is_asked_for(telemetry: Telemetry) -> None:
    with served(Reply(body=[answer(say='{"value": 3}')])) as server:
        found = Registry([telemetry.plugin()], providers={"fake": Fake()}, entry_points=[])
        with il.Client("fake:known", registry=found, base_url=server.url, api_key="k", environ={}) as client:
            asked: Any = client.send("How many?", output=Output(int, mode="prompt"))

    assert asked.value == 3
    assert dict(telemetry.spans[0].attributes or {})["gen_ai.output.type"] == "json"


def test_gemini_has_its_own_operation(telemetry: Telemetry) -> None:
    found = _attributes_of(telemetry, "google:gemini-2.5-flash", GOOGLE)

    assert (found["gen_ai.operation.name"], found["gen_ai.provider.name"]) == ("generate_content", "gcp.gemini")
    assert (found["gen_ai.response.id"], found["gen_ai.response.model"]) == ("r1", "gemini-2.5-flash")
    assert telemetry.spans[-1].name == "generate_content gemini-2.5-flash"


def test_conventions_1_41_name_cache_writes_as_they_did(telemetry: Telemetry) -> None:
    plugin = telemetry.plugin(conventions="1.41")
    http = httpx.Client(transport=httpx.MockTransport(lambda _request: httpx.Response(200, json=ANTHROPIC)))
    settings: dict[str, Any] = {"api_key": "k", "http_client": http, "environ": {}}
    with il.Client("anthropic:claude-haiku-4-5", registry=Registry([plugin]), **settings) as client:
        client.send("hi")

    found = dict(telemetry.spans[-1].attributes or {})
    assert found["gen_ai.usage.cache_creation.input_tokens"] == 5
    assert "gen_ai.usage.cache_write.input_tokens" not in found


def test_settings_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(il.CallerError, match="conventions"):
        OpenTelemetry(conventions="2.0")  # type: ignore[arg-type]
    with pytest.raises(il.CallerError, match="content_limit"):
        OpenTelemetry(content_limit=1)


def test_the_variable_loads_the_plugin_for_the_global_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    from interlingua_otel import plugin

    monkeypatch.setenv("INTERLINGUA_PLUGINS", "interlingua_otel:plugin")
    assert Registry(entry_points=[]).plugins == [plugin]
