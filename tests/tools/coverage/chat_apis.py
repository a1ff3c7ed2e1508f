"""The words of the APIs in the format of Chat Completions, from the SDK of each service."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import groq.types.chat.chat_completion as groq_answer
import groq.types.chat.chat_completion_chunk as groq_chunk
import groq.types.chat.completion_create_params as groq_request
import groq.types.completion_usage as groq_usage
import mistralai.client.models as mistral
import openai.types.chat.chat_completion as chat_answer
import openai.types.chat.chat_completion_chunk as chat_chunk
import openai.types.chat.completion_create_params as chat_request
import openai.types.completion_usage as chat_usage
import openrouter.components as openrouter
import together.types.chat.chat_completion as together_answer
import together.types.chat.chat_completion_chunk as together_chunk
import together.types.chat.completion_create_params as together_request
import zai.types.chat as zai
from openai.types import chat
from zai.api_resource.chat.completions import Completions as ZaiCompletions

from tests.tools.coverage.sdk_types import kinds, members
from tests.tools.coverage.wire import Event, Part, Wire

_USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}


def _wire(
    name: str, sdk: str, key: str, models: tuple[str, ...], parameters: Mapping[str, Any],
    answer: tuple[Any, Any, Any, Any], chunk: tuple[Any, Any, Any],
    beside: Mapping[str, Any] | None = None, **more: Any,
) -> Wire:  # fmt: skip
    """Return an API.

    Args:
        name: on the page.
        sdk: the SDK's distribution.
        key: the provider.
        models: the models that are asked.
        parameters: of a request.
        answer: the types of an answer, its choice, its message and its usage.
        chunk: the types of a chunk, its choice and its delta.
        beside: what a chunk's choice has too.
        more: what else is known of it.
    """
    message = {"role": "assistant", "content": "Hello."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body: Event = {
        "id": "c1", "object": "chat.completion", "created": 1, "model": models[0], "choices": [choice], "usage": _USAGE,
    }  # fmt: skip
    last = {
        **body, "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": message, "finish_reason": "stop", **(beside or {})}],
    }  # fmt: skip
    whole, chosen, said, usage = (members(one) for one in answer)
    piece, piece_choice, delta = (members(one) for one in chunk)
    return Wire(
        name=name, sdk=sdk, key=key, api="chat", models=models, parameters={**parameters, "stream": bool},
        answer=body,
        parts=(
            Part("", (), whole),
            Part("choices[]", ("choices", 0), chosen),
            Part("choices[].message", ("choices", 0, "message"), said),
            Part("usage", ("usage",), usage),
        ),
        stream=(last,),
        chunks=[(0, (
            Part("chunk", (), piece),
            Part("chunk.choices[]", ("choices", 0), piece_choice),
            Part("chunk.choices[].delta", ("choices", 0, "delta"), delta),
        ))],
        **more,
    )  # fmt: skip


def openai_chat() -> Wire:
    """Return Chat Completions as OpenAI has it."""
    return _wire(
        "OpenAI Chat Completions", "openai", "openai", ("gpt-4.1", "o3", "gpt-5.2"),
        members(chat_request.CompletionCreateParamsBase),
        (chat.ChatCompletion, chat_answer.Choice, chat.ChatCompletionMessage, chat_usage.CompletionUsage),
        (chat.ChatCompletionChunk, chat_chunk.Choice, chat_chunk.ChoiceDelta),
        sent=kinds(chat.ChatCompletionContentPartParam), tools=kinds(chat.ChatCompletionToolUnionParam),
    )  # fmt: skip


def groq_chat() -> Wire:
    """Return Groq's."""
    return _wire(
        "Groq chat", "groq", "groq", ("llama-3.3-70b-versatile", "openai/gpt-oss-120b", "qwen/qwen3-32b"),
        members(groq_request.CompletionCreateParams),
        (groq_answer.ChatCompletion, groq_answer.Choice, groq_answer.ChatCompletionMessage, groq_usage.CompletionUsage),
        (groq_chunk.ChatCompletionChunk, groq_chunk.Choice, groq_chunk.ChoiceDelta),
    )  # fmt: skip


def together_chat() -> Wire:
    """Return Together's."""
    return _wire(
        "Together chat", "together", "together", ("Qwen/Qwen3.7-Plus", "a-model"),
        members(together_request.CompletionCreateParamsBase),
        (
            *(together_answer.ChatCompletion, together_answer.Choice, together_answer.ChatCompletionMessage),
            together_answer.ChatCompletionUsage,
        ),
        (together_chunk.ChatCompletionChunk, together_chunk.Choice, together_chunk.ChoiceDelta),
        beside={"logprobs": -0.5},  # without it the number of a token only repeats its text
    )  # fmt: skip


def openrouter_chat() -> Wire:
    """Return OpenRouter's."""
    return _wire(
        "OpenRouter chat", "openrouter", "openrouter", ("openai/gpt-4.1", "anthropic/claude-sonnet-4.5"),
        members(openrouter.ChatRequest),
        (openrouter.ChatResult, openrouter.ChatChoice, openrouter.ChatAssistantMessage, openrouter.ChatUsage),
        (openrouter.ChatStreamChunk, openrouter.ChatStreamChoice, openrouter.ChatStreamDelta),
        sent=kinds(openrouter.ChatContentItems),
    )  # fmt: skip


def zai_chat() -> Wire:
    """Return Z.AI's; the SDK's function has the parameters as arguments."""
    given = inspect.signature(ZaiCompletions.create).parameters
    own = ("self", "extra_headers", "extra_body", "timeout")
    return _wire(
        "Z.AI chat", "zai-sdk", "zai", ("glm-4.6", "glm-5"),
        {name: _sample_type(one.annotation) for name, one in given.items() if name not in own},
        (zai.Completion, zai.CompletionChoice, zai.CompletionMessage, zai.CompletionUsage),
        (zai.ChatCompletionChunk, zai.Choice, zai.ChoiceDelta),
    )  # fmt: skip


def _sample_type(hint: Any) -> Any:
    return str if isinstance(hint, str) else hint


def mistral_chat() -> Wire:
    """Return Mistral's."""
    return _wire(
        "Mistral chat", "mistralai", "mistral", ("mistral-large-latest", "magistral-medium-latest"),
        members(mistral.ChatCompletionRequest),
        (mistral.ChatCompletionResponse, mistral.ChatCompletionChoice, mistral.AssistantMessage, mistral.UsageInfo),
        (mistral.CompletionChunk, mistral.CompletionResponseStreamChoice, mistral.DeltaMessage),
        sent=kinds(mistral.ContentChunk),
    )  # fmt: skip
