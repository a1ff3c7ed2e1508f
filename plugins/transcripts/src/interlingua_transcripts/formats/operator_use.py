"""Operator-Use and its successor Tau: pi's tree in snake_case, several pictures in one block."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from interlingua.types import (
    AudioBlock,
    ContentBlock,
    ErrorInfo,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    MessageStatus,
    OpaqueBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts.imported import ImportedIds, cost_parts, count_of, short_id, time_of, usd_of, uuid_of
from interlingua_transcripts.system import SessionFormat, list_files
from interlingua_transcripts.transcript import Conversation, MessageGroup, Note, ReadPlan, Written
from interlingua_transcripts.values import Form

_ENTRIES = {
    "message", "thinking_level_change", "model_change", "label", "leaf", "custom", "custom_message", "session_info",
    "compaction", "branch_summary",
}  # fmt: skip
_ROLES = {
    "system", "user", "assistant", "tool", "custom", "branch_summary", "compaction_summary", "skill_invocation",
    "template_invocation", "terminal_execution",
}  # fmt: skip
_UNSENT = {"custom", "skill_invocation", "template_invocation"}
_STOPS = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "content_filter": StopReason.REFUSAL,
}
_WORDS = {reason: word for word, reason in _STOPS.items()}
_SUMMARY = "<context-summary>\n{}\n</context-summary>"
_MEDIA = {"image": ("images",), "audio": ("audio", "audios")}
_VERSION = 3


def _input_total(value: Any, usage: Mapping[str, Any]) -> Sequence[Any] | None:
    read = 0 if usage.get("input_tokens_include_cache_read") is True else usage.get("cache_read_tokens") or 0
    return [value + read + (usage.get("cache_write_tokens") or 0)]


class OperatorUse(SessionFormat):
    """Operator-Use's and Tau's session files; lines that are messages themselves are read as well."""

    name = "operator-use"
    title = "Operator-Use"
    links = ("id", "parent_id")
    forms: ClassVar[Mapping[str, Form]] = {
        "usage.input_tokens": Form("a message counts cached tokens as input, too", _input_total),
    }

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the header's version; `flat` for messages without entries around them."""
        lines = [line for line in head if isinstance(line, dict)]
        if not lines:
            return None
        first = lines[0]
        if first.get("type") == "session" and isinstance(first.get("timestamp"), int | float):
            return str(first.get("version", _VERSION)) if "createdAt" not in first else None
        if any(line.get("type") in _ENTRIES and "parent_id" in line for line in lines):
            return ""
        return "flat" if "type" not in first and first.get("role") in _ROLES and "contents" in first else None

    def kind_of(self, value: Any) -> str:
        """Return the entry's type and the message's role."""
        if not isinstance(value, dict):
            return "not an object"
        kind = value.get("type")
        message = value.get("message") if kind == "message" else value if kind is None else None
        return f"message/{message.get('role')}" if isinstance(message, dict) else str(kind)

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Walk from the leaf to the root."""
        entries = {at: value for at, value in enumerate(values) if isinstance(value, dict)}
        header: Mapping[str, Any] = next(iter(entries.values()), {})
        plan = ReadPlan(session_id="", version="flat" if "contents" in header else "", cwd=None)
        if header.get("type") == "session":
            plan = ReadPlan(
                session_id=str(header.get("id", "")),
                version=str(header.get("version", _VERSION)),
                cwd=header.get("cwd") if isinstance(header.get("cwd"), str) else None,
            )
        path = _path(entries, plan)
        model: tuple[str, str] | None = None
        by_id: dict[str, int] = {}
        boundary: tuple[int, str] | None = None
        for at in path:
            entry = entries[at]
            kind = entry.get("type", "message")
            by_id[str(entry.get("id"))] = len(plan.groups)
            if kind == "model_change":
                model = (str(entry.get("provider_id") or "unknown"), str(entry.get("model_id") or ""))
            if kind == "compaction":
                boundary = (len(plan.groups), str(entry.get("first_kept_entry_id")))
            body = entry.get("message", entry) if kind == "message" else entry
            if kind == "message" and isinstance(body, dict) and body.get("role") == "compaction_summary":
                boundary = (len(plan.groups), str(entry.get("first_kept_entry_id")))
            if kind in ("message", "compaction", "branch_summary") and isinstance(body, dict) and _is_sent(body):
                plan.groups.append(MessageGroup(str(entry.get("id", at)), (at,), {"model": model}))
            elif kind == "session_info":
                plan.title = entry.get("name")
        on_path = set(path)
        plan.branches = {
            at: "off the active branch"
            for at, entry in entries.items()
            if at not in on_path and entry.get("type") in _ENTRIES - {"leaf"}
        }
        if boundary is not None:
            own, first = boundary
            plan.context = [own, *range(by_id.get(first, own), own), *range(own + 1, len(plan.groups))]
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message of an entry; a batch of results is one message for each."""
        entry = values[0]
        kind = entry.get("type", "message")
        body = entry.get("message", entry) if kind == "message" else entry
        at = time_of(body.get("timestamp"), time_of(entry.get("timestamp")))

        def message(role: Role, blocks: Sequence[ContentBlock], **facts: Any) -> Message:
            return ids.make_message(role, blocks, at, facts)

        if kind in ("compaction", "branch_summary"):
            return [message(Role.USER, [TextBlock(text=_SUMMARY.format(entry.get("summary") or ""))])]
        contents = body.get("contents", body.get("content")) or []
        contents = [{"type": "text", "content": contents}] if isinstance(contents, str) else contents
        results = [_result(raw, ids) for raw in contents if raw.get("type") == "tool_result"]
        blocks = [block for raw in contents if raw.get("type") != "tool_result" for block in _blocks(raw, ids)]
        made = [message(Role.TOOL, [block], parent_tool_use_id=block.tool_use_id) for block in results]
        role = body.get("role")
        if role == "assistant":
            made.append(message(Role.ASSISTANT, blocks, **_answer_facts(body, (group.facts or {}).get("model"))))
        elif blocks:
            made.append(message(Role.SYSTEM if role == "system" else Role.USER, blocks))
        return made

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield header and entries, each the child of the previous one; each model precedes its first answer."""
        head = next((value for value in conversation.before if isinstance(value, dict)), None)
        flat = head is not None and "contents" in head
        taken = {str(value.get("id")) for value in conversation.before if isinstance(value, dict)}
        branch = (value for value in reversed(conversation.branch) if isinstance(value, dict))
        parent = next((value["id"] for value in branch if value.get("type") in _ENTRIES), None)
        if head is None:
            yield Written(
                {
                    "type": "session",
                    "version": _VERSION,
                    "id": conversation.session_id or uuid_of("session"),
                    "timestamp": conversation.created_at.timestamp(),
                    "cwd": conversation.cwd or "/",
                }
            )
        model: str | None = None
        for messages in _batches(conversation):
            first = messages[0]
            now = first.metadata.model
            if now is not None and now != model and not flat:
                model = now
                own = short_id(f"{first.id}\0model", taken)
                taken.add(own)
                provider, _, name = now.partition(":")
                setting = {"type": "model_change", "id": own, "parent_id": parent, "provider_id": provider}
                yield Written({**setting, "timestamp": first.created_at.timestamp(), "model_id": name})
                parent = own
            body = _body(messages, conversation)
            own = short_id(first.id, taken)
            taken.add(own)
            entry = {"type": "message", "id": own, "timestamp": first.created_at.timestamp(), "parent_id": parent}
            yield Written(body if flat else {**entry, "message": body}, tuple(one.id for one in messages))
            parent = own

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield Tau's sessions."""
        return list_files(home / ".tau" / "sessions", "*/*.jsonl")


