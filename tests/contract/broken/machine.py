"""How an adapter is broken: a provider object that passes every hook on to a real one, except those replaced."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from functools import cache, cached_property
from typing import Any

import attrs

import interlingua_serving
from interlingua._plugins.hookspecs import hookimpl
from interlingua._plugins.registry import Registry
from interlingua.types.events import StreamEvent
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.subject import Subject
from tests.support import tree

_EXAMPLES = tree.ROOT / "docs" / "plugins"


@cache
def real(key: str) -> Any:
    """Return the shipped provider object, or that of an example in docs/plugins."""
    for group in ("interlingua.providers", "interlingua.presets"):
        for entry in importlib.metadata.entry_points(group=group, name=key):
            return entry.load()
    return _example(key)


def _example(key: str) -> Any:
    """Return the provider object of an example in docs/plugins."""
    folder = str(_EXAMPLES / key / "src")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(f"interlingua_{key}.plugin").plugin
    finally:
        sys.path.remove(folder)


@cache
def real_serving(key: str) -> Any:
    """Return the shipped serving plugin; None for a provider that has none."""
    return next((each.load() for each in importlib.metadata.entry_points(group="interlingua.serving", name=key)), None)


class Handed:
    """The real provider's hooks under their full signatures; a subclass or `replace` breaks some."""

    defect = ""

    def __init__(self, inner: Any, serving: Any = None, **replaced: Callable[..., Any]) -> None:
        self._inner, self._serving = inner, serving
        self._replaced = replaced

    def __reduce__(self) -> Any:
        """Let another process make the broken provider by the name of its defect."""
        if not self.defect:
            raise TypeError("a provider without the name of a defect cannot be made in another process")
        return _made_again, (self.defect,)

    def _call(self, name: str, **arguments: Any) -> Any:
        def inner(**changed: Any) -> Any:
            function = getattr(self._inner, name, None) or getattr(self._serving, name, None)
            if function is None:
                return None
            taken = inspect.signature(function).parameters
            return function(**{key: value for key, value in {**arguments, **changed}.items() if key in taken})

        replacement = self._replaced.get(name)
        return inner() if replacement is None else replacement(inner, **arguments)

    @hookimpl
    def capabilities(self, model: Any, options: Any) -> Any:
        return self._call("capabilities", model=model, options=options)

    @hookimpl
    def to_wire(self, messages: Any, tools: Any, options: Any) -> Any:
        return self._call("to_wire", messages=messages, tools=tools, options=options)

    @hookimpl
    def from_wire_response(self, response: Any, context: Any) -> Any:
        return self._call("from_wire_response", response=response, context=context)

    @hookimpl
    def stream_response(self, response_stream: Any, context: Any) -> Any:
        return self._call("stream_response", response_stream=response_stream, context=context)

    @hookimpl
    def estimate_input_tokens(self, messages: Any, tools: Any, options: Any) -> Any:
        return self._call("estimate_input_tokens", messages=messages, tools=tools, options=options)

    @hookimpl
    def follow_up(self, response: Any, context: Any) -> Any:
        return self._call("follow_up", response=response, context=context)

    @hookimpl
    def from_wire_error(self, response: Any, context: Any) -> Any:
        return self._call("from_wire_error", response=response, context=context)

    @hookimpl
    def connection(self, settings: Any) -> Any:
        return self._call("connection", settings=settings)

    @hookimpl
    def models(self) -> Any:
        return self._call("models")

    @hookimpl
    def model_info(self, model: Any) -> Any:
        return self._call("model_info", model=model)

    @hookimpl
    def cost_of(self, message: Any, model: Any) -> Any:
        return self._call("cost_of", message=message, model=model)

    @hookimpl
    def auxiliary_request(self, kind: Any, arguments: Any) -> Any:
        return self._call("auxiliary_request", kind=kind, arguments=arguments)

    @hookimpl
    def from_wire_auxiliary(self, kind: Any, response: Any) -> Any:
        return self._call("from_wire_auxiliary", kind=kind, response=response)

    @interlingua_serving.hookimpl
    def served_apis(self) -> Any:
        return self._call("served_apis")

    @interlingua_serving.hookimpl
    def from_wire_request(self, request: Any, context: Any) -> Any:
        return self._call("from_wire_request", request=request, context=context)

    @interlingua_serving.hookimpl
    def to_wire_response(self, message: Any, context: Any) -> Any:
        return self._call("to_wire_response", message=message, context=context)

    @interlingua_serving.hookimpl
    def stream_to_wire(self, context: Any) -> Any:
        return self._call("stream_to_wire", context=context)

    @interlingua_serving.hookimpl
    def to_wire_error(self, error: Any, context: Any) -> Any:
        return self._call("to_wire_error", error=error, context=context)

    @interlingua_serving.hookimpl
    def to_wire_auxiliary(self, kind: Any, value: Any, context: Any) -> Any:
        return self._call("to_wire_auxiliary", kind=kind, value=value, context=context)

    @hookimpl
    def wire_rules(self) -> Any:
        return self._call("wire_rules")


