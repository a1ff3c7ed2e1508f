"""Steps of an answer -> blocks, and the state that puts the same steps together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, dumps
from interlingua.types import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    VideoBlock,
    read_tool_input,
)

CALL, OUTPUT, THOUGHT, INPUT, RESULT = "function_call", "model_output", "thought", "user_input", "function_result"
BETWEEN = "\n\n"  # between the summaries of one thought
IN_BLOCKS = True  # replaces a value that the blocks hold
MEDIA_KINDS: Mapping[str, type[Any]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
    "document": DocumentBlock,
}


def steps_in(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps that the model made; the user's own may precede them (WIRE.md, Interactions answers).

    Raises:
        MalformedResponseError: `steps` is not a list of objects.
    """
    steps = body.get("steps")
    if steps is None:
        return []
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise MalformedResponseError("an interaction has a list of steps", path="/steps")
    start = next((at for at, step in enumerate(steps) if step.get("type") != INPUT), len(steps))
    return steps[start:]


# ---- step -> blocks


def from_wire_step(step: Mapping[str, Any], context: RequestContext) -> list[ContentBlock]:
    """Return a step's blocks; a step without a canonical form becomes an opaque block."""
    kind = step.get("type")
    if kind == OUTPUT:
        return [from_wire_content(item, context) for item in contents_of(step)]
    if kind == THOUGHT:
        block = from_wire_thought(step)
        return [block] if block is not None else []
    if kind == CALL:
        return [from_wire_call(step, context)]
    return [OpaqueBlock(provider=context.origin.provider, kind=str(kind), data=step)]


def contents_of(step: Mapping[str, Any]) -> Sequence[Any]:
    """Return the content of a step.

    Raises:
        MalformedResponseError: it is not a list.
    """
    found = step.get("content")
    if found is None or isinstance(found, (list, tuple)):
        return found or ()
    raise MalformedResponseError("the content of a step is a list", path="/steps/content")


def from_wire_content(item: Any, context: RequestContext) -> ContentBlock:
    """Return one content of an output."""
    if isinstance(item, str):
        return TextBlock(text=item)
    if not isinstance(item, Mapping):
        raise MalformedResponseError("a content is an object", path="/steps/content")
    text = item.get("text")
    if item.get("type") == "text" and isinstance(text, str):
        return TextBlock(text=text, citations=annotations_of(item))
    media = from_wire_media(item)
    return media or OpaqueBlock(provider=context.origin.provider, kind=str(item.get("type")), data=item)


def annotations_of(item: Mapping[str, Any]) -> Sequence[Any]:
    """Return the annotations of a text content; () if they are not objects."""
    found = item.get("annotations")
    objects = isinstance(found, (list, tuple)) and all(isinstance(each, Mapping) for each in found)
    return found if objects and found is not None else ()


def from_wire_media(item: Mapping[str, Any]) -> ContentBlock | None:
    """Return the block of a content with data or an address; None for others."""
    kind = MEDIA_KINDS.get(str(item.get("type")))
    name = next((name for name in ("data", "uri") if isinstance(item.get(name), str) and item[name]), None)
    if kind is None or name is None:
        return None
    given = item[name]
    url = given.startswith(("http://", "https://")) and "generativelanguage.googleapis.com" not in given
    source = MediaSource(kind="base64" if name == "data" else "url" if url else "file_id", data=given)
    media_type = item.get("mime_type")
    typed = {"media_type": media_type} if isinstance(media_type, str) else {}
    made: ContentBlock = kind(source=source, **typed)
    return made


def from_wire_thought(step: Mapping[str, Any]) -> ThinkingBlock | None:
    """Return the block of a thought; None for one without a signature and text."""
    text, signature = BETWEEN.join(summaries_of(step)), signature_of(step)
    return ThinkingBlock(text=text, signature=signature) if text or signature else None


def signature_of(step: Mapping[str, Any]) -> str | None:
    """Return a step's signature, or None; empty ones carry nothing (WIRE.md, Interactions thoughts)."""
    found = step.get("signature")
    return found if isinstance(found, str) and found else None


