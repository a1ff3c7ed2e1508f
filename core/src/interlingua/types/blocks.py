"""Content blocks: text, thinking, media, tool calls and results, and what only one provider can read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from interlingua.frozen import READY, fast_frozen, maker
from interlingua.json import EMPTY, FrozenDict, dumps, freeze, freeze_object, freeze_objects, freeze_optional, loads


@attrs.frozen(kw_only=True)
class CacheHint:
    """Ask the provider to keep the prompt up to here (seed 002, `cache_control`).

    Attributes:
        type: the only kind the seeds know.
        ttl: how long to keep it; None means the provider's default (5 minutes where it is stated).
    """

    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] | None = None


@fast_frozen
@attrs.frozen(kw_only=True)
class TextBlock:
    """Plain text (seed 003 §4.2).

    Attributes:
        text: what was said.
        citations: where it came from, each an object in the origin's own words.
        signature: opaque token of the origin that rides on text (seed 000 §2.1).
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["text"]] = "text"
    text: str
    citations: tuple[FrozenDict, ...] = attrs.field(default=(), converter=freeze_objects)
    signature: str | None = None
    cache: CacheHint | None = None


@fast_frozen
@attrs.frozen(kw_only=True)
class ThinkingBlock:
    """Reasoning shown by the model (seed 003 §4.2).

    Attributes:
        text: the reasoning; empty when the provider shows only its signature (the wire sheets).
        signature: opaque token that the origin wants back byte-equal.
    """

    type: ClassVar[Literal["thinking"]] = "thinking"
    text: str
    signature: str | None = None


@attrs.frozen(kw_only=True)
class RedactedThinkingBlock:
    """Reasoning the provider encoded; only its origin can read it (seed 003 §4.2)."""

    type: ClassVar[Literal["redacted_thinking"]] = "redacted_thinking"
    data: str


@attrs.frozen(kw_only=True)
class ImageSource:
    """Where the bytes of a media block are (seed 003 §4.2).

    Attributes:
        kind: base64 (data in the message), url, file_ref (a path relative to the workspace), or
            file_id (uploaded to the provider named in the message's origin; additive).
        data: the base64 text, URL, path or id.
    """

    kind: Literal["base64", "url", "file_ref", "file_id"]
    data: str


MediaSource = ImageSource


@attrs.frozen(kw_only=True)
class ImageBlock:
    """An image (seed 003 §4.2).

    Attributes:
        source: where its bytes are.
        media_type: IANA media type such as `image/png`; empty when a URL does not tell.
        detail: how closely to look, where a wire knows it (the wire sheets): low, high, auto, original.
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["image"]] = "image"
    source: ImageSource
    media_type: str = ""
    detail: str | None = None
    cache: CacheHint | None = None


@attrs.frozen(kw_only=True)
class AudioBlock:
    """A piece of audio, in or out.

    Attributes:
        source: where its bytes are.
        media_type: IANA media type such as `audio/wav`.
        transcript: what is said in it, where the provider tells.
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["audio"]] = "audio"
    source: ImageSource
    media_type: str = "audio/mpeg"
    transcript: str | None = None
    cache: CacheHint | None = None


@attrs.frozen(kw_only=True)
class VideoBlock:
    """A video."""

    type: ClassVar[Literal["video"]] = "video"
    source: ImageSource
    media_type: str = "video/mp4"
    cache: CacheHint | None = None


