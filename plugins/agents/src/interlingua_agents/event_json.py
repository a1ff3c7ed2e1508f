"""Events, messages and replies as JSON, in the form of the OpenClaw runtime (docs/agents/events.md).

The form: https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/types.ts
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from interlingua import CallerError
from interlingua.plugins import Loss, dumps
from interlingua.types import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageStatus,
    RedactedThinkingBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    VideoBlock,
)
from interlingua_agents.events import (
    AgentTextDelta,
    AgentTextEnd,
    AgentThinkingDelta,
    AgentThinkingEnd,
    BlockMoment,
    MessageEnd,
    MessageStart,
    OutputPartial,
    RunEnd,
    RunEvent,
    RunStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    TurnEnd,
)

AssistantStopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted"]
"""The reason why an answer ended, in the words of the JSON form."""

_REASONS: dict[StopReason, AssistantStopReason] = {
    StopReason.TOOL_USE: "toolUse",
    StopReason.MAX_TOKENS: "length",
    StopReason.CONTEXT_WINDOW: "length",
    StopReason.REFUSAL: "error",
    StopReason.ERROR: "error",
}

_APIS = {
    "messages": "anthropic-messages",
    "chat": "openai-completions",
    "responses": "openai-responses",
    "generate": "google-generative-ai",
    "converse": "bedrock-converse-stream",
    "chat-native": "ollama",
}
"""The runtime's name of each API; other APIs keep our name."""

_REDACTED = "[Reasoning redacted]"

_UNWRITTEN: Mapping[type, tuple[str, ...]] = {
    TextBlock: ("citations", "cache"),
    ToolUseBlock: ("kind", "cache"),
    ImageBlock: ("detail", "cache"),
    ToolResultBlock: ("metadata", "terminate", "cache"),
}
"""Fields that the JSON form cannot hold."""


