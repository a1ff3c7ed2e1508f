"""More conversations that a service may refuse: cache hints on each kind of block, foreign schemas, counts, pairs of
options, and random ones from fixed seeds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import attrs

from interlingua.errors import UnsupportedSchemaError
from interlingua.types import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    Role,
    SideEffects,
    ThinkingBlock,
    ToolChoice,
    ToolDefinition,
    ToolUseBlock,
    VideoBlock,
    WireTool,
    system,
    user,
)
from tests.oracle import adversarial as base
from tests.oracle.adversarial import DATA, DONE, GO, HI, LINK, LOOK_UP, PDF, Conversation, answer, call, result, text

RANDOM = 110
_PNG = "image/png"
_TEXT = MediaSource(kind="base64", data="SGVsbG8=")
_OBJECT: dict[str, Any] = {"type": "object"}
_STRING = {"type": "string"}
_A = {**_OBJECT, "properties": {"a": _STRING}, "required": ["a"]}
_B = {**_OBJECT, "properties": {"b": {"type": "integer"}}, "required": ["b"]}

# Schemas of tools as MCP servers and other callers send them.
FOREIGN: dict[str, dict[str, Any]] = {
    "empty": {},
    "no type": {"properties": {"q": _STRING}},
    "no type, required": {"properties": {"q": _STRING}, "required": ["q"]},
    "two types": {"type": ["object", "null"], "properties": {"q": _STRING}},
    "anyOf at the root": {"anyOf": [_A, _B]},
    "oneOf at the root": {"oneOf": [_A, _B]},
    "allOf at the root": {"allOf": [_A, _B]},
    "object with anyOf": {**_A, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "object with oneOf": {**_A, "oneOf": [_A, _B]},
    "object with allOf": {**_A, "allOf": [_B]},
    "reference at the root": {"$ref": "#/$defs/x", "$defs": {"x": _A}},
    "reference at the root, with a type": {**_OBJECT, "$ref": "#/$defs/x", "$defs": {"x": _A}},
    "recursive": {**_OBJECT, "properties": {"n": {"$ref": "#"}}},
    "recursive definition": {
        **_OBJECT,
        "properties": {"n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {**_OBJECT, "properties": {"m": {"$ref": "#/$defs/n"}}}},
    },
    "definitions": {**_OBJECT, "properties": {"n": {"$ref": "#/definitions/n"}}, "definitions": {"n": _A}},
    "true": {**_OBJECT, "properties": {"q": True}},
    "false": {**_OBJECT, "properties": {"q": False}},
    "items true": {**_OBJECT, "properties": {"q": {"type": "array", "items": True}}},
    "list of items": {**_OBJECT, "properties": {"q": {"type": "array", "items": [_STRING, _STRING]}}},
    "prefixItems": {**_OBJECT, "properties": {"q": {"type": "array", "prefixItems": [_STRING, True]}}},
    "filter[id]": {**_OBJECT, "properties": {"filter[id]": _STRING}, "required": ["filter[id]"]},
    "$filter": {**_OBJECT, "properties": {"$filter": _STRING}},
    "Account Number": {**_OBJECT, "properties": {"Account Number": {**_OBJECT, "properties": {"größe": _STRING}}}},
    "long property": {**_OBJECT, "properties": {"x" * 70: _STRING}},
    "empty property": {**_OBJECT, "properties": {"": _STRING}},
    "names that become equal": {**_OBJECT, "properties": {"a b": _STRING, "a_b": _STRING, "a/b": _STRING}},
    "odd name in anyOf": {**_OBJECT, "properties": {"q": {"anyOf": [{**_OBJECT, "properties": {"x y": _STRING}}]}}},
    "const": {**_OBJECT, "properties": {"q": {"const": "x"}}},
    "not": {**_OBJECT, "properties": {"q": {"not": _STRING}}},
    "if": {**_A, "if": {"properties": {"a": {"const": "x"}}}, "then": {"required": ["b"]}},
    "patternProperties": {**_OBJECT, "patternProperties": {"^x": _STRING}},
    "additionalProperties": {**_OBJECT, "additionalProperties": _STRING},
    "enum of all kinds": {**_OBJECT, "properties": {"q": {"enum": ["a", 1, None, True]}}},
    "enum without a type": {**_OBJECT, "properties": {"q": {"enum": ["a", "b"]}}},
    "empty enum": {**_OBJECT, "properties": {"q": {"type": "string", "enum": []}}},
    "nullable": {**_OBJECT, "properties": {"q": {"type": ["string", "null"], "default": None}}},
    "bounds": {**_OBJECT, "properties": {"q": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2}}},
    "pattern": {**_OBJECT, "properties": {"q": {"type": "string", "pattern": r"^(?!x)\w+$", "maxLength": 9}}},
    "$schema and title": {"$schema": "http://json-schema.org/draft-07/schema#", "title": "T", "$id": "urn:x", **_A},
    "examples": {**_OBJECT, "properties": {"q": {"type": "string", "examples": ["x"], "deprecated": True}}},
    "required without properties": {**_OBJECT, "required": ["q"]},
    "unknown keyword": {**_OBJECT, "properties": {"q": {"type": "string", "x-order": 1}}, "x-tool": True},
    "deep": {**_OBJECT, "properties": {"a": {**_OBJECT, "properties": {"b": {**_OBJECT, "properties": {"c": _A}}}}}},
}

# Schemas of answers beside those of `RESPONSES`.
_CLOSED = {"additionalProperties": False}
ANSWERS: dict[str, dict[str, Any]] = {
    "true": {**_OBJECT, "properties": {"n": True}, "required": ["n"], **_CLOSED},
    "items true": {**_OBJECT, "properties": {"n": {"type": "array", "items": True}}, "required": ["n"], **_CLOSED},
    "additionalProperties": {**_OBJECT, "additionalProperties": _STRING},
    "allOf": {"allOf": [_A, _B]},
    "object with anyOf": {**_OBJECT, "properties": {"n": {"anyOf": [_A, _B]}}, "required": ["n"]},
    "object with oneOf": {**_OBJECT, "properties": {"n": {"oneOf": [_A, {"type": "null"}]}}, "required": ["n"]},
    "recursive": FOREIGN["recursive definition"],
    "bounds": {**_OBJECT, "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"], **_CLOSED},
    "lengths": {**_OBJECT, "properties": {"n": {"type": "array", "items": _STRING, "minItems": 2}}, "required": ["n"]},
    "pattern": {**_OBJECT, "properties": {"n": {"type": "string", "pattern": "^a+$"}}, "required": ["n"], **_CLOSED},
    "const": {**_OBJECT, "properties": {"n": {"const": 1}}, "required": ["n"], **_CLOSED},
    "odd name": {**_OBJECT, "properties": {"a b[c]": _STRING}, "required": ["a b[c]"], **_CLOSED},
    "no type": {"properties": {"n": _STRING}, "required": ["n"]},
    "nullable": {**_OBJECT, "properties": {"n": {"type": ["string", "null"]}}, "required": ["n"], **_CLOSED},
    "default": {**_OBJECT, "properties": {"n": {"type": "string", "default": "x"}}, "required": ["n"], **_CLOSED},
}  # fmt: skip

_TTL = (None, "5m", "1h")


def _hinted(ttl: Any) -> dict[str, tuple[Message, ...]]:
    """Return histories with a hint on each kind of block, at each place."""
    hint = CacheHint(ttl=ttl)
    blocks: dict[str, ContentBlock] = {
        "text": text("A.", cache=hint),
        "image": ImageBlock(source=DATA, media_type=_PNG, cache=hint),
        "linked image": ImageBlock(source=LINK, media_type=_PNG, cache=hint),
        "document": DocumentBlock(source=PDF, title="a.pdf", cache=hint),
        "document of text": DocumentBlock(source=_TEXT, media_type="text/plain", cache=hint),
        "audio": AudioBlock(source=DATA, media_type="audio/wav", cache=hint),
        "video": VideoBlock(source=DATA, media_type="video/mp4", cache=hint),
    }
    made: dict[str, tuple[Message, ...]] = {}
    for name, block in blocks.items():
        made[f"{name} of a user"] = (user([block, text("Go.")]),)
        made[f"{name} of a user, at the end"] = (user([text("Go."), block]),)
        made[f"{name} in a result"] = (HI, answer(call()), result(1, block))
    everything = user([*blocks.values()])
    made["system"] = (Message(role=Role.SYSTEM, content=(text("Be brief.", cache=hint),)), HI)
    made["system in the middle"] = (
        HI, answer(text("Hi.")), Message(role=Role.SYSTEM, content=(text("B.", cache=hint),)), GO,
    )  # fmt: skip
    made["text of an answer"] = (HI, answer(text("Hi.", cache=hint)), GO)
    made["call"] = (HI, answer(call(cache=hint)), DONE)
    made["call behind text"] = (HI, answer(text("So."), call(cache=hint)), DONE)
    made["calls"] = (HI, answer(call(1, cache=hint), call(2, cache=hint)), DONE, result(2, text("x")))
    made["result"] = (HI, answer(call()), result(1, text("42"), cache=hint))
    made["empty result"] = (HI, answer(call()), result(1, cache=hint))
    made["failed result"] = (HI, answer(call()), result(1, text("no"), cache=hint, is_error=True))
    made["call of thinking"] = (HI, answer(ThinkingBlock(text="Hm.", signature="c2ln"), call(cache=hint)), DONE)
    made["everything"] = (everything, answer(text("Hi.", cache=hint), call(cache=hint)), result(1, *blocks.values()))
    return made


def _tools(name: str, schema: dict[str, Any]) -> Iterator[tuple[str, ToolDefinition]]:
    """Return the schema as a tool of the library, if it takes it, and as a caller's own."""
    with suppress(UnsupportedSchemaError):  # the library takes fewer keywords than callers send
        yield name, base.tool(schema)
    facts: dict[str, Any] = {"name": "look_up", "description": "Look up.", "side_effects": SideEffects.READ}
    yield f"{name}, foreign", WireTool(input_schema=schema, api="elsewhere", **facts)


