"""Lays the blocks of an answer along the steps that they came from, so that the service gets its steps back whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.types import ContentBlock, OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock
from interlingua_google.interactions.steps import (
    BETWEEN,
    CALL,
    IN_BLOCKS,
    MEDIA_KINDS,
    OUTPUT,
    THOUGHT,
    checksum,
)

_Fits = Callable[[ContentBlock], bool]


class StepMatch(NamedTuple):
    """A step and the blocks that came from it.

    Attributes:
        step: its shell (`shell_of`).
        blocks: one for each place that the shell leaves open, with its index in the message; None if projection
            dropped a block.
        same: the blocks hold what they held when the step arrived.
    """

    step: Mapping[str, Any]
    blocks: tuple[tuple[int, ContentBlock] | None, ...]
    same: bool


def match_steps(rows: Any, content: Sequence[ContentBlock]) -> list[StepMatch] | None:
    """Lay the blocks of a message along its steps; None if they do not line up, because the message was edited."""
    found: list[StepMatch] = []
    at = 0
    for row in rows or ():
        step = row["step"]
        taken: list[tuple[int, ContentBlock] | None] = []
        for fits, optional in _places(step):
            block = content[at] if at < len(content) else None
            if block is not None and fits(block):
                taken.append((at, block))
                at += 1
            elif optional:
                taken.append(None)
            else:
                return None
        found.append(StepMatch(step, tuple(taken), _is_unchanged(row, taken)))
    return found if at == len(content) else None


def _places(step: Mapping[str, Any]) -> Iterator[tuple[_Fits, bool]]:
    """Yield, for each block of a step: a test for it, and whether projection may have dropped it."""
    kind = step.get("type")
    if kind == OUTPUT:
        for item in step.get("content") or ():
            yield _place_of_content(item)
    elif kind == THOUGHT:
        if step.get("signature") or any(isinstance(each, Mapping) and each.get("text") for each in _summary(step)):
            yield (lambda block: isinstance(block, ThinkingBlock)), True
    elif kind == CALL:
        issued = step.get("id")
        yield lambda block: isinstance(block, ToolUseBlock) and block.provider_id in (issued, None), False
    else:
        yield (lambda block: isinstance(block, OpaqueBlock) and block.kind == str(kind)), False


def _place_of_content(item: Any) -> tuple[_Fits, bool]:
    if item is IN_BLOCKS:
        return (lambda block: isinstance(block, (TextBlock, OpaqueBlock))), False
    if item.get("type") == "text":
        if item.get("text") is IN_BLOCKS:
            return (lambda block: isinstance(block, TextBlock)), False
        return (lambda block: isinstance(block, TextBlock) and not block.text.strip()), True
    kind = MEDIA_KINDS[item["type"]]
    return (lambda block: isinstance(block, kind)), False


def _summary(step: Mapping[str, Any]) -> Sequence[Any]:
    found = step.get("summary")
    return found if isinstance(found, (list, tuple)) else ()


def _is_unchanged(row: Mapping[str, Any], taken: Sequence[tuple[int, ContentBlock] | None]) -> bool:
    step = row["step"]
    if step.get("type") == OUTPUT:
        items = step.get("content") or ()
        return bool(checksum(map(_text_of, items, taken)) == row["sum"])
    if step.get("type") == THOUGHT:
        text = next((each[1].text for each in taken if each and isinstance(each[1], ThinkingBlock)), "")
        return bool(checksum([text]) == row["sum"])
    return True


def _text_of(item: Any, taken: tuple[int, ContentBlock] | None) -> str:
    block: Any = taken[1] if taken else None
    if isinstance(block, TextBlock):
        return block.text
    if block is None or isinstance(block, OpaqueBlock):
        return item.get("text") or "" if isinstance(item, Mapping) else ""
    return str(block.source.data)


def fill_step(match: StepMatch, written: Mapping[int, Any]) -> dict[str, Any] | None:
    """Return the step as it arrived; None for a thought whose block is not sent back.

    Args:
        match: a step and its blocks.
        written: the JSON that is sent for each block of an output or without a canonical form, by its index.
    """
    step = match.step
    kind = step.get("type")
    if kind == OUTPUT:
        if "content" not in step:
            return dict(step)
        pairs = zip(step["content"] or (), match.blocks, strict=True)
        return {**step, "content": [_fill_content(item, taken, written) for item, taken in pairs]}
    if not match.blocks:
        return dict(step)
    taken = match.blocks[0]
    if taken is None:
        return None
    index, block = taken
    if isinstance(block, ThinkingBlock):
        return _fill_thought(step, block, same=match.same)
    if isinstance(block, ToolUseBlock):
        return _filled(step, block.signature) | {"id": block.id, "name": block.name, "arguments": arguments_of(block)}
    sent: dict[str, Any] | None = written[index]
    return sent


def arguments_of(block: ToolUseBlock) -> Any:
    """Return the arguments to send: an object, in any case."""
    return {"invalid_json": block.raw_input} if block.parse_error is not None else block.input


def thought_of(block: ThinkingBlock) -> dict[str, Any]:
    """Return the step of a thought."""
    step: dict[str, Any] = {"type": THOUGHT}
    if block.signature:
        step["signature"] = block.signature
    if block.text:
        step["summary"] = [{"type": "text", "text": block.text}]
    return step


def _filled(step: Mapping[str, Any], signature: str | None) -> dict[str, Any]:
    if signature is None:
        return {name: value for name, value in step.items() if name != "signature"}
    return {**step, "signature": signature}


def _fill_content(item: Any, taken: tuple[int, ContentBlock] | None, written: Mapping[int, Any]) -> Any:
    if taken is None:
        return item
    index, block = taken
    sent = written[index]
    if item is IN_BLOCKS:
        return sent
    if isinstance(block, TextBlock):
        kept = {**item, "text": block.text}
        if item.get("annotations") is IN_BLOCKS:
            kept["annotations"] = block.citations
        return kept
    return {name: sent.get(name) if value is IN_BLOCKS else value for name, value in item.items()}


def _fill_thought(step: Mapping[str, Any], block: ThinkingBlock, *, same: bool) -> dict[str, Any]:
    filled = _filled(step, block.signature)
    if not same:
        return {name: value for name, value in filled.items() if name != "summary"} | thought_of(block)
    at = 0
    summary: list[Any] = []
    for item in _summary(step):
        length = item.get("text") if isinstance(item, Mapping) else None
        if type(length) is not int:
            summary.append(item)
            continue
        at += len(BETWEEN) if at else 0
        summary.append({**item, "text": block.text[at : at + length]})
        at += length
    return filled | {"summary": summary} if "summary" in filled else filled
