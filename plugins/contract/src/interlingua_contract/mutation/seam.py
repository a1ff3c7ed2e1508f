"""The seam between core and a plugin: a wrapper of every hook that records each value that crosses, or changes one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import attrs

import interlingua_serving
from interlingua.errors import InterlinguaError
from interlingua.plugins import Connection, KeyExchange, WireRequest, WireResponse, hookimpl, no_auth
from interlingua.types import ErrorEvent, StreamEvent
from interlingua_contract.mutation.operations import OPERATIONS, Changes, Known, changes_of, is_word, operations_at
from interlingua_contract.mutation.tree import (
    DROP,
    Impossible,
    Node,
    Place,
    format_place,
    parse,
    walk,
    with_changes,
)

_MOST_WORDS = 12
_MOST_SAMPLES = 6
_MOST_AWKWARD = 3
_LONGEST_WINDOW = 4
"""Events that are held for a swap at most: held for longer, they would be noticed for being late."""

_NORMALISING = ("strip", "compose", "line-ends")


def _is_set_by_core(hook: str, place: Place) -> bool:
    """True for the partial message of an error, and for the message of a loss, which core finds by the path."""
    if hook == "stream_response":
        return place[1:3] == ("error", "partial")
    return hook == "to_wire" and place[:1] == ("losses",) and place[2:] == ("message_id",)


@attrs.frozen
class Mutant:
    """One systematic fault: an operation at a place of one hook's results, wherever the place occurs."""

    hook: str
    place: Place
    operation: str

    def __str__(self) -> str:
        return f"{self.hook} {format_place(self.place)} {self.operation}"


@attrs.define
class Crossing:
    """The record of one place of one hook's results.

    Attributes:
        hook: the hook.
        place: the place.
        scene: the rule, and the API and model, that first led there.
        rules: numbers of the rules that led there, and the names of recorded exchanges in which it is.
        aims: API and model of the requests and answers in which it is.
        words: short words seen there.
        samples: some results' nodes at the place.
    """

    hook: str
    place: Place
    scene: str
    rules: set[str] = attrs.field(factory=set)
    aims: set[str] = attrs.field(factory=set)
    words: set[str] = attrs.field(factory=set)
    samples: list[list[Node]] = attrs.field(factory=list)
    _most: int = 0
    _awkward: int = 0

    def add(self, nodes: list[Node]) -> None:
        """Keep words, and results that are new in some way: more occurrences, or a string that normalising changes."""
        if len(self.words) < _MOST_WORDS:
            self.words.update(str(node.value) for node in nodes if is_word(node.value))
        new = len(self.samples) == 1 and [node.value for node in nodes] != [node.value for node in self.samples[0]]
        if new or not self.samples or (len(self.samples) < _MOST_SAMPLES and len(nodes) > self._most):
            self._most = len(nodes)
            self.samples.append(nodes)
        elif self._awkward < _MOST_AWKWARD and any(
            changes_of(OPERATIONS[name], nodes, Known()) for name in _NORMALISING
        ):
            self._awkward += 1
            self.samples.append(nodes)

    @property
    def mutants(self) -> list[Mutant]:
        """The operations that change one of the samples at least."""
        return [
            Mutant(self.hook, self.place, operation.name)
            for operation in operations_at(self.place).values()
            if any(self._changes(operation.name, sample) for sample in [*self.samples, self._stream])
        ]

    def example(self, operation: str) -> str:
        """Return the first value that an operation changes, for messages."""
        for sample in [*self.samples, self._stream]:
            if changed := self._changes(operation, sample):
                return next((repr(node.value) for node in sample if node.path in changed), "")
        return ""

    @property
    def _stream(self) -> list[Node]:
        """The samples as one result: the events of a stream cross one by one."""
        if self.hook != "stream_response":
            return []
        events = enumerate(sample[0] for sample in self.samples)
        return [attrs.evolve(node, path=(at, *node.path[1:])) for at, node in events if node.path]

    def _changes(self, name: str, sample: list[Node]) -> Changes:
        earlier = [node.value for node in next((one for one in self.samples if one is not sample), [])]
        found = changes_of(operations_at(self.place)[name], sample, Known(self.words, earlier))
        return {} if found.get(()) is DROP else found