def summaries_of(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of each content of a thought's summary."""
    found = step.get("summary")
    for item in found if isinstance(found, (list, tuple)) else ():
        if text := summary_text(item):
            yield text


def summary_text(item: Any) -> str:
    """Return the text of a content of a summary; "" for one without."""
    text = item.get("text") if isinstance(item, Mapping) else None
    return text if isinstance(text, str) else ""


def from_wire_call(step: Mapping[str, Any], context: RequestContext, minted: str | None = None) -> ToolUseBlock:
    """Return a call; arguments that are not an object are kept as a string, with the parse error.

    Args:
        step: the whole step.
        context: context of the exchange.
        minted: the call's canonical id, if it has one already.
    """
    raw, error, value = None, None, step.get("arguments")
    if value is not None and not isinstance(value, Mapping):
        raw = value if isinstance(value, str) else dumps(value).decode()
        value, error = read_tool_input(raw)
    issued: Any = step.get("id")
    name: Any = step.get("name")
    return ToolUseBlock(
        id=minted or context.mint_tool_use_id(),
        name=context.tool_name(name),
        input=value,
        provider_id=issued if isinstance(issued, str) and issued else None,
        raw_input=raw if error else None,
        parse_error=error,
        signature=signature_of(step),
    )


def from_wire_result(result: Any, context: RequestContext) -> tuple[ContentBlock, ...]:
    """Return the content of a tool's result: a string, contents, or another JSON value as its text."""
    if result == "":
        return ()
    if isinstance(result, (list, tuple)) and all(isinstance(item, Mapping) and "type" in item for item in result):
        return tuple([from_wire_content(item, context) for item in result])
    return (TextBlock(text=result if isinstance(result, str) else dumps(result).decode()),)


# ---- state of steps that has no canonical place


def shell_of(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step with what the blocks hold left out, and a checksum of that."""
    kind = step.get("type")
    if kind == OUTPUT:
        contents = contents_of(step)
        kept = {**step, "content": [_content_shell(item) for item in contents]} if "content" in step else {**step}
        return {"step": kept, "sum": checksum([_held(item) for item in contents])}
    if kind == THOUGHT:
        kept = _signed_shell(step)
        if isinstance(step.get("summary"), (list, tuple)):
            kept["summary"] = [_summary_shell(item) for item in step["summary"]]
        return {"step": kept, "sum": checksum([BETWEEN.join(summaries_of(step))])}
    if kind == CALL:
        return {"step": {**_signed_shell(step), "arguments": IN_BLOCKS}, "sum": 0}
    return {"step": {"type": kind}, "sum": 0}


def _signed_shell(step: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in step.items() if name != "signature" or value}
    return kept | {"signature": IN_BLOCKS} if signature_of(step) else kept


def _content_shell(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return IN_BLOCKS
    kept = dict(item)
    if item.get("type") == "text" and isinstance(item.get("text"), str):
        if item["text"].strip():  # blank text stays here, for projection drops its block
            kept["text"] = IN_BLOCKS
            if annotations_of(item):
                kept["annotations"] = IN_BLOCKS
        return kept
    if from_wire_media(item) is None:
        return IN_BLOCKS
    return kept | {"data" if isinstance(item.get("data"), str) and item["data"] else "uri": IN_BLOCKS}


def _summary_shell(item: Any) -> Any:
    """Return a summary's content with its length instead of its text."""
    text = summary_text(item)
    return {**item, "text": len(text)} if text else item


def _held(item: Any) -> str:
    """Return what a block holds of a content, for the checksum."""
    if isinstance(item, str):
        return item
    return next((item[name] for name in ("text", "data", "uri") if isinstance(item.get(name), str)), "")


def checksum(texts: Iterable[str]) -> int:
    """Return the checksum of strings in their order."""
    value = 0
    for text in texts:
        value = crc32(text.encode("utf-8", "surrogatepass"), value)
    return value
