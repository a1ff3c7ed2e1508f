"""Read content parts, reasoning, audio, hosted tools and citations of an answer; calls.py reads tool calls."""

from __future__ import annotations

from typing import Any

import attrs

from interlingua.plugins import dumps
from interlingua.types import (
    AudioBlock,
    BlockEnd,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    StreamEvent,
    ThinkingBlock,
)

# Block indexes by kind: each kind has its own field on this wire, so whole and streamed answers need one order.
THINKING = 0
TEXT = 1
# calls have indexes from 2 on (calls.py); later kinds need indexes that no number of calls can reach
REFUSAL = 1_000_000
AUDIO = 1_000_001
IMAGES = 1_000_100
REDACTED = 2_000_000
REASONED = 2_500_000
PARTS = 3_000_000
HOSTED = 4_000_000
CHOICES = 5_000_000
_TEXT_MEMBERS = ("text", "summary", "data", "signature")
# any of them may be used; the dialect's fields have precedence because a service may send one text in two
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
# read elsewhere, or padding without meaning (WIRE.md, Streams)
BODY_FIELDS = frozenset(("choices", "usage", "object", "obfuscation", "p", "error", "service_tier"))
CHOICE_FIELDS = frozenset(("index", "finish_reason", "message", "delta", "logprobs", "usage", "text"))
MESSAGE_FIELDS = frozenset(
    (
        "role", "content", "refusal", "tool_calls", "function_call", "images", "audio", "reasoning_details",
        "annotations", "executed_tools", "padding", "token_id", *REASONING_FIELDS,
    )
)  # fmt: skip
# a later non-empty value replaces these; other strings are pieces to be joined
_NAMES = frozenset(("id", "type", "role", "name", "format", "signature", "object", "tool_call_id"))


@attrs.define
class Pieces:
    """The parts of one `content` value by kind, each in order."""

    text: list[str] = attrs.field(factory=list)
    thinking: list[str] = attrs.field(factory=list)
    refusal: list[str] = attrs.field(factory=list)
    images: list[ImageBlock] = attrs.field(factory=list)
    other: list[dict[str, Any]] = attrs.field(factory=list)
    signature: str | None = None
    closed: bool | None = None


def from_wire_content(content: Any) -> Pieces:
    """Read a content value that is neither a string nor null."""
    pieces = Pieces()
    if isinstance(content, list):
        for part in content:
            _part(part, pieces)
    elif content is not None:
        pieces.text.append(_text(content))  # an object if a service parsed its own structured answer
    return pieces


def from_wire_image(part: Any) -> ImageBlock | None:
    """Read an `image_url` part; None if it is something else."""
    url = part.get("image_url") if isinstance(part, dict) else None
    if isinstance(url, dict):
        url = url.get("url")
    if not isinstance(url, str) or not url:
        return None
    if url.startswith("data:"):
        header, _, data = url.partition(",")
        source = MediaSource(kind="base64", data=data)
        return ImageBlock(source=source, media_type=header[5:].split(";")[0])
    return ImageBlock(source=MediaSource(kind="url", data=url))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value).decode()


def _part(part: Any, pieces: Pieces) -> None:
    if not isinstance(part, dict):
        pieces.text.append(_text(part))
        return
    kind = part.get("type")
    if kind in ("text", "output_text") and isinstance(part.get("text"), str):
        pieces.text.append(part["text"])
    elif kind == "thinking":
        _thinking(part, pieces)
    elif kind == "refusal" and isinstance(part.get("refusal"), str):
        pieces.refusal.append(part["refusal"])
    elif kind == "image_url" and (image := from_wire_image(part)) is not None:
        pieces.images.append(image)
    else:
        pieces.other.append(part)


def _thinking(part: dict[str, Any], pieces: Pieces) -> None:
    """Read a thinking chunk: a list of text chunks, or a string (mistral/WIRE.md, Reasoning)."""
    thought = part.get("thinking")
    for chunk in thought if isinstance(thought, list) else [thought]:
        if isinstance(chunk, dict) and isinstance(chunk.get("text"), str):
            pieces.thinking.append(chunk["text"])
        elif isinstance(chunk, str):
            pieces.thinking.append(chunk)
        elif chunk is not None:
            pieces.other.append({"type": "thinking", "thinking": [chunk]})
    signature = part.get("signature")
    if isinstance(signature, str) and signature:
        pieces.signature = signature
    if isinstance(part.get("closed"), bool):
        pieces.closed = part["closed"]