def _many() -> Iterator[Conversation]:
    """Return counts beyond the limits of services."""
    for count in (21, 65, 129, 200):
        tools = tuple(base.tool(_A, f"tool_{n}") for n in range(count))
        yield Conversation(name=f"count: {count} tools", messages=(HI,), tools=tools)
    for count in (6, 21, 60):
        images = [ImageBlock(source=DATA, media_type=_PNG) for _ in range(count)]
        yield Conversation(name=f"count: {count} images", messages=(user([text("Look."), *images]),))
        papers = [DocumentBlock(source=PDF, title="a.pdf") for _ in range(count)]
        yield Conversation(name=f"count: {count} documents", messages=(user([text("Read."), *papers]),))
        turns = [message for image in images for message in (user([image]), answer(text("Seen.")))]
        yield Conversation(name=f"count: {count} turns with an image", messages=(*turns, GO))
    for length in (65, 129, 257, 513):
        yield Conversation(name=f"length: user_id {length}", messages=(HI,), options={"user_id": "u" * length})
    for count in (5, 17, 100):
        stops = {"stop": [f"stop {n}" for n in range(count)]}
        yield Conversation(name=f"count: {count} stops", messages=(HI,), options=stops)
    for budget in (127, 128, 512, 1023, 1024, 24_576, 24_577, 32_000, 32_768, 32_769, 64_000):
        given = {"thinking_budget": budget, "max_tokens": 100_000}
        yield Conversation(name=f"budget: {budget}", messages=(HI,), options=given)
        yield Conversation(
            name=f"budget in a tool loop: {budget}",
            messages=(HI, answer(call()), DONE), tools=(LOOK_UP,), options={"thinking_budget": budget},
        )  # fmt: skip