@attrs.frozen(kw_only=True)
class DocumentBlock:
    """A document such as a PDF or a plain text file.

    Attributes:
        source: where its bytes are; plain text is base64 of UTF-8, like any other bytes.
        media_type: IANA media type such as `application/pdf`.
        title: file name or title, where known.
        context: what the reader should know about it.
        cite: ask the model to cite from it.
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["document"]] = "document"
    source: ImageSource
    media_type: str = "application/pdf"
    title: str | None = None
    context: str | None = None
    cite: bool = False
    cache: CacheHint | None = None


@fast_frozen
@attrs.frozen(kw_only=True)
class ToolUseBlock:
    """The model asks for a tool (seed 003 §4.2, with the additions of DESIGN 3).

    Attributes:
        id: canonical id, `tu_<ulid>` when interlingua minted it (seed 003 §6.1).
        name: canonical tool name.
        input: the parsed arguments; empty when they could not be parsed.
        provider_id: the id the provider issued, or None.
        raw_input: the argument string, where the wire carries a string: replay is then byte-exact.
        parse_error: why `raw_input` is not a JSON object; a malformed call is kept, not lost.
        signature: opaque token of the origin that rides on the call (seed 000 §2.4).
        kind: a ToolKind for user interfaces, or None.
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["tool_use"]] = "tool_use"
    id: str
    name: str
    input: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object, metadata={READY: FrozenDict})
    provider_id: str | None = None
    raw_input: str | None = None
    parse_error: str | None = None
    signature: str | None = None
    kind: str | None = None
    cache: CacheHint | None = None

    @property
    def input_json(self) -> str:
        """The arguments as a JSON string: the raw one where there is one, else written in insertion order."""
        return dumps(self.input).decode() if self.raw_input is None else self.raw_input


_text = maker(TextBlock)


def result_content(value: Any) -> tuple[ContentBlock, ...]:
    """Make a result's content: text and blocks stay, anything else is written as JSON text (DESIGN 3)."""
    if isinstance(value, str):
        return (_text(value, (), None, None),)
    if isinstance(value, Iterable) and not isinstance(value, (dict, bytes)):
        items = tuple(value)
        if all(hasattr(item, "type") and attrs.has(type(item)) for item in items):
            return items
        value = list(items)
    if hasattr(value, "type") and attrs.has(type(value)):
        return (value,)
    return (TextBlock(text=dumps(value).decode()),)


@fast_frozen
@attrs.frozen(kw_only=True)
class ToolResultBlock:
    """What a tool answered (seed 003 §4.2, seeds 000 and 001 for the additions).

    Attributes:
        tool_use_id: canonical id of the call it answers.
        content: usually one TextBlock; may hold images. A value that is not text or blocks becomes JSON text.
        is_error: the tool failed; the content says how.
        tool_name: the tool's name, for wires that need it and for people.
        details: typed payload for the application; never sent to a model.
        metadata: internal tracking; never sent to a model.
        terminate: tells a tool loop to stop after this result; never sent to a model.
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    tool_use_id: str
    content: tuple[ContentBlock, ...] = attrs.field(default=(), converter=result_content)
    is_error: bool = False
    tool_name: str | None = None
    details: FrozenDict | None = attrs.field(default=None, converter=freeze_optional)
    metadata: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object, metadata={READY: FrozenDict})
    terminate: bool = False
    cache: CacheHint | None = None


def read_tool_input(raw: str) -> tuple[FrozenDict, str | None]:
    """Read an argument string -> (input, parse_error); an empty string is `{}` (REGRESSIONS case 14)."""
    if not raw or raw.isspace():
        return freeze_object(None), None
    try:
        value = loads(raw)
    except (ValueError, RecursionError) as error:
        return freeze_object(None), f"arguments are not JSON: {error}"
    if isinstance(value, dict):
        return freeze_object(value), None
    if value is None:
        return freeze_object(None), None
    return freeze_object(None), f"arguments are a JSON {type(value).__name__}, not an object"


@attrs.frozen(kw_only=True)
class OpaqueBlock:
    """Content only one provider has: server tools and their results, wire blocks not known yet (DESIGN 3).

    Attributes:
        provider: provider key of the only target it may be sent to.
        kind: the wire's own name for it.
        data: the wire object, exact.
    """

    type: ClassVar[Literal["opaque"]] = "opaque"
    provider: str
    kind: str
    data: Any = attrs.field(converter=freeze)


@attrs.frozen(kw_only=True)
class UnknownBlock:
    """A canonical block type written by a newer version: kept and written back verbatim.

    Attributes:
        raw: the whole stored object, its `type` included.
    """

    type: ClassVar[Literal["unknown"]] = "unknown"
    raw: FrozenDict = attrs.field(converter=freeze)


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
    | UnknownBlock
)
