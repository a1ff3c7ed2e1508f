"""One result of a hook in a named scene, and the requests of the scenes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import attrs

from interlingua.plugins import WireRequest
from interlingua.types import Message, ToolDefinition
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.approved.histories import OPTIONS, OTHER_TOOLS, THEN, TOOLS, fixed_histories
from interlingua_contract.approved.values import digest, plain, shorten
from interlingua_contract.block_facts import block_scenes, tools_of
from interlingua_contract.recordings import read_answer
from interlingua_contract.rule import NotApplicable
from interlingua_contract.scenes import own_origin
from interlingua_contract.subject import Aim, Subject

_ALL = 99
_DEEP = 6
_LEAST = 3
_LARGE = 5000
"""Characters of a result that is kept whole; of a larger one, all but the first steps are digests."""

_NAME = 4
"""Letters of a model's name that occurs nowhere by accident."""

_WITH_TOOLS = (
    "calls",
    "long",
    "media in results",
    "films in results",
    "reasoning",
    "cached",
    "cached results",
    "everything",
    "changes",
)


DEPTHS: Mapping[str, int] = {
    "everything": 2,
    "long": 3,
    "films in results": 3,
    "changes": 3,
    "changes of effort": 3,
    "changes of format": 3,
    "many tools": 2,
    "calls without tools": 3,
    "reasoning of another": 3,
    "reasoning without tools": 3,
}
"""Steps that are kept of the requests of large scenes; smaller scenes show the same parts whole."""


class Shown(NamedTuple):
    """One result.

    Attributes:
        scene: name of what was asked.
        where: API and model; "" if there is no choice of models.
        value: JSON, shortened.
        whole: JSON.
    """

    scene: str
    where: str
    value: Any
    whole: Any


def show(
    scene: str, where: str, make: Callable[..., Any], *given: Any, model: str = "", depth: int = _ALL, **named: Any
) -> Shown:
    """Return what a function returns, or the error that it raises; the model's name is replaced.

    `depth` is the number of steps below which a value that is not small is a digest; there are fewer for a large one.
    """
    value = result_of(make, *given, **named)
    if len(model) >= _NAME:
        text = json.dumps(value)
        for name in dict.fromkeys((json.dumps(model)[1:-1], quote(model, safe=""))):
            text = text.replace(name, "$MODEL")
        value = json.loads(text)
    return Shown(scene, where, _shorten_large(value, depth), value)


def _shorten_large(value: Any, depth: int) -> Any:
    made = shorten(value, depth)
    for fewer in range(min(depth, _DEEP), _LEAST - 1, -1):
        if len(json.dumps(made)) <= _LARGE:
            break
        made = shorten(value, fewer)
    return made


def result_of(make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Return what a function returns as JSON, or the error that it raises."""
    try:
        return plain(make(*given, **named))
    except NotApplicable:
        raise
    except Exception as error:  # an error is a result
        return plain(error)


class Asked(NamedTuple):
    """One request to write."""

    scene: str
    history: list[Message]
    tools: Sequence[ToolDefinition] = ()
    options: Mapping[str, Any] = {}


def requests_for(subject: Subject, aim: Aim) -> Iterator[Asked]:
    """Yield the fixed conversations, each kind of block alone, and options with their neighbours."""
    tools = TOOLS if aim.capabilities.supports_tools else ()
    histories = fixed_histories(own_origin(subject, aim))
    for name, history in histories.items():
        yield Asked(name, history, tools if name in _WITH_TOOLS else ())
    for name in ("calls", "reasoning"):
        yield Asked(f"{name} without tools", histories[name])
    for name, history in block_scenes(subject, aim).items():
        yield Asked(f"small: {name}", dated(history), tools_of(name) or tools[:1])
    for name, offered in OTHER_TOOLS.items() if tools else ():
        yield Asked(name, histories["said"][-1:], offered)
    for name, options in OPTIONS.items():
        needed = tools if options.keys() & {"tool_choice", "parallel_tool_calls"} else ()
        yield Asked(f"option: {name}", histories["said"][-1:], needed, options)
    yield Asked("documents and options", histories["documents"], (), {**OPTIONS["zeros"], "stop": ("End9",)})


def write(subject: Subject, aim: Aim, asked: Asked) -> WireRequest:
    """Write a request."""
    return subject.write(aim, asked.history, asked.tools, **asked.options)


def dated(history: Sequence[Message]) -> list[Message]:
    """Return a conversation with fixed ids and times."""
    return [
        attrs.evolve(message, id=f"01KDVBKF00{at:016d}", session_id="contract", created_at=THEN)
        for at, message in enumerate(history)
    ]


def name_of(exchange: RecordedExchange) -> str:
    """Return the cassette of an exchange, with letters that differ for its others."""
    asked = json.dumps(exchange.request, default=str)
    return f"{exchange.cassette} {digest(asked + exchange.body.hex())}"


def read_messages(subject: Subject) -> Iterator[tuple[RecordedExchange, Message]]:
    """Yield the recorded answers that became whole messages."""
    for exchange in subject.exchanges:
        read = read_answer(subject, exchange) if exchange.good else None
        if read is not None and read.message is not None and read.error is None:
            yield exchange, read.message
