"""Histories as callers of a served API have them, while a model of any provider answers: what is lost on the way."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import attrs

from interlingua.errors import InterlinguaError
from interlingua.plugins import Loss, Registry, RequestContext, WireResponse
from interlingua.types import Message, MessageStatus, Role, ToolResultBlock, ToolUseBlock
from interlingua_contract import json_paths
from interlingua_contract.guard import silence_log
from interlingua_contract.matrix.accounting import Body, Leaf, leaves_of
from interlingua_contract.matrix.crossing import WrittenRequest
from interlingua_contract.matrix.histories import HISTORIES, THEN, TOOLS, History, Script
from interlingua_contract.matrix.sides import Side, Speaker, sides
from interlingua_contract.served import Seals
from interlingua_contract.subject import find_quirks
from interlingua_serving import ServeContext, ServingPlugin, answer_events, find_serving_plugin

_MARK = re.compile(r"mk\d+q")
_TEXTS = ("text", "thinking", "signature", "data", "title", "context")
_OBJECTS = ("citations", "content")


@attrs.frozen(kw_only=True)
class ServedRun:
    """One history of callers of an API, answered by models of one side.

    Attributes:
        history: its name.
        direct: the ledger of the request that this side gets without the API between.
        added: what is in the ledger beyond that, of the answers' way to the caller and of the request's way back.
        findings: the faults; empty is green.
    """

    history: str
    direct: tuple[Loss, ...] = ()
    added: tuple[Loss, ...] = ()
    findings: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ServedCell:
    """An API and the side that answers its callers."""

    api: str
    upstream: str
    runs: tuple[ServedRun, ...]

    def __str__(self) -> str:
        return f"{self.api} answered by {self.upstream}"

    @property
    def green(self) -> bool:
        """True when nothing is wrong."""
        return not any(run.findings for run in self.runs)


class ServedApiCase:
    """The callers of an API.

    Args:
        side: the provider whose API it is.
        plugin: its serving plugin.
        echoed: pointer into a whole answer at what callers send back; None if they send what the adapter writes.
    """

    def __init__(self, side: Side, plugin: ServingPlugin, echoed: str | None) -> None:
        self.side, self.plugin, self.echoed = side, plugin, echoed

    def cross(self, history: History, upstream: Side) -> ServedRun:
        """Have a history's answers made by an upstream and read by the callers; write the next request to it."""
        model = upstream.model_for(history.needs)
        speaker, script = Speaker(side=upstream, model=model), Script()
        history.write(script, speaker)
        direct = WrittenRequest(speaker, script.messages)
        try:
            crossed, way = self._send_back(script.messages, self.side.model_for(history.needs), speaker)
            rows = [*way, *crossed.request.losses]
            findings = [*crossed.findings, *_lost_silently(direct, crossed, rows)]
            added, before = _added(rows, direct.request.losses), direct.request.losses
        except InterlinguaError as error:
            return ServedRun(history=history.name, findings=(f"refused: {type(error).__name__}: {error}",))
        return ServedRun(history=history.name, direct=before, added=added, findings=tuple(findings))

    def _send_back(
        self, messages: Sequence[Message], model: str, speaker: Speaker
    ) -> tuple[WrittenRequest, tuple[Loss, ...]]:
        """Return the request to the speaker that a caller's next one becomes, and the losses before it was written."""
        provider, seals, numbers = self.side.provider, Seals(), count(1)
        target = speaker.side.origin(speaker.model)
        context = ServeContext(
            provider=provider.key, api=self.side.api, model=model, origin=target, clock=lambda: THEN,
            new_id=lambda: f"01KDVBKF01{next(numbers):016d}", seal=seals.seal, unseal=seals.unseal,
        )  # fmt: skip
        losses: list[Loss] = []
        seen: list[Message] = []
        echoes: dict[int, list[Any]] = {}
        ids: dict[str, str] = {}
        for at, message in enumerate(messages):
            if message.role is Role.ASSISTANT and message.metadata.status is MessageStatus.COMPLETE:
                answer = attrs.evolve(context, answer_id=message.id)
                response = self.plugin.to_wire_response(message, answer)
                losses += response.losses
                losses += self._streamed_alone(message, answer, response.losses)
                read = self._read(response, message, model)
                ids |= dict(zip(_call_ids(message), _call_ids(read), strict=True))
                seen.append(read)
                if self.echoed is not None:
                    part = json_paths.value_at(json.loads(response.body), _pointer(self.echoed))
                    echoes[at] = part if isinstance(part, list) else [part]
            else:
                seen.append(attrs.evolve(message, content=tuple([_renamed(block, ids) for block in message.content])))
        request = self.side.write(model, seen, TOOLS)
        request = attrs.evolve(request, body=self._with_echoes(request.body, seen, echoes))
        inbound = self.plugin.from_wire_request(request, context)
        back, _, lost = inbound.for_upstream(target.provider, target.api, target.model)
        losses += [row for row in lost if not row.path.startswith("options.")]  # these histories set no options
        return WrittenRequest(speaker, back), tuple(losses)

    def _read(self, response: WireResponse, message: Message, model: str) -> Message:
        numbers = count()
        context = RequestContext(
            origin=self.side.origin(model),
            message_id=message.id,
            session_id=message.session_id,
            mint_tool_use_id=lambda: f"tu_{message.id[:-3]}{next(numbers):03d}",
            clock=lambda: message.created_at,
        )
        return self.side.provider.from_wire_response(response, context)

    def _streamed_alone(self, message: Message, context: ServeContext, whole: Sequence[Loss]) -> list[Loss]:
        """Return what a streamed answer loses and a whole one does not."""
        writer = self.plugin.stream_to_wire(context)
        writer.feed(answer_events(message))
        writer.end()
        return list(_added(writer.losses, whole))

    def _with_echoes(self, body: bytes, messages: Sequence[Message], echoes: dict[int, list[Any]]) -> bytes:
        """Replace the answers, which their text identifies, with the form in which callers send them back."""
        if self.side.growing_path is None or not echoes:
            return body
        places = {text: at for at in echoes for text in _texts(messages[at])}
        elements: list[Any] = []
        put: set[int] = set()
        tree = json.loads(body)
        for element in json_paths.value_at(tree, self.side.growing_path):
            at = next((places[text] for text in _texts_in(element) if text in places), None)
            if at is None:
                elements.append(element)
            elif at not in put:
                elements += echoes[at]
                put.add(at)
        return json.dumps(json_paths.with_value(tree, self.side.growing_path, elements)).encode()


