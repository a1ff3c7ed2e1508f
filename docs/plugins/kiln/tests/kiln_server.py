"""The Kiln service on this machine: jobs take `polls` requests; words of the question ask for a failure."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "clay"
PORT = 9471
REFUSALS = {"bad_key": 401, "no_model": 404, "busy": 503}


class Service(ThreadingHTTPServer):
    """Counts what it was asked for; `created` is what it bills."""

    def __init__(self, port: int = 0, polls: int = 2) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.polls = polls
        self.jobs: dict[str, dict[str, Any]] = {}
        self.left: dict[str, int] = {}  # how often a job is asked for before it is done
        self.cancelled: list[str] = []
        self.polled = 0
        self.lock = threading.Lock()

    @property
    def created(self) -> int:
        return len(self.jobs)

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        said = asked["messages"][-1]["text"]
        words = f"{asked.get('system', '')} You asked: {said}".split()
        limit = asked.get("limit") or len(words)
        name = f"job-{len(self.jobs) + 1}"
        urls = {"get": f"{self.url}/v1/jobs/{name}", "cancel": f"{self.url}/v1/jobs/{name}/cancel"}
        if asked.get("stream"):
            urls["stream"] = f"{self.url}/v1/streams/{name}"
        size = sum(len(one["text"]) for one in asked["messages"]) + len(asked.get("system", ""))
        self.jobs[name] = {
            "text": " ".join(words[:limit]),
            "reason": "limit" if limit < len(words) else "finished",
            "usage": {"in": size // 4 + 3 * len(asked["messages"]), "out": min(limit, len(words))},
            "slow": "slowly" in said,
            "cracks": "crack" in said,
        }
        self.left[name] = 10**6 if "slowly" in said else self.polls
        return {"id": name, "status": "starting", "urls": urls}

    def ask(self, name: str) -> dict[str, Any]:
        job, base = self.jobs[name], {"id": name, "urls": {"get": f"{self.url}/v1/jobs/{name}"}}
        base["urls"]["cancel"] = f"{self.url}/v1/jobs/{name}/cancel"
        self.left[name] -= 1
        self.polled += 1
        if name in self.cancelled:
            return base | {"status": "cancelled"}
        if self.left[name] > 0:
            return base | {"status": "working"}
        if job["cracks"]:
            return base | {"status": "failed", "error": "the pot cracked"}
        return base | {"status": "done"} | {field: job[field] for field in ("text", "reason", "usage")}


class Handler(BaseHTTPRequestHandler):
    server: Service

    def log_message(self, *_args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers["authorization"] != f"Bearer {KEY}":
            return self.refuse("bad_key", "this is not the key")
        with self.server.lock:
            if self.path.endswith("/cancel"):
                self.server.cancelled.append(self.path.split("/")[-2])
                return self.send(200, {"status": "cancelled"})
            asked = json.loads(body)
            if asked["model"] != "earthen-1":
                return self.refuse("no_model", f"there is no {asked['model']}")
            if "busy" in asked["messages"][-1]["text"]:
                return self.refuse("busy", "the kiln is full")
            return self.send(201, self.server.create(asked))

    def do_GET(self) -> None:
        if self.headers["authorization"] != f"Bearer {KEY}":
            return self.refuse("bad_key", "this is not the key")
        name = self.path.rpartition("/")[2]
        if "/streams/" in self.path:
            return self.stream(name)
        with self.server.lock:
            return self.send(200, self.server.ask(name))

    def refuse(self, code: str, text: str) -> None:
        self.send(REFUSALS[code], {"error": {"code": code, "text": text}})

    def send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, name: str) -> None:
        job = self.server.jobs[name]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        words = job["text"].split(" ")
        for at, word in enumerate(words):
            self.event({"text": word if at == 0 else f" {word}"})
            if job["slow"] and at == 1:
                time.sleep(1.0)
            if job["cracks"] and at == 1:
                return self.event({"error": "the pot cracked"})
            if "smoke" in job["text"] and at == 1:
                return self.event({"error": {"code": "busy", "text": "the kiln is too hot"}})
        return self.event({"id": name, "reason": job["reason"], "usage": job["usage"]})

    def event(self, data: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())


@contextmanager
def served(port: int = 0, polls: int = 2) -> Iterator[Service]:
    """Run the service."""
    service = Service(port, polls)
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()
        thread.join()
