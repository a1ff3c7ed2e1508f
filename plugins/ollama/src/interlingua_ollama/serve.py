"""Somebody's request of this API -> messages, tools and options; and an answer, whoever made it -> its lines."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
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
    StreamInterruptedError,
)
from interlingua.plugins import EMPTY, FrozenDict, Loss, WireRequest, WireResponse, dumps, loads
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    ErrorEvent,
    ImageBlock,
    MediaSource,
    Message,
    MessageComplete,
    MessageMetadata,
    OpaqueBlock,
    Provenance,
    RawUpdate,
    RequestOptions,
    Role,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolResultBlock,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
    UsageUpdate,
    WireTool,
    media_type_of,
    read_tool_input,
)
from interlingua_ollama.errors import OVERFLOW
from interlingua_ollama.messages import API, FOREIGN_CALL
from interlingua_ollama.request import RUNTIME
from interlingua_serving import AnswerState, InboundRequest, ServeContext, dumps_line

_READ = ("model", "messages", "tools", "stream", "options")
_PLAIN: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "num_predict": ("max_tokens", int),
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "top_k": ("top_k", int),
    "seed": ("seed", int),
}
_ROLES = {"system": Role.SYSTEM, "user": Role.USER}
_MESSAGE = ("role", "content", "thinking", "images", "tool_calls")
_LEVELS = ("low", "medium", "high", "max")
_STOPS = {StopReason.MAX_TOKENS: "length", StopReason.CONTEXT_WINDOW: "length"}
_JSON = {"content-type": "application/json; charset=utf-8"}
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


# ---- the request


def from_wire_request(request: WireRequest, context: ServeContext) -> InboundRequest:
    """Read a request.

    Raises:
        CallerError: it is not what the API allows.
    """
    body = loads(request.body)
    if not isinstance(body, dict):
        raise CallerError("the body is not a JSON object")
    model = _text(body, "model")
    extra = {name: value for name, value in body.items() if name not in _READ}
    covered: dict[str, tuple[str, ...]] = {}
    options = _options(body, extra, covered)
    extra.setdefault("truncate", None)  # `to_wire` says false where nothing is said
    covered["truncate"] = ()
    if not isinstance(body.get("stream"), bool):
        extra["stream"], covered["stream"] = None, ()
    reader = _Messages(context, model)
    for at, message in enumerate(_list(body.get("messages"), "messages")):
        reader.read(message, f"messages[{at}]")
    return InboundRequest(
        messages=tuple(reader.messages),
        tools=tuple([_tool(tool, f"tools[{at}]") for at, tool in enumerate(_list(body.get("tools"), "tools"))]),
        options=RequestOptions(model=model, api=context.api, stream=body.get("stream") is not False, **options),
        extra=extra,
        covered=covered,
        provider=context.provider,
    )


def _options(body: Mapping[str, Any], extra: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the options, and note which members of `extra` they say."""
    options: dict[str, Any] = {}
    think = body.get("think")
    if isinstance(think, bool):
        options["thinking"] = think
    elif think in _LEVELS:
        options["effort"] = think
    if "think" in body:
        covered["think"] = ("thinking", "effort")
    if isinstance(body.get("format"), dict):
        options["response_schema"] = body["format"]
        covered["format"] = ("response_schema",)
    elif body.get("format") in ("", None):
        covered["format"] = ()
    covered["keep_alive"] = ()  # how long the server holds the model: nothing that another could do
    given = body.get("options")
    if given is not None and not isinstance(given, dict):
        raise CallerError("options: an object is required")
    rest: dict[str, Any] = {}
    for name, value in (given or EMPTY).items():
        field, kind = _PLAIN.get(name, ("", ()))
        unlimited = name == "num_predict" and isinstance(value, int) and value <= 0
        if isinstance(value, kind) and type(value) is not bool and not unlimited:
            options[field] = value
        elif name == "stop" and isinstance(value, (str, list)) and value and all(isinstance(one, str) for one in value):
            options["stop"] = value
        elif name in RUNTIME and name not in body:
            extra[name] = value
        else:
            rest[name] = value
    if rest:
        extra["options"] = rest
    return options


