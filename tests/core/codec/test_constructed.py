"""Whatever the public constructors take is written and read again, equal to the types; the rest is a CallerError."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua._json import dumps, freeze, loads
from interlingua.codec import decode_message, decode_tool, dumps_message, encode_message, encode_tool, loads_message
from interlingua.errors import CallerError, UnsupportedSchemaError
from interlingua.types import blocks, events, messages, options, tools
from interlingua.types.blocks import CacheHint, MediaSource, TextBlock, ToolResultBlock
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Provenance, Role, RoutingMode, Usage
from interlingua.types.tools import ToolDefinition
from tests.core.codec.test_values_read import _types as types_of
from tests.support.counts import examples


class Word(StrEnum):
    USER = "user"
    OTHER = "?"


class Number(IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


NOW = datetime(2026, 11, 22, 1, 2, 3, 4, tzinfo=UTC)
ODD_VALUES = [
    *(None, True, False, 0, 1, -1, 2**63, 10**30, 10**4299, 10**4300, 10**5000, 1.5, 1e308, Number.ONE),
    *(float("nan"), float("inf"), Decimal("1.10"), Decimal(3), Decimal("NaN"), Decimal("-Infinity"), Decimal("1E+9")),
    *(
        "",
        "x",
        "0.1",
        "1e3",
        "NaN",
        "\0",
        "\ud800",
        "é\udc00x",
        "\ud83d\ude00",
        "\U0001f600",
        Text("sub"),
        Text("\ud800"),
    ),
    *(b"x", object(), int, (), [], {}, set(), {1, 2}, frozenset({"a"}), range(3), iter("ab")),
    *(
        {"a": [1, {"b": None}]},
        {1: 2},
        {"\ud800": "\udfff"},
        {Word.USER: Word.OTHER},
        [1, "a"],
        ("a", "b"),
        [True],
        "ab",
    ),
    *(
        {"n": float("nan")},
        {"z": -0.0},
        [float("-inf")],
        {"d": Decimal(1)},
        {"t": NOW},
        {"b": b""},
        {"i": 10**5000},
        {"e": Number.ONE},
    ),
    *(nested(150), nested(199), nested(200), nested(201), nested(400), freeze({"a": ["\ud800", 1.5]})),
    *(NOW, NOW.replace(tzinfo=None), NOW.astimezone(timezone(timedelta(hours=2))), NOW.replace(fold=1)),
    *(datetime.max.replace(tzinfo=timezone(timedelta(hours=-2))), datetime.min.replace(tzinfo=UTC)),
    *(Word.USER, Word.OTHER, *Role, *MessageStatus, *Provenance, *RoutingMode, "user", "complete", "generated", "rule"),
    *(
        "end_turn",
        "tool_use",
        "ftp",
        "url",
        "base64",
        "read",
        "none",
        "5m",
        "1h",
        "ephemeral",
        "bogus",
        "text",
        "opaque",
    ),
    *({"type": "text"}, {"type": "new", "x": 1}, {"type": 1}, {"_unknown_fields": {"": {"role": 1}}}, {"model": "m"}),
    *({"_unknown_fields": {"metadata": {"a": 1}}}, {"_unknown_fields": {"": {}}}, {"_unknown_fields": 3}),
    *({"_unknown_fields": {"": {"schema_version": 2, "z": 1}, "metadata.usage": {"z": 1}}},),
    *(
        TextBlock(text="x"),
        [TextBlock(text="x")],
        (TextBlock(text="x"), 3),
        CacheHint(ttl="5m"),
        Usage(),
        MessageMetadata(),
    ),
    *(MediaSource(kind="url", data="u"), [ToolResultBlock(tool_use_id="t", content="x")]),
]
ODD = st.sampled_from(ODD_VALUES) | st.text(st.characters(), max_size=4)

BLOCKS = [*{cls.__name__: cls for cls in blocks.ContentBlock.__args__}.values()]  # type: ignore[attr-defined]
PARTS: dict[type, Callable[[Any], dict[str, Any]]] = {
    messages.CostParts: lambda value: {"metadata": MessageMetadata(usage=Usage(cost=value))},
    Usage: lambda value: {"metadata": MessageMetadata(usage=value)},
    messages.RoutingDecision: lambda value: {"metadata": MessageMetadata(routing=value)},
    messages.ErrorInfo: lambda value: {"metadata": MessageMetadata(error=value)},
    MessageMetadata: lambda value: {"metadata": value},
    MediaSource: lambda value: {"content": blocks.ImageBlock(source=value)},
    CacheHint: lambda value: {"content": TextBlock(text="x", cache=value)},
    **{cls: lambda value: {"content": [value, ToolResultBlock(tool_use_id="t", content=[value])]} for cls in BLOCKS},
}
# one value of each field that every class takes, so that not every try is refused
RIGHT: dict[str, Any] = {
    **dict.fromkeys(("text", "data", "id", "name", "provider", "kind", "tool_use_id", "reason", "chosen_model"), "x"),
    **dict.fromkeys(("type", "message", "description"), "x"),
    **dict.fromkeys(("input", "output", "cached_read", "cache_write"), Decimal("0.25")),
    "role": "user",
    "content": "x",
    "mode": "rule",
    "source": MediaSource(kind="url", data="x"),
    "raw": {"type": "new"},
    "model": "m",
    "side_effects": "read",
    "input_schema": {"type": "object"},
}


def right(cls: type, name: str) -> Any:
    special = {(MediaSource, "kind"): "url", (CacheHint, "type"): "ephemeral", (blocks.ToolUseBlock, "input"): {}}
    return special.get((cls, name), RIGHT.get(name))


def made(cls: type, odd: dict[str, Any]) -> Any:
    """Return a value of the class with some odd fields, or None where its constructor refuses them."""
    given = {one.name: right(cls, one.name) for one in attrs.fields(cls) if one.init and one.default is attrs.NOTHING}
    try:
        return cls(**given | odd)
    except UnsupportedSchemaError:
        return None
    except CallerError as error:
        if not str(error).startswith((f"{cls.__name__}.", "tool name")):
            raise
        return None


def drawn(data: st.DataObject, cls: type) -> Any:
    """Return a value of the class with up to three odd fields, or None where its constructor refuses them."""
    names = [field.name for field in attrs.fields(cls) if field.init]
    return made(cls, {name: data.draw(ODD) for name in sorted(data.draw(st.sets(st.sampled_from(names), max_size=3)))})


def check(value: Any) -> None:
    """Write a value in a message and read it again."""
    part = {"role": "user", "content": "x"} | (PARTS[type(value)](value) if type(value) is not Message else {})
    message = value if type(value) is Message else Message(**part)

    assert types_of(decode_message(encode_message(message))) == types_of(message)
    assert types_of(decode_message(json.loads(json.dumps(encode_message(message))))) == types_of(message)
    line = dumps_message(message)
    assert types_of(loads_message(line)) == types_of(message)
    assert line.encode()  # every reader takes it: no half of a surrogate pair is left
    assert "\n" not in line


@pytest.mark.parametrize("cls", [Message, *PARTS])
def test_every_odd_value_in_every_field_is_refused_or_read_back(cls: type) -> None:
    for field in attrs.fields(cls):
        for odd in ODD_VALUES if field.init else ():
            if (value := made(cls, {field.name: odd})) is not None:
                check(value)


@settings(max_examples=examples(1000), deadline=None)
@given(st.sampled_from([Message, *PARTS]), st.data())
def test_what_is_made_is_read_back_as_it_was_written(cls: type, data: st.DataObject) -> None:
    value = drawn(data, cls)
    if value is not None:
        check(value)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_a_tool_that_is_made_is_read_back_as_it_was_written(data: st.DataObject) -> None:
    tool = drawn(data, ToolDefinition)
    if tool is not None:
        assert types_of(decode_tool(encode_tool(tool))) == types_of(tool)
        assert types_of(decode_tool(loads(dumps(encode_tool(tool))))) == types_of(tool)


@settings(max_examples=examples(600), deadline=None)
@given(
    st.sampled_from(
        [
            cls
            for module in (events, options, tools)
            for cls in vars(module).values()
            if isinstance(cls, type) and attrs.has(cls) and cls.__module__ == module.__name__
        ]
    ),
    st.data(),
)
def test_events_options_and_tools_hold_what_their_fields_say(cls: type, data: st.DataObject) -> None:
    value = drawn(data, cls)
    if value is None:
        return
    for field in attrs.fields(cls):
        if field.type in (str, int, bool) and getattr(value, field.name) is not field.default:
            assert type(getattr(value, field.name)) is field.type


@pytest.mark.parametrize(
    ("cls", "field", "given", "kept"),
    [
        (messages.RoutingDecision, "mode", "manual", RoutingMode.MANUAL),
        (MessageMetadata, "stop_reason", "pause_turn", messages.StopReason.PAUSE_TURN),
        (MessageMetadata, "provenance", "generated", Provenance.GENERATED),
        (MessageMetadata, "status", "partial", MessageStatus.PARTIAL),
        (Message, "role", "tool", Role.TOOL),
        (ToolDefinition, "side_effects", "write", tools.SideEffects.WRITE),
        (ToolDefinition, "kind", "read", tools.ToolKind.READ),
        (Usage, "cost_usd", 0.1, Decimal("0.1")),
        (Usage, "cost_usd", 3, Decimal(3)),
        (TextBlock, "text", "a\ud800", "a\ufffd"),
        (TextBlock, "text", "\ud83d\ude00", "\U0001f600"),
        (ToolResultBlock, "details", [1, {"a": ("b",)}], [1, {"a": ["b"]}]),
        (ToolResultBlock, "details", "text", "text"),
    ],
)
def test_what_can_mean_one_thing_only_is_converted(cls: type, field: str, given: object, kept: object) -> None:
    needed = {one.name: right(cls, one.name) for one in attrs.fields(cls) if one.default is attrs.NOTHING}
    held = getattr(cls(**needed | {field: given}), field)

    assert (held, type(held) is type(kept) or isinstance(held, list)) == (kept, True)


@pytest.mark.parametrize(
    ("cls", "field", "given", "wanted"),
    [
        (messages.RoutingDecision, "mode", "bogus", "expected one of override, manual, rule"),
        (MessageMetadata, "stop_reason", "bogus", "expected one of end_turn, stop_sequence"),
        (MessageMetadata, "provenance", "bogus", "expected one of generated, authored, imported, other; got 'bogus'"),
        (MessageMetadata, "user_id", 7, "expected str, got int"),
        (MessageMetadata, "critical", "01", "expected array, got str"),
        (MessageMetadata, "extra", {"model": "m"}, "'model' is a field, not an extra"),
        (MediaSource, "kind", "ftp", "expected one of base64, url, file_ref, file_id; got 'ftp'"),
        (blocks.ToolUseBlock, "kind", 3, "expected str, got int"),
        (TextBlock, "text", None, "expected str, got null"),
        (Message, "schema_version", "1", "expected int, got str"),
        (Message, "content", [None], "expected content block, got null"),
        (Message, "created_at", NOW.replace(tzinfo=None), "expected a time with a time zone"),
        (Usage, "cost_usd", Decimal("NaN"), "expected a decimal number"),
        (ToolResultBlock, "details", {"n": float("nan")}, "expected JSON, got nan"),
        (ToolResultBlock, "details", {1: 2}, "expected str as a key, got int"),
        (blocks.UnknownBlock, "raw", {"type": "text"}, "whose type this version does not know"),
        (events.TextDelta, "index", "0", "expected int, got str"),
        (options.RequestOptions, "effort", "huge", "expected one of none, minimal, low"),
    ],
)
def test_another_type_is_refused_with_class_field_and_what_is_wanted(
    cls: type, field: str, given: object, wanted: str
) -> None:
    needed = {one.name: right(cls, one.name) for one in attrs.fields(cls) if one.default is attrs.NOTHING}
    with pytest.raises(CallerError) as caught:
        cls(**needed | {field: given})

    assert str(caught.value).startswith(f"{cls.__name__}.{field}")
    assert wanted in str(caught.value)


def test_the_halves_of_a_pair_in_two_pieces_of_a_stream_stay_as_they_came() -> None:
    assert (
        events.TextDelta(index=0, text="\ud83d").text + events.TextDelta(index=0, text="\ude00").text == "\ud83d\ude00"
    )
