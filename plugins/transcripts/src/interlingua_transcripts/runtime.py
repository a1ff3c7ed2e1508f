"""The OpenClaw runtime's messages, events and replies, read: the way back from `EventWriter` of interlingua-agents.

The form: https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/types.ts. Needs interlingua-agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from interlingua.plugins import dumps
from interlingua.types import (
    DEFAULT_SESSION,
    Message,
    MessageStatus,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_agents import CallPhase, RunEvent, events
from interlingua_agents.event_json import ReplyPayload
from interlingua_transcripts.formats.pi import read_blocks, read_message_parts
from interlingua_transcripts.imported import ImportedIds, time_of
from interlingua_transcripts.transcript import TranscriptError

_ROLES = ("user", "assistant", "toolResult", "bashExecution", "system")
_MOMENTS: Mapping[str, Any] = {
    "text_start": events.AgentTextStart,
    "text_delta": events.AgentTextDelta,
    "text_end": events.AgentTextEnd,
    "thinking_start": events.AgentThinkingStart,
    "thinking_delta": events.AgentThinkingDelta,
    "thinking_end": events.AgentThinkingEnd,
    "toolcall_start": events.ToolCallStart,
    "toolcall_delta": events.ToolCallDelta,
    "toolcall_end": events.ToolCallEnd,
}


@attrs.frozen
class CustomMessage:
    """A message kind of an application, in addition to the runtime's own; no model receives it.

    Attributes:
        value: the original JSON object.
    """

    value: Mapping[str, Any]

    @property
    def role(self) -> str:
        """The application's name of the message kind."""
        return str(self.value.get("role"))

    def to_json(self) -> Mapping[str, Any]:
        """Return the original JSON object; `EventWriter` writes it."""
        return self.value


class RuntimeReader:
    """Reads one conversation's messages and events.

    Args:
        session_id: session id of the messages.
    """

    def __init__(self, session_id: str = DEFAULT_SESSION) -> None:
        self._session_id = session_id
        self._read = 0
        self._turn = 0
        self._calls: dict[str, ToolUseBlock] = {}

    def read_messages(self, values: Iterable[Mapping[str, Any]]) -> list[Message | CustomMessage]:
        """Read the messages of a list, one for each."""
        return [self.read_message(value) for value in values]

    def read_message(self, value: Mapping[str, Any]) -> Message | CustomMessage:
        """Read a message; one of another role than the runtime's is a `CustomMessage`.

        Raises:
            TranscriptError: it is not a message, or has no role.
        """
        if not isinstance(value, Mapping) or not isinstance(value.get("role"), str):
            raise TranscriptError("a message of this form is an object with a role")
        if value["role"] not in _ROLES:
            return CustomMessage(dict(value))
        self._read += 1
        return self._made(value, self._read)

    def _made(self, value: Mapping[str, Any], place: int) -> Message:
        ids = self._ids()
        ids.begin(f"{value['role']} {place}", place)
        at = time_of(value.get("timestamp"))
        try:
            role, content, facts = read_message_parts("message", value, ids)
            return ids.make_message(role, content, at, facts)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise TranscriptError(f"not a message of this form: {error!r}") from error

    def _ids(self) -> ImportedIds:
        return ImportedIds("openclaw-lines", self._session_id)

    def read_event(self, value: Mapping[str, Any]) -> RunEvent:
        """Read an event, of an agent or of one answer, as an event of a run.

        If an event has a custom message, a `CustomMessage` replaces the message. The result of a run is not in its
        last event (`RunEnd.result`).

        Raises:
            TranscriptError: it is not an event of this form.
        """
        kind = value.get("type") if isinstance(value, Mapping) else None
        read = _READERS.get(str(kind))
        if read is None:
            raise TranscriptError(f"no event of this form: type {kind!r}")
        try:
            found: RunEvent = read(self, value)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise TranscriptError(f"not an event {kind!r} of this form: {error!r}") from error
        return found

    def _moment(self, value: Mapping[str, Any]) -> Any:
        fields = {"content_index": "contentIndex", "delta": "delta"}
        given = {name: value[word] for name, word in fields.items() if word in value}
        seen = _Seen(self._partial(value["partial"]), self._turn)
        return _MOMENTS[value["type"]](growing=seen, seen=0, **given)

    def _partial(self, value: Mapping[str, Any]) -> Message:
        partial = self._made(value, self._read + 1)
        metadata = attrs.evolve(
            partial.metadata, status=MessageStatus.PARTIAL, stop_reason=None, stop_reason_raw=None, error=None
        )
        return attrs.evolve(partial, metadata=metadata)

    def _turn_start(self, _value: Mapping[str, Any]) -> events.TurnStart:
        self._turn += 1
        return events.TurnStart(turn=self._turn)

    def _one(self, value: Mapping[str, Any]) -> Any:
        return self.read_message(value)

    def _all(self, values: Iterable[Mapping[str, Any]]) -> Any:
        return tuple(self.read_messages(values))

    def _call(self, value: Mapping[str, Any]) -> ToolUseBlock:
        given = str(value["toolCallId"])
        call_id = self._ids().call(given)
        if "args" not in value and call_id in self._calls:
            return self._calls[call_id]
        return ToolUseBlock(id=call_id, name=str(value["toolName"]), input=value.get("args") or {}, provider_id=given)

    def _start(self, value: Mapping[str, Any]) -> events.ToolStart:
        call = self._call(value)
        self._calls[call.id] = call
        return events.ToolStart(turn=self._turn, call=call, kind=value.get("kind"))

    def _update(self, value: Mapping[str, Any]) -> events.ToolUpdate:
        return events.ToolUpdate(turn=self._turn, call=self._call(value), partial=value.get("partialResult"))

    def _end(self, value: Mapping[str, Any]) -> events.ToolEnd:
        call, answer, failed = self._call(value), value.get("result"), bool(value.get("isError"))
        body = answer if isinstance(answer, Mapping) and "content" in answer else _any_result(answer)
        result = ToolResultBlock(
            tool_use_id=call.id,
            content=tuple(read_blocks(body, self._ids())),
            is_error=failed,
            tool_name=call.name,
            details=body.get("details"),
        )
        status = CallPhase.FAILED if failed else CallPhase.COMPLETED
        return events.ToolEnd(turn=self._turn, call=call, result=result, status=status)


