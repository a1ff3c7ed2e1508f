"""Short ways to ask the adapter for a request and to read it, and the official SDK over the same bytes.

Nothing here decides what is right, and no byte leaves the process. The tests of this folder come in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx as http
import ollama

from interlingua.blocks import ContentBlock
from interlingua.context import RequestContext
from interlingua.messages import Message, MessageMetadata, Provenance, Role, Usage
from interlingua.options import AdapterOptions
from interlingua.tools import SideEffects, ToolDefinition
from interlingua.wire import WireRequest
from tests.support import driving

OLLAMA = driving.provider("ollama")
API = "chat-native"
MODEL = "qwen3:4b"
READ = ToolDefinition(
    name="read_file",
    description="Read a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    side_effects=SideEffects.READ,
)


def asked(messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> WireRequest:
    """Return the request."""
    return OLLAMA.to_wire(list(messages), list(tools), AdapterOptions(**{"model": MODEL, **options}))


def body(messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> dict[str, Any]:
    """Return the body of the request, parsed."""
    parsed: dict[str, Any] = json.loads(asked(messages, tools, **options).body)
    return parsed


def answer(*content: ContentBlock, provider: str = "ollama", api: str = API, model: str = MODEL) -> Message:
    """Return a generated assistant message."""
    metadata = MessageMetadata(
        model=f"{provider}:{model}", provider=provider, api=api, provenance=Provenance.GENERATED, usage=Usage()
    )
    return Message(role=Role.ASSISTANT, content=content, metadata=metadata)


def context(model: str = MODEL) -> RequestContext:
    """Return a context for an answer of this provider."""
    return driving.context("ollama", API, model)


def line(message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return one line of a stream (sheet §5)."""
    said = {"role": "assistant", "content": "", **(message or {})}
    return {"model": MODEL, "created_at": "2026-11-21T00:00:00Z", "message": said, "done": False, **more}


def done(reason: str | None = "stop", message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return the last line."""
    ended = {} if reason is None else {"done_reason": reason}
    return line(message, **{"done": True, **ended, **more})


def call(name: str, arguments: Any, own: str | None = None) -> dict[str, Any]:
    """Return one entry of `tool_calls`."""
    made = {"function": {"name": name, "arguments": arguments}}
    return made if own is None else {"id": own, **made}


def ndjson(*lines: dict[str, Any]) -> bytes:
    """Write lines."""
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in lines)


def streamed(*lines: dict[str, Any]) -> Message:
    """Read a stream at three chunkings, which must agree."""
    raw = ndjson(*lines)
    found = [driving.streamed(OLLAMA, raw, context(), size) for size in (None, 7, 1)]
    assert found[0] == found[1] == found[2]
    return found[0]


def whole(answer_body: dict[str, Any]) -> Message:
    """Read a whole answer."""
    return driving.whole(OLLAMA, json.dumps(answer_body).encode(), context())


def sdk(raw: bytes, *, status: int = 200) -> ollama.Client:
    """Return the official SDK, wired to an answer that is ready."""
    return ollama.Client("http://127.0.0.1", transport=http.MockTransport(lambda _: http.Response(status, content=raw)))


def compact(value: Any) -> bytes:
    """Write JSON as this side sends it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