def _is_sent(body: Mapping[str, Any]) -> bool:
    """Tell whether a model sees a message: those of extensions and of the screen are a session's own."""
    return body.get("role") not in _UNSENT and not (body.get("role") == "terminal_execution" and body.get("exclude"))


def _path(entries: Mapping[int, Mapping[str, Any]], plan: ReadPlan) -> list[int]:
    tree = [at for at, entry in entries.items() if entry.get("type", "message") in _ENTRIES - {"leaf"}]
    places = {str(entries[at].get("id")): at for at in tree}
    if not any("parent_id" in entries[at] for at in tree):
        return tree
    leaf = tree[-1] if tree else None
    for entry in entries.values():
        if entry.get("type") == "leaf":
            leaf = places.get(str(entry.get("target_id")), leaf)
        elif entry.get("type") in _ENTRIES:
            leaf = places.get(str(entry.get("id")), leaf)
    found: list[int] = []
    while leaf is not None and leaf not in found:
        found.append(leaf)
        parent = entries[leaf].get("parent_id")  # absent is null: the first entry
        above = None if parent is None else places.get(str(parent))
        if parent is not None and above is None:
            above = max((at for at in tree if at < leaf), default=None)
            plan.notes.append(Note(leaf, f"its parent {parent} is not in the file; the entry before it is taken"))
        leaf = above
    return found[::-1]