class Seam:
    """A general plugin that wraps every hook of a provider and of its serving plugin.

    Attributes:
        crossings: hook and place -> what was seen there, while recording.
        applied: results that the armed mutant has changed.
        scene: the rule that is running.
    """

    def __init__(self) -> None:
        self.crossings: dict[tuple[str, Place], Crossing] = {}
        self.applied = 0
        self.scene = ""
        self._recording = False
        self._recorded: dict[Any, list[Crossing]] = {}
        self._met: set[Any] = set()
        self._mutant: Mutant | None = None
        self._words: Collection[str] = ()
        self._earlier: tuple[list[Any], list[Any]] = ([], [])
        self._declared: dict[Any, Any] = {}

    @contextmanager
    def record(self, scene: str) -> Iterator[None]:
        """Record every value that crosses while a rule runs."""
        self._recording, self.scene = True, scene
        try:
            yield
        finally:
            self._recording = False

    @contextmanager
    def arm(self, mutant: Mutant) -> Iterator[None]:
        """Change what the mutant changes."""
        self._mutant, self.applied, self._earlier, self._declared = mutant, 0, ([], []), {}
        known = self.crossings.get((mutant.hook, mutant.place))
        self._words = known.words if known is not None else ()
        try:
            yield
        finally:
            self._mutant, self._declared = None, {}

    def _pass(self, hook: str, value: Any, where: str = "", user_json: Sequence[Any] = ()) -> Any:
        """Return the value, or what the mutant makes of it."""
        if self._recording:
            self._record(hook, value, where, user_json)
        if self._mutant is None or self._mutant.hook != hook:
            return value
        return self._changed(value, user_json)

    def _record(self, hook: str, value: Any, where: str, user_json: Sequence[Any]) -> None:
        known = (hook, where, _fingerprint(value))
        if (self.scene, known) in self._met:
            return
        self._met.add((self.scene, known))
        crossed = self._recorded.get(known)
        if crossed is None:
            crossed = self._recorded[known] = self._look(hook, value, where, user_json)
        for seen in crossed:
            seen.rules.add(self.scene)

    def _look(self, hook: str, value: Any, where: str, user_json: Sequence[Any]) -> list[Crossing]:
        found: dict[Place, list[Node]] = {}
        for node in walk(value, user_json):
            if not _is_set_by_core(hook, node.place):
                found.setdefault(node.place, []).append(node)
        crossed = []
        for place, nodes in found.items():
            seen = self.crossings.get((hook, place))
            if seen is None:
                scene = f"{self.scene} {where}".strip()
                seen = self.crossings[hook, place] = Crossing(hook, place, scene)
            seen.add(nodes)
            seen.aims.add(where)
            crossed.append(seen)
        return crossed

    def _changed(self, value: Any, user_json: Sequence[Any]) -> Any:
        mutant = self._mutant
        assert mutant is not None  # noqa: S101  the caller looked
        found = [node for node in walk(value, user_json) if node.place == mutant.place]
        if not found:
            return value
        now = [node.value for node in found]
        if now != self._earlier[1]:
            self._earlier = (self._earlier[1], now)
        known = Known(self._words, self._earlier[0])
        changes = changes_of(operations_at(mutant.place)[mutant.operation], found, known)
        if not changes or changes.get(()) is DROP:
            return value
        try:
            made = with_changes(value, changes)
        except Impossible:
            return value
        self.applied += 1
        return made

    # -- the hooks of a provider --------------------------------------------------------------------------------

    @hookimpl(wrapper=True)
    def capabilities(self, model: str, options: Any) -> Generator[None, Any, Any]:
        """Wrap the hook; equal declarations stay one object."""
        found = yield
        if self._mutant is None or self._mutant.hook != "capabilities":
            return self._pass("capabilities", found, model)
        if found not in self._declared:
            self._declared[found] = self._pass("capabilities", found, model)
        else:
            self.applied += self._declared[found] != found
        return self._declared[found]

    @hookimpl(wrapper=True)
    def to_wire(self, messages: Any, tools: Any, options: Any) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        request = yield
        where = f"{request.api}/{options.model}"
        return self._pass("to_wire", request, where, _json_of_users(messages, tools, options))

    @hookimpl(wrapper=True)
    def from_wire_response(self, context: Any) -> Generator[None, Any, Any]:
        """Wrap the hook, and the error that it raises."""
        where = f"{context.origin.api}/{context.origin.model}"
        try:
            message = yield
        except InterlinguaError as error:
            raise self._pass("from_wire_response", _Raised(error), where).error from error
        return self._pass("from_wire_response", message, where)

    @hookimpl(wrapper=True)
    def follow_up(self, context: Any) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        found = yield
        return found and self._pass("follow_up", found, f"{context.origin.api}/{context.origin.model}")

    @hookimpl(wrapper=True)
    def stream_response(self, context: Any) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        events = yield
        return self._stream(events, f"{context.origin.api}/{context.origin.model}")

    @hookimpl(wrapper=True)
    def from_wire_error(self, context: Any) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        error = yield
        return error and self._pass("from_wire_error", error, f"{context.origin.api}/{context.origin.model}")

    @hookimpl(wrapper=True)
    def connection(self, settings: Any) -> Generator[None, Any, Any]:
        """Wrap the hook, and the functions of the connection."""
        made = yield
        return self._with_functions(self._pass("connection", made, settings.api or ""))

    @hookimpl(wrapper=True)
    def models(self) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        found = yield
        return found and self._pass("models", tuple(found))

    @hookimpl(wrapper=True)
    def model_info(self) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        found = yield
        return found and self._pass("model_info", found)

    @hookimpl(wrapper=True)
    def estimate_input_tokens(self) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        return self._pass("estimate_input_tokens", (yield))

    @hookimpl(wrapper=True)
    def cost_of(self) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        cost = yield
        return cost and self._pass("cost_of", cost)

    @hookimpl(wrapper=True)
    def auxiliary_request(self, kind: str) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        request = yield
        return request and self._pass("auxiliary_request", request, kind)

    @hookimpl(wrapper=True)
    def from_wire_auxiliary(self, kind: str) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        return self._pass("from_wire_auxiliary", (yield), kind)

    # -- the hooks of a serving plugin --------------------------------------------------------------------------

    @interlingua_serving.hookimpl(wrapper=True)
    def served_apis(self) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        return self._pass("served_apis", tuple((yield) or ()))

    @interlingua_serving.hookimpl(wrapper=True)
    def from_wire_request(self, context: Any) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        inbound = yield
        return inbound and self._pass("from_wire_request", inbound, context.api)

    @interlingua_serving.hookimpl(wrapper=True)
    def to_wire_response(self, message: Any, context: Any) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        response = yield
        return response and self._pass("to_wire_response", response, context.api, _json_of_users([message], (), None))

    @interlingua_serving.hookimpl(wrapper=True)
    def stream_to_wire(self, context: Any) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        writer = yield
        return writer and _Writer(self, writer, context.api)

    @interlingua_serving.hookimpl(wrapper=True)
    def to_wire_error(self, context: Any) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        response = yield
        return response and self._pass("to_wire_error", response, context.api)

    @interlingua_serving.hookimpl(wrapper=True)
    def to_wire_auxiliary(self, kind: str) -> Generator[None, Any, Any]:
        """Wrap the hook."""
        response = yield
        return response and self._pass("to_wire_auxiliary", response, kind)

    # -- what is not a plain value ---------------------------------------------------------------------------------

    def _with_functions(self, made: Connection) -> Connection:
        """Wrap the functions of a connection: their results cross the seam too."""

        def passed(name: str, inner: Any) -> Any:
            return lambda *given: self._pass("connection", {f"{name}()": inner(*given)})[f"{name}()"]

        functions: dict[str, Any] = {"url": made.url, "sign": made.sign, "auth": made.auth}
        given = {name: inner for name, inner in functions.items() if inner is not None and inner is not no_auth}
        changed = {name: passed(name, inner) for name, inner in given.items()}
        if (exchange := made.key_exchange) is not None:
            request = passed("key_exchange.request", exchange.request)
            changed["key_exchange"] = KeyExchange(request=request, read=passed("key_exchange.read", exchange.read))
        return attrs.evolve(made, **changed) if changed else made

    async def _stream(self, events: AsyncIterator[StreamEvent], where: str) -> AsyncGenerator[StreamEvent, None]:
        """Pass events on one by one, or in pairs if the mutant compares two."""
        window = _Window(self, where)
        try:
            async for event in events:
                for made in window.feed(event):
                    yield made
            for made in window.held:
                yield made
        except Exception:
            for made in window.held:  # they were yielded before the error
                yield made
            raise
        finally:
            if isinstance(events, AsyncGenerator):
                with suppress(RuntimeError):  # it is being closed already
                    await events.aclose()

    def frames(self, data: bytes, api: str, user_json: Sequence[Any]) -> bytes:
        """Pass on the frames of a served stream."""
        found = _split_frames(data)
        if found is None:
            return data
        made: Sequence[_Frame] = self._pass("stream_to_wire", found, api, user_json)
        return data if made is found else _join_frames(data, made)


