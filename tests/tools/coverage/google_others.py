"""The words of Google's two APIs, and of Bedrock, Cohere and Ollama, from their SDKs' types."""

from __future__ import annotations

import inspect
from typing import Any

import botocore.session
import cohere
import cohere.v2.raw_client as cohere_client
import cohere.v2.types as cohere_types
import google.genai.types as google
import ollama._types as ollama
from google import genai
from google.genai import interactions
from google.genai import models as google_models

from tests.tools.coverage.sdk_types import kinds, members
from tests.tools.coverage.wire import Event, Part, Wire, flat

_NOT_SENT = ("httpOptions", "shouldReturnHttpResponse", "automaticFunctionCalling", "automaticContinuation")


def generate_api() -> Wire:
    """Return generateContent; the SDK writes its flat configuration into several objects, which it is asked for."""
    content = {"role": "model", "parts": [{"text": "Hello."}]}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    answer: Event = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage,
        "modelVersion": "gemini-3-pro-preview", "responseId": "r1",
    }  # fmt: skip
    parts = (
        Part("", (), _shown(google.GenerateContentResponse)),
        Part("candidates[]", ("candidates", 0), _shown(google.Candidate)),
        Part("usageMetadata", ("usageMetadata",), _shown(google.GenerateContentResponseUsageMetadata)),
    )
    return Wire(
        name="Gemini generateContent", sdk="google-genai", key="google", api="generate",
        models=("gemini-3-pro-preview", "gemini-2.5-flash"),
        parameters=_generate_parameters(),
        sent=_parts(), tools=members(google.Tool), keyed=True,
        answer=answer, parts=parts, blocks=_parts(), content=("candidates", 0, "content", "parts"),
        stream=(answer,), chunks=[(0, parts)],
    )  # fmt: skip


def _shown(hint: Any) -> dict[str, Any]:
    """Return the members that come from the service, without those that the SDK adds."""
    added = ("sdkHttpResponse", "automaticFunctionCallingHistory", "parsed")
    return {name: one for name, one in members(hint).items() if name not in added}


def _parts() -> dict[str, Any]:
    return members(google.Part)


def _generate_parameters() -> dict[str, Any]:
    """Return the members of a body, each found by letting the SDK write one field of its configuration."""
    api = genai.Client(api_key="none")._api_client
    config = google.GenerateContentConfig.model_fields
    found: dict[str, Any] = {"model": str, "contents": list[Any]}
    for (name, hint), field in zip(members(google.GenerateContentConfig).items(), config, strict=True):
        if name in _NOT_SENT:
            continue
        parent: dict[str, Any] = {}
        try:
            inner = google_models._GenerateContentConfig_to_mldev(api, {field: _raw(name)}, parent)
        except ValueError as error:
            if "not supported" in str(error) or "only supported" in str(error):
                continue  # the SDK itself refuses it for this service
            raise
        except (AttributeError, TypeError):
            inner, parent = {name: None}, {}
        found |= dict.fromkeys(parent, hint) | {f"generationConfig.{one}": hint for one in inner}
    more = members(google.GenerationConfig)
    return found | {
        f"generationConfig.{name}": hint for name, hint in more.items() if f"generationConfig.{name}" not in found
    }


def _raw(name: str) -> Any:
    return (
        [] if name in ("tools", "safetySettings") else {"parts": [{"text": "s"}]} if name == "systemInstruction" else {}
    )