# -- reading ----------------------------------------------------------------------------------------------------------
def _blocks(raw: Mapping[str, Any], ids: ImportedIds) -> list[ContentBlock]:
    kind = raw.get("type")
    if kind == "text":
        return [TextBlock(text=raw.get("content") or "")]
    if kind == "thinking":
        return [ThinkingBlock(text=raw.get("content") or "", signature=raw.get("signature") or None)]
    if kind == "tool_call":
        issued = str(raw["id"])
        value = raw.get("args") if isinstance(raw.get("args"), dict) else {}
        own: dict[str, Any] = {"id": ids.call(issued), "provider_id": issued, "kind": raw.get("kind")}
        return [ToolUseBlock(name=str(raw["name"]), input=value, **own)]
    if kind in _MEDIA:
        name = next((name for name in _MEDIA[kind] if name in raw), _MEDIA[kind][0])
        return [_medium(str(kind), str(item)) for item in raw.get(name) or ()]
    return [OpaqueBlock(provider="operator-use", kind=str(kind), data=raw)]


def _medium(kind: str, item: str) -> ContentBlock:
    if item.startswith("file:"):
        source = MediaSource(kind="file_ref", data=item.removeprefix("file:"))
    elif "://" in item[:12]:
        source = MediaSource(kind="url", data=item)
    else:
        source = MediaSource(kind="base64", data=item)
    media_type = _sniffed(item) if source.kind == "base64" else ""
    if kind == "audio":
        return AudioBlock(source=source, media_type=media_type or "audio/mpeg")
    return ImageBlock(source=source, media_type=media_type)


def _sniffed(data: str) -> str:
    """Return the media type that the first bytes tell."""
    try:
        head = base64.b64decode(data[:64], validate=True)
    except binascii.Error:
        return ""
    for start, media_type in (
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"\x89PNG", "image/png"),
        (b"GIF8", "image/gif"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
        (b"ID3", "audio/mpeg"),
        (b"\xff\xfb", "audio/mpeg"),
    ):
        if head.startswith(start):
            return media_type
    if head.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "")
    return ""


def _result(raw: Mapping[str, Any], ids: ImportedIds) -> ToolResultBlock:
    text = raw.get("content")
    return ToolResultBlock(
        tool_use_id=ids.call(str(raw["id"])),
        content=(TextBlock(text=text if isinstance(text, str) else str(text or "")),),
        is_error=bool(raw.get("is_error")),
        tool_name=raw.get("tool_name"),
        metadata=raw.get("metadata") if isinstance(raw.get("metadata"), dict) else {},
        terminate=bool(raw.get("terminate")),
    )


def _answer_facts(body: Mapping[str, Any], model: tuple[str, str] | None) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if model is not None and model[1]:
        facts |= {"provider": model[0], "model": f"{model[0]}:{model[1]}"}
    stop = body.get("stop_reason")
    if stop == "abort":
        facts["status"] = MessageStatus.CANCELLED
    elif stop == "error":
        facts["status"] = MessageStatus.ERROR
        facts["error"] = ErrorInfo(type="ProviderError", message=str(body.get("error") or ""))
    elif isinstance(stop, str):
        facts |= {"stop_reason": _STOPS.get(stop, StopReason.OTHER), "stop_reason_raw": stop}
    raw = body.get("usage")
    if isinstance(raw, dict):
        cost = raw.get("cost") if isinstance(raw.get("cost"), dict) else None
        total = None if cost is None else usd_of(cost.get("total"))
        plain, read = count_of(raw.get("input_tokens")), count_of(raw.get("cache_read_tokens"))
        written = count_of(raw.get("cache_write_tokens"))
        inside = raw.get("input_tokens_include_cache_read") is True
        facts["usage"] = Usage(
            input_tokens=None if plain is None else plain + (0 if inside else read or 0) + (written or 0),
            output_tokens=count_of(raw.get("output_tokens")),
            cached_input_tokens=read,
            cache_creation_input_tokens=written,
            cost_usd=total,
            cost=None if cost is None or total is None else cost_parts(cost, read="cache_read", write="cache_write"),
            pricing_version=None if total is None else "source",
        )
    return facts


