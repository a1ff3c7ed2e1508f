"""The floor: what a person would write by hand for one wire with httpx and orjson, and nothing besides.

One JSON parse per SSE data line, fields picked out and joined; no values, no events, no checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import common
import data
import httpx
import orjson

Wire = dict[str, Any]


def read_again(element: Wire) -> Wire:
    """Return the element as it is read from JSON."""
    read: Wire = orjson.loads(orjson.dumps(element))
    return read


class Messages(common.Variant):
    """The Messages API by hand."""

    name = "floor httpx+orjson"
    wire = "anthropic"
    path = "/v1/messages"
    headers = {"x-api-key": "x", "anthropic-version": "2023-06-01", "content-type": "application/json"}  # noqa: RUF012
    fragment, text, thinking = "partial_json", "text", "thinking"
    COLD = "import httpx, orjson\nc = httpx.Client(timeout=60)\n"
    COLD_REQ = (
        "b = orjson.dumps({'model': 'm', 'max_tokens': 9, 'messages': [{'role': 'user', 'content': 'hi'}]})\n"
        "h = {'x-api-key': 'x', 'content-type': 'application/json'}\n"
        "out = orjson.loads(c.post('{base}/v1/messages', content=b, headers=h).content)['content'][0]['text']\n"
    )

    def __init__(self, base: str) -> None:
        self._url = base + self.path
        self._http = httpx.Client(timeout=60)

    def close(self) -> None:
        self._http.close()

    # -- requests
    def body(self, messages: list[Wire], *, stream: bool, tools: bool) -> bytes:
        body: Wire = {"model": data.MODEL_ANTHROPIC, "max_tokens": 1024, "system": data.SYSTEM, "messages": messages}
        if tools:
            body["tools"] = [data.TOOL_ANTHROPIC]
        if stream:
            body["stream"] = True
        return orjson.dumps(body)

    def answer(self, body: bytes) -> Any:
        return orjson.loads(self._http.post(self._url, content=body, headers=self.headers).content)

    def payloads(self, *, tools: bool = False) -> Iterator[bytes]:
        question = [{"role": "user", "content": data.QUESTION}]
        body = self.body(question, stream=True, tools=tools)
        with self._http.stream("POST", self._url, content=body, headers=self.headers) as response:
            rest = b""
            for chunk in response.iter_bytes():
                lines = (rest + chunk if rest else chunk).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if line.startswith(b"data:"):
                        yield line[6:]

    # -- the wire
    def joined(self, field: str, *, tools: bool = False) -> tuple[int, str]:
        loads = orjson.loads
        pieces = []
        for payload in self.payloads(tools=tools):
            event = loads(payload)
            if event["type"] == "content_block_delta":
                piece = event["delta"].get(field)
                if piece is not None:
                    pieces.append(piece)
        return len(pieces), "".join(pieces)

    def element(self, message: Wire) -> Wire:
        if message["role"] == "user":
            return {"role": "user", "content": message["text"]}
        if message["role"] == "tool":
            result = {"type": "tool_result", "tool_use_id": message["id"], "content": message["content"]}
            return {"role": "user", "content": [result]}
        content: list[Wire] = [{"type": "text", "text": message["text"]}]
        for call in message["calls"]:
            content.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]})
        return {"role": "assistant", "content": content}

    def answer_text(self, answer: Any) -> str:
        text: str = answer["content"][0]["text"]
        return text

    # -- the interface
    def ask(self) -> str:
        question = [{"role": "user", "content": data.QUESTION}]
        return self.answer_text(self.answer(self.body(question, stream=False, tools=False)))

    def stream_text(self) -> tuple[int, str]:
        return self.joined(self.text)

    def stream_think(self) -> tuple[int, str]:
        return self.joined(self.thinking)

    def stream_tool(self) -> tuple[int, dict[str, Any]]:
        count, text = self.joined(self.fragment, tools=True)
        return count, orjson.loads(text)

    def build(self, conversation: list[Wire]) -> list[Wire]:
        return [self.element(message) for message in conversation]

    def send(self, messages: list[Wire]) -> str:
        return self.answer_text(self.answer(self.body(messages, stream=False, tools=True)))

    # By hand a history is the wire's own objects. Reading makes new strings; writing a string again takes less time,
    # because CPython keeps its UTF-8.
    def receive(self, conversation: list[Wire]) -> list[Wire]:
        return [read_again(made) if made["role"] == "assistant" else made for made in self.build(conversation)]

    def stored(self, conversation: list[Wire]) -> list[Wire]:
        return [read_again(made) for made in self.build(conversation)]

    def turn(self, history: list[Wire]) -> str:
        text = self.send(history)
        history += self.build([{"role": "assistant", "text": text, "calls": []}, data.QUESTION_NEXT])
        return text


class Chat(Messages):
    """Chat Completions by hand."""

    wire = "openai"
    path = "/v1/chat/completions"
    headers = {"authorization": "Bearer x", "content-type": "application/json"}  # noqa: RUF012
    fragment, text, thinking = "arguments", "content", "reasoning_content"
    COLD_REQ = (
        "b = orjson.dumps({'model': 'm', 'messages': [{'role': 'user', 'content': 'hi'}]})\n"
        "h = {'authorization': 'Bearer x', 'content-type': 'application/json'}\n"
        "r = orjson.loads(c.post('{base}/v1/chat/completions', content=b, headers=h).content)\n"
        "out = r['choices'][0]['message']['content']\n"
    )

    def body(self, messages: list[Wire], *, stream: bool, tools: bool) -> bytes:
        system = {"role": "system", "content": data.SYSTEM}
        body: Wire = {"model": data.MODEL_OPENAI, "messages": [system, *messages]}
        if tools:
            body["tools"] = [data.TOOL_OPENAI]
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return orjson.dumps(body)

    def joined(self, field: str, *, tools: bool = False) -> tuple[int, str]:
        loads = orjson.loads
        pieces = []
        for payload in self.payloads(tools=tools):
            if payload == b"[DONE]":
                continue  # read on to the end of the body, so that the connection is kept
            choices = loads(payload)["choices"]
            if not choices:
                continue
            delta = choices[0]["delta"]
            if tools:
                calls = delta.get("tool_calls")
                piece = calls[0]["function"]["arguments"] if calls else None
            else:
                piece = delta.get(field)
            if piece:
                pieces.append(piece)
        return len(pieces), "".join(pieces)

    def element(self, message: Wire) -> Wire:
        if message["role"] == "user":
            return {"role": "user", "content": message["text"]}
        if message["role"] == "tool":
            return {"role": "tool", "tool_call_id": message["id"], "content": message["content"]}
        made: Wire = {"role": "assistant", "content": message["text"]}
        if message["calls"]:
            made["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": orjson.dumps(call["args"]).decode()},
                }
                for call in message["calls"]
            ]
        return made

    def answer_text(self, answer: Any) -> str:
        text: str = answer["choices"][0]["message"]["content"]
        return text


if __name__ == "__main__":
    common.main(__file__, [Messages, Chat])
