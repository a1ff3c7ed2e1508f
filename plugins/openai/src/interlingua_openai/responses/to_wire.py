"""Canonical conversation -> one request of the Responses API (sheet openai_responses §2).

Never holds a key and never reads the clock; the conversation's bytes come from `input`, this module adds the rest.
The plugin object and its auxiliary exchanges come in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import FrozenDict, Loss, WireRequest, concat_arrays, dumps, json_object, option_loss
from interlingua.types import DEFAULT_SESSION, AdapterOptions, Message, ToolDefinition
from interlingua_chat_completions.cache_markers import cache_key
from interlingua_chat_completions.tools import STRICT_OPTION, to_wire_strict_tools
from interlingua_openai.catalogue import RESPONSES, facts_of
from interlingua_openai.responses.input import to_wire_input
from interlingua_openai.responses.reasoning import to_wire_reasoning, to_wire_sampling
from interlingua_openai.responses.tools import to_wire_format, to_wire_tool_choice, to_wire_tools

_ABSENT = ("stop", "seed", "top_k")
_USER_ID_LENGTH = 128


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions) -> WireRequest:
    """Write the request: stateless by default (`store` false, reasoning comes back encrypted, REGRESSIONS case 05).

    `options.provider_options` are laid over the body; the objects `reasoning` and `text` are merged one level deep, and
    `tools` (the service's own, sheet §2) stand behind the declared ones. `strict_tools` is no field: it makes tools
    strict.
    """
    facts = facts_of(options.model)
    losses: list[Loss] = []
    conversation = to_wire_input(messages, options.model)
    losses.extend(conversation.losses)
    fields: dict[str, Any] = {}
    reasoning = to_wire_reasoning(options, facts, losses)
    fields.update(to_wire_sampling(options, facts, reasoning.get("effort"), losses))
    if options.max_tokens is not None:
        fields["max_output_tokens"] = options.max_tokens
    if reasoning:
        fields["reasoning"] = reasoning
    if options.response_schema is not None:
        fields["text"] = {"format": to_wire_format(options, losses)}
    _choices(options, tools, fields, losses)
    _others(options, facts, fields, losses)
    if (conversation.hinted or any(tool.cache for tool in tools)) and messages[0].session_id != DEFAULT_SESSION:
        fields["prompt_cache_key"] = cache_key(messages[0].session_id)
    strict = to_wire_strict_tools(tools, options.provider_options.get(STRICT_OPTION))
    _lay_over(fields, options.provider_options)
    fields.pop(STRICT_OPTION, None)
    body = {"model": dumps(options.model)}
    own = dumps(fields.pop("tools", None) or [])
    if tools or own != b"[]":
        body["tools"] = concat_arrays(to_wire_tools(tools, strict, losses), own)
    if conversation.instructions is not None:
        body["instructions"] = dumps(conversation.instructions)
    body["input"] = conversation.items
    body.update({name: dumps(value) for name, value in fields.items()})
    return WireRequest(
        path="/responses",
        headers={"content-type": "application/json"},
        body=json_object(body),
        losses=tuple(losses),
        api=RESPONSES,
        stream=options.stream,
        echo=strict.echo,
    )


def _choices(
    options: AdapterOptions, tools: Sequence[ToolDefinition], fields: dict[str, Any], losses: list[Loss]
) -> None:
    """Both are about tools, and a request without tools may not carry them."""
    for name in ("tool_choice", "parallel_tool_calls"):
        value = getattr(options, name)
        if value is None:
            continue
        if not tools and "tools" not in options.provider_options:
            if value != "none":
                losses.append(option_loss(name, "dropped", "the request has no tools"))
        else:
            fields[name] = to_wire_tool_choice(value) if name == "tool_choice" else value


def _others(options: AdapterOptions, facts: FrozenDict, fields: dict[str, Any], losses: list[Loss]) -> None:
    fields["store"] = False
    if facts.get("reasoning") != "none":  # asked of a model that does not reason it would be an error
        fields["include"] = ["reasoning.encrypted_content"]
    if options.stream:
        fields["stream"] = True
    if options.user_id is not None:
        if len(options.user_id) <= _USER_ID_LENGTH:
            fields["safety_identifier"] = options.user_id
        else:
            losses.append(option_loss("user_id", "dropped", f"longer than {_USER_ID_LENGTH} characters"))
    for name in _ABSENT:
        if getattr(options, name) not in (None, ()):
            losses.append(option_loss(name, "dropped", f"this wire has no {name}"))


def _lay_over(fields: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for name, value in extra.items():
        ours = fields.get(name)
        merge = name in ("reasoning", "text") and isinstance(ours, dict) and isinstance(value, Mapping)
        fields[name] = {**ours, **value} if merge and ours is not None else value
