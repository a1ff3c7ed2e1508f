"""Chunks of an answer -> canonical events; a whole answer is one chunk (WIRE.md, Streaming)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, NamedTuple

from interlingua.errors import MalformedResponseError
from interlingua.plugins import FollowUp, RequestContext, WireChunk, loads, loads_lossy, repair_surrogates
from interlingua.types import (
    BlockEnd,
    ErrorEvent,
    MessageComplete,
    OpaqueBlock,
    RawUpdate,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    UsageUpdate,
)
from interlingua_google.calls import CallReader
from interlingua_google.continuation import GOES_ON, add_counts, continue_from, earlier_chunks
from interlingua_google.errors import envelope_in, error_from_envelope
from interlingua_google.messages import OTHER_CANDIDATE, from_wire_media, media_extras, media_key
from interlingua_google.metadata import (
    GROUNDING,
    OtherCandidates,
    billed_searches,
    citations_by_block,
    from_wire_ending,
    from_wire_usage,
)

# what a part may have beside what it holds (the official SDK's type of a part)
MODIFIERS = frozenset(
    (
        *("thought", "thoughtSignature", "mediaResolution", "mediaProcessing", "partMetadata", "videoMetadata"),
        *("speechMetadata", "documentMetadata", "spreadsheetMetadata", "audioMetadata"),
    )
)
_TRACED = {"responseId": "id", "modelVersion": "model"} | {
    name: name for name in ("createTime", "promptFeedback", "modelStatus")
}
TRACED_OF_ANSWER = (
    *("finishMessage", "safetyRatings", "avgLogprobs", "logprobsResult", "tokenCount", "continuationToken"),
    *GROUNDING,
)


async def stream_response(
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events."""
    reader = GeminiStreamReader(context)
    for event in reader.read_earlier():
        yield event
    fast = loads_lossy
    async for _, data in response_stream:
        if data == b"[DONE]":  # some proxies add another wire's end mark
            continue
        chunk = fast(data)
        text = _text_only(chunk) if reader.open == "text" else None
        if text:
            reader.pieces.append(text)
            if "usageMetadata" in chunk:
                reader.count(chunk["usageMetadata"])
            yield TextDelta(index=reader.index, text=text)
            continue
        for event in reader.read(loads(data)):  # may carry arguments, whose numbers are to stay exact
            yield event
        if (later := reader.follow_up()) is not None:
            yield RawUpdate(follow_up=later)
        if reader.over:
            return
    goes_on = reader.follow_up() is not None  # then this is not the end of the answer
    for event in reader.finish():
        if not (goes_on and type(event) is MessageComplete):
            yield event


def _text_only(chunk: Any) -> str | None:
    """Return the text of a chunk that only adds text, the most common kind; None for others."""
    try:
        candidates = chunk["candidates"]
        candidate = candidates[0]
        (part,) = candidate["content"]["parts"]
        text = part["text"]
        size = len(candidate)
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    alone = len(candidates) == 1 and len(part) == 1 and (size == 1 or (size == 2 and candidate.get("index") == 0))
    if alone and text.__class__ is str and "error" not in chunk and "promptFeedback" not in chunk:
        return text
    return None


class _Text(NamedTuple):
    """A block of text: `text` or `thought`, its pieces, its signature."""

    kind: str
    pieces: list[str]
    signature: str | None


