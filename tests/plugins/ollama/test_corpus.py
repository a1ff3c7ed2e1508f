"""Every recorded exchange: the official SDK and we read the same, nothing is lost, and both roads agree."""

from __future__ import annotations

import json
from typing import Any

import ollama
import pytest

from interlingua._json import thaw
from interlingua.errors import ModelNotFoundError
from interlingua.plugins import WireResponse
from interlingua.types.factories import user
from interlingua.types.messages import Message, StopReason
from tests.plugins.ollama.wire import OLLAMA, asked, context, sdk
from tests.support import driving, leaves
from tests.support.corpus import Corpus

pytestmark = pytest.mark.usefixtures("quiet")


def _answers(corpus: Corpus, kind: str) -> list[tuple[str, bytes, bool]]:
    """Return (id, body, whether it is of the older generate API)."""
    return [
        (entry["id"], entry["response_text"].encode(), entry["url"].endswith("/generate"))
        for entry in corpus.entries("ollama-chat")
        if entry["kind"] == kind and entry["status"] < 400
    ]


def _theirs(raw: bytes, *, older: bool, stream: bool) -> list[dict[str, Any]]:
    """Return the SDK's reading of each line, as JSON."""
    client = sdk(raw)
    read: Any
    if older:
        read = client.generate(model="m", prompt="x", stream=stream)  # type: ignore[call-overload]
    else:
        read = client.chat(model="m", messages=[], stream=stream)  # type: ignore[call-overload]
    return [part.model_dump() for part in (read if stream else [read])]


def _merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one body that the lines add up to."""
    last = {key: value for key, value in parts[-1].items() if value is not None}
    if "response" in last:
        thought = "".join(part.get("thinking") or "" for part in parts)
        return {**last, "response": "".join(part["response"] or "" for part in parts), "thinking": thought}
    messages = [part["message"] for part in parts]
    said = {key: "".join(message.get(key) or "" for message in messages) for key in ("content", "thinking")}
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    return {**last, "message": {"role": "assistant", **said, "tool_calls": calls}}


def _agrees(theirs: dict[str, Any], message: Message, name: str) -> None:
    said = theirs.get("message") or {"content": theirs.get("response"), "thinking": theirs.get("thinking")}
    assert message.text == (said.get("content") or ""), name
    assert "".join(block.text for block in message.thinking_blocks) == (said.get("thinking") or ""), name
    calls = [(call["function"]["name"], dict(call["function"]["arguments"])) for call in said.get("tool_calls") or ()]
    assert [(call.name, thaw(call.input)) for call in message.tool_calls] == calls, name
    usage = message.metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (theirs.get("prompt_eval_count"), theirs.get("eval_count")), (
        name
    )
    assert message.metadata.stop_reason_raw == theirs.get("done_reason"), name
    assert (message.metadata.stop_reason is StopReason.TOOL_USE) == bool(calls), name
    assert not leaves.missing("ollama", theirs, message), name


def _next_turn(message: Message) -> bytes:
    return asked([user("a"), message, user("b")]).body


def test_whole_answers(corpus: Corpus) -> None:
    answers = _answers(corpus, "json")
    for name, raw, older in answers:
        (theirs,) = _theirs(raw, older=older, stream=False)
        message = driving.whole(OLLAMA, raw, context())
        _agrees(theirs, message, name)
        # the same answer as a stream of one line
        again = driving.streamed(OLLAMA, raw + b"\n", context())
        assert again == message, name
        assert _next_turn(again) == _next_turn(message), name
    assert answers


def test_streams_at_every_chunking_and_as_one_body(corpus: Corpus) -> None:
    streams = _answers(corpus, "ndjson")
    for name, raw, older in streams:
        message = driving.streamed(OLLAMA, raw, context())
        for size in (1, 7):
            again = driving.streamed(OLLAMA, raw, context(), size)
            assert again == message, name
            assert again.metadata.provider_raw == message.metadata.provider_raw, name
        merged = _merged(_theirs(raw, older=older, stream=True))
        _agrees(merged, message, name)
        lines = [json.loads(line) for line in raw.splitlines() if line.strip()]
        whole = driving.whole(OLLAMA, json.dumps(_merged(lines)).encode(), context())
        assert whole == message, name
        assert _next_turn(whole) == _next_turn(message), name
    assert streams


def test_the_recorded_failure_is_one_for_the_sdk_too(corpus: Corpus) -> None:
    failures = [entry for entry in corpus.entries("ollama-chat") if entry["status"] >= 400]
    for entry in failures:
        raw = entry["response_text"].encode()
        error = OLLAMA.from_wire_error(WireResponse(status=entry["status"], body=raw), context())
        with pytest.raises(ollama.ResponseError) as caught:
            sdk(raw, status=entry["status"]).chat(model="m", messages=[])

        assert type(error) is ModelNotFoundError
        assert str(error).startswith(caught.value.error)
        assert error.status == caught.value.status_code
    assert failures


def test_recorded_requests_keep_the_rules_the_checker_knows(corpus: Corpus) -> None:
    from tests.plugins.ollama.checker import MESSAGE, TOP

    requests = [entry["request"] for entry in corpus.entries("ollama-chat") if "/chat" in entry["url"]]
    for request in filter(None, requests):
        assert request.keys() <= TOP
        assert all(message.keys() <= MESSAGE for message in request["messages"])
