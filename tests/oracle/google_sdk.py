"""What the official SDK makes of answers of generateContent and of Ollama's chat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
import ollama
from google import genai
from google.genai import types


class Wire:
    """A transport that has answers ready, in pieces of some size, and keeps the requests."""

    def __init__(self, *answers: bytes, size: int = 0, status: int = 200, kind: str = "application/json") -> None:
        self.sent: list[dict[str, Any]] = []
        self._answers = list(answers)
        self._size, self._status, self._kind = size, status, kind

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request with the next one."""
        self.sent.append(json.loads(request.content))
        body = self._answers.pop(0)
        return httpx.Response(self._status, headers={"content-type": self._kind}, content=self._pieces(body))

    def _pieces(self, body: bytes) -> Iterator[bytes]:
        step = self._size or max(len(body), 1)
        for at in range(0, len(body), step):
            yield body[at : at + step]


_WIRES = [Wire()]


def _answer(request: httpx.Request) -> httpx.Response:
    return _WIRES[0](request)


@cache
def _gemini() -> genai.Client:
    client = httpx.Client(transport=httpx.MockTransport(_answer))
    options = types.HttpOptions(httpx_client=client, base_url="http://oracle.invalid")
    return genai.Client(api_key="none", http_options=options)


def gemini(wire: Wire) -> genai.Client:
    """Return Google's SDK over that wire: one client for all, because making one takes long."""
    _WIRES[0] = wire
    return _gemini()


def whole_generate(body: bytes) -> dict[str, Any]:
    """Return the answer as the SDK read it."""
    made = gemini(Wire(body)).models.generate_content(model="asked-for", contents="q")
    return _json(made)


def streamed_generate(body: bytes, size: int = 0) -> dict[str, Any]:
    """Return what the SDK's chunks come to: the parts of all, and the last one's reason and counts."""
    wire = Wire(body, size=size, kind="text/event-stream")
    chunks = [_json(each) for each in gemini(wire).models.generate_content_stream(model="asked-for", contents="q")]
    parts = [
        part for chunk in chunks for each in chunk["candidates"] for part in each.get("content", {}).get("parts", ())
    ]
    last = chunks[-1]
    last["candidates"][0]["content"] = {"role": "model", "parts": parts}
    return last


def chat_again(body: bytes, *, stream: bool) -> dict[str, Any]:
    """Have a chat that gets this answer, and return what its next request says."""
    wire = Wire(body, body, kind="text/event-stream" if stream else "application/json")
    chat = gemini(wire).chats.create(model="asked-for")
    for text in ("q", "and now"):
        if stream:
            list(chat.send_message_stream(text))
        else:
            chat.send_message(text)
    return wire.sent[1]


def _json(made: Any) -> dict[str, Any]:
    found: dict[str, Any] = made.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def ollama_client(wire: Wire) -> ollama.Client:
    """Return Ollama's client over that wire."""
    return ollama.Client(host="http://oracle.invalid", transport=httpx.MockTransport(wire))


def whole_ollama(body: bytes) -> dict[str, Any]:
    """Return the answer as Ollama's client read it."""
    client = ollama_client(Wire(body))
    return client.chat("asked-for", [{"role": "user", "content": "q"}]).model_dump(exclude_none=True)


def streamed_ollama(body: bytes, size: int = 0) -> dict[str, Any]:
    """Return what its lines come to."""
    wire = Wire(body, size=size, kind="application/x-ndjson")
    client = ollama_client(wire)
    whole: dict[str, Any] = {"message": {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}}
    for made in client.chat("asked-for", [{"role": "user", "content": "q"}], stream=True):
        line = made.model_dump(exclude_none=True)
        message = line.pop("message")
        whole["message"]["content"] += message.get("content") or ""
        whole["message"]["thinking"] += message.get("thinking") or ""
        whole["message"]["tool_calls"] += message.get("tool_calls") or []
        whole |= line
    return whole
