"""What the official SDK makes of recorded bytes of the Chat Completions and Responses wires, offline."""

from __future__ import annotations

from typing import Any

import attrs
import httpx2
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

from interlingua.types.messages import Message, StopReason
from tests.support.cassettes import RecordedExchange

FAILURES = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    404: openai.NotFoundError,
}
_FINISHES = {
    "stop": StopReason.END_TURN,
    "tool_calls": StopReason.TOOL_USE,
    "length": StopReason.MAX_TOKENS,
}


@attrs.frozen(kw_only=True)
class Reading:
    """One answer as the SDK read it; `calls` are (id, name, arguments as text), `usage` input, output, cached."""

    text: str
    calls: list[tuple[str, str, str]]
    stop: StopReason
    usage: tuple[int, int, int]
    whole: dict[str, Any]


def agrees(theirs: Reading, ours: Message) -> None:
    """Assert that our message says what the SDK read."""
    usage = ours.metadata.usage
    assert usage is not None
    assert ours.text == theirs.text
    assert [(call.provider_id, call.name, call.raw_input) for call in ours.tool_calls] == theirs.calls
    assert ours.metadata.stop_reason is theirs.stop
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens or 0) == theirs.usage


def client(exchange: RecordedExchange) -> openai.OpenAI:
    """Return the SDK, wired to a recorded answer."""

    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(exchange.status, headers=exchange.headers, content=exchange.body)

    made = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://oracle.invalid/v1", http_client=made, max_retries=0)


def read_chat(exchange: RecordedExchange) -> Reading:
    """Read a Chat Completions answer."""
    with client(exchange) as sdk:
        if "event-stream" in exchange.headers["content-type"]:
            state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
            for event in sdk.chat.completions.create(model="m", messages=[], stream=True):
                state.handle_chunk(event)
            theirs = state.current_completion_snapshot
        else:
            theirs = sdk.chat.completions.create(model="m", messages=[])  # type: ignore[assignment]
    (choice,) = theirs.choices
    usage = theirs.usage
    assert usage is not None
    details = usage.prompt_tokens_details
    return Reading(
        text=choice.message.content or "",
        calls=[(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls or []],
        stop=_FINISHES[choice.finish_reason],
        usage=(usage.prompt_tokens, usage.completion_tokens, (details and details.cached_tokens) or 0),
        whole=theirs.to_dict(mode="json"),
    )


def read_responses(exchange: RecordedExchange) -> Reading:
    """Read a Responses answer."""
    with client(exchange) as sdk:
        if "event-stream" in exchange.headers["content-type"]:
            *_, last = sdk.responses.create(model="m", input="x", stream=True)
            assert last.type == "response.completed"
            theirs = last.response
        else:
            theirs = sdk.responses.create(model="m", input="x")
    calls = [(item.call_id, item.name, item.arguments) for item in theirs.output if item.type == "function_call"]
    usage = theirs.usage
    assert usage is not None
    assert theirs.status == "completed"
    return Reading(
        text=theirs.output_text,
        calls=calls,
        stop=StopReason.TOOL_USE if calls else StopReason.END_TURN,
        usage=(usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens or 0),
        whole=theirs.to_dict(mode="json"),
    )
