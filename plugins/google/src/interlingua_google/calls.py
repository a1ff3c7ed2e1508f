"""Calls of an answer: whole ones, and on the cloud host ones whose arguments arrive in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, dumps
from interlingua.types import StreamEvent, ToolUseBlock, ToolUseEnd, ToolUseInputDelta, ToolUseStart, read_tool_input

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\"([^\"]*)\"\]|\['([^']*)'\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
CallEvent = ToolUseStart | ToolUseInputDelta | ToolUseEnd


class PartialArgs:
    """The arguments of one call so far, built from values with paths."""

    def __init__(self, given: Any) -> None:
        self.value: dict[str, Any] = dict(given) if isinstance(given, dict) else {}

    def add(self, pieces: Any) -> None:
        """Take the next pieces.

        Raises:
            MalformedResponseError: a piece contradicts earlier ones.
        """
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._put(_steps(str(piece.get("jsonPath"))), _value_of(piece))

    def _put(self, steps: list[str | int], value: Any) -> None:
        holder: Any = self.value
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            old = _look(holder, step)
            if following is None:
                new = old + value if isinstance(old, str) and isinstance(value, str) else value
            elif old is None:
                new = [] if isinstance(following, int) else {}
            else:
                new = old
            _set(holder, step, new)
            holder = new


def _look(holder: Any, step: str | int) -> Any:
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int) and step <= len(holder):
        return holder[step] if step < len(holder) else None
    raise MalformedResponseError("a piece of arguments does not fit the ones before it", path=f"partialArgs.{step}")


def _set(holder: Any, step: Any, value: Any) -> None:
    if isinstance(holder, list) and step == len(holder):
        holder.append(value)
    else:
        holder[step] = value


def _steps(path: str) -> list[str | int]:
    """Read a path such as `$.a[0].b`; any other string is the name of one member."""
    rest = path.removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return [path]
        name, number, *quoted = found.groups()
        steps.append(int(number) if number else name or next((text for text in quoted if text is not None), ""))
        at = found.end()
    return steps or [path]


def _value_of(piece: dict[str, Any]) -> Any:
    name = next((name for name in _VALUES if name in piece), None)
    return None if name is None or name == "nullValue" else piece[name]


@attrs.define
class _Open:
    """A call that further parts may continue."""

    start: ToolUseStart
    signature: str | None
    args: PartialArgs


class CallReader:
    """Reads the calls of one answer; `any` is True after the first."""

    def __init__(self, context: RequestContext) -> None:
        self.any = False
        self._context = context
        self._open: _Open | None = None

    def accepts(self, call: Mapping[str, Any]) -> bool:
        """Return True for a call with a name, a continuation of the open call, and an empty part."""
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
        """End the open call; a call that was cut off keeps the arguments so far.

        Args:
            whole: the answer is complete, so the call is.
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
    """Return a call; arguments that are not an object are kept as a string, with the parse error."""
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