def _named() -> Iterator[Conversation]:
    """Return tools with names that are changed, free and forced."""
    names = ("look.up", "look up", "x" * 65, "mcp__" + "y" * 69, "größe", "1st", "a/b:c")
    for name, choice in product(names, (None, "required", "named")):
        tool = WireTool(name=name, description="d", input_schema=_A, api="elsewhere")
        wanted = ToolChoice(name) if choice == "named" else choice
        asked = {"tool_choice": wanted} if wanted is not None else {}
        title = f"tool name: {name[:12]} {len(name)} {choice or 'free'}"
        yield Conversation(name=title, messages=(HI,), tools=(tool, LOOK_UP), options=asked)
        called = answer(ToolUseBlock(id=call().id, name=name, input={"a": "x"}))
        loop = (HI, called, DONE)
        yield Conversation(name=f"{title}, called", messages=loop, tools=(tool, LOOK_UP), options=asked)


def _citing() -> Iterator[Conversation]:
    cited = DocumentBlock(source=PDF, title="a.pdf", cite=True)
    plain = DocumentBlock(source=PDF, title="b.pdf")
    schema = {"response_schema": ANSWERS["bounds"]}
    held = {"both": (cited, cited), "one": (cited, plain), "other": (plain, cited)}
    for (name, blocks), (how, options) in product(held.items(), {"": {}, ", schema": schema}.items()):
        yield Conversation(name=f"cite: {name}{how}", messages=(user([*blocks, text("Q")]),), options=options)
        turns = (user([blocks[0], text("Q")]), answer(text("A")), user([blocks[1], text("Q")]))
        yield Conversation(name=f"cite: {name}, two turns{how}", messages=turns, options=options)
        asked = (user([blocks[0], text("Q")]), answer(call()), result(1, blocks[1]))
        yield Conversation(name=f"cite: {name}, in a result{how}", messages=asked, tools=(LOOK_UP,), options=options)


