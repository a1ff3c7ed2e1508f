"""A service that answers five APIs by one script: the tool that is asked for, the JSON that is asked for, or words.

It reads and writes with the serving plugins; the clients under test show, as the control, that its wires are right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import attrs
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from interlingua.errors import InterlinguaError
from interlingua.plugins import Registry, WireRequest
from interlingua.types import (
    Message,
    MessageMetadata,
    Origin,
    Role,
    StopReason,
    TextBlock,
    ToolChoice,
    ToolUseBlock,
    Usage,
    new_tool_use_id,
    new_ulid,
)
from interlingua_serving import (
    InboundRequest,
    ServeContext,
    ServedApi,
    ServedRoute,
    ServingPlugin,
    answer_events,
    find_apis,
)

_ORDER = ("anthropic", "google", "openai", "ollama")
_NOW = datetime(2026, 11, 27, tzinfo=UTC)
_QUOTED = re.compile(r"'([^']+)'")
_DEPTH = 6  # of values that are made for a schema


def scripted_service() -> Starlette:
    """Return the service as an ASGI application."""
    paths: dict[tuple[str, str], Any] = {}
    for plugin, api in find_apis(Registry(), _ORDER):
        for route in api.routes:
            if route.kind == "send":
                paths.setdefault((route.method, route.path), _endpoint(plugin, api, route))
    routes = [Route(path, endpoint, methods=[method]) for (method, path), endpoint in paths.items()]
    return Starlette(routes=routes)


def _endpoint(plugin: ServingPlugin, api: ServedApi, _route: ServedRoute) -> Any:
    async def answer(request: Request) -> Response:
        context = ServeContext(provider=plugin.key, api=api.name)
        query = f"?{request.url.query}" if request.url.query else ""
        body = await request.body()
        wire = WireRequest(path=request.url.path + query, headers=dict(request.headers), body=body, api=api.name)
        try:
            inbound = plugin.from_wire_request(wire, context)
            message = scripted_answer(inbound)
        except InterlinguaError as error:
            failed = plugin.to_wire_error(error, context)
            return Response(failed.body, failed.status, dict(failed.headers))
        model = inbound.options.model
        context = attrs.evolve(context, model=model, echo=inbound.echo, origin=Origin(plugin.key, api.name, model))
        if not inbound.options.stream:
            whole = plugin.to_wire_response(message, context)
            return Response(whole.body, whole.status, dict(whole.headers))
        writer = plugin.stream_to_wire(context)
        data = writer.feed(answer_events(message)) + writer.end()
        return Response(data, headers={"content-type": writer.content_type})

    async def guarded(request: Request) -> Response:
        try:
            return await answer(request)
        except Exception as error:  # shown to the client under test, whose failure then tells the reason
            return JSONResponse({"error": {"message": repr(error)}}, 500)

    return guarded


def scripted_answer(request: InboundRequest) -> Message:
    """Return the answer to a request: a call, JSON or words."""
    last = request.messages[-1]
    asked = "".join([block.text for block in last.content if isinstance(block, TextBlock)])
    choice, options = request.options.tool_choice, request.options
    forced = isinstance(choice, ToolChoice) or choice == "required"
    content: list[Any] = []
    if request.tools and choice != "none" and (forced or last.role is not Role.TOOL):
        wanted = choice.name if isinstance(choice, ToolChoice) else request.tools[0].name
        tool = next(tool for tool in request.tools if tool.name == wanted)
        value = _value(tool.input_schema, tool.input_schema, asked, 0)
        content.append(ToolUseBlock(id=new_tool_use_id(), name=tool.name, input=value, provider_id="call_1x"))
    elif options.response_schema is not None:
        schema = options.response_schema
        content.append(TextBlock(text=json.dumps(_value(schema, schema, asked, 0))))
    elif request.json_mode is not None or _is_told_to_write_json(request):
        text = _all_text(request)
        content.append(TextBlock(text=json.dumps(_asked_members(text))))
    elif last.role is Role.TOOL:
        said = [part.text for block in last.tool_results for part in block.content if isinstance(part, TextBlock)]
        content.append(TextBlock(text=f"The tool says: {' '.join(said)}"))
    else:
        content.append(TextBlock(text="Hello, I am a scripted service."))
    called = isinstance(content[0], ToolUseBlock)
    metadata = MessageMetadata(
        stop_reason=StopReason.TOOL_USE if called else StopReason.END_TURN,
        usage=Usage(input_tokens=10 + len(_all_text(request)), output_tokens=8),
    )
    return Message(id=new_ulid(), role=Role.ASSISTANT, content=tuple(content), metadata=metadata, created_at=_NOW)


def _is_told_to_write_json(request: InboundRequest) -> bool:
    """Tell whether the system prompt ends in a demand for JSON: a model obeys it, as it obeys a JSON mode."""
    last = [each.content[-1] for each in request.messages if each.role is Role.SYSTEM and each.content][-1:]
    return any(isinstance(block, TextBlock) and "one JSON object" in block.text for block in last)


def _all_text(request: InboundRequest) -> str:
    blocks = [block for message in request.messages for block in message.content]
    return "\n".join([block.text for block in blocks if isinstance(block, TextBlock)])


def _asked_members(text: str) -> dict[str, Any]:
    """Return an object with the members that prompts for JSON name; a real model reads them there too."""
    schema = next((found for found in _schemas(text) if "properties" in found), None)
    if schema is not None:
        return dict(_value(schema, schema, text, 0))
    marked = re.findall(r"\{(\w+)\}", text)
    names = marked or re.findall(r"[`'\"](\w+)[`'\"]", text) or ["answer"]
    return dict.fromkeys(names, "word")


def _schemas(text: str) -> list[dict[str, Any]]:
    found = []
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _value(schema: Any, root: Any, asked: str, depth: int) -> Any:
    """Return a value for a JSON Schema: the first choice of each, strings from the question where it quotes some."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return "word"
    if "$ref" in schema:
        target: Any = root
        for name in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target.get(name, {}) if isinstance(target, Mapping) else {}
        return _value(target, root, asked, depth + 1)
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return _value(schema[name][0], root, asked, depth + 1)
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list | tuple) else kind
    if kind == "object" or "properties" in schema:
        return {name: _value(inner, root, asked, depth + 1) for name, inner in (schema.get("properties") or {}).items()}
    quoted = _QUOTED.search(asked)
    made = {
        "array": lambda: [_value(schema.get("items", {}), root, asked, depth + 1)],
        "integer": lambda: 3, "number": lambda: 3, "boolean": lambda: True, "null": lambda: None,
    }  # fmt: skip
    return made[kind]() if kind in made else (quoted[1] if quoted else "word")