def _tool(given: Any, path: str) -> WireTool:
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict):
        raise CallerError(f"{path}.function: an object is required")
    schema = function.get("parameters")
    inner = {name: value for name, value in function.items() if name not in ("name", "description", "parameters")}
    if not isinstance(schema, dict):
        inner["parameters"] = schema
    outer = {name: value for name, value in given.items() if name not in ("type", "function")}
    return WireTool(
        name=_text(function, "name", f"{path}.function"),
        description=function.get("description") or "",
        input_schema=schema if isinstance(schema, dict) else {},
        extra={**outer, "function": inner},
        api=API,
    )


class _Messages:
    """Reads messages. Results name their call by id, by the tool's name, or by order alone (WIRE.md, Messages)."""

    def __init__(self, context: ServeContext, model: str) -> None:
        self.messages: list[Message] = []
        self._provider = context.provider
        self._model = model
        self._time = datetime.fromtimestamp(0, UTC)
        self._calls = 0
        self._open: list[ToolUseBlock] = []

    def read(self, given: Any, path: str) -> None:
        """Read one message."""
        if not isinstance(given, dict):
            raise CallerError(f"{path}: an object is required")
        role = given.get("role")
        text = given.get("content")
        if text is not None and not isinstance(text, str):
            raise CallerError(f"{path}.content: a string is required")
        more = {name: value for name, value in given.items() if name not in _MESSAGE}
        if role == "tool":
            self._result(given, text or "", more)
            return
        if role not in _ROLES and role != "assistant":
            raise CallerError(f"{path}.role: one of system, user, assistant and tool is required")
        content: list[ContentBlock] = []
        if isinstance(given.get("thinking"), str) and given["thinking"]:
            content.append(ThinkingBlock(text=given["thinking"]))
        if text:
            content.append(TextBlock(text=text))
        for at, data in enumerate(_list(given.get("images"), f"{path}.images")):
            if not isinstance(data, str):
                raise CallerError(f"{path}.images[{at}]: a string is required")
            source = MediaSource(kind="base64", data=data)
            content.append(ImageBlock(source=source, media_type=_media_type(data, f"{path}.images[{at}]")))
        shells: dict[str, Any] = {}
        calls = _list(given.get("tool_calls"), f"{path}.tool_calls")
        for at, call in enumerate(calls):
            content.append(self._call(call, shells, f"{path}.tool_calls[{at}]"))
        if calls:
            self._open = [block for block in content if isinstance(block, ToolUseBlock)]
        replay = ({"message": more} if more else {}) | ({"calls": shells} if shells else {})
        if not content:
            content.append(TextBlock(text=""))
        self._add(_ROLES.get(role, Role.ASSISTANT), content, replay)

    def _call(self, call: Any, shells: dict[str, Any], path: str) -> ToolUseBlock:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise CallerError(f"{path}.function: an object is required")
        if not isinstance(function.get("arguments"), dict | None):
            raise CallerError(f"{path}.function.arguments: an object is required")
        issued = call.get("id")
        self._calls += 1
        known = issued if isinstance(issued, str) and issued else f"call_{self._calls}"
        shells[known] = {name: value for name, value in call.items() if name != "function"} | {
            "function": {name: value for name, value in function.items() if name not in ("name", "arguments")}
        }
        return ToolUseBlock(
            id=known, name=_text(function, "name", path), input=function.get("arguments"), provider_id=known
        )

    def _result(self, given: Mapping[str, Any], text: str, more: dict[str, Any]) -> None:
        name = given.get("tool_name") or given.get("name")
        wanted = given.get("tool_call_id")
        found = next((call for call in self._open if call.id == wanted), None)
        found = found or next((call for call in self._open if call.name == name), None)
        found = found or next((call for call in self._open if name is None and wanted is None), None)
        if found is not None:
            self._open.remove(found)
        call_id = found.id if found else str(wanted or name or "")
        block = ToolResultBlock(
            tool_use_id=call_id, content=(TextBlock(text=text),), tool_name=name or (found.name if found else None)
        )
        self._add(Role.TOOL, [block], {"message": more}, call_id)

    def _add(
        self, role: Role, content: Sequence[ContentBlock], replay: Mapping[str, Any], call: str | None = None
    ) -> None:
        facts: dict[str, Any] = {}
        if replay or role is Role.ASSISTANT:
            facts = {"model": f"{self._provider}:{self._model}", "provider": self._provider, "api": API}
            facts["provenance"] = Provenance.IMPORTED
        if replay:
            facts["provider_raw"] = {"origin": [self._provider, API, self._model], "replay": replay, "trace": {}}
        metadata = MessageMetadata(parent_tool_use_id=call, **facts)
        name = f"m{len(self.messages)}"
        message = Message(id=name, role=role, content=tuple(content), metadata=metadata, created_at=self._time)
        self.messages.append(message)


