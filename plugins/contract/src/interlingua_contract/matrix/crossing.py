"""Carry one history from one side to another and back, and check every request on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import attrs

from interlingua._request.wire_names import WireIds
from interlingua.errors import InterlinguaError
from interlingua.plugins import Loss, WireRequest
from interlingua.types import CacheHint, ContentBlock, Message, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua_cli.lint import lint_request
from interlingua_contract import json_paths
from interlingua_contract.matrix.accounting import Body, find_unaccounted
from interlingua_contract.matrix.histories import TOOLS, Script
from interlingua_contract.matrix.sides import Speaker


def split_elements(body: bytes, path: json_paths.Path | None) -> list[str]:
    """Return the elements of the array at a path exactly as written; empty if there is no array."""
    text = body.decode()
    at = _skip(text, 0)
    for key in path or ():
        at = next((start for name, start, _ in _members(text, at) if name == key), -1)
        if at < 0:
            return []
    return [text[start:end] for _, start, end in _members(text, at)] if path is not None else []


_DECODER = json.JSONDecoder()


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\n", "\r", "\t"):
        at += 1
    return at


def _members(text: str, at: int) -> list[tuple[str | int, int, int]]:
    """Return the key, the start and the end of each member of the container that begins at a place."""
    named = text[at] == "{"
    found: list[tuple[str | int, int, int]] = []
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        key: str | int = len(found)
        if named:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found.append((key, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


_CONSTANT = re.compile(r"[\w.-]+")
"""A word that is a flag, such as a status; text is a sentence, or part of one."""


class WrittenRequest:
    """One request: a history as it is sent to one speaker, and what is wrong with the request by itself."""

    def __init__(self, speaker: Speaker, messages: Sequence[Message]) -> None:
        self.speaker, self.messages = speaker, tuple(messages)

    @cached_property
    def request(self) -> WireRequest:
        """The request."""
        return self.speaker.side.write(self.speaker.model, self.messages, TOOLS)

    @cached_property
    def elements(self) -> list[str]:
        """The elements that grow with the conversation, as written."""
        return split_elements(self.request.body, self.speaker.side.growing_path)

    @cached_property
    def frame(self) -> str:
        """The rest of the body: tools, system, settings."""
        path = self.speaker.side.growing_path
        tree = json.loads(self.request.body)
        return json.dumps(json_paths.without(tree, path) if path is not None else tree)

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """Yield the findings of the linter, the accounting and the check of ids."""
        side = self.speaker.side
        try:
            found = [
                *(
                    f"linter {one.rule} at {one.path}: {one.message}"
                    for one in lint_request(side.provider, self.request)
                ),
                *self._unaccounted(),
                *self._id_faults(),
            ]
        except InterlinguaError as error:
            found = [f"refused: {type(error).__name__}: {error}"]
        return tuple(f"to {side.name}: {text}" for text in found)

    def _unaccounted(self) -> Iterator[str]:
        names = {name: wire for wire, name in self.request.tool_names.items()}
        return find_unaccounted(
            self.messages, self._body, self.request.losses, wire_ids=self._links, names=names, flag_sent=self._flag_sent
        )

    @cached_property
    def _body(self) -> Body:
        return Body(self.request.body)

    @cached_property
    def call_ids(self) -> dict[tuple[int, int], str]:
        """The wire's id of every call, by message and block."""
        target = self.speaker.side.provider.target(self.speaker.side.options(self.speaker.model))
        ids = WireIds(target)
        return {
            (index, at): ids.add(block, own=message.metadata.provider == target.provider)
            for index, message in enumerate(self.messages)
            for at, block in enumerate(message.content)
            if isinstance(block, ToolUseBlock)
        }

    @cached_property
    def _links(self) -> dict[tuple[int, int], str]:
        """The same, with the results that answer them."""
        by_id = {self.messages[m].content[b].id: wire for (m, b), wire in self.call_ids.items()}  # type: ignore[union-attr]
        links = dict(self.call_ids)
        for index, message in enumerate(self.messages):
            for at, block in enumerate(message.content):
                if isinstance(block, ToolResultBlock) and block.tool_use_id in by_id:
                    links[index, at] = by_id[block.tool_use_id]
        return links

    def _flag_sent(self, index: int, at: int, kind: str) -> bool:
        """Write the request again without the flag: another sentence is not a flag, another form or word is one."""
        message = self.messages[index]
        content = list(message.content)
        without: dict[str, Any] = {"error": {"is_error": False}, "cache": {"cache": None}}
        given = without.get(kind) or {"cache": CacheHint()}
        content[at] = attrs.evolve(content[at], **given)
        changed = [*self.messages[:index], attrs.evolve(message, content=content), *self.messages[index + 1 :]]
        other = Body(WrittenRequest(self.speaker, changed).request.body)
        differing = (other.texts - self._body.texts) + (self._body.texts - other.texts)
        return other.raw != self._body.raw and all(map(_CONSTANT.fullmatch, differing))

    def _id_faults(self) -> Iterator[str]:
        capabilities = self.speaker.side.capabilities(self.speaker.model)
        fits = re.compile(capabilities.tool_id_pattern).fullmatch
        seen: set[str] = set()
        for (index, at), wire in self.call_ids.items():
            if wire in seen:
                yield f"two calls share the id {wire!r}"
            seen.add(wire)
            if not fits(wire) or len(wire) > capabilities.tool_id_max_length:
                yield f"the id {wire!r} is outside the declared pattern"
            if self._body.texts[wire] == 1:
                yield f"messages[{index}].content[{at}]: the id {wire!r} is missing from either the call or the result"


