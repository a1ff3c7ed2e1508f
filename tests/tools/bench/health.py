"""How long /health takes while requests of 30 MB, or answers of 20 MB, arrive: the command `interlingua gateway`.

    python health.py [--seconds 10] [--api chat messages …] [--kind string image messages parts mixed deep tiny]
    python health.py --answer text escapes call many [--stream]

For each API and kind of body, two callers send the body again and again, and a third process asks every 10 ms for
/health and for a small answer of Chat Completions. The row `idle` is the same without large requests: what the machine
itself adds. Parts and mixed bodies have almost as many values as a gateway accepts; `tiny` has twenty times more and is
refused. With `--answer`, two callers ask for answers: a string, a string with many escapes, the arguments of a call,
or, streamed, in one event each, and `many` has 100,000 events.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.support.loopback import LoopbackHandler, LoopbackServer

_BYTES = 30_000_000
_ANSWER_BYTES = 20_000_000
_VALUES = 97_000
_PATHS = {
    "chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses",
    "generate": "/v1beta/models/m:generateContent", "ollama": "/api/chat",
}  # fmt: skip
_WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "é", "漢"]


_ANSWERS = {
    "text": {"content": "Q" * _ANSWER_BYTES},
    "escapes": {"content": 'He said "no".\n' * (_ANSWER_BYTES // 17)},
    "call": {
        "tool_calls": [
            {
                "index": 0, "id": "call_1", "type": "function",
                "function": {"name": "f", "arguments": json.dumps({"data": "Q" * _ANSWER_BYTES})},
            }
        ]
    },
    "many": {"content": "word"},
}  # fmt: skip


def _answer(kind: str, *, stream: bool) -> bytes:
    """Return the body of a large answer."""
    reason = "tool_calls" if kind == "call" else "stop"
    about = {"id": "c", "created": 1, "model": "up-1"}
    if not stream:
        message = {"role": "assistant", "content": None, **_ANSWERS[kind]}
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reason}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return json.dumps({**about, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()

    def event(delta: Any, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: %s\n\n" % json.dumps({**about, "object": "chat.completion.chunk", "choices": [choice]}).encode()

    count = 100_000 if kind == "many" else 1
    return event({"role": "assistant"}) + event(_ANSWERS[kind]) * count + event({}, reason) + b"data: [DONE]\n\n"


class _Service(LoopbackHandler):
    """Chat Completions that read nothing of a large request's body; a small one may ask for a large answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answers: ClassVar[dict[str, bytes]] = {}

    def do_POST(self) -> None:
        left = int(self.headers["content-length"])
        if left < 10_000:
            name = json.loads(self.rfile.read(left))["messages"][-1]["content"]
            if name in self.answers:
                self._send(self.answers[name], "text/event-stream" if name.endswith("stream") else "application/json")
                return
            left = 0
        while left and (piece := self.rfile.read(min(left, 1 << 20))):
            left -= len(piece)
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "up-1", "choices": [choice]}
        self._send(json.dumps({**whole, "usage": usage}).encode(), "application/json")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _tree(chance: random.Random, depth: int) -> Any:
    """Return a value of all JSON types, some levels deep."""
    kind = chance.randrange(8 if depth else 5)
    if kind == 0:
        return chance.choice([True, False, None])
    if kind == 1:
        return chance.randrange(10**6)
    if kind == 2:
        return chance.random()
    if kind < 5:
        return " ".join(chance.choices(_WORDS, k=chance.randrange(1, 250)))
    items = [_tree(chance, depth - 1) for _ in range(chance.randrange(1, 6))]
    return items if kind == 5 else {f"{chance.choice(_WORDS)}{at}": item for at, item in enumerate(items)}


