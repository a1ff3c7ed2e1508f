"""A conversation, tools and options -> one request of v2 chat; auxiliary requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import Json, Loss, WireRequest, demand_call, dumps, json_array, json_object, option_loss
from interlingua.types import ImageBlock, Message, RequestOptions, ToolChoice, ToolDefinition, to_wire_function_tool
from interlingua_cohere.messages import to_wire_messages
from interlingua_cohere.models import API, capabilities_of, takes_thinking

PATH = "/v2/chat"
MAX_STOPS = 5
_LIMITS = {"temperature": (0, None), "p": (0.01, 0.99), "k": (0, 500)}
_NAMES = {"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "p", "top_k": "k", "seed": "seed"}
_BYTES_PER_TOKEN = 4
_PER_IMAGE = 1000
# tokens that the service adds to a prompt, more of them with tools (WIRE.md, Usage)
_TEMPLATE, _TOOLS_TEMPLATE = 500, 900


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions) -> WireRequest:
    """Write the request; documents of user messages are beside the messages.

    Raises:
        CapabilityError: a schema together with tools or documents.
    """
    losses: list[Loss] = []
    written: list[bytes | memoryview] = []  # joined once, with the request around them
    documents: list[bytes] = []
    for at, element in enumerate(to_wire_messages(messages)):
        if element.rows:
            losses += [row.at(at, messages[at].id) for row in element.rows]
        if element.wire is not None:
            written += (b"," if written else b"[", element.wire)
        documents += element.documents
    written.append(b"]" if written else b"[]")
    others = to_wire_options(options, losses)
    fields: dict[str, Json] = {"model": dumps(options.model), "messages": written}
    forced = options.tool_choice == "required" or isinstance(options.tool_choice, ToolChoice)
    if forced and tools and not capabilities_of(options.model).supports_tool_choice:
        tools = demand_call(tools, options, losses, "the service cannot force a call of this model")
    elif isinstance(options.tool_choice, ToolChoice):
        name = options.tool_choice.name
        reason = f"this wire takes no tool's name; {name!r} is the only tool sent, and some tool is forced"
        losses.append(option_loss("tool_choice", "rewritten", reason))
        tools = [tool for tool in tools if tool.name == name]
    choice = to_wire_tool_choice(options)
    if options.tool_choice == "none" and choice is None:
        tools = ()  # without tools, no tool is called
    if tools:
        fields["tools"] = to_wire_tools(tools, losses)
        if choice is not None:
            fields["tool_choice"] = dumps(choice)
    if documents:
        fields["documents"] = json_array(documents)
    if options.response_schema is not None and (tools or documents):
        beside = "tools" if tools else "documents"
        raise CapabilityError(
            f"the service takes no schema beside {beside}: ask for the answer in that form in a request without them",
            path="options.response_schema",
        )
    fields.update({name: dumps(value) for name, value in others.items()})
    return WireRequest(path=PATH, body=json_object(fields), losses=tuple(losses), api=API, stream=options.stream)


def to_wire_tool_choice(options: RequestOptions) -> str | None:
    """Return `REQUIRED` or `NONE`; None if neither is needed or an older model supports neither."""
    choice, can = options.tool_choice, capabilities_of(options.model).supports_tool_choice
    if isinstance(choice, ToolChoice) or choice == "required":
        return "REQUIRED" if can else None
    return "NONE" if choice == "none" and can else None


def to_wire_tools(tools: Sequence[ToolDefinition], losses: list[Loss]) -> bytes:
    """Write the tools; a cache hint on one is dropped, with a row in `losses`."""
    for at, tool in enumerate(tools):
        if tool.cache is not None:
            reason = "this wire has no cache markers; the service's own caching applies"
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=reason))
    return json_array([dumps(_complete(to_wire_function_tool(tool))) for tool in tools])


def _complete(value: Any) -> Any:
    """Return a definition with `properties` in all objects and `items` in all arrays, as in the service's examples."""
    if isinstance(value, Mapping):
        whole = {name: _complete(item) for name, item in value.items()}
        if whole.get("type") in ("object", "array"):
            whole.setdefault("properties" if whole["type"] == "object" else "items", {})
        return whole
    return value


