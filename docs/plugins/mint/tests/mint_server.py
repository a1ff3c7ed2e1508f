"""The Mint service on this machine: it counts the tokens that it issued, and may revoke them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

KEY = "bullion+0123456789"
REFUSALS = {"bad_key": 401, "no_project": 400, "no_model": 404, "busy": 503}


class Service(ThreadingHTTPServer):
    """Tokens are `coin-1`, `coin-2`, …; `projects` are those that requests named."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.issued, self.revoked, self.projects = 0, set[str](), list[str]()
        self.lock = threading.Lock()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        words = f"{asked.get('system', '')} You asked: {asked['messages'][-1]['text']}".split()
        limit = asked.get("limit") or len(words)
        size = sum(len(one["text"]) for one in asked["messages"]) + len(asked.get("system", ""))
        counts = {"in": size // 4 + 3 * len(asked["messages"]), "out": min(limit, len(words))}
        reason = "limit" if limit < len(words) else "finished"
        return {"id": "chat-1", "text": " ".join(words[:limit]), "reason": reason, "usage": counts}


class Handler(BaseHTTPRequestHandler):
    server: Service

    def log_message(self, *_args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        with self.server.lock:
            if self.path == "/token":
                return self.issue(parse_qs(body.decode()).get("apikey"))
            token = self.headers["authorization"].removeprefix("Bearer ")
            if not token.startswith("coin-") or token in self.server.revoked:
                return self.refuse("bad_key", "this token is not valid")
        asked = json.loads(body)
        said = asked["messages"][-1]["text"]
        if not asked.get("project"):
            return self.refuse("no_project", "name a project")
        self.server.projects.append(asked["project"])
        if asked["model"] != "silver-1":
            return self.refuse("no_model", f"there is no {asked['model']}")
        if "busy" in said:
            return self.refuse("busy", "the press is running")
        answer = self.server.answer(asked)
        return self.stream(answer, said) if asked["stream"] else self.send(200, answer)

    def issue(self, key: list[str] | None) -> None:
        if key != [KEY]:
            return self.send(400, {"error": f"no such key: {key}"})
        self.server.issued += 1
        return self.send(200, {"access_token": f"coin-{self.server.issued}", "expiration": time.time() + 3600})

    def refuse(self, code: str, text: str) -> None:
        self.send(REFUSALS[code], {"error": {"code": code, "text": text}})

    def send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, answer: dict[str, Any], said: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for at, word in enumerate(answer["text"].split(" ")):
            self.event({"text": word if at == 0 else f" {word}"})
            if "jam" in said and at == 1:
                return self.event({"error": "the press is jammed"})
            if "melt" in said and at == 1:
                return self.event({"error": {"code": "busy", "text": "the press is too hot"}})
        return self.event({name: answer[name] for name in ("id", "reason", "usage")})

    def event(self, data: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())


@contextmanager
def served(port: int = 0) -> Iterator[Service]:
    """Run the service."""
    service = Service(port)
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()
        thread.join()