def _turns(api: str, kind: str) -> list[tuple[str, Any]]:
    """Return roles and contents of about 30 MB of the Chat form."""
    if kind == "image":
        data = "data:image/png;base64,iVBORw0KGgo" + "Q" * (_BYTES // 4 * 4) + "A"
        image = {"type": "image_url", "image_url": {"url": data}}
        return [("user", [{"type": "text", "text": "Describe it."}, image])]
    if kind == "string":
        return [("user", [{"type": "text", "text": 'He said "no".\n' * (_BYTES // 17)}])]
    if kind == "messages":
        return [(("user", "assistant")[at % 2], "word " * 660) for at in range(8_999)]
    count, text = (
        (_BYTES // 40, "part") if kind == "tiny" else (_VALUES // 3, "word " * (_BYTES * 3 // _VALUES // 5 - 7))
    )
    return [("user", [{"type": "text", "text": f"{text}{at}"} for at in range(count)])]


def _body(api: str, kind: str) -> bytes:
    chance = random.Random(1)
    more: dict[str, Any] = {}
    if kind == "deep":
        value: Any = {"type": "string", "description": "word " * (_BYTES // 5)}
        for at in range(60):
            value = {"type": "object", "properties": {f"p{at}": value}}
        turns: list[tuple[str, Any]] = [("user", "Hi")]
        more["tools"] = [_tool(api, value)]
    elif kind == "mixed":
        leaves: list[Any] = []
        size = count = 0
        while size < _BYTES * 0.97 and count < _VALUES:
            leaves.append(_tree(chance, 6))
            text = json.dumps(leaves[-1], ensure_ascii=False)
            size, count = (
                size + len(text.encode()) + 2,
                count + text.count(", ") + text.count("[") + text.count("{") + 1,
            )
        schema = {"type": "object", "properties": {}, "x-values": leaves}
        turns = [("user", "Hi")]
        more["tools"] = [_tool(api, schema)]
    else:
        turns = _turns(api, kind)
    written = [_message(api, role, content) for role, content in turns]
    if api == "generate":
        whole: dict[str, Any] = {"contents": written}
    else:
        whole = {"model": "m", "input" if api == "responses" else "messages": written}
    whole |= {"max_tokens": 5} if api == "messages" else {"stream": False} if api == "ollama" else {}
    return json.dumps({**whole, **more}, ensure_ascii=False).encode()


def _small(api: str, text: str, *, stream: bool) -> bytes:
    """Return a small request of Chat Completions, Messages, Responses or Ollama."""
    messages = [_message(api, "user", text)]
    whole: dict[str, Any] = {"model": "m", "input" if api == "responses" else "messages": messages, "stream": stream}
    return json.dumps({**whole, **({"max_tokens": 5} if api == "messages" else {})}).encode()


def _tool(api: str, schema: Any) -> dict[str, Any]:
    """Return a tool with a schema."""
    tool: dict[str, Any] = {"name": "f", "description": "d"}
    if api == "messages":
        return {**tool, "input_schema": schema}
    if api == "generate":
        return {"functionDeclarations": [{**tool, "parametersJsonSchema": schema}]}
    if api == "responses":
        return {"type": "function", **tool, "parameters": schema, "strict": False}
    return {"type": "function", "function": {**tool, "parameters": schema}}


def _message(api: str, role: str, content: Any) -> dict[str, Any]:
    """Write a message of the Chat form in another API."""
    if api == "chat" or (isinstance(content, str) and api != "generate"):
        return {"role": role, "content": content}
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    images = [part["image_url"]["url"].partition(",")[2] for part in parts if part["type"] == "image_url"]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    if api == "ollama":
        return {"role": role, "content": "".join(texts), **({"images": images} if images else {})}
    if api == "generate":
        media = [{"inlineData": {"mimeType": "image/png", "data": data}} for data in images]
        return {"role": "user" if role == "user" else "model", "parts": [{"text": text} for text in texts] + media}
    if api == "responses":
        media = [{"type": "input_image", "image_url": f"data:image/png;base64,{data}"} for data in images]
        return {"role": role, "content": [{"type": "input_text", "text": text} for text in texts] + media}
    source = {"type": "base64", "media_type": "image/png"}
    media = [{"type": "image", "source": {**source, "data": data}} for data in images]
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts] + media}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextlib.contextmanager
def _gateway(upstream: str) -> Iterator[int]:
    """Run the command with the scripted service for all models; yield its port."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "gateway.toml"
        config.write_text(
            f'[[deployments]]\nname = "up"\nmodel = "llamacpp:up-1"\nbase_url = "{upstream}/v1"\n'
            '[[routes]]\nmatch = "*"\nto = ["up"]\nretries = 0\n'
        )
        port = _free_port()
        command = [sys.executable, "-m", "interlingua", "gateway", "--config", str(config), "--port", str(port)]
        environ = {**os.environ, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
        child = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)
        try:
            while child.poll() is None:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    yield port
                    return
                time.sleep(0.05)
            raise RuntimeError("the gateway did not start")
        finally:
            child.kill()
            child.wait()


def _probe(port: int, stop: Any, waits: Any) -> None:
    """Ask for /health and for a small answer every 10 ms until `stop` is set."""
    found: dict[str, list[float]] = {"health": [], "chat": []}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    small = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    while not found["chat"] or not stop.is_set():
        for name, times in found.items():
            begin = time.perf_counter()
            if name == "health":
                connection.request("GET", "/health")
            else:
                connection.request("POST", _PATHS["chat"], small, {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            times.append(time.perf_counter() - begin)
            assert answer.status == 200
            time.sleep(0.01)
    waits.put(found)


def _read(answer: http.client.HTTPResponse) -> bytes:
    """Read an answer; return its beginning."""
    found = b""
    while part := answer.read(1 << 20):
        found = found or part
    return found


def _measure(port: int, path: str, body: bytes | None, seconds: float) -> str:
    begin, statuses, lock = time.monotonic(), list[int](), threading.Lock()

    def send() -> None:
        while time.monotonic() - begin < seconds:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            connection.request("POST", path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            text = _read(answer)
            connection.close()
            with lock:
                statuses.append(answer.status)
                if answer.status != 200 and answer.status not in statuses[:-1]:
                    print(answer.status, text[:200])

    stop, waits = multiprocessing.Event(), multiprocessing.Queue()  # type: ignore[var-annotated]
    prober = multiprocessing.Process(target=_probe, args=(port, stop, waits))
    prober.start()
    senders = [threading.Thread(target=send) for _ in range(2 if body else 0)]
    for sender in senders:
        sender.start()
    time.sleep(0 if senders else seconds)
    for sender in senders:
        sender.join()
    took = time.monotonic() - begin
    stop.set()
    found = waits.get(timeout=60)
    prober.join()
    rows = []
    for name, times in found.items():
        times.sort()
        p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
        rows.append(f"{name}: median {p50 * 1000:5.1f} p99 {p99 * 1000:5.1f} most {times[-1] * 1000:5.1f} ms")
    rate = f"{len(statuses)} requests, {took / len(statuses):.2f} s each" if statuses else ""
    return "  ".join([*rows, rate])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--api", nargs="+", choices=list(_PATHS), default=["chat", "messages"])
    kinds = ["string", "image", "messages", "parts", "mixed", "deep", "tiny"]
    parser.add_argument("--kind", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--answer", nargs="+", choices=list(_ANSWERS))
    parser.add_argument("--stream", action="store_true")
    given = parser.parse_args()
    with LoopbackServer(_Service) as service, _gateway(service.url) as port:
        print(f"{'idle':20} {_measure(port, '', None, given.seconds)}", flush=True)
        for api in given.api:
            for kind in given.answer or given.kind:
                if given.answer:
                    name = f"{kind} stream" if given.stream else kind
                    _Service.answers[name] = _answer(kind, stream=given.stream)
                    body = _small(api, name, stream=given.stream)
                else:
                    body = _body(api, kind)
                _measure(port, _PATHS[api], body, 0)  # loads modules
                print(f"{f'{api} {kind}':20} {_measure(port, _PATHS[api], body, given.seconds)}", flush=True)


if __name__ == "__main__":
    main()
