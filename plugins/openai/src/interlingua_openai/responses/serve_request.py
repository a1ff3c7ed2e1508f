"""Read requests of the Responses API: messages, tools and options (WIRE.md, Responses served)."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

import attrs

from interlingua.errors import CallerError
from interlingua.plugins import RequestContext, WireRequest, dumps, loads
from interlingua.types import (
    CacheHint,
    ChangeBlock,
    ContentBlock,
    DocumentBlock,
    Effort,
    ImageBlock,
    MediaSource,
    RequestOptions,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
    WireTool,
    changes_in,
    replace,
)
from interlingua_openai.catalogue import RESPONSES, capabilities_with_changes
from interlingua_openai.responses.changes import from_wire_update
from interlingua_openai.responses.client_calls import (
    RESULT_FORMS,
    ClientResult,
    call_type_of,
    from_wire_client_tool,
    read_client_result,
)
from interlingua_openai.responses.items import (
    BETWEEN,
    call_id_of,
    from_wire_call,
    from_wire_item,
    is_call,
    normalise_item,
    reasoning_texts,
)
from interlingua_openai.responses.messages import RESULTS
from interlingua_openai.responses.replay import replay_state
from interlingua_serving import (
    InboundRequest,
    RequestMessages,
    ServeContext,
    State,
    read_body,
    require_objects,
    require_string,
)

_READ = ("model", "input", "instructions", "tools", "stream")
_ROLES = {"user": Role.USER, "system": Role.SYSTEM, "developer": Role.SYSTEM}
_DEFAULT_ROLES = {Role.USER: "user", Role.SYSTEM: "developer"}
_PLAIN: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "max_output_tokens": ("max_tokens", int),
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "parallel_tool_calls": ("parallel_tool_calls", bool),
    "safety_identifier": ("user_id", str),
    "user": ("user_id", str),
}
_ENCRYPTED = ["reasoning.encrypted_content"]
_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
# the caller's items, except results of calls; all others belong to answers
_OF_CALLER = ("item_reference", "additional_tools", "configuration_update", "mcp_approval_response", None)
_ECHOED = (
    *("instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "previous_response_id", "reasoning"),
    *("service_tier", "store", "temperature", "text", "tool_choice", "top_p", "truncation"),
)


def from_wire_request(request: WireRequest, context: ServeContext) -> InboundRequest:
    """Read a request.

    Raises:
        CallerError: the request is not valid in this API.
    """
    body = read_body(request.body)
    model = require_string(body, "model")
    extra = {name: value for name, value in body.items() if name not in _READ}
    covered: dict[str, tuple[str, ...]] = {}
    options = _options(body, extra, covered)
    tools, own = _tools(body.get("tools"))
    if own:
        extra["tools"] = own
    reader = _Items(context, model)
    reader.read_instructions(body.get("instructions"))
    reader.read(body.get("input"))
    added: list[Any] = [tool for change in changes_in(reader.out.messages) for tool in change.tools_added]
    return InboundRequest(
        messages=tuple(reader.out.messages),
        tools=tools,
        options=RequestOptions(model=model, api=context.api, stream=bool(body.get("stream")), **options),
        extra=extra,
        covered=covered,
        continues=body["previous_response_id"] if isinstance(body.get("previous_response_id"), str) else None,
        stored=body.get("store") is not False,
        json_mode="text" if extra.get("text") == {"format": {"type": "json_object"}} else None,
        provider=context.provider,
        losses=tuple(reader.out.losses),
        echo=_echo(body, [*tools, *added]),
    )


def continue_request(request: WireRequest, earlier: bytes, answer: bytes) -> WireRequest:
    """Return a request with the input and the output that it continues; `instructions` are not inherited."""
    body = {name: value for name, value in loads(request.body).items() if name != "previous_response_id"}
    said = [*_input_items(loads(earlier)), *loads(answer)["output"], *_input_items(body)]
    return attrs.evolve(request, body=dumps({**body, "input": said}))


def _input_items(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else require_objects(given, "input")


def _options(body: Mapping[str, Any], extra: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the options, and record which members of `extra` they express.

    Members that `to_wire` adds by default are None in `extra` if the request lacks them, so that they are left out.
    """
    options: dict[str, Any] = {}
    for name, (field, kind) in _PLAIN.items():
        value = body.get(name)
        if isinstance(value, kind) and (kind is bool or type(value) is not bool):
            options.setdefault(field, value)
            covered[name] = (field,)
    _objects_of_options(body, options, covered)
    if (choice := _choice(body.get("tool_choice"))) is not None:
        options["tool_choice"] = choice
        covered["tool_choice"] = ("tool_choice",)
    if extra.setdefault("store", None) is False:
        covered["store"] = ()
    if extra.setdefault("include", None) in (_ENCRYPTED, []):
        covered["include"] = ()
    if body.get("stream") is False:
        extra["stream"], covered["stream"] = False, ()
    return options


