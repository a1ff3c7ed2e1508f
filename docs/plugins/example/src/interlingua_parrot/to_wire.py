"""Canonical conversation -> one request of the talk API.

Never holds a key and never reads the clock: the same arguments give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.json import dumps
from interlingua.plugins.wire import Loss, WireRequest
from interlingua.types.blocks import ContentBlock, OpaqueBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message, Role
from interlingua.types.options import AdapterOptions, ToolChoice
from interlingua.types.tools import ToolDefinition

from interlingua_parrot.service import API

_FROM = {Role.USER: "keeper", Role.ASSISTANT: "bird", Role.TOOL: "trainer"}
_SAID = {"max_tokens": "most", "temperature": "heat", "stop": "hush"}
_UNSAID = ("top_p", "top_k", "seed", "user_id", "effort", "thinking", "thinking_budget")


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions) -> WireRequest:
    """Write the request.

    Raises:
        CapabilityError: a schema or a forced call was asked for, which this wire cannot say.
    """
    losses: list[Loss] = []
    perch = list(takewhile(lambda message: message.role is Role.SYSTEM, messages))
    body: dict[str, Any] = {"model": options.model, "stream": options.stream}
    if perch:
        body["perch"] = "\n\n".join(message.text_content() for message in perch)
    heard = list(enumerate(messages))[len(perch) :]
    body["heard"] = [to_wire_message(message, f"messages[{at}]", losses) for at, message in heard]
    if tools and options.tool_choice != "none":
        body["tricks"] = [to_wire_tool(tool, f"tools[{at}]", losses) for at, tool in enumerate(tools)]
    body |= to_wire_options(options, losses)
    body |= options.provider_options  # last: the caller overrules
    return WireRequest(path="/v2/talk", body=dumps(body), losses=tuple(losses), api=API, stream=options.stream)


def to_wire_message(message: Message, path: str, losses: list[Loss]) -> dict[str, Any]:
    """Write one message from that message alone, so that what was sent once is sent the same way again."""
    says = [to_wire_part(block, f"{path}.content[{at}]", losses) for at, block in enumerate(message.content)]
    return {"from": _FROM[message.role], "says": says}


def to_wire_part(block: ContentBlock, path: str, losses: list[Loss]) -> Any:
    """Write one block; core sends only kinds that the capabilities declare, and this service's own opaque ones."""
    match block:
        case TextBlock():
            return {"type": "words", "words": block.text}
        case ToolUseBlock():
            return {"type": "trick", "tag": block.id, "trick": block.name, "with": _arguments(block, path, losses)}
        case ToolResultBlock():
            says = [to_wire_part(part, path, losses) for part in block.content]
            went = "badly" if block.is_error else "well"
            return {"type": "outcome", "tag": block.tool_use_id, "went": went, "says": says}
        case OpaqueBlock():
            return block.data
        case _:
            raise CapabilityError(f"this wire has no form for {block.type}", path=path)


def _arguments(block: ToolUseBlock, path: str, losses: list[Loss]) -> Any:
    """Return the arguments, an object on this wire; what is no object goes inside one, and the ledger says so."""
    if block.parse_error is None:
        return block.input
    losses.append(Loss(path=path, block_type=block.type, verdict="rewritten", reason="arguments that are no object"))
    return {"garbled": block.raw_input}


def to_wire_tool(tool: ToolDefinition, path: str, losses: list[Loss]) -> dict[str, Any]:
    """Write one tool definition."""
    if tool.cache is not None:
        losses.append(Loss(path=path, block_type="tool", verdict="rewritten", reason="this wire has no cache markers"))
    return {"trick": tool.name, "purpose": tool.description, "takes": tool.input_schema}


def to_wire_options(options: AdapterOptions, losses: list[Loss]) -> dict[str, Any]:
    """Say each option, or lose it with a line in the ledger, or refuse it; None is "not asked", and 0 is a value.

    Raises:
        CapabilityError: dropping it would deceive the caller.
    """
    if options.response_schema is not None:
        raise CapabilityError("a parrot follows no schema", path="options.response_schema")
    if options.tool_choice == "required" or isinstance(options.tool_choice, ToolChoice):
        raise CapabilityError("a parrot cannot be forced", path="options.tool_choice")
    asked = [name for name in _UNSAID if getattr(options, name) is not None]
    if options.parallel_tool_calls is False:
        asked.append("parallel_tool_calls")
    reason = "this wire has no such option"
    losses += [Loss(path=f"options.{name}", block_type="option", verdict="dropped", reason=reason) for name in asked]
    values = {wire: getattr(options, name) for name, wire in _SAID.items()}
    return {wire: value for wire, value in values.items() if value is not None and value != ()}
