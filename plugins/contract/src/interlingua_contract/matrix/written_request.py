"""One request on the way: a history as a speaker is sent it, and what is wrong with that by itself.

Never compares two requests (the crossing does).
The crossing comes in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import attrs

from interlingua.errors import InterlinguaError
from interlingua.plugins.wire import WireRequest
from interlingua.request.project_blocks import WireIds
from interlingua.types.blocks import ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message
from interlingua_cli.lint import lint_request
from interlingua_contract import json_paths as trees
from interlingua_contract.matrix.accounting import unaccounted
from interlingua_contract.matrix.body import Body
from interlingua_contract.matrix.elements import elements
from interlingua_contract.matrix.histories import TOOLS
from interlingua_contract.matrix.speaker import Speaker

_CONSTANT = re.compile(r"[\w.-]+")


"""A word that stands for a flag, such as a status; what says it in words is a sentence, or has one around it."""


class WrittenRequest:
    """One request: a history as one speaker is sent it, with what is wrong with it by itself."""

    def __init__(self, speaker: Speaker, messages: Sequence[Message]) -> None:
        self.speaker, self.messages = speaker, tuple(messages)

    @cached_property
    def request(self) -> WireRequest:
        """The request."""
        return self.speaker.side.write(self.speaker.model, self.messages, TOOLS)

    @cached_property
    def elements(self) -> list[str]:
        """The elements that grow with the conversation, as written."""
        return elements(self.request.body, self.speaker.side.grown_path)

    @cached_property
    def frame(self) -> str:
        """The rest of the body: tools, system, settings."""
        path = self.speaker.side.grown_path
        tree = json.loads(self.request.body)
        return json.dumps(trees.removed(tree, path) if path is not None else tree)

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """What its linter, the accounting and its ids have to say."""
        name = self.speaker.side.name
        try:
            found = [*self._linted(), *self._unaccounted(), *self._id_faults()]
        except InterlinguaError as error:
            found = [f"refused: {type(error).__name__}: {error}"]
        return tuple(f"to {name}: {text}" for text in found)

    def _linted(self) -> Iterator[str]:
        for finding in lint_request(self.speaker.side.provider, self.request):
            yield f"linter {finding.rule} at {finding.path}: {finding.message}"

    def _unaccounted(self) -> Iterator[str]:
        names = {name: wire for wire, name in self.request.tool_names.items()}
        yield from unaccounted(
            self.messages,
            self._body,
            self.request.losses,
            wire_ids=self._links,
            names=names,
            flag_said=self._flag_said,
        )

    @cached_property
    def _body(self) -> Body:
        return Body(self.request.body)

    @cached_property
    def call_ids(self) -> dict[tuple[int, int], str]:
        """The wire's id of every call, by message and block."""
        ids = WireIds(self.speaker.side.provider.target(self.speaker.side.options(self.speaker.model)))
        return {
            (index, at): ids.add(block, message.metadata.origin)
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

    def _flag_said(self, index: int, at: int) -> bool:
        """Write the request once more without the flag: other sentences are no flag, another form or word is one."""
        message = self.messages[index]
        content = list(message.content)
        content[at] = attrs.evolve(content[at], is_error=False)  # type: ignore[arg-type]
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
                yield f"messages[{index}].content[{at}]: the id {wire!r} stands with only one of call and result"
