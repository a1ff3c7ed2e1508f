"""Messages -> steps and the system instruction; one road for new, foreign and received messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    EMPTY,
    BlockLoss,
    Loss,
    RequestContext,
    dumps,
    encode_each,
    message_loss,
    note_for,
    placeholder_text,
    replay_state,
)
from interlingua.types import (
    ContentBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_google.interactions.replay import arguments_of, fill_step, match_steps, thought_of
from interlingua_google.interactions.steps import CALL, INPUT, OUTPUT, RESULT, from_wire_result
from interlingua_google.messages import MEDIA, Media, media_key, unsupported_fields
from interlingua_google.models import INTERACTIONS

_KEY = "google.interactions"
_ASSISTANT, _SYSTEM, _TOOL = Role.ASSISTANT, Role.SYSTEM, Role.TOOL  # finding a member is slow before Python 3.12
OWN_STEPS = ("_call", "_result")
"""Endings of the types of a service tool's steps."""
_RESOLUTIONS = {"low": "low", "high": "high", "original": "ultra_high"}


class MessageSteps(NamedTuple):
    """One message on this wire: its steps as JSON, separated by commas, or a system message's text; and its losses."""

    wire: bytes
    rows: tuple[BlockLoss, ...] = ()


class WrittenInput(NamedTuple):
    """The conversation on this wire; `elements` holds what each message became, the leading system messages too."""

    system: str | None
    elements: list[MessageSteps]
    leading: int
    losses: tuple[Loss, ...]


def to_wire_input(messages: Sequence[Message], model: str) -> WrittenInput:
    """Write the projected conversation."""
    elements = encode_each(messages, (_KEY, model), partial(to_wire_steps, model=model))
    leading = next((at for at, message in enumerate(messages) if message.role is not _SYSTEM), len(messages))
    losses = [row.at(at, messages[at].id) for at, (_, rows) in enumerate(elements) for row in rows]
    system = "\n\n".join(filter(None, [element.wire.decode() for element in elements[:leading]]))
    if leading == len(messages):
        text = "a request must contain a message in addition to the system prompt: add a user message"
        raise CapabilityError(text, path="messages")
    if messages[-1].role is _ASSISTANT:
        reason = "the history ends with an answer; this wire has no prefill and answers instead of continuing it"
        losses.append(message_loss(len(messages) - 1, reason, messages[-1].id))
    return WrittenInput(system or None, elements, leading, tuple(losses))


def to_wire_steps(message: Message, model: str) -> MessageSteps:
    """Write one message; of a system message, its text."""
    rows: list[BlockLoss] = []
    role = message.role
    if role is _SYSTEM:
        return MessageSteps("\n\n".join(b.text for b in message.content if isinstance(b, TextBlock)).encode())
    if role is _TOOL:
        steps = _results(message, rows)
    elif role is _ASSISTANT:
        steps = to_wire_answer(message, model, rows)
    else:
        steps = _input(message, rows)
    return MessageSteps(dumps(steps)[1:-1], tuple(rows))


# ---- users


def _input(message: Message, rows: list[BlockLoss]) -> list[Any]:
    parts: list[Any] = []
    media: Mapping[str, Any] = replay_state(message, INTERACTIONS).get("media") or EMPTY
    for index, block in enumerate(message.content):
        part = _content(block, index, rows)
        if part is not None:
            parts.append({**part, **media.get(media_key(block), EMPTY)} if media and isinstance(block, MEDIA) else part)
            continue
        rows.append(BlockLoss(index, block.type, "dropped", f"the user's input on this wire cannot hold {block.type}"))
        if (note := note_for(message, index, rows)) is not None:
            parts.append({"type": "text", "text": note})
    return [{"type": INPUT, "content": parts or [{"type": "text", "text": placeholder_text(rows)}]}]


def _content(block: ContentBlock, index: int, rows: list[BlockLoss]) -> Any:
    """Return the content of a block; None if it has none."""
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, MEDIA):
        return _media(block, index, rows)
    return block.data if isinstance(block, OpaqueBlock) else None


def to_wire_media(block: Media) -> dict[str, Any]:
    """Return the content of a media block: its data or address, and its type."""
    made: dict[str, Any] = {"type": block.type}
    made["data" if block.source.kind == "base64" else "uri"] = block.source.data
    return made | {"mime_type": block.media_type} if block.media_type else made


