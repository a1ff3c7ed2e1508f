"""Content blocks: text, thinking, media, tool calls and results, and content that only one provider can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import attrs

from interlingua._json import (
    EMPTY,
    FieldError,
    FrozenDict,
    as_names,
    as_tuple,
    dumps,
    freeze,
    freeze_object,
    freeze_objects,
    freeze_optional,
    loads,
)
from interlingua._values import CONVERT_ALWAYS, validated
from interlingua.types.tools import CacheHint, ToolDefinition, WireTool


# type checkers cannot see through a generic converter
def _definitions(value: Iterable[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    return as_tuple(value)


@validated
@attrs.frozen(kw_only=True)
class TextBlock:
    """Text.

    Attributes:
        text: the text.
        citations: its sources, each an object of the origin's API; sent back to the origin only.
        signature: opaque token that the origin attached to the text and wants back byte-equal, or None.
        cache: prompt-cache hint, or None.
    """

    type: ClassVar[Literal["text"]] = "text"
    text: str
    citations: tuple[FrozenDict, ...] = attrs.field(default=(), converter=freeze_objects)
    signature: str | None = None
    cache: CacheHint | None = None


@validated
@attrs.frozen(kw_only=True)
class ThinkingBlock:
    """Reasoning that the model shows.

    Attributes:
        text: the reasoning; empty if the provider sends only its signature.
        signature: opaque token that the origin wants back byte-equal, or None.
    """

    type: ClassVar[Literal["thinking"]] = "thinking"
    text: str
    signature: str | None = None


@validated
@attrs.frozen(kw_only=True)
class RedactedThinkingBlock:
    """Reasoning that the provider encrypted: only its origin can read it.

    Attributes:
        data: the encrypted text, exact.
    """

    type: ClassVar[Literal["redacted_thinking"]] = "redacted_thinking"
    data: str


@validated
@attrs.frozen(kw_only=True)
class ToolUseBlock:
    """A call of a tool.

    Attributes:
        id: canonical id: `tu_<ulid>` if interlingua minted it (format.md, Identity).
        name: canonical tool name.
        input: the parsed arguments; empty if they could not be parsed.
        provider_id: the id the provider issued, or None.
        raw_input: the argument string, if the API sends a string: it is sent back byte-equal.
        parse_error: why `raw_input` is not a JSON object, or None.
        signature: opaque token that the origin attached to the call and wants back byte-equal, or None.
        kind: a ToolKind for user interfaces, or None.
        cache: prompt-cache hint, or None.
    """

    type: ClassVar[Literal["tool_use"]] = "tool_use"
    id: str
    name: str
    input: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    provider_id: str | None = None
    raw_input: str | None = None
    parse_error: str | None = None
    signature: str | None = None
    kind: str | None = None
    cache: CacheHint | None = None

    @property
    def input_json(self) -> str:
        """The arguments as a JSON string: `raw_input` if there is one, else written in insertion order."""
        return dumps(self.input).decode() if self.raw_input is None else self.raw_input


def result_content(value: Any) -> tuple[ContentBlock, ...]:
    """Return a result's content as blocks: text and blocks stay, anything else is written as JSON text."""
    if isinstance(value, str):
        return (TextBlock(text=value),)
    if isinstance(value, Iterable) and not isinstance(value, (dict, bytes)):
        items = tuple(value)
        if all(hasattr(item, "type") and attrs.has(type(item)) for item in items):
            return items
        value = list(items)
    if hasattr(value, "type") and attrs.has(type(value)):
        return (value,)
    try:
        return (TextBlock(text=dumps(value).decode()),)
    except (TypeError, ValueError, RecursionError) as error:
        raise FieldError(f"expected text, blocks or JSON: {error}") from None


@validated
@attrs.frozen(kw_only=True)
class ToolResultBlock:
    """The result of one call.

    Attributes:
        tool_use_id: canonical id of the call it answers.
        content: usually one TextBlock; may hold images. A value that is not text or blocks becomes JSON text.
        is_error: the tool failed; the content says how.
        tool_name: the tool's name, for wires that need it and for people.
        details: any JSON for the application; never sent to a model.
        metadata: free JSON of the application; never sent to a model.
        terminate: a tool loop stops after this result; never sent to a model.
        cache: prompt-cache hint, or None.
    """

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    tool_use_id: str
    content: tuple[ContentBlock, ...] = attrs.field(default=(), converter=result_content)
    is_error: bool = False
    tool_name: str | None = None
    details: Any = attrs.field(default=None, converter=freeze)
    metadata: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    terminate: bool = False
    cache: CacheHint | None = None


def read_tool_input(raw: str) -> tuple[FrozenDict, str | None]:
    """Read the argument string of a call; an empty one, or `null`, is `{}`.

    Returns:
        (input, parse_error): the input is empty if there is an error.
    """
    try:
        value = loads(raw) if raw and not raw.isspace() else None
        if value is None or isinstance(value, dict):
            return freeze_object(value), None
    except (ValueError, RecursionError) as error:
        return EMPTY, f"arguments are not JSON: {error}"
    return EMPTY, f"arguments are a JSON {type(value).__name__}, not an object"


