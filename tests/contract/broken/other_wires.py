"""Defects of the other providers' adapters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import attrs

from interlingua.types.events import StreamEvent
from tests.contract.broken.answers import both_blocks, both_stops, both_usages, meta, without
from tests.contract.broken.machine import Mutant, in_body, in_chunks, in_data, in_events, in_message

Change = Callable[[dict[str, Any]], object]


def chat(name: str, rule: str, replaced: dict[str, Any]) -> Mutant:
    return Mutant(name, rule, replaced, "openai", "chat")


def responses(name: str, rule: str, replaced: dict[str, Any]) -> Mutant:
    return Mutant(name, rule, replaced, "openai", "responses")


def google(name: str, rule: str, replaced: dict[str, Any]) -> Mutant:
    return Mutant(name, rule, replaced, "google", "generate")


def interactions(name: str, rule: str, replaced: dict[str, Any]) -> Mutant:
    return Mutant(name, rule, replaced, "google", "interactions")


def ollama(name: str, rule: str, replaced: dict[str, Any]) -> Mutant:
    return Mutant(name, rule, replaced, "ollama")


def cohere(name: str, rule: str, replaced: dict[str, Any]) -> Mutant:
    return Mutant(name, rule, replaced, "cohere")


def mistral(name: str, rule: str, replaced: dict[str, Any]) -> Mutant:
    return Mutant(name, rule, replaced, "mistral")


def _each(field: str, change: Change) -> dict[str, Callable[..., Any]]:
    def changed(body: dict[str, Any]) -> None:
        for element in body[field]:
            change(element)

    return in_body(changed)


def _resorted(element: dict[str, Any]) -> None:
    for call in element.get("tool_calls", ()):
        arguments = call["function"]["arguments"]
        try:
            call["function"]["arguments"] = json.dumps(json.loads(arguments), sort_keys=True)
        except ValueError:
            call["function"]["arguments"] = "{}"


def _short_ids(element: dict[str, Any]) -> None:
    for call in element.get("tool_calls", ()):
        call["id"] = call["id"][:12]


def _results_last(body: dict[str, Any]) -> None:
    body["messages"].sort(key=lambda element: element["role"] == "tool")


def _merged_system(body: dict[str, Any]) -> None:
    late = [element for element in body["messages"] if element["role"] in ("system", "developer")]
    rest = [element for element in body["messages"] if element not in late]
    body["messages"] = [*late, *rest]


def _index_zero(value: Any) -> None:
    for choice in value.get("choices", ()) if isinstance(value, dict) else ():
        for call in (choice.get("delta") or {}).get("tool_calls") or ():
            call["index"] = 0
            call.pop("id", None)


def _no_choices_no_chunk(chunk: Any) -> Iterator[Any]:
    if b'"choices":[]' not in chunk.data.replace(b" ", b""):
        yield chunk


def _no_raw(event: StreamEvent) -> Iterator[StreamEvent]:
    if event.type != "raw_update":
        yield event


def _only_calls(body: dict[str, Any]) -> None:
    body["input"] = [item for item in body["input"] if item.get("type") != "reasoning"]


def _no_client_calls(body: dict[str, Any]) -> None:
    kinds = ("apply_patch_call", "shell_call", "computer_call")
    body["input"] = [item for item in body["input"] if item.get("type") not in kinds]


def _no_pictures(body: dict[str, Any]) -> None:
    body["input"] = [item for item in body["input"] if item.get("type") != "image_generation_call"]


def _no_environment(item: dict[str, Any]) -> None:
    item.pop("environment", None)


def _calls_after_results(body: dict[str, Any]) -> None:
    body["input"].sort(key=lambda item: item.get("type") == "function_call")


def _unsigned(element: dict[str, Any]) -> None:
    for part in element["parts"]:
        part.pop("thoughtSignature", None)


def _moved_signature(element: dict[str, Any]) -> None:
    parts = element["parts"]
    for one, other in pairwise(parts):
        if "thoughtSignature" in one:
            other["thoughtSignature"] = one.pop("thoughtSignature")
            return


def _model_is_user(element: dict[str, Any]) -> None:
    element["role"] = "user"


def _only_signed(step: dict[str, Any]) -> None:
    if step.get("type") == "thought":
        step.pop("signature", None)


def _one_thought(body: dict[str, Any]) -> None:
    """Leave a thought out before a call, as if calls had a signature."""
    steps = body["input"]
    body["input"] = [
        step
        for step, after in zip(steps, [*steps[1:], {}], strict=True)
        if (step["type"], after.get("type")) != ("thought", "function_call")
    ]


def _no_call_id(step: dict[str, Any]) -> None:
    step.pop("call_id", None)


def _escaped_twice(step: dict[str, Any]) -> None:
    if isinstance(step.get("result"), str):
        step["result"] = json.dumps(step["result"])


def _never_failed(step: dict[str, Any]) -> None:
    step.pop("is_error", None)


def _in_one_step(value: Any) -> None:
    if isinstance(value, dict) and value.get("event_type") == "step.delta" and value["index"] > 1:
        value["index"] = 1


def _all_signatures(value: Any) -> None:
    """Take an empty signature between summaries for the signature."""
    delta = value.get("delta") if isinstance(value, dict) else None
    if isinstance(delta, dict) and delta.get("type") == "thought_signature" and delta["signature"]:
        delta["signature"] = ""


def _placeholder(value: Any) -> None:
    """Take the arguments at a call's start for all there are."""
    if isinstance(value, dict) and (value.get("delta") or {}).get("type") == "arguments_delta":
        value["delta"] = {"type": "other"}


