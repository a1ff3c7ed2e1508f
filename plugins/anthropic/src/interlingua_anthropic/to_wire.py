"""Canonical conversation -> one request of the Messages API.

Never holds a key and never reads the clock; the conversation's bytes come from `turns`, this module adds the rest.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.json import FrozenDict, dumps
from interlingua.plugins.encoding import Json, json_object
from interlingua.plugins.wire import Loss, WireRequest, message_loss, option_loss
from interlingua.types.messages import Message, StopReason
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition
from interlingua_anthropic import binding
from interlingua_anthropic.catalogue import API, capabilities_of, facts_of
from interlingua_anthropic.schema import to_wire_schema
from interlingua_anthropic.service import SAMPLING_VERSION
from interlingua_anthropic.thinking import to_wire_thinking
from interlingua_anthropic.tools import (
    is_forced,
    to_wire_tool_choice,
    to_wire_tools,
    tools_of_history,
    with_service_tools,
)
from interlingua_anthropic.turns import Spent, to_wire_turns

# Above 21,333 tokens the service wants a stream (sheet §9); an answer that is not streamed stays well below.
_UNSTREAMED_DEFAULT = 16_384
_ROOM_TO_ANSWER = 4096  # above a thinking budget the caller set
_SAMPLING = ("temperature", "top_p", "top_k")
MAX_BODY = 32 * 1024 * 1024  # sheet §1
_HEADERS = {
    "anthropic_version": "anthropic-version",
    "betas": "anthropic-beta",
    "workspace_id": "anthropic-workspace-id",
    "user_profile_id": "anthropic-user-profile-id",
}


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions) -> WireRequest:
    """Write the request.

    `options.provider_options` are laid over the body, with exceptions: `tools` (the service's own, sheet §8) stand
    behind the declared ones, and `betas` (a list), `anthropic_version`, `workspace_id` and `user_profile_id` are
    headers (sheet §1).

    Raises:
        CapabilityError: something was asked that this model refuses, or the request is too large.
    """
    facts = facts_of(options.model)
    losses: list[Loss] = []
    extra: dict[str, Any] = dict(options.provider_options)
    headers = _headers(extra)
    max_tokens = _max_tokens(options)
    fields: dict[str, Json] = {"model": dumps(options.model), "max_tokens": dumps(max_tokens)}
    prefix = _conversation(messages, tools, extra.pop("tools", None) or (), options, fields, losses)
    thinking = _thinking(options, facts, max_tokens, fields, losses)
    _sampling(options, facts, fields, headers, losses, thinks=thinking)
    _others(options, fields, losses)
    fields.update({name: dumps(value) for name, value in extra.items()})
    body = json_object(fields)
    if len(body) > MAX_BODY:
        raise CapabilityError(f"the request has {len(body):,} bytes and this wire takes {MAX_BODY:,}", path="messages")
    return WireRequest(
        path="/v1/messages",
        headers=headers,
        body=body,
        losses=tuple(losses),
        api=API,
        stream=options.stream,
        echo={"prefix": prefix} if prefix else {},
    )


def _conversation(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    own: Sequence[Any],
    options: AdapterOptions,
    fields: dict[str, Json],
    losses: list[Loss],
) -> str:
    """Write tools, system, messages and the choice; return the digest of the prefix where thinking is bound to it."""
    facts = facts_of(options.model)
    if tools or own:
        written = to_wire_tools(tools, losses) if tools else None
        written = with_service_tools(written, own) if own else written
    else:
        written = tools_of_history(messages)
    if written is not None:
        fields["tools"] = written.sent
    head = written.plain if written is not None else b""
    prefix, stale = binding.check(messages, head) if facts.get("thinking_bound_to_prefix") else ("", None)
    turns = to_wire_turns(messages, written.spent if written is not None else Spent(), stale)
    losses.extend(turns.losses)
    if turns.system is not None:
        fields["system"] = turns.system
    fields["messages"] = turns.messages
    _prefill(messages, turns.ends_with, facts, losses)
    if not (tools or own) and is_forced(options):
        raise CapabilityError("a call is demanded and there are no tools", path="options.tool_choice")
    if written is not None:
        choice = to_wire_tool_choice(options, facts, losses) if tools or own else {"type": "none"}
        if choice is not None:
            fields["tool_choice"] = dumps(choice)
    return prefix


def _headers(extra: dict[str, Any]) -> dict[str, str]:
    headers = {"content-type": "application/json"}
    for option, header in _HEADERS.items():
        if (value := extra.pop(option, None)) is not None:
            headers[header] = value if isinstance(value, str) else ",".join(value)
    if any(name in extra for name in _SAMPLING):
        headers.setdefault("anthropic-version", SAMPLING_VERSION)
    return headers


def _max_tokens(options: AdapterOptions) -> int:
    """This wire requires it; the default is the model's most, held back where the answer is not streamed."""
    if options.max_tokens is not None:
        return options.max_tokens
    most = capabilities_of(options.model).max_output_tokens
    if options.stream:
        return most
    return min(most, max(_UNSTREAMED_DEFAULT, (options.thinking_budget or 0) + _ROOM_TO_ANSWER))


def _thinking(
    options: AdapterOptions, facts: FrozenDict, max_tokens: int, fields: dict[str, Json], losses: list[Loss]
) -> bool:
    """Write thinking, effort and the answer's schema; return True when sampling must step back for thinking."""
    thinking, effort = to_wire_thinking(options, facts, max_tokens, losses)
    if thinking is not None and thinking["type"] == "enabled" and is_forced(options):
        losses.append(option_loss("thinking", "dropped", "a forced tool choice is refused together with it"))
        thinking = None
    output: dict[str, Any] = {}
    if thinking is not None:
        fields["thinking"] = dumps(thinking)
    if effort is not None:
        output["effort"] = effort
    if options.response_schema is not None:
        output["format"] = {"type": "json_schema", "schema": to_wire_schema(options.response_schema, losses)}
    if output:
        fields["output_config"] = dumps(output)
    if thinking is None:
        return facts.get("thinking_omitted") in ("always", "on")
    return bool(thinking["type"] != "disabled")


def _sampling(
    options: AdapterOptions,
    facts: FrozenDict,
    fields: dict[str, Json],
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
        if not facts.get("sampling", not facts):  # a model this catalogue does not know is given the benefit
            losses.append(option_loss(name, "dropped", "this model refuses sampling parameters"))
        elif headers.get("anthropic-version", SAMPLING_VERSION) != SAMPLING_VERSION:
            losses.append(option_loss(name, "dropped", "the version asked for refuses sampling parameters"))
        elif thinks:
            losses.append(option_loss(name, "dropped", "sampling parameters are refused while thinking"))
        else:
            fields[name] = dumps(value)
            headers.setdefault("anthropic-version", SAMPLING_VERSION)


def _others(options: AdapterOptions, fields: dict[str, Json], losses: list[Loss]) -> None:
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
    losses.append(message_loss(len(messages) - 1, reason))
