"""Fixed conversations that use two and more of everything, with strings that a careless plugin changes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from interlingua.types import (
    AudioBlock,
    CacheHint,
    ChangeBlock,
    ContentBlock,
    DocumentBlock,
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
)
from interlingua_contract.facts import SCHEMA
from interlingua_contract.scenes import FOREIGN, READ

THEN = datetime(2026, 1, 1, tzinfo=UTC)
_HOUR, _SHORT = CacheHint(ttl="1h"), CacheHint(ttl="5m")

SEARCH = ToolDefinition(
    name="search_2",
    description=" Searches e\u0301verything.\r\nTwice. ",
    input_schema={
        "type": "object",
        "properties": {
            "q": {"type": "string", "description": " Words to find. ", "format": "date-time"},
            "kinds": {"type": "array", "items": {"type": "string", "enum": ["Alpha", "beta", "gamma7"]}},
            "where": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "deep": {"type": "boolean", "description": "Search deeper."},
            "share": {"type": "number"},
        },
        "required": ["q", "kinds"],
        "additionalProperties": False,
    },
    side_effects=SideEffects.WRITE,
)
TOOLS = (READ, SEARCH)
_PROSE = " ".join(f"Sentence {at} says {at * at}." for at in range(60))
_DEEP: Mapping[str, Any] = {
    "type": "object",
    "properties": {f"field_{at}": {"type": "string", "description": f"Field {at}."} for at in range(40)}
    | {"a": {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "object", "properties": {
        "c": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}}}}}}},
}  # fmt: skip
_ODD_SCHEMAS: tuple[Mapping[str, Any], ...] = (
    {"type": "object", "properties": {}, "required": []},
    {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    {"type": "object", "properties": {"Path7": {"type": "string", "description": ""}}, "required": []},
    {"type": "object", "properties": {"L7": {"type": "array", "items": {"type": "object", "properties": {}}}}},
    {"type": "object", "required": [], "properties": {"Z7": {"type": "string"}, "A7": {"type": "integer"}}},
)
"""Schemas with empty parts, which adapters leave out or complete."""

_CLOSED = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}

OTHER_TOOLS = {
    "cached tools": (
        attrs.evolve(READ, cache=_HOUR),
        SEARCH,
        attrs.evolve(READ, name="read_more", cache=_SHORT),
        attrs.evolve(READ, name="read_all", cache=CacheHint()),
    ),
    "many tools": tuple(
        attrs.evolve(
            READ, name=f"a_tool_with_a_name_of_many_words_{at}", description=f"{at} {_PROSE}", input_schema=_DEEP
        )
        for at in range(24)
    ),
    "a tool of another": (attrs.evolve(READ, name="closed_7", input_schema=_CLOSED), SEARCH),
    "deferred tools": (READ, attrs.evolve(SEARCH, deferred=True)),
    "tools with other words": (
        attrs.evolve(READ, name="zz_first", description="", input_schema={"type": "object", "properties": {}}),
        attrs.evolve(READ, name="aa_last_7", description="Last.", input_schema={"type": "object"}),
        attrs.evolve(SEARCH, name="read_file", description="Read again."),
    ),
    "tools with odd schemas": tuple(
        attrs.evolve(READ, name=f"odd_{at}", input_schema=schema) for at, schema in enumerate(_ODD_SCHEMAS)
    ),
}
"""Tools by scene."""

_ARGUMENTS: tuple[Mapping[str, Any], ...] = (
    {"path": " a b ", "z": 0, "m": False, "e": "", "l": [None, {}], "w": 1.0, "i": 9007199254740993},
    {"q": "e\u0301\r\n7", "kinds": ["beta", "Alpha"], "share": 0.5, "n": None},
    {"path": "", "\u05d0": "\u202eright"},
    {},
)


def _words(name: str) -> str:
    """Return a string that differs from its trimmed, composed and normalised forms."""
    return f" Say {name}7,\r\ne\u0301 \u05d0 <b>\x1b\u2028&\U0001f701 "


class _Maker:
    """Writes messages with fixed ids and times, and numbers what is in them."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self._messages = 0
        self._parts = 0

    def next(self, letter: str) -> str:
        self._parts += 1
        return f"{letter}{self._parts}"

    def text(self, **facts: Any) -> TextBlock:
        return TextBlock(text=_words(self.next("t")), **facts)

    def message(self, role: Role, *content: ContentBlock, metadata: MessageMetadata | None = None) -> Message:
        self._messages += 1
        return Message(
            id=f"01KDVBKF00{self._messages:016d}",
            session_id="contract",
            role=role,
            content=content,
            metadata=metadata or MessageMetadata(),
            created_at=THEN + timedelta(seconds=self._messages),
        )

    def system(self, *content: ContentBlock) -> Message:
        return self.message(Role.SYSTEM, *(content or (self.text(),)))

    def user(self, *content: ContentBlock) -> Message:
        return self.message(Role.USER, *(content or (self.text(),)))

    def answer(
        self,
        *content: ContentBlock,
        origin: Origin | None = None,
        status: MessageStatus = MessageStatus.COMPLETE,
        stop: StopReason | None = None,
        **facts: Any,
    ) -> Message:
        origin = origin or self.origin
        calls = any(isinstance(block, ToolUseBlock) for block in content)
        whole = status is MessageStatus.COMPLETE
        metadata = MessageMetadata(
            model=f"{origin.provider}:{origin.model}",
            provider=origin.provider,
            api=origin.api,
            status=status,
            stop_reason=(stop or (StopReason.TOOL_USE if calls else StopReason.END_TURN)) if whole else None,
            provenance=Provenance.GENERATED,
            **({"usage": Usage()} | facts),
        )
        return self.message(Role.ASSISTANT, *content, metadata=metadata)

    def call(self, name: str = READ.name, **facts: Any) -> ToolUseBlock:
        number = self._parts
        made = f"tu_01KDVBKF00{number:016d}"
        issued = self.next("Call_")
        return ToolUseBlock(
            id=made, name=name, provider_id=issued, **({"input": _ARGUMENTS[number % len(_ARGUMENTS)]} | facts)
        )

    def result(
        self, call: ToolUseBlock, *content: ContentBlock, failed: bool = False, cache: CacheHint | None = None
    ) -> Message:
        given = content or (self.text(),)
        block = ToolResultBlock(tool_use_id=call.id, content=given, is_error=failed, tool_name=call.name, cache=cache)
        return self.message(Role.TOOL, block, metadata=MessageMetadata(parent_tool_use_id=call.id))

    def source(self, head: bytes = b"") -> MediaSource:
        return MediaSource(kind="base64", data=base64.b64encode(head + self.next("data").encode()).decode())

    def picture(self, media_type: str = "image/png", **facts: Any) -> ImageBlock:
        return ImageBlock(source=self.source(b"\x89PNG\r\n\x1a\n"), media_type=media_type, **facts)

    def document(self, media_type: str = "application/pdf", **facts: Any) -> DocumentBlock:
        return DocumentBlock(
            source=self.source(b"%PDF-1.4\n"), media_type=media_type, title=self.next("File_"), **facts
        )

    def link(self) -> MediaSource:
        return MediaSource(kind="url", data=f"https://example.com/{self.next('Pic_')}.png?A=b&c=%20")

    def thought(self, **facts: Any) -> ThinkingBlock:
        return ThinkingBlock(text=_words(self.next("h")), **({"signature": self.next("Sig7_")} | facts))

    def cited(self) -> TextBlock:
        first, second = 3 * self._parts, 5 * self._parts
        where = {"cited_text": _words(self.next("c")), "document_index": 1, "document_title": self.next("Book_")}
        page = {
            "url": f"https://example.com/{self.next('Page_')}",
            "title": self.next("Title_"),
            "cited_text": " Two7 ",
        }
        return self.text(
            citations=(
                {"type": "char_location", **where, "start_char_index": first + 1, "end_char_index": second + 9},
                {"type": "char_location", **where, "start_char_index": first + 2, "end_char_index": second + 8},
                {"type": "url_citation", **page, "start_index": 1, "end_index": 4},
                {"type": "contract", "cited_text": self.next("Cited7_")},
            )
        )