class EventWriter:
    """Writes one conversation's events and messages as JSON objects.

    Calls and results are written with the providers' ids. The writer takes the id of a result from its call.

    Args:
        history: the conversation before the first event, from which the ids of calls are read.
    """

    def __init__(self, history: Iterable[Message] = ()) -> None:
        self._ids: dict[str, str] = {}
        self._calls: dict[str, str] = {}  # the other way round
        self._losses: dict[Loss, None] = {}
        for message in history:
            for call in message.tool_calls:
                self._learn(call.id, call.provider_id)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Content of everything written so far that the JSON form cannot hold; each loss once."""
        return tuple(self._losses)

    def to_wire_event(self, event: RunEvent) -> dict[str, Any] | None:
        """Return an event of a run as a JSON object; None if the form has no such event.

        The partial message of a growing answer is built.
        """
        match event:
            case RunStart():
                return {"type": "agent_start"}
            case RunEnd(messages=messages):
                return {"type": "agent_end", "messages": self._list(messages)}
            case TurnEnd(message=message, tool_results=results):
                return {"type": "turn_end", "message": self._object(message), "toolResults": self._list(results)}
            case BlockMoment():
                growth = self.to_wire_answer_event(event)
                return {"type": "message_update", "message": growth["partial"], "assistantMessageEvent": growth}
            case MessageStart(message=message) | MessageEnd(message=message):
                return {"type": event.type, "message": self._object(message)}
            case ToolStart(call=call):
                self._learn(call.id, call.provider_id)
                kind = {} if event.kind is None else {"kind": str(event.kind)}
                return {"type": "tool_execution_start", **self._call_facts(call), "args": call.input, **kind}
            case ToolUpdate(call=call):
                part = event.partial
                if isinstance(part, ToolResultBlock):
                    part = self._result_content(part, _Ledger(self._losses), "result")
                written = {**self._call_facts(call), "args": call.input, "partialResult": part}
                return {"type": "tool_execution_update", **written}
            case ToolEnd(call=call, result=result):
                body = self._result_content(result, _Ledger(self._losses), "result")
                written = {**self._call_facts(call), "result": body, "isError": result.is_error}
                return {"type": "tool_execution_end", **written}
            case OutputPartial():
                return None
        return {"type": event.type}

    def to_wire_answer_event(self, event: RunEvent) -> dict[str, Any]:
        """Return an event of one answer as a JSON object of the form's events for single answers.

        Raises:
            CallerError: the event is not about an answer.
        """
        if isinstance(event, MessageStart):
            return {"type": "start", "partial": self._object(event.message)}
        if isinstance(event, MessageEnd):
            reason = "error" if event.error is not None else assistant_stop_reason(event.message)
            message = self._object(event.message)
            if reason in ("error", "aborted"):
                return {"type": "error", "reason": reason, "error": message | {"stopReason": reason}}
            return {"type": "done", "reason": reason, "message": message}
        if not isinstance(event, BlockMoment):
            raise CallerError(f"{event.type} is not an event of an answer: write it with to_wire_event")
        written: dict[str, Any] = {
            "type": event.type,
            "contentIndex": event.content_index,
            "partial": self._object(event.partial),
        }
        match event:
            case AgentTextDelta() | AgentThinkingDelta() | ToolCallDelta():
                written["delta"] = event.delta
            case AgentTextEnd() | AgentThinkingEnd():
                written["content"] = event.content
            case ToolCallEnd(tool_call=call):
                written["toolCall"] = self._call(call, _Ledger(self._losses), "toolCall")
        return written

    def to_wire_messages(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return messages as JSON objects, each tool result as a separate object.

        A system message is written with role `system`. Unknown counts and unknown costs are written as 0.
        """
        return [one for at, message in enumerate(messages) for one in self._messages(message, f"messages[{at}].")]

    def _messages(self, message: Message, place: str = "") -> Iterator[dict[str, Any]]:
        results = [(at, block) for at, block in enumerate(message.content) if isinstance(block, ToolResultBlock)]
        others = [(at, block) for at, block in enumerate(message.content) if not isinstance(block, ToolResultBlock)]
        grows = message.metadata.status is MessageStatus.PARTIAL  # losses are recorded when it is complete
        ledger = _Ledger({} if grows else self._losses, message, place)
        at_ms = {"timestamp": int(message.created_at.timestamp() * 1000)}
        if message.role is Role.TOOL and not results:
            results = [(0, ToolResultBlock(tool_use_id=message.metadata.parent_tool_use_id or ""))]
        for at, result in results:
            yield self._result(result, ledger, f"content[{at}]") | at_ms
        if message.role is Role.TOOL:
            for at, block in others:
                ledger.drop(f"content[{at}]", block.type, "a tool's message holds results only")
        elif others or not results:
            yield {"role": message.role.value, **self._said(message, others, ledger)} | at_ms

    def _said(self, message: Message, blocks: Sequence[tuple[int, ContentBlock]], ledger: _Ledger) -> dict[str, Any]:
        content: Any = [
            written for at, block in blocks if (written := self._block(block, ledger, f"content[{at}]")) is not None
        ]
        metadata = message.metadata
        if message.role is not Role.ASSISTANT:
            only = content[0] if len(content) == 1 else {}
            return {"content": only["text"] if only.keys() == {"type", "text"} else content}
        return _present({
            "content": content,
            "api": _APIS.get(metadata.api or "", metadata.api or ""),
            "provider": metadata.provider or "",
            "model": (metadata.model or "").partition(":")[2],
            "usage": _usage(metadata.usage or Usage()),
            "stopReason": assistant_stop_reason(message),
            "errorMessage": None if metadata.error is None else metadata.error.message,
        })  # fmt: skip

    def _result(self, result: ToolResultBlock, ledger: _Ledger, place: str) -> dict[str, Any]:
        return {
            "role": "toolResult",
            "toolCallId": self._id(result.tool_use_id),
            "toolName": result.tool_name or "",
            **self._result_content(result, ledger, place),
            "isError": result.is_error,
        }

    def _result_content(self, result: ToolResultBlock, ledger: _Ledger, place: str) -> dict[str, Any]:
        ledger.drop_fields(place, result)
        content = [
            written
            for at, block in enumerate(result.content)
            if (written := self._block(block, ledger, f"{place}.content[{at}]")) is not None
        ]
        return _present({"content": content, "details": result.details})

    def _block(self, block: ContentBlock, ledger: _Ledger, place: str) -> dict[str, Any] | None:
        """Return a block in the JSON form; None, and an entry in the ledger, if the form has no equivalent."""
        ledger.drop_fields(place, block)
        if isinstance(block, TextBlock):
            return _present({"type": "text", "text": block.text, "textSignature": block.signature})
        if isinstance(block, ThinkingBlock):
            return _present({"type": "thinking", "thinking": block.text, "thinkingSignature": block.signature})
        if isinstance(block, RedactedThinkingBlock):
            return {"type": "thinking", "thinking": _REDACTED, "thinkingSignature": block.data, "redacted": True}
        if isinstance(block, ToolUseBlock):
            return self._call(block, ledger, place)
        if isinstance(block, ImageBlock) and block.source.kind == "base64":
            return {"type": "image", "data": block.source.data, "mimeType": block.media_type}
        if isinstance(block, ImageBlock):
            ledger.drop(place, block.type, f"the form holds images as data, this one is a {block.source.kind}")
        else:
            ledger.drop(place, block.type, f"the form has no {block.type} blocks")
        return None

    def _call(self, call: ToolUseBlock, ledger: _Ledger, place: str) -> dict[str, Any]:
        self._learn(call.id, call.provider_id)
        if call.parse_error is not None:
            ledger.drop(
                place, call.type, f"the form holds arguments as an object, and these are not JSON: {call.input_json}"
            )
        elif call.raw_input is not None and call.raw_input != dumps(call.input).decode():
            ledger.add(
                place, call.type, "rewritten", "the form holds arguments as an object, not as the text they were"
            )
        fields = {"type": "toolCall", "id": self._id(call.id), "name": call.name, "arguments": call.input}
        return _present({**fields, "thoughtSignature": call.signature})

    def _learn(self, call_id: str, provider_id: str | None) -> None:
        """Record the provider's id of a call; an id used twice belongs to the first call."""
        if provider_id and self._calls.setdefault(provider_id, call_id) == call_id:
            self._ids[call_id] = provider_id

    def _id(self, call_id: str) -> str:
        return self._ids.get(call_id, call_id)

    def _call_facts(self, call: ToolUseBlock) -> dict[str, Any]:
        return {"toolCallId": self._id(call.id), "toolName": call.name}

    def _object(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, Message):  # an application's message
            return dict(message.to_json())
        growing = message.metadata.status is MessageStatus.PARTIAL  # not aborted: that runtime says `stop` meanwhile
        *_, written = self._messages(message)
        return written | ({"stopReason": "stop"} if growing else {})

    def _list(self, messages: Iterable[Any]) -> list[dict[str, Any]]:
        return [
            written
            for message in messages
            for written in (self._messages(message) if isinstance(message, Message) else [self._object(message)])
        ]


