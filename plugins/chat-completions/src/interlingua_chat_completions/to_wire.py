"""A projected conversation to the exact request.

Never adds auth and never sends; message fragments are remembered, so a turn costs its new messages (DESIGN 8).
The format's front door comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import is_
from typing import Any

from interlingua.json import EMPTY, dumps
from interlingua.plugins.encoding import (
    GrowingArray,
    Json,
    Piece,
    concat_arrays,
    json_array,
    json_object,
    keep_grown,
    remembered,
    take_grown,
)
from interlingua.plugins.wire import BlockLoss, Loss, Verdict, WireRequest, option_loss
from interlingua.types.messages import DEFAULT_SESSION, Message, Role
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition
from interlingua_chat_completions.cache_marks import TOO_MANY, Hint, Markers, cache_key
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.order import breaks_order, ordered
from interlingua_chat_completions.strict_tools import OPTION
from interlingua_chat_completions.to_wire_messages import Element, Profile, to_wire_message
from interlingua_chat_completions.to_wire_options import to_wire_options
from interlingua_chat_completions.to_wire_tools import (
    ToolList,
    leaves_tools_out,
    strict_asked,
    to_wire_tool_choice,
    to_wire_tools,
)
from interlingua_chat_completions.to_wire_usual import usual_body

PATH = "/chat/completions"
_GROWN = "chat-completions.grown"


class RequestWriter:
    """Writes requests of one service; keeps the bytes of the tool list it wrote last."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._tools: tuple[tuple[ToolDefinition, ...], Dialect, Any, ToolList] | None = None

    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions, dialect: Dialect,
        api: str,
    ) -> WireRequest:  # fmt: skip
        """Write the request; `provider_options` are laid over the body, but `tools` stand behind the declared ones.

        Two options are no fields of the body: the one that the dialect's `prefill_field` names marks the last message,
        and `strict_tools` makes tools strict.

        Raises:
            CapabilityError: a schema or a forced tool cannot be said to this service.
        """
        losses: list[Loss] = []
        asked = strict_asked(options, dialect)
        listed = self._tool_list(tools, dialect, asked) if tools and not leaves_tools_out(options, dialect) else None
        lifetimes = dialect.cache_style == "cache_control"
        marks = Markers(listed.marks if listed is not None else (), lifetimes=lifetimes)
        elements = self.elements(messages, dialect, options, losses, marks)
        fields: dict[str, Json] = {"model": dumps(options.model), "messages": elements}
        if listed is not None:
            fields["tools"] = listed.wire
            losses += listed.losses
            choice = to_wire_tool_choice(options, dialect, tools, losses)
            if choice is not None:
                fields["tool_choice"] = choice
            if options.parallel_tool_calls is not None:
                if dialect.parallel_tool_calls:
                    fields["parallel_tool_calls"] = dumps(options.parallel_tool_calls)
                else:
                    losses.append(option_loss("parallel_tool_calls", "dropped", "this service has no such option"))
        fields |= to_wire_options(options, dialect, losses)
        if dialect.cache_key_field is not None and marks.spent and messages[0].session_id != DEFAULT_SESSION:
            fields[dialect.cache_key_field] = dumps(cache_key(messages[0].session_id))
        extra = {name: dumps(value) for name, value in options.provider_options.items() if not _is_ours(name, dialect)}
        if "tools" in extra and listed is not None:  # the service's own
            extra["tools"] = concat_arrays(listed.wire, extra["tools"])
        fields |= extra
        return WireRequest(
            path=PATH,
            body=json_object(fields),
            losses=tuple(losses),
            api=api,
            stream=options.stream,
            echo=listed.echo if listed is not None else EMPTY,
        )

    def elements(
        self, messages: Sequence[Message], dialect: Dialect, options: AdapterOptions, losses: list[Loss],
        marks: Markers | None = None,
    ) -> list[Piece]:  # fmt: skip
        """Return the pieces of the message list, ready to be joined."""
        profile = Profile(self._provider, dialect, _thinks(options))
        if _is_prefilled(options, dialect):
            return [json_array(_every(messages, profile, losses, marks or Markers(), prefilled=True))]
        grown = (_GROWN, profile)
        known, made = take_grown(messages, grown)
        array: GrowingArray = made or GrowingArray()
        make = partial(to_wire_message, profile=profile)
        ruled = dialect.after_results is not None or dialect.after_answer is not None
        short = not (ruled or dialect.single_system)
        for at, message in enumerate(messages[known:], known):
            element = message.memo.get(profile)
            if element is None:
                if short and (body := usual_body(message, dialect)) is not None:
                    array.say(body)
                    continue
                element = remembered(message, profile, make)
            wire, rows, hints = element
            special = rows or (hints and dialect.cache_breakpoints) or dialect.single_system
            if special or (
                ruled and breaks_order(messages, at, dialect, lambda one: remembered(one, profile, make).wire)
            ):
                return [json_array(_every(messages, profile, losses, marks or Markers()))]
            array.put(wire)
        keep_grown(messages, grown, array)
        return array.closed()

    def _tool_list(self, tools: Sequence[ToolDefinition], dialect: Dialect, asked: Any) -> ToolList:
        last = self._tools
        if last is not None and last[1:3] == (dialect, asked) and _same(last[0], tools):
            return last[3]
        listed = to_wire_tools(tools, dialect, asked)
        self._tools = (tuple(tools), dialect, asked, listed)
        return listed


