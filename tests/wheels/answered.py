"""Sends a question to every installed provider, over a transport in memory, and prints the tool calls of each answer.

`check_wheels.py` runs this in an environment with the declared dependencies alone. A plugin observes, so that all code
between an answer and its report runs too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlingua import Client, Registry, ToolDefinition
from interlingua.plugins import hookimpl
from interlingua.transport import HttpRequest, TimeLimits

NAME, INPUT = "add", {"a": 1}
CALL = {"id": "call_abc12", "type": "function", "function": {"name": NAME, "arguments": json.dumps(INPUT)}}
CLAUDE = {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": INPUT}
ANSWERS: dict[str, dict[str, Any]] = {
    "chat": {"choices": [
        {"index": 0, "message": {"content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}]},
    "responses": {"id": "r", "status": "completed", "output": [
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": NAME, "arguments": json.dumps(INPUT)}]},
    "messages": {"id": "m", "type": "message", "role": "assistant", "content": [CLAUDE], "stop_reason": "tool_use",
                 "usage": {"input_tokens": 1, "output_tokens": 1}},
    "generate": {"candidates": [{"index": 0, "finishReason": "STOP", "content": {
        "role": "model", "parts": [{"functionCall": {"name": NAME, "args": INPUT}}]}}]},
    "converse": {"stopReason": "tool_use", "output": {"message": {"role": "assistant", "content": [
        {"toolUse": {"toolUseId": "t1", "name": NAME, "input": INPUT}}]}}},
    "chat-native": {"done": True, "done_reason": "stop", "message": {
        "role": "assistant", "content": "", "tool_calls": [{"function": {"name": NAME, "arguments": INPUT}}]}},
    "chat-v2": {"id": "c", "finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_calls": [CALL]}},
}  # fmt: skip
ENVIRON = {
    "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "k", "AWS_REGION": "us-east-1", "AZURE_OPENAI_API_KEY": "k",
    "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "global",
}  # fmt: skip


class Reply:
    """One answer."""

    status = 200

    def __init__(self, body: bytes) -> None:
        self.headers = {"content-type": "application/json"}
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body

    def close(self) -> None:
        """Do nothing."""

    abort = close


class Memory:
    """Answers every request with a call of the tool."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = json.dumps(body).encode()

    def open(self, request: HttpRequest, limits: TimeLimits) -> Reply:
        """Return the answer."""
        return Reply(self._body)

    def close(self) -> None:
        """Do nothing."""


class Observer:
    """Keeps the events that plugins receive."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @hookimpl
    def observe(self, event: dict[str, Any]) -> None:
        """Keep the type of an event."""
        self.seen.append(event["type"])


def main() -> None:
    """Print a JSON object: provider key -> names of the called tools and types of the events."""
    found = {}
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = ToolDefinition(name=NAME, description="Add.", input_schema=schema, side_effects="read")
    for key in Registry().found():
        observer = Observer()
        registry = Registry([observer])
        provider = registry.provider(key)
        model = next((info.id for info in provider.models()), "a-model")
        api = provider.capabilities(model).api
        body = ANSWERS[api]
        client = Client(f"{key}:{model}", api_key="k", registry=registry, transport=Memory(body), environ=ENVIRON)
        message = client.send("Add 1.", tools=[tool])
        found[key] = [[call.name for call in message.tool_calls], observer.seen]
    print(json.dumps(found))


main()
