"""The reasoning of one answer: its text from whichever field a service uses, its details verbatim.

Never decides whether reasoning goes back (capabilities and to_wire do).
The reader of answers comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.types.blocks import OpaqueBlock, RedactedThinkingBlock, ThinkingBlock
from interlingua.types.events import BlockEnd, StreamEvent
from interlingua_chat_completions.merge import merge_list
from interlingua_chat_completions.slots import REASONED, REDACTED, THINKING

_SAID = ("text", "summary", "data", "signature")
# whichever of them a service uses: the dialect's come first, for a service may send two with the same text
FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")


class Reasoning:
    """Reads the reasoning fields of messages and deltas."""

    def __init__(self, fields: tuple[str, ...], provider: str) -> None:
        self._fields = (*fields, *(name for name in FIELDS if name not in fields))
        self._provider = provider
        self.details: list[Any] = []
        self.signature: str | None = None
        self.spoken = False
        self._texts: list[str] = []

    def read(self, delta: dict[str, Any], *, whole: bool) -> str:
        """Return the reasoning text of a delta; several fields of one delta repeat each other, one is taken."""
        text = ""
        for field in self._fields:
            value = delta.get(field)
            if value and (text := _spoken(value)):
                break
        details = delta.get("reasoning_details")
        if isinstance(details, list) and details:
            if whole:
                self.details = details
            else:
                merge_list(self.details, details)
            text = text or "".join(map(_detail_text, details))
        if text:
            self.spoken = True
            self._texts.append(text)
        return text

    def end(self) -> list[StreamEvent]:
        """Return the events of what is not text: signatures, encrypted reasoning, kinds not known here."""
        out: list[StreamEvent] = []
        encrypted = [data for detail in self.details if (data := _member(detail, "data"))]
        signed = any(_member(detail, "signature") for detail in self.details)
        if self.signature is not None or (signed and not self.spoken):
            out.append(BlockEnd(index=THINKING, block=ThinkingBlock(text="", signature=self.signature)))
        for place, data in enumerate(encrypted):
            out.append(BlockEnd(index=REDACTED + place, block=RedactedThinkingBlock(data=data)))
        told = "".join(self._texts) if self.details else ""
        others = [detail for detail in self.details if not _is_said(detail, told)]
        for place, detail in enumerate(others):  # a call that a server made while it reasoned, a text of its own
            block = OpaqueBlock(provider=self._provider, kind=str(detail["type"]), data=detail)
            out.append(BlockEnd(index=REASONED + place, block=block))
        return out


def _spoken(value: Any) -> str:
    """Return the text of a reasoning field: text, or a part or parts that hold it."""
    if isinstance(value, list):
        return "".join(map(_spoken, value))
    if isinstance(value, dict):
        return next((said for name in ("text", "content", "summary") if (said := _spoken(value.get(name)))), "")
    return value if isinstance(value, str) else ""


def _is_said(detail: Any, told: str) -> bool:
    """True for a detail whose content stands in the blocks already, given the text that does."""
    if not isinstance(detail, dict) or not isinstance(detail.get("type"), str):
        return True
    return any(name in detail for name in _SAID) and _detail_text(detail).strip() in told


def _member(detail: Any, name: str) -> str | None:
    value = detail.get(name) if isinstance(detail, dict) else None
    return value if isinstance(value, str) and value else None


def _detail_text(detail: Any) -> str:
    return _member(detail, "text") or _member(detail, "summary") or ""
