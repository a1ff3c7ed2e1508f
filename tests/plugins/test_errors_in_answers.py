"""Failures that a service reports inside an answer with status 200: an error on every wire, with the text kept.

The shapes are in the types of each service's SDK and in recordings: an error object beside or inside the choices, an
error event, a status of the answer, and a finish reason.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua import Registry
from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.errors import ContentRefusedError, InterlinguaError, OverloadedError, ProviderError, ServerError
from interlingua.plugins import RequestContext, WireResponse
from interlingua.types import Message, MessageStatus, Origin, StopReason
from interlingua_bedrock.event_stream import EventStreamFramer
from tests.plugins.bedrock.wire import frame

REGISTRY = Registry()
UPSTREAM = {"message": "upstream failed", "code": 502}


def chunk(**choice: Any) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}


HALF = chunk(delta={"content": "Half"}, finish_reason=None)
TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Half", "annotations": []}]}
FAILED = {"code": "server_error", "message": "upstream failed"}
RESPONSE = {"id": "r", "object": "response", "model": "m", "output": [TEXT], "status": "failed", "error": FAILED}
BEGUN = {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": [], "model": "m",
         "usage": {"input_tokens": 1, "output_tokens": 1}}}  # fmt: skip
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
HALF_BLOCK = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}}
PART = {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "Half"}]}}]}
GOOGLE_ERROR = {"error": {"code": 503, "message": "upstream failed", "status": "UNAVAILABLE"}}
ITEM = {"type": "response.output_item.added", "output_index": 0, "item": {**TEXT, "id": "i", "content": []}}
ITEM_PART = {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "item_id": "i",
             "part": {"type": "output_text", "text": "", "annotations": []}}  # fmt: skip
ITEM_DELTA = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "i",
              "delta": "Half"}  # fmt: skip
COHERE = [
    {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant", "content": []}}},
    {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
    {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Half"}}}},
]

SPOKEN = [ITEM, ITEM_PART, ITEM_DELTA]
STREAMS: list[tuple[str, str, list[dict[str, Any]], type[InterlinguaError]]] = [
    *(
        (key, "chat", [HALF, chunk(delta={"content": ""}, finish_reason="error", error=UPSTREAM)], ServerError)
        for key in ("openrouter", "openai", "zai", "groq")
    ),
    *((key, "chat", [HALF, {"error": UPSTREAM}], ServerError) for key in ("openrouter", "openai", "mistral", "zai")),
    ("mistral", "chat", [HALF, {"object": "error", "message": "upstream failed", "type": "server_error"}], ServerError),
    ("openai", "responses", [*SPOKEN, {"type": "response.failed", "response": RESPONSE}], ServerError),
    ("openai", "responses", [*SPOKEN, {"type": "error", **FAILED}], ServerError),
    ("azure", "responses", [*SPOKEN, {"type": "response.failed", "response": RESPONSE}], ServerError),
    *(
        (key, "messages", [BEGUN, BLOCK, HALF_BLOCK,
         {"type": "error", "error": {"type": "overloaded_error", "message": "upstream failed"}}], OverloadedError)
        for key in ("anthropic", "vertex", "azure")
    ),
    ("google", "generate", [PART, GOOGLE_ERROR], OverloadedError),
    ("vertex", "generate", [PART, GOOGLE_ERROR], OverloadedError),
    ("cohere", "chat-v2",
     [*COHERE, {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "upstream failed"}}], ServerError),
    ("ollama", "chat-native", [{"message": {"role": "assistant", "content": "Half"}, "done": False},
                          {"error": "upstream failed"}], ServerError),
]  # fmt: skip

SAID = {"content": "Half"}
# OpenRouter and Mistral document `error`, Z.AI `network_error`, DeepSeek the last, as reasons why an answer finished
WORDS = [
    *((key, "error", ServerError) for key in ("openrouter", "mistral", "openai", "groq")),
    ("zai", "network_error", ServerError),
    ("deepseek", "insufficient_system_resource", OverloadedError),
]
ANSWERS: list[tuple[str, str, dict[str, Any], type[InterlinguaError], str]] = [
    *(
        (key, "chat", {"choices": [{"index": 0, "message": SAID, "finish_reason": None, "error": UPSTREAM}]},
         ServerError, "Half")
        for key in ("openrouter", "openai", "zai", "groq")
    ),
    *((key, "chat", {"error": UPSTREAM}, ServerError, "")
      for key in ("openrouter", "openai", "mistral", "zai", "groq")),
    ("openai", "responses", RESPONSE, ServerError, "Half"),
    ("azure", "responses", RESPONSE, ServerError, "Half"),
    ("anthropic", "messages", {"type": "error", "error": {"type": "overloaded_error", "message": "upstream failed"}},
     OverloadedError, ""),
    ("google", "generate", GOOGLE_ERROR, OverloadedError, ""),
    ("google", "generate", {"promptFeedback": {"blockReason": "SAFETY"}}, ContentRefusedError, ""),
    ("ollama", "chat-native", {"error": "upstream failed"}, ServerError, ""),
]  # fmt: skip


def context_of(key: str, api: str) -> RequestContext:
    model = "claude-haiku-4-5" if api == "messages" else "gemini-2.5-flash" if api == "generate" else "a-model"
    return RequestContext(origin=Origin(key, api, model), message_id="01K000000000000000000000AA")


def framed(key: str, events: list[dict[str, Any]]) -> tuple[str, bytes]:
    if key == "ollama":
        return "ndjson", b"".join(json.dumps(event).encode() + b"\n" for event in events)
    lines = [f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n" for event in events]
    return "sse", "".join(lines).encode()


@pytest.mark.parametrize(
    ("key", "api", "events", "kind"), STREAMS, ids=[f"{row[0]} {row[1]} {at}" for at, row in enumerate(STREAMS)]
)
def test_a_failure_within_a_stream_keeps_its_text(
    key: str, api: str, events: list[dict[str, Any]], kind: type[InterlinguaError]
) -> None:
    framing, body = framed(key, events)
    decoder = StreamDecoder(REGISTRY.provider(key), framer(framing), context_of(key, api))
    decoder.feed(body)
    decoder.end()
    with pytest.raises(ProviderError, match="upstream failed") as caught:
        decoder.message()

    assert type(caught.value) is kind
    assert caught.value.partial.text == "Half"
    assert caught.value.partial.metadata.status is MessageStatus.ERROR


@pytest.mark.parametrize(
    ("key", "api", "body", "kind", "kept"), ANSWERS, ids=[f"{row[0]} {row[1]} {at}" for at, row in enumerate(ANSWERS)]
)
def test_a_failure_within_a_whole_answer_is_an_error(
    key: str, api: str, body: dict[str, Any], kind: type[InterlinguaError], kept: str
) -> None:
    with pytest.raises(ProviderError) as caught:
        REGISTRY.provider(key).from_wire_response(WireResponse(body=json.dumps(body).encode()), context_of(key, api))

    assert type(caught.value) is kind
    partial: Message | None = caught.value.partial
    assert (partial.text if partial is not None else "") == kept
    assert partial is None or partial.metadata.status is MessageStatus.ERROR


@pytest.mark.parametrize(
    ("key", "api", "body"),
    [
        ("openai", "responses", {**RESPONSE, "status": "incomplete", "error": None,
                                 "incomplete_details": {"reason": "max_output_tokens"}}),
        ("google", "generate", {"candidates": [{**PART["candidates"][0], "finishReason": "MAX_TOKENS"}]}),
        ("cohere", "chat-v2", {"message": {"role": "assistant", "content": [{"type": "text", "text": "Half"}]},
                            "finish_reason": "MAX_TOKENS"}),
    ],
    ids=["responses", "google", "cohere"],
)  # fmt: skip
def test_an_answer_that_was_cut_short_says_why(key: str, api: str, body: dict[str, Any]) -> None:
    message = REGISTRY.provider(key).from_wire_response(
        WireResponse(body=json.dumps(body).encode()), context_of(key, api)
    )

    assert (message.text, message.metadata.stop_reason) == ("Half", StopReason.MAX_TOKENS)


@pytest.mark.parametrize(("key", "word", "kind"), WORDS)
def test_a_finish_reason_alone_reports_a_failure(key: str, word: str, kind: type[ProviderError]) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    choice = {"index": 0, "message": {"role": "assistant", **SAID}, "finish_reason": word}
    body = json.dumps({"id": "c", "choices": [choice], "usage": usage}).encode()
    with pytest.raises(kind, match=word) as whole:
        REGISTRY.provider(key).from_wire_response(WireResponse(status=200, body=body), context_of(key, "chat"))

    last = chunk(delta={"content": ""}, finish_reason=word)
    framing, sent = framed(key, [HALF, last, {"id": "c", "choices": [], "usage": usage}])
    decoder = StreamDecoder(REGISTRY.provider(key), framer(framing), context_of(key, "chat"))
    decoder.feed(sent + b"data: [DONE]\n\n")
    decoder.end()
    with pytest.raises(kind, match=word) as streamed:
        decoder.message()

    for caught in (whole.value, streamed.value):
        assert caught.code == word
        assert caught.partial is not None
        assert caught.partial.text == "Half"
        assert caught.partial.usage.output_tokens == 2
        assert caught.partial.metadata.status is MessageStatus.ERROR


# The reasons by which generateContent and Converse report that the model failed
FAILURES = [
    *(
        ("google", "MALFORMED_FUNCTION_CALL"),
        ("vertex", "MALFORMED_RESPONSE"),
        ("google", "OTHER"),
        ("google", "LANGUAGE"),
    ),
    *(("bedrock", "malformed_model_output"), ("bedrock", "malformed_tool_use")),
]


@pytest.mark.parametrize(("key", "word"), FAILURES)
def test_a_stop_reason_of_another_wire_reports_a_failure(key: str, word: str) -> None:
    if key == "bedrock":
        content = [{"text": "Half"}]
        counts = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
        body: dict[str, Any] = {
            "output": {"message": {"role": "assistant", "content": content}}, "stopReason": word, "usage": counts
        }  # fmt: skip
        events: list[tuple[str, dict[str, Any]]] = [
            ("messageStart", {"role": "assistant"}),
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Half"}}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": word}),
            ("metadata", {"usage": counts, "metrics": {"latencyMs": 1}}),
        ]
        sent = b"".join(frame(name, data) for name, data in events)
        made, api = EventStreamFramer(), "converse"
    else:
        counts = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
        body = {"candidates": [{**PART["candidates"][0], "finishReason": word}], "usageMetadata": counts}
        framing, sent = framed(key, [PART, {**body, "candidates": [{"index": 0, "finishReason": word}]}])
        made, api = framer(framing), "generate"

    with pytest.raises(ServerError, match=word) as whole:
        REGISTRY.provider(key).from_wire_response(
            WireResponse(status=200, body=json.dumps(body).encode()), context_of(key, api)
        )
    decoder = StreamDecoder(REGISTRY.provider(key), made, context_of(key, api))
    decoder.feed(sent)
    decoder.end()
    with pytest.raises(ServerError, match=word) as streamed:
        decoder.message()

    for caught in (whole.value, streamed.value):
        assert caught.code == word
        assert caught.partial is not None
        assert caught.partial.text == "Half"
        assert caught.partial.usage.output_tokens == 2
        assert caught.partial.metadata.status is MessageStatus.ERROR
        assert caught.partial.metadata.stop_reason is StopReason.ERROR


def test_a_call_that_gemini_rejects_is_kept_for_its_result() -> None:
    """Recorded traffic goes on with the result of such a call."""
    call = {"functionCall": {"name": "list_files", "args": {}}}
    told = {"finishReason": "UNEXPECTED_TOOL_CALL", "finishMessage": "an undeclared function: list_files"}
    body = {"candidates": [{"index": 0, "content": {"role": "model", "parts": [call]}, **told}]}
    message = REGISTRY.provider("google").from_wire_response(
        WireResponse(status=200, body=json.dumps(body).encode()), context_of("google", "generate")
    )

    assert [each.name for each in message.tool_calls] == ["list_files"]
    assert message.metadata.stop_reason is StopReason.ERROR
