"""Read what a caller gave, options by name, a text or messages, tools, into typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import CallerError
from interlingua.types.factories import user
from interlingua.types.messages import Message
from interlingua.types.options import AdapterOptions, ToolChoice, check_values, option_fields
from interlingua.types.tools import ToolDefinition

# `model` and `user_id` are arguments of their own; `stream` is which method is called
_NAMES = frozenset(option_fields()) - {"model", "stream", "user_id"}
_NO_CONVERSATION = "a conversation is a sequence of Message values; interlingua.user(...) makes one"

_HINTS = {
    "stream": "call .stream(...) for a stream",
    "system": "put interlingua.system(...) first in the messages",
    "messages": "give the messages as the first argument",
    "max_completion_tokens": "it is called max_tokens here",
    "extra_body": "it is called provider_options here",
    "extra_headers": "it is called headers here",
    "timeout": "give it to the client: Client(..., timeout=Timeout(total=60))",
    "retry": "give it to the client: Client(..., retry=2)",
    "max_retries": "give it to the client: Client(..., retry=2)",
}


def read_options(given: Mapping[str, Any], **fixed: Any) -> AdapterOptions:
    """Make the options of one request.

    Args:
        given: options by name, as the caller wrote them.
        **fixed: fields that are no options of the caller's.

    Raises:
        CallerError: an option has no such name (the message lists near ones), or its value is of another kind.
    """
    if not given.keys() <= _NAMES:
        raise _unknown_option(next(name for name in given if name not in _NAMES))
    check_values(given)
    return AdapterOptions(**fixed, **given)


def _unknown_option(name: str) -> CallerError:
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    hint = _HINTS.get(name)
    if hint is None:
        near = get_close_matches(name, _NAMES, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(sorted(_NAMES))}"
    return CallerError(f"unknown option {name!r}: {hint}")


def read_messages(given: str | Message | Sequence[Message]) -> Sequence[Message]:
    """Read a text or one message as a conversation of one message.

    Raises:
        CallerError: it is empty, or holds something that is not a Message.
    """
    if isinstance(given, str):
        if not given.strip():
            raise CallerError("there is nothing to send: the text is empty")
        return (user(given),)
    if isinstance(given, Message):
        return (given,)
    if not hasattr(given, "__getitem__"):
        raise CallerError(_NO_CONVERSATION)
    if not given:
        raise CallerError("there is nothing to send: the conversation is empty")
    if type(given[-1]) is not Message or type(given[0]) is not Message:
        raise CallerError(_NO_CONVERSATION)
    if not given[0].content and not any(message.content for message in given):
        raise CallerError("there is nothing to send: no message holds anything")
    return given


def read_tools(given: Sequence[Any], options: AdapterOptions) -> Sequence[ToolDefinition]:
    """Return the tools as they are.

    Raises:
        CallerError: one is no ToolDefinition, or the options force a tool that is not among them.
    """
    for tool in given:
        if not isinstance(tool, ToolDefinition):
            kind = type(tool).__name__
            raise CallerError(f"a tool is a ToolDefinition, not {kind}; from_wire_tool(...) reads a wire's")
    forced = options.tool_choice
    if isinstance(forced, ToolChoice) and all(tool.name != forced.name for tool in given):
        names = ", ".join(tool.name for tool in given) or "none"
        raise CallerError(f"tool_choice names the tool {forced.name!r}; those given are: {names}")
    return given
