"""Codex CLI rollouts: JSON Lines of Responses items, what the screen showed, and settings (WIRE.md, Codex)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import orjson

from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    MessageStatus,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    read_tool_input,
)
from interlingua_transcripts.formats.codex_plan import (
    BY_MODEL,
    CALLS,
    ENVELOPES,
    OPAQUE,
    OUTPUTS,
    Planner,
    change_repeats,
    instructions_of,
    item_of,
    outline_of,
    own_items,
    replacing_items,
)
from interlingua_transcripts.imported import ImportedIds, count_of, time_of, to_iso, uuid_of
from interlingua_transcripts.system import SessionFormat, list_files
from interlingua_transcripts.transcript import Conversation, MessageGroup, ReadPlan, SessionPlace, Written

_USER, _ASSISTANT, _SYSTEM, _TOOL = Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL
_LOCAL_SHELL = "local_shell"
_TEXTS = {"input_text", "output_text", "text"}
_VERSION = "0.140.0"  # of the program, as new files say it
_ORIGINATOR = "interlingua"


class Codex(SessionFormat):
    """Codex' rollout files: with envelopes, and the older lines that are items themselves."""

    name = "codex"
    title = "Codex"
    lacks: ClassVar[Set[str]] = frozenset(
        {"model name", "mark of a failed result", "mark of a stopped answer", "error message", "cost", "stop reason"}
    )

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the program's version; `legacy` for lines without envelopes."""
        lines = [line for line in head if isinstance(line, dict)]
        inside = [line for line in lines if line.get("type") in ENVELOPES and isinstance(line.get("payload"), dict)]
        if inside:
            metas = [line["payload"] for line in inside if line["type"] == "session_meta"]
            return str(metas[0].get("cli_version", "")) if metas else ""
        first = lines[0] if lines else {}
        if "id" in first and "timestamp" in first and "type" not in first and "messages" not in first:
            items = [line.get("type") for line in lines[1:]]
            return "legacy" if "instructions" in first or {"message", *BY_MODEL} & set(items) else None
        return None

    def kind_of(self, value: Any) -> str:
        """Return the envelope's type and the payload's."""
        if not isinstance(value, dict):
            return "not an object"
        payload = value.get("payload")
        if not isinstance(payload, dict):
            return str(value.get("type") or value.get("record_type") or "header")
        inner = payload.get("type")
        return f"{value.get('type')}/{inner}" if isinstance(inner, str) else str(value.get("type"))

    def outline(self, value: Any) -> Any:
        """Return the kind of an entry; settings and events with what they say of the session."""
        return outline_of(value)

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Put items together that one answer brought: until outputs or a user's message came."""
        return Planner(values).plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message of an item, or of all items of one answer."""
        at = time_of(values[0].get("timestamp"))
        kind = values[0].get("type")
        if kind == "session_meta":
            text = instructions_of(values[0]["payload"]) or ""
            return [ids.make_message(_SYSTEM, [TextBlock(text=text)], at, {})]
        if kind == "compacted":
            return _compacted(values[0], group.facts["runs"], at, ids)
        items = [item for value in values if (item := item_of(value)) is not None]
        role, blocks, facts = _said(items, ids)
        if role is _ASSISTANT:
            facts = _answer_facts(group.facts or {})
        return [ids.make_message(role, blocks, at, facts)] if blocks else []

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield session_meta, then the items of each message, with the events that lists and screens read."""
        if not conversation.before:
            first = next(iter(conversation.messages), None)
            meta: dict[str, Any] = {
                "id": conversation.session_id or uuid_of("session"),
                "timestamp": to_iso(conversation.created_at),
                "cwd": conversation.cwd or "/",
                "originator": _ORIGINATOR,
                "cli_version": _VERSION,
                "source": "cli",
                "model_provider": "openai",
            }
            said: tuple[str, ...] = ()
            if first is not None and first.role is Role.SYSTEM:
                meta["base_instructions"] = {"text": first.text}
                said = (first.id,)
            yield Written(_envelope("session_meta", meta, to_iso(conversation.created_at)), said)
        for number, message in enumerate(conversation.messages):
            at = to_iso(message.created_at)
            if message.role is Role.SYSTEM and number == 0 and not conversation.before:
                continue  # the header said it
            for kind, payload in _payloads(message, conversation):
                yield Written(_envelope(kind, payload, at), (message.id,))

    def change_repeats(
        self, entries: Sequence[bytes], groups: Sequence[MessageGroup], changes: Mapping[int, bytes | None]
    ) -> dict[int, bytes | None]:
        """Change the items of compactions that repeat changed messages."""
        return change_repeats(entries, groups, changes)

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace:
        """Return a rollout's path: a folder for each day, the time and the id in the name."""
        base = Path(environ.get("CODEX_HOME") or home / ".codex") / "sessions"
        name = f"rollout-{created_at:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"
        return SessionPlace(base / f"{created_at:%Y/%m/%d}" / name, ("codex", "resume", session_id))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the rollouts, the archived ones as well."""
        base = Path(environ.get("CODEX_HOME") or home / ".codex")
        for folder in ("sessions", "archived_sessions"):
            yield from list_files(base / folder, "**/rollout-*.jsonl")


# -- reading ----------------------------------------------------------------------------------------------------------
def _said(items: Sequence[Mapping[str, Any]], ids: ImportedIds) -> tuple[Role, list[ContentBlock], dict[str, Any]]:
    """Return role, blocks and facts of the message that these items make."""
    first = items[0]
    kind = first.get("type")
    if kind in OUTPUTS:
        result = _result(first, ids)
        return _TOOL, [result], {"parent_tool_use_id": result.tool_use_id}
    if kind in BY_MODEL or first.get("role") == "assistant":
        return _ASSISTANT, [block for item in items for block in _blocks(item, ids)], {}
    return _SYSTEM if first.get("role") in ("developer", "system") else _USER, _blocks(first, ids), {}


def _compacted(
    value: Mapping[str, Any], runs: Sequence[Sequence[int]], at: datetime, ids: ImportedIds
) -> list[Message]:
    """Return the messages that a compaction itself brought: summaries, shortened messages, encrypted items."""
    if not replacing_items(value):
        text = value["payload"].get("message")
        return [ids.make_message(_USER, [TextBlock(text=text)], at, {})] if text else []
    made = []
    for items in own_items(value, runs):
        role, blocks, facts = _said(items, ids)
        blocks = blocks or [OpaqueBlock(provider="openai", kind=str(item.get("type")), data=item) for item in items]
        made.append(ids.make_message(role, blocks, at, facts))
    return made


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _answer_facts(found: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if found.get("model"):
        provider = found["provider"]
        facts |= {"provider": provider, "api": "responses", "model": f"{provider}:{found['model']}"}
    if found.get("aborted"):
        facts["status"] = MessageStatus.CANCELLED
    usage = found.get("usage")
    if isinstance(usage, dict):
        facts["usage"] = Usage(
            input_tokens=count_of(usage.get("input_tokens")),
            output_tokens=count_of(usage.get("output_tokens")),
            cached_input_tokens=count_of(usage.get("cached_input_tokens")),
            reasoning_tokens=count_of(usage.get("reasoning_output_tokens")),
        )
    return facts


def _blocks(item: Mapping[str, Any], ids: ImportedIds) -> list[ContentBlock]:
    kind = item.get("type")
    if kind == "reasoning":
        return _thinking(item)
    if kind in CALLS:
        return [_call(item, ids)]
    if kind in OPAQUE:
        return [OpaqueBlock(provider="openai", kind=str(kind), data=item)]
    content = item.get("content")
    if isinstance(content, str):
        return [TextBlock(text=content)]
    return [_part(part) for part in content or ()]


def _part(part: Mapping[str, Any]) -> ContentBlock:
    kind = part.get("type")
    if kind in _TEXTS:
        return TextBlock(text=part["text"])
    url = part.get("image_url")
    if kind == "input_image" and isinstance(url, str):
        if url.startswith("data:") and ";base64," in url:
            media_type, _, data = url[5:].partition(";base64,")
            return ImageBlock(source=MediaSource(kind="base64", data=data), media_type=media_type)
        return ImageBlock(source=MediaSource(kind="url", data=url), media_type="")
    return OpaqueBlock(provider="openai", kind=str(kind), data=part)


def _thinking(item: Mapping[str, Any]) -> list[ContentBlock]:
    text = "\n\n".join([*_texts(item.get("summary")), *_texts(item.get("content"))])
    encrypted = item.get("encrypted_content") or None
    if text:
        return [ThinkingBlock(text=text, signature=encrypted)]
    return [RedactedThinkingBlock(data=encrypted)] if encrypted else []


def _call(item: Mapping[str, Any], ids: ImportedIds) -> ToolUseBlock:
    issued = str(item.get("call_id") or item["id"])
    call = ids.call(issued)
    if item["type"] == "local_shell_call":
        return ToolUseBlock(id=call, provider_id=issued, name=_LOCAL_SHELL, input=item["action"])
    name = str(item["name"])
    if item["type"] == "custom_tool_call":  # free text, which other wires know as one argument only
        return ToolUseBlock(id=call, provider_id=issued, name=name, input={"input": item.get("input") or ""})
    raw = item["arguments"] if isinstance(item.get("arguments"), str) else orjson.dumps(item.get("arguments")).decode()
    value, error = read_tool_input(raw)
    return ToolUseBlock(id=call, provider_id=issued, name=name, input=value, raw_input=raw, parse_error=error)


def _result(item: Mapping[str, Any], ids: ImportedIds) -> ToolResultBlock:
    output = item.get("output")
    if isinstance(output, dict) and "content" in output:
        output = output["content"]
    if isinstance(output, list):
        blocks = [_part(part) for part in output]
    else:
        text = output if isinstance(output, str) else "" if output is None else orjson.dumps(output).decode()
        blocks = [TextBlock(text=text)]
    return ToolResultBlock(tool_use_id=ids.call(str(item["call_id"])), content=tuple(blocks))


# -- writing ----------------------------------------------------------------------------------------------------------
def _envelope(kind: str, payload: Mapping[str, Any], at: str) -> dict[str, Any]:
    return {"timestamp": at, "type": kind, "payload": payload}


def _payloads(message: Message, conversation: Conversation) -> Iterator[tuple[str, dict[str, Any]]]:
    if message.role is Role.TOOL:
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                yield "response_item", _written_result(block, conversation)
        return
    if message.role is not Role.ASSISTANT:
        by_user = message.role is Role.USER
        parts = [part for block in message.content if (part := _written_part(block, "input_text")) is not None]
        yield "response_item", {"type": "message", "role": "user" if by_user else "developer", "content": parts}
        if by_user and message.id not in conversation.spread:
            yield "event_msg", {"type": "user_message", "message": message.text, "kind": "plain"}
        return
    for block in message.content:
        yield from _written_items(block, new=message.id not in conversation.spread)
    usage = message.metadata.usage
    if usage is not None and usage.input_tokens is not None:
        yield "event_msg", {"type": "token_count", "info": {"last_token_usage": _usage_body(usage)}}


def _written_items(block: ContentBlock, *, new: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(block, TextBlock):
        if new:
            yield "event_msg", {"type": "agent_message", "message": block.text}
        parts = [{"type": "output_text", "text": block.text}]
        yield "response_item", {"type": "message", "role": "assistant", "content": parts}
    elif isinstance(block, ThinkingBlock):
        summary = [{"type": "summary_text", "text": block.text}]
        made = {"type": "reasoning", "summary": summary, "content": None, "encrypted_content": block.signature}
        yield "response_item", made
    elif isinstance(block, RedactedThinkingBlock):
        yield "response_item", {"type": "reasoning", "summary": [], "content": None, "encrypted_content": block.data}
    elif isinstance(block, ToolUseBlock):
        yield "response_item", _written_call(block)
    elif isinstance(block, OpaqueBlock) and block.provider == "openai" and block.kind in OPAQUE:
        yield "response_item", dict(block.data)


def _written_call(block: ToolUseBlock) -> dict[str, Any]:
    own = block.provider_id or block.id
    if block.name == _LOCAL_SHELL and "command" in block.input:
        return {"type": "local_shell_call", "call_id": own, "status": "completed", "action": block.input}
    if _is_custom(block):
        text = block.input["input"]
        return {"type": "custom_tool_call", "status": "completed", "call_id": own, "name": block.name, "input": text}
    return {"type": "function_call", "name": block.name, "arguments": block.input_json, "call_id": own}


def _written_result(block: ToolResultBlock, conversation: Conversation) -> dict[str, Any]:
    own, call = conversation.issued_id(block.tool_use_id), conversation.calls.get(block.tool_use_id)
    parts = [part for inner in block.content if (part := _written_part(inner, "input_text")) is not None]
    output: Any = parts
    if all(part.get("type") == "input_text" for part in parts):
        output = "\n".join([part["text"] for part in parts])
    kind = "custom_tool_call_output" if call is not None and _is_custom(call) else "function_call_output"
    return {"type": kind, "call_id": own, "output": output}


def _is_custom(block: ToolUseBlock) -> bool:
    return block.raw_input is None and list(block.input) == ["input"] and isinstance(block.input["input"], str)


def _written_part(block: ContentBlock, text: str) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return {"type": text, "text": block.text}
    if isinstance(block, ImageBlock) and block.source.kind in ("base64", "url"):
        embedded = block.source.kind == "base64"
        url = f"data:{block.media_type};base64,{block.source.data}" if embedded else block.source.data
        return {"type": "input_image", "image_url": url}
    return dict(block.data) if isinstance(block, OpaqueBlock) and block.provider == "openai" else None


def _usage_body(usage: Usage) -> dict[str, Any]:
    counts = {
        "input_tokens": usage.input_tokens or 0,
        "cached_input_tokens": usage.cached_input_tokens or 0,
        "output_tokens": usage.output_tokens or 0,
        "reasoning_output_tokens": usage.reasoning_tokens or 0,
    }
    return {**counts, "total_tokens": counts["input_tokens"] + counts["output_tokens"]}


codex = Codex()
