"""Write canonical messages as input items: system messages, cache markers, results, assistant turns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from interlingua.plugins import (
    EMPTY,
    BlockLoss,
    Loss,
    dumps,
    encode_each,
    model_saw,
    note_for,
    placeholder_text,
    replay_state,
)
from interlingua.types import (
    CacheHint,
    ChangeBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_chat_completions.messages import fit_detail
from interlingua_openai.catalogue import IMAGE_DETAILS, RESPONSES
from interlingua_openai.responses.changes import to_wire_change
from interlingua_openai.responses.client_calls import FORMS, new_call, to_wire_client_result
from interlingua_openai.responses.items import SERVER_CALL, call_id_of, is_call, seal_of
from interlingua_openai.responses.replay import (
    ItemMatch,
    call_arguments,
    call_name,
    match_items,
    to_wire_item,
)

_KEY = "openai.responses"
MAX_MARKERS = 4  # WIRE.md, Prompt caching
_ASSISTANT, _TOOL, _SYSTEM = Role.ASSISTANT, Role.TOOL, Role.SYSTEM  # an enum's member is slow before Python 3.12
_ENDINGS = {
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
RESULTS = ("function_call_output", "custom_tool_call_output")
_ERROR_PREFIX = "Error: "  # as on the Chat wire: neither has an error flag
_SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_EDITED = "the message was edited since it was made"
_RAN = "the service ran this call itself and takes it back in no request"
_PICTURE = "A picture that the assistant made:"
_UNKEPT = "its reasoning has no encrypted form, so nothing of it is kept by the service"
_LAST = ("google-gemini-v1",)  # formats of reasoning that comes after the item it led to (WIRE.md, Hosts)


class MessageItems(NamedTuple):
    """One message on this wire.

    Attributes:
        wire: its items as JSON, separated by commas.
        losses: the losses of its blocks.
        hints: places of the blocks with a cache hint that this wire can mark.
        calls: its calls whose results are not plain results of functions.
    """

    wire: bytes
    losses: tuple[BlockLoss, ...] = ()
    hints: tuple[int, ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ()


_NOTHING = MessageItems(b"")


class ResponsesInput(NamedTuple):
    """The conversation on this wire; `hinted` is True if a block has a cache hint."""

    instructions: str | None
    items: list[bytes]
    losses: tuple[Loss, ...]
    hinted: bool


def to_wire_input(messages: Sequence[Message], model: str, *, plain: bool = False) -> ResponsesInput:
    """Write the conversation as `instructions` and the pieces of `input`.

    Args:
        messages: the projected conversation.
        model: decides which messages get their own state back.
        plain: the service takes reasoning back that has no encrypted form.
    """
    elements = encode_each(messages, (_KEY, model, plain), partial(to_wire_elements, model=model, plain=plain))
    hoisted = _count_hoisted(messages)
    losses: list[Loss] = []
    hinted = False
    for at in range(hoisted):
        elements[at] = _NOTHING
        if _has_hint(messages[at]):
            hinted = True
            row = BlockLoss(0, "text", "rewritten", "instructions carry no cache marker")
            losses.append(row.at(at, messages[at].id))
    hints: list[tuple[int, int]] = []
    calls = {call_id_of(call) or "": call for element in elements if element[3] for call in element[3]}
    if calls:
        for at, message in enumerate(messages):
            if message.role is _TOOL and any(block.tool_use_id in calls for block in message.tool_results):
                elements[at] = to_wire_elements(message, model, calls=calls)
    for at, (_, lost, marks, _) in enumerate(elements):  # few messages have more than their items
        if lost:
            losses += [loss.at(at, messages[at].id) for loss in lost]
        if marks:
            hints += [(at, block) for block in marks]
    if hints:
        losses += _mark(elements, hints, messages, model, calls)
    instructions = "\n\n".join(filter(None, map(_system_text, messages[:hoisted])))
    items = [b"[", b",".join([element[0] for element in elements if element[0]]), b"]"]
    return ResponsesInput(instructions or None, items, tuple(losses), hinted or bool(hints))


def _count_hoisted(messages: Sequence[Message]) -> int:
    """Count the leading system messages that become `instructions`.

    They stay in the input if nothing or an assistant message follows: an empty input is refused, and what one
    turn sent as an item the next must send as one too.
    """
    for at, message in enumerate(messages):
        kept = replay_state(message, RESPONSES) if message.role is _SYSTEM else EMPTY
        if kept.get("instructions"):
            return at + 1
        if (
            message.role is not _SYSTEM
            or "item" in kept
            or any(type(block) is ChangeBlock for block in message.content)
        ):
            return 0 if at == 0 or model_saw(messages, at - 1) else at
    return 0


def _has_hint(message: Message) -> bool:
    return any(getattr(block, "cache", None) is not None for block in message.content)


def _mark(
    elements: list[MessageItems],
    hints: list[tuple[int, int]],
    messages: Sequence[Message],
    model: str,
    calls: Mapping[str, Mapping[str, Any]],
) -> list[Loss]:
    """Write the last hints' messages again with markers, as many as a request takes."""
    marked: dict[int, list[int]] = {}
    for at, block in hints[-MAX_MARKERS:]:
        marked.setdefault(at, []).append(block)
    for at, blocks in marked.items():
        elements[at] = to_wire_elements(messages[at], model, blocks, calls)
    return [
        BlockLoss(block, messages[at].content[block].type, "dropped", "more cache hints than fit", "form").at(
            at, messages[at].id
        )
        for at, block in hints[:-MAX_MARKERS]
    ]