def _said(make: _Maker) -> list[Message]:
    return [
        make.system(make.text(), make.text()), make.system(), make.user(make.text(), make.text()), make.user(),
        make.answer(make.text(), make.text()), make.system(), make.user(), make.answer(make.text()), make.user(),
    ]  # fmt: skip


def _seen(make: _Maker) -> list[Message]:
    return [
        make.user(make.picture(), make.text(), make.picture("image/jpeg", detail="high"), make.text()),
        make.answer(make.text()),
        make.user(make.picture("image/webp", detail="low"), make.picture("image/gif"), make.text()),
    ]


def _linked(make: _Maker) -> list[Message]:
    first = ImageBlock(source=make.link(), media_type="image/png", detail="auto")
    second = ImageBlock(source=make.link(), media_type="image/jpeg")
    return [make.user(make.text(), first, make.picture(), second)]


def _heard(make: _Maker) -> list[Message]:
    sounds = [AudioBlock(source=make.source(), media_type=f"audio/{kind}") for kind in ("wav", "mpeg", "wav")]
    return [make.user(make.text(), *sounds), make.answer(make.text()), make.user(make.text(), *sounds[:1])]


def _watched(make: _Maker) -> list[Message]:
    films = [VideoBlock(source=make.source(), media_type=f"video/{kind}") for kind in ("mp4", "webm")]
    return [make.user(make.text(), *films), make.answer(make.text()), make.user(make.text(), *films[:1])]


