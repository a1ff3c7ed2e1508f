"""Read requests that create an interaction: messages, tools and options (WIRE.md, Interactions served)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import attrs

from interlingua.errors import CallerError
from interlingua.plugins import RequestContext, WireRequest, dumps, loads
from interlingua.types import (
    ContentBlock,
    Effort,
    ImageBlock,
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
from interlingua_google.interactions.steps import (
    BETWEEN,
    CALL,
    INPUT,
    MEDIA_KINDS,
    OUTPUT,
    RESULT,
    THOUGHT,
    annotations_of,
    from_wire_call,
    from_wire_media,
    from_wire_result,
    from_wire_step,
    shell_of,
    signature_of,
    summaries_of,
)
from interlingua_google.messages import media_key
from interlingua_google.models import INTERACTIONS
from interlingua_serving import (
    InboundRequest,
    RequestMessages,
    ServeContext,
    State,
    read_body,
    require_objects,
    require_string,
)

_READ = ("model", "input", "system_instruction", "tools", "stream")
_PLAIN: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "max_output_tokens": ("max_tokens", int),
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "top_k": ("top_k", int),
    "seed": ("seed", int),
}
_CHOICES = {"auto": "auto", "none": "none", "any": "required", "validated": "auto"}
_FORCING = ("any", "validated")
_DETAILS = ("low", "high")
_READ_OF_MEDIA = ("type", "data", "uri", "mime_type")
_READ_OF_RESULT = ("type", "call_id", "name", "result", "is_error")
_ALIAS = "image/jpg"  # no media type, but the service takes it (recorded)
_TEXT_TYPES = (None, "text/plain")


def from_wire_request(request: WireRequest, context: ServeContext) -> InboundRequest:
    """Read a request.

    Raises:
        CallerError: the request is not valid in this API.
    """
    body = read_body(request.body)
    if ("model" in body) == ("agent" in body):
        raise CallerError("either model or agent is required")
    agent = "agent" in body
    model = require_string(body, "agent" if agent else "model").removeprefix("models/")
    extra = {name: value for name, value in body.items() if name not in _READ}
    extra.setdefault("store", None)  # the service stores an interaction unless it is told not to
    covered: dict[str, tuple[str, ...]] = {"agent": ()} if agent else {}
    if extra["store"] is False:
        covered["store"] = ()
    options = _generation(extra, covered) | _schema(extra, covered)
    tools, own = _tools(body.get("tools"))
    if own:
        extra["tools"] = own
    reader = _Steps(context, model)
    reader.read_system(body.get("system_instruction"))
    reader.read(input_steps(body.get("input")))
    previous = body.get("previous_interaction_id")
    return InboundRequest(
        messages=tuple(reader.out.messages),
        tools=tools,
        options=RequestOptions(model=model, api=context.api, stream=body.get("stream") is True, **options),
        extra=extra,
        covered=covered,
        json_mode=_json_mode(extra),
        continues=previous if isinstance(previous, str) else None,
        stored=body.get("store") is not False,
        provider=context.provider,
        losses=tuple(reader.out.losses),
        echo={
            **({"agent": True} if agent else {}),
            **{name: body[name] for name in ("store", "previous_interaction_id") if name in body},
        },
    )


def continue_request(request: WireRequest, earlier: bytes, answer: bytes) -> WireRequest:
    """Return a request with the steps that it continues; system instruction, tools and settings are not inherited."""
    body = {name: value for name, value in loads(request.body).items() if name != "previous_interaction_id"}
    said = [*input_steps(loads(earlier).get("input")), *loads(answer)["steps"], *input_steps(body.get("input"))]
    return attrs.evolve(request, body=dumps({**body, "input": said}))


def input_steps(given: Any) -> list[dict[str, Any]]:
    """Return `input` as steps: it may also be a string, contents, or turns with a role.

    Raises:
        CallerError: it has another form.
    """
    if isinstance(given, str):
        return [{"type": INPUT, "content": [{"type": "text", "text": given}]}]
    steps: list[dict[str, Any]] = []
    contents: list[Any] | None = None  # of the step that adjacent contents become
    for each in require_objects([given] if isinstance(given, dict) else given, "input"):
        kind = each.get("type")
        if kind == "text" or kind in MEDIA_KINDS:
            if contents is None:
                contents = []
                steps.append({"type": INPUT, "content": contents})
            contents.append(each)
            continue
        contents = None
        if kind is None and "role" in each:
            role = OUTPUT if each["role"] == "model" else INPUT
            steps.append({"type": role, "content": _contents(each, "input.content")})
        else:
            steps.append(each)
    return steps


# ---- options and tools


def _generation(extra: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    config = extra.get("generation_config")
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise CallerError("generation_config: an object is required")
    options: dict[str, Any] = {}
    rest = set()
    for name, value in config.items():
        field, kind = _PLAIN.get(name, ("", ()))
        if isinstance(value, kind) and type(value) is not bool:
            options[field] = value
        elif name == "stop_sequences" and isinstance(value, list) and all(isinstance(one, str) for one in value):
            options["stop"] = value
        elif name == "thinking_level" and value in get_args(Effort):
            options["effort"] = value
        elif name == "thinking_summaries" and value == "auto":
            options["thinking"] = True
        elif name == "tool_choice" and (choice := _choice(value)) is not None:
            options["tool_choice"], exact = choice
            if not exact:
                rest.add(name)
        elif value is not None:
            rest.add(name)
    if not rest:
        covered["generation_config"] = tuple(options)
    return options


def _choice(given: Any) -> tuple[Any, bool] | None:
    """Return the choice, and whether it is all that was said; None for another form."""
    if isinstance(given, str):
        return (_CHOICES[given], True) if given in _CHOICES else None
    allowed = given.get("allowed_tools") if isinstance(given, dict) else None
    if not isinstance(allowed, dict):
        return None
    mode, names = allowed.get("mode", "auto"), allowed.get("tools")
    if mode in _FORCING and isinstance(names, list) and len(names) == 1 and isinstance(names[0], str):
        return ToolChoice(names[0]), True
    return (_CHOICES[mode], not names) if mode in _CHOICES else None


def _schema(extra: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Read the schema in `response_format`: one format, a list with one, or a schema alone."""
    form = _only_format(extra)
    if form is None:
        return {}
    if form.get("type") == "text":
        schema = form.get("schema")
        if isinstance(schema, dict):
            covered["response_format"] = ("response_schema",)
            return {"response_schema": schema}
        if form.get("mime_type") in _TEXT_TYPES:
            covered["response_format"] = ()
    elif "properties" in form:
        covered["response_format"] = ("response_schema",)
        return {"response_schema": form}
    return {}


