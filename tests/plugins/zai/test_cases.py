"""Cases that touch this wire, and what WIRE.md has of requests and answers."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from interlingua.errors import CapabilityError, RateLimitError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ThinkingBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, StopReason
from interlingua.types.options import ToolChoice
from tests.plugins.zai.asking import ZAI, answer, asked, body, chunk, context, read, sse, streamed
from tests.support import driving
from tests.support.adapter import READ

CALL = {"id": "call_-825", "type": "function", "function": {"name": "read_file", "arguments": '{ "path":"a" }'}}
THOUGHT = {"content": "I look.", "reasoning_content": "Real thought.", "tool_calls": [CALL]}


def with_results(message: Message) -> list[Message]:
    return [user("q"), message, *[tool_result(call, "r") for call in message.tool_calls]]


def test_case_06_reasoning_goes_back_word_for_word_and_is_not_cleared() -> None:
    message = read(answer(THOUGHT, "tool_calls"))
    sent = body(with_results(message))

    assert message.content[0] == ThinkingBlock(text="Real thought.")
    assert sent["messages"][1] == {"role": "assistant", **THOUGHT}
    assert sent["thinking"] == {"clear_thinking": False}


def test_case_06_on_the_services_other_models_too_and_nowhere_else() -> None:
    message = read(answer(THOUGHT, "tool_calls"))
    foreign = attrs.evolve(message, metadata=attrs.evolve(message.metadata, provider="elsewhere", model="elsewhere:m"))

    assert body(with_results(message), model="glm-5.2")["messages"][1]["reasoning_content"] == "Real thought."
    sent = body(with_results(foreign))["messages"][1]
    assert "reasoning_content" not in sent  # and no placeholder: those cause empty replies
    assert "Real thought." not in str(sent)


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("glm-4.7", {"thinking": True}, {"thinking": {"type": "enabled", "clear_thinking": False}}),
        ("glm-4.7", {"thinking": False}, {"thinking": {"type": "disabled"}}),
        ("glm-4.5", {"thinking": True}, {"thinking": {"type": "enabled"}}),
        ("glm-5.3", {"thinking": True, "effort": "max"},
         {"thinking": {"clear_thinking": False}, "reasoning_effort": "max"}),
        ("glm-5.2", {"effort": "minimal"}, {"thinking": {"clear_thinking": False}, "reasoning_effort": "minimal"}),
        ("glm-4.7", {"provider_options": {"thinking": {"type": "enabled"}}}, {"thinking": {"type": "enabled"}}),
        ("unheard-of", {}, {}),
    ],
)  # fmt: skip
def test_thinking(model: str, options: dict[str, Any], expected: dict[str, Any]) -> None:
    request = asked([user("x")], model=model, **options)

    assert body([user("x")], model=model, **options) == {
        "model": model, "messages": [{"role": "user", "content": "x"}], **expected,
    }  # fmt: skip
    assert request.losses == ()


@pytest.mark.parametrize(
    ("model", "options", "path", "verdict"),
    [
        ("glm-5.3", {"thinking": False}, "options.thinking", "rewritten"),  # `disabled`: 400
        ("glm-5.3", {"effort": "medium"}, "options.effort", "rewritten"),
        ("glm-4.7", {"effort": "high"}, "options.effort", "dropped"),
        ("glm-4.7", {"thinking_budget": 5}, "options.thinking_budget", "dropped"),
        ("glm-4.7", {"top_k": 5}, "options.top_k", "dropped"),
        ("glm-4.7", {"parallel_tool_calls": False}, "options.parallel_tool_calls", "dropped"),
    ],
)
def test_what_cannot_be_said_is_in_the_ledger(model: str, options: dict[str, Any], path: str, verdict: str) -> None:
    (loss,) = asked([user("x")], [READ], model=model, **options).losses

    assert (loss.path, loss.verdict) == (path, verdict)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"top_p": 1}, {"top_p": 0.99}),
        ({"top_p": 0}, {"top_p": 0.01}),
    ],
)
def test_case_32_top_p_is_moved_into_the_open_range_as_the_sdk_does(
    given: dict[str, Any], sent: dict[str, Any]
) -> None:
    import json

    from tests.oracle import zai_sdk

    seen: list[dict[str, Any]] = []
    sdk = zai_sdk.client(b"{}", seen=lambda request: seen.append(json.loads(request.content)), status=500)
    with pytest.raises(Exception, match="500"):
        sdk.chat.completions.create(**zai_sdk.ASKED, **given)
    request = asked([user("x")], model="glm-4.5", **given)
    found = body([user("x")], model="glm-4.5", **given)

    names = ("temperature", "top_p", "do_sample")
    assert {name: found[name] for name in names if name in found} == sent
    assert {name: seen[0][name] for name in names if name in seen[0]} == sent
    assert sorted(loss.path for loss in request.losses) == sorted(f"options.{name}" for name in given)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_case_32_a_temperature_of_0_or_1_is_sent_unchanged(temperature: float) -> None:
    """The SDK writes 0.01 with `do_sample: false`, and 0.99; 55 recorded requests have 0 and 15 have 1, each a 200."""
    request = asked([user("x")], model="glm-4.5", temperature=temperature)

    assert body([user("x")], model="glm-4.5", temperature=temperature)["temperature"] == temperature
    assert "do_sample" not in request.body.decode()
    assert request.losses == ()


def test_case_32_a_temperature_above_1_is_moved_to_1() -> None:
    request = asked([user("x")], model="glm-4.5", temperature=2)

    assert body([user("x")], model="glm-4.5", temperature=2)["temperature"] == 1
    assert [loss.path for loss in request.losses] == ["options.temperature"]


def test_case_32_values_inside_and_a_seed_of_0_stay() -> None:
    request = asked([user("x")], temperature=0.5, top_p=0.999, seed=0, max_tokens=7, user_id="u")
    sent = body([user("x")], temperature=0.5, top_p=0.999, seed=0, max_tokens=7, user_id="u")

    assert request.losses == ()
    assert (sent["temperature"], sent["top_p"], sent["seed"]) == (0.5, 0.999, 0)
    assert (sent["max_tokens"], sent["user_id"]) == (7, "u")


def test_no_tool_can_be_forced_so_its_description_demands_the_call() -> None:
    for choice in ("required", ToolChoice("read_file")):
        request = asked([user("x")], [READ], tool_choice=choice)
        assert b"Answer with a call" in request.body
        assert b"tool_choice" not in request.body
        assert [loss.path for loss in request.losses] == ["options.tool_choice"]
    assert "tools" not in body([user("x")], [READ], tool_choice="none")
    assert body([user("x")], [READ], tool_choice="auto")["tool_choice"] == "auto"


def test_no_schema_is_enforced() -> None:
    with pytest.raises(CapabilityError):
        asked([user("x")], response_schema={"type": "object"})
    assert not ZAI.capabilities("glm-5.3", None).supports_structured_output


def test_case_19_streams_ask_for_fragments_and_not_for_usage() -> None:
    with_tools = body([user("x")], [READ], stream=True)

    assert with_tools["tool_stream"] is True
    assert "stream_options" not in with_tools
    assert "tool_stream" not in body([user("x")], stream=True)
    assert "tool_stream" not in body([user("x")], [READ])
    off = body([user("x")], [READ], stream=True, provider_options={"tool_stream": False})
    assert off["tool_stream"] is False


def test_case_21_images_are_bare_base64_and_only_for_models_that_see() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="image/png")
    message = user([TextBlock(text="x"), image])
    parts = body([message], model="glm-4.6v")["messages"][0]["content"]

    assert parts[1] == {"type": "image_url", "image_url": {"url": "AAAA"}}
    blind = asked([message], model="glm-4.6")
    assert b"image_url" not in blind.body
    assert blind.losses


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", StopReason.END_TURN),
        ("length", StopReason.MAX_TOKENS),
        ("sensitive", StopReason.REFUSAL),
        ("model_context_window_exceeded", StopReason.CONTEXT_WINDOW),
        ("brand_new", StopReason.OTHER),
    ],
)
def test_case_20_finish_reasons(raw: str, reason: StopReason) -> None:
    metadata = read(answer({"content": "x"}, raw)).metadata

    assert (metadata.stop_reason, metadata.stop_reason_raw) == (reason, raw)


def test_case_36_web_search_hits_become_citations() -> None:
    hits = [{"title": "T", "link": "https://example.com", "content": "c", "refer": "ref_1"}]
    message = read(answer({"content": "So [ref_1]."}, web_search=hits))

    assert message.content == (TextBlock(text="So [ref_1].", citations=tuple(hits)),)
    twice = streamed(chunk({"content": "So [ref_1]."}, web_search=hits), chunk({}, "stop", web_search=hits))
    assert twice == message


def test_case_15_a_mid_stream_error_keeps_the_text() -> None:
    error = {"error": {"code": "1302", "message": "Concurrency"}}
    for raw in (
        sse([chunk({"content": "They are "}), error], done=False),
        sse([chunk({"content": "They are "})], done=False) + b'event: error\ndata: {"error":{"code":"1302"}}\n\n',
    ):
        with pytest.raises(RateLimitError) as caught:
            driving.streamed(ZAI, raw, context())
        assert caught.value.partial.text == "They are "


def test_the_request_is_named_in_errors_and_answers() -> None:
    raw = b'{"error":{"code":"1210","message":"x"},"request_id":"r-1"}'
    error = ZAI.from_wire_error(WireResponse(status=400, body=raw), context())
    logged = ZAI.from_wire_error(WireResponse(status=400, headers={"x-log-id": "l-1"}, body=raw), context())
    kept = read(answer({"content": "x"})).metadata.provider_raw

    assert (error.request_id, error.code, logged.request_id) == ("r-1", "1210", "l-1")
    assert kept is not None
    assert kept["trace"]["request_id"] == "2026-1"
    assert body([user("x")], provider_options={"request_id": "mine"})["request_id"] == "mine"