@validated
@attrs.frozen(kw_only=True)
class MediaSource:
    """Where the bytes of a media block are.

    Attributes:
        kind: base64 (data in the message), url, file_ref (a path relative to the workspace), or
            file_id (a file uploaded to the provider of the message's origin).
        data: the base64 text, URL, path or id.
    """

    kind: Literal["base64", "url", "file_ref", "file_id"]
    data: str


@validated
@attrs.frozen(kw_only=True)
class ImageBlock:
    """An image.

    Attributes:
        source: location of its bytes.
        media_type: IANA media type such as `image/png`; empty if unknown, as for a URL.
        detail: resolution at which the model sees it, if the API has a field for it: low, high, auto, original.
        cache: prompt-cache hint, or None.
    """

    type: ClassVar[Literal["image"]] = "image"
    source: MediaSource
    media_type: str = ""
    detail: str | None = None
    cache: CacheHint | None = None


@validated
@attrs.frozen(kw_only=True)
class AudioBlock:
    """Audio, from the user or from the model.

    Attributes:
        source: location of its bytes.
        media_type: IANA media type such as `audio/wav`.
        transcript: the words in it, if the provider sends them.
        cache: prompt-cache hint, or None.
    """

    type: ClassVar[Literal["audio"]] = "audio"
    source: MediaSource
    media_type: str = "audio/mpeg"
    transcript: str | None = None
    cache: CacheHint | None = None


@validated
@attrs.frozen(kw_only=True)
class VideoBlock:
    """A video.

    Attributes:
        source: location of its bytes.
        media_type: IANA media type such as `video/mp4`.
        cache: prompt-cache hint, or None.
    """

    type: ClassVar[Literal["video"]] = "video"
    source: MediaSource
    media_type: str = "video/mp4"
    cache: CacheHint | None = None


@validated
@attrs.frozen(kw_only=True)
class DocumentBlock:
    """A document such as a PDF or a plain text file.

    Attributes:
        source: location of its bytes; plain text is base64 of UTF-8, like any other bytes.
        media_type: IANA media type such as `application/pdf`.
        title: file name or title, if known.
        context: background information that the model reads with the document.
        cite: ask the model for citations of it.
        cache: prompt-cache hint, or None.
    """

    type: ClassVar[Literal["document"]] = "document"
    source: MediaSource
    media_type: str = "application/pdf"
    title: str | None = None
    context: str | None = None
    cite: bool = False
    cache: CacheHint | None = None


@validated
@attrs.frozen(kw_only=True)
class OpaqueBlock:
    """Content that only one provider has: server tools and their results, blocks that the plugin does not know.

    Attributes:
        provider: key of the only provider it may be sent to.
        kind: the wire's own name for it.
        data: the wire object, exact.
    """

    type: ClassVar[Literal["opaque"]] = "opaque"
    provider: str
    kind: str
    data: Any = attrs.field(converter=freeze)


def _unknown(raw: Mapping[str, Any]) -> FrozenDict:
    frozen: FrozenDict = freeze(raw)
    kind = frozen.get("type") if type(frozen) is FrozenDict else None
    known = {block.type for block in get_args(ContentBlock) if block is not UnknownBlock}
    if not isinstance(kind, str) or kind in known:
        raise FieldError(f"expected an object whose type this version does not know, got the type {kind!r:.40}")
    return frozen


@validated
@attrs.frozen(kw_only=True)
class UnknownBlock:
    """A canonical block type written by a newer version: kept and written back verbatim.

    Attributes:
        raw: the whole stored object, its `type` included.
    """

    type: ClassVar[Literal["unknown"]] = "unknown"
    raw: FrozenDict = attrs.field(converter=_unknown, metadata=CONVERT_ALWAYS)


@validated
@attrs.frozen(kw_only=True)
class ChangeBlock:
    """A change of the model's tools, its effort and the schema of its answers, which applies until the next change.

    It is in system messages only. `ToolDefinition`s are whole, so that a stored conversation needs no other list.

    Attributes:
        tools_added: tools that may be called from here on; one of a known name replaces it.
        tools_removed: names of tools that may not be called from here on.
        effort: how hard to think from here on; None: as before.
        response_schema: JSON Schema that answers must follow from here on; an empty one: any text; None: as before.
    """

    type: ClassVar[Literal["change"]] = "change"
    tools_added: tuple[ToolDefinition | WireTool, ...] = attrs.field(default=(), converter=_definitions)
    tools_removed: tuple[str, ...] = attrs.field(default=(), converter=as_names)
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    response_schema: FrozenDict | None = attrs.field(default=None, converter=freeze_optional)


MediaBlock: TypeAlias = ImageBlock | AudioBlock | VideoBlock | DocumentBlock

ContentBlock: TypeAlias = (
    TextBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | AudioBlock
    | VideoBlock
    | DocumentBlock
    | OpaqueBlock
    | ChangeBlock
    | UnknownBlock
)
