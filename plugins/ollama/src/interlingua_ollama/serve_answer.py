"""Write answers of any model as lines of this API."""

from __future__ import annotations

from typing import Any

from interlingua.errors import (
    AuthenticationError,
    CallerError,
    ContextWindowExceededError,
    InterlinguaError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    PluginError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import EMPTY, FrozenDict, Loss, WireResponse, dumps
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    ImageBlock,
    Message,
    MessageComplete,
    OpaqueBlock,
    RawUpdate,
    StopReason,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
)
from interlingua_ollama.errors import OVERFLOW
from interlingua_ollama.messages import FOREIGN_CALL, GENERATE
from interlingua_serving import AnswerState, BaseStreamWriter, ServeContext, ServedModel, dumps_line, read_call

_STOPS = {StopReason.MAX_TOKENS: "length", StopReason.CONTEXT_WINDOW: "length"}
_JSON = {"content-type": "application/json; charset=utf-8"}
_VERSION = "0.12.6"  # of the API as it is served here; clients require a least one
_FAMILY = "interlingua"
_STATELESS = "callers of this API send nothing back but text, thinking and calls without ids"
_STATUS: tuple[tuple[type[InterlinguaError], int], ...] = (
    (AuthenticationError, 401),
    (QuotaExceededError, 402),
    (PermissionDeniedError, 403),
    (ModelNotFoundError, 404),
    (RateLimitError, 429),
    (OverloadedError, 503),
    (ServerError, 500),
    (CallerError, 400),
    (ProviderError, 400),
)


def to_wire_response(message: Message, context: ServeContext) -> WireResponse:
    """Write a whole answer from the lines of its stream."""
    metadata = message.metadata
    if metadata.stop_reason is StopReason.ERROR:
        return to_wire_error(ServerError("the model's answer ended with an error"), context)
    writer = LineWriter(context)
    for index, block in enumerate(message.content):
        writer.add(index, block)
    writer.note_replay((metadata.provider_raw or EMPTY).get("replay"))
    body = writer.done(metadata.stop_reason, metadata.stop_reason_raw, metadata.usage or Usage())
    body |= writer.said(writer.joined())
    return WireResponse(headers=_JSON, body=dumps(body), losses=tuple(writer.losses))


