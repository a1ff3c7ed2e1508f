"""Read one output item of a response as canonical blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.plugins import EMPTY, RequestContext, dumps, freeze_object
from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    read_tool_input,
)
from interlingua_chat_completions.tools import STRICT_ECHO, from_wire_strict_input
from interlingua_openai.responses.client_calls import FORMS, arguments_in, is_client_call

CALLS = ("function_call", "custom_tool_call")
"""Types of calls of the caller's own tools; see `client_calls` for the service's tools that the caller runs."""
SERVER_CALL = "server_custom_tool_call"
"""Kind of a custom call that the service ran itself, as xAI reports its search (WIRE.md, Responses server tools)."""
CUSTOM_ECHO = "custom_tools"
"""In a request's echo: the names of its custom tools, if it has tools of the service."""
PICTURE = "image_generation_call"
_SEALS = ("encrypted_content", "signature")  # routers have the second of some vendors' models
_STARTS = {"/9j/": "jpeg", "UklGR": "webp", "R0lGOD": "gif"}  # base64 of the first bytes of these formats
BETWEEN = "\n\n"  # between the parts of one reasoning item
_TEXTS = {("message", "content"): "output_text", ("reasoning", "summary"): "summary_text",
          ("reasoning", "content"): "reasoning_text"}  # fmt: skip


def from_wire_item(item: Mapping[str, Any], context: RequestContext) -> list[ContentBlock]:
    """Return an item's blocks; an item without a canonical form becomes an opaque block."""
    kind = item.get("type")
    if kind == "message":
        return [from_wire_part(part, context) for part in item.get("content") or ()]
    if kind == "reasoning":
        return [from_wire_reasoning(item)]
    if is_call(item):
        return [from_wire_call(item, context)]
    if is_picture(item):
        return [from_wire_picture(item["result"], item.get("output_format"))]
    data = {**item, "type": "custom_tool_call"} if kind == SERVER_CALL else item
    return [OpaqueBlock(provider=context.origin.provider, kind=str(kind), data=data)]


def is_call(item: Mapping[str, Any]) -> bool:
    """Return whether an item is a call that the caller must answer."""
    return item.get("type") in CALLS or is_client_call(item)


def is_picture(item: Mapping[str, Any]) -> bool:
    """Return whether an item is a picture that the service made, and not one that failed or is not made yet."""
    return item.get("type") == PICTURE and isinstance(item.get("result"), str) and item["result"] != ""


def from_wire_picture(data: str, output_format: Any) -> ImageBlock:
    """Return a picture of base64 text; its own first bytes decide if the service does not report the format."""
    form = output_format or next((form for start, form in _STARTS.items() if data.startswith(start)), "png")
    media_type = "image/svg+xml" if form == "svg" else f"image/{form}"
    return ImageBlock(source=MediaSource(kind="base64", data=data), media_type=media_type)


def from_wire_part(part: Mapping[str, Any], context: RequestContext) -> ContentBlock:
    """Return one part of a message; a refusal becomes text, and the stop reason identifies it."""
    text = part_text(part)
    if text is not None:
        return TextBlock(text=text, citations=part.get("annotations") or ())
    return OpaqueBlock(provider=context.origin.provider, kind=str(part.get("type")), data=part)


def part_text(part: Mapping[str, Any]) -> str | None:
    """Return the text of a text or refusal part; None for other parts."""
    text = part.get("refusal" if part.get("type") == "refusal" else "text")
    return text if isinstance(text, str) else None


def reasoning_texts(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the visible text of a reasoning item: its summary, then its content."""
    for name in ("summary", "content"):
        for part in item.get(name) or ():
            text = part.get("text") if isinstance(part, Mapping) else None
            if isinstance(text, str) and text:
                yield text


def from_wire_reasoning(item: Mapping[str, Any]) -> ThinkingBlock | RedactedThinkingBlock:
    """Return the block of a reasoning item: its visible text with its encrypted form or signature, or these alone."""
    text = BETWEEN.join(reasoning_texts(item))
    sealed = item[name] if (name := seal_of(item)) else None
    if sealed is not None and not text:
        return RedactedThinkingBlock(data=sealed)
    return ThinkingBlock(text=text, signature=sealed)


def seal_of(item: Mapping[str, Any]) -> str | None:
    """Return the name of the member of a reasoning item that only its service reads (WIRE.md, Reasoning items)."""
    return next((name for name in _SEALS if item.get(name)), None)


def from_wire_call(item: Mapping[str, Any], context: RequestContext, minted: str | None = None) -> ToolUseBlock:
    """Return a call; a custom tool's free text becomes the argument `input`, because other wires have only objects."""
    form = FORMS.get(str(item.get("type")))
    if form is not None:
        return ToolUseBlock(
            id=minted or context.mint_tool_use_id(),
            name=form.name,
            input=freeze_object(arguments_in(item)),
            provider_id=call_id_of(item),
            kind=form.kind,
        )
    raw = arguments_of(item)
    value, error = read_tool_input(raw)
    name = context.tool_name(item["name"])
    schema = (context.echo.get(STRICT_ECHO) or EMPTY).get(item["name"])
    if schema is not None:
        value = freeze_object(from_wire_strict_input(value, schema))
    return ToolUseBlock(
        id=minted or context.mint_tool_use_id(),
        name=name,
        input=value,
        provider_id=call_id_of(item),
        raw_input=None if item.get("type") == "custom_tool_call" else raw,
        parse_error=error,
    )


def call_id_of(item: Mapping[str, Any]) -> str | None:
    """Return the id that the service issued for a call."""
    return next((name for name in (item.get("call_id"), item.get("id")) if isinstance(name, str) and name), None)


def arguments_of(item: Mapping[str, Any]) -> str:
    """Return the argument string of a call."""
    if item.get("type") in FORMS:
        return dumps(arguments_in(item)).decode()
    if item.get("type") == "custom_tool_call":
        return dumps({"input": item.get("input") or ""}).decode()
    raw = item.get("arguments")
    return raw if isinstance(raw, str) else dumps(raw or {}).decode()


def normalise_items(output: Any, context: RequestContext) -> list[Any]:
    """Return the items of an `output`, which may be null."""
    return [normalise_item(item, context) for item in output or () if item is not None]


def normalise_item(item: Any, context: RequestContext) -> Any:
    """Return an item as an object with a type, its parts as objects in lists, a call with a name.

    A custom call of a tool that the request did not declare was run by the service: its type becomes `SERVER_CALL`.
    """
    if isinstance(item, str):
        item = {"role": "assistant", "content": item}
    if "type" not in item and "role" in item:
        item = {"type": "message", **item}
    kind = item.get("type")
    if kind == "custom_tool_call" and item.get("name") not in context.echo.get(CUSTOM_ECHO, (item.get("name"),)):
        return {**item, "type": SERVER_CALL}
    if kind in CALLS and not isinstance(item.get("name"), str):
        return {**item, "name": ""}
    for (owner, name), part in _TEXTS.items():
        held = item.get(name) if kind == owner else None
        if isinstance(held, str) or (isinstance(held, list) and not all(isinstance(one, Mapping) for one in held)):
            item = {**item, name: _parts(held, part)}
    return item


def _parts(held: Any, kind: str) -> list[Any]:
    listed = [held] if isinstance(held, str) else held
    return [{"type": kind, "text": one} if isinstance(one, str) else one for one in listed if one is not None]