class GeminiStreamReader:
    """The state of one answer.

    Attributes:
        index: index of the block that started last, -1 before the first.
        open: the kind of text that may still be appended to it: `text`, `thought` or None.
        pieces: the text of the open block so far.
        usage: counts so far; totals, a later one replaces an earlier one.
        over: an error ended the answer.
    """

    def __init__(self, context: RequestContext) -> None:
        self.index = -1
        self.open: str | None = None
        self.pieces: list[str] = []
        self.usage: dict[str, Any] = {}
        self.over = False
        self._context = context
        self._calls = CallReader(context)
        self._others = OtherCandidates()
        self._texts: dict[int, _Text] = {}
        self._grounding: list[dict[str, Any]] = []
        self._media: dict[str, Any] = {}
        self._trace: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._parts: list[Any] = []  # in order: the index of a text block, or another part unchanged
        self._token: Any = None  # of the request that is read
        self._counts: dict[str, Any] = {}  # of the request that is read
        self._counted: dict[str, Any] = {}  # of earlier requests of this answer

    def read(self, chunk: Any) -> Iterator[StreamEvent]:
        """Translate one chunk, or each of a list (the form of a stream without `alt=sse`)."""
        if isinstance(chunk, list):
            for item in chunk:
                if not self.over:
                    yield from self.read(item)
            return
        if not isinstance(chunk, dict):
            return
        error = envelope_in(chunk)
        if error is not None:
            yield from self._flush(whole=False)
            yield ErrorEvent(error=error_from_envelope(error))
            self.over = True
            return
        if chunk.get("candidates") and self._last.get("finishReason") == GOES_ON:
            self._begin_request()  # its chunks continue the answer, and the block that is open
        self._trace.update({name: chunk[field] for field, name in _TRACED.items() if field in chunk})
        self.count(chunk.get("usageMetadata"))
        for at, candidate in enumerate(chunk.get("candidates") or ()):
            if not isinstance(candidate, dict):
                raise MalformedResponseError("a candidate is not an object", path="candidates")
            if candidate.get("index", at) not in (0, None):
                self._others.add(_number(candidate.get("index", at)), candidate)  # the message is the first
            else:
                yield from self._candidate(candidate)

    def count(self, usage: Any) -> None:
        """Update the counts; those of a request replace each other, those of several add up."""
        if usage and isinstance(usage, dict):
            self._counts.update(usage)
            self.usage = add_counts(self._counted, self._counts)

    def read_earlier(self) -> Iterator[StreamEvent]:
        """Translate the chunks before the answer to a follow-up, if this is a follow-up."""
        if earlier := earlier_chunks(self._context):
            yield from self.read(earlier)
            self._begin_request()

    def _begin_request(self) -> None:
        self._counts, self._counted, self._last = {}, self.usage, {}
        self._token = self._trace.pop("continuationToken", None)
        self._trace.pop("finishMessage", None)

    def follow_up(self) -> FollowUp | None:
        """Return the request that continues the answer, if it ended at the limit of one request."""
        if self._last.get("finishReason") != GOES_ON or self._trace.get("continuationToken") == self._token:
            return None
        texts = {index: self._text_part(found) for index, found in self._texts.items()}
        parts = [texts[part] if isinstance(part, int) else part for part in self._parts]
        first: dict[str, Any] = {"content": {"role": "model", "parts": parts}, **self._last}
        earlier: list[dict[str, Any]] = [{"candidates": [each]} for each in self._grounding]
        earlier.append({"candidates": [first, *self._others.all()], "usageMetadata": self.usage})
        return continue_from({**self._last, **self._trace}, earlier, self._context)

    @staticmethod
    def _text_part(text: _Text) -> dict[str, Any]:
        part: dict[str, Any] = {"text": "".join(text.pieces)}
        if text.kind == "thought":
            part["thought"] = True
        return part if text.signature is None else {**part, "thoughtSignature": text.signature}

    def finish(self) -> Iterator[StreamEvent]:
        """End the answer after the source has ended, completely or not."""
        if self.over:
            return
        stopped = "finishReason" in self._last
        yield from self._flush(whole=stopped)
        yield from from_wire_ending(
            self._last,
            self._trace.get("promptFeedback"),
            empty=self.index < 0,
            calls=self._calls.any,
            context=self._context,
        )

    def _candidate(self, candidate: dict[str, Any]) -> Iterator[StreamEvent]:
        content = candidate.get("content")
        for at, part in enumerate((content.get("parts") if isinstance(content, dict) else None) or ()):
            if not isinstance(part, dict):
                raise MalformedResponseError("a part is not an object", path="candidates[0].content.parts")
            if at:
                self.open = None  # only a chunk's first part may continue the last block of the chunk before
            yield from self._part(part)
        if any(name in candidate for name in GROUNDING):
            self._grounding.append({name: candidate.get(name) for name in GROUNDING})
        kept = {name: candidate[name] for name in TRACED_OF_ANSWER if candidate.get(name) is not None}
        self._trace.update(kept)
        if candidate.get("finishReason") is not None:
            self._last = {"finishReason": candidate["finishReason"], "finishMessage": candidate.get("finishMessage")}

    def _part(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        if isinstance(part.get("text"), str):
            yield from self._text(part)
            return
        self._parts.append(part)
        if isinstance(part.get("functionCall"), dict) and self._calls.accepts(part["functionCall"]):
            self.open = None
            made = list(self._calls.read(part, self.index))
            self.index = max([self.index, *(event.index for event in made)])
            yield from made
            return
        if not part:
            return
        self.open = None
        self.index += 1
        media = None if part.get("thought") else from_wire_media(part)  # a sketch is not the answer
        if media is not None:
            if extras := media_extras(part):
                self._media[media_key(media)] = extras
            yield BlockEnd(index=self.index, block=media)
            return
        kind = next((name for name in part if name not in MODIFIERS), "thoughtSignature")
        yield BlockEnd(index=self.index, block=self._opaque(kind, part))

    def _opaque(self, kind: str, data: dict[str, Any]) -> OpaqueBlock:
        return OpaqueBlock(provider=self._context.origin.provider, kind=kind, data=data)

    def _text(self, part: Mapping[str, Any]) -> Iterator[StreamEvent]:
        text: str = part["text"]
        kind = "thought" if part.get("thought") is True else "text"
        given = part.get("thoughtSignature")
        signature = given if isinstance(given, str) and given else None
        if not text and signature is None:
            return
        if signature is not None or self.open != kind:
            self.index += 1
            self.open = kind
            self.pieces = []
            self._texts[self.index] = _Text(kind, self.pieces, signature)
            self._parts.append(self.index)
        if text:
            self.pieces.append(text)
            yield (
                TextDelta(index=self.index, text=text) if kind == "text" else ThinkingDelta(index=self.index, text=text)
            )
        if signature is not None:
            self.open = None
            yield BlockEnd(index=self.index, block=_end_of(kind, signature))

    def _flush(self, *, whole: bool) -> Iterator[StreamEvent]:
        """End the blocks, whose signatures and citations are known now."""
        yield from self._calls.flush(whole=whole)
        texts = {
            index: repair_surrogates("".join(text.pieces)) for index, text in self._texts.items() if text.kind == "text"
        }
        cited = citations_by_block(self._grounding, texts) if self._grounding else {}
        for index, text in self._texts.items():
            if text.signature is None or index in cited:  # the others were ended with their signature
                yield BlockEnd(index=index, block=_end_of(text.kind, text.signature, cited.get(index, ())))
        for place, other in enumerate(self._others.all(), self.index + 1):
            yield BlockEnd(index=place, block=self._opaque(OTHER_CANDIDATE, other))
        replay = {"media": self._media} if self._media else None
        trace = {**self._trace, "usage": self.usage} if self.usage else self._trace
        yield RawUpdate(replay=replay, trace=trace)
        if self.usage:
            searches = billed_searches(self._grounding, self._context.origin.model)
            yield UsageUpdate(usage=from_wire_usage(self.usage, searches))


def _end_of(kind: str, signature: str | None, citations: Any = ()) -> TextBlock | ThinkingBlock:
    if kind == "text":
        return TextBlock(text="", citations=citations, signature=signature)
    return ThinkingBlock(text="", signature=signature)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else -1
