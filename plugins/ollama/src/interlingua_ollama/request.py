"""A conversation, tools and options -> one request of the native chat API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    Json,
    Loss,
    WireRequest,
    demand_call,
    dumps,
    json_array,
    json_object,
    nearest_effort,
    option_loss,
)
from interlingua.types import (
    ImageBlock,
    Message,
    RequestOptions,
    ToolChoice,
    ToolDefinition,
    WireTool,
    to_wire_function_tool,
)
from interlingua_ollama.messages import API, to_wire_messages

PATH = "/api/chat"
RUNTIME = frozenset(
    (
        "temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "num_predict", "num_ctx", "num_keep",
        "repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty", "stop", "num_batch", "num_gpu",
        "main_gpu", "num_thread", "use_mmap", "draft_num_predict",
    )
)  # fmt: skip
_LEVELS = ("low", "medium", "high", "max")
# of what a canonical schema may hold; the server also knows `$defs` at the root and `anyOf` in properties
_ROOT = frozenset(("type", "items", "required", "properties"))
_PROPERTY = frozenset(("type", "items", "description", "enum", "properties", "required"))
_BYTES_PER_TOKEN = 4
_PER_IMAGE = 1000


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions) -> WireRequest:
    """Write the request; `stream` is always written, because this wire streams by default.

    A forced call has no field: the tools' descriptions demand it, and a forced tool is the only one offered.

    Raises:
        CapabilityError: a call is demanded and there are no tools.
    """
    losses: list[Loss] = []
    tools = _demanded(tools, options, losses)
    others = to_wire_options(options, losses)
    written: list[bytes | memoryview] = []  # joined once, with the request around them
    for at, element in enumerate(to_wire_messages(messages)):
        if element.rows:
            losses += [row.at(at, messages[at].id) for row in element.rows]
        if element.wire is not None:
            written += (b"," if written else b"[", element.wire)
    written.append(b"]" if written else b"[]")
    fields: dict[str, Json] = {"model": dumps(options.model), "messages": written}
    if tools and options.tool_choice != "none":  # "none" is expressed by naming no tool
        fields["tools"] = to_wire_tools(tools, losses)
    fields.update({name: dumps(value) for name, value in others.items()})
    return WireRequest(path=PATH, body=json_object(fields), losses=tuple(losses), api=API, stream=options.stream)


def _demanded(tools: Sequence[ToolDefinition], options: RequestOptions, losses: list[Loss]) -> Sequence[ToolDefinition]:
    """Return the tools to offer; a demanded call is stated in their descriptions, since options change no message.

    Raises:
        CapabilityError: a call is demanded and there are no tools.
    """
    choice = options.tool_choice
    if choice != "required" and not isinstance(choice, ToolChoice):
        return tools
    if not tools:
        raise CapabilityError("a call is demanded and there are no tools", path="options.tool_choice")
    return demand_call(tools, options, losses, "this wire cannot force a call")


def to_wire_tools(tools: Sequence[ToolDefinition], losses: list[Loss]) -> bytes:
    """Write the tools without the parts of a schema that the server drops; the definitions are not changed."""
    wire: list[bytes] = []
    for at, tool in enumerate(tools):
        if isinstance(tool, WireTool) and tool.api == API:
            wire.append(dumps(_as_it_came(tool)))
            continue
        gone: list[str] = []
        wrapped = to_wire_function_tool(tool)
        schema = _pruned(tool.input_schema, _ROOT, "input_schema", gone)
        if schema.get("type", "object") != "object":
            gone.append("input_schema.type")
        wrapped["function"]["parameters"] = {"type": "object", "properties": {}, **schema} | {"type": "object"}
        wire.append(dumps(wrapped))
        reason = "the server does not read this part of a schema"
        losses += [Loss(path=f"tools[{at}].{path}", block_type="tool", verdict="dropped", reason=reason)
                   for path in gone]  # fmt: skip
        if tool.cache is not None:
            reason = "this wire has no cache markers; its own caching applies"
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=reason))
    return json_array(wire)


def _as_it_came(tool: WireTool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function |= {"parameters": tool.input_schema, **tool.extra["function"]}
    if function["parameters"] is None:
        del function["parameters"]
    return {"type": "function", **tool.extra, "function": function}


def _pruned(schema: Mapping[str, Any], kept: frozenset[str], path: str, gone: list[str]) -> dict[str, Any]:
    """Return the part of a schema that the server decodes; the content of `items` is kept unchanged."""
    gone += [f"{path}.{key}" for key in schema if key not in kept]
    return {key: value for key, value in _members(schema, path, gone) if key in kept}


def _members(schema: Mapping[str, Any], path: str, gone: list[str]) -> Iterator[tuple[str, Any]]:
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            inner = {name: _property(item, f"{path}.properties.{name}", gone) for name, item in value.items()}
            yield key, inner
        else:
            yield key, value


def _property(value: Any, path: str, gone: list[str]) -> Any:
    return _pruned(value, _PROPERTY, path, gone) if isinstance(value, Mapping) else {}  # true: anything


def to_wire_options(options: RequestOptions, losses: list[Loss]) -> dict[str, Any]:
    """Return the body's fields for options other than tools; 0 is sent.

    `provider_options` have precedence: names of runtime options, such as `num_ctx`, go into `options`; None leaves a
    field out.
    """
    fields: dict[str, Any] = {"stream": options.stream, "truncate": False}
    think = _think(options, losses)
    if think is not None:
        fields["think"] = think
    if options.response_schema is not None:
        fields["format"] = options.response_schema
    for name in ("thinking_budget", "user_id", "parallel_tool_calls"):
        if getattr(options, name) is not None and getattr(options, name) is not True:
            losses.append(option_loss(name, "dropped", "this wire has no such option"))
    runtime = _runtime(options)
    _merge_extra(options.provider_options, fields, runtime)
    if runtime:
        fields["options"] = runtime
    return fields


def _runtime(options: RequestOptions) -> dict[str, Any]:
    given = {
        "num_predict": options.max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "seed": options.seed,
        "stop": list(options.stop) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _merge_extra(extra: Mapping[str, Any], fields: dict[str, Any], runtime: dict[str, Any]) -> None:
    for name, value in extra.items():
        if name == "options" and isinstance(value, Mapping):
            runtime.update(value)
        elif name in RUNTIME:
            runtime[name] = value
        elif value is None:
            fields.pop(name, None)
        else:
            fields[name] = value


def _think(options: RequestOptions, losses: list[Loss]) -> bool | str | None:
    """Return `think`: a level, a switch, or None if no option is set."""
    if options.thinking is False or options.effort == "none":
        if not takes_levels_only(options.model):
            return False
        return nearest_effort("none", _levels(options.model), losses, "thinking")
    if options.effort is None:
        if not options.thinking:
            return None
        return "medium" if takes_levels_only(options.model) else True
    return nearest_effort(options.effort, _levels(options.model), losses)


def _levels(model: str) -> tuple[str, ...]:
    return _LEVELS[:3] if takes_levels_only(model) else _LEVELS


def takes_levels_only(model: str) -> bool:
    """Return True for the family whose thinking has levels and cannot be switched off."""
    return model.rpartition("/")[2].startswith("gpt-oss")


def estimate_input_tokens(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
) -> int:
    """Estimate by bytes: 4 bytes of wire a token, and 1,000 an image."""
    size = len(to_wire_tools(tools, [])) if tools else 0
    media = 0
    for message, element in zip(messages, to_wire_messages(messages), strict=True):
        size += len(element.wire or b"")
        for block in message.content:
            if isinstance(block, ImageBlock) and block.source.kind == "base64":
                size -= len(block.source.data)
                media += _PER_IMAGE
    return max(size, 0) // _BYTES_PER_TOKEN + media
