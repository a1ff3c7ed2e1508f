"""A conversation, tools and options -> one request of Converse or ConverseStream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    FrozenDict,
    Json,
    Loss,
    WireRequest,
    dumps,
    json_array,
    json_object,
    message_loss,
    option_loss,
    quote_model,
    thaw,
)
from interlingua.types import (
    DocumentBlock,
    ImageBlock,
    Message,
    RequestOptions,
    ToolChoice,
    ToolDefinition,
    ToolUseBlock,
)
from interlingua_anthropic.claude_tools import ECHO, fit_choice, fit_citations, fit_tools, rename_calls
from interlingua_bedrock.messages import (
    MAX_POINTS,
    ConverseParts,
    SpentPoints,
    cache_point,
    encode_messages,
    fit_ttl,
    to_wire_turns,
)
from interlingua_bedrock.models import API, Family, capabilities_of, facts_of, family_of
from interlingua_bedrock.reasoning import ReasoningConfig, to_wire_reasoning

_SECTIONS = ("inferenceConfig", "additionalModelRequestFields", "outputConfig")
OWN_THINKING = "own_thinking"
"""In a request's echo: the caller set Claude's `thinking`, and what it does with thinking of other conversations."""
_BYTES_PER_TOKEN = 3.6
_PER_MESSAGE = 8
_PER_IMAGE = 1600
_FOR_TOOLS = 300  # (WIRE.md, Usage)
_BYTES_PER_TOKEN_OF_DOCUMENT = 40


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions) -> WireRequest:
    """Write the request.

    `options.provider_options` are merged over the body; members of `inferenceConfig`, `additionalModelRequestFields`,
    `outputConfig` and `toolConfig` replace single members, and `toolConfig.tools` and `anthropic_beta` are appended to
    the plugin's own.

    Raises:
        CapabilityError: the model rejects an option.
    """
    facts, family = facts_of(options.model), family_of(options.model)
    losses: list[Loss] = []
    names: Mapping[str, Mapping[str, str]] = {}
    if facts.get("forced_tool_choice") is False:
        service_tools = bool((options.provider_options.get("toolConfig") or {}).get("tools"))
        tools, options = fit_choice(tools, options, losses, service_tools=service_tools)
    if tools and family.reasoning == "claude":
        tools, names, rows = fit_tools(tools)
        messages = rename_calls(messages, names)
        losses += rows
    if family.reasoning == "claude":
        messages = fit_citations(messages, losses, answer_schema=options.response_schema is not None)
    extra: dict[str, Any] = thaw(options.provider_options)
    own_thinking = "thinking" in (extra.get("additionalModelRequestFields") or {})
    reasoning = to_wire_reasoning(messages, options, facts, family, losses, own_thinking=own_thinking)
    own_tools = extra.pop("toolConfig", None) or {}
    tool_config, spent = _tool_config(messages, tools, own_tools, options, facts, family, losses)
    turns = to_wire_turns(
        messages,
        family,
        spent,
        reasoning.bare,
        thoughts_alone=family.reasoning != "claude" or facts.get("prefill") is True,
    )
    losses += turns.losses
    _note_prefill(messages, turns.ends_with, facts, losses)
    if family.reasoning == "claude" and options.response_schema is not None:
        from interlingua_anthropic.request import check_prefill  # noqa: PLC0415  for Claude alone

        check_prefill(messages, turns.ends_with, options)
    sections: dict[str, dict[str, Any]] = {
        "inferenceConfig": _inference(options, facts, family, reasoning, losses),
        "additionalModelRequestFields": _more(options, facts, family, reasoning, losses),
        "outputConfig": _output(options, reasoning, losses),
    }
    more = sections["additionalModelRequestFields"]
    betas = more.get("anthropic_beta", ())
    for name in _SECTIONS:
        sections[name].update(extra.pop(name, None) or {})
    if betas:  # the caller's are added to them
        more["anthropic_beta"] = list(dict.fromkeys([*betas, *more["anthropic_beta"]]))
    fields: dict[str, Json] = {"messages": turns.messages}
    if turns.system is not None:
        fields["system"] = turns.system
    if tool_config is not None:
        fields["toolConfig"] = tool_config
    fields.update({name: dumps(section) for name, section in sections.items() if section})
    fields.update({name: dumps(value) for name, value in extra.items()})
    return WireRequest(
        path=model_path(options.model, "converse-stream" if options.stream else "converse"),
        headers={"content-type": "application/json"},
        body=json_object(fields),
        losses=tuple(losses),
        api=API,
        stream=options.stream,
        echo={**({ECHO: names} if names else {}), **({OWN_THINKING: True} if own_thinking else {})},
    )


def model_path(model: str, operation: str) -> str:
    """Return the path of an operation with a model; an ARN's colons and slashes are encoded."""
    return f"/model/{quote_model(model)}/{operation}"


# ---- tools (WIRE.md, Tools)


class ConverseTools(NamedTuple):
    """Definitions as JSON, and the cache points among them."""

    tools: list[bytes]
    spent: SpentPoints


