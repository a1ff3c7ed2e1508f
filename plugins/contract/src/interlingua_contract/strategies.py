"""Hypothesis strategies for canonical values as they occur in the field, the ugly ones included; all are valid."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

import attrs
from hypothesis import strategies as st

from interlingua.types import (
    AudioBlock,
    CacheHint,
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
    RoutingDecision,
    RoutingMode,
    SideEffects,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    Usage,
    VideoBlock,
)

EXTREMES = (
    *("", " ", "\n", "a \n", "\x00", "\ud800", "\U0001f701\U0001f702", "\u202eabc", "e\u0301", '"\\/', "\u2028"),
    *("\uffff", "\ufeff", "</system>", "data: x\n\n", "[DONE]", "{", "null", "x" * 300),
)

HUGE = "lorem ipsum " * 2000
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
PLAIN = base64.b64encode(b"plain").decode()


def _drawn_text(size: int) -> st.SearchStrategy[str]:
    """Texts without a mark: Hypothesis also draws words of this package's code, and marks are among them."""
    return st.text(max_size=size).map(lambda text: text.replace("mk", "km"))


@cache
def texts(*, huge: bool = False) -> st.SearchStrategy[str]:
    """Texts: short ones, control characters, half surrogates, what looks like a wire's own marks; and huge ones."""
    usual = st.one_of(st.sampled_from(EXTREMES), _drawn_text(12))
    return st.one_of(*[usual] * 12, st.just(HUGE)) if huge else usual


@cache
def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """Small JSON objects, as tools take them."""
    leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), _drawn_text(5), st.just(0))
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=2), max_leaves=3)
    return st.dictionaries(st.sampled_from(["path", "q", "n", "z", "a"]), values, max_size=3)


@cache
def hints() -> st.SearchStrategy[CacheHint | None]:
    """Cache hints, mostly none."""
    return st.one_of(st.none(), st.none(), st.none(), st.builds(CacheHint, ttl=st.sampled_from([None, "5m", "1h"])))


@cache
def media(*, linked: bool = True) -> st.SearchStrategy[ContentBlock]:
    """Images, audio, video and documents; with `linked`, images by URL too, which a client may fetch before sending."""
    inline = st.just(MediaSource(kind="base64", data=PIXEL))
    address = st.just(MediaSource(kind="url", data="https://example.com/a.png"))
    pictured = st.one_of(inline, address) if linked else inline
    return st.one_of(
        st.builds(ImageBlock, source=pictured, media_type=st.just("image/png"), cache=hints()),
        st.builds(AudioBlock, source=inline, media_type=st.sampled_from(["audio/wav", "audio/mpeg"])),
        st.builds(VideoBlock, source=inline, media_type=st.just("video/mp4")),
        st.builds(
            DocumentBlock,
            source=st.just(MediaSource(kind="base64", data=PLAIN)),
            media_type=st.sampled_from(["text/plain", "application/pdf"]),
            title=st.sampled_from([None, "a title"]),
        ),
    )


def blocks() -> st.SearchStrategy[ContentBlock]:
    """Every block type, each by itself."""
    return st.one_of(
        st.builds(TextBlock, text=texts(huge=True), cache=hints()),
        st.builds(ThinkingBlock, text=texts(), signature=st.sampled_from([None, "", "c2ln"])),
        st.builds(RedactedThinkingBlock, data=st.just("cmVkYWN0ZWQ=")),
        st.builds(ToolUseBlock, id=st.just("tu_1"), name=st.just("read_file"), input=json_objects()),
        st.builds(ToolResultBlock, tool_use_id=st.just("tu_1"), content=texts(), is_error=st.booleans()),
        media(),
        st.builds(OpaqueBlock, provider=st.just("elsewhere"), kind=st.just("search"), data=json_objects()),
        st.builds(UnknownBlock, raw=st.just({"type": "hologram", "depth": 3})),
    )


NAMES = ("read_file", "search", "run_2")


