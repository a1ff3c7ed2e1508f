"""Read requests of the Messages API: messages, tools and options."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from interlingua.errors import CallerError
from interlingua.plugins import WireRequest
from interlingua.types import (
    CacheHint,
    ChangeBlock,
    ContentBlock,
    DocumentBlock,
    Effort,
    ImageBlock,
    MediaSource,
    RedactedThinkingBlock,
    RequestOptions,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
    WireTool,
    replace,
)
from interlingua_anthropic.changes import MEMBERS
from interlingua_anthropic.client_tools import from_wire_client_tool
from interlingua_anthropic.errors import THREAD_REFUSED
from interlingua_anthropic.models import API, capabilities_with_changes
from interlingua_serving import InboundRequest, RequestMessages, ServeContext, State, read_body, require_string

_PLAIN = {"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k",
          "stop_sequences": "stop"}  # fmt: skip
_EFFORTS = get_args(Effort)
_READ = {"model", "messages", "system", "tools", "stream", *_PLAIN}
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_TOOL = ("name", "description", "input_schema", "cache_control")
_CALL = ("type", "id", "name", "input", "cache_control")
# Claude Code's first system block: billing data for the service, not a prompt (WIRE.md, Serving)
_BILLING = "x-anthropic-billing-header:"


def from_wire_request(request: WireRequest, context: ServeContext) -> InboundRequest:
    """Read a request.

    Raises:
        CallerError: the request is not valid in this API.
    """
    body = read_body(request.body)
    model = require_string(body, "model")
    if body.get("thread") is not None:  # `continue` sends the new messages only; callers then send all without it
        text = "message threads are not served here: send the whole conversation, without thread"
        raise CallerError(text, code=THREAD_REFUSED)
    tools, service_tools = _tools(body.get("tools"))
    reader = _MessagesReader(context, model, tools)
    private = reader.read_system(body.get("system"))
    turns = body.get("messages")
    if not isinstance(turns, list) or not turns:
        raise CallerError("messages: a list of at least one message is required")
    for at, turn in _joined(turns):
        reader.read_turn(turn, f"messages.{at}")
    extra = {name: value for name, value in body.items() if name not in _READ}
    if service_tools:
        extra["tools"] = service_tools
    covered: dict[str, tuple[str, ...]] = {}
    options = _options(body, extra, covered)
    options |= {name: body[key] for key, name in _PLAIN.items() if body.get(key) is not None}
    if body.get("stream") is False:
        extra["stream"], covered["stream"] = False, ()
    if betas := request.headers.get("anthropic-beta"):
        extra["betas"] = betas
    return InboundRequest(
        messages=tuple(reader.out.messages),
        tools=tools,
        options=RequestOptions(model=model, api=context.api, stream=bool(body.get("stream")), **options),
        extra=extra,
        covered=covered,
        private=private,
        provider=context.provider,
        losses=tuple(reader.out.losses),
    )


def _joined(turns: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the turns with their indexes; adjacent assistant turns are joined, as the service joins them."""
    out: list[tuple[int, Any]] = []
    for at, turn in enumerate(turns):
        if isinstance(turn, dict) and turn.get("role") == "assistant" and out and out[-1][1].get("role") == "assistant":
            first, before = out[-1]
            content = [
                *_list(before.get("content"), f"messages.{first}"),
                *_list(turn.get("content"), f"messages.{at}"),
            ]
            out[-1] = first, {**before, "content": content}
        elif isinstance(turn, dict):
            out.append((at, turn))
        else:
            raise CallerError(f"messages.{at}: an object is required")
    return out