def to_wire_elements(
    message: Message,
    model: str,
    marked: Sequence[int] = (),
    calls: Mapping[str, Mapping[str, Any]] = EMPTY,
    *,
    plain: bool = False,
) -> MessageItems:
    """Write a message's items.

    Args:
        message: a projected message.
        model: decides whether the message's own state goes back.
        marked: blocks that get a cache marker.
        calls: earlier calls whose results are not plain results of functions, by id.
        plain: the service takes reasoning back that has no encrypted form.
    """
    role = message.role
    if role is _ASSISTANT:
        items, losses = to_wire_assistant(message, model, plain=plain)
        special = tuple([item for item in items if _has_own_result(item)])
        return MessageItems(dumps(items)[1:-1], tuple(losses), (), special)
    if role is _TOOL:
        return to_wire_results(message, marked, calls)
    return _input_message(message, "developer" if role is _SYSTEM else "user", marked)


def _has_own_result(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")  # an item that came broken may have none
    return kind == "custom_tool_call" or kind in FORMS or (kind == "function_call" and "caller" in item)


def _sent_item(message: Message, name: str = "item") -> Mapping[str, Any]:
    """Return the members, such as ids, that an item of a caller's request has in addition to its content."""
    found: Mapping[str, Any] = replay_state(message, RESPONSES).get(name) or EMPTY
    return found


def _marked_part(part: Mapping[str, Any], hint: CacheHint | None) -> dict[str, Any]:
    """Return a part with a marker: this wire keeps for 30 minutes or 12 hours, so an hour becomes 12."""
    hour = hint is not None and hint.ttl == "1h"
    return {**part, "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"} if hour else {"mode": "explicit"}}


def _input_message(message: Message, role: str, marked: Sequence[int]) -> MessageItems:
    losses: list[BlockLoss] = []
    items: list[Any] = []
    parts: list[Any] = []
    hints = []
    sent, change = _sent_item(message), _sent_item(message, "change")
    for at, block in enumerate(message.content):
        part = to_wire_part(block, at, losses)
        if part is not None:
            parts.extend(_context(block, at, losses))
            parts.append(_marked_part(part, getattr(block, "cache", None)) if at in marked else part)
            if getattr(block, "cache", None) is not None:
                hints.append(at)
        elif isinstance(block, ChangeBlock):
            items.extend(_message(role, parts, sent))
            beside = [each for each in message.content if each.type == "opaque" and each.kind == "additional_tools"]
            own = [tool for each in beside for tool in each.data["tools"]]
            items.extend(to_wire_change(block, at, losses, change, own))
            parts = []
        elif block.type == "opaque":  # a separate input item, such as an approval
            items.extend(_message(role, parts, sent))
            items.extend([] if change and items[-1:] == [change] else [block.data])  # that item holds these too
            parts = []
        else:
            losses.append(
                BlockLoss(at, block.type, "dropped", f"a {role} message on this wire cannot hold {block.type}")
            )
            if (note := note_for(message, at, losses)) is not None:
                parts.append({"type": "input_text", "text": note})
    if role == "user" and not items and not parts:  # without the turn the model would be asked something else
        parts = [{"type": "input_text", "text": placeholder_text(losses)}]
    items.extend(_message(role, parts, sent))
    return MessageItems(dumps(items)[1:-1], tuple(losses), tuple(hints))


