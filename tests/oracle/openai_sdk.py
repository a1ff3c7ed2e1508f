"""What the official SDK makes of the same bytes on its two wires: the reader our adapters have to agree with.

`Unparsed` is raised where the SDK itself gives up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs
import httpx2
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion

from interlingua.types.messages import StopReason

FINISHES = {  # the last four are compatible services' words
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "content_filter": StopReason.REFUSAL,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
    "sensitive": StopReason.REFUSAL,
    "error": StopReason.ERROR,
    "network_error": StopReason.ERROR,
}
INCOMPLETE = {"max_output_tokens": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
RESPONSES: dict[str, Any] = {"model": "m", "input": "x"}
ENDS = ("response.completed", "response.incomplete")
GIVES_UP = (openai.OpenAIError, AttributeError, AssertionError, LookupError, RuntimeError, TypeError, ValueError)


class Unparsed(Exception):
    """The SDK cannot parse the answer, so it is no oracle for it."""


@attrs.frozen(kw_only=True)
class Reading:
    """One answer as the SDK read it; of `usage` (input, output, cached, written, reasoning) None is "not reported"."""

    text: str
    calls: tuple[tuple[str, str], ...]
    stop: StopReason
    usage: tuple[int | None, ...]


def client(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> openai.OpenAI:
    """Return the SDK, wired to an answer that is ready."""

    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers=headers or {}, content=body)

    made = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://oracle.invalid/v1", http_client=made, max_retries=0)


def whole_chat(body: bytes) -> dict[str, Any]:
    """Return the completion the SDK makes of a whole body, as JSON."""
    try:
        with client(body, headers={"content-type": "application/json"}) as sdk:
            return _completion(sdk.chat.completions.create(**CHAT))
    except GIVES_UP as error:
        raise Unparsed(str(error)) from error


def streamed_chat(body: bytes) -> dict[str, Any]:
    """Return the completion the SDK accumulates, as JSON, with the last usage and tier that one of its chunks reports.

    Its accumulator takes the usage of the last chunk, also where that has none, and the tier of the first.
    """
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    usage = tier = None
    try:
        with client(body, headers={"content-type": "text/event-stream"}) as sdk:
            for chunk in sdk.chat.completions.create(**CHAT, stream=True):
                state.handle_chunk(chunk)
                usage = chunk.usage or usage
                tier = chunk.service_tier or tier
        found = _completion(state.current_completion_snapshot)
    except GIVES_UP as error:
        raise Unparsed(str(error)) from error
    if usage is not None:
        found["usage"] = usage.to_dict()
    if tier is not None:
        found["service_tier"] = tier
    return found


def _completion(made: ChatCompletion) -> dict[str, Any]:
    if not made.choices or made.choices[0].message is None:
        raise Unparsed("no choice")
    found: dict[str, Any] = made.to_dict(mode="json", warnings=False)
    if not isinstance(found["choices"][0]["message"].get("content") or "", str):
        raise Unparsed("content that the SDK has no type for")
    return found


def whole_response(body: bytes) -> dict[str, Any]:
    """Return the response the SDK makes of a whole body, as JSON."""
    try:
        with client(body, headers={"content-type": "application/json"}) as sdk:
            made: Any = sdk.responses.create(**RESPONSES)
            found: dict[str, Any] = made.to_dict(mode="json", warnings=False)
    except GIVES_UP as error:
        raise Unparsed(str(error)) from error
    return found


def streamed_response(body: bytes) -> dict[str, Any]:
    """Return the response the SDK's accumulator ends with, as JSON.

    One service sends the items and then an empty output with the end, which the accumulator believes: the items that
    the SDK parsed on the way stand in for it.
    """
    last: Any = None
    items: dict[int, Any] = {}
    try:
        with (
            client(body, headers={"content-type": "text/event-stream"}) as sdk,
            sdk.responses.stream(**RESPONSES) as stream,
        ):
            event: Any
            for event in stream:
                if event.type == "response.output_item.done":
                    items[event.output_index] = event.item
                elif event.type in ENDS:
                    last = event.response
        if last is None:
            raise Unparsed("no terminal event")
        last.output = last.output or [item for _, item in sorted(items.items())]
        found: dict[str, Any] = last.to_dict(mode="json", warnings=False)
    except GIVES_UP as error:
        raise Unparsed(str(error)) from error
    return found


def read_chat(completion: dict[str, Any]) -> Reading:
    """Take from the SDK's completion what is compared; a refusal has no reason of its own."""
    choice = completion["choices"][0]
    message = choice["message"]
    text, refusal = message.get("content") or "", message.get("refusal") or ""
    calls = tuple(_chat_calls(message))
    stop = FINISHES.get(choice.get("finish_reason"), StopReason.OTHER)
    if stop is StopReason.END_TURN and (refusal or calls):
        stop = StopReason.REFUSAL if refusal else StopReason.TOOL_USE
    usage = completion.get("usage") or {}
    prompt, output = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    return Reading(
        text=text + refusal,
        calls=calls,
        stop=stop,
        usage=(
            usage.get("prompt_tokens"),
            usage.get("completion_tokens"),
            prompt.get("cached_tokens"),
            prompt.get("cache_write_tokens"),
            output.get("reasoning_tokens"),
        ),
    )