def _options(body: Mapping[str, Any], extra: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the options inside objects, and record which members of `extra` they express."""
    options: dict[str, Any] = {}
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive", "disabled"):
        covered["thinking"] = ()
        if thinking["type"] == "enabled":
            options["thinking_budget"] = thinking.get("budget_tokens")
        else:
            options["thinking"] = thinking["type"] == "adaptive"
    output = body.get("output_config")
    if isinstance(output, dict):
        if output.get("effort") in _EFFORTS:
            options["effort"] = output["effort"]
        _schema(output.get("format"), options)
        if output.keys() <= {"effort", "format"}:
            covered["output_config"] = ("effort", "response_schema")
    if isinstance(body.get("output_format"), dict):
        _schema(body["output_format"], options)
        covered["output_format"] = ("response_schema",)
    _choice(body.get("tool_choice"), options, covered)
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("user_id"), str):
        options["user_id"] = metadata["user_id"]
        if len(metadata) == 1:
            del extra["metadata"]
    return options


def _choice(choice: Any, options: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> None:
    if isinstance(choice, dict):
        if choice.get("type") == "tool":
            options["tool_choice"] = ToolChoice(require_string(choice, "name"))
        elif choice.get("type") in _CHOICES:
            options["tool_choice"] = _CHOICES[choice["type"]]
        if choice.get("disable_parallel_tool_use"):
            options["parallel_tool_calls"] = False
        covered["tool_choice"] = ()


def _schema(given: Any, options: dict[str, Any]) -> None:
    if isinstance(given, dict) and given.get("type") == "json_schema" and isinstance(given.get("schema"), dict):
        options["response_schema"] = given["schema"]


def _tools(given: Any) -> tuple[tuple[WireTool, ...], list[Any]]:
    """Return the caller's tools and the service's own."""
    if given is not None and not isinstance(given, list):
        raise CallerError("tools: a list is required")
    tools: list[WireTool] = []
    own: list[Any] = []
    for at, tool in enumerate(given or ()):
        if not isinstance(tool, dict):
            raise CallerError(f"tools.{at}: an object is required")
        if not isinstance(tool.get("input_schema"), dict):
            if tool.get("type") in (None, "custom"):
                raise CallerError(f"tools.{at}.input_schema: an object is required")
            if (run_here := from_wire_client_tool(tool)) is not None:
                tools.append(run_here)
            else:
                own.append(tool)
            continue
        made = WireTool(
            name=require_string(tool, "name", f"tools.{at}"),
            description=tool.get("description") or "",
            input_schema=tool["input_schema"],
            cache=_hint(tool),
            deferred=tool.get("defer_loading") is True,
            extra={name: value for name, value in tool.items() if name not in _TOOL},
            api=API,
        )
        tools.append(made)
    return tuple(tools), own


class _MessagesReader:
    """Reads turns into messages."""

    def __init__(self, context: ServeContext, model: str, tools: Sequence[WireTool]) -> None:
        self.out = RequestMessages(context, model)
        self._tools = [*tools]  # that a change may name
        can = capabilities_with_changes(model)
        # a model with system messages but without this gets it to refuse it
        self._takes_efforts = can.supports_effort_changes or not can.supports_system_messages_in_list
        self._unseal = context.unseal
        self._names: dict[str, str] = {}

    def read_system(self, system: Any) -> tuple[int, ...]:
        """Read the prompt; return the indexes of messages for this service only."""
        if system is None:
            return ()
        blocks = self._parts(system, "system")
        private: tuple[int, ...] = ()
        first = blocks[0] if blocks else None
        if isinstance(first, TextBlock) and first.text.startswith(_BILLING):
            self.out.add(Role.SYSTEM, [blocks.pop(0)])
            private = (0,)
        if blocks:
            self.out.add(Role.SYSTEM, blocks)
        return private

    def read_turn(self, turn: Mapping[str, Any], path: str) -> None:
        """Read one turn; its results become separate messages."""
        role = turn.get("role")
        if role == "assistant":
            self._answer(turn.get("content"), path)
        elif role == "system":
            self._system_turn(turn, path)
        elif role == "user":
            said: list[ContentBlock] = []
            for at, part in enumerate(_list(turn.get("content"), path)):
                if part.get("type") == "tool_result":
                    if said:
                        self.out.add(Role.USER, said)
                        said = []
                    self._result(part, f"{path}.content.{at}")
                else:
                    said.append(self._part(part, f"{path}.content.{at}"))
            if said:
                self.out.add(Role.USER, said)
        else:
            raise CallerError(f"{path}.role: one of user, assistant and system is required")

    def _system_turn(self, turn: Mapping[str, Any], path: str) -> None:
        """Read a system message with its changes, as far as every service has them, and its own members."""
        content: list[ContentBlock] = []
        kept: list[Mapping[str, Any]] = []
        for at, part in enumerate(_list(turn.get("content"), path)):
            change = self._change(part)
            if change is not None:
                kept.append(part)
            content.append(change or self._part(part, f"{path}.content.{at}"))
        own = {name: value for name, value in turn.items() if name not in ("role", "content")}
        output = own.get("output_config")
        if (
            self._takes_efforts
            and isinstance(output, dict)
            and [*output] == ["effort"]
            and output["effort"] in _EFFORTS
        ):
            content.append(ChangeBlock(effort=own.pop("output_config")["effort"]))
        if own:
            content.append(self.out.opaque(own, MEMBERS))
        changed = any(type(block) is ChangeBlock for block in content)
        self.out.add(Role.SYSTEM, content, {"changes": kept} if changed else None)

    def _change(self, part: Mapping[str, Any]) -> ChangeBlock | None:
        """Return a change of tools; None for other parts, and for tools that the service itself runs."""
        kind, given = part.get("type"), part.get("tool")
        if kind not in ("tool_addition", "tool_removal") or not isinstance(given, dict):
            return None
        name = given.get("name") if given.get("type") == "tool_reference" else None
        if kind == "tool_removal":
            return ChangeBlock(tools_removed=[name]) if isinstance(name, str) else None
        added: Sequence[WireTool] = [replace(tool, deferred=False) for tool in self._tools if tool.name == name][-1:]
        if given.get("type") == "tool_definition":
            with suppress(CallerError):
                added, _ = _tools([given.get("definition")])
        self._tools += added
        return ChangeBlock(tools_added=added) if added else None

    def _answer(self, content: Any, path: str) -> None:
        items: list[ContentBlock | State] = []
        calls: dict[str, Any] = {}
        for at, part in enumerate(_list(content, path)):
            where = f"{path}.content.{at}"
            kind = part.get("type")
            if kind == "thinking":
                items += self._thinking(part, where)
            elif kind == "redacted_thinking":
                items.append(RedactedThinkingBlock(data=require_string(part, "data", where, empty=True)))
            elif kind == "tool_use":
                block = _call(part, where)
                self._names[block.id] = block.name
                items.append(block)
                if more := {name: value for name, value in part.items() if name not in _CALL}:
                    calls[block.id] = more
            else:
                items.append(self._part(part, where))
        self.out.add_answer(items, {"calls": calls} if calls else None)

    def _thinking(self, part: Mapping[str, Any], path: str) -> list[ContentBlock | State]:
        """Read a thinking block: the service's own, or one with the sealed state of another origin."""
        text, signature = require_string(part, "thinking", path, empty=True), part.get("signature") or ""
        state = self._unseal(signature) if isinstance(signature, str) and signature else None
        if state is None:
            return [ThinkingBlock(text=text, signature=signature or None)]
        if not state:
            self.out.lose_sealed()
            return []
        thought = any(entry["type"] == "thinking" for entry in state["blocks"])
        return [state, ThinkingBlock(text=text)] if text or thought else [state]

    def _result(self, part: Mapping[str, Any], path: str) -> None:
        call = require_string(part, "tool_use_id", path)
        content = part.get("content")
        block = ToolResultBlock(
            tool_use_id=call,
            content=tuple(self._parts(content, path)) if content is not None else (),
            is_error=bool(part.get("is_error")),
            tool_name=self._names.get(call),
            cache=_hint(part),
        )
        self.out.add(Role.TOOL, [block], call=call)

    def _parts(self, content: Any, path: str) -> list[ContentBlock]:
        return [self._part(part, f"{path}.{at}") for at, part in enumerate(_list(content, path))]

    def _part(self, part: Mapping[str, Any], path: str) -> ContentBlock:
        kind = part.get("type")
        if kind == "text":
            text, citations = require_string(part, "text", path, empty=True), part.get("citations") or ()
            return TextBlock(text=text, citations=citations, cache=_hint(part))
        source = part.get("source")
        if kind == "image" and isinstance(source, dict) and (found := _source(source)):
            return ImageBlock(source=found, media_type=str(source.get("media_type") or ""), cache=_hint(part))
        if kind == "document" and isinstance(source, dict) and (found := _source(source)):
            cited = part.get("citations")
            return DocumentBlock(
                source=found,
                media_type=str(source.get("media_type") or "application/pdf"),
                title=part.get("title"),
                context=part.get("context"),
                cite=bool(isinstance(cited, dict) and cited.get("enabled")),
                cache=_hint(part),
            )
        return self.out.opaque(part, require_string(part, "type", path))


def _call(part: Mapping[str, Any], path: str) -> ToolUseBlock:
    given = part.get("input")
    if not isinstance(given, dict):
        raise CallerError(f"{path}.input: an object is required")
    return ToolUseBlock(
        id=require_string(part, "id", path),
        name=require_string(part, "name", path),
        input=given,
        cache=_hint(part),
    )


def _source(source: Mapping[str, Any]) -> MediaSource | None:
    kind = source.get("type")
    if kind == "base64" and isinstance(source.get("data"), str):
        return MediaSource(kind="base64", data=source["data"])
    if kind == "text" and isinstance(source.get("data"), str):
        return MediaSource(kind="base64", data=base64.b64encode(source["data"].encode()).decode())
    if kind == "url" and isinstance(source.get("url"), str):
        return MediaSource(kind="url", data=source["url"])
    if kind == "file" and isinstance(source.get("file_id"), str):
        return MediaSource(kind="file_id", data=source["file_id"])
    return None


def _hint(part: Mapping[str, Any]) -> CacheHint | None:
    marker = part.get("cache_control")
    if not isinstance(marker, dict):
        return None
    ttl = marker.get("ttl")
    return CacheHint(ttl=ttl if ttl in ("5m", "1h") else None)


def _list(content: Any, path: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise CallerError(f"{path}.content: a string or a list of blocks is required")
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    if not all(isinstance(part, dict) for part in parts):
        raise CallerError(f"{path}.content: every block is an object")
    return parts
