"""Conversations that a service may refuse: histories, tools and options, each a row of a table, and their products.

Nothing here is generated at random: a name says which rows a conversation is made of.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import attrs

from interlingua.types import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ErrorInfo,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    MessageStatus,
    OpaqueBlock,
    Origin,
    Provenance,
    RedactedThinkingBlock,
    Role,
    SideEffects,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolChoice,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    Usage,
    VideoBlock,
    system,
    user,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # 1x1 PNG
DATA = MediaSource(kind="base64", data=PIXEL)
PDF = MediaSource(kind="base64", data=base64.b64encode(b"%PDF-1.4 a page").decode())
LINK = MediaSource(kind="url", data="https://example.com/a.png")

CLAUDE = Origin("anthropic", "messages", "claude-sonnet-4-5")
OPUS = Origin("anthropic", "messages", "claude-opus-4-1")
GPT = Origin("openai", "responses", "gpt-5.2")
CHAT = Origin("openai", "chat", "gpt-4.1")
GEMINI = Origin("google", "generate", "gemini-3-pro-preview")
DEEPSEEK = Origin("deepseek", "chat", "deepseek-reasoner")
ORIGINS = {"claude": CLAUDE, "gpt": GPT, "gemini": GEMINI, "deepseek": DEEPSEEK}


@attrs.frozen(kw_only=True)
class Conversation:
    """What a caller asks for.

    Attributes:
        name: of the rows it is made of.
        messages: the history.
        tools: offered.
        options: of the request.
    """

    name: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: dict[str, Any] = attrs.field(factory=dict)


def tool(schema: dict[str, Any], name: str = "look_up", **more: Any) -> ToolDefinition:
    """Return a tool with this input schema."""
    return ToolDefinition(
        name=name, description="Look something up.", input_schema=schema, side_effects=SideEffects.READ, **more
    )


LOOK_UP = tool({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})


def call(number: int = 1, **facts: Any) -> ToolUseBlock:
    """Return a call of `look_up`."""
    given: dict[str, Any] = {"id": f"tu_01KAKDPZ000000000000{number:06d}", "name": "look_up", "input": {"q": "a"}}
    return ToolUseBlock(**{**given, **facts})


def answer(*blocks: ContentBlock, origin: Origin | None = CLAUDE, **facts: Any) -> Message:
    """Return an assistant message of an origin; None: written by hand."""
    if origin is None:
        return Message(role=Role.ASSISTANT, content=blocks)
    calls = any(isinstance(block, ToolUseBlock) for block in blocks)
    given: dict[str, Any] = {
        "model": f"{origin.provider}:{origin.model}",
        "provider": origin.provider,
        "api": origin.api,
        "usage": Usage(),
        "stop_reason": StopReason.TOOL_USE if calls else StopReason.END_TURN,
        "provenance": Provenance.GENERATED,
    }
    return Message(role=Role.ASSISTANT, content=blocks, metadata=MessageMetadata(**{**given, **facts}))


def result(number: int = 1, *blocks: ContentBlock, **facts: Any) -> Message:
    """Return the result of a call."""
    block = ToolResultBlock(tool_use_id=call(number).id, content=blocks, **facts)
    return Message(role=Role.TOOL, content=(block,), metadata=MessageMetadata(parent_tool_use_id=block.tool_use_id))


def text(words: str, **facts: Any) -> TextBlock:
    """Return a text."""
    return TextBlock(text=words, **facts)


HI = user("Hello.")
GO = user("Go on.")
DONE = result(1, text("42"))
MANY = tuple(range(1, 6))

# Blocks that a service made of its own tools, as it gives them.
SEARCHED = {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "a"}}
SEARCHED_GPT = {
    "type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "a"},
}  # fmt: skip
CITED = {
    "type": "web_search_result_location", "url": "https://example.com", "title": "A", "encrypted_index": "c2Vj",
    "cited_text": "a",
}  # fmt: skip

# Turns of a user: what is sent beside or instead of words.
USER_BLOCKS: dict[str, tuple[ContentBlock, ...]] = {
    "empty text": (text(""),),
    "white space": (text(" \n\t"),),
    "no block": (),
    "words and white space": (text("Look."), text(" ")),
    "image": (text("Look."), ImageBlock(source=DATA, media_type="image/png")),
    "image alone": (ImageBlock(source=DATA, media_type="image/png"),),
    "image without a type": (text("Look."), ImageBlock(source=DATA)),
    "image of a rare type": (text("Look."), ImageBlock(source=DATA, media_type="image/tiff")),
    "image with detail": (text("Look."), ImageBlock(source=DATA, media_type="image/png", detail="high")),
    "image with odd detail": (text("Look."), ImageBlock(source=DATA, media_type="image/png", detail="ultra")),
    "linked image": (text("Look."), ImageBlock(source=LINK, media_type="image/png")),
    "linked image without a type": (ImageBlock(source=LINK),),
    "uploaded image": (text("Look."), ImageBlock(source=MediaSource(kind="file_id", data="file-123"))),
    "audio alone": (AudioBlock(source=DATA, media_type="audio/mpeg"),),
    "audio wav": (text("Listen."), AudioBlock(source=DATA, media_type="audio/wav")),
    "audio of a rare type": (text("Listen."), AudioBlock(source=DATA, media_type="audio/x-odd", transcript="Hum.")),
    "video alone": (VideoBlock(source=DATA),),
    "video and words": (text("Watch."), VideoBlock(source=DATA, media_type="video/webm")),
    "document": (text("Read."), DocumentBlock(source=PDF, title="a.pdf")),
    "document alone": (DocumentBlock(source=PDF),),
    "document without a title": (text("Read."), DocumentBlock(source=PDF)),
    "document of text": (
        text("Read."),
        DocumentBlock(
            source=MediaSource(kind="base64", data="SGVsbG8="), media_type="text/plain", title="a.txt", context="c"
        ),
    ),
    "document to cite": (text("Read."), DocumentBlock(source=PDF, title="a.pdf", cite=True)),
    "document of office": (text("Read."), DocumentBlock(source=PDF, media_type="application/msword", title="a.doc")),
    "linked document": (
        text("Read."),
        DocumentBlock(source=MediaSource(kind="url", data="https://example.com/a.pdf"), title="a.pdf"),
    ),
    "uploaded document": (text("Read."), DocumentBlock(source=MediaSource(kind="file_id", data="file-123"))),
    "many cache hints": tuple(text(f"Part {n}.", cache=CacheHint()) for n in range(7)),
    "hour after minutes": (text("A.", cache=CacheHint(ttl="5m")), text("B.", cache=CacheHint(ttl="1h"))),
    "cache hint on white space": (text("A."), text(" ", cache=CacheHint())),
    "unknown block": (text("Look."), UnknownBlock(raw={"type": "hologram", "x": 1})),
    "unknown block alone": (UnknownBlock(raw={"type": "hologram", "x": 1}),),
    "control characters": (text("A\x00B\x1b[0m\u2028\ufeff"),),
    "surrogate pair as text": (text("\U0001f600"),),
}

# Turns of an assistant between two of a user, by what is in them.
ASSISTANT_BLOCKS: dict[str, tuple[ContentBlock, ...]] = {
    "empty": (),
    "empty text": (text(""),),
    "white space": (text(" \n"),),
    "trailing white space": (text("Said. \n"),),
    "unsigned thinking": (ThinkingBlock(text="Hm."), text("Said.")),
    "signed thinking": (ThinkingBlock(text="Hm.", signature="c2lnbmVk"), text("Said.")),
    "thinking alone": (ThinkingBlock(text="Hm.", signature="c2lnbmVk"),),
    "unsigned thinking alone": (ThinkingBlock(text="Hm."),),
    "empty thinking": (ThinkingBlock(text="", signature="c2lnbmVk"), text("Said.")),
    "redacted thinking": (RedactedThinkingBlock(data="c2VjcmV0"), text("Said.")),
    "redacted alone": (RedactedThinkingBlock(data="c2VjcmV0"),),
    "opaque": (OpaqueBlock(provider="anthropic", kind="server_tool_use", data=SEARCHED), text("Said.")),
    "opaque alone": (OpaqueBlock(provider="openai", kind="web_search_call", data=SEARCHED_GPT),),
    "opaque of nobody": (OpaqueBlock(provider="elsewhere", kind="odd", data={"type": "odd"}), text("Said.")),
    "citations": (text("Said.", citations=(CITED,)),),
    "text signature": (text("Said.", signature="c2lnbmVk"),),
    "image": (text("Drawn."), ImageBlock(source=DATA, media_type="image/png")),
    "image alone": (ImageBlock(source=DATA, media_type="image/png"),),
    "audio": (AudioBlock(source=DATA, media_type="audio/wav", transcript="Said."),),
    "thinking after text": (text("Said."), ThinkingBlock(text="Hm.", signature="c2lnbmVk")),
    "unknown block": (UnknownBlock(raw={"type": "hologram", "x": 1}), text("Said.")),
}

# Calls of an assistant, each answered, as a tool loop stands when it is handed to another model.
CALLS: dict[str, tuple[ContentBlock, ...]] = {
    "call alone": (call(),),
    "words and call": (text("I look."), call()),
    "thinking and call": (ThinkingBlock(text="Hm.", signature="c2lnbmVk"), call()),
    "unsigned thinking and call": (ThinkingBlock(text="Hm."), call()),
    "redacted thinking and call": (RedactedThinkingBlock(data="c2VjcmV0"), call()),
    "signed call": (call(signature="c2lnbmVk", provider_id="call_abc"),),
    "call with an odd id": (call(provider_id="functions.look_up:0|fc_1"),),
    "call with a long id": (call(provider_id="call_" + "x" * 90),),
    "call without input": (call(input={}),),
    "call of malformed input": (call(input={}, raw_input='{"q": "a', parse_error="unterminated text"),),
    "call of a list": (call(input={}, raw_input="[1]", parse_error="no object"),),
    "call of a nameless tool": (call(name=""),),
    "call of an odd name": (call(name="mcp.server/look up!"),),
    "call of a long name": (call(name="look_up_" + "x" * 120),),
    "call of a kind": (call(kind="custom", input={"input": "x"}),),
    "cached call": (call(cache=CacheHint()),),
    "white space and call": (text(" "), call()),
    "text after the call": (call(), text("I looked.")),
}

# Results of one call.
RESULTS: dict[str, tuple[ContentBlock, ...]] = {
    "nothing": (),
    "empty text": (text(""),),
    "white space": (text(" "),),
    "two texts": (text("4"), text("2")),
    "image": (ImageBlock(source=DATA, media_type="image/png"),),
    "image and words": (text("It shows:"), ImageBlock(source=DATA, media_type="image/png")),
    "image without a type": (ImageBlock(source=DATA),),
    "linked image": (ImageBlock(source=LINK, media_type="image/png"),),
    "audio": (AudioBlock(source=DATA),),
    "document": (DocumentBlock(source=PDF, title="a.pdf"),),
    "document without a title": (DocumentBlock(source=PDF),),
    "document of text": (
        DocumentBlock(source=MediaSource(kind="base64", data="SGVsbG8="), media_type="text/plain", title="a.txt"),
    ),
    "video": (VideoBlock(source=DATA),),
    "cached": (text("42", cache=CacheHint()),),
    "unknown block": (UnknownBlock(raw={"type": "hologram"}),),
}


def _ended(status: MessageStatus, *blocks: ContentBlock) -> Message:
    error = ErrorInfo(type="OverloadedError", message="busy") if status is MessageStatus.ERROR else None
    return answer(*blocks, status=status, stop_reason=None, error=error)


def _histories() -> Iterator[tuple[str, tuple[Message, ...]]]:
    """Return the order of turns: roles, unanswered and foreign calls, turns that did not end well."""
    yield "words", (HI,)
    yield "system", (system("Be brief."), HI)
    yield "empty system", (system(""), HI)
    yield "white space system", (system(" \n"), HI)
    yield "system alone", (system("Be brief."),)
    yield "two systems", (system("Be brief."), system("Be kind."), HI)
    yield "system in the middle", (HI, answer(text("Hi.")), system("Be brief."), GO)
    yield "system at the end", (HI, answer(text("Hi.")), system("Be brief."))
    yield "system in a tool loop", (HI, answer(call()), system("Be brief."), DONE)
    yield "cached system", (
        Message(role=Role.SYSTEM, content=(text("Be brief.", cache=CacheHint(ttl="1h")),)), HI,
    )  # fmt: skip
    yield "two users", (HI, GO)
    yield "two assistants", (HI, answer(text("Hi.")), answer(text("And?")), GO)
    yield "assistant first", (answer(text("Hi.")), HI)
    yield "assistant last", (HI, answer(text("Hi.")))
    yield "assistant last with white space", (HI, answer(text("Hi. \n")))
    yield "assistant last thinks", (HI, answer(ThinkingBlock(text="Hm.", signature="c2lnbmVk")))
    yield "assistant last calls", (HI, answer(call()))
    yield "assistant alone", (answer(text("Hi.")),)
    yield "white space at the end", (HI, answer(text("Hi.")), user(" "))
    yield "unsupported at the end", (HI, answer(text("Hi.")), user([VideoBlock(source=DATA)]))
    yield "unknown at the end", (HI, answer(text("Hi.")), user([UnknownBlock(raw={"type": "hologram"})]))
    yield "unanswered call", (HI, answer(call()), GO)
    yield "half answered calls", (HI, answer(call(1), call(2)), DONE, GO)
    yield "late result", (HI, answer(call()), GO, DONE)
    yield "results in the other order", (HI, answer(call(1), call(2)), result(2, text("b")), result(1, text("a")))
    yield "orphan result", (HI, DONE, GO)
    yield "orphan result first", (DONE,)
    yield "two results of a call", (HI, answer(call()), DONE, result(1, text("43")))
    yield "duplicate call ids", (HI, answer(call(), call()), DONE)
    yield "call ids again", (HI, answer(call()), DONE, answer(text("So.")), GO, answer(call()), DONE)
    yield "parallel calls", (HI, answer(*(call(n) for n in MANY)), *(result(n, text("x")) for n in MANY))
    yield (
        "parallel results in one message",
        (
            HI,
            answer(call(1), call(2)),
            Message(
                role=Role.TOOL,
                content=tuple(ToolResultBlock(tool_use_id=call(n).id, content=(text("x"),)) for n in (1, 2)),
                metadata=MessageMetadata(parent_tool_use_id=call(1).id),
            ),
        ),
    )
    yield "failed result", (HI, answer(call()), result(1, text("no such file"), is_error=True))
    yield "failed result without words", (HI, answer(call()), result(1, is_error=True))
    yield "words after the result", (HI, answer(call()), DONE, GO)
    yield "image after the result", (
        HI, answer(call()), DONE, user([text("Look."), ImageBlock(source=DATA, media_type="image/png")]),
    )  # fmt: skip
    yield "long tool loop", (HI, *(m for n in MANY for m in (answer(call(n)), result(n, text("x")))))
    yield "cancelled", (HI, _ended(MessageStatus.CANCELLED, text("Hi, I")), GO)
    yield "cancelled in a call", (HI, _ended(MessageStatus.CANCELLED, text("I"), call(parse_error="cut")), GO)
    yield "cancelled before a word", (HI, _ended(MessageStatus.CANCELLED), GO)
    yield "cancelled in thought", (HI, _ended(MessageStatus.CANCELLED, ThinkingBlock(text="Hm")), GO)
    yield "partial", (HI, _ended(MessageStatus.PARTIAL, text("Hi, I")), GO)
    yield "partial at the end", (HI, _ended(MessageStatus.PARTIAL, text("Hi, I")))
    yield "failed", (HI, _ended(MessageStatus.ERROR, text("Hi, I")), GO)
    yield "failed before a word", (HI, _ended(MessageStatus.ERROR), GO)
    yield "failed at the end", (HI, _ended(MessageStatus.ERROR))
    yield "refused", (HI, answer(text("No."), stop_reason=StopReason.REFUSAL), GO)
    yield "paused", (HI, answer(text("I search."), stop_reason=StopReason.PAUSE_TURN))
    yield "by hand", (HI, answer(text("Hi."), call(), origin=None), DONE)


# Input schemas of the tool that is offered.
_NAMED = {"type": "object", "properties": {"q": {"type": "string"}}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "no properties": {"type": "object"},
    "empty properties": {"type": "object", "properties": {}},
    "array without items": {"type": "object", "properties": {"a": {"type": "array"}}},
    "deep array without items": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "array"}}}}},
    },
    "deep object without properties": {"type": "object", "properties": {"a": {"type": "object"}}},
    "property of any kind": {"type": "object", "properties": {"a": {}}},
    "described property of any kind": {"type": "object", "properties": {"a": {"description": "anything"}}},
    "one enum": {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}},
    "empty text in an enum": {"type": "object", "properties": {"a": {"type": "string", "enum": ["", "x"]}}},
    "enum of numbers": {"type": "object", "properties": {"a": {"type": "integer", "enum": [1, 2]}}},
    "null": {"type": "object", "properties": {"a": {"type": "null"}}},
    "requires all": {**_NAMED, "required": ["q"], "additionalProperties": False},
    "requires nothing": {**_NAMED, "required": []},
    "open": {**_NAMED, "additionalProperties": True},
    "format": {"type": "object", "properties": {"a": {"type": "string", "format": "uuid"}}},
    "deep": {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {"type": "object", "properties": {}}}}},
    },
    "odd property names": {"type": "object", "properties": {"a b/c": {"type": "string"}, "$x": {"type": "number"}}},
}

# Options, one row each; with a tool where they speak of tools.
OPTIONS: dict[str, dict[str, Any]] = {
    **{f"effort {word}": {"effort": word} for word in ("none", "minimal", "low", "medium", "high", "xhigh", "max")},
    "thinking": {"thinking": True},
    "no thinking": {"thinking": False},
    "budget 1": {"thinking_budget": 1},
    "budget 0": {"thinking_budget": 0},
    "budget 200000": {"thinking_budget": 200_000},
    "budget above the limit": {"thinking_budget": 4096, "max_tokens": 1024},
    "thinking and temperature": {"thinking": True, "temperature": 0.2},
    "thinking and top_k": {"thinking": True, "top_k": 5, "top_p": 0.5},
    "effort and thinking off": {"effort": "high", "thinking": False},
    "sampling and thinking off": {"thinking": False, "temperature": 0.3, "top_p": 0.4},
    "budget and thinking off": {"thinking": False, "thinking_budget": 2048, "max_tokens": 9000},
    "stop": {"stop": "END"},
    "six stops": {"stop": ["a", "b", "c", "d", "e", "f"]},
    "twenty stops": {"stop": [f"stop {n}" for n in range(20)]},
    "white space stop": {"stop": ["\n\n", " "]},
    "empty stop": {"stop": [""]},
    "long stop": {"stop": ["x" * 500]},
    "temperature 0": {"temperature": 0},
    "temperature 1.5": {"temperature": 1.5},
    "temperature 2": {"temperature": 2.0},
    "temperature and top_p": {"temperature": 0.5, "top_p": 0.9},
    "top_p 0": {"top_p": 0},
    "top_k": {"top_k": 40},
    "top_k 0": {"top_k": 0},
    "seed": {"seed": 7},
    "large seed": {"seed": 2**40},
    "negative seed": {"seed": -1},
    "max_tokens 1": {"max_tokens": 1},
    "max_tokens 15": {"max_tokens": 15},
    "max_tokens 10 million": {"max_tokens": 10_000_000},
    "user_id": {"user_id": "u-1"},
    "long user_id": {"user_id": "u" * 600},
    "stream": {"stream": True},
}

TOOL_OPTIONS: dict[str, dict[str, Any]] = {
    "auto": {"tool_choice": "auto"},
    "no call": {"tool_choice": "none"},
    "some call": {"tool_choice": "required"},
    "this call": {"tool_choice": ToolChoice("look_up")},
    "some call and thinking": {"tool_choice": "required", "thinking": True},
    "this call and effort": {"tool_choice": ToolChoice("look_up"), "effort": "high"},
    "one call": {"parallel_tool_calls": False},
    "one call and none": {"parallel_tool_calls": False, "tool_choice": "none"},
    "many calls": {"parallel_tool_calls": True},
}

_ANSWER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
RESPONSES: dict[str, dict[str, Any]] = {
    "object": {"response_schema": _ANSWER},
    "open object": {"response_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    "object without properties": {"response_schema": {"type": "object"}},
    "array": {"response_schema": {"type": "array", "items": {"type": "string"}}},
    "text": {"response_schema": {"type": "string"}},
    "any": {"response_schema": {}},
    "array without items": {"response_schema": {"type": "object", "properties": {"a": {"type": "array"}}}},
    "choice": {"response_schema": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
    "reference": {
        "response_schema": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"n": {}}}}}
    },
    "odd name": {"response_schema": _ANSWER, "response_name": "an answer: yes/no"},
    "long name": {"response_schema": _ANSWER, "response_name": "x" * 100},
    "empty name": {"response_schema": _ANSWER, "response_name": ""},
    "title and format": {"response_schema": {**_ANSWER, "title": "Answer", "$schema": "http://json-schema.org/x"}},
    "with thinking": {"response_schema": _ANSWER, "thinking": True},
}

_TWO_TOOLS: dict[str, Sequence[ToolDefinition]] = {
    "two tools": (LOOK_UP, tool({"type": "object", "properties": {}}, "other")),
    "cached tool": (attrs.evolve(LOOK_UP, cache=CacheHint(ttl="1h")),),
    "long tool name": (tool({"type": "object", "properties": {}}, "look_up_" + "x" * 50),),
    "tool without a description": (attrs.evolve(LOOK_UP, description=""),),
}
_LOOP_OPTIONS: dict[str, dict[str, Any]] = {"": {}, "effort": {"effort": "high"}, "thinking": {"thinking": True}}


def conversations() -> tuple[Conversation, ...]:
    """Return all of them; names are different."""
    return tuple(_made())


def _made() -> Iterator[Conversation]:
    for name, messages in _histories():
        calls = any(isinstance(block, ToolUseBlock | ToolResultBlock) for m in messages for block in m.content)
        yield Conversation(name=f"history: {name}", messages=messages, tools=(LOOK_UP,) if calls else ())
        if calls:
            yield Conversation(name=f"history: {name}, no tool offered", messages=messages)
    for name, blocks in USER_BLOCKS.items():
        turn = Message(role=Role.USER, content=blocks)
        yield Conversation(name=f"user: {name}", messages=(turn,))
        yield Conversation(name=f"user: {name}, later", messages=(HI, answer(text("Hi.")), turn))
    for (name, blocks), (whose, origin) in product(ASSISTANT_BLOCKS.items(), ORIGINS.items()):
        yield Conversation(name=f"{whose}: {name}", messages=(HI, answer(*blocks, origin=origin), GO))
    for (name, blocks), (whose, origin), (how, options) in product(
        CALLS.items(), {**ORIGINS, "opus": OPUS, "chat": CHAT}.items(), _LOOP_OPTIONS.items()
    ):
        yield Conversation(
            name=f"{whose} loop: {name}{how and ', '}{how}",
            messages=(HI, answer(*blocks, origin=origin), DONE),
            tools=(LOOK_UP,),
            options=options,
        )
    for name, blocks in RESULTS.items():
        yield Conversation(name=f"result: {name}", messages=(HI, answer(call()), result(1, *blocks)), tools=(LOOK_UP,))
        failed = result(1, *blocks, is_error=True)
        yield Conversation(name=f"failed result: {name}", messages=(HI, answer(call()), failed, GO), tools=(LOOK_UP,))
    for name, schema in SCHEMAS.items():
        yield Conversation(name=f"schema: {name}", messages=(HI,), tools=(tool(schema),))
    for name, tools in _TWO_TOOLS.items():
        yield Conversation(name=f"tools: {name}", messages=(HI,), tools=tuple(tools))
    for name, options in {**OPTIONS, **{f"answer: {name}": row for name, row in RESPONSES.items()}}.items():
        yield Conversation(name=f"option: {name}", messages=(HI,), options=options)
    for name, options in TOOL_OPTIONS.items():
        yield Conversation(name=f"tool option: {name}", messages=(HI,), tools=(LOOK_UP,), options=options)
    for (whose, origin), (name, options) in product(ORIGINS.items(), {**OPTIONS, **TOOL_OPTIONS, **RESPONSES}.items()):
        loop = (HI, answer(ThinkingBlock(text="Hm.", signature="c2lnbmVk"), call(), origin=origin), DONE)
        yield Conversation(name=f"{whose} loop, option: {name}", messages=loop, tools=(LOOK_UP,), options=options)