# Each of these with each of the others.
_PAIRED: dict[str, dict[str, Any]] = {
    "effort": {"effort": "high"},
    "thinking": {"thinking": True},
    "off": {"thinking": False},
    "budget": {"thinking_budget": 2048, "max_tokens": 9000},
    "temperature": {"temperature": 0.3},
    "top_p": {"top_p": 0.4},
    "top_k": {"top_k": 3},
    "stop": {"stop": ["END", " "]},
    "seed": {"seed": 3},
    "stream": {"stream": True},
    "schema": {"response_schema": ANSWERS["bounds"]},
    "some call": {"tool_choice": "required"},
    "this call": {"tool_choice": ToolChoice("look_up")},
    "no call": {"tool_choice": "none"},
    "one call": {"parallel_tool_calls": False},
}


def _pairs() -> Iterator[Conversation]:
    for (one, first), (other, second) in product(_PAIRED.items(), _PAIRED.items()):
        if one < other and not first.keys() & second.keys():
            options = {**first, **second}
            yield Conversation(name=f"pair: {one}, {other}", messages=(HI,), tools=(LOOK_UP,), options=options)
            loop = (HI, answer(call()), DONE)
            yield Conversation(name=f"pair in a loop: {one}, {other}", messages=loop, tools=(LOOK_UP,), options=options)


def _orders() -> Iterator[tuple[str, tuple[Message, ...]]]:
    """Return orders of turns beside those of `base`."""
    one, two = call(1), call(2)
    late = (result(1, text("1")), result(2, text("2")))
    yield "two answers with a call, then both results", (HI, answer(one), answer(two), *late)
    yield "two answers with a call, then both results and words", (HI, answer(one), answer(two), *late, GO)
    yield "results in a strange order", (HI, answer(one), answer(two), late[1], late[0])
    yield "answer first, calls", (answer(text("Hi."), one), DONE, GO)
    yield "answer first, thinks", (answer(ThinkingBlock(text="Hm.", signature="c2ln"), text("Hi.")), GO)
    yield "system between call and result", (HI, answer(one), system("Be brief."), DONE, system("Now."), GO)
    yield "user between call and result", (HI, answer(one), GO, DONE, GO)
    yield "failed result with an image", (
        HI, answer(one), result(1, ImageBlock(source=DATA, media_type=_PNG), is_error=True),
    )  # fmt: skip
    yield "results of three kinds", (
        HI, answer(one, two, call(3)), result(1, is_error=True), result(2, text("x")),
        result(3, DocumentBlock(source=PDF, title="a.pdf")),
    )  # fmt: skip


