"""Answers of the Interactions API as the official SDK reads them, in the facts that messages have too."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import attrs
import httpx
from google import genai
from google.genai import types
from google.genai._gaos.lib.compat_errors import APIStatusError

from interlingua._json import thaw
from interlingua.types import read_tool_input
from interlingua.types.blocks import OpaqueBlock, TextBlock
from interlingua.types.messages import Message
from tests.oracle.readings import usage_of

FAILURE = APIStatusError
"""The SDK's class of failed answers of this API."""
MEDIA = ("image", "audio", "video", "document")


@attrs.frozen
class Reading:
    """An answer's content: text, media by kind, calls with ids, other steps whole; its signatures and counts."""

    text: str
    thoughts: str
    signatures: tuple[str, ...]
    calls: tuple[tuple[str, str, Any], ...]
    media: tuple[tuple[str, str | None], ...]
    citations: tuple[Any, ...]
    others: tuple[Any, ...]
    usage: tuple[int, int, int, int]


class Wire:
    """A transport with one answer ready; no byte leaves the process."""

    def __init__(self, body: bytes, status: int = 200, kind: str = "application/json", size: int = 0) -> None:
        self.sent: Any = None
        pieces = (body[at : at + size] for at in range(0, len(body), size)) if size else body
        self._answer = httpx.Response(status, headers={"content-type": kind}, content=pieces)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Keep the request, and answer it."""
        self.sent = json.loads(request.content) if request.content else None
        return self._answer


_WIRES: list[Wire] = []


def _answer(request: httpx.Request) -> httpx.Response:
    return _WIRES[0](request)


@cache
def _client() -> genai.Client:
    made = httpx.Client(transport=httpx.MockTransport(_answer))
    attempts = types.HttpRetryOptions(attempts=1)
    options = types.HttpOptions(httpx_client=made, base_url="http://oracle.invalid", retry_options=attempts)
    return genai.Client(api_key="none", http_options=options)


def client(wire: Wire) -> genai.Client:
    """Return the SDK over that wire: one client for all, because making one takes long."""
    _WIRES[:] = [wire]
    return _client()


def read_whole(body: bytes) -> Reading:
    """Return what the SDK reads in a whole answer."""
    return _reading(whole(body))


def whole(body: bytes) -> dict[str, Any]:
    """Return an interaction as the SDK read it."""
    made = client(Wire(body)).interactions.create(
        model="asked-for", input="q", store=False, automatic_continuation=False
    )
    return _json(made)


def read_stream(body: bytes) -> Reading:
    """Return what the SDK's events come to."""
    return _reading(streamed(body))


def streamed(body: bytes, size: int = 0) -> dict[str, Any]:
    """Return the interaction that the SDK's events come to: the last one's facts, and the steps of all."""
    steps: dict[int, dict[str, Any]] = {}
    ended: dict[str, Any] = {}
    wire = Wire(body, kind="text/event-stream", size=size)
    asked = {"model": "asked-for", "input": "q", "stream": True, "automatic_continuation": False}
    for each in client(wire).interactions.create(**asked):
        event = _json(each)
        kind = event["event_type"]
        if kind == "step.start":
            steps[event["index"]] = event["step"]
        elif kind == "step.delta":
            _add(steps[event["index"]], event["delta"])
        elif kind == "interaction.completed":
            ended = event["interaction"]
    for step in steps.values():
        if isinstance(step.get("pieces"), str):
            step["arguments"] = read_tool_input(step.pop("pieces"))[0]
    return {**ended, "steps": [step for _, step in sorted(steps.items())]}


def _add(step: dict[str, Any], delta: dict[str, Any]) -> None:
    kind = delta.pop("type")
    if kind == "thought_summary":
        step.setdefault("summary", []).append(delta["content"])
    elif kind == "thought_signature":
        step["signature"] = delta.get("signature") or step.get("signature")
    elif kind == "arguments_delta":
        step["pieces"] = step.get("pieces", "") + delta["arguments"]
    elif kind == "text_annotation_delta":
        step["content"][-1].setdefault("annotations", []).extend(delta["annotations"])
    elif kind == "text" and step.get("content") and step["content"][-1]["type"] == "text":
        step["content"][-1]["text"] += delta["text"]
    elif kind in ("text", *MEDIA):
        step.setdefault("content", []).append({"type": kind, **delta})
    else:
        step.update({name: value for name, value in delta.items() if value != ""})


def _json(made: Any) -> dict[str, Any]:
    found: dict[str, Any] = made.model_dump(mode="json", exclude_none=True)
    return found


def _reading(interaction: dict[str, Any]) -> Reading:
    steps: list[dict[str, Any]] = interaction.get("steps") or []
    contents = [item for step in steps if step["type"] == "model_output" for item in step.get("content") or ()]
    thoughts = [step for step in steps if step["type"] == "thought"]
    known = ("model_output", "thought", "function_call", "user_input")
    count = (interaction.get("usage") or {}).get
    given = count("total_input_tokens", 0) + count("total_tool_use_tokens", 0)
    made = count("total_output_tokens", 0) + count("total_thought_tokens", 0)
    return Reading(
        text="".join(item["text"] for item in contents if item["type"] == "text"),
        thoughts="\n\n".join(item["text"] for step in thoughts for item in step.get("summary") or ()),
        signatures=tuple(step["signature"] for step in thoughts if step.get("signature")),
        calls=tuple((step["id"], step["name"], step["arguments"]) for step in steps if step["type"] == "function_call"),
        media=tuple((item["type"], item.get("data") or item.get("uri")) for item in contents if item["type"] in MEDIA),
        citations=tuple(note for item in contents for note in item.get("annotations") or ()),
        others=tuple(step for step in steps if step["type"] not in known),
        usage=(given, made, count("total_cached_tokens", 0), 0),
    )


def read_message(message: Message) -> Reading:
    """Return the same facts of our message."""
    content: Any = message.content
    texts = [block for block in content if isinstance(block, TextBlock)]
    return Reading(
        text=message.text,
        thoughts="\n\n".join(block.text for block in message.thinking_blocks if block.text),
        signatures=tuple(block.signature for block in message.thinking_blocks if block.signature),
        calls=tuple((call.provider_id or "", call.name, thaw(call.input)) for call in message.tool_calls),
        media=tuple((block.type, block.source.data) for block in content if block.type in MEDIA),
        citations=tuple(thaw(note) for block in texts for note in block.citations),
        others=tuple(thaw(block.data) for block in content if isinstance(block, OpaqueBlock)),
        usage=usage_of(message) if message.metadata.usage else (0, 0, 0, 0),
    )
