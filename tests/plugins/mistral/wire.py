"""Short ways to ask the adapter for a request and to read it, and the official SDK over the same bytes.

Nothing here decides what is right, and no byte leaves the process. The tests of this folder come in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx2
from mistralai.client import Mistral

from interlingua.blocks import ContentBlock
from interlingua.context import RequestContext
from interlingua.messages import Message, MessageMetadata, Provenance, Role, Usage
from interlingua.options import AdapterOptions
from interlingua.tools import SideEffects, ToolDefinition
from interlingua.wire import WireRequest
from tests.support import driving

MISTRAL = driving.provider("mistral")
API = "chat"
MODEL = "mistral-large-latest"
READ = ToolDefinition(
    name="read_file",
    description="Read a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    side_effects=SideEffects.READ,
)
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def asked(messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> WireRequest:
    """Return the request."""
    return MISTRAL.to_wire(list(messages), list(tools), AdapterOptions(**{"model": MODEL, **options}))


def body(messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> dict[str, Any]:
    """Return the body of the request, parsed."""
    parsed: dict[str, Any] = json.loads(asked(messages, tools, **options).body)
    return parsed


def answer(*content: ContentBlock, provider: str = "mistral", api: str = API, model: str = MODEL) -> Message:
    """Return a generated assistant message."""
    metadata = MessageMetadata(
        model=f"{provider}:{model}", provider=provider, api=api, provenance=Provenance.GENERATED, usage=Usage()
    )
    return Message(role=Role.ASSISTANT, content=content, metadata=metadata)


def context(model: str = MODEL) -> RequestContext:
    """Return a context for an answer of this provider."""
    return driving.context("mistral", API, model)


def completion(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    """Return a whole answer (sheet §5)."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], **more}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one chunk of a stream (sheet §6)."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice], **more}


def sse(*chunks: dict[str, Any]) -> bytes:
    """Write chunks, and the sentinel."""
    lines = [b"data: " + json.dumps(one, ensure_ascii=False).encode() + b"\n\n" for one in chunks]
    return b"".join(lines) + b"data: [DONE]\n\n"


def streamed(*chunks: dict[str, Any]) -> Message:
    """Read a stream at three chunkings, which must agree."""
    raw = sse(*chunks)
    found = [driving.streamed(MISTRAL, raw, context(), size) for size in (None, 7, 1)]
    assert found[0] == found[1] == found[2]
    return found[0]


def whole(answer_body: dict[str, Any]) -> Message:
    """Read a whole answer."""
    return driving.whole(MISTRAL, json.dumps(answer_body).encode(), context())


def sdk(raw: bytes, kind: str = "application/json", *, status: int = 200) -> Mistral:
    """Return the official SDK, wired to an answer that is ready."""

    def reply(_request: Any) -> Any:
        return httpx2.Response(status, headers={"content-type": kind}, content=raw)

    return Mistral(api_key="none", client=httpx2.Client(transport=httpx2.MockTransport(reply)))


def sdk_whole(raw: bytes) -> dict[str, Any]:
    """Return the SDK's reading of a whole answer, as JSON."""
    found: dict[str, Any] = sdk(raw).chat.complete(**ASKED).model_dump(mode="json", by_alias=True)
    return found


def sdk_streamed(raw: bytes) -> list[dict[str, Any]]:
    """Return the SDK's reading of each chunk, as JSON."""
    events = sdk(raw, "text/event-stream").chat.stream(**ASKED)
    return [event.data.model_dump(mode="json", by_alias=True) for event in events]


def compact(value: Any) -> bytes:
    """Write JSON as this side sends it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