def _random(seed: int) -> Conversation:
    """Return a conversation of rows of all tables, the same for the same seed."""
    draw = random.Random(seed)
    rows: Sequence[tuple[ContentBlock, ...]] = [*base.ASSISTANT_BLOCKS.values()]
    turns: list[Message] = [system("Be brief.")] if draw.random() < 0.4 else []
    used = False
    number = 0
    for _ in range(draw.randint(1, 6)):
        turns.append(Message(role=Role.USER, content=draw.choice([*base.USER_BLOCKS.values()]) or (text("Go."),)))
        origin = draw.choice([*base.ORIGINS.values(), None])
        if draw.random() < 0.5:
            used = True
            calls = [attrs.evolve(call(number + at), cache=draw.choice([None, CacheHint()])) for at in (1, 2)]
            turns.append(answer(*draw.choice(rows), *calls, origin=origin))
            for at in draw.sample((1, 2), draw.randint(1, 2)):
                blocks = draw.choice([*base.RESULTS.values()])
                turns.append(result(number + at, *blocks, is_error=draw.random() < 0.3))
            number += 2
        else:
            turns.append(answer(*draw.choice(rows), origin=origin))
    if draw.random() < 0.8:
        turns.append(GO)
    options = {**draw.choice([*base.OPTIONS.values()]), **draw.choice([{}, *base.RESPONSES.values()])}
    tools: tuple[ToolDefinition, ...] = ()
    if used or draw.random() < 0.5:
        _, tool = draw.choice([*_tools("", draw.choice([*FOREIGN.values()]))])
        tools = (tool, base.tool(_A, "other"))
        options |= draw.choice([{}, *base.TOOL_OPTIONS.values()])
    return Conversation(name=f"random: {seed}", messages=tuple(turns), tools=tools, options=options)


def wider() -> Iterator[Conversation]:
    """Yield all of them; names are different."""
    for ttl in _TTL:
        for name, messages in _hinted(ttl).items():
            calls = any(message.tool_calls for message in messages)
            tools = (attrs.evolve(LOOK_UP, cache=CacheHint(ttl=ttl)),) if name == "everything" else (LOOK_UP,)
            yield Conversation(name=f"cache {ttl}: {name}", messages=messages, tools=tools if calls else ())
    for title, schema in FOREIGN.items():
        for name, tool in _tools(title, schema):
            yield Conversation(name=f"foreign schema: {name}", messages=(HI,), tools=(tool,))
            forced = {"tool_choice": ToolChoice("look_up")}
            yield Conversation(name=f"foreign schema, forced: {name}", messages=(HI,), tools=(tool,), options=forced)
    for name, schema in ANSWERS.items():
        for how, options in {"": {}, ", stream": {"stream": True}, ", effort": {"effort": "low"}}.items():
            asked = {"response_schema": schema, **options}
            yield Conversation(name=f"answer schema: {name}{how}", messages=(HI,), options=asked)
        beside = {"response_schema": schema}
        yield Conversation(name=f"answer schema: {name}, tool", messages=(HI,), tools=(LOOK_UP,), options=beside)
    for name, messages in _orders():
        yield Conversation(name=f"order: {name}", messages=messages, tools=(LOOK_UP,))
        yield Conversation(name=f"order: {name}, no tool offered", messages=messages)
        thinking = {"thinking": True, "max_tokens": 9000}
        yield Conversation(name=f"order: {name}, thinking", messages=messages, tools=(LOOK_UP,), options=thinking)
    yield from _many()
    yield from _named()
    yield from _citing()
    yield from _pairs()
    yield from (_random(seed) for seed in range(RANDOM))