def _attached(make: _Maker) -> list[Message]:
    notes = make.document("text/plain", context=_words("of7"))
    return [
        make.user(make.document(), make.text(), make.document(), notes),
        make.answer(make.text()),
        make.user(make.document("text/plain"), make.document(context=" Of today7 "), make.text()),
    ]


def _called(make: _Maker) -> list[Message]:
    first, second, third = make.call(), make.call(SEARCH.name), make.call()
    alone = make.call(SEARCH.name)
    return [
        make.system(),
        make.user(),
        make.answer(make.text(), first, second, third),
        make.result(third),
        make.result(first, make.text(), make.text(), failed=True),
        make.result(second),
        make.answer(alone),
        make.result(alone, TextBlock(text="")),
        make.answer(make.text()),
        make.user(),
    ]


def _called_by_hand(make: _Maker) -> list[Message]:
    first, second = (attrs.evolve(make.call(), provider_id=None) for _ in range(2))
    turn = make.message(Role.ASSISTANT, make.text(), first, second)
    return [make.user(), turn, make.result(first), make.result(second, failed=True), make.user()]


def _repaired(make: _Maker) -> list[Message]:
    lost, broken = make.call(), make.call(input={}, raw_input='{"path": "a.t', parse_error="arguments are not JSON")
    orphan = make.call()
    return [
        make.user(),
        make.answer(make.text(), lost, broken),
        make.result(broken),
        make.user(),
        make.answer(make.text(), status=MessageStatus.PARTIAL),
        make.result(orphan),
        make.user(),
        make.user(),
    ]


def _shown(make: _Maker) -> list[Message]:
    first, second = make.call(), make.call()
    return [
        make.user(),
        make.answer(first, second),
        make.result(first, make.text(), make.picture(), make.picture("image/jpeg"), make.document()),
        make.result(second, make.document("text/plain"), make.text(), make.picture(), failed=True),
    ]


def _played(make: _Maker) -> list[Message]:
    first, second = make.call(), make.call()
    sounds = [AudioBlock(source=make.source(), media_type=f"audio/{kind}") for kind in ("wav", "mpeg")]
    films = [VideoBlock(source=make.source(), media_type=f"video/{kind}") for kind in ("mp4", "webm")]
    return [
        make.user(),
        make.answer(first, second),
        make.result(first, make.text(), *sounds, *films),
        make.result(second, films[0], sounds[0], make.text()),
    ]