def _media(block: Media, index: int, rows: list[BlockLoss]) -> dict[str, Any]:
    made = to_wire_media(block)
    if isinstance(block, ImageBlock):
        if resolution := _RESOLUTIONS.get(block.detail or ""):
            made["resolution"] = resolution
        if block.detail == "original":
            reason = "this wire has no original resolution; ultra_high is sent"
            rows.append(BlockLoss(index, block.type, "rewritten", reason))
    elif (names := unsupported_fields(block)) is not None:
        reason = f"this wire has no {names} on a content; the data is kept"
        rows.append(BlockLoss(index, block.type, "rewritten", reason))
    return made


# ---- results


def _results(message: Message, rows: list[BlockLoss]) -> list[Any]:
    steps = []
    for index, block in enumerate(message.content):
        if not isinstance(block, ToolResultBlock):
            rows.append(BlockLoss(index, block.type, "dropped", "a tool message holds results only"))
            continue
        step: dict[str, Any] = {"type": RESULT, "call_id": block.tool_use_id}
        if block.tool_name:
            step["name"] = block.tool_name
        step["result"] = _result(block, index, rows)
        if block.is_error:
            step["is_error"] = True
        step |= _received_result(message, block)
        steps.append({name: value for name, value in step.items() if value is not None or name == "result"})
    return steps


def _received_result(message: Message, block: ToolResultBlock) -> dict[str, Any]:
    """Return the members of a caller's result that a block cannot hold, None for one that it lacked.

    Its object is among them if the block was not changed.
    """
    state = replay_state(message, INTERACTIONS)
    more: dict[str, Any] = dict(state.get("rest") or EMPTY)
    origin = message.metadata.origin
    if "result" in state and origin is not None:
        given = state["result"]
        if from_wire_result(given, RequestContext(origin=origin, message_id=message.id)) == block.content:
            more["result"] = given
    return more


def _result(block: ToolResultBlock, index: int, rows: list[BlockLoss]) -> Any:
    """Return a result: a string for one text, else a list of contents."""
    parts = [_content(part, index, rows) for part in block.content]
    if not parts:
        return ""
    only = block.content[0]
    return only.text if len(parts) == 1 and isinstance(only, TextBlock) else [p for p in parts if p is not None]


# ---- answers


def to_wire_answer(message: Message, model: str, rows: list[BlockLoss]) -> list[Any]:
    """Return the steps of an answer: as they came if this API made them, else an output for each run of contents."""
    written: dict[int, Any] = {}
    for index, block in enumerate(message.content):
        if isinstance(block, ToolUseBlock) and block.parse_error is not None:
            reason = "arguments are not JSON and this wire wants an object"
            rows.append(BlockLoss(index, block.type, "rewritten", reason))
        elif isinstance(block, OpaqueBlock):
            written[index] = _opaque(block, index, rows, message, model)
        elif isinstance(block, (TextBlock, *MEDIA)):
            written[index] = _content(block, index, rows)
    matches = match_steps(replay_state(message, INTERACTIONS).get("steps"), message.content)
    if matches:
        return [step for match in matches if (step := fill_step(match, written)) is not None]
    steps: list[Any] = []
    for index, block in enumerate(message.content):
        if isinstance(block, ThinkingBlock):
            steps.append(thought_of(block))
        elif isinstance(block, ToolUseBlock):
            call = {"type": CALL, "id": block.id, "name": block.name, "arguments": arguments_of(block)}
            steps.append(call | {"signature": block.signature} if block.signature else call)
        elif isinstance(block, OpaqueBlock) and block.kind.endswith(OWN_STEPS):
            steps.append(written[index])
        elif index in written:
            _add_content(steps, block, written[index])
        else:
            reason = f"an answer on this wire cannot hold {block.type}"
            rows.append(BlockLoss(index, block.type, "dropped", reason))
    return steps


def _add_content(steps: list[Any], block: ContentBlock, item: Any) -> None:
    if isinstance(block, TextBlock) and block.citations:
        item = {**item, "annotations": block.citations}
    if not steps or steps[-1]["type"] != OUTPUT:
        steps.append({"type": OUTPUT, "content": []})
    steps[-1]["content"].append(item)


def _opaque(block: OpaqueBlock, index: int, rows: list[BlockLoss], message: Message, model: str) -> Any:
    """Return a step or content of the service's own; its signature goes to the same model only."""
    data = block.data
    origin = message.metadata.origin
    if origin is None or origin.model == model or not isinstance(data, Mapping) or not data.get("signature"):
        return data
    rows.append(BlockLoss(index, block.type, "rewritten", "its signature belongs to another model"))
    return {name: value for name, value in data.items() if name != "signature"}