def _message(role: str, parts: list[Any], sent: Mapping[str, Any]) -> list[Any]:
    return [{"type": "message", "role": role, "content": parts, **sent}] if parts else []


def _context(block: ContentBlock, at: int, losses: list[BlockLoss]) -> Iterable[dict[str, Any]]:
    """Yield a document's context as text before it; asking for citations has no form here."""
    if not isinstance(block, DocumentBlock):
        return
    if block.cite:
        losses.append(
            BlockLoss(at, block.type, "rewritten", "this wire cannot ask for citations; the document is kept")
        )
    if block.context:
        losses.append(BlockLoss(at, block.type, "rewritten", "the document's context is sent as text before it"))
        yield {"type": "input_text", "text": block.context}


def _system_text(message: Message) -> str:
    """Return a system message as one string."""
    return "\n\n".join([block.text for block in message.content if isinstance(block, TextBlock)])


def to_wire_part(block: ContentBlock, at: int, losses: list[BlockLoss]) -> dict[str, Any] | None:
    """Return the input part of a block, or None if this wire has none for it."""
    if isinstance(block, TextBlock):
        return {"type": "input_text", "text": block.text}
    if isinstance(block, ImageBlock):
        return _image(block, at, losses)
    if isinstance(block, DocumentBlock):
        return _file(block)
    if isinstance(block, OpaqueBlock) and block.kind.startswith("input_") and isinstance(block.data, Mapping):
        return dict(block.data)
    return None


def _image(block: ImageBlock, at: int, losses: list[BlockLoss]) -> dict[str, Any]:
    source = block.source
    if source.kind == "file_id":
        where = {"file_id": source.data}
    elif source.kind == "base64":
        where = {"image_url": f"data:{block.media_type or 'image/png'};base64,{source.data}"}
    else:
        where = {"image_url": source.data}
    return {"type": "input_image", "detail": fit_detail(block, at, IMAGE_DETAILS, losses) or "auto", **where}


def _file(block: DocumentBlock) -> dict[str, Any]:
    source = block.source
    if source.kind == "file_id":
        return {"type": "input_file", "file_id": source.data}
    if source.kind == "url":
        return {"type": "input_file", "file_url": source.data}
    name = block.title or "document" + _ENDINGS.get(block.media_type, "")
    data = f"data:{block.media_type};base64,{source.data}"
    return {"type": "input_file", "filename": name, "file_data": data}


def to_wire_results(message: Message, marked: Sequence[int], calls: Mapping[str, Mapping[str, Any]]) -> MessageItems:
    """Write the results; `calls` holds, by id, the calls whose results are not plain results of functions."""
    items: list[dict[str, Any]] = []
    losses: list[BlockLoss] = []
    hints = []
    for at, block in enumerate(message.content):
        if not isinstance(block, ToolResultBlock):
            losses.append(BlockLoss(at, block.type, "dropped", "a tool message holds results only"))
            continue
        call = calls.get(block.tool_use_id, EMPTY)
        sent = dict(_sent_item(message))
        if call.get("type") in FORMS:
            parts = [made for part in block.content if (made := to_wire_part(part, at, losses)) is not None]
            first, *others = to_wire_client_result(call, block, parts, at, losses)
            items += [{**first, **sent}, *others]
            continue
        kind = RESULTS[call.get("type") == "custom_tool_call"]
        output = _result_output(block, at, losses)
        if sent.pop("listed", False) and isinstance(output, str) and block.content:
            output = [{"type": "input_text", "text": output}]
        if at in marked and isinstance(output, list):
            output[-1] = _marked_part(output[-1], block.cache)
        if block.cache is not None and isinstance(output, list):
            hints.append(at)
        caller = {"caller": call["caller"]} if "caller" in call else {}
        items.append({"type": kind, "call_id": block.tool_use_id, "output": output, **caller, **sent})
    return MessageItems(dumps(items)[1:-1], tuple(losses), tuple(hints))