def _thought(make: _Maker, origin: Origin | None = None) -> list[Message]:
    call = make.call(signature=make.next("Sig7_"))
    later = make.call(signature=make.next("Sig7_"))
    state = {"replay": {"note": make.next("Note7_"), "n": 1.0}, "trace": {"id": make.next("id7_")}}
    facts: dict[str, Any] = {"origin": origin}
    if origin is None:
        facts["provider_raw"] = {"origin": list(make.origin), **state}
    hidden = [RedactedThinkingBlock(data=make.next("UmVk7")) for _ in range(3)]
    return [
        make.user(),
        make.answer(make.thought(), hidden[0], make.thought(), make.text(signature=make.next("Sig7_")), call, **facts),
        make.result(call),
        make.answer(make.thought(), make.text(), make.thought(), hidden[1], hidden[2], later, **facts),
        make.result(later),
        make.answer(make.thought(signature=None), make.text(), **facts),
        make.user(),
        make.answer(make.thought(signature=""), make.text(signature=make.next("Sig7_")), **facts),
        make.user(),
    ]


def _cited(make: _Maker) -> list[Message]:
    return [make.user(), make.answer(make.cited(), make.text(), make.cited()), make.user(), make.answer(make.cited()),
            make.user()]  # fmt: skip


def _opaque(make: _Maker) -> list[Message]:
    def found(provider: str) -> OpaqueBlock:
        data = {"type": "brand_new", "Payload": make.next("Pay7_"), "w": 1.0, "e": ""}
        return OpaqueBlock(provider=provider, kind="brand_new", data=data)

    own, other = make.origin.provider, FOREIGN.provider
    newer = UnknownBlock(raw={"type": "hologram", "text": "Seen7"})
    return [
        make.user(make.text(), newer),
        make.answer(found(own), make.text(), found(own)),
        make.user(),
        make.answer(make.text(), found(other), origin=FOREIGN),
        make.user(),
    ]


def _cached(make: _Maker) -> list[Message]:
    call, other = make.call(), make.call()
    return [
        make.system(make.text(), make.text(cache=_HOUR)),
        make.user(make.text(cache=_HOUR), make.text()),
        make.answer(make.text(cache=_SHORT), call),
        make.result(call, make.text(), make.text(cache=_SHORT)),
        make.answer(make.text(), other),
        make.result(other, cache=CacheHint()),
        make.user(),
    ]


def _cached_answers(make: _Maker) -> list[Message]:
    return [
        make.user(),
        make.answer(make.text(cache=_SHORT), make.text(cache=_HOUR)),
        make.user(),
        make.answer(make.text(), make.text(cache=CacheHint())),
        make.user(make.text(cache=_SHORT), make.text()),
    ]


def _cached_words(make: _Maker) -> list[Message]:
    return [
        make.user(make.text(cache=_HOUR), make.text(cache=_SHORT)),
        make.answer(make.text()),
        make.user(make.text(), make.text(cache=CacheHint())),
    ]


def _cached_pictures(make: _Maker) -> list[Message]:
    return [
        make.user(make.picture(cache=_HOUR), make.text(), make.picture("image/jpeg", cache=_SHORT)),
        make.answer(make.text(cache=_SHORT)),
        make.user(make.text(), make.picture(cache=CacheHint())),
    ]


def _cached_documents(make: _Maker) -> list[Message]:
    return [
        make.user(make.document(cache=_HOUR), make.text(), make.document("text/plain", cache=_SHORT)),
        make.answer(make.text()),
        make.user(make.document(cache=_SHORT), make.text(), make.document(cache=CacheHint())),
    ]


def _cached_results(make: _Maker) -> list[Message]:
    first, second, third = make.call(), make.call(), make.call()
    return [
        make.user(),
        make.answer(first, second, third),
        make.result(first, make.text(cache=_HOUR), make.picture(cache=_HOUR)),
        make.result(second, make.text(), make.document(cache=_SHORT), failed=True),
        make.result(third, make.picture(), make.text(), cache=_SHORT),
    ]


