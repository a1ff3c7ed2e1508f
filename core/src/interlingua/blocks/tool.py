"""Blocks of a tool call and its result.

Never runs a tool, and never validates input against a definition (the tools room does).
Messages and every room above may come in, through `interlingua.blocks`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from interlingua.blocks.text import TextBlock
from interlingua.cache import CacheHint
from interlingua.jsontext import EMPTY, FrozenDict, dumps, freeze_object, freeze_optional, loads
from interlingua.values import READY, maker, quick

if TYPE_CHECKING:
    from interlingua.blocks import ContentBlock


@quick
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


@quick
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