@attrs.frozen
class _Raised:
    """An error that a hook raised: not the value that it returns."""

    error: InterlinguaError


class _Window:
    """The events of one stream that a mutant needs at once: two for a swap, else the first beside each."""

    def __init__(self, seam: Seam, where: str) -> None:
        self._seam, self._where = seam, where
        self._first: StreamEvent | None = None
        self._swapped = False
        self.held: list[StreamEvent] = []

    def feed(self, event: StreamEvent) -> Sequence[StreamEvent]:
        seam = self._seam
        if seam._recording:
            seam._record("stream_response", (event,), self._where, ())
        mutant = seam._mutant
        if mutant is None or mutant.hook != "stream_response":
            return (event,)
        if not self.held and mutant.place[:1] != (f"*[{event.type}]",):
            return (event,)
        if mutant.operation == "swap":
            return self._swap(event, mutant)
        if mutant.operation in ("drop-later", "first-everywhere"):
            if self._first is not None:
                return tuple(seam._changed((self._first, event), ()))[1:]
            self._first = event if _has(event, mutant.place) else None
            return (event,)
        return tuple(seam._changed((event,), ()))

    def _swap(self, event: StreamEvent, mutant: Mutant) -> Sequence[StreamEvent]:
        """Hold events from the first with the place on, until a swap with a later one changes something."""
        if self._swapped or not (self.held or _has(event, mutant.place)):
            return (event,)
        self.held.append(event)
        before = tuple(self.held)
        made: tuple[StreamEvent, ...] = tuple(self._seam._changed(before, ()))
        if made == before and len(before) < _LONGEST_WINDOW:
            return ()
        self.held, self._swapped = [], True
        return made


