"""Authored exchanges: botocore reads the same bytes and agrees with us; the requests are of the forms we write."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EventStreamError
from botocore.validate import ParamValidator

from interlingua._json import thaw
from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    ContextWindowExceededError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import WireResponse
from interlingua.types import Message, OpaqueBlock, RedactedThinkingBlock, StopReason
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from tests.plugins.bedrock.wire import BEDROCK, SERVICE, context, sdk_streamed, sdk_whole
from tests.support import driving, tree

FOLDER = tree.ROOT / "cassettes" / "bedrock"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "typed")  # tests/plugins/typed
STOPS = {
    "end_turn": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "guardrail_intervened": StopReason.REFUSAL,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
}
FAILURES: dict[str, type[ProviderError]] = {
    "throttled": RateLimitError,
    "invalid_model": ModelNotFoundError,
    "invalid": BadRequestError,
    "too_long": ContextWindowExceededError,
    "expired_token": AuthenticationError,
    "bad_token": AuthenticationError,
    "bad_signature": AuthenticationError,
    "no_access": PermissionDeniedError,
    "not_found": ModelNotFoundError,
    "not_ready": OverloadedError,
    "model_timeout": ServerError,
    "model_error": ServerError,
    "internal": ServerError,
    "unavailable": OverloadedError,
    "quota": QuotaExceededError,
}
IN_STREAMS = {"error_in_stream": ServerError, "throttled_in_stream": RateLimitError}
GOOD = [name for name in NAMES if name not in FAILURES and name not in IN_STREAMS]


def _exchange(name: str) -> RecordedExchange:
    (found,) = read_cassette(Path(FOLDER / f"{name}.yaml"))
    return found


def _is_stream(exchange: RecordedExchange) -> bool:
    return "eventstream" in exchange.headers["content-type"]


def _read(exchange: RecordedExchange) -> Message:
    if _is_stream(exchange):
        return driving.streamed(BEDROCK, exchange.body, context("m"))
    return driving.whole(BEDROCK, exchange.body, context("m"))


def _theirs(exchange: RecordedExchange) -> dict[str, Any]:
    """Put together what botocore reads: the content blocks, the stop reason and the counts."""
    if not _is_stream(exchange):
        found = sdk_whole(exchange.body)
        return {"content": found["output"]["message"]["content"], "stop": found["stopReason"], "usage": found["usage"]}
    blocks: dict[int, dict[str, Any]] = {}
    made: dict[str, Any] = {}
    for event in sdk_streamed(exchange.body):
        ((kind, value),) = event.items()
        if kind == "contentBlockStart":
            ((name, start),) = value["start"].items()
            blocks[value["contentBlockIndex"]] = {name: dict(start, input="") if name == "toolUse" else dict(start)}
        elif kind == "contentBlockDelta":
            _add(blocks.setdefault(value["contentBlockIndex"], {}), value["delta"])
        elif kind == "messageStop":
            made["stop"] = value["stopReason"]
        elif kind == "metadata":
            made["usage"] = value["usage"]
    return {**made, "content": [blocks[at] for at in sorted(blocks)]}


def _add(block: dict[str, Any], delta: dict[str, Any]) -> None:
    ((kind, value),) = delta.items()
    if kind == "text":
        block["text"] = block.get("text", "") + value
    elif kind == "toolUse":
        block["toolUse"]["input"] += value["input"]
    elif kind == "citation":
        block.setdefault("citations", []).append(value)
    elif kind == "reasoningContent":
        for name, piece in value.items():
            block[name] = block.get(name, type(piece)()) + piece
    else:
        block["toolResult"].setdefault("content", []).extend(value)


def _texts(content: list[dict[str, Any]]) -> str:
    cited = [part["text"] for block in content for part in block.get("citationsContent", {}).get("content", ())]
    plain = ["".join([block.get("text", "")]) for block in content if "signature" not in block]
    reasoning = {"".join([block["text"]]) for block in content if set(block) == {"text", "signature"}}
    return "".join([text for text in [*plain, *cited] if text not in reasoning])


@pytest.mark.parametrize("name", GOOD)
def test_botocore_reads_the_same(name: str) -> None:
    exchange = _exchange(name)
    message, theirs = _read(exchange), _theirs(exchange)
    content, usage = theirs["content"], theirs["usage"]
    calls = [
        block["toolUse"] for block in content if block.get("toolUse", {}).get("type") is None and "toolUse" in block
    ]
    given = [json.loads(call["input"]) if isinstance(call["input"], str) else call["input"] for call in calls]

    assert [(call.provider_id, call.name) for call in message.tool_calls] == [
        (call["toolUseId"], call["name"]) for call in calls
    ]
    assert [thaw(call.input) for call in message.tool_calls] == given
    if "reasoning" not in name:
        assert message.text == _texts(content)
    assert message.metadata.stop_reason is STOPS[theirs["stop"]]
    counted = message.metadata.usage
    assert counted is not None
    read, written = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    assert counted.input_tokens == usage["inputTokens"] + (read or 0) + (written or 0)
    assert (counted.output_tokens, counted.cached_input_tokens) == (usage["outputTokens"], read)
    assert counted.cache_creation_input_tokens == written
    assert counted.input_tokens + (counted.output_tokens or 0) == usage["totalTokens"]


def test_reasoning_is_what_botocore_reads() -> None:
    message = _read(_exchange("signed_thinking_streamed"))
    theirs = _theirs(_exchange("signed_thinking_streamed"))["content"][0]
    (thinking,) = message.thinking_blocks
    assert (thinking.text, thinking.signature) == (theirs["text"], theirs["signature"])
    redacted = _read(_exchange("redacted_thinking_streamed")).content[0]
    theirs = _theirs(_exchange("redacted_thinking_streamed"))["content"][0]
    assert isinstance(redacted, RedactedThinkingBlock)
    assert base64.b64decode(redacted.data) == theirs["redactedContent"]


def test_cached_tokens_are_part_of_the_input() -> None:
    usage = _read(_exchange("cached")).metadata.usage
    assert usage is not None
    assert usage.buckets()[:3] == (9, 1700, 240)
    assert usage.cache_creation_1h_input_tokens == 200


def test_a_server_tools_call_is_no_call_of_ours() -> None:
    message = _read(_exchange("server_tool_streamed"))
    assert not message.tool_calls
    assert [block.kind for block in message.content if isinstance(block, OpaqueBlock)] == ["toolUse", "toolResult"]
    assert message == _read(_exchange("server_tool"))


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_has_its_class(name: str) -> None:
    exchange = _exchange(name)
    response = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
    error = BEDROCK.from_wire_error(response, context("m"))

    assert type(error) is FAILURES[name]
    assert error.message == json.loads(exchange.body)["message"]
    assert error.code == exchange.headers["x-amzn-errortype"].partition(":")[0]
    assert error.request_id == "11112222-3333-4444-5555-666677778888"


@pytest.mark.parametrize("name", IN_STREAMS)
def test_an_exception_in_a_stream_is_the_services_error(name: str) -> None:
    body = _exchange(name).body
    with pytest.raises(EventStreamError):
        sdk_streamed(body)
    with pytest.raises(IN_STREAMS[name]) as caught:
        driving.streamed(BEDROCK, body, context("m"))
    partial = caught.value.partial
    assert (partial.text if partial is not None else "") == ("Hello there" if "error" in name else "")


@pytest.mark.parametrize("name", NAMES)
def test_botocore_accepts_the_requests(name: str) -> None:
    exchange = _exchange(name)
    shape = SERVICE.operation_model("Converse").input_shape
    report = ParamValidator().validate({**_with_bytes(exchange.request), "modelId": "m"}, shape)
    assert not report.has_errors(), report.generate_report()


def _with_bytes(value: Any) -> Any:
    """Return a request with its base64 decoded, as botocore takes it."""
    if isinstance(value, dict):
        return {
            name: base64.b64decode(item) if name in ("bytes", "redactedContent") else _with_bytes(item)
            for name, item in value.items()
        }
    return [_with_bytes(item) for item in value] if isinstance(value, list) else value
