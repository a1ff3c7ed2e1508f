"""Calls of an answer: whole ones, and on the cloud host ones whose arguments come in pieces (sheet gemini §2, §7).

Never sends anything and never invents an id for the wire. The reader comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from interlingua.json import dumps
from interlingua.plugins.wire import RequestContext
from interlingua.types.blocks import ToolUseBlock, read_tool_input
from interlingua.types.events import StreamEvent, ToolUseEnd, ToolUseInputDelta, ToolUseStart
from interlingua_google.partial_args import PartialArgs

CallEvent = ToolUseStart | ToolUseInputDelta | ToolUseEnd


@attrs.define
class _Open:
    """A call that goes on."""

    start: ToolUseStart
    signature: str | None
    args: PartialArgs


class Calls:
    """The calls of one answer; `any` says whether there was one."""

    def __init__(self, context: RequestContext) -> None:
        self.any = False
        self._context = context
        self._open: _Open | None = None

    def takes(self, call: Mapping[str, Any]) -> bool:
        """True for a call with a name, for more of the one that goes on, and for one that says nothing."""
        return bool(call.get("name")) or self._open is not None or not call.get("args")

    def read(self, part: Mapping[str, Any], index: int) -> Iterator[CallEvent]:
        """Read a part with a call; a new one becomes block `index` + 1."""
        call: Mapping[str, Any] = part["functionCall"]
        name = call.get("name")
        if not isinstance(name, str) or not name:
            if self._open is not None:
                yield from self._go_on(self._open, part)
            return  # an empty one closes a call that was whole before (recorded)
        yield from self._end()
        self.any = True
        given, issued = part.get("thoughtSignature"), call.get("id")
        signature = given if isinstance(given, str) and given else None
        start = ToolUseStart(
            index=index + 1,
            id=self._context.mint_tool_use_id(),
            name=self._context.tool_name(name),
            provider_id=issued if isinstance(issued, str) and issued else None,
            keep_raw=False,
        )
        yield start
        if call.get("willContinue") is True or "partialArgs" in call:
            self._open = _Open(start, signature, PartialArgs(call.get("args")))
            yield from self._go_on(self._open, part)
        else:
            yield ToolUseEnd(index=start.index, block=_block(start, call.get("args"), signature))

    def flush(self, *, whole: bool) -> Iterator[StreamEvent]:
        """End what is open; a call cut off keeps the arguments that came.

        Args:
            whole: the answer is said to be complete, so the call is.
        """
        if whole:
            yield from self._end()
        elif self._open is not None and self._open.args.value:
            text = dumps(self._open.args.value).decode()
            yield ToolUseInputDelta(index=self._open.start.index, partial_json=text)

    def _go_on(self, opened: _Open, part: Mapping[str, Any]) -> Iterator[CallEvent]:
        call = part["functionCall"]
        opened.args.add(call.get("partialArgs"))
        later = part.get("thoughtSignature")
        if isinstance(later, str) and later:
            opened.signature = later
        if call.get("willContinue") is not True:
            yield from self._end()

    def _end(self) -> Iterator[CallEvent]:
        opened, self._open = self._open, None
        if opened is not None:
            start = opened.start
            yield ToolUseEnd(index=start.index, block=_block(start, opened.args.value, opened.signature))


def _block(start: ToolUseStart, args: Any, signature: str | None) -> ToolUseBlock:
    """Make a call; arguments that are no object are kept as text with the reason (REGRESSIONS case 14)."""
    raw, error, value = None, None, args
    if args is not None and not isinstance(args, dict):
        raw = args if isinstance(args, str) else dumps(args).decode()
        value, error = read_tool_input(raw)
    return ToolUseBlock(
        id=start.id,
        name=start.name,
        input=value,
        provider_id=start.provider_id,
        raw_input=raw if error else None,
        parse_error=error,
        signature=signature,
    )