def _tool_config(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    own: Mapping[str, Any],
    options: RequestOptions,
    facts: FrozenDict,
    family: Family,
    losses: list[Loss],
) -> tuple[bytes | None, SpentPoints]:
    """Write `toolConfig`; None if neither the request nor the history has tools."""
    written = to_wire_tools(tools, family, losses)
    service_tools = [dumps(tool) for tool in own.get("tools") or ()]
    offered = bool(tools or service_tools)
    if not offered and is_forced(options):
        raise CapabilityError("a call is demanded and there are no tools", path="options.tool_choice")
    all_tools = [*written.tools, *service_tools] or tools_of_history(messages)
    if not all_tools:
        return None, written.spent
    config: dict[str, Json] = {"tools": json_array(all_tools)}
    choice = (
        _tool_choice(options, facts, family, losses, alone=len(tools) + len(service_tools) == 1) if offered else None
    )
    if choice is not None:
        config["toolChoice"] = dumps(choice)
    config.update({name: dumps(value) for name, value in own.items() if name != "tools"})
    return json_object(config), written.spent


def to_wire_tools(tools: Sequence[ToolDefinition], family: Family, losses: list[Loss]) -> ConverseTools:
    """Write the definitions, with at most four cache points between them."""
    written: list[bytes] = []
    used, short = 0, False
    for at, tool in enumerate(tools):
        spec: dict[str, Any] = {"name": tool.name}
        if tool.description:
            spec["description"] = tool.description
        spec["inputSchema"] = {"json": complete_schema(tool.input_schema)}
        written.append(dumps({"toolSpec": spec}))
        if tool.cache is None:
            continue
        path = f"tools[{at}]"
        if family.reasoning != "claude" or used == MAX_POINTS:
            reason = "more cache hints than the wire takes" if used else "only Claude caches definitions of tools here"
            losses.append(Loss(path=path, block_type="tool", verdict="dropped", reason=reason))
            continue
        ttl, rewritten = fit_ttl(tool.cache.ttl, with_ttl=True, short=short)
        if rewritten is not None:
            losses.append(Loss(path=path, block_type="tool", verdict="rewritten", reason=rewritten))
        written.append(cache_point(ttl))
        used, short = used + 1, short or ttl != "1h"
    return ConverseTools(written, SpentPoints(used, short))


def complete_schema(schema: Any) -> Any:
    """Return a tool's schema with keywords that some models require: `properties` of objects, `items` of arrays."""
    if not isinstance(schema, Mapping):
        return schema
    whole = dict(schema)
    for name, value in schema.items():
        if name in ("properties", "$defs") and isinstance(value, Mapping):
            whole[name] = {key: complete_schema(child) for key, child in value.items()}
        elif name in ("anyOf", "allOf", "oneOf") and isinstance(value, Sequence):
            whole[name] = [complete_schema(child) for child in value]
        elif name in ("items", "additionalProperties"):
            whole[name] = complete_schema(value)
    kind = schema.get("type")
    kinds = kind if isinstance(kind, (list, tuple)) else (kind,)
    if "object" in kinds:
        whole.setdefault("properties", {})
    if "array" in kinds and whole.get("items", True) is True:
        whole["items"] = {}
    return whole


def tools_of_history(messages: Sequence[Message]) -> list[bytes]:
    """Write minimal definitions of the tools in the history, for a request without tools: the service requires them."""
    names = {block.name: None for message in messages for block in message.content if isinstance(block, ToolUseBlock)}
    bare = {"json": {"type": "object", "properties": {}}}
    return [dumps({"toolSpec": {"name": name, "inputSchema": bare}}) for name in names]


def is_forced(options: RequestOptions) -> bool:
    """Return True if the request requires a call."""
    return isinstance(options.tool_choice, ToolChoice) or options.tool_choice == "required"


def _tool_choice(
    options: RequestOptions, facts: FrozenDict, family: Family, losses: list[Loss], *, alone: bool
) -> dict[str, Any] | None:
    wanted = options.tool_choice
    if options.parallel_tool_calls is False:
        losses.append(option_loss("parallel_tool_calls", "dropped", "this wire cannot forbid several calls"))
    if isinstance(wanted, ToolChoice) and not family.named_choice:
        if not alone:
            text = (
                f"{options.model} takes no tool's name; offer {wanted.name!r} alone, or ask with tool_choice='required'"
            )
            raise CapabilityError(text, path="options.tool_choice")
        reason = f"this model takes no tool's name; {wanted.name!r} is the only tool, and some tool is forced"
        losses.append(option_loss("tool_choice", "rewritten", reason))
        return {"any": {}}
    if isinstance(wanted, ToolChoice):
        return {"tool": {"name": wanted.name}}
    if wanted == "none":
        losses.append(option_loss("tool_choice", "dropped", "this wire cannot forbid calls; send no tools instead"))
    return {"auto": {"auto": {}}, "required": {"any": {}}}.get(wanted or "")


# ---- options (WIRE.md, Request)


