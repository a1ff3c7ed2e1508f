"""Canonical conversation -> one request of the Messages API.

Never holds a key and never reads the clock; the conversation's bytes come from `turns`, this module adds the rest.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.fragments import json_object
from interlingua.jsontext import FrozenDict, dumps
from interlingua.messages import Message, StopReason
from interlingua.options import AdapterOptions
from interlingua.tools import ToolDefinition
from interlingua.wire import Loss, WireRequest
from interlingua_anthropic import binding
from interlingua_anthropic.catalogue import API, capabilities_of, facts_of
from interlingua_anthropic.schema import to_wire_schema
from interlingua_anthropic.service import SAMPLING_VERSION
from interlingua_anthropic.thinking import option_loss, to_wire_thinking
from interlingua_anthropic.tools import to_wire_tool_choice, to_wire_tools, tools_of_history
from interlingua_anthropic.turns import elements_of, to_wire_turns

# Above 21,333 tokens the service wants a stream (sheet §9); an answer that is not streamed stays well below.
_UNSTREAMED_DEFAULT = 16_384
_SAMPLING = ("temperature", "top_p", "top_k")
_BYTES_PER_TOKEN = 3.6


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions) -> WireRequest:
    """Write the request.

    `options.provider_options` are laid over the body; three names in it are headers or settings of this adapter:
    `betas` (list) and `anthropic_version`.

    Raises:
        CapabilityError: something was asked that this model refuses.
    """
    facts = facts_of(options.model)
    losses: list[Loss] = []
    extra: dict[str, Any] = dict(options.provider_options)
    headers = _headers(extra)
    max_tokens = _max_tokens(options)
    fields: dict[str, bytes] = {"model": dumps(options.model), "max_tokens": dumps(max_tokens)}
    written, marks = to_wire_tools(tools, losses) if tools else (tools_of_history(messages), 0)
    if written is not None:
        fields["tools"] = written
    prefix, stale = binding.check(messages, written or b"") if facts.get("thinking_bound_to_prefix") else ("", None)
    turns = to_wire_turns(messages, marks, stale)
    losses.extend(turns.losses)
    if turns.system is not None:
        fields["system"] = turns.system
    fields["messages"] = turns.messages
    _prefill(messages, turns.ends_with, facts, losses)
    if written is not None:
        choice = to_wire_tool_choice(options, facts, losses) if tools else {"type": "none"}
        if choice is not None:
            fields["tool_choice"] = dumps(choice)
    thinking = _thinking(options, facts, max_tokens, fields, losses)
    _sampling(options, facts, fields, headers, losses, thinks=thinking)
    _others(options, fields, losses)
    fields.update({name: dumps(value) for name, value in extra.items()})
    return WireRequest(
        path="/v1/messages",
        headers=headers,
        body=json_object(fields),
        losses=tuple(losses),
        api=API,
        stream=options.stream,
        echo={"prefix": prefix} if prefix else {},
    )


def _headers(extra: dict[str, Any]) -> dict[str, str]:
    headers = {"content-type": "application/json"}
    if (version := extra.pop("anthropic_version", None)) is not None:
        headers["anthropic-version"] = str(version)
    if betas := extra.pop("betas", None):
        headers["anthropic-beta"] = ",".join(betas)
    return headers


def _max_tokens(options: AdapterOptions) -> int:
    """This wire requires it; the default is the model's most, held back where the answer is not streamed."""
    if options.max_tokens is not None:
        return options.max_tokens
    most = capabilities_of(options.model).max_output_tokens
    return most if options.stream else min(most, _UNSTREAMED_DEFAULT)


def _thinking(
    options: AdapterOptions, facts: FrozenDict, max_tokens: int, fields: dict[str, bytes], losses: list[Loss]
) -> bool:
    """Write thinking, effort and the answer's schema; return True when sampling must step back for thinking."""
    thinking, effort = to_wire_thinking(options, facts, max_tokens, losses)
    output: dict[str, Any] = {}
    if thinking is not None:
        fields["thinking"] = dumps(thinking)
    if effort is not None:
        output["effort"] = effort
    if options.response_schema is not None:
        output["format"] = {"type": "json_schema", "schema": to_wire_schema(options.response_schema, losses)}
    if output:
        fields["output_config"] = dumps(output)
    return thinking is not None and thinking["type"] != "disabled"


def _sampling(
    options: AdapterOptions,
    facts: FrozenDict,
    fields: dict[str, bytes],
    headers: dict[str, str],
    losses: list[Loss],
    *,
    thinks: bool,
) -> None:
    """Send sampling only to models that honour it, pinning the version that still takes it (sheet §1)."""
    for name in _SAMPLING:
        value = getattr(options, name)
        if value is None:
            continue
        if facts.get("sampling") is False:
            losses.append(option_loss(name, "dropped", "this model refuses sampling parameters"))
        elif thinks:
            losses.append(option_loss(name, "dropped", "sampling parameters are refused while thinking"))
        else:
            fields[name] = dumps(value)
            headers.setdefault("anthropic-version", SAMPLING_VERSION)


def _others(options: AdapterOptions, fields: dict[str, bytes], losses: list[Loss]) -> None:
    if options.stop:
        fields["stop_sequences"] = dumps(options.stop)
    if options.user_id is not None:
        fields["metadata"] = dumps({"user_id": options.user_id})
    if options.stream:
        fields["stream"] = b"true"
    if options.seed is not None:
        losses.append(option_loss("seed", "dropped", "this wire has no seed"))


def _prefill(messages: Sequence[Message], ends_with: str | None, facts: FrozenDict, losses: list[Loss]) -> None:
    """Say before the service does that this model continues no assistant text (REGRESSIONS case 40)."""
    if ends_with != "assistant" or facts.get("prefill") is not False:
        return
    if messages[-1].metadata.stop_reason is StopReason.PAUSE_TURN:
        return  # continuing a paused turn is the one case where the history ends so (sheet §7)
    reason = "the history ends with an assistant message, which this model answers with 400; add a user message"
    losses.append(Loss(path=f"messages[{len(messages) - 1}]", block_type="message", verdict="rewritten", reason=reason))


def estimate_input_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """Estimate by bytes: 3.6 bytes a token plus 8 a message; within -40 % and +60 % of recorded text requests."""
    size = sum(len(elements_of(message).joined) for message in messages)
    size += len(to_wire_tools(tools, [])[0]) if tools else 0
    return int(size / _BYTES_PER_TOKEN) + 8 * len(messages)