def _pointer(text: str) -> json_paths.Path:
    return tuple(int(key) if key.isdecimal() else key for key in text.split("/")[1:])


def _texts(message: Message) -> Iterator[str]:
    """Yield the text blocks of an answer and the marks in them."""
    for leaf in leaves_of([message]):
        if isinstance(leaf.value, str):
            yield from (leaf.value, *_MARK.findall(leaf.value))


def _texts_in(element: Any) -> Iterator[str]:
    for text in json_paths.texts(element):
        yield from (text, *_MARK.findall(text))


def _call_ids(message: Message) -> list[str]:
    return [call.id for call in message.tool_calls]


def _renamed(block: Any, ids: dict[str, str]) -> Any:
    """Return a result with the id that the caller knows its call by."""
    if isinstance(block, ToolResultBlock) and block.tool_use_id in ids:
        return attrs.evolve(block, tool_use_id=ids[block.tool_use_id])
    return block


def _said(loss: Loss) -> tuple[str, str, str]:
    return loss.block_type, loss.verdict, loss.reason


def _added(rows: Sequence[Loss], before: Sequence[Loss]) -> tuple[Loss, ...]:
    """Return the rows that are not among others, whatever their place: messages are counted otherwise there."""
    left = Counter(map(_said, before))
    added = []
    for row in rows:
        if left[_said(row)]:
            left[_said(row)] -= 1
        else:
            added.append(row)
    return tuple(added)


def _lost_silently(direct: WrittenRequest, crossed: WrittenRequest, rows: Sequence[Loss]) -> Iterator[str]:
    """Yield what the models' own parts of the history lost through the API without a row of its kind."""
    before, after = Body(direct.request.body), Body(crossed.request.body)
    known = Counter(row.block_type for row in _added(rows, direct.request.losses))
    if known["message"]:  # all that callers do not send back
        return
    for leaf in _of_answers(direct.messages):
        if _holds(before, leaf) and not _holds(after, leaf):
            if not known[leaf.place.block_type]:
                yield f"{leaf.place.block_type}: the {leaf.kind} of an answer does not come back, without a row"
            known[leaf.place.block_type] -= leaf.kind != "signature"  # it goes with its block
    issued = [call.provider_id for message in direct.messages for call in message.tool_calls if call.provider_id]
    for name in issued:
        if before.texts[name] and not after.texts[name]:
            yield f"the id {name!r} that the model gave its call does not come back"


def _of_answers(messages: Sequence[Message]) -> Iterator[Leaf]:
    for leaf in leaves_of(messages):
        if messages[leaf.place.message].role is Role.ASSISTANT:
            yield leaf


def _holds(body: Body, leaf: Leaf) -> bool:
    if leaf.kind in _TEXTS:
        return body.has_text(leaf.value)
    if leaf.kind == "call":
        return isinstance(leaf.block, ToolUseBlock) and body.has_object(leaf.value)
    return leaf.kind in _OBJECTS and body.has_content(leaf.value)


def served_apis(registry: Registry, only: Iterable[str], cassettes: Path | None) -> list[ServedApiCase]:
    """Return the served APIs of these providers; the quirks beside their cassettes say what callers send back.

    Raises:
        CallerError: no installed provider has one of these names.
        CapabilityError: a provider has no serving plugin.
    """
    cases = []
    for side in sides(registry, only):
        plugin = find_serving_plugin(registry, side.provider.key)
        if not any(api.name == side.api for api in plugin.apis):
            continue  # an API that the plugin writes and does not serve
        own = cassettes / side.provider.key if cassettes is not None else None
        cases.append(ServedApiCase(side, plugin, find_quirks(own).echoed.get(side.api)))
    return cases


def serve_histories(
    apis: Sequence[ServedApiCase],
    upstreams: Sequence[Side],
    histories: Sequence[History] = HISTORIES,
    progress: Callable[[ServedCell], None] = lambda _cell: None,
) -> tuple[ServedCell, ...]:
    """Carry every history through every API to every upstream; each cell is reported as soon as it is done."""
    cells = []
    with silence_log():
        for api in apis:
            for upstream in upstreams:
                runs = tuple([api.cross(history, upstream) for history in histories])
                cells.append(ServedCell(api=api.side.name, upstream=upstream.name, runs=runs))
                progress(cells[-1])
    return tuple(cells)
