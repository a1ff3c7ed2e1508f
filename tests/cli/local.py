"""A local Chat Completions server with a script per model name, and a configuration whose row `here` points at it."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.support.loopback import LoopbackServer

CONFIG = """
[presets.here]
format = "chat-completions"
base_url = "{url}"
key_env = ["HERE_KEY"]
key_required = false

[[presets.here.models]]
id = "echo"
max_context_tokens = 1000
prices = [{{input_per_mtok_usd = "2", output_per_mtok_usd = "10", cached_read_per_mtok_usd = "0.2"}}]

[aliases]
e = "here:echo"

[providers.here]
api_key_env = "MY_OWN_KEY"
"""


class LocalServer(LoopbackServer):
    """The server; `requests` holds what came in, `url` is its base URL."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        super().__init__(_handler(self))
        self.url += "/v1"

    def configure(self, folder: Path) -> Path:
        path = folder / "interlingua" / "config.toml"
        path.parent.mkdir(parents=True)
        path.write_text(CONFIG.format(url=self.url), encoding="utf-8")
        return path


TEXTS = {  # what models of these names answer; others answer Hello
    "coder": "Two ways:\n\n```python\nprint(1)\n```\n\nor\n\n```sh\necho 2\n```\n",
    "json": '{"name": "Rex", "age": 3}',
}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def _called(request: dict[str, Any]) -> str | None:
    """Return the tool that the model `caller` calls: the first, then the one that takes the answer, if there is one."""
    if request["model"] != "caller":
        return None
    names = [tool["function"]["name"] for tool in request["tools"]]
    if request["messages"][-1]["role"] != "tool":
        return names[0]
    return "answer" if "answer" in names else None


def _handler(owner: LocalServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            owner.requests.append(request)
            owner.headers.append({name.lower(): text for name, text in self.headers.items()})
            if request["model"] == "refused":
                self._head(401, "application/json")
                self.wfile.write(b'{"error": {"message": "bad key", "type": "invalid_api_key"}}')
            elif (name := _called(request)) is not None:
                self._call(name)
            elif request.get("stream"):
                self._stream(request["model"])
            else:
                self._head(200, "application/json")
                message = {"role": "assistant", "content": TEXTS.get(request["model"], "Hello")}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                self.wfile.write(json.dumps({"model": "echo", "choices": [choice], "usage": USAGE}).encode())

        def _head(self, status: int, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("connection", "close")
            self.end_headers()

        def _call(self, name: str) -> None:
            """Call a tool with the city Rome, streamed."""
            self._head(200, "text/event-stream")
            function = {"name": name, "arguments": '{"city": "Rome"}'}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            self._event({"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]})
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
            self._event({"choices": [], "usage": USAGE})
            self.wfile.write(b"data: [DONE]\n\n")

        def _stream(self, model: str) -> None:
            self._head(200, "text/event-stream")
            self._event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": TEXTS.get(model, "Hel")}}]})
            if model == "slow":
                time.sleep(5)
            elif model != "broken":
                rest = "" if model in TEXTS else "lo"
                self._event({"choices": [{"index": 0, "delta": {"content": rest}, "finish_reason": "stop"}]})
                self._event({"choices": [], "usage": USAGE})
                self.wfile.write(b"data: [DONE]\n\n")

        def _event(self, data: dict[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps({'model': 'echo', **data})}\n\n".encode())
            self.wfile.flush()

    return Handler
