"""A batch service for tests: it keeps uploaded requests, and sends their answers as a file, with planted faults.

`python -m tests.bulk.batch_service '{"size": 15000, …}'` prints its port.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

from tests.bulk.loopback import ROW
from tests.support.loopback import LoopbackHandler, LoopbackServer, send_bytes

_ID = re.compile(rb'^\{"custom_id":"([^"]+)"', re.MULTILINE)


class BatchService(LoopbackServer):
    """The files and the batches API of one provider.

    Attributes:
        size: characters of each answer.
        sizes: the same for some rows.
        state: the state of each batch.
        cuts: after how many bytes each download is cut, one after another; those that follow are whole.
        shuffle: whether the lines have another order in each download.
        missing: rows without a line.
        doubled: rows with two lines.
        failed: rows with an answer of status 400.
        errors: rows with a word instead of an answer, in a second file.
        spoiled: rows whose line is no JSON.
        gone: batches whose files are answered with status 404.
        is_framed: whether the length of a file is sent, so that a cut is noticed.
        downloads: how many there were.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(_Handler)
        self.url += "/v1"
        self.size, self.sizes = settings.get("size", 20), {int(k): v for k, v in settings.get("sizes", {}).items()}
        self.state: str = settings.get("state", "completed")
        self.cuts: list[int] = list(settings.get("cuts", ()))
        self.shuffle: bool = settings.get("shuffle", False)
        self.missing, self.doubled = set(settings.get("missing", ())), set(settings.get("doubled", ()))
        self.failed, self.spoiled = set(settings.get("failed", ())), set(settings.get("spoiled", ()))
        self.errors: dict[int, str] = {int(k): v for k, v in settings.get("errors", {}).items()}
        self.gone = set(settings.get("gone", ()))
        self.is_framed: bool = settings.get("is_framed", True)
        self.downloads = 0
        self.uploads: list[list[tuple[str, int]]] = []
        self.random = random.Random(31)

    def line(self, name: str, row: int) -> bytes:
        """Return the line of one row in the file of answers."""
        if row in self.spoiled:
            return b'{"custom_id":"' + name.encode() + b'","response":\n'
        text = f"row {row} is {row * row}."
        text = "." * (self.sizes.get(row, self.size) - len(text)) + text
        output = {
            "type": "message", "id": f"msg_{row}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }  # fmt: skip
        body: dict[str, Any] = {
            "id": f"resp_{row}", "object": "response", "created_at": 1764000000, "model": "gpt-5.4-mini",
            "status": "completed", "output": [output],
            "usage": {"input_tokens": 20, "output_tokens": 18, "total_tokens": 38},
        }  # fmt: skip
        if row in self.failed:
            body = {"error": {"message": "refused", "type": "invalid_request_error", "code": "bad_row"}}
        response = {"status_code": 400 if row in self.failed else 200, "request_id": f"req_{row}", "body": body}
        return json.dumps({"id": f"b_{row}", "custom_id": name, "response": response, "error": None}).encode() + b"\n"

    def file(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file: `out-<batch>` or `err-<batch>`."""
        kind, _, number = name.partition("-")
        rows = self.uploads[int(number)]
        if kind == "err":
            for one, row in rows:
                if row in self.errors:
                    error = {"code": self.errors[row], "message": "no answer"}
                    yield json.dumps({"id": "b", "custom_id": one, "response": None, "error": error}).encode() + b"\n"
            return
        if self.shuffle:
            rows = self.random.sample(rows, len(rows))
        for one, row in rows:
            if row not in self.missing and row not in self.errors:
                for _ in range(2 if row in self.doubled else 1):
                    yield self.line(one, row)

    def batch(self, number: int) -> dict[str, Any]:
        """Return a batch."""
        rows = len(self.uploads[number])
        is_running = self.state == "in_progress"
        return {
            "id": f"batch_{number}", "object": "batch", "endpoint": "/v1/responses", "status": self.state,
            "input_file_id": f"in-{number}", "completion_window": "24h", "created_at": 1764000000,
            "output_file_id": None if is_running else f"out-{number}",
            "error_file_id": f"err-{number}" if self.errors and not is_running else None,
            "request_counts": {"total": rows, "completed": rows - len(self.errors), "failed": len(self.errors)},
        }  # fmt: skip


class _Handler(LoopbackHandler):
    server: BatchService
    protocol_version = "HTTP/1.1"

    def _json(self, body: Any, status: int = 200) -> None:
        send_bytes(self, status, "application/json", json.dumps(body).encode())

    def do_POST(self) -> None:
        data = self.read_body()
        service = self.server
        if self.path.endswith("/files"):
            lines = [line for line in data.splitlines() if _ID.match(line)]
            rows = [(_ID.match(line)[1].decode(), int(ROW.search(line)[1])) for line in lines]  # type: ignore[index]
            service.uploads.append(rows)
            self._json({"id": f"in-{len(service.uploads) - 1}", "object": "file", "purpose": "batch"})
        elif self.path.endswith("/cancel"):
            found = service.batch(int(self.path.split("_")[1].split("/")[0]))
            refusal = {"error": {"message": f"the batch is {found['status']}", "type": "invalid_request_error"}}
            self._json(*((found, 200) if service.state in ("in_progress", "cancelling") else (refusal, 409)))
        else:
            self._json(service.batch(int(json.loads(data)["input_file_id"].partition("-")[2])))

    def do_GET(self) -> None:
        service = self.server
        if not self.path.endswith("/content"):
            self._json(service.batch(int(self.path.rpartition("_")[2])))
            return
        name = self.path.split("/")[-2]
        if int(name.partition("-")[2]) in service.gone:
            self._json({"error": {"message": "no such file", "type": "invalid_request_error"}}, 404)
            return
        service.downloads += 1
        left = service.cuts.pop(0) if service.cuts else None
        self.send_response(200)
        self.send_header("content-type", "application/octet-stream")
        if service.is_framed:
            self.send_header("content-length", str(sum(map(len, service.file(name)))))
        self.close_connection = True
        self.end_headers()
        for line in service.file(name):
            if left is not None and left < len(line):
                self.wfile.write(line[:left])
                return
            self.wfile.write(line)
            left = None if left is None else left - len(line)


if __name__ == "__main__":
    with BatchService(**(json.loads(sys.argv[1]) if sys.argv[1:] else {})) as made:
        print(made.server_port, flush=True)
        sys.stdin.read()  # until who started it ends
