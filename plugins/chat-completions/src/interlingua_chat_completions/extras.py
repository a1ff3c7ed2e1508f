"""What an answer carries besides text, reasoning and calls: other choices, audio, hosted tools, citations, facts.

Never interprets a fact it does not know: it goes to the trace, or to an opaque block when it is content.
The reader of answers comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.types.blocks import AudioBlock, ImageSource, OpaqueBlock
from interlingua.types.events import BlockEnd, StreamEvent
from interlingua_chat_completions import slots
from interlingua_chat_completions.merge import merge_list, merge_object, plain
from interlingua_chat_completions.reasoning import FIELDS

# read elsewhere, or padding without meaning (sheet openai_chat §6)
BODY_FIELDS = frozenset(("choices", "usage", "object", "obfuscation", "p", "error", "service_tier"))
CHOICE_FIELDS = frozenset(("index", "finish_reason", "message", "delta", "logprobs", "usage", "text"))
MESSAGE_FIELDS = frozenset(
    (
        "role", "content", "refusal", "tool_calls", "function_call", "images", "audio", "reasoning_details",
        "annotations", "executed_tools", "name", "padding", "token_id", *FIELDS,
    )
)  # fmt: skip


class Extras:
    """Collects until the answer ends; `trace` is good to know, `replay` goes back."""

    def __init__(self, provider: str, sources: tuple[str, ...] = ()) -> None:
        self._provider = provider
        self._sources = sources
        self.trace: dict[str, Any] = {}
        self.replay: dict[str, Any] = {}
        self.citations: list[dict[str, Any]] = []
        self.parts: list[dict[str, Any]] = []
        self.service_tier: str | None = None
        self._choices: dict[int, dict[str, Any]] = {}
        self._audio: dict[str, Any] = {}
        self._hosted: list[Any] = []
        self._logprobs: dict[str, Any] = {}

    def read_body(self, body: dict[str, Any]) -> None:
        """Keep what the body says of the exchange."""
        tier = body.get("service_tier")
        if isinstance(tier, str) and tier:
            self.service_tier = tier
        for key in self._sources:
            listed = body.get(key)
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
        """Keep what the first choice says of itself."""
        if isinstance(choice.get("logprobs"), dict):
            merge_object(self._logprobs, choice["logprobs"])
        for key, value in choice.items():
            if key not in CHOICE_FIELDS and value is not None:
                self.trace[key] = value

    def read_delta(self, delta: dict[str, Any], *, whole: bool) -> None:
        """Keep what its message holds besides text, reasoning and calls."""
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
                _latest(self._hosted, hosted)
        for key, value in delta.items():
            if key not in MESSAGE_FIELDS and value is not None:
                self.trace[key] = value

    def read_choice(self, index: int, choice: dict[str, Any], delta: dict[str, Any] | None) -> None:
        """Collect a choice that is not the first (`n` above 1): its text must not be lost."""
        known = self._choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
        if delta is not None:
            merge_object(known["message"], delta)
        if isinstance(choice.get("finish_reason"), str):
            known["finish_reason"] = choice["finish_reason"]

    def end(self) -> list[StreamEvent]:
        """Return the blocks of what was collected, and settle trace and replay."""
        if self._logprobs:
            self.trace["logprobs"] = self._logprobs
        out = self._audio_block()
        out += [self._opaque(slots.PARTS + place, str(part.get("type")), part) for place, part in enumerate(self.parts)]
        for place, tool in enumerate(self._hosted):
            out.append(self._opaque(slots.HOSTED + place, "executed_tool", tool))
        for place, index in enumerate(sorted(self._choices)):
            choice = self._choices[index]
            choice = {**choice, "message": plain(choice["message"])}
            out.append(self._opaque(slots.CHOICES + place, "choice", choice))
        return out

    def _opaque(self, index: int, kind: str, data: Any) -> StreamEvent:
        return BlockEnd(index=index, block=OpaqueBlock(provider=self._provider, kind=kind, data=data))

    def _audio_block(self) -> list[StreamEvent]:
        data, transcript, audio_id = (self._audio.get(name) for name in ("data", "transcript", "id"))
        if not data and not transcript and not audio_id:
            return []
        if audio_id:
            self.replay["audio"] = audio_id
        block = AudioBlock(
            source=ImageSource(kind="base64", data=str(data or "")),
            media_type="",  # the request chose the format; the answer does not repeat it
            transcript=str(transcript) if transcript else None,
        )
        return [BlockEnd(index=slots.AUDIO, block=block)]


def _latest(known: list[Any], news: list[Any]) -> None:
    """A hosted call is sent again with its result: the later object holds all of the earlier one."""
    for entry in news:
        same = next((old for old in known if isinstance(old, dict) and isinstance(entry, dict)
                     and old.get("index") == entry.get("index")), None)  # fmt: skip
        if same is None:
            merge_list(known, [entry])
        else:
            same.update({key: value for key, value in entry.items() if value is not None})