def _inference(
    options: RequestOptions, facts: FrozenDict, family: Family, reasoning: ReasoningConfig, losses: list[Loss]
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if options.max_tokens is not None:
        config["maxTokens"] = options.max_tokens
    for option, name in (("temperature", "temperature"), ("top_p", "topP")):
        value = getattr(options, option)
        if value is None or not _may_sample(option, options, facts, reasoning, losses):
            continue
        if name == "topP" and "temperature" in config and facts.get("temperature_with_top_p") is False:
            losses.append(option_loss(option, "dropped", "this model takes temperature or top_p, not both"))
            continue
        if not 0 <= value <= 1:
            moved = min(max(value, 0), 1)
            losses.append(option_loss(option, "rewritten", f"between 0 and 1 here; {moved} is sent for {value}"))
            value = moved
        config[name] = value
    blank = family.reasoning == "claude"
    stop = [text for text in options.stop if (text.strip() if blank else text)]
    if len(stop) < len(options.stop):
        what = "a stop sequence of white space alone" if blank else "an empty stop sequence"
        losses.append(option_loss("stop", "rewritten", f"{what} is refused here"))
    if stop:
        config["stopSequences"] = stop
    return config


def _may_sample(
    option: str, options: RequestOptions, facts: FrozenDict, reasoning: ReasoningConfig, losses: list[Loss]
) -> bool:
    if not facts.get("sampling", True):
        losses.append(option_loss(option, "dropped", "this model refuses sampling parameters"))
        return False
    if reasoning.refuses_sampling:  # of Claude alone
        from interlingua_anthropic.claude_thinking import is_taken_while_thinking  # noqa: PLC0415  for Claude alone

        if is_taken_while_thinking(option, getattr(options, option)):
            return True
        losses.append(option_loss(option, "dropped", "sampling parameters are refused while thinking"))
        return False
    return True


def _more(
    options: RequestOptions, facts: FrozenDict, family: Family, reasoning: ReasoningConfig, losses: list[Loss]
) -> dict[str, Any]:
    """Write options without a field in Converse, in the form of each maker's models (WIRE.md, Fields of the models)."""
    fields: dict[str, Any] = dict(reasoning.fields)
    if options.top_k is not None:
        if not family.top_k:
            losses.append(option_loss("top_k", "dropped", "no field for it is known for this model"))
        elif _may_sample("top_k", options, facts, reasoning, losses):
            value: Any = options.top_k
            for name in reversed(family.top_k):
                value = {name: value}
            fields.update(value)
    for option in ("seed", "user_id"):
        if getattr(options, option) is not None:
            losses.append(option_loss(option, "dropped", f"this wire has no {option}"))
    return fields


def _output(options: RequestOptions, reasoning: ReasoningConfig, losses: list[Loss]) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if options.response_schema is not None:
        if not capabilities_of(options.model).supports_structured_output:
            text = f"{options.model} takes no response schema; output= finds another way"
            raise CapabilityError(text, path="options.response_schema")
        if family_of(options.model).reasoning == "claude":
            from interlingua_anthropic.claude_tools import leads_back  # noqa: PLC0415  for Claude alone

            if leads_back(options.response_schema):
                text = "an answer's schema may not refer back to itself here; output= finds another way"
                raise CapabilityError(text, path="options.response_schema")
        from interlingua_anthropic.request import to_wire_schema  # noqa: PLC0415  for answers of a schema alone

        schema = to_wire_schema(options.response_schema, losses, keep_types=True)
        definition = {"schema": dumps(schema).decode(), "name": options.response_name}
        output["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": definition}}
    if reasoning.effort is not None:
        output["effort"] = reasoning.effort
    return output


def _note_prefill(messages: Sequence[Message], ends_with: str, facts: FrozenDict, losses: list[Loss]) -> None:
    """Report that this model does not continue assistant text, which the service would reject (WIRE.md, Turns)."""
    if ends_with == "assistant" and facts.get("prefill") is False:
        reason = "the history ends with an assistant message, which this model refuses; add a user message"
        losses.append(message_loss(len(messages) - 1, reason))


# ---- counting


def estimate_input_tokens(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
) -> int:
    """Estimate by bytes: 3.6 bytes a token, 8 tokens a message, and 300 tokens if there are tools."""
    family = family_of(options.model) if options is not None else Family()
    size = sum(map(_message_tokens, messages, encode_messages(messages, family)))
    if tools:
        size += _FOR_TOOLS + int(sum(map(len, to_wire_tools(tools, family, []).tools)) / _BYTES_PER_TOKEN)
    return size


def _message_tokens(message: Message, parts: ConverseParts) -> int:
    size = sum(map(len, parts.parts))
    media = 0
    for block in message.content:
        for part in (block, *getattr(block, "content", ())):
            if isinstance(part, (ImageBlock, DocumentBlock)) and part.source.kind == "base64":
                length = len(part.source.data)
                size -= length
                media += _PER_IMAGE if isinstance(part, ImageBlock) else length // _BYTES_PER_TOKEN_OF_DOCUMENT
    return int(max(size, 0) / _BYTES_PER_TOKEN) + media + _PER_MESSAGE
