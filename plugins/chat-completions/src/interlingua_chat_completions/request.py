"""Write a projected conversation as one request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    EMPTY,
    BlockLoss,
    Json,
    Loss,
    WireRequest,
    dumps,
    encode_each,
    json_array_concat,
    json_object,
    option_loss,
)
from interlingua.types import (
    DEFAULT_SESSION,
    Message,
    RedactedThinkingBlock,
    RequestOptions,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_chat_completions.cache_markers import TOO_MANY, Hint, Markers, cache_key
from interlingua_chat_completions.dialect import API, Dialect
from interlingua_chat_completions.messages import ChatElement, MessageProfile, to_wire_message
from interlingua_chat_completions.options import is_thinking, to_wire_options
from interlingua_chat_completions.ordering import order_turns
from interlingua_chat_completions.tools import (
    STRICT_OPTION,
    omits_tools,
    strict_option,
    to_wire_tool_choice,
    to_wire_tools,
    tools_to_offer,
    without_forcing,
)

PATH = "/chat/completions"
BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
TOKENS_PER_TOOL = 8
TOKENS_PER_MEDIA = 1000


def to_wire(
    provider: str,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: RequestOptions,
    dialect: Dialect,
    *,
    api: str = API,
) -> WireRequest:
    """Write a request; `provider_options` are merged over the body, but `tools` are appended to the declared ones.

    Two options are not fields of the body: the dialect's `prefill_field` marks the last message, and `strict_tools`
    makes tools strict.

    Args:
        provider: the provider key; state of messages from this origin is sent back.
        messages: the projected conversation.
        tools: the tools the model may call.
        options: the request's options.
        dialect: the service's deviations for this model.
        api: name of this API among the provider's.

    Raises:
        CapabilityError: the service supports no answer schema or no forced tool.
    """
    losses: list[Loss] = []
    if not dialect.forces_thinking and is_thinking(options, dialect):
        dialect = without_forcing(dialect)
    tools = tools_to_offer(tools, options, dialect, losses)
    listed = None
    if tools and not omits_tools(options, dialect):
        listed = to_wire_tools(tools, dialect, strict_option(options, dialect))
    markers = Markers(listed.markers if listed is not None else (), lifetimes=dialect.cache_style == "cache_control")
    moving = options.cache == "auto" and dialect.cache_breakpoints
    profile = MessageProfile(provider, dialect, is_thinking(options, dialect), moving=moving)
    written = _messages(messages, profile, losses, markers, prefilled=_is_prefilled(options, dialect))
    fields: dict[str, Json] = {"model": dumps(options.model), "messages": written}
    if listed is not None:
        fields["tools"] = listed.wire
        losses += listed.losses
        choice = to_wire_tool_choice(options, dialect, losses)
        if choice is not None:
            fields["tool_choice"] = choice
        if options.parallel_tool_calls is not None:
            if dialect.parallel_tool_calls:
                fields["parallel_tool_calls"] = dumps(options.parallel_tool_calls)
            else:
                losses.append(option_loss("parallel_tool_calls", "dropped", "this service has no such option"))
    if options.response_schema is not None and dialect.schema_alone and (listed is not None or options.stream):
        reason = "this service takes a schema neither beside tools nor for a stream; output= finds another way"
        raise CapabilityError(reason, path="options.response_schema")
    fields |= to_wire_options(options, dialect, losses)
    if dialect.cache_key_field is not None and markers.spent and messages[0].session_id != DEFAULT_SESSION:
        fields[dialect.cache_key_field] = dumps(cache_key(messages[0].session_id))
    extra = {name: dumps(value) for name, value in options.provider_options.items() if not _is_ours(name, dialect)}
    if "tools" in extra and listed is not None:  # the service's own
        extra["tools"] = json_array_concat(listed.wire, extra["tools"])
    fields |= extra
    return WireRequest(
        path=PATH,
        body=json_object(fields),
        losses=tuple(losses),
        api=api,
        stream=options.stream,
        echo=listed.echo if listed is not None else EMPTY,
    )


def _is_ours(name: str, dialect: Dialect) -> bool:
    return name == dialect.prefill_field or (dialect.strict_option and name == STRICT_OPTION)


def _is_prefilled(options: RequestOptions, dialect: Dialect) -> bool:
    return dialect.prefill_field is not None and bool(options.provider_options.get(dialect.prefill_field))


def _messages(
    messages: Sequence[Message], profile: MessageProfile, losses: list[Loss], markers: Markers, *, prefilled: bool
) -> list[bytes]:
    """Return the message list as pieces of one JSON array."""
    dialect = profile.dialect
    elements = encode_each(messages, profile, partial(to_wire_message, profile=profile))
    hinted = False
    for at, (_, lost, hints) in enumerate(elements):
        if lost:
            losses += [loss.at(at, messages[at].id) for loss in lost]
        if hints:
            hinted = True
    if hinted:
        elements = _with_markers(messages, elements, profile, losses, markers)
    wire = [element[0] for element in elements]
    if dialect.single_system:
        _join_leading_system(messages, wire, dialect)
    if dialect.after_results is not None or dialect.prefill_field is not None or dialect.needs_user:
        wire = order_turns(messages, wire, dialect, losses, prefilled=prefilled)
    wire = [*filter(None, wire)]
    pieces = [b","] * (2 * len(wire) or 1)  # joined once, with the request around them
    pieces[1::2] = wire
    return [b"[", *pieces[1:], b"]"]


def _with_markers(
    messages: Sequence[Message],
    elements: list[ChatElement],
    profile: MessageProfile,
    losses: list[Loss],
    markers: Markers,
) -> list[ChatElement]:
    """Write the messages of the last hinted blocks again with markers, as many as the wire allows."""
    hinted = [(at, hint) for at, element in enumerate(elements) for hint in element.hints]
    many = len(hinted) - markers.left
    chosen: dict[int, tuple[Hint, ...]] = {}
    for place, (at, hint) in enumerate(hinted):
        why = TOO_MANY if place < many else markers.spend(hint.ttl)
        if why is not None:
            verdict: Literal["dropped", "rewritten"] = "dropped" if why == TOO_MANY else "rewritten"
            block_type = messages[at].content[hint.block].type
            losses.append(BlockLoss(hint.block, block_type, verdict, why, "form").at(at, messages[at].id))
        if why != TOO_MANY:
            chosen[at] = (*chosen.get(at, ()), hint._replace(ttl=markers.spent[-1]))
    out = elements[:]
    for at, hints in chosen.items():
        out[at] = to_wire_message(messages[at], profile._replace(marked=hints))
    return out


def _join_leading_system(messages: Sequence[Message], wire: list[bytes], dialect: Dialect) -> None:
    """Write the leading system messages as one, for services that accept only one."""
    count = next((at for at, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))
    if count > 1:
        text = "\n\n".join([message.text for message in messages[:count]])
        wire[:count] = [dumps({"role": dialect.system_role, "content": text}), *[b""] * (count - 1)]


def estimate_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """Estimate a request's input tokens without sending it.

    The method: UTF-8 bytes of the conversation's text and JSON divided by 4, plus 4 per message and 8 per tool, plus a
    flat 1,000 per image, audio, video or document. For English and code expect 0.7 to 1.4 times the service's own
    count, for other scripts up to 2 times.
    """
    total = sum(encode_each(messages, "chat-completions.estimate", _message_bytes))
    total += sum([len(dumps(tool.input_schema)) + len(tool.description.encode("utf-8", "replace")) for tool in tools])
    return -(-total // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE * len(messages) + TOKENS_PER_TOOL * len(tools)


def _message_bytes(message: Message) -> int:
    return sum([_block_bytes(block) for block in message.content])


def _block_bytes(block: Any) -> int:
    if isinstance(block, TextBlock | ThinkingBlock):
        return len(block.text.encode("utf-8", "replace"))
    if isinstance(block, ToolUseBlock):
        return len(block.input_json.encode("utf-8", "replace")) + len(block.name)
    if isinstance(block, ToolResultBlock):
        return sum([_block_bytes(part) for part in block.content])
    if isinstance(block, RedactedThinkingBlock):
        return len(block.data)
    return TOKENS_PER_MEDIA * BYTES_PER_TOKEN