def _result_output(block: ToolResultBlock, at: int, losses: list[BlockLoss]) -> str | list[Any]:
    """One text is a string; anything more is a list of parts, and so is what may be marked."""
    parts = []
    for part in block.content:
        made = to_wire_part(part, at, losses)
        if made is None:
            losses.append(BlockLoss(at, part.type, "dropped", f"a result on this wire cannot hold {part.type}"))
        else:
            parts.append(made)
    if len(parts) > 1:  # blank text beside other parts is left out: a part of blank text may be refused
        parts = [part for part in parts if _has_content(part)] or parts[:1]
    if block.is_error:
        losses.append(BlockLoss(at, block.type, "rewritten", "this wire has no error flag; the text says it"))
        if parts and parts[0]["type"] == "input_text":
            parts[0]["text"] = _ERROR_PREFIX + parts[0]["text"]
        else:
            parts.insert(0, {"type": "input_text", "text": _ERROR_PREFIX.rstrip()})
    plain = len(parts) <= 1 and all(part["type"] == "input_text" for part in parts)
    if plain and (block.cache is None or not parts or not _has_content(parts[0])):
        return parts[0]["text"] if parts else ""
    return parts


def _has_content(part: Mapping[str, Any]) -> bool:
    return part["type"] != "input_text" or bool(part["text"].strip())


def to_wire_assistant(message: Message, model: str, *, plain: bool = False) -> tuple[list[Any], Sequence[BlockLoss]]:
    """Return items and losses: items of the same model unchanged, others by content.

    Items of a caller's request are sent unchanged. If reasoning cannot be sent back, the ids of the items that belong
    to it are left out as well (WIRE.md, Responses order).
    """
    origin = message.metadata.origin
    kept = replay_state(message, RESPONSES)
    rows = kept.get("items")
    same_model = rows is not None and origin is not None and _stem(origin.model) == _stem(model)
    matches = match_items(rows, message.content) if rows else None
    why = _broken(matches, plain) if same_model else "it was made by another model"
    if matches is not None and kept.get("sent") and why in (None, _UNKEPT):
        return [to_wire_item(match) for match in matches], ()
    if matches is not None and why is None:
        whole, losses = _replayed(matches, message)
        return [to_wire_item(match) for match in whole], losses
    return _by_content(message, rows or (), matches if same_model else None, why or _EDITED)


@cache
def _stem(model: str) -> str:
    return _SNAPSHOT.sub("", model)


def _broken(matches: list[ItemMatch] | None, plain: bool) -> str | None:
    """Return why the items may not go back unchanged, or None: an edit, or reasoning without its encrypted form."""
    if matches is None or not all(match.same for match in matches):
        return _EDITED
    reasoning = [match for match in matches if match.item.get("type") == "reasoning"]
    return None if plain or all(seal_of(match.item) for match in reasoning) else _UNKEPT


def _replayed(matches: list[ItemMatch], message: Message) -> tuple[list[ItemMatch], list[BlockLoss]]:
    """Leave out calls that the service ran, reasoning at the end, and reasoning that says nothing.

    Reasoning without the item it led to is refused (WIRE.md, Responses order).
    """
    kept = [match for match in matches if match.item.get("type") != SERVER_CALL and not _is_empty(match)]
    losses = [
        BlockLoss(at, block.type, "dropped", _RAN)
        for at, block in enumerate(message.content)
        if isinstance(block, OpaqueBlock) and block.kind == SERVER_CALL
    ]
    end = len(kept)
    while end and kept[end - 1].item.get("type") == "reasoning" and kept[end - 1].item.get("format") not in _LAST:
        end -= 1
    dangling = {id(block) for match in kept[end:] for block in match.blocks}
    why = "reasoning cannot go back: no item followed it"
    losses += [BlockLoss(at, one.type, "dropped", why) for at, one in enumerate(message.content) if id(one) in dangling]
    return kept[:end], losses