def _only_format(extra: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = extra.get("response_format")
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    return found if isinstance(found, dict) else None


def _json_mode(extra: Mapping[str, Any]) -> str | None:
    form = _only_format(extra)
    wanted = {"type": "text", "mime_type": "application/json"}
    return "response_format" if form is not None and form == wanted else None


def _tools(given: Any) -> tuple[tuple[WireTool, ...], list[Any]]:
    """Return the caller's functions and the service's own tools."""
    tools: list[WireTool] = []
    own: list[Any] = []
    for at, tool in enumerate(require_objects(given, "tools")):
        if tool.get("type") == "function":
            tools.append(_tool(tool, f"tools[{at}]"))
        else:
            own.append(tool)
    return tuple(tools), own


def _tool(tool: Mapping[str, Any], path: str) -> WireTool:
    schema = tool.get("parameters")
    extra = {name: value for name, value in tool.items() if name not in ("type", "name", "description")}
    if isinstance(schema, dict):
        del extra["parameters"]
    else:
        schema, extra["parameters"] = {"type": "object", "properties": {}}, None
    return WireTool(
        name=require_string(tool, "name", path),
        description=str(tool.get("description") or ""),
        input_schema=schema,
        deferred=extra.get("defer_loading") is True,
        extra=extra,
        api=INTERACTIONS,
    )


# ---- steps


class _Steps:
    """Reads steps into messages: adjacent steps of the model become one answer."""

    def __init__(self, context: ServeContext, model: str) -> None:
        self.out = RequestMessages(context, model)
        self._unseal = context.unseal
        self._reading = RequestContext(origin=self.out.origin, message_id=context.answer_id, clock=context.clock)
        self._calls: dict[str, str] = {}
        self._answer: list[dict[str, Any]] = []

    def read_system(self, given: Any) -> None:
        """Read the instruction, a string."""
        if given is not None and not isinstance(given, str):
            raise CallerError("system_instruction: a string is required")
        if given:
            self.out.add(Role.SYSTEM, [TextBlock(text=given)])

    def read(self, steps: Sequence[dict[str, Any]]) -> None:
        """Read all steps."""
        for at, step in enumerate(steps):
            kind = step.get("type")
            if not isinstance(kind, str):
                raise CallerError(f"input[{at}].type: a string is required")
            if kind not in (INPUT, RESULT):
                self._answer.append(step)
                continue
            self._end_answer()
            items = [step] if kind == RESULT else _contents(step, f"input[{at}].content")
            self._read_user(items, f"input[{at}]")
        self._end_answer()

    def _read_user(self, items: Sequence[Any], path: str) -> None:
        """Read the user's contents; a result of a call, which may be among them, is a message."""
        said: list[ContentBlock] = []
        media: dict[str, Any] = {}
        for item in items:
            if item.get("type") == RESULT and item.get("call_id") in self._calls:
                self._say(said, media)
                said, media = [], {}
                self._result(item, path)
            else:
                said.append(self._block(item, media))
        self._say(said, media)

    def _say(self, said: list[ContentBlock], media: dict[str, Any]) -> None:
        if said:
            self.out.add(Role.USER, said, {"media": media} if media else None)

    def _block(self, item: dict[str, Any], media: dict[str, Any]) -> ContentBlock:
        if item.get("type") == "text" and isinstance(item.get("text"), str):
            return TextBlock(text=item["text"], citations=annotations_of(item))
        block: Any = from_wire_media(item)
        if block is None:
            return self.out.opaque(item, str(item.get("type")))
        more = {name: value for name, value in item.items() if name not in _READ_OF_MEDIA}
        if block.media_type == _ALIAS:
            block, more["mime_type"] = attrs.evolve(block, media_type="image/jpeg"), _ALIAS
        if isinstance(block, ImageBlock) and more.get("resolution") in _DETAILS:
            block = attrs.evolve(block, detail=more.pop("resolution"))
        if more:
            media[media_key(block)] = more
        return block  # type: ignore[no-any-return]

    def _result(self, item: Mapping[str, Any], path: str) -> None:
        if "result" not in item:
            raise CallerError(f"{path}.result: a value is required")
        call_id, given, name = str(item["call_id"]), item["result"], item.get("name")
        block = ToolResultBlock(
            tool_use_id=call_id,
            content=from_wire_result(given, self._reading),
            is_error=item.get("is_error") is True,
            tool_name=name if isinstance(name, str) and name else self._calls[call_id],
        )
        rest: dict[str, Any] = {name: value for name, value in item.items() if name not in _READ_OF_RESULT}
        rest |= {} if "name" in item else {"name": None}
        rest |= {"is_error": False} if item.get("is_error") is False else {}
        replay: dict[str, Any] = {"rest": rest} if rest else {}
        if not isinstance(given, str):
            replay["result"] = given
        self.out.add(Role.TOOL, [block], replay, call=call_id)

    # -- the answer's

    def _end_answer(self) -> None:
        """Make one message of the answer's steps so far."""
        steps, self._answer = self._answer, []
        if not steps:
            return
        kept: list[dict[str, Any]] = []
        content: list[ContentBlock | State] = []
        for step in steps:
            state = self._unsealed(step)
            if state is None:
                kept.append(step)
                content += self._blocks(step)
            elif state:
                text = BETWEEN.join(summaries_of(step))
                content += [state, ThinkingBlock(text=text)] if text else [state]
            else:
                self.out.lose_sealed()
        if not content and not kept:
            return
        if len(kept) < len(steps):  # steps of another origin, whose call ids are in the states
            content = [replace(each, provider_id=None) if isinstance(each, ToolUseBlock) else each for each in content]
        message = self.out.add_answer(content, {"steps": [shell_of(step) for step in kept]})
        self._calls.update({block.id: block.name for block in message.tool_calls})

    def _unsealed(self, step: Mapping[str, Any]) -> State | None:
        sealed = signature_of(step) if step.get("type") == THOUGHT else None
        return self._unseal(sealed) if sealed else None

    def _blocks(self, step: Mapping[str, Any]) -> Iterator[ContentBlock]:
        if step.get("type") != CALL:
            yield from from_wire_step(step, self._reading)
            return
        require_string(step, "name", "input.function_call")
        yield from_wire_call(step, self._reading, require_string(step, "id", "input.function_call"))


def _contents(step: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    given = step.get("content")
    if isinstance(given, str):
        return [{"type": "text", "text": given}]
    return require_objects([given] if isinstance(given, dict) else given, path)