_READERS: Mapping[str, Callable[[RuntimeReader, Mapping[str, Any]], Any]] = {
    **dict.fromkeys(_MOMENTS, RuntimeReader._moment),
    "start": lambda self, value: events.MessageStart(turn=self._turn, message=self._partial(value["partial"])),
    "done": lambda self, value: events.MessageEnd(turn=self._turn, message=self._one(value["message"])),
    "error": lambda self, value: events.MessageEnd(turn=self._turn, message=self._one(value["error"])),
    "agent_start": lambda _self, _value: events.RunStart(),
    "agent_end": lambda self, value: events.RunEnd(turn=self._turn, messages=self._all(value["messages"])),
    "turn_start": RuntimeReader._turn_start,
    "turn_end": lambda self, value: events.TurnEnd(
        turn=self._turn, message=self._one(value["message"]), tool_results=self._all(value["toolResults"])
    ),
    "message_start": lambda self, value: events.MessageStart(turn=self._turn, message=self._one(value["message"])),
    "message_update": lambda self, value: self.read_event(value["assistantMessageEvent"]),
    "message_end": lambda self, value: events.MessageEnd(turn=self._turn, message=self._one(value["message"])),
    "tool_execution_start": RuntimeReader._start,
    "tool_execution_update": RuntimeReader._update,
    "tool_execution_end": RuntimeReader._end,
}


def _any_result(answer: Any) -> Mapping[str, Any]:
    """Return a result of any JSON as the form's own: its text, and the value itself as details."""
    if isinstance(answer, str) or answer is None:
        return {"content": answer or ""}
    return {"content": dumps(answer).decode(), "details": answer}


@attrs.frozen
class _Seen:
    """An answer as one event shows it."""

    message: Message
    turn: int

    def at(self, _seen: int) -> Message:
        return self.message


def read_reply(value: Mapping[str, Any]) -> ReplyPayload:
    """Read what goes back to a channel after a run."""
    return ReplyPayload(
        text=value.get("text"),
        media_url=value.get("mediaUrl"),
        media_urls=value.get("mediaUrls") or (),
        reply_to_id=value.get("replyToId"),
        is_error=bool(value.get("isError")),
    )