def to_wire_error(error: InterlinguaError, context: ServeContext) -> WireResponse:
    """Write an error body with its status."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    headers = dict(_JSON)
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.0f}"
    return WireResponse(status=status, headers=headers, body=dumps({"error": _sentence(error)}))


def _sentence(error: InterlinguaError) -> str:
    if isinstance(error, PluginError):
        return "internal error"
    if isinstance(error, ContextWindowExceededError) and not any(said in error.message.lower() for said in OVERFLOW):
        return f"the prompt {OVERFLOW[1]}: {error.message}"
    return error.message


def to_wire_auxiliary(kind: str, value: Any, context: ServeContext) -> WireResponse | None:
    """Write a list of models, one model, or the version; this API counts no tokens."""
    if kind == "version":
        return WireResponse(headers=_JSON, body=dumps({"version": _VERSION}))
    if kind == "model":
        return WireResponse(headers=_JSON, body=dumps(_shown(value, context)))
    if kind != "models":
        return None
    time = _time(context)
    listed = [
        {"name": name, "model": name, "modified_at": time, "size": 0, "digest": "", "details": {}} for name in value
    ]
    return WireResponse(headers=_JSON, body=dumps({"models": listed}))


def _shown(model: ServedModel, context: ServeContext) -> dict[str, Any]:
    """Return the facts of a model; clients read its capabilities and the length of its context."""
    can = model.capabilities
    has = {
        "completion": True,
        "tools": can.supports_tools,
        "vision": can.supports_images,
        "thinking": can.supports_thinking,
    }
    info: dict[str, Any] = {"general.architecture": _FAMILY, "general.basename": model.name}
    if can.max_context_tokens:
        info[f"{_FAMILY}.context_length"] = can.max_context_tokens
    details = {"parent_model": "", "format": "", "family": _FAMILY, "families": [_FAMILY]}
    return {
        "modelfile": "", "parameters": "", "template": "",
        "details": {**details, "parameter_size": "", "quantization_level": ""},
        "model_info": info, "capabilities": [name for name, there in has.items() if there],
        "modified_at": _time(context),
    }  # fmt: skip


def _time(context: ServeContext) -> str:
    return context.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _piece(of: TextDelta | ThinkingDelta | TextBlock | ThinkingBlock, text: str) -> dict[str, Any]:
    thought = isinstance(of, (ThinkingDelta, ThinkingBlock))
    message: dict[str, Any] = {"role": "assistant", "content": "" if thought else text}
    return message | {"thinking": text} if thought else message


class LineWriter(BaseStreamWriter):
    """Writes the events of one answer as lines; a call is sent whole, because a line cannot hold a part of it."""

    content_type = "application/x-ndjson"

    def __init__(self, context: ServeContext) -> None:
        super().__init__(context)
        self._began = context.clock()
        self._state = AnswerState(context.origin, strings=False)
        self._messages: list[dict[str, Any]] = []
        self._starts: dict[int, ToolUseStart] = {}
        self._pieces: dict[int, list[str]] = {}
        self._calls = 0
        self._spoken: set[int] = set()  # blocks whose pieces were written

    def write_delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Write a piece of text or thinking."""
        self._spoken.add(event.index)
        if event.text:
            self._line(_piece(event, event.text))

    def start_call(self, event: ToolUseStart) -> None:
        """Begin a call, which is written whole."""
        self._starts[event.index], self._pieces[event.index] = event, []

    def write_arguments(self, event: ToolUseInputDelta) -> None:
        """Keep a piece of a call's arguments."""
        self._pieces.setdefault(event.index, []).append(event.partial_json)

    def end_block(self, event: BlockEnd) -> None:
        """End another block, or write it whole."""
        self.add(event.index, event.block)

    def note_raw(self, event: RawUpdate) -> None:
        """Note state of the origin."""
        self.note_replay(event.replay)

    def _line(self, message: dict[str, Any]) -> None:
        self.out.append(dumps_line({**self._head(), **self.said(message), "done": False}) + b"\n")

    def said(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the members of a line that hold a message: callers of `/api/generate` read text and thinking."""
        if not self.context.echo.get(GENERATE):
            return {"message": message}
        thinking = {"thinking": message["thinking"]} if "thinking" in message else {}
        return {"response": message.get("content", ""), **thinking}

    def _head(self) -> dict[str, Any]:
        return {"model": self.context.model, "created_at": _time(self.context)}

    def note_replay(self, replay: dict[str, Any] | FrozenDict | None) -> None:
        """Record the state of another origin as lost."""
        if replay and not self.context.is_own:
            self._state.note(RawUpdate(replay=replay))

    def add(self, index: int, block: ContentBlock) -> None:
        """Write a whole block, or only its end if its text or thinking was already written in pieces."""
        if not self.context.is_own:
            self._state.add(index, block, block.id if isinstance(block, ToolUseBlock) else "")
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if isinstance(block, (TextBlock, ThinkingBlock)):
            if not block.text or index in self._spoken:
                return
            message = _piece(block, block.text)
        elif isinstance(block, ToolUseBlock):
            message["tool_calls"] = [self._call(block)]
        elif self.context.is_own and isinstance(block, ImageBlock) and block.source.kind == "base64":
            message["images"] = [block.source.data]
        elif self.context.is_own and isinstance(block, OpaqueBlock) and block.kind == FOREIGN_CALL:
            message["tool_calls"] = [block.data]
        else:
            if not isinstance(block, OpaqueBlock) and block.type != "redacted_thinking":  # those are state
                self._lose(block.type, f"this API has no {block.type} in an answer")
            return
        self._messages.append(message)
        self._line(message)

    def _call(self, block: ToolUseBlock) -> dict[str, Any]:
        arguments: Any = block.input if block.parse_error is None else {"invalid_arguments": block.raw_input or ""}
        call_id = (block.provider_id if self.context.is_own else None) or block.id
        function = {"index": self._calls, "name": block.name, "arguments": arguments}
        self._calls += 1
        return {"id": call_id, "function": function}

    def end_call(self, event: ToolUseEnd) -> None:
        """End a call."""
        start = self._starts.pop(event.index, None)
        if start is None:
            return
        raw = "".join(self._pieces.pop(event.index, ()))
        self.add(event.index, event.block or read_call(start, raw))

    def complete(self, event: MessageComplete) -> None:
        """Write the end of a whole answer."""
        body = self.done(event.stop_reason, event.stop_reason_raw, self.usage)
        self.out.append(dumps_line(body) + b"\n")
        self.ended = True

    def done(self, reason: StopReason | None, raw: str | None, usage: Usage) -> dict[str, Any]:
        """Return the last line, and record the losses."""
        if not self.context.is_own and self._state.take() is not None:
            self._lose("message", _STATELESS)
        body = {**self._head(), **self.said({"role": "assistant", "content": ""}), "done": True}
        body["done_reason"] = (raw if self.context.is_own else None) or _STOPS.get(reason or StopReason.OTHER, "stop")
        body["total_duration"] = int((self.context.clock() - self._began).total_seconds() * 1e9)
        counts = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
        return body | {name: count for name, count in counts.items() if count}  # this API leaves out zeros

    def joined(self) -> dict[str, Any]:
        """Return the message of all lines."""
        whole: dict[str, Any] = {"role": "assistant", "content": ""}
        for message in self._messages:
            for name in message.keys() - {"role"}:
                whole[name] = whole[name] + message[name] if name in whole else message[name]
        return whole

    def fail(self, error: InterlinguaError) -> None:
        """Write an error, the end of an answer that failed."""
        self.out.append(dumps_line({"error": _sentence(error)}) + b"\n")
        self.ended = True

    def _lose(self, kind: str, reason: str) -> None:
        self.losses.append(Loss(path="content", block_type=kind, verdict="dropped", reason=reason))
