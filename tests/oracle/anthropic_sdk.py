"""What the official SDK makes of the same bytes: the reader our adapter has to agree with."""

from __future__ import annotations

from typing import Any

import anthropic
import attrs
import httpx2

from interlingua.types.messages import StopReason

STOPS = {
    "end_turn": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "tool_use": StopReason.TOOL_USE,
    "pause_turn": StopReason.PAUSE_TURN,
    "refusal": StopReason.REFUSAL,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
    "compaction": StopReason.OTHER,
}
ASKED: dict[str, Any] = {"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": "x"}]}


@attrs.frozen(kw_only=True)
class Reading:
    """One answer as somebody read it; usage is inclusive, as the canonical one is."""

    text: str
    calls: tuple[tuple[str, Any], ...]
    stop: StopReason
    usage: tuple[int, int, int, int]


def client(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> anthropic.Anthropic:
    """Return the SDK, wired to an answer that is ready."""

    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers=headers or {}, content=body)

    made = httpx2.Client(transport=httpx2.MockTransport(answer))
    return anthropic.Anthropic(api_key="none", http_client=made, max_retries=0)


def streamed(body: bytes) -> dict[str, Any]:
    """Return the message the SDK accumulates from a stream, as JSON."""
    sdk = client(body, headers={"content-type": "text/event-stream"})
    with sdk, sdk.beta.messages.stream(**ASKED) as stream:
        found: dict[str, Any] = stream.get_final_message().to_dict(mode="json")
    for block in found["content"]:
        block.pop("parsed_output", None)  # the SDK's own addition
    return found


def whole(body: bytes) -> dict[str, Any]:
    """Return the message the SDK makes of a whole body, as JSON."""
    with client(body, headers={"content-type": "application/json"}) as sdk:
        found: dict[str, Any] = sdk.beta.messages.create(**ASKED).to_dict(mode="json")
    return found


def reading(message: dict[str, Any]) -> Reading:
    """Take from the SDK's message what is compared."""
    usage = message["usage"]
    read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    content = message["content"]
    return Reading(
        text="".join(block["text"] for block in content if block["type"] == "text"),
        calls=tuple((block["name"], block["input"]) for block in content if block["type"] == "tool_use"),
        stop=STOPS.get(message["stop_reason"], StopReason.OTHER),
        usage=((usage.get("input_tokens") or 0) + read + written, usage.get("output_tokens") or 0, read, written),
    )
