"""Write a canonical conversation as a request: the body, its options and its tools."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import Loss, WireRequest, dumps, option_loss
from interlingua.types import Message, RequestOptions, Role, ToolChoice, ToolDefinition

from interlingua_parrot_1.messages import to_wire_messages

API = "talk"
PATH = "/v2/talk"

_FIELDS = {"max_tokens": "most", "temperature": "heat", "stop": "hush"}
_UNSUPPORTED = ("top_p", "top_k", "seed", "user_id", "effort", "thinking", "thinking_budget")
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 3


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions) -> WireRequest:
    """Write the request.

    Raises:
        CapabilityError: the options ask for a schema or a forced call, which this wire cannot express.
    """
    losses: list[Loss] = []
    system = list(takewhile(lambda message: message.role is Role.SYSTEM, messages))
    body: dict[str, Any] = {"model": options.model, "stream": options.stream}
    if system:
        body["perch"] = "\n\n".join(message.text for message in system)
    body["heard"] = to_wire_messages(messages, losses)[len(system) :]
    if tools and options.tool_choice != "none":
        body["tricks"] = [to_wire_tool(tool, f"tools[{at}]", losses) for at, tool in enumerate(tools)]
    body |= to_wire_options(options, losses)
    body |= options.provider_options  # last: the caller overrules
    return WireRequest(path=PATH, body=dumps(body), losses=tuple(losses), api=API, stream=options.stream)


def to_wire_options(options: RequestOptions, losses: list[Loss]) -> dict[str, Any]:
    """Write each option, report it as a Loss, or refuse it; None means "not set", and 0 is a value.

    Raises:
        CapabilityError: the caller relies on an option that this wire does not have.
    """
    if options.response_schema is not None:
        raise CapabilityError("this wire has no answers by schema", path="options.response_schema")
    if options.tool_choice == "required" or isinstance(options.tool_choice, ToolChoice):
        raise CapabilityError("this wire cannot force a call", path="options.tool_choice")
    dropped = [name for name in _UNSUPPORTED if getattr(options, name) is not None]
    if options.parallel_tool_calls is False:
        dropped.append("parallel_tool_calls")
    losses += [option_loss(name, "dropped", "this wire has no such option") for name in dropped]
    values = {field: getattr(options, name) for name, field in _FIELDS.items()}
    return {field: value for field, value in values.items() if value is not None and value != ()}


def to_wire_tool(tool: ToolDefinition, path: str, losses: list[Loss]) -> dict[str, Any]:
    """Write one tool's definition."""
    if tool.cache is not None:
        losses.append(Loss(path=path, block_type="tool", verdict="rewritten", reason="this wire has no cache markers"))
    return {"trick": tool.name, "purpose": tool.description, "takes": tool.input_schema}


def estimate_input_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """Estimate the tokens of the request: one for four characters, and a few for each message."""
    size = sum(_characters(message) for message in messages)
    size += sum(len(tool.name) + len(tool.description) + len(dumps(tool.input_schema)) for tool in tools)
    return size // _CHARACTERS_PER_TOKEN + _TOKENS_PER_MESSAGE * len(messages)


def _characters(message: Message) -> int:
    results = [part for block in message.content for part in getattr(block, "content", ())]
    texts = [getattr(block, "text", "") for block in (*message.content, *results)]
    return sum(map(len, texts)) + sum(len(call.input_json) for call in message.tool_calls)