class ReasoningReader:
    """Reads the reasoning fields of messages and deltas."""

    def __init__(self, fields: tuple[str, ...], provider: str) -> None:
        self._fields = (*fields, *(name for name in REASONING_FIELDS if name not in fields))
        self._provider = provider
        self.details: list[Any] = []
        self.signature: str | None = None
        self.texts: list[str] = []
        self.has_parts = False
        self._has_details = False  # details gave text: else they only repeat that of another field

    def read(self, delta: dict[str, Any], *, whole: bool) -> str:
        """Return the reasoning text of a delta; if several fields repeat it, only one is read."""
        text = ""
        for field in self._fields:
            value = delta.get(field)
            if value and (text := _reasoning_text(value)):
                break
        details = delta.get("reasoning_details")
        if isinstance(details, list) and details:
            if whole:
                self.details = details
            else:
                merge_list(self.details, details)
            if not text and (self._has_details or not self.texts):
                text = "".join(map(_detail_text, details))
                self._has_details = bool(text)
        if text:
            self.texts.append(text)
        return text

    def end(self) -> list[StreamEvent]:
        """Return the events of other parts: signatures, encrypted reasoning, unknown kinds."""
        out: list[StreamEvent] = []
        encrypted = [data for detail in self.details if (data := _member(detail, "data"))]
        signed = any(_member(detail, "signature") for detail in self.details)
        if self.signature is not None or (signed and not self.texts and not self.has_parts):
            out.append(BlockEnd(index=THINKING, block=ThinkingBlock(text="", signature=self.signature)))
        for place, data in enumerate(encrypted):
            out.append(BlockEnd(index=REDACTED + place, block=RedactedThinkingBlock(data=data)))
        text = "".join(self.texts) if self.details else ""
        others = [detail for detail in self.details if not _is_repeated(detail, text)]
        for place, detail in enumerate(others):  # a call that a server made while it reasoned, or another text
            block = OpaqueBlock(provider=self._provider, kind=str(detail["type"]), data=detail)
            out.append(BlockEnd(index=REASONED + place, block=block))
        return out


def _reasoning_text(value: Any) -> str:
    """Return the text of a reasoning field: text, or a part or parts that hold it."""
    if isinstance(value, list):
        return "".join(map(_reasoning_text, value))
    if isinstance(value, dict):
        return next((text for name in ("text", "content", "summary") if (text := _reasoning_text(value.get(name)))), "")
    return value if isinstance(value, str) else ""


def _is_repeated(detail: Any, text: str) -> bool:
    """Return whether the blocks with this text already contain a detail."""
    if not isinstance(detail, dict) or not isinstance(detail.get("type"), str):
        return True
    return any(name in detail for name in _TEXT_MEMBERS) and _detail_text(detail).strip() in text


def _member(detail: Any, name: str) -> str | None:
    value = detail.get(name) if isinstance(detail, dict) else None
    return value if isinstance(value, str) and value else None


def _detail_text(detail: Any) -> str:
    return _member(detail, "text") or _member(detail, "summary") or ""