def _objects_of_options(body: Mapping[str, Any], options: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> None:
    """Read `reasoning` and `text`."""
    reasoning, text = body.get("reasoning"), body.get("text")
    if isinstance(reasoning, dict):
        covered["reasoning"] = ("effort", "thinking")
        if reasoning.get("effort") in get_args(Effort):
            options["effort"] = reasoning["effort"]
        if (reasoning.get("summary") or reasoning.get("generate_summary")) and reasoning.get("effort") != "none":
            options["thinking"] = True
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(text, dict) and (form is None or (isinstance(form, dict) and form.get("type") != "json_object")):
        covered["text"] = ("response_schema",)
    if isinstance(form, dict) and isinstance(form.get("schema"), dict):
        options["response_schema"] = form["schema"]
        if isinstance(form.get("name"), str):
            options["response_name"] = form["name"]


def _choice(given: Any) -> Any:
    if given in ("auto", "none", "required"):
        return given
    if not isinstance(given, dict):
        return None
    if given.get("type") in ("function", "custom") and isinstance(given.get("name"), str):
        return ToolChoice(given["name"])
    if len(given) == 1 and (tool := from_wire_client_tool(given)) is not None:
        return ToolChoice(tool.name)
    return None


def _echo(body: Mapping[str, Any], tools: Sequence[WireTool]) -> dict[str, Any]:
    """Return the members that the answer repeats, and the facts about tools that it needs."""
    echo: dict[str, Any] = {"request": {name: body[name] for name in _ECHOED if name in body}}
    if custom := [tool.name for tool in tools if tool.extra.get("type") == "custom"]:
        echo["custom"] = custom
    if kinds := {tool.name: kind for tool in tools if (kind := call_type_of(tool.extra)) is not None}:
        echo["client_calls"] = kinds
    if spaces := {tool.name: dict(tool.extra["namespace"]) for tool in tools if "namespace" in tool.extra}:
        echo["namespaces"] = {
            name: {"namespace": space["name"], "name": name[len(space["name"]) + 2 :]} for name, space in spaces.items()
        }
    return echo


# ---- tools


def _tools(given: Any) -> tuple[tuple[WireTool, ...], list[Any]]:
    """Return the caller's tools, with those in namespaces, and the service's own."""
    tools: list[WireTool] = []
    own: list[Any] = []
    for at, tool in enumerate(require_objects(given, "tools")):
        kind = tool.get("type")
        if kind in ("function", "custom"):
            tools.append(_tool(tool, f"tools[{at}]"))
        elif kind == "namespace" and (inner := _namespace(tool, f"tools[{at}]")) is not None:
            tools += inner
        elif (made := from_wire_client_tool(tool)) is not None and all(made.name != one.name for one in tools):
            tools.append(made)
        else:
            own.append(tool)
    return tuple(tools), own


def _namespace(tool: Mapping[str, Any], path: str) -> list[WireTool] | None:
    """Return the functions of a namespace with the namespace in their names; None if it holds other tools."""
    held = require_objects(tool.get("tools"), f"{path}.tools")
    if not held or any(each.get("type") not in ("function", "custom") for each in held):
        return None
    space = {name: value for name, value in tool.items() if name not in ("type", "tools")}
    name = require_string(space, "name", path)
    made = [_tool(each, f"{path}.tools[{at}]") for at, each in enumerate(held)]
    return [
        WireTool(
            name=join_names(name, each.name),
            description=each.description,
            input_schema=each.input_schema,
            deferred=each.deferred,
            extra={**each.extra, "name": each.name, "namespace": space},
            api=RESPONSES,
        )
        for each in made
    ]


def join_names(namespace: str, name: str) -> str:
    """Return the name of a function with its namespace, for models without namespaces."""
    return f"{namespace}__{name}"


def _tool(tool: Mapping[str, Any], path: str) -> WireTool:
    schema = tool.get("parameters")
    extra = {name: value for name, value in tool.items() if name not in ("name", "description")}
    if extra["type"] == "custom":
        schema = _FREE_TEXT
    elif isinstance(schema, dict):
        del extra["parameters"]
    else:
        schema, extra["parameters"] = {"type": "object", "properties": {}}, None
    return WireTool(
        name=require_string(tool, "name", path),
        description=str(tool.get("description") or ""),
        input_schema=schema,
        deferred=extra.get("defer_loading") is True,
        extra=extra,
        api=RESPONSES,
    )


# ---- items


class _Items:
    """Reads items into messages: adjacent items of an answer become one."""

    def __init__(self, context: ServeContext, model: str) -> None:
        self.out = RequestMessages(context, model)
        can = capabilities_with_changes(model, RESPONSES)
        self._takes_updates = can.supports_effort_changes or can.assumed  # other models get an update to refuse it
        self._unseal = context.unseal
        self._reading = RequestContext(origin=self.out.origin, message_id=context.answer_id, clock=context.clock)
        self._calls: dict[str, str] = {}
        self._answer: list[dict[str, Any]] = []

    def read_instructions(self, given: Any) -> None:
        """Read the instructions, which keep their kind in this API."""
        if isinstance(given, str) and given:
            self.out.add(Role.SYSTEM, [TextBlock(text=given)], {"instructions": True})
        elif given is not None and not isinstance(given, str):
            raise CallerError("instructions: a string is required")

    def read(self, given: Any) -> None:
        """Read `input`, a string or items."""
        for at, item in enumerate(_input_items({"input": given})):
            self._read_item(item, f"input[{at}]")
        self._end_answer()

    def _read_item(self, item: dict[str, Any], path: str) -> None:
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message" and item.get("role") == "assistant":
            self._answer.append(normalise_item(item, self._reading))
            return
        if is_call(item) or (kind not in ("message", *RESULTS, *_OF_CALLER) and not str(kind).endswith("_output")):
            self._answer.append(normalise_item(item, self._reading))
            return
        self._end_answer()
        if kind == "message":
            self._message(item, path)
        elif kind in RESULTS and item.get("call_id") in self._calls:
            self._result(item, path)
        elif kind in RESULT_FORMS and (answered := read_client_result(item)).call_id in self._calls:
            self._client_result(answered, path)
        elif change := self._change(item):
            self.out.add(Role.SYSTEM, change, {"change": item})
        else:
            self.out.add(Role.USER, [self.out.opaque(item, str(kind))])
            if kind == "item_reference":  # other services do not have the item
                last = self.out.messages.pop()
                self.out.messages.append(attrs.evolve(last, metadata=attrs.evolve(last.metadata, critical=(0,))))

    def _change(self, item: dict[str, Any]) -> list[ContentBlock]:
        """Return the change that an item is, with the service's own tools; [] for other items, and for these alone."""
        if item.get("type") == "configuration_update":
            update = from_wire_update(item) if self._takes_updates else None
            return [] if update is None else [update]
        if item.keys() - {"id"} != {"type", "role", "tools"} or item["type"] != "additional_tools":
            return []
        with suppress(CallerError):
            added, own = _tools(item["tools"])
            rest = [self.out.opaque({**item, "tools": own}, "additional_tools")] if own else []
            return [ChangeBlock(tools_added=added), *rest] if added else []
        return []

    def _message(self, item: Mapping[str, Any], path: str) -> None:
        role = _ROLES.get(str(item.get("role")))
        if role is None:
            raise CallerError(f"{path}.role: one of user, assistant, system and developer is required")
        content = item.get("content")
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
        blocks = [self._part(part) for part in require_objects(parts, f"{path}.content")]
        more = {name: value for name, value in item.items() if name not in ("type", "role", "content")}
        if role is Role.SYSTEM:
            if not all(isinstance(block, TextBlock) for block in blocks):
                raise CallerError(f"{path}.content: a {item['role']} message holds text only")
            more["role"] = item["role"]  # an explicit role keeps it an item and not an instruction
        self.out.add(role, blocks, {"item": more} if more else None)

    def _part(self, part: Mapping[str, Any]) -> ContentBlock:
        kind = str(part.get("type"))
        if isinstance(part.get("text"), str):
            return TextBlock(text=part["text"], cache=_hint(part))
        if kind == "input_image" and (source := _source(part, "image_url")) is not None:
            detail = part.get("detail")
            return ImageBlock(
                source=source[0],
                media_type=source[1],
                detail=detail if isinstance(detail, str) else None,
                cache=_hint(part),
            )
        if kind == "input_file" and (source := _source(part, "file_data", "file_url")) is not None:
            title = part.get("filename")
            return DocumentBlock(
                source=source[0],
                media_type=source[1] or "application/pdf",
                title=title if isinstance(title, str) else None,
                cache=_hint(part),
            )
        return self.out.opaque(part, kind)

    def _result(self, item: Mapping[str, Any], path: str) -> None:
        output = item.get("output")
        parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
        call_id = str(item["call_id"])
        more = {name: value for name, value in item.items() if name not in ("type", "call_id", "output")}
        content = tuple([self._part(part) for part in require_objects(parts, f"{path}.output")])
        block = ToolResultBlock(tool_use_id=call_id, content=content, tool_name=self._calls[call_id])
        if isinstance(output, list):
            more["listed"] = True
        self.out.add(Role.TOOL, [block], {"item": more} if more else None, call=call_id)

    def _client_result(self, found: ClientResult, path: str) -> None:
        listed = [{"type": "input_text", "text": found.content}] if isinstance(found.content, str) else found.content
        block = ToolResultBlock(
            tool_use_id=found.call_id,
            content=tuple([self._part(part) for part in require_objects(listed, f"{path}.output")]),
            is_error=found.is_error,
            tool_name=self._calls[found.call_id],
        )
        self.out.add(Role.TOOL, [block], {"item": found.rest} if found.rest else None, call=found.call_id)

    # -- the answer's

    def _end_answer(self) -> None:
        """Make one message of the answer's items so far."""
        items, self._answer = self._answer, []
        if not items:
            return
        kept: list[dict[str, Any]] = []
        content: list[ContentBlock | State] = []
        for item in items:
            state = self._unsealed(item)
            if state is None:
                kept.append(item)
                content += self._blocks(item)
            elif state:
                text = BETWEEN.join(reasoning_texts(item))
                content += [state, ThinkingBlock(text=text)] if text else [state]
            else:
                self.out.lose_sealed()
        if not content:
            return
        if len(kept) < len(items):  # items of another origin, whose call ids are in the states
            content = [replace(each, provider_id=None) if isinstance(each, ToolUseBlock) else each for each in content]
        message = self.out.add_answer(content, {**replay_state(kept), "sent": True})
        self._calls.update({block.id: block.name for block in message.tool_calls})

    def _unsealed(self, item: Mapping[str, Any]) -> State | None:
        sealed = item.get("encrypted_content") if item.get("type") == "reasoning" else None
        return self._unseal(sealed) if isinstance(sealed, str) and sealed else None

    def _blocks(self, item: Mapping[str, Any]) -> Iterator[ContentBlock]:
        if item.get("type") == "reasoning" and not item.get("encrypted_content"):
            yield self.out.opaque(item, "reasoning")  # the service has it stored by its id
            return
        if not is_call(item):
            yield from from_wire_item(item, self._reading)
            return
        call: ToolUseBlock = from_wire_call(item, self._reading, call_id_of(item))
        space = item.get("namespace")
        yield replace(call, name=join_names(space, call.name)) if isinstance(space, str) and space else call


def _source(part: Mapping[str, Any], *names: str) -> tuple[MediaSource, str] | None:
    """Return the source and type of media, "" for an unstated type; None if this reader does not know the form."""
    if isinstance(part.get("file_id"), str):
        return MediaSource(kind="file_id", data=part["file_id"]), ""
    given = next((part[name] for name in names if isinstance(part.get(name), str)), None)
    if given is None:
        return None
    if not given.startswith("data:"):
        return None if "file_data" in part else (MediaSource(kind="url", data=given), "")
    head, _, data = given[5:].partition(",")
    media_type, _, encoding = head.rpartition(";")
    if encoding != "base64" or not _is_base64(data):
        return None
    return MediaSource(kind="base64", data=data), media_type


def _is_base64(data: str) -> bool:
    try:
        b64decode(data, validate=True)
    except ValueError:
        return False
    return True


def _hint(part: Mapping[str, Any]) -> CacheHint | None:
    marker = part.get("prompt_cache_breakpoint")
    if not isinstance(marker, dict):
        return None
    return CacheHint(ttl="1h" if marker.get("ttl") == "12h" else None)
