"""Read the tool calls of one answer, however a service labels their fragments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from interlingua.plugins import EMPTY, RequestContext, dumps, freeze_object, loads
from interlingua.types import StreamEvent, ToolUseBlock, ToolUseEnd, ToolUseInputDelta, ToolUseStart, read_tool_input
from interlingua_chat_completions.tools import STRICT_ECHO, from_wire_strict_input

CALLS = 2
"""Block index of the first call; thinking is 0 and text is 1."""


@attrs.define(eq=False)
class Call:
    """One call while it is being read."""

    start: ToolUseStart
    form: Literal["function", "custom", "function_call"]
    provider_id: str | None
    name: str
    pieces: list[str] = attrs.field(factory=list)


class CallTable:
    """The calls in order of first appearance; fragments are matched by index, then id, then position."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self.calls: list[Call] = []
        self.by_index: dict[int | str, Call] = {}
        self._by_id: dict[str, Call] = {}
        self._strict: Mapping[str, Any] = context.echo.get(STRICT_ECHO) or EMPTY

    def read(self, fragment: dict[str, Any], position: int, total: int, out: list[StreamEvent]) -> None:
        """Read one entry of `tool_calls`, at `position` of `total`."""
        custom = fragment.get("custom")
        is_custom = fragment.get("type") == "custom" or ("function" not in fragment and isinstance(custom, dict))
        inner = custom if is_custom else fragment.get("function")
        inner = inner if isinstance(inner, dict) else {}
        name = inner.get("name")
        name = name if isinstance(name, str) else ""
        given = inner.get("input" if is_custom else "arguments")
        own = fragment.get("id")
        own = own if isinstance(own, str) and own else None
        index = fragment.get("index")
        index = index if isinstance(index, int | str) else None
        call = self._find(index, own, name, given, position, total)
        if call is None:
            call = self._open(own, name, "custom" if is_custom else "function", given, out)
        if index is not None:
            self.by_index[index] = call
        self._append(call, own, name, given, out)

    def read_function_call(self, fragment: dict[str, Any], out: list[StreamEvent]) -> None:
        """Read the deprecated `function_call`; an empty one is ignored."""
        name, given = fragment.get("name") or "", fragment.get("arguments")
        call = next((call for call in self.calls if call.form == "function_call"), None)
        if call is None:
            if not name and not given:
                return
            call = self._open(None, str(name), "function_call", given, out)
        self._append(call, None, str(name), given, out)

    def end(self) -> list[StreamEvent]:
        """Return the ends of all calls; with the block if the id or name arrived late, or the input is not JSON."""
        return [ToolUseEnd(index=call.start.index, block=self._block(call)) for call in self.calls]

    def replay(self) -> dict[str, Any]:
        """Return the wire ids of calls whose form is not `function`, to send them back in that form."""
        custom = [call.provider_id or call.start.id for call in self.calls if call.form == "custom"]
        return {"custom_calls": custom} if custom else {}

    def _find(
        self, index: int | str | None, own: str | None, name: str, given: Any, position: int, total: int
    ) -> Call | None:
        if index is not None:
            call = self.by_index.get(index)
            if call is None:
                return None
            if own and call.provider_id and own != call.provider_id:
                # one index for several calls that differ by id; a new id without a name is only a relabelled fragment
                return self._by_id.get(own) or (None if name else call)
            return None if not own and _starts_second_call(call, name, given) else call
        if own is not None:
            return self._by_id.get(own)
        if total > 1:
            return self.calls[position] if position < len(self.calls) and not name else None
        return self.calls[-1] if self.calls and not name else None

    def _open(
        self, own: str | None, name: str, form: Literal["function", "custom", "function_call"], given: Any,
        out: list[StreamEvent],
    ) -> Call:  # fmt: skip
        start = ToolUseStart(
            index=CALLS + len(self.calls),
            id=self._context.mint_tool_use_id(),
            name=self._context.tool_name(name),
            provider_id=own,
            keep_raw=not isinstance(given, dict),
        )
        call = Call(start, form, own, name)
        self.calls.append(call)
        out.append(start)
        return call

    def _append(self, call: Call, own: str | None, name: str, given: Any, out: list[StreamEvent]) -> None:
        call.provider_id = call.provider_id or own
        if not call.name or (name != call.name and not call.pieces):  # repeated it stays; in pieces it grows
            call.name = name if name.startswith(call.name) else call.name + name
        if own:
            self._by_id.setdefault(own, call)
        text = given if isinstance(given, str) else "" if given is None else dumps(given).decode()
        if text:
            call.pieces.append(text)
            out.append(ToolUseInputDelta(index=call.start.index, partial_json=text))

    def _block(self, call: Call) -> ToolUseBlock | None:
        start = call.start
        name = self._context.tool_name(call.name)
        if call.form == "custom":
            value = {"input": "".join(call.pieces)}
            return ToolUseBlock(id=start.id, name=name, input=value, provider_id=call.provider_id)
        schema = self._strict.get(call.name)
        if call.provider_id == start.provider_id and name == start.name and schema is None:
            return None
        raw = "".join(call.pieces)
        value, error = read_tool_input(raw)
        if schema is not None:
            value = freeze_object(from_wire_strict_input(value, schema))
        return ToolUseBlock(
            id=start.id,
            name=name,
            input=value,
            provider_id=call.provider_id,
            raw_input=raw if start.keep_raw or error else None,
            parse_error=error,
        )


def _starts_second_call(call: Call, name: str, given: Any) -> bool:
    """Return True for a second call under one index without ids: a name follows complete arguments."""
    if not name or not call.name or not isinstance(given, str) or not given.lstrip().startswith("{"):
        return False
    try:
        return isinstance(loads("".join(call.pieces)), dict)
    except ValueError:
        return False