class Extras:
    """Collects the rest of an answer until it ends, for the message's trace, its replay state and opaque blocks."""

    def __init__(self, provider: str, sources: tuple[str, ...] = ()) -> None:
        self._provider = provider
        self._sources = sources
        self.trace: dict[str, Any] = {}
        self.replay: dict[str, Any] = {}
        self.citations: list[dict[str, Any]] = []
        self.parts: list[dict[str, Any]] = []
        self.service_tier: str | None = None
        self.units: dict[str, int] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._audio: dict[str, Any] = {}
        self._hosted: list[Any] = []
        self._logprobs: dict[str, Any] = {}

    def read_body(self, body: dict[str, Any]) -> None:
        """Keep the members of the body other than choices and usage."""
        tier = body.get("service_tier")
        if isinstance(tier, str) and tier:
            self.service_tier = tier
        for key in self._sources:
            listed = body.get(key)
            if key == "web_search" and listed:
                self.units[key] = 1
            self.citations += [
                entry for entry in (listed if isinstance(listed, list) else ())
                if isinstance(entry, dict) and entry not in self.citations
            ]  # fmt: skip
        for key, value in body.items():
            if key in self._sources:
                continue
            if key not in BODY_FIELDS and value is not None and value != "":
                self.trace[key] = value

    def read_first_choice(self, choice: dict[str, Any]) -> None:
        """Keep the members of the first choice other than its message."""
        if isinstance(choice.get("logprobs"), dict):
            merge_object(self._logprobs, choice["logprobs"])
        elif isinstance(choice.get("logprobs"), (int, float)):  # of the only token of a chunk
            token = (choice.get("delta") or {}).get("token_id")
            self.trace.setdefault("token_logprobs", []).append([token, choice["logprobs"]])
        text, message = choice.get("text"), choice.get("message")
        if isinstance(text, str) and text and isinstance(message, dict) and message.get("content") != text:
            self.trace["text"] = text
        for key, value in choice.items():
            if key not in CHOICE_FIELDS and value is not None:
                self.trace[key] = value

    def read_delta(self, delta: dict[str, Any], *, whole: bool) -> None:
        """Keep the members of its message other than text, reasoning and calls."""
        annotations = delta.get("annotations")
        if isinstance(annotations, list):
            self.citations += [entry for entry in annotations if isinstance(entry, dict)]
        if isinstance(delta.get("audio"), dict):
            merge_object(self._audio, delta["audio"])
        hosted = delta.get("executed_tools")
        if isinstance(hosted, list):
            if whole:
                self._hosted = hosted
            else:
                _update_hosted(self._hosted, hosted)
        for key, value in delta.items():
            if key not in MESSAGE_FIELDS and value is not None:
                self.trace[key] = value

    def read_choice(self, index: int, choice: dict[str, Any], delta: dict[str, Any] | None) -> None:
        """Collect a choice after the first (`n` above 1), so that its text is not lost."""
        known = self._choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
        if delta is not None:
            merge_object(known["message"], delta)
        if isinstance(choice.get("finish_reason"), str):
            known["finish_reason"] = choice["finish_reason"]

    def end(self) -> list[StreamEvent]:
        """Return the blocks of the collected parts, and complete trace and replay."""
        if self._logprobs:
            self.trace["logprobs"] = self._logprobs
        out = self._audio_block()
        out += [self._opaque(PARTS + place, str(part.get("type")), part) for place, part in enumerate(self.parts)]
        if self._hosted:
            self.units["executed_tool"] = len(self._hosted)
        for place, tool in enumerate(self._hosted):
            out.append(self._opaque(HOSTED + place, "executed_tool", tool))
        for place, index in enumerate(sorted(self._choices)):
            choice = self._choices[index]
            choice = {**choice, "message": without_empty(choice["message"])}
            out.append(self._opaque(CHOICES + place, "choice", choice))
        return out

    def _opaque(self, index: int, kind: str, data: Any) -> StreamEvent:
        return BlockEnd(index=index, block=OpaqueBlock(provider=self._provider, kind=kind, data=data))

    def _audio_block(self) -> list[StreamEvent]:
        data, transcript, audio_id = (self._audio.get(name) for name in ("data", "transcript", "id"))
        if not data and not transcript and not audio_id:
            return []
        if audio_id:
            self.replay["audio"] = audio_id
        if more := {name: value for name, value in self._audio.items() if name not in ("data", "transcript", "id")}:
            self.trace["audio"] = more
        block = AudioBlock(
            source=MediaSource(kind="base64", data=str(data or "")),
            media_type="",  # the request chose the format; the answer does not repeat it
            transcript=str(transcript) if transcript else None,
        )
        return [BlockEnd(index=AUDIO, block=block)]


def _update_hosted(known: list[Any], news: list[Any]) -> None:
    """Update hosted calls: a call is sent again with its result, and the later object includes the earlier one."""
    for entry in news:
        same = next((old for old in known if isinstance(old, dict) and isinstance(entry, dict)
                     and old.get("index") == entry.get("index")), None)  # fmt: skip
        if same is None:
            merge_list(known, [entry])
        else:
            same.update({key: value for key, value in entry.items() if value is not None})


def merge_object(into: dict[str, Any], delta: dict[str, Any]) -> None:
    """Merge one delta into an object; null changes nothing."""
    for key, value in delta.items():
        if value is None:
            into.setdefault(key, None)
            continue
        old = into.get(key)
        if isinstance(old, str) and isinstance(value, str):
            into[key] = (value or old) if key in _NAMES else old + value
        elif isinstance(old, dict) and isinstance(value, dict):
            merge_object(old, value)
        elif isinstance(value, list):
            merged = old if isinstance(old, list) else []
            merge_list(merged, value)
            into[key] = merged
        else:
            into[key] = _copy(value)


def merge_list(into: list[Any], delta: list[Any]) -> None:
    """Merge list entries by `index`, type and id; entries without an index are appended."""
    for entry in delta:
        if isinstance(entry, dict) and isinstance(entry.get("index"), int):
            known = next((old for old in into if _same_entry(old, entry)), None)
            if known is not None:
                merge_object(known, entry)
                continue
        into.append(_copy(entry))


def without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """Return the object without nulls, empty members and the streaming `index` of list entries."""
    return {key: _without_null(item) for key, item in value.items() if item not in (None, "", [])}


def _same_entry(old: Any, new: dict[str, Any]) -> bool:
    if not isinstance(old, dict) or old.get("index") != new["index"]:
        return False
    pairs = [(old.get(name), new.get(name)) for name in ("type", "id")]
    return all(not before or not now or before == now for before, now in pairs)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    if not isinstance(value, list):
        return value
    entries = [_without_null(entry) for entry in value]
    return [{k: v for k, v in entry.items() if k != "index"} if isinstance(entry, dict) else entry for entry in entries]