def interactions_api() -> Wire:
    """Return the Interactions API."""
    step = {"type": "model_output", "content": [{"type": "text", "text": "Hello."}]}
    usage = {"total_input_tokens": 5, "total_output_tokens": 7, "total_tokens": 12}
    answer: Event = {
        "id": "i1", "object": "interaction", "model": "gemini-3-pro-preview", "status": "completed", "steps": [step],
        "usage": usage,
    }  # fmt: skip
    opened = {"id": "i1", "status": "in_progress", "model": "gemini-3-pro-preview"}
    closed = {name: value for name, value in answer.items() if name != "steps"}
    added = ("continuation_ids", "output_audio", "output_image", "output_text", "output_video")  # by the SDK
    interaction = {name: one for name, one in members(interactions.Interaction).items() if name not in added}
    streamed = {name: one for name, one in interaction.items() if name != "steps"}  # which have their own events
    parameters = members(interactions.CreateModelInteractionParam) | members(interactions.CreateAgentInteractionParam)
    return Wire(
        name="Gemini Interactions", sdk="google-genai", key="google", api="interactions",
        models=("gemini-3-pro-preview", "gemini-2.5-flash"),
        parameters=flat(parameters, "generation_config"),
        sent=kinds(interactions.Content) | kinds(interactions.Step), tools=kinds(interactions.Tool),
        answer=answer,
        parts=(Part("", (), interaction), Part("usage", ("usage",), members(interactions.Usage))),
        echoed=True,
        blocks=kinds(interactions.Step), content=("steps",),
        stream=(
            {"event_type": "interaction.created", "interaction": opened, "event_id": "e0"},
            {"event_type": "step.start", "index": 0, "step": {"type": "model_output", "content": []}, "event_id": "e1"},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hello."}, "event_id": "e2"},
            {"event_type": "step.stop", "index": 0, "event_id": "e3"},
            {"event_type": "interaction.completed", "interaction": closed, "event_id": "e4"},
        ),
        chunks=[
            (0, (Part("interaction.created", ("interaction",), streamed),)),
            (3, (Part("step.stop", (), members(kinds(interactions.InteractionSSEEvent, "event_type")["step.stop"])),)),
            (4, (Part("interaction.completed", ("interaction",), streamed),)),
        ],
        stream_block=_step_events,
        events=kinds(interactions.InteractionSSEEvent, "event_type"), event_name="event_type",
        deltas={kind: (hint, _around_step(kind)) for kind, hint in kinds(interactions.StepDeltaData).items()},
    )  # fmt: skip


def _step_events(step: Event, *deltas: Event) -> list[Event]:
    return [
        {"event_type": "step.start", "index": 1, "step": step, "event_id": "e5"},
        *({"event_type": "step.delta", "index": 1, "delta": delta, "event_id": "e6"} for delta in deltas),
        {"event_type": "step.stop", "index": 1, "event_id": "e7"},
    ]


def _around_step(kind: str) -> Any:
    others = {"arguments_delta": "function_call", "thought_signature": "thought", "thought_summary": "thought"}
    own = kind if kind in kinds(interactions.Step) else others.get(kind, "model_output")
    call = {"id": "c1", "name": "look_up", "arguments": {}} if own == "function_call" else {}
    return lambda delta: _step_events({"type": own, **call}, delta)


def converse_api() -> Wire:
    """Return Bedrock's Converse."""
    service = botocore.session.Session().get_service_model("bedrock-runtime")
    asked, stream = service.operation_model("Converse"), service.operation_model("ConverseStream").output_shape
    sent, said = members(asked.input_shape), members(asked.output_shape)
    block = members(service.shape_for("ContentBlock"))
    events = {name: one for name, one in members(stream.members["stream"]).items() if not name.endswith("Exception")}
    answer: Event = {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hello."}]}}, "stopReason": "end_turn",
        "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}, "metrics": {"latencyMs": 3},
    }  # fmt: skip
    metadata = {"usage": answer["usage"], "metrics": answer["metrics"]}
    return Wire(
        name="Bedrock Converse", sdk="botocore", key="bedrock", api="converse",
        models=("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-pro-v1:0"),
        parameters=flat(sent, "inferenceConfig"), keyed=True,
        sent=block, tools=members(service.shape_for("Tool")),
        answer=answer,
        parts=(Part("", (), said), Part("usage", ("usage",), members(said["usage"]))),
        blocks=block, content=("output", "message", "content"),
        stream=(
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hello."}}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": metadata},
        ),
        event_at=3, framing="aws",
        chunks=[
            (3, (Part("messageStop", ("messageStop",), members(events["messageStop"])),)),
            (4, (Part("metadata", ("metadata",), members(events["metadata"])),)),
        ],
        events=events,
        deltas={
            kind: (hint, _around_delta(kind))
            for kind, hint in members(service.shape_for("ContentBlockDelta")).items()
        },
    )  # fmt: skip


