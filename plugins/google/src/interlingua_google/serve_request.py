"""Read requests of generateContent and streamGenerateContent: messages, tools and options (WIRE.md, Serving)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args
from urllib.parse import unquote

from interlingua.errors import CallerError
from interlingua.plugins import WireRequest, loads
from interlingua.types import (
    ContentBlock,
    Effort,
    RequestOptions,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
    WireTool,
)
from interlingua_google.messages import from_wire_media, from_wire_result, media_extras, media_key
from interlingua_google.models import API
from interlingua_google.stream import MODIFIERS
from interlingua_serving import (
    InboundRequest,
    RequestMessages,
    ServeContext,
    State,
    require_objects,
    require_string,
)

_path = re.compile(r"(?:.*?/)?(?P<model>(?:models|tunedModels)/[^?]+|[^/?]+):(?P<method>\w+)(?P<query>\?.*)?").fullmatch
_METHODS = ("generateContent", "streamGenerateContent", "countTokens")
_READ = ("contents", "systemInstruction", "tools")
_FREE = (  # names below these are the caller's
    *("args", "response", "responseSchema", "responseJsonSchema", "parameters", "parametersJsonSchema", "labels"),
    *("responseFormat", "partMetadata"),
)
_PLAIN: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "maxOutputTokens": ("max_tokens", int),
    "temperature": ("temperature", (int, float)),
    "topP": ("top_p", (int, float)),
    "topK": ("top_k", (int, float)),
    "seed": ("seed", int),
}
_TEXT_ONLY = {"candidateCount": 1, "responseModalities": ["TEXT"], "responseMimeType": "text/plain"}
_CHOICES = {"AUTO": "auto", "NONE": "none", "ANY": "required", "VALIDATED": "auto"}


def from_wire_request(request: WireRequest, context: ServeContext) -> InboundRequest:
    """Read a request, whose path has the model and the method.

    Raises:
        CallerError: the request is not valid in this API.
    """
    found = _path(request.path)
    if found is None or found["method"] not in _METHODS:
        raise CallerError("the path names no model and method that is served: .../models/{model}:generateContent")
    body = camel_case(loads(request.body))
    if isinstance(body, dict) and isinstance(body.get("generateContentRequest"), dict):
        body = {name: value for name, value in body["generateContentRequest"].items() if name != "model"}
    if not isinstance(body, dict):
        raise CallerError("the body is not a JSON object")
    model = unquote(found["model"]).removeprefix("models/")
    extra = {name: value for name, value in body.items() if name not in _READ}
    covered: dict[str, tuple[str, ...]] = {}
    options = _generation(extra, covered) | _choice(extra, covered)
    tools, own = _tools(body.get("tools"))
    if own:
        extra["tools"] = own
    reader = _Contents(context, model)
    reader.read_system(body.get("systemInstruction"))
    reader.read(_objects(body.get("contents"), "contents"))
    stream = found["method"] == "streamGenerateContent"
    return InboundRequest(
        messages=tuple(reader.out.messages),
        tools=tools,
        options=RequestOptions(model=model, api=context.api, stream=stream, **options),
        extra=extra,
        covered=covered,
        json_mode=_json_mode(extra, options),
        provider=context.provider,
        losses=tuple(reader.out.losses),
        echo={"array": True} if stream and "alt=sse" not in (found["query"] or "") else {},
    )


def camel_case(value: Any) -> Any:
    """Return a body with the API's names in camel case; the API also accepts snake case."""
    if isinstance(value, list):
        return [camel_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for name, inner in value.items():
        known = re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name) if "_" in name else name
        out[known] = inner if known in _FREE else camel_case(inner)
    return out


def _objects(value: Any, path: str) -> list[dict[str, Any]]:
    """Return a list of objects; the service accepts one object as a list of one."""
    return require_objects([value] if isinstance(value, dict) else value, path)


# ---- options and tools