def _has(event: StreamEvent, place: Place) -> bool:
    return any(node.place == place for node in walk((event,)))


class _Writer:
    """A stream writer whose bytes pass through the seam."""

    def __init__(self, seam: Seam, inner: Any, api: str) -> None:
        self._seam, self._inner, self._api = seam, inner, api
        self._given: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def feed(self, events: Iterable[StreamEvent]) -> bytes:
        given = list(events)
        blocks = [block for event in given if (block := getattr(event, "block", None)) is not None]
        self._given += _json_of_blocks(blocks)
        return self._seam.frames(self._inner.feed(given), self._api, self._given)

    def end(self) -> bytes:
        return self._seam.frames(self._inner.end(), self._api, self._given)


class _Frame(NamedTuple):
    event: str
    data: Any


def _split_frames(data: bytes) -> tuple[_Frame, ...] | None:
    """Read the frames of server-sent events or of JSON lines; None for any other framing."""
    frames: list[_Frame] = []
    for raw in filter(None, data.split(b"\n\n" if b"data: " in data else b"\n")):
        lines = raw.split(b"\n") if b"data: " in data else [b"data: " + raw]
        name = next((line[7:].decode() for line in lines if line.startswith(b"event: ")), "")
        body = b"\n".join(line[6:] for line in lines if line.startswith(b"data: "))
        parsed = parse(body)
        try:
            frames.append(_Frame(name, body.decode() if parsed is None else parsed))
        except UnicodeDecodeError:
            return None
    return tuple(frames)


def _join_frames(data: bytes, frames: Iterable[_Frame]) -> bytes:
    out = []
    for frame in frames:
        text = frame.data if isinstance(frame.data, str) else json.dumps(frame.data, separators=(",", ":"))
        if b"data: " not in data:
            out.append(f"{text}\n")
        else:
            out.append(f"event: {frame.event}\ndata: {text}\n\n" if frame.event else f"data: {text}\n\n")
    return "".join(out).encode()


def _fingerprint(value: Any) -> Any:
    """Return something equal for equal values, and quick to compare."""
    if type(value) is tuple and len(value) == 1:  # an event of a stream
        value = value[0]
    if isinstance(value, (ErrorEvent, _Raised)):
        value = value.error
    if isinstance(value, InterlinguaError):
        return type(value), value.message, value.status, value.code, value.request_id, value.retry_after
    if isinstance(value, (WireRequest, WireResponse)):
        return type(value), value.body, repr(attrs.evolve(value, body=b""))
    try:
        hash(value)
    except TypeError:
        return object()
    return value


def _json_of_users(messages: Any, tools: Any, options: Any) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a request that are the user's: arguments, schemas, opaque data."""
    found: list[Any] = [each for message in messages for each in _json_of_blocks(message.content)]
    found += [getattr(tool, "input_schema", None) for tool in tools]
    if options is not None:
        found += [options.response_schema, *dict(options.provider_options or {}).values()]
    return [value for value in found if isinstance(value, Mapping) and value]


def _json_of_blocks(blocks: Iterable[Any]) -> list[Any]:
    """Return arguments and opaque data of blocks."""
    found = [getattr(block, name, None) for block in blocks for name in ("input", "data", "raw")]
    return [value for value in found if isinstance(value, Mapping) and value]