def _around_delta(kind: str) -> Any:
    starts = {
        "toolUse": {"toolUse": {"toolUseId": "t1", "name": "look_up"}},
        "toolResult": {"toolResult": {"toolUseId": "t1"}},
        "image": {"image": {"format": "png"}},
    }
    begun = [{"contentBlockStart": {"contentBlockIndex": 1, "start": starts[kind]}}] if kind in starts else []
    place = {"contentBlockIndex": 1}
    return lambda delta: [*begun, {"contentBlockDelta": {**place, "delta": delta}}, {"contentBlockStop": place}]


def cohere_api() -> Wire:
    """Return Cohere's chat, version 2; the SDK has types of a body's fields: they are its function's arguments."""
    given = inspect.signature(cohere_client.RawV2Client.chat, eval_str=True).parameters.items()
    message = {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}
    counts = {"input_tokens": 5, "output_tokens": 7}
    events = kinds(cohere_types.V2ChatStreamResponse)
    answer: Event = {
        "id": "c1", "finish_reason": "COMPLETE", "message": message,
        "usage": {"billed_units": counts, "tokens": dict(counts)},
    }  # fmt: skip
    more = {"function": {"arguments": "{}"}}
    call = {"id": "t1", "type": "function", "function": {"name": "look_up", "arguments": ""}}
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": answer["usage"]}}
    return Wire(
        name="Cohere chat v2", sdk="cohere", key="cohere", api="chat-v2",
        models=("command-a-plus-05-2026", "command-a-03-2025"),
        parameters={n: one.annotation for n, one in given if n not in ("self", "request_options")} | {"stream": bool},
        sent=kinds(cohere.Content), tools={"function": cohere.ToolV2},
        answer=answer,
        parts=(
            Part("", (), members(cohere_types.V2ChatResponse)),
            Part("message", ("message",), members(cohere.AssistantMessageResponse)),
            Part("usage", ("usage",), members(cohere.Usage)),
            Part("usage.tokens", ("usage", "tokens"), members(cohere.UsageTokens)),
            Part("usage.billed_units", ("usage", "billed_units"), members(cohere.UsageBilledUnits)),
        ),
        blocks=kinds(cohere.AssistantMessageResponseContentItem), content=("message", "content"),
        stream=(
            {"type": "message-start", "id": "c1", "delta": {"message": {"role": "assistant"}}},
            {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Hello."}}}},
            {"type": "content-end", "index": 0},
            {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": call}}},
            {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": more}}},
            {"type": "tool-call-end", "index": 0},
            end,
        ),
        chunks=[
            (0, (Part("message-start", (), {"id": str}),)),
            (2, (Part("content-delta", (), members(events["content-delta"])),)),
            (7, (Part("message-end.delta", ("delta",), members(members(events["message-end"])["delta"])),)),
        ],
        events=events,
    )  # fmt: skip


def ollama_api() -> Wire:
    """Return Ollama's chat."""
    answer: Event = {
        "model": "gpt-oss:20b", "created_at": "2026-11-01T00:00:00Z", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "Hello."}, "prompt_eval_count": 5, "eval_count": 7,
    }  # fmt: skip
    parts = (
        Part("", (), members(ollama.ChatResponse)),
        Part("message", ("message",), members(ollama.Message) | {"images": list[str]}),  # the SDK's own class else
    )
    return Wire(
        name="Ollama chat", sdk="ollama", key="ollama", api="chat-native", models=("gpt-oss:20b", "qwen3:8b"),
        parameters=members(ollama.ChatRequest) | {f"options.{n}": one for n, one in members(ollama.Options).items()},
        answer=answer, parts=parts, stream=(answer,), chunks=[(0, parts)], framing="ndjson",
        tools={"function": ollama.Tool},
    )  # fmt: skip