def _generation(extra: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    config = extra.get("generationConfig")
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise CallerError("generationConfig: an object is required")
    options: dict[str, Any] = {}
    rest = set()
    for name, value in config.items():
        field, kind = _PLAIN.get(name, ("", ()))
        if isinstance(value, kind) and type(value) is not bool:
            options[field] = value
        elif name == "stopSequences" and isinstance(value, list) and all(isinstance(one, str) for one in value):
            options["stop"] = value
        elif name in ("responseJsonSchema", "responseSchema") and isinstance(value, dict):
            options["response_schema"] = from_wire_schema(value)
        elif name == "thinkingConfig" and isinstance(value, dict):
            _thinking(value, options)
        elif value is not None and _TEXT_ONLY.get(name) != value:
            rest.add(name)
    if "top_k" in options:
        options["top_k"] = int(options["top_k"])
    if not rest or (rest == {"responseMimeType"} and "response_schema" in options):
        covered["generationConfig"] = tuple(options)
    return options


def _json_mode(extra: Mapping[str, Any], options: Mapping[str, Any]) -> str | None:
    """Return the member that asks for some JSON object; other members beside it that no option expresses keep it."""
    config = extra.get("generationConfig") or {}
    if config.get("responseMimeType") != "application/json" or "response_schema" in options:
        return None
    rest = {name: value for name, value in config.items() if name != "responseMimeType"}
    covered: dict[str, tuple[str, ...]] = {}
    _generation({"generationConfig": rest}, covered)
    return "generationConfig" if "generationConfig" in covered else None


def _thinking(config: Mapping[str, Any], options: dict[str, Any]) -> None:
    budget, level = config.get("thinkingBudget"), config.get("thinkingLevel")
    if config.get("includeThoughts") is True or budget == -1:
        options["thinking"] = True
    if budget == 0:
        options["thinking"] = False
    elif isinstance(budget, int) and budget > 0:
        options["thinking_budget"] = budget
    if isinstance(level, str) and level.lower() in get_args(Effort):
        options["effort"] = level.lower()


def _choice(extra: dict[str, Any], covered: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    config = extra.get("toolConfig")
    if not isinstance(config, dict):
        return {}
    calling = config.get("functionCallingConfig")
    mode = str(calling.get("mode") or "AUTO").upper() if isinstance(calling, dict) else ""
    if not isinstance(calling, dict) or mode not in _CHOICES:
        return {}
    names = calling.get("allowedFunctionNames")
    if config.keys() <= {"functionCallingConfig"} and (not names or (mode == "ANY" and len(names) == 1)):
        covered["toolConfig"] = ("tool_choice",)
    if mode == "ANY" and isinstance(names, list) and len(names) == 1 and isinstance(names[0], str):
        return {"tool_choice": ToolChoice(names[0])}
    return {"tool_choice": _CHOICES[mode]}


def _tools(given: Any) -> tuple[tuple[WireTool, ...], list[Any]]:
    """Return the caller's functions and the service's own tools."""
    tools: list[WireTool] = []
    own: list[Any] = []
    for at, entry in enumerate(_objects(given, "tools")):
        path = f"tools[{at}].functionDeclarations"
        for place, declared in enumerate(_objects(entry.get("functionDeclarations"), path)):
            tools.append(_tool(declared, f"{path}[{place}]"))
        if rest := {name: value for name, value in entry.items() if name != "functionDeclarations"}:
            own.append(rest)
    return tuple(tools), own


def _tool(declared: Mapping[str, Any], path: str) -> WireTool:
    schema: Any = declared.get("parametersJsonSchema")
    extra = {name: value for name, value in declared.items() if name not in ("name", "description")}
    if isinstance(schema, dict):
        schema = from_wire_schema(schema)
        if schema == extra["parametersJsonSchema"]:
            del extra["parametersJsonSchema"]
    else:
        extra["parametersJsonSchema"] = None
        given = declared.get("parameters")
        schema = from_wire_schema(given) if isinstance(given, dict) else {"type": "object", "properties": {}}
    return WireTool(
        name=require_string(declared, "name", path),
        description=str(declared.get("description") or ""),
        input_schema=schema,
        extra=extra,
        api=API,
    )


def from_wire_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a schema in the service's own form: types in capitals, `nullable`, counts as strings.

    Callers mix both forms: Gemini CLI writes types in capitals in `responseJsonSchema`.
    """
    out: dict[str, Any] = {}
    for name, value in camel_case(schema).items() if "any_of" in schema else schema.items():
        if name == "type" and isinstance(value, str):
            out[name] = value.lower()
        elif name == "properties" and isinstance(value, dict):
            out[name] = {key: _inner(item) for key, item in value.items()}
        elif name in ("items", "additionalProperties"):
            out[name] = _inner(value)
        elif name in ("anyOf", "allOf", "oneOf", "prefixItems") and isinstance(value, list):
            out[name] = [_inner(item) for item in value]
        elif name in ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"):
            out[name] = int(value) if isinstance(value, str) and value.isdecimal() else value
        elif name not in ("nullable", "propertyOrdering", "property_ordering", "example"):
            out[name] = value
    if schema.get("nullable") is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out


def _inner(value: Any) -> Any:
    return from_wire_schema(value) if isinstance(value, dict) else value


# ---- contents


class _Contents:
    """Reads contents into messages."""

    def __init__(self, context: ServeContext, model: str) -> None:
        self.out = RequestMessages(context, model)
        self._unseal = context.unseal
        self._calls = 0
        self._open: list[tuple[ToolUseBlock, bool]] = []  # calls without result, and whether their id was issued

    def read_system(self, given: Any) -> None:
        """Read the instruction, a content or a string."""
        parts = [{"text": given}] if isinstance(given, str) else []
        if isinstance(given, dict):
            parts = _objects(given.get("parts"), "systemInstruction.parts")
        texts = [TextBlock(text=part["text"]) for part in parts if isinstance(part.get("text"), str)]
        role = given.get("role") if isinstance(given, dict) else None
        if texts:
            self.out.add(Role.SYSTEM, texts, {"role": role} if isinstance(role, str) and role else None)

    def read(self, contents: Sequence[Mapping[str, Any]]) -> None:
        """Read all contents; adjacent contents of the model are one answer if one of them carries a sealed state."""
        at = 0
        while at < len(contents):
            role = contents[at].get("role")
            if role != "model":
                if role not in ("user", "function", "tool", None, ""):
                    raise CallerError(f"contents[{at}].role: one of user and model is required")
                self._read_user(_objects(contents[at].get("parts"), f"contents[{at}].parts"))
                at += 1
                continue
            end = next((i for i in range(at, len(contents)) if contents[i].get("role") != "model"), len(contents))
            parts = [_objects(contents[i].get("parts"), f"contents[{i}].parts") for i in range(at, end)]
            self._read_answers(parts, at)
            at = end

    def _read_user(self, parts: Sequence[Mapping[str, Any]]) -> None:
        said: list[ContentBlock] = []
        media: dict[str, Any] = {}
        result: list[Mapping[str, Any]] = []
        for part in parts:
            if isinstance(part.get("functionResponse"), dict):
                self._result(result)
                result = [part]
            elif result and not said and from_wire_media(dict(part)) is not None:
                result.append(part)  # it is beside the result
            else:
                said.append(self._block(part, media))
        self._result(result)
        if said:
            self.out.add(Role.USER, said, {"media": media} if media else None)

    def _read_answers(self, answers: Sequence[Sequence[Mapping[str, Any]]], at: int) -> None:
        """Read adjacent contents of the model."""
        states = {}
        for parts in answers:
            for part in parts:
                signature = part.get("thoughtSignature")
                if isinstance(signature, str) and (state := self._unseal(signature)) is not None:
                    states[id(part)] = state
        pieces = [[len(part["text"]) for part in parts] for parts in answers if _is_text(parts)]
        joined = len(pieces) == len(answers) > 1  # a stream of text alone, which an SDK kept in pieces
        if states or joined:
            answers = [[part for parts in answers for part in parts]]
        self._open = []
        for place, parts in enumerate(answers, at):
            media: dict[str, Any] = {}
            read = self._items(parts, states, media, place)
            items = list(_join_texts(read) if states or joined else read)
            if items:
                replay = ({"media": media} if media else {}) | ({"pieces": pieces} if joined else {})
                self.out.add_answer(items, replay)

    def _items(
        self, parts: Sequence[Mapping[str, Any]], states: Mapping[int, State], media: dict[str, Any], at: int
    ) -> Iterator[ContentBlock | State]:
        for given in parts:
            part, state = given, states.get(id(given))
            if state is not None:
                part = {name: value for name, value in given.items() if name != "thoughtSignature"}
                if state:
                    yield state
                else:
                    self.out.lose_sealed()
                if part == {"text": ""} or not part:
                    continue
            if isinstance(part.get("functionCall"), dict):
                ids = [each["id"] for each in state["blocks"] if each["type"] == "tool_use"] if state else []
                yield self._call(part, at, ids[-1] if ids else None, sealed=bool(states))
            else:
                yield self._block(part, media)

    def _block(self, part: Mapping[str, Any], media: dict[str, Any]) -> ContentBlock:
        given = part.get("thoughtSignature")
        signature = given if isinstance(given, str) and given else None
        if isinstance(part.get("text"), str):
            if part.get("thought") is True:
                return ThinkingBlock(text=part["text"], signature=signature)
            return TextBlock(text=part["text"], signature=signature)
        found = None if part.get("thought") else from_wire_media(dict(part))
        if found is not None:
            if extras := media_extras(dict(part)):
                media[media_key(found)] = extras
            return found
        kind = next((name for name in part if name not in MODIFIERS), "thoughtSignature")
        return self.out.opaque(part, kind)

    def _call(self, part: Mapping[str, Any], at: int, sealed_id: str | None, *, sealed: bool) -> ToolUseBlock:
        """Read a call; the seal has the id if the caller dropped it, or if another origin issued it."""
        call = part["functionCall"]
        args = call.get("args")
        if args is not None and not isinstance(args, dict):
            raise CallerError(f"contents[{at}].parts.functionCall.args: an object is required")
        issued = call.get("id")
        has_id = isinstance(issued, str) and bool(issued)
        self._calls += 1
        signature = part.get("thoughtSignature")
        block = ToolUseBlock(
            id=issued if has_id else sealed_id or f"call_{self._calls}",
            name=require_string(call, "name", f"contents[{at}].parts.functionCall"),
            input=args,
            provider_id=issued if has_id and not sealed else None,
            signature=signature if isinstance(signature, str) and signature else None,
        )
        self._open.append((block, has_id))
        return block

    def _result(self, parts: Sequence[Mapping[str, Any]]) -> None:
        if not parts:
            return
        given = parts[0]["functionResponse"]
        name, wanted = given.get("name"), given.get("id")
        found = next((entry for entry in self._open if entry[1] and entry[0].id == wanted), None)
        found = found or next((entry for entry in self._open if entry[0].name == name), None)
        if found is not None:
            self._open.remove(found)
        call_id = found[0].id if found else str(wanted or name or "")
        content, is_error = from_wire_result(parts)
        block = ToolResultBlock(
            tool_use_id=call_id,
            content=content,
            is_error=is_error,
            tool_name=name if isinstance(name, str) else None,
        )
        self.out.add(Role.TOOL, [block], {"parts": parts}, call=call_id)


def _is_text(parts: Sequence[Mapping[str, Any]]) -> bool:
    return bool(parts) and all(part.keys() == {"text"} and isinstance(part["text"], str) for part in parts)


def _join_texts(items: Iterator[ContentBlock | State]) -> Iterator[ContentBlock | State]:
    """Join the pieces of a stream that an SDK kept as separate parts."""
    held: TextBlock | ThinkingBlock | None = None
    for item in items:
        kind = type(item)
        if held is not None and kind is type(held):
            held = type(held)(text=held.text + item.text)  # type: ignore[union-attr]
            continue
        if held is not None and isinstance(item, Mapping):
            yield item  # its state belongs to the text before it, or to the whole answer
            continue
        if held is not None:
            yield held
            held = None
        if isinstance(item, (TextBlock, ThinkingBlock)):
            held = item
        else:
            yield item
    if held is not None:
        yield held
