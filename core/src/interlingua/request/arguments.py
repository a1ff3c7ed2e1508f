"""Read what a caller gave (a model's name, options, a text or messages, tools) into typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from interlingua.errors import CallerError
from interlingua.request.prepare import Exchange
from interlingua.types.factories import user
from interlingua.types.messages import Message, RoutingDecisionRecord
from interlingua.types.options import AdapterOptions, ToolChoice, check_values, option_fields
from interlingua.types.tools import ToolDefinition

if TYPE_CHECKING:
    from interlingua.http.shared import SharedState

# `model` and `user_id` are arguments of their own; `stream` is which method is called
_NAMES = frozenset(option_fields()) - {"model", "stream", "user_id"}


_UNCHANGING = frozenset({str, int, float, bool, type(None)})


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
        **fixed: what is no option of the caller's.

    Raises:
        CallerError: an option has no such name (the message lists near ones), or its value is of another kind.
    """
    if not given.keys() <= _NAMES:
        raise _unknown(next(name for name in given if name not in _NAMES))
    named = {**fixed, **given}
    values = tuple(named.values())
    kinds = tuple(map(type, values))
    if _UNCHANGING.issuperset(kinds):  # as in most requests, and most are asked alike
        return _kept_options(tuple(named), values, kinds)
    return _options(named)


@lru_cache(maxsize=64)
def _kept_options(names: tuple[str, ...], values: tuple[Any, ...], _kinds: tuple[type, ...]) -> AdapterOptions:
    return _options(dict(zip(names, values, strict=True)))


def _options(named: Mapping[str, Any]) -> AdapterOptions:
    check_values({name: value for name, value in named.items() if name in _NAMES})
    return AdapterOptions(**named)


def _unknown(name: str) -> CallerError:
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


def read_tools(given: Sequence[ToolDefinition], asked: AdapterOptions) -> Sequence[ToolDefinition]:
    """Return the tools as they are.

    Raises:
        CallerError: one is no ToolDefinition, or the options force a tool that is not among them.
    """
    odd = next((type(tool).__name__ for tool in given if not isinstance(tool, ToolDefinition)), None)
    if odd is not None:
        raise CallerError(f"a tool is a ToolDefinition, not {odd}; from_wire_tool(...) reads a wire's")
    forced = asked.tool_choice
    if isinstance(forced, ToolChoice) and all(tool.name != forced.name for tool in given):
        names = ", ".join(tool.name for tool in given) or "none"
        raise CallerError(f"tool_choice names the tool {forced.name!r}; those given are: {names}")
    return given


def begin(
    core: SharedState,
    messages: str | Message | Sequence[Message],
    *,
    model: str | None,
    tools: Sequence[ToolDefinition],
    routing: RoutingDecisionRecord | None,
    user_id: str | None,
    options: Mapping[str, Any],
    stream: bool,
) -> Exchange:
    """Begin one request: everything before its references are fetched.

    Raises:
        CallerError: an option or the conversation cannot be read; anything `SharedState.known` raises.
    """
    known = core.known(model)
    given = dict(options)
    if core.headers:
        given["headers"] = {**core.headers, **(given.get("headers") or {})}
    if given.get("api") is None and (api := core.api(known.provider)) is not None:
        given["api"] = api
    asked = read_options(given, model=known.id.name, stream=stream, user_id=user_id)
    return Exchange(
        core, known.provider, read_messages(messages), read_tools(tools, asked), asked, routing or known.routing
    )