def to_wire_options(options: RequestOptions, losses: list[Loss]) -> dict[str, Any]:
    """Return the body's fields for options other than tools; 0 is sent.

    Raises:
        CapabilityError: the root of the schema is not an object.
    """
    fields: dict[str, Any] = {"stream": options.stream}
    for name, wire in _NAMES.items():
        if (value := getattr(options, name)) is not None:
            fields[wire] = _within_limits(name, wire, value, losses)
    if options.stop:
        fields["stop_sequences"] = list(options.stop[:MAX_STOPS])
        if len(options.stop) > MAX_STOPS:
            losses.append(option_loss("stop", "rewritten", f"the service takes {MAX_STOPS}; the others are not sent"))
    if options.response_schema is not None:
        if options.response_schema.get("type") != "object":
            raise CapabilityError(
                "an answer is an object on this service: put the schema under a property of one",
                path="options.response_schema",
            )
        fields["response_format"] = {"type": "json_object", "json_schema": options.response_schema}
    thinking = _thinking(options, losses)
    if thinking is not None:
        fields["thinking"] = thinking
    if options.user_id is not None:
        losses.append(option_loss("user_id", "dropped", "this wire has no such option"))
    if options.parallel_tool_calls is False:
        losses.append(option_loss("parallel_tool_calls", "dropped", "this wire has no such option"))
    fields.update(options.provider_options)
    return fields


def _within_limits(name: str, wire: str, value: Any, losses: list[Loss]) -> Any:
    least, most = _LIMITS.get(wire, (None, None))
    moved = value
    if least is not None and value < least:
        moved = least
    if most is not None and value > most:
        moved = most
    if moved is not value:
        upper = f" and at most {most}" if most is not None else ""
        losses.append(
            option_loss(name, "rewritten", f"it is at least {least}{upper} here; {moved} is sent for {value}")
        )
    return moved


def _thinking(options: RequestOptions, losses: list[Loss]) -> dict[str, Any] | None:
    """Return `thinking`, a switch with or without a budget; None if no option is set."""
    budget, effort = options.thinking_budget, options.effort
    off = options.thinking is False or effort == "none" or budget == 0
    asked = {"thinking": options.thinking, "effort": effort, "thinking_budget": budget}
    given = [name for name, value in asked.items() if value is not None]
    if not given:
        return None
    if not takes_thinking(options.model):
        if not off:
            losses += [option_loss(name, "dropped", "this model does not reason") for name in given]
        return None
    if off:
        if budget:
            losses.append(option_loss("thinking_budget", "dropped", "thinking is switched off"))
        return {"type": "disabled"}
    if effort is not None:
        losses.append(option_loss("effort", "rewritten", "this wire has no efforts; reasoning is switched on"))
    return {"type": "enabled"} if budget is None else {"type": "enabled", "token_budget": budget}


def estimate_input_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """Estimate by bytes: 4 bytes of wire a token, 1,000 an image, and the tokens that the service adds."""
    size = len(to_wire_tools(tools, [])) if tools else 0
    tokens = _TEMPLATE + (_TOOLS_TEMPLATE if tools else 0)
    for message, element in zip(messages, to_wire_messages(messages), strict=True):
        size += len(element.wire or b"") + sum(map(len, element.documents))
        for block in message.content:
            if isinstance(block, ImageBlock):
                size -= len(block.source.data)
                tokens += _PER_IMAGE
    return max(size, 0) // _BYTES_PER_TOKEN + tokens


def auxiliary_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for `models` (no arguments), or `tokenize` (`model` and `text`, up to 65,536 characters)."""
    if kind == "models":
        return WireRequest(method="GET", path="/v1/models?endpoint=chat&page_size=1000", body=b"", api=API)
    if kind == "tokenize":
        body = {"text": arguments["text"], "model": arguments["model"]}
        return WireRequest(path="/v1/tokenize", body=dumps(body), api=API)
    return None
