"""A conversation, tools and options -> one request of generateContent or streamGenerateContent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    Json,
    Loss,
    WireRequest,
    budget_as_effort,
    dumps,
    json_object,
    nearest_effort,
    option_loss,
    quote_model,
)
from interlingua.types import (
    Message,
    RequestOptions,
    Role,
    ToolChoice,
    ToolChoiceOption,
    ToolDefinition,
    WireTool,
)
from interlingua_google.messages import MEDIA, MessageParts, encode_messages, join_results, to_wire_contents
from interlingua_google.models import API, capabilities_of, facts_of, generation_of

_CACHED_AWAY = ("systemInstruction", "tools", "toolConfig")  # they belong into the cached content
_NAMES = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "stop": "stopSequences",
}
_MOST = {"temperature": 2, "top_p": 1}
_DEFAULT_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}
DYNAMIC = -1
MAX_STOPS = 5
_SILENT = ("$schema", "$id")  # they say nothing about the value
_OUTSIDE = ("const", "discriminator", "examples", "exclusiveMinimum", "exclusiveMaximum", "not", "patternProperties")
_MAPS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NOT_SEARCHED = "the request has no tool search, so the tool is sent whole; provider_options adds one to `tools`"
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_BYTES_PER_TOKEN = 4.0
_PER_MESSAGE = 4
_PER_IMAGE = 1100
_BYTES_PER_TOKEN_OF_MEDIA = 40


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions) -> WireRequest:
    """Write the request.

    `options.provider_options` are merged over the body, with three exceptions: members of `generationConfig` and
    `toolConfig` replace single members, and `tools` (the service's own: `googleSearch`, `codeExecution`, …) are
    appended to the declared ones. With `cachedContent`, the parts that it already contains are left out.

    Raises:
        CapabilityError: the model rejects an option.
    """
    losses: list[Loss] = []
    extra: dict[str, Any] = dict(options.provider_options)
    written = to_wire_contents(messages, options.model)
    losses.extend(written.losses)
    fields: dict[str, Json] = {}
    if written.system is not None:
        fields["systemInstruction"] = written.system
    fields |= _tools(tools, options, extra, losses)
    fields["contents"] = written.contents
    generation = to_wire_generation(options, losses, tools=bool(tools))
    generation |= _object(extra.pop("generationConfig", None))
    if generation:
        fields["generationConfig"] = dumps(generation)
    if extra.get("cachedContent"):
        _remove_cached_fields(fields, losses)
    fields.update({name: dumps(value) for name, value in extra.items()})
    return WireRequest(
        path=method_path(options.model, stream=options.stream),
        headers={"content-type": "application/json"},
        body=json_object(fields),
        losses=tuple(losses),
        api=API,
        stream=options.stream,
    )


def _tools(
    tools: Sequence[ToolDefinition], options: RequestOptions, extra: dict[str, Any], losses: list[Loss]
) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    declared: list[Any] = [{"functionDeclarations": to_wire_tools(tools, losses)}] if tools else []
    if declared or "tools" in extra:
        fields["tools"] = dumps([*declared, *(extra.pop("tools", None) or ())])
    choice = to_wire_tool_choice(tools, options, losses)
    config = {} if choice is None else {"functionCallingConfig": choice}
    config |= _object(extra.pop("toolConfig", None))
    if config:
        fields["toolConfig"] = dumps(config)
    return fields


def _object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _remove_cached_fields(fields: dict[str, Json], losses: list[Loss]) -> None:
    for name in _CACHED_AWAY:
        if fields.pop(name, None) is not None:
            reason = f"{name} belongs to the cached content; the service refuses both"
            losses.append(option_loss("provider_options.cachedContent", "dropped", reason))


def model_path(model: str) -> str:
    """Return the path of a model; a name with a slash (`tunedModels/…`, `endpoints/…`) is one already."""
    path = quote_model(model.lstrip("/"), safe="/")
    return f"/{path}" if "/" in path else f"/models/{path}"


def method_path(model: str, *, stream: bool) -> str:
    """Return the path of the method; without `alt=sse` a stream would be one JSON array."""
    return f"{model_path(model)}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"


def to_wire_tools(
    tools: Sequence[ToolDefinition],
    losses: list[Loss],
    api: str = API,
    schema: str = "parametersJsonSchema",
    *,
    searched: bool = False,
) -> list[dict[str, Any]]:
    """Return the declarations.

    Args:
        tools: the tools of the request.
        losses: the ledger, to append to.
        api: the API of the request; a definition received by it is sent unchanged.
        schema: name of the member for the schema. Of generateContent's two only `parametersJsonSchema` accepts the
            whole canonical subset.
        searched: the request has a tool search, so that tools may be deferred.
    """
    made = []
    for at, tool in enumerate(tools):
        declaration: dict[str, Any] = {"name": tool.name}
        if tool.description:
            declaration["description"] = tool.description
        if isinstance(tool, WireTool) and tool.api == api:  # of a request that is served: sent unchanged
            declaration |= {schema: tool.input_schema, **tool.extra}
            made.append({name: value for name, value in declaration.items() if value is not None})
            continue
        if tool.cache is not None:
            reason = "this wire has no cache markers; its own caching applies"
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=reason))
        path = f"tools[{at}].input_schema"
        declaration[schema] = to_wire_schema(tool.input_schema, losses, path, "tool")
        if tool.deferred and searched:
            declaration["defer_loading"] = True
        elif tool.deferred:
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=_NOT_SEARCHED))
        made.append(declaration)
    return made


def to_wire_tool_choice(
    tools: Sequence[ToolDefinition], options: RequestOptions, losses: list[Loss]
) -> dict[str, Any] | None:
    """Return `functionCallingConfig`, or None if it is not needed.

    Raises:
        CapabilityError: a call is required and there are no tools.
    """
    wanted = check_tool_choice(tools, options, losses)
    if isinstance(wanted, ToolChoice):
        return {"mode": "ANY", "allowedFunctionNames": [wanted.name]}
    return None if wanted is None else {"mode": _MODES[wanted]}


def check_tool_choice(
    tools: Sequence[ToolDefinition], options: RequestOptions, losses: list[Loss]
) -> ToolChoiceOption | None:
    """Return the choice to send; None without tools.

    Raises:
        CapabilityError: a call is required and there are no tools.
    """
    wanted = options.tool_choice
    if not tools:
        if isinstance(wanted, ToolChoice) or wanted == "required":
            raise CapabilityError("a call is demanded and there are no tools", path="options.tool_choice")
        return None
    if options.parallel_tool_calls is False and wanted != "none":
        reason = "this wire cannot forbid several calls in one answer"
        losses.append(option_loss("parallel_tool_calls", "dropped", reason))
    return wanted


def to_wire_generation(options: RequestOptions, losses: list[Loss], *, tools: bool) -> dict[str, Any]:
    """Return `generationConfig`; {} if no option is set.

    Raises:
        CapabilityError: as `to_wire_answer_schema`.
    """
    config = {_NAMES[name]: value for name, value in to_wire_sampling(options, losses).items()}
    if (schema := to_wire_answer_schema(options, losses, tools=tools)) is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = schema
    if (thinking := to_wire_thinking(options, losses)) is not None:
        config["thinkingConfig"] = thinking
    if options.user_id is not None:
        losses.append(option_loss("user_id", "dropped", "this wire has no end-user id"))
    return config


def to_wire_sampling(options: RequestOptions, losses: list[Loss]) -> dict[str, Any]:
    """Return the options about length, sampling and stopping that are set, by name, within the service's limits."""
    values = {name: value for name in _NAMES if (value := getattr(options, name)) not in (None, ())}
    for name, most in _MOST.items():
        value = values.get(name)
        if value is not None and not 0 <= value <= most:
            values[name] = moved = min(max(value, 0), most)
            reason = f"it lies between 0 and {most} here; {moved} is sent for {value}"
            losses.append(option_loss(name, "rewritten", reason))
    if options.stop:
        values["stop"] = list(options.stop[:MAX_STOPS])
        if len(options.stop) > MAX_STOPS:
            reason = f"this wire takes {MAX_STOPS} stop sequences; the rest is left out"
            losses.append(option_loss("stop", "rewritten", reason))
    return values


def to_wire_answer_schema(options: RequestOptions, losses: list[Loss], *, tools: bool) -> dict[str, Any] | None:
    """Return the schema of the answer, or None.

    Raises:
        CapabilityError: the model accepts no schema, or (before the third generation) no schema together with tools.
    """
    if options.response_schema is None:
        return None
    if not capabilities_of(options.model, options.api).supports_structured_output:
        raise CapabilityError(f"{options.model} has no structured output", path="options.response_schema")
    generation = generation_of(options.model)
    if tools and generation is not None and generation < 3:
        raise CapabilityError(
            f"{options.model} takes no response schema together with tools; ask without tools",
            path="options.response_schema",
        )
    return to_wire_schema(options.response_schema, losses, "options.response_schema", "option")


def to_wire_thinking(options: RequestOptions, losses: list[Loss]) -> dict[str, Any] | None:
    """Return `thinkingConfig`, or None for the model's default. Never both a budget and a level."""
    budget, effort = options.thinking_budget, options.effort
    off = options.thinking is False or effort == "none"
    if not off and options.thinking is None and budget is None and effort is None:
        return None
    kind = facts_of(options.model).get("thinking") or _kind_by_name(options)
    if kind == "none":
        if not off:
            losses.append(option_loss("thinking", "dropped", "this model does not think"))
        return None
    if off and budget is not None:
        losses.append(option_loss("thinking_budget", "dropped", "thinking is switched off"))
    if kind == "budget":
        return _budgeted(options, losses, off=off)
    return _levelled(options, losses, off=off)


def _kind_by_name(options: RequestOptions) -> str:
    generation = generation_of(options.model)
    if generation is None:  # the name does not tell: both generations accept a budget
        return "level" if options.thinking_budget is None else "budget"
    return "none" if generation < 2 else "budget" if generation == 2 else "level"


def _budgeted(options: RequestOptions, losses: list[Loss], *, off: bool) -> dict[str, Any]:
    if off:
        if facts_of(options.model).get("thinking_off", True):
            return {"thinkingBudget": 0}
        losses.append(option_loss("thinking", "rewritten", "this model always thinks; sent with its smallest budget"))
        return {"thinkingBudget": 128}
    made: dict[str, Any] = {}
    if options.thinking or options.thinking_budget is not None:
        made["includeThoughts"] = True
    if options.thinking_budget is not None:
        least, most = facts_of(options.model).get("budget") or (DYNAMIC, options.thinking_budget)
        fitted = options.thinking_budget
        if fitted != DYNAMIC and not least <= fitted <= most:
            fitted = min(max(fitted, least), most)
            reason = f"this model's budget is {least} to {most} tokens; {fitted} is sent for {options.thinking_budget}"
            losses.append(option_loss("thinking_budget", "rewritten", reason))
        made["thinkingBudget"] = fitted
    else:
        made["thinkingBudget"] = DYNAMIC if options.effort is None else _BUDGETS[options.effort]
    return made


def _levelled(options: RequestOptions, losses: list[Loss], *, off: bool) -> dict[str, Any]:
    levels = [level.lower() for level in facts_of(options.model).get("levels") or _DEFAULT_LEVELS]
    if off:
        return {"thinkingLevel": str(nearest_effort("none", levels, losses, "thinking")).upper()}
    made: dict[str, Any] = {"includeThoughts": True} if options.thinking or options.thinking_budget is not None else {}
    options = budget_as_effort(options, losses)
    if options.effort is not None:
        made["thinkingLevel"] = str(nearest_effort(options.effort, levels, losses)).upper()
    return made


def to_wire_schema(schema: Mapping[str, Any], losses: list[Loss], path: str, block_type: str) -> dict[str, Any]:
    """Return the schema without unsupported keywords; they move into the description, with one loss each."""
    out: dict[str, Any] = {}
    words: list[str] = []
    for name, value in schema.items():
        at = f"{path}.{name}"
        if name == "const" and isinstance(value, str):
            out |= {"type": "string", "enum": [value]}
            losses.append(_loss(at, block_type, "rewritten", "const became an enum of one value"))
        elif name in _OUTSIDE:
            words.append(f"{name}: {dumps(value).decode()}")
            losses.append(_loss(at, block_type, "rewritten", f"{name} is not taken; it moved into the description"))
        elif name in _SILENT:
            losses.append(_loss(at, block_type, "dropped", f"{name} is not taken and says nothing of the value"))
        elif name in _MAPS and isinstance(value, Mapping):
            out[name] = {key: _inner(item, losses, f"{at}.{key}", block_type) for key, item in value.items()}
        elif name in _LISTS and isinstance(value, (list, tuple)):
            kept = "anyOf" if name == "oneOf" else name
            out[kept] = [_inner(item, losses, f"{at}[{place}]", block_type) for place, item in enumerate(value)]
        elif name in ("items", "additionalProperties"):
            out[name] = _inner(value, losses, at, block_type)
        else:
            out[name] = value
    if words:
        out["description"] = "; ".join(filter(None, [out.get("description"), *words]))
    if out.get("type") == "array":  # both are wanted though they allow everything (WIRE.md, Schemas)
        out.setdefault("items", {})
    elif out.get("type") == "object":
        out.setdefault("properties", {})
    return out


def _inner(value: Any, losses: list[Loss], path: str, block_type: str) -> Any:
    return to_wire_schema(value, losses, path, block_type) if isinstance(value, Mapping) else value


def _loss(path: str, block_type: str, verdict: Any, reason: str) -> Loss:
    return Loss(path=path, block_type=block_type, verdict=verdict, reason=reason)


def estimate_input_tokens(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
) -> int:
    """Estimate by bytes: 4 bytes a token plus 4 a message, media by kind and size."""
    model = options.model if options is not None else ""
    size = sum(map(_message_tokens, messages, encode_messages(messages, model)))
    return size + int(len(dumps(to_wire_tools(tools, []))) / _BYTES_PER_TOKEN) if tools else size


def _message_tokens(message: Message, parts: MessageParts) -> int:
    size = len(join_results(parts.results, {}) if message.role is Role.TOOL else parts.joined)
    media = 0
    for block in message.content:
        for part in (block, *getattr(block, "content", ())):
            if isinstance(part, MEDIA) and part.source.kind == "base64":
                length = len(part.source.data)
                size -= length
                media += _PER_IMAGE if part.type == "image" else length // _BYTES_PER_TOKEN_OF_MEDIA
    return int(max(size, 0) / _BYTES_PER_TOKEN) + media + _PER_MESSAGE
