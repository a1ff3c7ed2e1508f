"""Services that keep files, on this machine: each reads uploads in its own form, and answers requests with files.

The forms are those of the services' SDKs and documentation (WIRE.md of each plugin, Files); `email` reads multipart.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import attrs

from tests.support.loopback import LoopbackHandler, LoopbackServer, send_bytes

KEY = "made-up-key-0123456789"


@attrs.frozen
class Part:
    """One part of a multipart body."""

    name: str
    file_name: str
    media_type: str
    data: bytes


class Service(LoopbackServer):
    """Keeps files by id.

    Attributes:
        kind: anthropic, openai, google or mistral.
        uploads: the parts of each upload.
        asked: bodies of the conversations.
        refusals: statuses with which the next uploads are refused.
        processing: how often a file is asked for before it is ready (google).
        stored: called when an upload is stored, before it is answered.
    """

    def __init__(self, kind: str, expires: str | None = None, processing: int = 0) -> None:
        super().__init__(Handler)
        self.kind, self.expires, self.processing = kind, expires, processing
        self.files: dict[str, bytes] = {}
        self.uploads: list[list[Part]] = []
        self.asked: list[Any] = []
        self.deleted: list[str] = []
        self.refusals: list[int] = []
        self.stored: Callable[[], object] = lambda: None
        self.lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return (
            self.url
            if self.kind == "anthropic"
            else f"{self.url}/v1beta"
            if self.kind == "google"
            else f"{self.url}/v1"
        )

    def name_of(self, file: str) -> str:
        """Return what a request says of a file."""
        return f"{self.url}/v1beta/files/{file}" if self.kind == "google" else file

    def about(self, file: str) -> dict[str, Any]:
        if self.kind == "google":
            state = "PROCESSING" if self.processing > 0 else "ACTIVE"
            about = {"name": f"files/{file}", "uri": self.name_of(file), "state": state, "mimeType": "application/pdf"}
            return about | ({"expirationTime": self.expires} if self.expires else {})
        return {"id": file, "type": "file", "object": "file", "expires_at": self.expires}


_PATHS = {
    "anthropic": ("/v1/files", "/v1/messages"),
    "openai": ("/v1/files", "/v1/"),
    "mistral": ("/v1/files", "/v1/chat/completions"),
    "google": ("/upload/v1beta/files", "/v1beta/models/"),
}
_ANSWERS: dict[str, Any] = {
    "messages": {
        "id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Seen."}], "usage": {"input_tokens": 3, "output_tokens": 2},
    },
    "chat": {
        "id": "c", "object": "chat.completion", "created": 1, "model": "x",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Seen."}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    },
    "responses": {
        "id": "r", "object": "response", "created_at": 1, "model": "x", "status": "completed",
        "output": [{"type": "message", "id": "o", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Seen.", "annotations": []}]}],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    },
    "google": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Seen."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
    },
}  # fmt: skip


class Handler(LoopbackHandler):
    server: Service

    def do_POST(self) -> None:
        body = self.read_body()
        if KEY not in str(self.headers):
            return self.send(401, {"error": {"message": "no key", "type": "authentication_error"}})
        with self.server.lock:
            if self.path == _PATHS[self.server.kind][0]:
                return self.upload(body)
            return self.converse(json.loads(body))

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.processing -= 1
            self.send(200, self.server.about(self.path.rpartition("/")[2]))

    def do_DELETE(self) -> None:
        file = self.path.rpartition("/")[2]
        if KEY not in str(self.headers):
            return self.send(401, {"error": {"message": "no key", "type": "authentication_error"}})
        with self.server.lock:
            self.server.deleted.append(file)
            if self.server.files.pop(file, None) is None:
                return self.send(404, {"error": {"message": f"no file {file}", "type": "not_found_error"}})
            return self.send(200, {"id": file, "deleted": True})

    def upload(self, body: bytes) -> None:
        if self.server.refusals:
            status = self.server.refusals.pop(0)
            kind = "api_error" if status >= 500 else "invalid_request_error"
            return self.send(status, {"error": {"message": "not now", "type": kind}})
        parts = read_parts(self.headers["content-type"], body)
        self.server.uploads.append(parts)
        file = f"file-{len(self.server.uploads)}abc"
        self.server.files[file] = parts[-1].data
        self.server.stored()
        about = self.server.about(file)
        return self.send(200, {"file": about} if self.server.kind == "google" else about)

    def converse(self, asked: Any) -> None:
        self.server.asked.append(asked)
        for file in referred(asked):
            if file.rpartition("/")[2] not in self.server.files:
                return self.send(*refusal(self.server.kind, file.rpartition("/")[2]))
        if asked.get("stream") or "streamGenerate" in self.path:
            return self.stream()
        form = {"anthropic": "messages", "google": "google"}.get(self.server.kind, "chat")
        return self.send(200, _ANSWERS["responses" if self.path.endswith("/responses") else form])

    def stream(self) -> None:
        if self.server.kind == "google":
            events: list[Any] = [_ANSWERS["google"]]
        elif self.server.kind == "anthropic":
            events = [
                {"type": "message_start", "message": _ANSWERS["messages"] | {"content": [], "stop_reason": None}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Seen."}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
                {"type": "message_stop"},
            ]
        elif self.path.endswith("/responses"):
            item = {"type": "message", "id": "o", "role": "assistant"}
            events = [
                {"type": "response.output_item.added", "output_index": 0, "item": item | {"content": []}},
                {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "o",
                 "delta": "Seen."},
                {"type": "response.completed", "response": _ANSWERS["responses"]},
            ]  # fmt: skip
        else:
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x"}
            events = [
                chunk | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Seen."}}]},
                chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            ]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        if self.server.kind in ("openai", "mistral") and not self.path.endswith("/responses"):
            self.wfile.write(b"data: [DONE]\n\n")

    def send(self, status: int, body: Any) -> None:
        send_bytes(self, status, "application/json", json.dumps(body).encode())


def read_parts(content_type: str, body: bytes) -> list[Part]:
    """Read a multipart body; a part of a `related` one has no name."""
    read = BytesParser(policy=HTTP).parsebytes(f"content-type: {content_type}\r\n\r\n".encode() + body)
    parts: list[Any] = read.get_payload()  # type: ignore[assignment]
    return [
        Part(
            str(part.get_param("name", "", header="content-disposition") or ""),
            part.get_filename() or "",
            part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in parts
    ]


def referred(asked: Any) -> Iterator[str]:
    """Yield the files that a request refers to."""
    if isinstance(asked, dict):
        yield from (asked[name] for name in ("file_id", "fileUri") if isinstance(asked.get(name), str))
        asked = list(asked.values())
    for each in asked if isinstance(asked, list) else ():
        yield from referred(each)


def refusal(kind: str, file: str) -> tuple[int, Any]:
    """Return the refusal of a file that is gone, in the words of each service."""
    if kind == "google":
        text = f"You do not have permission to access the File {file} or it may not exist."
        return 403, {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": text}}
    if kind == "anthropic":
        return 404, {"type": "error", "error": {"type": "not_found_error", "message": f"File not found: {file}"}}
    return 400, {"error": {"message": f"No such File object: {file}", "type": "invalid_request_error", "code": None}}