def _thinks(options: AdapterOptions) -> bool:
    return options.thinking is not False and options.effort != "none"


def _same(before: Sequence[ToolDefinition], now: Sequence[ToolDefinition]) -> bool:
    return len(before) == len(now) and all(map(is_, before, now))


def _is_ours(name: str, dialect: Dialect) -> bool:
    return name == dialect.prefill_field or (dialect.strict_option and name == OPTION)


def _is_prefilled(options: AdapterOptions, dialect: Dialect) -> bool:
    return dialect.prefill_field is not None and bool(options.provider_options.get(dialect.prefill_field))


def _every(
    messages: Sequence[Message], profile: Profile, losses: list[Loss], marks: Markers, *, prefilled: bool = False
) -> list[bytes]:
    """Write a conversation in which something is lost, marked or put together."""
    dialect = profile.dialect
    make = partial(to_wire_message, profile=profile)
    found = [remembered(message, profile, make) for message in messages]
    for index, element in enumerate(found):
        if element.rows:
            losses += [row.at(index, messages[index].id) for row in element.rows]
    if dialect.cache_breakpoints:
        found = _marked(messages, found, profile, losses, marks)
    wire = ordered(messages, [element.wire for element in found], dialect, losses, prefilled=prefilled)
    if dialect.single_system:
        wire = _one_system(messages, found, dialect) or wire
    return wire


def _marked(
    messages: Sequence[Message], found: list[Element], profile: Profile, losses: list[Loss], marks: Markers
) -> list[Element]:
    """Put markers on the last hinted blocks, as many as the wire allows; the fragments without stay remembered."""
    hinted = [(index, hint) for index, element in enumerate(found) for hint in element.hints]
    many = len(hinted) - marks.left
    out = found[:]
    chosen: dict[int, tuple[Hint, ...]] = {}
    for place, (index, hint) in enumerate(hinted):
        why = TOO_MANY if place < many else marks.spend(hint.ttl)
        if why is not None:
            block_type = messages[index].content[hint.block].type
            verdict: Verdict = "dropped" if why == TOO_MANY else "rewritten"
            losses.append(BlockLoss(hint.block, block_type, verdict, why).at(index, messages[index].id))
        if why != TOO_MANY:
            held = chosen.get(index, ())
            chosen[index] = (*held, hint._replace(ttl=marks.spent[-1]))
    for index, hints in chosen.items():
        marked = profile._replace(marked=hints)
        out[index] = remembered(messages[index], marked, partial(to_wire_message, profile=marked))
    return out


def _one_system(messages: Sequence[Message], found: list[Element], dialect: Dialect) -> list[bytes] | None:
    """Join leading system messages for services that want exactly one; None when there is nothing to join."""
    count = next((at for at, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))
    if count < 2:
        return None
    text = "\n\n".join([message.text_content() for message in messages[:count]])
    rest = [part for element in found[count:] for part in element.wire]
    return [dumps({"role": dialect.system_role, "content": text}), *rest]