def _no_images(element: dict[str, Any]) -> None:
    element.pop("images", None)


def _spelled_out(element: dict[str, Any]) -> None:
    for call in element.get("tool_calls", ()):
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])


def _gone_on_with(body: dict[str, Any]) -> None:
    for element in body["messages"]:
        if element["role"] == "assistant" and not element.get("tool_calls"):
            element["prefix"] = True


def _last_gone_on_with(body: dict[str, Any]) -> None:
    """Take the user's word behind the last answer out, and let the service go on with that answer."""
    if [element["role"] for element in body["messages"][-2:]] == ["assistant", "user"]:
        del body["messages"][-1]
        body["messages"][-1]["prefix"] = True


def _last_dropped(inner: Callable[..., Any], **_: Any) -> Any:
    """Frame by lines and forget the one that no newline ends."""

    class Lines:
        def __init__(self) -> None:
            self.rest = b""

        def feed(self, data: bytes) -> list[Any]:
            from interlingua.plugins import WireChunk

            *whole, self.rest = (self.rest + data).split(b"\n")
            return [WireChunk("", line) for line in whole if line.strip()]

        def close(self) -> list[Any]:
            return []

    return attrs.evolve(inner(), framing=Lines)


def _no_error_events(chunk: Any) -> Iterator[Any]:
    if b'"error"' not in chunk.data:
        yield chunk


def _plan_is_content(element: dict[str, Any]) -> None:
    if plan := element.pop("tool_plan", None):
        element["content"] = [{"type": "text", "text": plan}, *element.get("content", ())]


def _newest_first(body: dict[str, Any]) -> None:
    if "documents" in body:
        body["documents"].reverse()