def _media_type(data: str, path: str) -> str:
    try:
        return media_type_of(b64decode(data), "image") or ""
    except ValueError as error:
        raise CallerError(f"{path}: it is not base64: {error}") from error


def _list(value: Any, path: str) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise CallerError(f"{path}: a list is required")
    return value or []


def _text(holder: Mapping[str, Any], name: str, path: str = "") -> str:
    value = holder.get(name)
    if not isinstance(value, str) or not value:
        raise CallerError(f"{path}.{name}: a string is required".lstrip("."))
    return value


# ---- the answer


def to_wire_response(message: Message, context: ServeContext) -> WireResponse:
    """Write a whole answer: its stream's lines put together."""
    metadata = message.metadata
    if metadata.stop_reason is StopReason.ERROR:
        return to_wire_error(ServerError("the model's answer ended with an error"), context)
    writer = LineWriter(context)
    for index, block in enumerate(message.content):
        writer.add(index, block)
    writer.note_replay((metadata.provider_raw or EMPTY).get("replay"))
    body = writer.done(metadata.stop_reason, metadata.stop_reason_raw, metadata.usage or Usage())
    body["message"] = writer.joined()
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
    """Write a list of models; this API counts no tokens."""
    if kind != "models":
        return None
    time = _time(context)
    listed = [
        {"name": name, "model": name, "modified_at": time, "size": 0, "digest": "", "details": {}} for name in value
    ]
    return WireResponse(headers=_JSON, body=dumps({"models": listed}))


def _time(context: ServeContext) -> str:
    return context.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _piece(of: TextDelta | ThinkingDelta | TextBlock | ThinkingBlock, text: str) -> dict[str, Any]:
    thought = isinstance(of, (ThinkingDelta, ThinkingBlock))
    message: dict[str, Any] = {"role": "assistant", "content": "" if thought else text}
    return message | {"thinking": text} if thought else message


