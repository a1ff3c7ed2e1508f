"""A service on this machine that answers from a script, in Messages or Responses by the path it is asked at."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import attrs

from tests.support.loopback import LoopbackHandler, LoopbackServer

Event = dict[str, Any]
_IN, _OUT = 12, 6
_PAUSE_S = 0.002  # between events, so that an answer can be stopped in its middle


@attrs.frozen
class Call:
    """A call of a tool, as one block of an answer."""

    name: str
    input: dict[str, Any]


Answer = str | Sequence[Call]


class Cut(str):
    """A text whose stream ends in its middle, without the events that end an answer."""

    __slots__ = ()


@attrs.define
class Service:
    """The script, and what was asked; the last answer is given again where more is asked.

    Attributes:
        script: answers in the order of the requests.
        asked: bodies of the requests, as they came.
        environ: what leads the programs here.
    """

    script: list[Answer]
    asked: list[Event] = attrs.field(factory=list)
    environ: dict[str, str] = attrs.field(factory=dict)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def take(self, body: Event) -> Answer:
        """Keep the request, and return its answer."""
        with self._lock:
            self.asked.append(body)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def _messages_whole(answer: Answer) -> Event:
    calls = [] if isinstance(answer, str) else answer
    content = [{"type": "text", "text": answer}] if isinstance(answer, str) else []
    content += [{"type": "tool_use", "id": f"toolu_{n}", "name": c.name, "input": c.input} for n, c in enumerate(calls)]
    usage = {"input_tokens": _IN, "output_tokens": _OUT}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def _messages_events(answer: Answer) -> Iterator[Event]:
    whole = _messages_whole(answer)
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        text = block["type"] == "text"
        empty = {**block, "text": ""} if text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        said = block["text"] if text else json.dumps(block["input"])
        for piece in _pieces(said):
            json_delta = {"type": "input_json_delta", "partial_json": piece}
            delta = {"type": "text_delta", "text": piece} if text else json_delta
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            if isinstance(answer, Cut):
                return
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def _responses_whole(answer: Answer) -> Event:
    assert isinstance(answer, str)
    part = {"type": "output_text", "text": answer, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": _IN, "output_tokens": _OUT, "total_tokens": _IN + _OUT}
    return {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}


def _pieces(said: str) -> list[str]:
    return [said[at : at + 16] for at in range(0, len(said), 16)]


class _Server(LoopbackServer):
    service: Service


class _Handler(LoopbackHandler):
    server: _Server

    def do_POST(self) -> None:
        asked = json.loads(self.read_body())
        answer = self.server.service.take(asked)
        messages = self.path.endswith("/messages")
        if asked.get("stream"):
            assert messages, "only Messages are streamed here"
            self._start("text/event-stream")
            with suppress(ConnectionError):  # the program stopped the answer
                for event in _messages_events(answer):
                    self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                    time.sleep(_PAUSE_S)
        else:
            self._start("application/json")
            self.wfile.write(json.dumps(_messages_whole(answer) if messages else _responses_whole(answer)).encode())

    def _start(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()  # no length: the connection ends with the answer


@contextmanager
def scripted_service(*script: Answer) -> Iterator[Service]:
    """Run the service for a `with` block."""
    with _Server(_Handler) as http:
        http.service = service = Service(list(script))
        keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
        service.environ.update(ANTHROPIC_BASE_URL=http.url, OPENAI_BASE_URL=f"{http.url}/v1", **keys)
        yield service