def _changing(make: _Maker) -> list[Message]:
    """Return tools added, replaced and removed between turns."""
    more = attrs.evolve(READ, name="added_7", description=" Added later.\r\n")
    other = attrs.evolve(SEARCH, name=READ.name, description="Read otherwise.")
    call = make.call("added_7")
    return [
        make.system(),
        make.user(),
        make.answer(make.text()),
        make.system(ChangeBlock(tools_added=(more, attrs.evolve(more, name="added_8")))),
        make.user(),
        make.answer(make.text(), call),
        make.result(call),
        make.system(ChangeBlock(tools_removed=("added_7", SEARCH.name))),
        make.user(),
        make.answer(make.text()),
        make.system(ChangeBlock(tools_added=(other,), tools_removed=("added_8",))),
        make.user(),
    ]


def _trying(make: _Maker) -> list[Message]:
    """Return changes of effort between turns."""
    low, high = (make.system(ChangeBlock(effort=effort)) for effort in ("low", "high"))
    return [make.user(), make.answer(make.text()), low, make.user(), make.answer(make.text()), high, make.user()]


def _answering(make: _Maker) -> list[Message]:
    """Return changes of the form of answers between turns: a schema, with an effort behind it, and text again."""
    formed = make.system(ChangeBlock(response_schema=SCHEMA))
    both, free = make.system(ChangeBlock(effort="high")), make.system(ChangeBlock(response_schema={}))
    said = make.answer(make.text())
    return [make.user(), said, formed, both, make.user(), make.answer(make.text()), free, make.user()]


def _long(make: _Maker) -> list[Message]:
    """Return more of everything: long strings, nine calls at once, a deep argument, many turns."""
    names = [READ.name if at in (0, 3, 4, 6, 8) else SEARCH.name for at in range(9)]
    deep = {"path": _PROSE, "a": {"b": [{"c": [[1, 2], [3, [4, {"d": "Deep7"}]]]}]}, "l": list(range(40))}
    calls = [make.call(name, input={**deep, "at": at}) for at, name in enumerate(names)]
    turns = [turn for _ in range(12) for turn in (make.user(), make.answer(make.text()))]
    return [
        make.system(TextBlock(text=_PROSE)),
        *turns,
        make.user(TextBlock(text=f"{_PROSE}\n" * 4), *(make.picture() for _ in range(5)), make.text()),
        make.answer(TextBlock(text=_PROSE), *calls),
        *(make.result(call, TextBlock(text=_PROSE), make.text()) for call in calls),
        make.user(),
    ]


def _empty(make: _Maker) -> list[Message]:
    nothing, blank = TextBlock(text=""), TextBlock(text=" \r\n")
    return [
        make.system(nothing), make.user(nothing, make.text()), make.answer(nothing, blank, make.text()),
        make.user(blank), make.answer(blank), make.user(make.text(), nothing), make.answer(), make.user(),
    ]  # fmt: skip


_WRITERS = {
    "said": _said, "pictures": _seen, "linked pictures": _linked, "sounds": _heard, "films": _watched,
    "documents": _attached, "calls": _called, "calls by hand": _called_by_hand, "repairs": _repaired,
    "media in results": _shown, "reasoning": _thought, "citations": _cited, "opaque": _opaque, "cached": _cached,
    "cached answers": _cached_answers, "cached words": _cached_words,
    "cached pictures": _cached_pictures, "cached documents": _cached_documents, "cached results": _cached_results,
    "empty": _empty, "long": _long,
}  # fmt: skip


def fixed_histories(origin: Origin) -> dict[str, list[Message]]:
    """Return the conversations by name; answers are of this origin if no other is named."""
    made = {name: write(_Maker(origin)) for name, write in _WRITERS.items()}
    made |= {"changes": _changing(_Maker(origin)), "changes of effort": _trying(_Maker(origin))}
    made["changes of format"] = _answering(_Maker(origin))
    made["films in results"] = _played(_Maker(origin))
    made["reasoning of another"] = _thought(_Maker(origin), FOREIGN)
    make = _Maker(origin)
    made["everything"] = [message for write in _WRITERS.values() if write is not _long for message in write(make)]
    return made


