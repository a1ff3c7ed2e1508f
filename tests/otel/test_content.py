"""Content: none by default, all of it where asked for, by the conventions' schemas, filtered and limited."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from typing import Any

import pytest

import interlingua as il
from interlingua.types import (
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_otel import CaptureContent, OpenTelemetry
from interlingua_otel.content import VARIABLE, fit, to_instructions, to_messages, to_text
from tests.otel.asking import answer, ask
from tests.otel.conftest import Telemetry
from tests.support.fake_provider import Reply, served, sse

CANARY = "CANARY-7f3a"
TOOL = ToolDefinition(
    name="add",
    description=f"Adds {CANARY}.",
    side_effects="read",
    input_schema={"type": "object", "properties": {"a": {"type": "integer", "description": CANARY}}},
)
CALL = ToolUseBlock(id="tu_01KAKDPZ0000000000000000AA", name="add", input={"a": 1})
MESSAGES = [
    il.system(f"Be short. {CANARY}"),
    il.user(f"How wide? {CANARY}"),
    il.assistant([ThinkingBlock(text=CANARY), CALL]),
    il.tool_result(CALL, f"{CANARY} km"),
]
ATTRIBUTES = (
    "gen_ai.system_instructions",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.tool.definitions",
)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reply", ["good", "refused", "malformed"])
def test_nothing_leaves_by_default(telemetry: Telemetry, stream: bool, reply: str) -> None:
    good = sse({"t": CANARY}, {"end": "end_turn"}) if stream else [answer(say=CANARY)]
    replies = {
        "good": Reply(body=good),
        "refused": Reply(status=400, body=[json.dumps({"error": CANARY}).encode()]),
        "malformed": Reply(body=[f'{{"say": "{CANARY}'.encode()]),
    }
    with served(replies[reply]) as server:
        try:
            ask(True, server.url, telemetry.plugin(), MESSAGES, tools=[TOOL], stream=stream)
        except il.InterlinguaError:
            assert reply != "good"

    assert telemetry.spans
    assert CANARY not in telemetry.everything()


@pytest.mark.parametrize("capture", list(CaptureContent))
def test_content_goes_where_it_is_asked_for(telemetry: Telemetry, capture: CaptureContent) -> None:
    with served(Reply(body=[answer()])) as server:
        ask(True, server.url, telemetry.plugin(capture=capture), MESSAGES, tools=[TOOL])

    [span] = telemetry.spans
    on_span = {name: json.loads(str(text)) for name, text in (span.attributes or {}).items() if name in ATTRIBUTES}
    events = [attributes for name, attributes in telemetry.events if name.endswith("operation.details")]
    assert set(on_span) == (set(ATTRIBUTES) if capture.on_spans else set())
    assert len(events) == capture.on_events
    for found in [on_span] * capture.on_spans + events:
        assert [part["content"] for part in found[ATTRIBUTES[0]]] == [f"Be short. {CANARY}"]
        assert [one["role"] for one in found[ATTRIBUTES[1]]] == ["user", "assistant", "tool"]
        assert found[ATTRIBUTES[2]][0]["parts"][0] == {"type": "text", "content": "hello"}
        assert found[ATTRIBUTES[3]][0]["name"] == "add"
    for attributes in events:
        assert attributes["gen_ai.provider.name"] == "fake"
        assert attributes["gen_ai.usage.input_tokens"] == 3


def test_the_variable_is_read_and_an_argument_goes_before_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, "span_and_event")
    assert OpenTelemetry().capture is CaptureContent.SPAN_AND_EVENT
    assert OpenTelemetry(capture="NO_CONTENT").capture is CaptureContent.NO_CONTENT
    monkeypatch.setenv(VARIABLE, "true")
    with caplog.at_level(logging.WARNING, "interlingua"):
        assert OpenTelemetry().capture is CaptureContent.NO_CONTENT
    assert VARIABLE in caplog.text


def test_a_failures_text_is_content(telemetry: Telemetry) -> None:
    refused = Reply(status=400, body=[json.dumps({"error": {"message": CANARY}}).encode()])
    with served(refused) as server, pytest.raises(il.errors.BadRequestError):
        ask(True, server.url, telemetry.plugin(capture="SPAN_AND_EVENT"))

    [(_, told)] = [event for event in telemetry.events if event[0] == "gen_ai.client.operation.exception"]
    assert told["exception.message"]
    assert telemetry.spans[0].status.description == told["exception.message"]


def _part(block: Any) -> dict[str, Any]:
    [message] = to_messages([Message(role=Role.ASSISTANT, content=(block,))])
    part: dict[str, Any] = message["parts"][0]
    return part


def test_each_block_is_the_part_that_the_schema_has_for_it() -> None:
    picture = MediaSource(kind="base64", data=base64.b64encode(b"png").decode())
    digest = hashlib.sha256(b"png").hexdigest()

    assert _part(ThinkingBlock(text="hm", signature="s")) == {"type": "reasoning", "content": "hm"}
    assert _part(RedactedThinkingBlock(data="secret")) == {"type": "redacted_thinking"}
    assert _part(CALL) == {"type": "tool_call", "id": CALL.id, "name": "add", "arguments": {"a": 1}}
    broken = ToolUseBlock(id=CALL.id, name="add", raw_input='{"a', parse_error="cut")
    assert _part(broken)["arguments"] == '{"a'
    result = ToolResultBlock(tool_use_id=CALL.id, content="3 km")
    assert _part(result) == {"type": "tool_call_response", "id": CALL.id, "response": "3 km"}
    pictured = ToolResultBlock(tool_use_id=CALL.id, content=(ImageBlock(source=picture, media_type="image/png"),))
    media = {"type": "media", "modality": "image", "mime_type": "image/png", "sha256": digest, "size": 3}
    assert _part(pictured)["response"] == [media]
    assert _part(ImageBlock(source=picture, media_type="image/png")) == media
    signed = MediaSource(kind="url", data="https://a.test/x.png?signature=s")
    assert _part(ImageBlock(source=signed))["uri"] == "https://a.test/x.png"
    filed = MediaSource(kind="file_id", data="f1")
    assert _part(DocumentBlock(source=filed)) == {
        "type": "file", "modality": "document", "mime_type": "application/pdf", "file_id": "f1",
    }  # fmt: skip
    opaque = OpaqueBlock(provider="acme", kind="server_tool_use", data={"query": CANARY})
    assert _part(opaque) == {"type": "server_tool_use", "provider": "acme"}


def test_only_leading_system_messages_are_instructions() -> None:
    messages = [il.system("one"), il.system("two"), il.user("hi"), il.system("later")]

    assert [part["content"] for part in to_instructions(messages)] == ["one", "two"]
    assert [one["role"] for one in to_messages(messages)] == ["user", "system"]


def test_a_filter_sees_every_value_and_may_drop_it(telemetry: Telemetry) -> None:
    seen = []

    def keep(name: str, value: Any) -> Any:
        seen.append(name)
        return None if name == "gen_ai.tool.definitions" else json.loads(json.dumps(value).replace(CANARY, "***"))

    plugin = telemetry.plugin(capture="SPAN_AND_EVENT", content_filter=keep)
    with served(Reply(body=[answer()])) as server:
        ask(True, server.url, plugin, MESSAGES, tools=[TOOL])

    assert set(seen) == set(ATTRIBUTES)
    assert CANARY not in telemetry.everything()
    assert "gen_ai.tool.definitions" not in (telemetry.spans[0].attributes or {})


@pytest.mark.parametrize("limit", [256, 1000, 5000])
def test_what_is_too_long_stays_whole_json(limit: int) -> None:
    many = to_messages([il.user(f"{number} " + "x" * 400) for number in range(40)])
    one = to_messages([il.user("y" * 100_000)])

    assert len(to_text(fit(many, limit))) <= limit
    assert len(to_text(fit(one, limit))) <= limit
    assert "characters left out" in to_text(fit(one, limit))
    kept = fit(many, limit)
    assert kept[0]["parts"][0]["type"] == "truncated"
    assert kept[0]["parts"][0]["dropped"] + len(kept) - 1 == 40
    assert kept[-1]["parts"][0]["content"].startswith("39 ")
    assert fit({"a": "z" * 10_000}, limit)["a"].startswith("zzz")
    assert fit(many[:1], 5000) == many[:1]
