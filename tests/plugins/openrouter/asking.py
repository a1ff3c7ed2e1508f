"""Short ways to ask the adapter for a request and to read an answer, for the tests beside this file.

Nothing here decides what is right. The tests of this folder come in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from interlingua.context import RequestContext
from interlingua.messages import Message
from interlingua.options import AdapterOptions
from interlingua.tools import SideEffects, ToolDefinition
from interlingua.wire import WireRequest
from tests.support import driving

OPENROUTER = driving.provider("openrouter")
MODEL = "anthropic/claude-opus-5.5"
READ = ToolDefinition(
    name="read_file",
    description="Read a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    side_effects=SideEffects.READ,
)


def context(model: str = MODEL) -> RequestContext:
    """Return a context for an answer of this provider."""
    return driving.context("openrouter", "chat", model)


def asked(messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> WireRequest:
    """Return the request."""
    options.setdefault("model", MODEL)
    return OPENROUTER.to_wire(list(messages), list(tools), AdapterOptions(**options))


def body(messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), **options: Any) -> dict[str, Any]:
    """Return the body of the request, parsed."""
    parsed: dict[str, Any] = json.loads(asked(messages, tools, **options).body)
    return parsed


def answer(message: Mapping[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    """Return a whole answer (sheet §3)."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "gen-1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], **more}


def read(whole: Mapping[str, Any], model: str = MODEL) -> Message:
    """Return the message of a whole answer."""
    return driving.whole(OPENROUTER, json.dumps(whole).encode(), context(model))


def chunk(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a chunk as this service sends it: with the role each time (sheet §4)."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": "", **delta}, "finish_reason": finish}
    return {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice], **more}


def sse(chunks: Iterable[Mapping[str, Any]], *, done: bool = True) -> bytes:
    """Write chunks as the sheet frames them, with a comment between (§4)."""
    text = b": OPENROUTER PROCESSING\n\n".join([b"data: %s\n\n" % json.dumps(one).encode() for one in chunks])
    return text + (b"data: [DONE]\n\n" if done else b"")


def streamed(*chunks: Mapping[str, Any], model: str = MODEL) -> Message:
    """Return the message of a stream, read at three chunkings that must agree."""
    raw = sse(chunks)
    found = [driving.streamed(OPENROUTER, raw, context(model), size) for size in (None, 7, 1)]
    assert found[0] == found[1] == found[2]
    assert found[0].metadata.provider_raw == found[2].metadata.provider_raw
    return found[0]