@cache
def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Object schemas with a few properties."""
    described = st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "boolean"])})
    listed = st.builds(lambda item: {"type": "array", "items": item}, described)
    properties = st.dictionaries(st.sampled_from(["path", "q", "n"]), st.one_of(described, listed), max_size=3)
    return st.builds(
        lambda named, closed: {
            "type": "object",
            "properties": named,
            "required": sorted(named)[:1],
            **({"additionalProperties": False} if closed else {}),
        },
        properties,
        st.booleans(),
    )


@cache
def tools(*, most: int = 3) -> st.SearchStrategy[list[ToolDefinition]]:
    """Lists of tools with different names."""
    one = st.builds(
        ToolDefinition,
        name=st.sampled_from(NAMES),
        description=texts(),
        input_schema=schemas(),
        side_effects=st.sampled_from(list(SideEffects)),
    )
    return st.lists(one, max_size=most, unique_by=lambda tool: tool.name)


ORIGINS = (Origin("elsewhere", "chat", "m-1"), Origin("faraway", "messages", "m-2"))
_STATUSES = (*[MessageStatus.COMPLETE] * 5, MessageStatus.PARTIAL, MessageStatus.CANCELLED, MessageStatus.ERROR)
_STOPS = {MessageStatus.PARTIAL: None, MessageStatus.CANCELLED: None, MessageStatus.ERROR: StopReason.ERROR}


@cache
def _up_to(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


@cache
def _one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


class _HistoryMaker:
    """Draws the parts of one history."""

    def __init__(self, draw: st.DrawFn, origins: Sequence[Origin], *, marked: bool, cached: bool, linked: bool) -> None:
        self.draw = draw
        self.origins = origins
        self.marked = marked
        self.cached = cached
        self.media = media(linked=linked)
        self._numbers = count(1)

    def seldom(self, one_in: int) -> bool:
        return bool(self.draw(_up_to(one_in - 1)) == one_in - 1)

    def text(self, letter: str) -> str:
        drawn = self.draw(texts(huge=letter == "t"))
        return f"{self.mark(letter)} {drawn}" if self.marked else drawn

    def mark(self, letter: str) -> str:
        return f"mk{letter}{next(self._numbers)}q"

    def hint(self) -> Any:
        return self.draw(hints()) if self.cached else None

    def plain(self) -> TextBlock:
        return TextBlock(text=self.text("t"), cache=self.hint())

    def system(self) -> Message:
        return Message(role=Role.SYSTEM, content=(self.plain(),))

    def user(self) -> Message:
        content: list[ContentBlock] = [self.plain()]
        if self.seldom(5):
            content.append(self.plain())
        if self.seldom(3):
            content.append(self.draw(self.media) if self.cached else _without_hint(self.draw(self.media)))
        if self.seldom(12):
            content.append(UnknownBlock(raw={"type": "hologram", "text": self.mark("n")}))
        return Message(role=Role.USER, content=tuple(self.draw(st.permutations(content))))

    def assistant(self) -> Message:
        origin = self.draw(_one_of(*self.origins))
        content = self._thought()
        content.extend(self._said() for _ in range(self.draw(_one_of(1, 1, 1, 2))))
        if self.seldom(8):
            data = {"type": "brand_new", "payload": self.mark("o")}
            content.append(OpaqueBlock(provider=origin.provider, kind="brand_new", data=data))
        content.extend(self._call() for _ in range(self.draw(_one_of(0, 0, 1, 1, 2, 3))))
        if self.seldom(8):  # written by hand
            kept = [block for block in content if isinstance(block, (TextBlock, ToolUseBlock))]
            return Message(role=Role.ASSISTANT, content=tuple(kept))
        return self._generated(origin, content)

    def _thought(self) -> list[ContentBlock]:
        content: list[ContentBlock] = []
        if self.draw(st.booleans()):
            signature = self.draw(st.sampled_from([None, "", self.mark("s")]))
            content.append(ThinkingBlock(text=self.text("h"), signature=signature))
        if self.seldom(6):
            content.append(RedactedThinkingBlock(data=self.mark("d")))
        return content

    def _said(self) -> TextBlock:
        citations = [{"type": "char_location", "cited_text": self.mark("c")}] if self.seldom(8) else []
        signature = self.mark("s") if self.seldom(10) else None
        return TextBlock(text=self.text("t"), citations=tuple(citations), signature=signature, cache=self.hint())

    def _call(self) -> ToolUseBlock:
        number = next(self._numbers)
        broken = self.seldom(10)
        issued = [None, f"call_{number}", f"call {number}|{number}", "same", "x" * 70]
        value: dict[str, Any] = {} if broken else self.draw(json_objects())
        if self.marked and not broken:
            value = {**value, "mark": self.mark("a")}
        return ToolUseBlock(
            id=f"tu_01KAKDPZ000000000000{number:06d}",
            name=self.draw(_one_of(*NAMES)),
            input=value,
            provider_id=self.draw(st.sampled_from(issued)),
            raw_input=f'{{"cut": "{self.mark("a")}' if broken else None,
            parse_error="arguments are not JSON" if broken else None,
            signature=self.mark("s") if self.seldom(10) else None,
        )

    def _generated(self, origin: Origin, content: list[ContentBlock]) -> Message:
        status = self.draw(_one_of(*_STATUSES))
        calls = any(isinstance(block, ToolUseBlock) for block in content)
        stop = _STOPS.get(status, StopReason.TOOL_USE if calls else StopReason.END_TURN)
        raw = {"origin": list(origin), "replay": {"note": self.mark("r")}, "trace": {"id": self.mark("r")}}
        model = f"{origin.provider}:{origin.model}"
        metadata = MessageMetadata(
            model=model,
            provider=origin.provider,
            api=origin.api,
            routing=RoutingDecision(mode=RoutingMode.MANUAL, chosen_model=model, reason="drawn"),
            usage=Usage(),
            status=status,
            stop_reason=stop,
            provenance=Provenance.GENERATED,
            provider_raw=raw if self.draw(st.booleans()) else None,
        )
        return Message(role=Role.ASSISTANT, content=tuple(content), metadata=metadata)

    def results(self, answer: Message, *, ragged: bool) -> list[Message]:
        """Results in any order; in a ragged history some are missing and some answer no call."""
        made = []
        for call in self.draw(st.permutations(answer.tool_calls)):
            if ragged and self.seldom(5):
                continue
            content: list[ContentBlock] = [TextBlock(text=self.text("u"))]
            if self.seldom(5):
                content.append(TextBlock(text=self.text("u")))
            if self.seldom(6):
                content.append(_without_hint(self.draw(self.media)))
            failed = self.draw(st.booleans())
            made.append(_tool_message(ToolResultBlock(tool_use_id=call.id, content=content, is_error=failed)))
        if ragged and self.seldom(8):
            made.append(_tool_message(ToolResultBlock(tool_use_id="tu_nobody", content=self.mark("x"))))
        return made


def _without_hint(block: Any) -> ContentBlock:
    changed: ContentBlock = attrs.evolve(block, cache=None)
    return changed


def _tool_message(block: ToolResultBlock) -> Message:
    return Message(role=Role.TOOL, content=(block,), metadata=MessageMetadata(parent_tool_use_id=block.tool_use_id))


@st.composite
def conversations(
    draw: st.DrawFn,
    origins: Sequence[Origin] = ORIGINS,
    *,
    turns: int = 5,
    ragged: bool = True,
    marked: bool = False,
    cached: bool = True,
    linked: bool = True,
) -> list[Message]:
    """Histories that start with a user (or system messages and a user).

    Args:
        draw: Hypothesis's own.
        origins: the models that answer, in any order; include your own provider.
        turns: the most answers.
        ragged: also histories that core has to repair: calls without results, results without calls.
        marked: put a distinct mark (see `MARK`) into every text, argument, signature and opaque leaf.
        cached: whether blocks may have cache hints.
        linked: whether images may be URLs.
    """
    make = _HistoryMaker(draw, origins, marked=marked, cached=cached, linked=linked)
    made = [make.system() for _ in range(draw(_up_to(2)))]
    for turn in range(draw(st.integers(1, turns))):
        made.extend(make.user() for _ in range(draw(_one_of(1, 1, 1, 2) if turn == 0 else _one_of(1, 1, 2, 0))))
        if make.seldom(6):
            made.append(make.system())
        answer = make.assistant()
        made.append(answer)
        results = make.results(answer, ragged=ragged)
        if results and make.seldom(6):
            results.insert(draw(st.integers(0, len(results))), make.system())
        made.extend(results)
    if draw(st.booleans()):
        made.append(Message(role=Role.USER, content=(TextBlock(text="go on"),)))
    return made


def messages(origins: Sequence[Origin] = ORIGINS) -> st.SearchStrategy[Message]:
    """Single messages of any role, as in histories."""
    return conversations(origins, turns=2).flatmap(st.sampled_from)


def request_points(history: Sequence[Message]) -> list[list[Message]]:
    """Return the history at each point where a request is made: before every answer, and at the end."""
    points = [list(history[:at]) for at, message in enumerate(history) if message.role is Role.ASSISTANT and at]
    return [*points, list(history)]