def _chat_calls(message: dict[str, Any]) -> Iterable[tuple[str, str]]:
    legacy = message.get("function_call")
    for call in message.get("tool_calls") or ([{"function": legacy}] if legacy and legacy.get("name") else ()):
        if call.get("type") == "custom":
            yield call["custom"]["name"], json.dumps({"input": call["custom"]["input"]})
        else:
            yield call["function"]["name"], call["function"].get("arguments") or ""


def read_response(response: dict[str, Any]) -> Reading:
    """Take from the SDK's response what is compared; the reason is derived, for the service gives none."""
    output = response.get("output") or []
    parts = [part for item in output if item["type"] == "message" for part in item.get("content") or ()]
    calls: list[tuple[str, str]] = []
    for item in output:
        if item["type"] == "function_call":
            calls.append((item["name"], item["arguments"]))
        elif item["type"] == "custom_tool_call":
            calls.append((item["name"], json.dumps({"input": item["input"]})))
        elif item["type"] == "apply_patch_call":  # the caller applies it
            operation = item["operation"]  # the SDK has its members in the order of its types
            calls.append(("apply_patch", json.dumps({"type": operation["type"], **operation})))
        elif item["type"] == "shell_call" and (item.get("environment") or {}).get("type") != "container_reference":
            calls.append(("shell", json.dumps(item["action"])))
        elif item["type"] == "local_shell_call":
            calls.append(("local_shell", json.dumps({"type": item["action"]["type"], **item["action"]})))
        elif item["type"] == "computer_call":
            asked = {name: item[name] for name in ("action", "actions", "pending_safety_checks") if name in item}
            calls.append(("computer", json.dumps(asked)))
        elif item["type"] == "mcp_approval_request":  # the caller approves it
            asked = {name: item[name] for name in ("arguments", "name", "server_label")}
            calls.append(("mcp_approval", json.dumps(asked)))
    refused = any(part["type"] == "refusal" for part in parts)
    if response.get("status") == "incomplete":
        stop = INCOMPLETE.get(str((response.get("incomplete_details") or {}).get("reason")), StopReason.OTHER)
    elif response.get("status") in ("queued", "in_progress"):
        stop = StopReason.PAUSE_TURN  # the service says "continue me"
    else:
        stop = StopReason.TOOL_USE if calls else StopReason.REFUSAL if refused else StopReason.END_TURN
    usage = response.get("usage") or {}
    read, wrote = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return Reading(
        text="".join(str(part.get("text", part.get("refusal")) or "") for part in parts),
        calls=tuple(calls),
        stop=stop,
        usage=(
            usage.get("input_tokens"),
            usage.get("output_tokens"),
            read.get("cached_tokens"),
            read.get("cache_write_tokens"),
            wrote.get("reasoning_tokens"),
        ),
    )
