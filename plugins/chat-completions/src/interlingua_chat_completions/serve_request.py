"""Read Chat Completions requests: messages, tools and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import attrs

from interlingua.errors import CallerError
from interlingua.plugins import WireRequest
from interlingua.types import (
    AudioBlock,
    BlockEnd,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    Effort,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RequestOptions,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
    WireTool,
    read_tool_input,
)
from interlingua_chat_completions.content import THINKING, ReasoningReader, from_wire_content
from interlingua_chat_completions.dialect import API, Dialect
from interlingua_serving import InboundRequest, RequestMessages, ServeContext, State, read_body

_TOOL = ("type", "function", "cache_control")
_FUNCTION = ("name", "description", "parameters")
_NO_INPUT: Mapping[str, Any] = {"type": "object", "properties": {}}
_UNREAD = {  # members of messages without a place in a conversation
    "name": "names of participants have no place in a conversation",
    "annotations": "sources of an answer are not sent back",
    "images": "images of an answer are not sent back",
    "function_call": "the deprecated function_call is not read; use tool_calls",
}
_AUDIO_TYPES = {"mp3": "audio/mpeg"}
_EFFORTS = get_args(Effort)
_CHOICES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
_NAMES = {
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "random_seed": "seed",
    "stop": "stop",
    "parallel_tool_calls": "parallel_tool_calls",
    "user": "user_id",
    "user_id": "user_id",
    "safety_identifier": "user_id",
}


def from_wire_request(
    request: WireRequest, context: ServeContext, dialect_of: Callable[[str], Dialect]
) -> InboundRequest:
    """Read a request.

    Args:
        request: the request as received.
        context: opens sealed state.
        dialect_of: the dialect of the served service by model. Members in this dialect become options, and others are
            passed to the service unchanged.

    Raises:
        CallerError: the request is not valid in this format.
    """
    body = read_body(request.body)
    model, given = body.get("model"), body.get("messages")
    if not isinstance(model, str) or not model:
        raise CallerError("model: a string is required")
    if not isinstance(given, list) or not given:
        raise CallerError("messages: a list of at least one message is required")
    dialect = dialect_of(model)
    options = _BodyOptions(body, dialect)
    reader = _ChatMessages(context, model, dialect)
    for at, message in enumerate(given):
        reader.read(message, f"messages[{at}]")
    tools, service_tools = _tools(body.get("tools"))
    extra = options.extra
    if service_tools:
        extra["tools"] = service_tools
    if reader.prefilled and dialect.prefill_field is not None:
        extra[dialect.prefill_field] = True
    usage = body.get("stream_options")
    return InboundRequest(
        messages=tuple(reader.out.messages),
        tools=tools,
        options=RequestOptions(model=model, api=context.api, stream=bool(body.get("stream")), **options.found),
        extra=extra,
        covered=options.covered,
        json_mode="response_format" if extra.get("response_format") == {"type": "json_object"} else None,
        provider=context.provider,
        losses=tuple(reader.out.losses),
        echo={"include_usage": bool(isinstance(usage, dict) and usage.get("include_usage"))},
    )


def _tools(given: Any) -> tuple[tuple[WireTool, ...], list[Any]]:
    """Return the caller's functions and the service's own tools."""
    if given is not None and not isinstance(given, list):
        raise CallerError("tools: a list is required")
    tools: list[WireTool] = []
    own: list[Any] = []
    for at, tool in enumerate(given or ()):
        if not isinstance(tool, dict):
            raise CallerError(f"tools[{at}]: an object is required")
        function = tool.get("function")
        if not isinstance(function, dict):
            if tool.get("type") in (None, "function"):
                raise CallerError(f"tools[{at}].function: an object is required")
            own.append(tool)
            continue
        schema = function.get("parameters")
        if not isinstance(function.get("name"), str) or not isinstance(schema, dict | None):
            raise CallerError(f"tools[{at}].function: a name and an object of parameters are required")
        inner = {name: value for name, value in function.items() if name not in _FUNCTION}
        outer = {name: value for name, value in tool.items() if name not in _TOOL}
        made = WireTool(
            name=function["name"],
            description=function.get("description") or "",
            input_schema=_NO_INPUT if schema is None else schema,
            cache=_hint(tool),
            extra={"function": inner, **outer},
            api=API,
        )
        tools.append(made)
    return tuple(tools), own


class _ChatMessages:
    """Reads messages in order."""

    def __init__(self, context: ServeContext, model: str, dialect: Dialect) -> None:
        self.out = RequestMessages(context, model)
        self.prefilled = False
        self._unseal = context.unseal
        self._dialect = dialect
        self._names: dict[str, str] = {}
        self._open: list[str] = []  # calls without a result yet

    def read(self, message: Any, path: str) -> None:
        """Read one message."""
        if not isinstance(message, dict):
            raise CallerError(f"{path}: an object is required")
        role = message.get("role")
        for name, reason in _UNREAD.items():
            if message.get(name) and not (name == "name" and role == "tool"):
                self.out.lose("message", reason)
        if role in ("system", "developer"):
            self.out.add(Role.SYSTEM, self._parts(message, path))
        elif role == "user":
            self.out.add(Role.USER, self._parts(message, path))
        elif role == "assistant":
            self._answer(message, path)
        elif role in ("tool", "function"):
            self._result(message, path)
        else:
            raise CallerError(f"{path}.role: one of system, developer, user, assistant and tool is required")

    def _answer(self, message: Mapping[str, Any], path: str) -> None:
        items: list[ContentBlock | State] = []
        replay: dict[str, Any] = {}
        details = self._details(message.get("reasoning_details"), items)
        if details:
            replay["reasoning_details"] = details
        reasoning = ReasoningReader(self._dialect.reasoning_fields, self.out.origin.provider)
        thought = reasoning.read({**message, "reasoning_details": details}, whole=True)
        ends = {event.index: event.block for event in reasoning.end() if isinstance(event, BlockEnd)}
        signed = ends.pop(THINKING, None)
        echo = self._dialect.reasoning_echo
        if thought or (echo is not None and message.get(echo) == ""):  # an empty string counts too
            items.append(ThinkingBlock(text=thought))
        elif signed is not None:
            items.append(signed)
        content = message.get("content")
        if isinstance(content, list):
            items += self._answer_parts(content, path, replay)
        elif isinstance(content, str):
            items += [TextBlock(text=content)] if content else []
        elif content is not None:
            raise CallerError(f"{path}.content: a string or a list of parts is required")
        if isinstance(message.get("refusal"), str) and message["refusal"]:
            items.append(TextBlock(text=message["refusal"]))
            replay["refusal"] = True
        self._calls(message.get("tool_calls"), path, items, replay)
        items += ends.values()
        audio = message.get("audio")
        if isinstance(audio, dict) and isinstance(audio.get("id"), str):
            replay["audio"] = audio["id"]
            items.append(AudioBlock(source=MediaSource(kind="file_id", data=audio["id"])))
        field = self._dialect.prefill_field
        self.prefilled = field is not None and bool(message.get(field))
        made = self.out.add_answer(items, replay)
        if not made.content:
            self.out.messages[-1] = attrs.evolve(made, content=(TextBlock(text=""),))

    def _details(self, given: Any, items: list[ContentBlock | State]) -> list[Any]:
        """Remove the sealed states from reasoning details; return the others, which the service needs."""
        others = []
        for detail in given if isinstance(given, list) else ():
            data = detail.get("data") if isinstance(detail, dict) else None
            state = self._unseal(data) if isinstance(data, str) else None
            if state is None:
                others.append(detail)
            elif state:
                items.append(state)
            else:
                self.out.lose_sealed()
        return others

    def _answer_parts(self, content: list[Any], path: str, replay: dict[str, Any]) -> list[ContentBlock]:
        pieces = from_wire_content(content)
        if pieces.closed is not None:
            replay["thinking_closed"] = pieces.closed
        if pieces.refusal:
            replay["refusal"] = True
        blocks: list[ContentBlock] = []
        if pieces.thinking or any(isinstance(part, dict) and part.get("type") == "thinking" for part in content):
            blocks.append(ThinkingBlock(text="".join(pieces.thinking), signature=pieces.signature))
        blocks += [TextBlock(text=text) for text in (*pieces.text, *pieces.refusal)]
        return blocks + [self._opaque(part, path) for part in pieces.other]

    def _calls(self, given: Any, path: str, items: list[ContentBlock | State], replay: dict[str, Any]) -> None:
        if given is not None and not isinstance(given, list):
            raise CallerError(f"{path}.tool_calls: a list is required")
        for at, call in enumerate(given or ()):
            if not isinstance(call, dict):
                raise CallerError(f"{path}.tool_calls[{at}]: an object is required")
            custom = call.get("custom")
            inner: dict[str, Any] = custom if isinstance(custom, dict) else call.get("function") or {}
            if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
                raise CallerError(f"{path}.tool_calls[{at}]: a function with a name is required")
            call_id = call.get("id")
            name = call_id if isinstance(call_id, str) and call_id else f"call_{len(self.out.messages)}_{at}"
            self._names[name] = inner["name"]
            self._open.append(name)
            if inner is custom:
                replay.setdefault("custom_calls", []).append(name)
                items.append(ToolUseBlock(id=name, name=inner["name"], input={"input": inner.get("input") or ""}))
                continue
            raw = inner.get("arguments")
            if not isinstance(raw, str | None):
                raise CallerError(f"{path}.tool_calls[{at}].function.arguments: a string is required")
            value, error = read_tool_input(raw or "")
            items.append(
                ToolUseBlock(
                    id=name, name=inner["name"], input=value, raw_input=raw or "", parse_error=error, cache=_hint(call)
                )
            )

    def _result(self, message: Mapping[str, Any], path: str) -> None:
        call = message.get("tool_call_id")
        if not isinstance(call, str):  # some services match results by their order
            call = self._open[0] if self._open else ""
        if call in self._open:
            self._open.remove(call)
        name = self._names.get(call) or (message.get("name") if isinstance(message.get("name"), str) else None)
        block = ToolResultBlock(tool_use_id=call, content=tuple(self._parts(message, path)), tool_name=name)
        parts = message.get("content")
        hints = [_hint(part) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        if any(hints):
            bare = [attrs.evolve(part, cache=None) if isinstance(part, TextBlock) else part for part in block.content]
            block = attrs.evolve(block, content=tuple(bare), cache=[hint for hint in hints if hint][-1])
        self.out.add(Role.TOOL, [block], call=call)

    def _parts(self, message: Mapping[str, Any], path: str) -> list[ContentBlock]:
        content = message.get("content")
        if isinstance(content, str):
            return [TextBlock(text=content, cache=_hint(message))]
        if content is None and message.get("role") in ("tool", "function"):
            return []
        if not isinstance(content, list):
            raise CallerError(f"{path}.content: a string or a list of parts is required")
        return [self._part(part, f"{path}.content[{at}]") for at, part in enumerate(content)]

    def _part(self, part: Any, path: str) -> ContentBlock:
        if isinstance(part, str):
            return TextBlock(text=part)
        if not isinstance(part, dict):
            raise CallerError(f"{path}: an object is required")
        kind, hint = part.get("type"), _hint(part)
        found = part.get(kind) if isinstance(kind, str) else None
        if kind in ("text", "input_text") and isinstance(part.get("text"), str):
            return TextBlock(text=part["text"], cache=hint)
        if kind == "image_url":
            url, detail = (found.get("url"), found.get("detail")) if isinstance(found, dict) else (found, None)
            if isinstance(url, str) and isinstance(detail, str | None):
                source, media_type = _media(url, self._dialect)
                return ImageBlock(source=source, media_type=media_type, detail=detail, cache=hint)
        if kind == "input_audio" and isinstance(found, dict) and isinstance(found.get("data"), str):
            form = str(found.get("format") or "wav")
            source = MediaSource(kind="base64", data=found["data"])
            return AudioBlock(source=source, media_type=_AUDIO_TYPES.get(form, f"audio/{form}"), cache=hint)
        if kind == "video_url" and isinstance(found, dict) and isinstance(found.get("url"), str):
            source, media_type = _media(found["url"], self._dialect)
            return VideoBlock(source=source, media_type=media_type or "video/mp4", cache=hint)
        if kind in ("file", "document_url") and (document := self._document(part, found, hint)) is not None:
            return document
        return self._opaque(part, path)

    def _document(self, part: Mapping[str, Any], found: Any, hint: CacheHint | None) -> DocumentBlock | None:
        held = found if isinstance(found, dict) else part
        if isinstance(file_id := held.get("file_id"), str):
            return DocumentBlock(source=MediaSource(kind="file_id", data=file_id), cache=hint)
        url, name = held.get("file_data") or held.get("document_url"), held.get("filename") or held.get("document_name")
        if not isinstance(url, str) or not isinstance(name, str | None):
            return None
        source, media_type = _media(url, self._dialect)
        media_type = media_type or "application/pdf"
        if media_type.startswith("text/"):
            return None  # text documents are written as text on this wire (WIRE.md, Content parts), so this is a file
        return DocumentBlock(source=source, media_type=media_type, title=name, cache=hint)

    def _opaque(self, part: Mapping[str, Any], path: str) -> OpaqueBlock:
        kind = part.get("type")
        if not isinstance(kind, str):
            raise CallerError(f"{path}.type: a string is required")
        return self.out.opaque(part, kind)


def _media(url: str, dialect: Dialect) -> tuple[MediaSource, str]:
    """Return the source and media type of a URL, data URL or, if the service accepts it, bare base64."""
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        return MediaSource(kind="base64", data=data), head[5:].partition(";")[0]
    if not dialect.image_data_urls and "://" not in url:
        return MediaSource(kind="base64", data=url), ""
    return MediaSource(kind="url", data=url), ""


def _hint(part: Mapping[str, Any]) -> CacheHint | None:
    marker = part.get("cache_control") or part.get("prompt_cache_breakpoint")
    if not isinstance(marker, dict):
        return None
    ttl = marker.get("ttl")
    return CacheHint(ttl=ttl if ttl in ("5m", "1h") else None)


class _BodyOptions:
    """The members of a body as options, and the unchanged members (`extra`)."""

    def __init__(self, body: Mapping[str, Any], dialect: Dialect) -> None:
        self._body, self._dialect = body, dialect
        self.found: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self.covered: dict[str, tuple[str, ...]] = {}
        written = {
            dialect.max_tokens_field, "temperature", "top_p", "stop", dialect.seed_field, dialect.user_field,
            *(("top_k",) if dialect.top_k else ()),
            *(("parallel_tool_calls",) if dialect.parallel_tool_calls and body.get("tools") else ()),
        }  # fmt: skip
        handled = {"model", "messages", "tools"}
        for member, option in _NAMES.items():
            if body.get(member) is not None and option not in self.found:
                handled.add(member)
                self.found[option] = body[member]
                if member not in written:
                    self._keep(member, option)
        if body.get("stream") is True:
            handled.add("stream")
        for member in ("stream", "stream_options"):
            if member in body and member not in handled:
                handled.add(member)
                self._keep(member)
        for member, read in (
            ("reasoning_effort", self._effort),
            ("thinking", self._thinking),
            ("enable_thinking", self._thinking_flag),
            ("thinking_budget", self._thinking_budget),
            ("reasoning", self._reasoning),
            ("response_format", self._response_format),
            ("tool_choice", self._tool_choice),
        ):
            if body.get(member) is not None and read(body[member]):
                handled.add(member)
        self.extra |= {name: value for name, value in body.items() if name not in handled}

    def _keep(self, member: str, *options: str) -> None:
        """Keep the member unchanged for this API, which receives it instead of these options."""
        self.extra[member] = self._body[member]
        self.covered[member] = options

    def _effort(self, value: Any) -> bool:
        if value not in _EFFORTS:
            return False
        self.found["effort"] = value
        dialect = self._dialect
        if dialect.effort_shape != "field" and not (value == "none" and dialect.thinking_shape == "effort"):
            self._keep("reasoning_effort", "effort")
        return True

    def _thinking(self, value: Any) -> bool:
        if not isinstance(value, dict) or value.get("type") not in ("enabled", "disabled"):
            return False
        self.found["thinking"] = value["type"] == "enabled"
        self._keep("thinking", *(() if self._dialect.thinking_shape == "type" else ("thinking",)))
        return True

    def _thinking_flag(self, value: Any) -> bool:
        if not isinstance(value, bool):
            return False
        self.found["thinking"] = value
        self._keep("enable_thinking", *(() if self._dialect.thinking_shape == "flag" else ("thinking",)))
        return True

    def _thinking_budget(self, value: Any) -> bool:
        if type(value) is not int:
            return False
        self.found["thinking_budget"] = value
        self._keep("thinking_budget", *(() if self._dialect.thinking_shape == "flag" else ("thinking_budget",)))
        return True

    def _reasoning(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        if value.get("effort") in _EFFORTS:
            self.found["effort"] = value["effort"]
        if isinstance(value.get("enabled"), bool):
            self.found["thinking"] = value["enabled"]
        if type(value.get("max_tokens")) is int:
            self.found["thinking_budget"] = value["max_tokens"]
        if self._dialect.thinking_shape != "object":
            self._keep("reasoning", "effort", "thinking", "thinking_budget")
        else:
            self._keep("reasoning")
        return value.keys() <= {"effort", "enabled", "max_tokens"}

    def _response_format(self, value: Any) -> bool:
        form = value.get("json_schema") if isinstance(value, dict) else None
        if not isinstance(form, dict) or not isinstance(form.get("schema"), dict):
            return False
        self.found["response_schema"] = form["schema"]
        if isinstance(form.get("name"), str):
            self.found["response_name"] = form["name"]
        self._keep("response_format", "response_schema")
        return True

    def _tool_choice(self, value: Any) -> bool:
        named = value.get("function", value) if isinstance(value, dict) else None
        if isinstance(named, dict) and isinstance(named.get("name"), str):
            self.found["tool_choice"] = ToolChoice(named["name"])
        elif isinstance(value, str) and value in _CHOICES:
            self.found["tool_choice"] = _CHOICES[value]
        else:
            return False
        self._keep("tool_choice", "tool_choice")
        return True