class _Ledger:
    """Records the losses of one message.

    Args:
        losses: the losses of the writer; extended in place.
        message: the message; None for a single block.
        place: prefix of the paths.
    """

    def __init__(self, losses: dict[Loss, None], message: Message | None = None, place: str = "") -> None:
        self._losses = losses
        self._message_id = None if message is None else message.id
        self._place = place

    def add(self, path: str, block_type: str, verdict: Any, reason: str) -> None:
        loss = Loss(
            path=self._place + path, block_type=block_type, verdict=verdict, reason=reason, message_id=self._message_id
        )
        self._losses[loss] = None

    def drop(self, path: str, block_type: str, reason: str) -> None:
        self.add(path, block_type, "dropped", reason)

    def drop_fields(self, path: str, block: ContentBlock) -> None:
        for name in _UNWRITTEN.get(type(block), ()):
            if getattr(block, name) not in (None, (), {}, False):
                self.drop(f"{path}.{name}", block.type, f"the form has no place for {name}")


def _usage(usage: Usage) -> dict[str, Any]:
    buckets, cost = usage.buckets(), usage.cost
    output = usage.output_tokens or 0
    parts = (cost.input, cost.output, cost.cached_read, cost.cache_write) if cost else (0, 0, 0, 0)
    money = dict(zip(("input", "output", "cacheRead", "cacheWrite"), map(float, parts), strict=True))
    return {
        "input": buckets.uncached_input,
        "output": output,
        "cacheRead": buckets.cached_input,
        "cacheWrite": buckets.cache_creation_input,
        "totalTokens": buckets.uncached_input + output,  # that format's sum: input and output, without the cache
        "cost": {**money, "total": float(usage.cost_usd or 0)},
    }


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _urls(value: Any) -> tuple[str, ...]:
    return tuple(value)


def assistant_stop_reason(message: Message) -> AssistantStopReason:
    """Return the reason why a message ended, in the words of the JSON form; `stop` if it has no word for it."""
    metadata = message.metadata
    if metadata.status is MessageStatus.ERROR:
        return "error"
    if metadata.status is not MessageStatus.COMPLETE:
        return "aborted"
    return _REASONS.get(metadata.stop_reason, "stop") if metadata.stop_reason else "stop"


@attrs.frozen(kw_only=True)
class ReplyPayload:
    """The reply to a channel (chat, mail, voice) after a run.

    Attributes:
        text: Markdown, or None.
        media_url: the attachment, if there is exactly one.
        media_urls: the attachments, if there are several.
        reply_to_id: id of the message that is answered.
        is_error: True if the run failed; `text` then describes the failure.
    """

    text: str | None = None
    media_url: str | None = None
    media_urls: tuple[str, ...] = attrs.field(default=(), converter=_urls)
    reply_to_id: str | None = None
    is_error: bool = False


def reply_payload(message: Message, *, reply_to_id: str | None = None) -> ReplyPayload:
    """Make the payload of an answer: its text, and its media as URLs (`data:` for embedded data).

    Files of the workspace and files stored by a service have no URL that a channel could read, and are left out.

    Args:
        message: the last answer of a run.
        reply_to_id: the channel's id of the message that is answered.
    """
    metadata = message.metadata
    failed = metadata.status is MessageStatus.ERROR
    text = message.text
    if failed and not text:
        text = metadata.error.message if metadata.error else "the answer failed"
    urls = [url for block in message.content if (url := _url(block))]
    return ReplyPayload(
        text=text or None,
        media_url=urls[0] if len(urls) == 1 else None,
        media_urls=urls if len(urls) > 1 else (),
        reply_to_id=reply_to_id,
        is_error=failed,
    )


def to_wire_reply(payload: ReplyPayload) -> dict[str, Any]:
    """Return a payload as a JSON object without absent fields."""
    return _present({
        "text": payload.text,
        "mediaUrl": payload.media_url,
        "mediaUrls": list(payload.media_urls) or None,
        "replyToId": payload.reply_to_id,
        "isError": payload.is_error or None,
    })  # fmt: skip


def _url(block: object) -> str | None:
    if not isinstance(block, ImageBlock | AudioBlock | VideoBlock | DocumentBlock):
        return None
    source = block.source
    if source.kind == "base64":
        return f"data:{block.media_type};base64,{source.data}"
    return source.data if source.kind == "url" else None
