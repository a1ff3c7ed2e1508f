"""Read requests of this API: messages, tools and options."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import attrs

from interlingua.errors import CallerError
from interlingua.plugins import EMPTY, Loss, WireRequest, option_loss
from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    RequestOptions,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    WireTool,
    media_type_of,
)
from interlingua_ollama.messages import API, GENERATE, UNSAID
from interlingua_ollama.request import RUNTIME
from interlingua_serving import InboundRequest, RequestMessages, ServeContext, read_body, require_string

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
_COMPLETION = ("suffix", "template", "raw", "context")  # of `/api/generate` only
_UNKNOWN_TOOL = "unknown_tool"
_CALL_ADDED = "the answer before this result has no call for it; other services get one without arguments"
_LEVELS = ("low", "medium", "high", "max")


def from_wire_request(request: WireRequest, context: ServeContext) -> InboundRequest:
    """Read a request.

    Raises:
        CallerError: the request is not valid in this API.
    """
    body = read_body(request.body)
    path = request.path.partition("?")[0]
    if path == "/api/show":
        named = require_string(body, "model" if "model" in body else "name")
        return InboundRequest(
            messages=(), options=RequestOptions(model=named, api=context.api), provider=context.provider
        )
    lost: tuple[Loss, ...] = ()
    if path == "/api/generate":
        body, lost = _chat_of(body)
    model = require_string(body, "model")
    extra = {name: value for name, value in body.items() if name not in _READ}
    covered: dict[str, tuple[str, ...]] = {}
    options = _options(body, extra, covered)
    extra.setdefault("truncate", None)  # `to_wire` writes false if it is missing
    covered["truncate"] = ()
    if not isinstance(body.get("stream"), bool):
        extra["stream"], covered["stream"] = None, ()
    tools = tuple([_tool(tool, f"tools[{at}]") for at, tool in enumerate(_list(body.get("tools"), "tools"))])
    reader = _OllamaMessages(context, model, tools[0].name if len(tools) == 1 else _UNKNOWN_TOOL)
    for at, message in enumerate(_list(body.get("messages"), "messages")):
        reader.read(message, f"messages[{at}]")
    return InboundRequest(
        messages=tuple(reader.out.messages),
        tools=tools,
        options=RequestOptions(model=model, api=context.api, stream=body.get("stream") is not False, **options),
        extra=extra,
        covered=covered,
        json_mode="format" if body.get("format") == "json" else None,
        provider=context.provider,
        losses=(*lost, *reader.out.losses),
        echo={GENERATE: True} if path == "/api/generate" else EMPTY,
    )


def _chat_of(body: dict[str, Any]) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    """Return a request for a completion as a request for a chat, and what a chat cannot express."""
    messages = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    user = {"role": "user", "content": require_string(body, "prompt")}
    messages.append(user | ({"images": body["images"]} if body.get("images") else {}))
    lost = [name for name in _COMPLETION if body.get(name)]
    rest = {name: value for name, value in body.items() if name not in ("prompt", "system", "images", *_COMPLETION)}
    reason = "only a completion of a prompt has it; the prompt is sent as a message"
    rows = [option_loss(f"provider_options.{name}", "dropped", reason) for name in lost]
    return {**rest, "messages": messages}, tuple(rows)


def _options(body: Mapping[str, Any], extra: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the options, and record which members of `extra` they express."""
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
    covered["keep_alive"] = ()  # how long the server keeps the model in memory: of no use to other services
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
        name=require_string(function, "name", f"{path}.function"),
        description=function.get("description") or "",
        input_schema=schema if isinstance(schema, dict) else {},
        extra={**outer, "function": inner},
        api=API,
    )


class _OllamaMessages:
    """Reads messages. Results name their call by id, by the tool's name, or by order alone (WIRE.md, Messages).

    Args:
        context: the facts of the request.
        model: the requested model.
        tool: the name of a tool whose results come without calls and without a name.
    """

    def __init__(self, context: ServeContext, model: str, tool: str) -> None:
        self.out = RequestMessages(context, model)
        self._tool = tool
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
        self.out.add(_ROLES.get(role, Role.ASSISTANT), content, replay)

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
            id=known, name=require_string(function, "name", path), input=function.get("arguments"), provider_id=known
        )

    def _result(self, given: Mapping[str, Any], text: str, more: dict[str, Any]) -> None:
        name = given.get("tool_name") or given.get("name")
        wanted = given.get("tool_call_id")
        found = next((call for call in self._open if call.id == wanted), None)
        found = found or next((call for call in self._open if call.name == name), None)
        found = found or next((call for call in self._open if name is None and wanted is None), None)
        if found is not None:
            self._open.remove(found)
        else:
            found = self._add_call(name if isinstance(name, str) and name else self._tool)
        call_id = found.id if found else str(wanted or name or "")
        block = ToolResultBlock(
            tool_use_id=call_id, content=(TextBlock(text=text),), tool_name=name or (found.name if found else None)
        )
        self.out.add(Role.TOOL, [block], {"message": more}, call=call_id)

    def _add_call(self, name: str) -> ToolUseBlock | None:
        """Add a call to the answer before a result that has none; some clients send answers without their calls."""
        messages = self.out.messages
        at = len(messages) - 1
        while at >= 0 and messages[at].role is Role.TOOL:
            at -= 1
        if at < 0 or messages[at].role is not Role.ASSISTANT:
            return None
        self._calls += 1
        call = ToolUseBlock(id=f"call_{self._calls}", name=name, input={})
        answer, metadata = messages[at], messages[at].metadata
        raw: Mapping[str, Any] = metadata.provider_raw or {"origin": list(self.out.origin), "replay": {}, "trace": {}}
        replay = {**raw["replay"], UNSAID: [*raw["replay"].get(UNSAID, ()), call.id]}
        said = [block for block in answer.content if block != TextBlock(text="")]
        metadata = attrs.evolve(metadata, provider_raw={**raw, "replay": replay})
        messages[at] = attrs.evolve(answer, content=(*said, call), metadata=metadata)
        self.out.lose("tool_result", _CALL_ADDED, "rewritten")
        return call


def _media_type(data: str, path: str) -> str:
    try:
        return media_type_of(b64decode(data), "image") or ""
    except ValueError as error:
        raise CallerError(f"{path}: it is not base64: {error}") from error


def _list(value: Any, path: str) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise CallerError(f"{path}: a list is required")
    return value or []
