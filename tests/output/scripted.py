"""A client over the Messages API whose answers are written down beforehand, and the requests it was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from interlingua import AsyncClient, Client

MODEL = "anthropic:claude-haiku-4-5"


class Service:
    """Answers one request after the other; a list of events is sent as a stream.

    Attributes:
        bodies: the requests, as JSON.
    """

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content))
        answer = self._answers.pop(0)
        if isinstance(answer, list):
            text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in answer)
            return httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})
        return httpx.Response(200, json=answer)

    def client(self, model: str = MODEL, **settings: Any) -> Client:
        """Return a client that asks this service."""
        return Client(model, api_key="k", http_client=httpx.Client(transport=httpx.MockTransport(self)), **settings)

    def async_client(self, model: str = MODEL, **settings: Any) -> AsyncClient:
        """Return an asynchronous one."""
        http_client = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return AsyncClient(model, api_key="k", http_client=http_client, **settings)


def said(*content: Any, stop: str = "end_turn", tokens: int = 10) -> dict[str, Any]:
    """Return an answer whose content is texts, and calls as `(name, input)`."""
    blocks = [
        {"type": "text", "text": one}
        if isinstance(one, str)
        else {"type": "tool_use", "id": f"toolu_{at}", "name": one[0], "input": one[1]}
        for at, one in enumerate(content)
    ]
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL.partition(":")[2], "content": blocks,
        "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 100, "output_tokens": tokens},
    }  # fmt: skip


def streamed(answer: Mapping[str, Any], size: int = 5) -> list[dict[str, Any]]:
    """Return the events of an answer, its text and inputs in pieces."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}
    ]
    for at, block in enumerate(answer["content"]):
        called = block["type"] == "tool_use"
        text = json.dumps(block["input"]) if called else block["text"]
        begun = {**block, **({"input": {}} if called else {"text": ""})}
        events.append({"type": "content_block_start", "index": at, "content_block": begun})
        kind, field = ("input_json_delta", "partial_json") if called else ("text_delta", "text")
        events += [
            {"type": "content_block_delta", "index": at, "delta": {"type": kind, field: text[cut : cut + size]}}
            for cut in range(0, len(text), size)
        ]
        events.append({"type": "content_block_stop", "index": at})
    usage = {"output_tokens": answer["usage"]["output_tokens"]}
    stop = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]