def _is_empty(match: ItemMatch) -> bool:
    """Return whether an item is reasoning without text and encrypted form: only its id, which is stored nowhere."""
    if match.item.get("type") != "reasoning" or seal_of(match.item):
        return False
    return not any(isinstance(block, ThinkingBlock) and block.text for block in match.blocks)


def _by_content(
    message: Message, rows: Any, matches: list[ItemMatch] | None, why: str
) -> tuple[list[Any], list[BlockLoss]]:
    """Write the blocks without ids and reasoning."""
    kept = [row["item"] for row in rows]
    calls = {call_id_of(item): item for item in kept if is_call(item)}
    phases = _phases(matches)
    reasoned = any(item.get("type") == "reasoning" for item in kept)
    items: list[Any] = []
    losses: list[BlockLoss] = []
    for at, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            _add_text(items, block, phases.get(id(block)))
            if block.citations:
                reason = f"citations cannot go back: {why}; the text is kept"
                losses.append(BlockLoss(at, block.type, "rewritten", reason))
        elif isinstance(block, ToolUseBlock):
            item = calls.get(block.provider_id) or {}
            if item.get("type") in FORMS and FORMS[item["type"]].needs_id:
                why_plain = f"a call of {block.name} goes back by its id only, which does not go back: {why}"
                losses.append(BlockLoss(at, block.type, "rewritten", why_plain))
            items.append(_call(block, item, programs=items))
        elif isinstance(block, OpaqueBlock) and block.kind != SERVER_CALL and not (reasoned and "id" in block.data):
            items.append(block.data)
        elif isinstance(block, ImageBlock):
            reason = f"a picture goes back by its id only; it is sent as the user's: {why}"
            losses.append(BlockLoss(at, block.type, "rewritten", reason))
            items += _message("user", [{"type": "input_text", "text": _PICTURE}, _image(block, at, losses)], EMPTY)
        else:
            losses.append(BlockLoss(at, block.type, "dropped", _reason(block, why)))
    return items, losses


def _reason(block: ContentBlock, why: str) -> str:
    if isinstance(block, (ThinkingBlock, RedactedThinkingBlock)):
        return f"reasoning cannot go back: {why}"
    if isinstance(block, OpaqueBlock) and block.kind == SERVER_CALL:
        return _RAN
    if isinstance(block, OpaqueBlock):
        return f"{block.kind} is bound to reasoning that does not go back: {why}"
    return f"an assistant message on this wire cannot hold {block.type}"


def _phases(matches: list[ItemMatch] | None) -> dict[int, str]:
    """Return the phase by block: it shows the model what was commentary (WIRE.md, Reasoning items)."""
    return {
        id(block): match.item["phase"]
        for match in matches or ()
        for block in match.blocks
        if match.item.get("phase") is not None
    }


def _add_text(items: list[Any], block: TextBlock, phase: str | None) -> None:
    part = {"type": "output_text", "text": block.text}
    last = items[-1] if items else {}
    if last.get("type") == "message" and "id" not in last and last.get("phase") == phase:
        last["content"].append(part)
        return
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
    if phase is not None:
        item["phase"] = phase
    items.append(item)


def _call(block: ToolUseBlock, item: Mapping[str, Any], programs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a call without its item id; a namespace belongs to the tool's name, so it stays.

    The program that made the call is named if it is among the items before, `programs`.
    """
    caller = item.get("caller") or EMPTY
    named = any(one.get("call_id") == caller.get("caller_id") for one in programs if one.get("type") == "program")
    said = {"caller": caller} if named else {}
    if item.get("type") in FORMS and not FORMS[item["type"]].needs_id:
        made = new_call(item["type"], block.id, block.input)
        kept = {name: item[name] for name in ("status", "environment") if name in item}
        return made | kept | said
    kind = "custom_tool_call" if item.get("type") == "custom_tool_call" else "function_call"
    held = {"type": kind, "call_id": block.id, "name": call_name(item, block)}
    if item.get("namespace"):
        held["namespace"] = item["namespace"]
    return held | call_arguments(item, block) | said
