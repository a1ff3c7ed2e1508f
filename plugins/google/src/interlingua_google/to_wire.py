"""Canonical conversation -> one request of generateContent or streamGenerateContent.

Never holds a key and never reads the clock; the conversation's bytes come from `contents`, this module adds the rest.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.json import dumps
from interlingua.plugins.encoding import Json, json_object
from interlingua.plugins.wire import Loss, WireRequest, option_loss
from interlingua.types.messages import Message
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition
from interlingua_google.catalogue import API
from interlingua_google.contents import to_wire_contents
from interlingua_google.generation import to_wire_generation
from interlingua_google.service import method_path
from interlingua_google.tools import to_wire_tool_choice, to_wire_tools

_CACHED_AWAY = ("systemInstruction", "tools", "toolConfig")  # they belong into the cached content (sheet §6)


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions) -> WireRequest:
    """Write the request.

    `options.provider_options` are laid over the body, with three exceptions: members of `generationConfig` and
    `toolConfig` are laid over single members, and `tools` (the service's own: `googleSearch`, `codeExecution`, …) stand
    behind the declared ones. With `cachedContent` in it, what that holds already is left out of the request.

    Raises:
        CapabilityError: something was asked that this model refuses.
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
        _leave_to_the_cache(fields, losses)
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
    tools: Sequence[ToolDefinition], options: AdapterOptions, extra: dict[str, Any], losses: list[Loss]
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


def _leave_to_the_cache(fields: dict[str, Json], losses: list[Loss]) -> None:
    for name in _CACHED_AWAY:
        if fields.pop(name, None) is not None:
            reason = f"{name} belongs to the cached content that is named; the service refuses both"
            losses.append(option_loss("provider_options.cachedContent", "dropped", reason))