OTHER_WIRES = (
    chat("chat: arguments written anew", "C06", _each("messages", _resorted)),
    chat("chat: call ids cut, results not", "C05", _each("messages", _short_ids)),
    chat("chat: results behind everything", "C08", in_body(_results_last)),
    chat("chat: later system messages moved to the front", "C10", in_body(_merged_system)),
    chat("chat: all pieces of calls to index 0", "C16", in_data(_index_zero)),
    chat("chat: counts without choices passed over", "C21", in_chunks(_no_choices_no_chunk)),
    chat("chat: refusals not read", "C28", without("refusal")),
    chat("chat: cached tokens counted on top", "C38", both_usages(lambda usage: attrs.evolve(
        usage, input_tokens=usage.input_tokens and usage.input_tokens + (usage.cached_input_tokens or 0) + 1))),
    chat("chat: cut at the length, and called finished", "C37", both_stops({"max_tokens": "end_turn"})),  # type: ignore[dict-item]
    chat("chat: arguments parsed and not kept", "C16", both_blocks(
        lambda block: attrs.evolve(block, provider_id=None) if block.type == "tool_use" else block)),
    chat("chat: system prompt as the user's words", "C10", _each("messages", lambda element: element.update(
        role="user" if element["role"] in ("system", "developer") else element["role"]))),
    responses("responses: reasoning not sent back", "C16", in_body(_only_calls)),
    responses("responses: calls behind their results", "C09", in_body(_calls_after_results)),
    responses("responses: encrypted reasoning not read", "C28", without("encrypted_content")),
    responses("responses: replay state of streams lost", "C16", in_events(_no_raw)),
    responses("responses: errors passed over", "C34", in_chunks(_no_error_events)),
    responses("responses: the operation of a patch not read", "C95", without("operation")),
    responses("responses: the actions at a computer not read", "C95", without("actions")),
    responses("responses: generated pictures not read", "C95", without("result")),
    responses("responses: calls of the caller not sent back", "C94", in_body(_no_client_calls)),
    responses("responses: generated pictures not sent back", "C94", in_body(_no_pictures)),
    responses("responses: where a shell runs not sent back", "C94", _each("input", _no_environment)),
    google("google: signatures not sent back", "C16", _each("contents", _unsigned)),
    google("google: a signature on the next part", "C16", _each("contents", _moved_signature)),
    google("google: the model's words as the user's", "C53", _each("contents", _model_is_user)),
    google("google: signatures not read", "C28", without("thoughtSignature")),
    google("google: thoughts not counted", "C38", both_usages(lambda usage: attrs.evolve(
        usage, reasoning_tokens=None))),
    google("google: the catalogue's word for length unknown", "C37", both_stops({"max_tokens": "other"})),  # type: ignore[dict-item]
    google("google: a blocked prompt passed over", "C37", without("promptFeedback")),
    interactions("interactions: signatures not sent back", "C16", _each("input", _only_signed)),
    interactions("interactions: thoughts before calls left out", "C16", in_body(_one_thought)),
    interactions("interactions: results without the call's id", "C52", _each("input", _no_call_id)),
    interactions("interactions: results escaped twice", "C90", _each("input", _escaped_twice)),
    interactions("interactions: failed results like others", "C53", _each("input", _never_failed)),
    interactions("interactions: pieces of calls in the first call", "C21", in_data(_in_one_step)),
    interactions("interactions: empty signatures replace others", "C28", in_data(_all_signatures)),
    interactions("interactions: arguments of a call's start", "C21", in_data(_placeholder)),
    interactions("interactions: annotations not read", "C28", without("annotations")),
    interactions("interactions: steps of server tools not kept", "C28", both_blocks(
        lambda block: attrs.evolve(block, data={"type": block.kind}) if block.type == "opaque" else block)),
    interactions("interactions: thoughts not counted", "C80", without("total_thought_tokens")),
    interactions("interactions: tokens of tools not counted", "C80", without("total_tool_use_tokens")),
    interactions("interactions: a cut answer called finished", "C95", both_stops({"max_tokens": "end_turn"})),  # type: ignore[dict-item]
    interactions("interactions: errors passed over", "C34", in_chunks(_no_error_events)),
    mistral("mistral: a prefix that stays where it was", "C52", in_body(_gone_on_with)),
    mistral("mistral: a prefix while nothing follows", "C04", in_body(_last_gone_on_with)),
    cohere("cohere: the plan sent back as the answer's text", "C16", _each("messages", _plan_is_content)),
    cohere("cohere: the newest document first", "C04", in_body(_newest_first)),
    cohere("cohere: the plan not read", "C28", without("tool_plan")),
    cohere("cohere: citations not read", "C28", without("citations")),
    cohere("cohere: billed tokens for all there are", "C38", both_usages(lambda usage: attrs.evolve(
        usage, input_tokens=(usage.extra_units or {}).get("billed_input", usage.input_tokens)))),
    ollama("ollama: pictures left out", "C11", _each("messages", _no_images)),
    ollama("ollama: arguments as a text", "C52", _each("messages", _spelled_out)),
    ollama("ollama: the last line without its newline lost", "C23", {"connection": _last_dropped}),
    ollama("ollama: error lines passed over", "C34", in_chunks(_no_error_events)),
    ollama("ollama: thinking not read", "C28", without("thinking")),
    ollama("ollama: the length limit reported as the end", "C37", both_stops({"max_tokens": "end_turn"})),  # type: ignore[dict-item]
    ollama("ollama: the word of the wire not kept", "C36", in_message(lambda message: meta(
        message, stop_reason_raw=None))),
)  # fmt: skip