class LineWriter:
    """Writes the events of one answer as lines; calls go whole, for a line cannot hold part of one."""

    content_type = "application/x-ndjson"

    def __init__(self, context: ServeContext) -> None:
        self.losses: list[Loss] = []
        self._context = context
        self._began = context.clock()
        self._state = AnswerState(context.origin, strings=False)
        self._messages: list[dict[str, Any]] = []
        self._starts: dict[int, ToolUseStart] = {}
        self._pieces: dict[int, list[str]] = {}
        self._calls = 0
        self._spoken: set[int] = set()  # blocks whose pieces were written
        self._usage = Usage()
        self._out: list[bytes] = []
        self._over = False

    def feed(self, events: Iterable[StreamEvent]) -> bytes:
        """Return the lines for these events."""
        for event in events:
            if not self._over:
                self._take(event)
        data = b"".join(self._out)
        self._out.clear()
        return data

    def end(self) -> bytes:
        """Return the end of an answer that had none: an error."""
        return b"" if self._over else self.feed([ErrorEvent(error=StreamInterruptedError("the answer broke off"))])

    def _take(self, event: StreamEvent) -> None:
        if isinstance(event, (TextDelta, ThinkingDelta)):
            self._spoken.add(event.index)
            if event.text:
                self._line(_piece(event, event.text))
        elif isinstance(event, ToolUseStart):
            self._starts[event.index], self._pieces[event.index] = event, []
        elif isinstance(event, ToolUseInputDelta):
            self._pieces.setdefault(event.index, []).append(event.partial_json)
        elif isinstance(event, ToolUseEnd):
            self._call_end(event)
        elif isinstance(event, BlockEnd):
            self.add(event.index, event.block)
        elif isinstance(event, RawUpdate):
            self.note_replay(event.replay)
        elif isinstance(event, UsageUpdate):
            self._usage = self._usage.updated(event.usage)
        elif isinstance(event, MessageComplete):
            self._complete(event)
        elif isinstance(event, ErrorEvent):
            self._fail(event.error)

    def _line(self, message: dict[str, Any]) -> None:
        self._out.append(dumps_line({**self._head(), "message": message, "done": False}) + b"\n")

    def _head(self) -> dict[str, Any]:
        return {"model": self._context.model, "created_at": _time(self._context)}

    def note_replay(self, replay: dict[str, Any] | FrozenDict | None) -> None:
        """Note state of another origin, which is lost here."""
        if replay and not self._context.is_own:
            self._state.note(RawUpdate(replay=replay))

    def add(self, index: int, block: ContentBlock) -> None:
        """Write a whole block; one of text or thinking whose pieces were written is only its end."""
        if not self._context.is_own:
            self._state.add(index, block, block.id if isinstance(block, ToolUseBlock) else "")
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if isinstance(block, (TextBlock, ThinkingBlock)):
            if not block.text or index in self._spoken:
                return
            message = _piece(block, block.text)
        elif isinstance(block, ToolUseBlock):
            message["tool_calls"] = [self._call(block)]
        elif self._context.is_own and isinstance(block, ImageBlock) and block.source.kind == "base64":
            message["images"] = [block.source.data]
        elif self._context.is_own and isinstance(block, OpaqueBlock) and block.kind == FOREIGN_CALL:
            message["tool_calls"] = [block.data]
        else:
            if not isinstance(block, OpaqueBlock) and block.type != "redacted_thinking":  # those are state
                self._lose(block.type, f"this API has no {block.type} in an answer")
            return
        self._messages.append(message)
        self._line(message)

    def _call(self, block: ToolUseBlock) -> dict[str, Any]:
        arguments: Any = block.input if block.parse_error is None else {"invalid_arguments": block.raw_input or ""}
        call_id = (block.provider_id if self._context.is_own else None) or block.id
        function = {"index": self._calls, "name": block.name, "arguments": arguments}
        self._calls += 1
        return {"id": call_id, "function": function}

    def _call_end(self, event: ToolUseEnd) -> None:
        start = self._starts.pop(event.index, None)
        if start is None:
            return
        block = event.block
        if block is None:
            raw = "".join(self._pieces.pop(event.index, ()))
            value, error = read_tool_input(raw)
            block = ToolUseBlock(
                id=start.id,
                name=start.name,
                input=value,
                provider_id=start.provider_id,
                raw_input=raw,
                parse_error=error,
            )
        self.add(event.index, block)

    def _complete(self, event: MessageComplete) -> None:
        if event.stop_reason is StopReason.ERROR:
            self._fail(ServerError("the model's answer ended with an error"))
            return
        body = self.done(event.stop_reason, event.stop_reason_raw, self._usage)
        self._out.append(dumps_line(body) + b"\n")
        self._over = True

    def done(self, reason: StopReason | None, raw: str | None, usage: Usage) -> dict[str, Any]:
        """Return the last line, and note what is lost."""
        if not self._context.is_own and self._state.take() is not None:
            self._lose("message", _STATELESS)
        body = {**self._head(), "message": {"role": "assistant", "content": ""}, "done": True}
        body["done_reason"] = (raw if self._context.is_own else None) or _STOPS.get(reason or StopReason.OTHER, "stop")
        body["total_duration"] = int((self._context.clock() - self._began).total_seconds() * 1e9)
        counts = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
        return body | {name: count for name, count in counts.items() if count}  # a zero is left out here

    def joined(self) -> dict[str, Any]:
        """Return the message that the lines make."""
        whole: dict[str, Any] = {"role": "assistant", "content": ""}
        for message in self._messages:
            for name in message.keys() - {"role"}:
                whole[name] = whole[name] + message[name] if name in whole else message[name]
        return whole

    def _fail(self, error: InterlinguaError) -> None:
        self._out.append(dumps_line({"error": _sentence(error)}) + b"\n")
        self._over = True

    def _lose(self, kind: str, reason: str) -> None:
        self.losses.append(Loss(path="content", block_type=kind, verdict="dropped", reason=reason))
