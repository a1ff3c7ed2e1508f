"""The six APIs that a gateway serves: how each is asked, and how each says that a stream ended well or badly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class Api:
    """One API.

    Attributes:
        name: for test ids.
        path: where a streamed answer is asked for.
        body: the smallest request for it.
        finished: what is in a stream that ended well, and in no other.
    """

    name: str
    path: str
    body: Mapping[str, Any]
    finished: bytes

    def asking(self, text: str) -> dict[str, Any]:
        """Return the body with another question."""
        return dict(json.loads(json.dumps(self.body).replace("Hi", text)))


_MESSAGES = [{"role": "user", "content": "Hi"}]
APIS = (
    Api(
        "messages",
        "/v1/messages",
        {"model": "m", "max_tokens": 50, "stream": True, "messages": _MESSAGES},
        b"message_stop",
    ),
    Api("chat", "/v1/chat/completions", {"model": "m", "stream": True, "messages": _MESSAGES}, b'"stop"'),
    Api("responses", "/v1/responses", {"model": "m", "stream": True, "input": "Hi"}, b"response.completed"),
    Api(
        "generate",
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        b"finishReason",
    ),
    Api(
        "interactions", "/v1beta/interactions", {"model": "m", "stream": True, "input": "Hi"}, b"interaction.completed"
    ),
    Api("ollama", "/api/chat", {"model": "m", "messages": _MESSAGES}, b'"done":true'),
)


def last_value(data: bytes) -> dict[str, Any]:
    """Return the last JSON object of a stream, of server-sent events or of lines."""
    lines = [line.removeprefix("data: ") for line in data.decode().splitlines() if line.rstrip().endswith("}")]
    return dict(json.loads(lines[-1]))


def error_message(api: Api, value: Mapping[str, Any]) -> str:
    """Return the message of an API's own error, whole or as the end of a stream; fails if it has another form."""
    error: Any = value.get("error")
    if api.name == "messages":
        assert value["type"] == "error"
        assert set(error) == {"type", "message"}
        return str(error["message"])
    if api.name == "ollama":
        assert set(value) == {"error"}
        return str(error)
    if api.name == "generate":
        assert set(value) == {"error"}
        assert isinstance(error["code"], int)
        assert isinstance(error["status"], str)
        return str(error["message"])
    if api.name == "interactions":
        assert set(value) == {"error"} | ({"event_type"} if "event_type" in value else set())
        assert set(error) == {"message", "code"}
        assert isinstance(error["code"], str)
        return str(error["message"])
    if api.name == "responses" and "type" in value:  # a stream's end
        error = value if value["type"] == "error" else value["response"]["error"]
        assert error["code"]
        return str(error["message"])
    assert set(value) == {"error"}
    assert {"message", "type", "param", "code"} >= set(error) >= {"message", "type"}
    return str(error["message"])