def fixed_answers(origin: Origin) -> dict[str, Message]:
    """Return answers of this origin and of another, to be written by a serving plugin."""
    found: dict[str, Message] = {}
    for whose, each in (("own", origin), ("foreign", FOREIGN)):
        make = _Maker(each)
        calls = [make.call(), make.call(SEARCH.name), make.call()]
        found |= {
            f"{whose} text": make.answer(make.text(), make.text(), usage=COUNTED),
            f"{whose} calls": make.answer(make.text(), *calls, usage=COUNTED),
            f"{whose} broken call": make.answer(
                make.text(),
                make.call(input={}, raw_input='{"Path7": "a.t', parse_error="arguments are not JSON"),
                make.call(input={}, raw_input='{"Path8": "b.t', parse_error="arguments are not JSON: cut"),
                usage=COUNTED,
            ),
            f"{whose} one call": make.answer(make.call(), usage=Usage(input_tokens=7, output_tokens=0)),
            f"{whose} citations": make.answer(make.cited(), make.cited(), usage=COUNTED),
        }
        thoughts = [message for message in _thought(make, each) if message.role is Role.ASSISTANT]
        found |= {f"{whose} reasoning {at}": message for at, message in enumerate(thoughts)}
        opaque = [message for message in _opaque(make) if message.role is Role.ASSISTANT]
        found |= {f"{whose} opaque {at}": message for at, message in enumerate(opaque)}
        for reason in StopReason:
            found[f"{whose} {reason}"] = make.answer(make.text(), stop=reason, stop_reason_raw="Raw7_word")
        calls = [make.call(input={"path": _PROSE, "at": at}) for at in range(9)]
        found[f"{whose} long"] = make.answer(TextBlock(text=_PROSE), *calls, usage=COUNTED)
    return found


COUNTED = Usage(
    input_tokens=120,
    output_tokens=30,
    cached_input_tokens=20,
    cache_creation_input_tokens=11,
    cache_creation_1h_input_tokens=4,
    reasoning_tokens=10,
    extra_units={"web_search": 2},
    service_tier="priority",
)

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "all at once": {
        "max_tokens": 4321, "temperature": 0.25, "top_p": 0.5, "top_k": 7, "seed": 11,
        "stop": (" End7, and words behind it\r\n", "Aa", "bB"), "stream": True,
        "user_id": "User_7-01KDVBKF0000000000000000AA",
        "parallel_tool_calls": False, "tool_choice": "required",
    },
    "other values": {
        "max_tokens": 1, "temperature": 1.0, "top_p": 1.0, "top_k": 1, "seed": 0, "stop": ("Bb", "End8", "c"),
        "user_id": "Other_8", "parallel_tool_calls": True, "tool_choice": "auto",
    },
    "zeros": {"temperature": 0.0, "top_p": 0.0, "seed": 0},
    "a named tool": {"tool_choice": ToolChoice(SEARCH.name), "parallel_tool_calls": False},
    "no tool": {"tool_choice": "none"},
    "a typed answer": {"response_schema": SEARCH.input_schema, "response_name": "Name_7_of_an_answer_in_many_words"},
    "another typed answer": {"response_schema": SCHEMA, "response_name": "Name_8", "stream": True},
    "high effort": {"effort": "high", "max_tokens": 9000, "stream": True},
    "low effort": {"effort": "low", "thinking": True},
    "no thinking": {"thinking": False, "temperature": 0.5},
    "a budget": {"thinking_budget": 2345, "max_tokens": 4321, "stop": ("End7",)},
    "another budget": {"thinking_budget": 3456, "max_tokens": 5432, "top_p": 0.75},
    "reasoning as text": {"thinking_as_text": True},
    "headers": {"headers": {"x-contract": "Seven_7"}},
}  # fmt: skip
"""Options by name, each with its neighbours."""