# -- writing ----------------------------------------------------------------------------------------------------------
def _batches(conversation: Conversation) -> Iterator[list[Message]]:
    """Yield messages, the results of one answer together."""
    results: list[Message] = []
    for message in conversation.messages:
        if message.role is Role.TOOL:
            results.append(message)
            continue
        if results:
            yield results
            results = []
        yield [message]
    if results:
        yield results


def _body(messages: Sequence[Message], conversation: Conversation) -> dict[str, Any]:
    first = messages[0]
    contents = [made for message in messages for made in _contents(message, conversation)]
    body: dict[str, Any] = {
        "role": first.role.value,
        "contents": contents,
        "id": uuid_of(first.id),
        "timestamp": first.created_at.timestamp(),
    }
    metadata = first.metadata
    if first.role is Role.ASSISTANT:
        body["usage"] = _usage_body(metadata.usage or Usage())
        body["stop_reason"] = _stop_word(metadata)
        body["error"] = metadata.error.message if metadata.error is not None else ""
    return body


def _stop_word(metadata: MessageMetadata) -> str:
    if metadata.status is not MessageStatus.COMPLETE:
        return "error" if metadata.status is MessageStatus.ERROR else "abort"
    return _WORDS.get(metadata.stop_reason, "stop") if metadata.stop_reason is not None else "stop"


def _contents(message: Message, conversation: Conversation) -> Iterator[dict[str, Any]]:
    """Yield the contents; neighbouring images, and audio, share one."""
    last: dict[str, Any] | None = None
    for block in message.content:
        made = _written(block, conversation)
        if made is None:
            continue
        kind = made.get("type")
        if last is not None and kind == last.get("type") and kind in _MEDIA:
            name = _MEDIA[kind][0]
            last[name] = [*last[name], *made[name]]
            continue
        if last is not None:
            yield last
        last = made
    if last is not None:
        yield last


def _written(block: ContentBlock, conversation: Conversation) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return {"type": "text", "content": block.text}
    if isinstance(block, ThinkingBlock):
        return {"type": "thinking", "content": block.text, "signature": block.signature or ""}
    if isinstance(block, ToolUseBlock):
        own = block.provider_id or block.id
        return {"type": "tool_call", "id": own, "name": block.name, "kind": block.kind, "args": block.input}
    if isinstance(block, ToolResultBlock):
        return {
            "type": "tool_result",
            "id": conversation.issued_id(block.tool_use_id),
            "content": "\n".join([part.text for part in block.content if isinstance(part, TextBlock)]),
            "is_error": block.is_error,
            "metadata": block.metadata,
            "terminate": block.terminate,
        }
    if isinstance(block, ImageBlock | AudioBlock) and block.source.kind != "file_id":
        kind = "image" if isinstance(block, ImageBlock) else "audio"
        item = f"file:{block.source.data}" if block.source.kind == "file_ref" else block.source.data
        return {"type": kind, _MEDIA[kind][0]: [item]}
    return dict(block.data) if isinstance(block, OpaqueBlock) and block.provider == "operator-use" else None


def _usage_body(usage: Usage) -> dict[str, Any]:
    read, written = usage.cached_input_tokens or 0, usage.cache_creation_input_tokens or 0
    cost = usage.cost
    parts = [Decimal(0)] * 4 if cost is None else [cost.input, cost.output, cost.cached_read, cost.cache_write]
    names = ("input", "output", "cache_read", "cache_write")
    return {
        "input_tokens": (usage.input_tokens or 0) - read - written,
        "output_tokens": usage.output_tokens or 0,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "cost": {**dict(zip(names, map(float, parts), strict=True)), "total": float(usage.cost_usd or 0)},
    }


operator_use = OperatorUse()