@attrs.frozen(kw_only=True)
class CrossingRun:
    """One history across one pair.

    Attributes:
        history: its name.
        models: the model that it started on and the model it was swapped to.
        losses: what the swap costs: the ledger of the first request to the other side.
        back: the ledger of the request after the return.
        findings: the faults; empty is green.
    """

    history: str
    models: tuple[str, str]
    losses: tuple[Loss, ...] = ()
    back: tuple[Loss, ...] = ()
    findings: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Cell:
    """One ordered pair of sides."""

    begun: str
    swapped: str
    runs: tuple[CrossingRun, ...]

    def __str__(self) -> str:
        return f"{self.begun} to {self.swapped}"

    @property
    def green(self) -> bool:
        """True if there are no findings."""
        return not any(run.findings for run in self.runs)


_LONG = 100


class Crossing:
    """A history started on `a`, swapped to `b`, and back."""

    def __init__(self, history: str, begun: Script, a: Speaker) -> None:
        self.history, self.begun, self.a = history, begun, a
        self.unswapped = WrittenRequest(a, begun.messages)
        self.last = WrittenRequest(a, begun.messages[: begun.answered_at[-1]])

    def run(self, b: Speaker) -> CrossingRun:
        """Carry it across and back."""
        script = self.begun.fork()
        swapped = WrittenRequest(b, script.messages)
        call = script.call(b)
        answer: list[ContentBlock] = [script.text("I go on."), *([call] if b.calls else [])]
        if b.signs:
            answer.insert(0, ThinkingBlock(text=script.mark("I think."), signature=script.opaque("signature")))
        script.answer(b, *answer)
        if b.calls:
            script.result(call)
        else:
            script.user()
        again = WrittenRequest(b, script.messages)
        script.answer(b, script.text("So it is."))
        script.user()
        back = WrittenRequest(self.a, script.messages)
        losses: tuple[tuple[Loss, ...], ...] = ((), ())
        checked = [self.unswapped, swapped, back]
        if len(again.messages) < _LONG:  # the two added messages are the same in every history
            checked.append(again)
        findings = list(dict.fromkeys(finding for request in checked for finding in request.findings))
        try:
            losses = swapped.request.losses, back.request.losses
            findings += [*self._prefixes(swapped, again, back), *self._own_ids(back)]
        except InterlinguaError as error:
            findings = findings or [f"refused: {type(error).__name__}: {error}"]
        models = (self.a.model, b.model)
        return CrossingRun(
            history=self.history, models=models, losses=losses[0], back=losses[1], findings=tuple(findings)
        )

    def _prefixes(self, swapped: WrittenRequest, again: WrittenRequest, back: WrittenRequest) -> Iterator[str]:
        for what, early, late in (
            ("its own next request", self.last, self.unswapped),
            ("the request after the return", self.unswapped, back),
            ("the next request to the other side", swapped, again),
        ):
            if not early.messages:
                continue
            if not early.elements and early.speaker.side.growing_path is None:
                yield f"{early.speaker.side.name}: no array of the body grows with the conversation"
            elif not _is_prefix(late.elements, early.elements):
                yield f"{early.speaker.side.name}: its request is not an element prefix of {what}"
            elif early.frame != late.frame and _thinking_rows(late) == _thinking_rows(early):
                yield f"{early.speaker.side.name}: a field beside the conversation changed in {what}"

    def _own_ids(self, back: WrittenRequest) -> Iterator[str]:
        for place, wire in self.unswapped.call_ids.items():
            issued = self.begun.messages[place[0]].content[place[1]].provider_id  # type: ignore[union-attr]
            if back.call_ids[place] != wire or (issued is not None and wire != issued):
                yield f"{self.a.side.name}: the call it named {issued!r} comes back as {back.call_ids[place]!r}"


def _thinking_rows(written: WrittenRequest) -> set[str]:
    """Return the rows about thinking; the fields beside the conversation may change together with one.

    Claude on Bedrock needs it: a turn that another model began without thinking continues without, and the next turn
    thinks again. No other option may change.
    """
    return {loss.reason for loss in written.request.losses if loss.path == "options.thinking"}


def _is_prefix(late: list[str], early: list[str]) -> bool:
    """Tell whether elements are a prefix of others, byte by byte; the last one's own list may have grown."""
    if late[: len(early)] == early:
        return True
    at = len(early) - 1
    if late[:at] != early[:at] or len(late) <= at:
        return False
    end = len(early[at].rstrip("]}"))
    lists = [place for place in range(end, len(early[at])) if early[at][place] == "]"]
    return any(late[at].startswith(early[at][:place] + ",") for place in lists)