@attrs.frozen
class Mutant:
    """One defect.

    Attributes:
        name: the defect in a few words.
        rule: number of the rule that must catch it.
        replaced: hook -> function(inner, **arguments) in its place.
        key: the provider that is broken.
        api: of a provider with several wires, the only one that is looked at.
        alone: only its own rule can look at it.
    """

    name: str
    rule: str
    replaced: dict[str, Callable[..., Any]]
    key: str = "anthropic"
    api: str = ""
    alone: bool = attrs.field(default=False, init=False)

    def subject(self, seed: int = 0, examples: int = 40) -> Subject:
        """Return the broken provider under test."""
        return subject_of(self.key, self.plugin(), self.api, seed, examples)

    def plugin(self) -> Handed:
        """Return the broken provider."""
        made = Handed(real(self.key), real_serving(self.key), **self.replaced)
        made.defect = self.name
        return made


def _made_again(defect: str) -> Handed:
    from tests.contract.broken import SHELF

    return next(mutant.plugin() for mutant in SHELF if isinstance(mutant, Mutant) and mutant.name == defect)


class OneWire(Subject):
    """A subject of which only one wire is looked at."""

    only: str

    @cached_property
    def apis(self) -> tuple[str, ...]:
        """That wire."""
        return (self.only,)

    @cached_property
    def exchanges(self) -> tuple[RecordedExchange, ...]:
        """What was recorded on that wire."""
        return tuple(each for each in Subject.exchanges.func(self) if self.api_of(each) == self.only)


def subject_of(key: str, plugin: Any, api: str = "", seed: int = 0, examples: int = 40) -> Subject:
    """Return a provider object under test, with the cassettes of the shipped one; with `api`, of that wire only."""
    registry = Registry(providers={key: plugin}, entry_points=[])
    shipped = tree.ROOT / "cassettes" / key
    made = (OneWire if api else Subject)(
        key,
        shipped if shipped.is_dir() else _EXAMPLES / key / "tests" / "cassettes",
        registry=registry,
        seed=seed,
        examples=examples,
        shrink_s=0,
    )
    if isinstance(made, OneWire):
        made.only = api
    return made


def in_body(change: Callable[[dict[str, Any]], object]) -> dict[str, Callable[..., Any]]:
    """Break every request's body, parsed."""

    def to_wire(inner: Callable[..., Any], **_: Any) -> Any:
        request = inner()
        body = json.loads(request.body)
        change(body)
        return attrs.evolve(request, body=json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode())

    return {"to_wire": to_wire}


def in_request(change: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Break every request: `change(request, messages, tools, options)` returns another."""
    return {"to_wire": lambda inner, **asked: change(inner(), **asked)}


def in_message(change: Callable[[Any], Any]) -> dict[str, Callable[..., Any]]:
    """Break every message of the whole road."""
    return {"from_wire_response": lambda inner, **_: change(inner())}


def in_events(change: Callable[[StreamEvent], Iterable[StreamEvent]]) -> dict[str, Callable[..., Any]]:
    """Break the events of every stream, one by one."""

    def stream_response(inner: Callable[..., Any], **_: Any) -> AsyncIterator[StreamEvent]:
        async def broken() -> AsyncIterator[StreamEvent]:
            async for event in inner():
                for made in change(event):
                    yield made

        return broken()

    return {"stream_response": stream_response}


def in_stream(change: Callable[[AsyncIterator[StreamEvent]], AsyncIterator[StreamEvent]]) -> dict[str, Any]:
    """Break every stream: `change(events)` yields others."""
    return {"stream_response": lambda inner, **_: change(inner())}


def in_data(change: Callable[[Any], object]) -> dict[str, Callable[..., Any]]:
    """Let the adapter misread: the JSON of every whole body and of every event is changed before it sees it."""

    def reread(data: bytes) -> bytes:
        try:
            value = json.loads(data)
        except ValueError:
            return data
        change(value)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def from_wire_response(inner: Callable[..., Any], response: Any, **_: Any) -> Any:
        return inner(response=attrs.evolve(response, body=reread(response.body)))

    def chunks(chunk: Any) -> Iterable[Any]:
        yield chunk._replace(data=reread(chunk.data))

    return {"from_wire_response": from_wire_response, **in_chunks(chunks)}


def in_chunks(change: Callable[[Any], Iterable[Any]]) -> dict[str, Callable[..., Any]]:
    """Break what the adapter gets to see of every stream."""

    def stream_response(inner: Callable[..., Any], response_stream: Any, **_: Any) -> AsyncIterator[StreamEvent]:
        async def source() -> AsyncIterator[Any]:
            async for chunk in response_stream:
                for made in change(chunk):
                    yield made

        made: AsyncIterator[StreamEvent] = inner(response_stream=source())
        return made

    return {"stream_response": stream_response}


def in_capabilities(**facts: Any) -> dict[str, Callable[..., Any]]:
    """Declare something else."""
    made: dict[Any, Any] = {}

    def capabilities(inner: Callable[..., Any], **_: Any) -> Any:
        found = inner()
        return made.setdefault(found, attrs.evolve(found, **facts))

    return {"capabilities": capabilities}
