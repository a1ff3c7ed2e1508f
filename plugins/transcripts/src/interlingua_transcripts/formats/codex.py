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
from interlingua_transcripts.imported import ImportedIds, count_of, time_of, to_iso, uuid_of
from interlingua_transcripts.system import SessionFormat, pick
from interlingua_transcripts.transcript import Conversation, MessageGroup, Note, ReadPlan, SessionPlace, Written

_USER, _ASSISTANT, _SYSTEM, _TOOL = Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL
_ENVELOPES = {
    "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "rollout_reference",
    "inter_agent_communication", "inter_agent_communication_metadata",
}  # fmt: skip
_OPAQUE = {
    "web_search_call", "image_generation_call", "tool_search_call", "tool_search_output", "compaction",
    "compaction_summary", "context_compaction",
}  # fmt: skip
_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output"}
_BY_MODEL = {"reasoning", *_CALLS, *_OPAQUE}
_ITEMS = {"message", *_BY_MODEL, *_OUTPUTS}
_LOCAL_SHELL = "local_shell"
_TEXTS = {"input_text", "output_text", "text"}
_SUMMARY = "Another language model started to solve this problem and produced a summary of its thinking process:\n"
_VERSION = "0.140.0"  # of the program, as new files say it
_PLANNED = ("type", "info", "model", "num_turns", "thread_name")  # what a plan needs of settings and events
_ORIGINATOR = "interlingua"


class Codex(SessionFormat):
    """Codex' rollout files: with envelopes, and the older lines that are items themselves."""

    name = "codex"
    title = "Codex"
    lacks: ClassVar[Set[str]] = frozenset(
        {"model name", "mark of a failed result", "mark of a stopped answer", "error message", "cost"}
    )

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the program's version; `legacy` for lines without envelopes."""
        lines = [line for line in head if isinstance(line, dict)]
        inside = [line for line in lines if line.get("type") in _ENVELOPES and isinstance(line.get("payload"), dict)]
        if inside:
            metas = [line["payload"] for line in inside if line["type"] == "session_meta"]
            return str(metas[0].get("cli_version", "")) if metas else ""
        first = lines[0] if lines else {}
        if "id" in first and "timestamp" in first and "type" not in first and "messages" not in first:
            items = [line.get("type") for line in lines[1:]]
            return "legacy" if "instructions" in first or {"message", *_BY_MODEL} & set(items) else None
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
        item = _item(value)
        if item is None:
            payload = value.get("payload") if isinstance(value, dict) else None
            if not isinstance(payload, dict) or value.get("type") == "session_meta":
                return value
            return {"type": value.get("type"), "payload": pick(payload, *_PLANNED)}
        small = pick(item, "type", "role")
        return small if item is value else {"type": "response_item", "payload": small}

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Put items together that one answer brought: until outputs or a user's message came."""
        return _Planner(values).plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message of an item, or of all items of one answer."""
        items = [item for value in values if (item := _item(value)) is not None]
        at = time_of(values[0].get("timestamp"))
        first: Mapping[str, Any] = items[0] if items else {}
        facts: dict[str, Any] = {}
        role = _USER
        blocks: list[ContentBlock] = []
        kind = first.get("type")
        if not items:
            role, blocks = _of_settings(values[0])
        elif kind in _OUTPUTS:
            result = _result(first, ids)
            role, blocks, facts = _TOOL, [result], {"parent_tool_use_id": result.tool_use_id}
        elif kind in _BY_MODEL or first.get("role") == "assistant":
            role, facts = _ASSISTANT, _answer_facts(group.facts or {})
            blocks = [block for item in items for block in _blocks(item, ids)]
        else:
            role = _SYSTEM if first.get("role") in ("developer", "system") else _USER
            blocks = _blocks(first, ids)
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

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace:
        """Return a rollout's path: a folder for each day, the time and the id in the name."""
        base = Path(environ.get("CODEX_HOME") or home / ".codex") / "sessions"
        name = f"rollout-{created_at:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"
        return SessionPlace(base / f"{created_at:%Y/%m/%d}" / name, ("codex", "resume", session_id))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        """Yield the rollouts, the archived ones as well."""
        base = Path(environ.get("CODEX_HOME") or home / ".codex")
        for folder in ("sessions", "archived_sessions"):
            yield from (base / folder).glob("**/rollout-*.jsonl")


# -- grouping ---------------------------------------------------------------------------------------------------------
def _item(value: Any) -> Mapping[str, Any] | None:
    """Return the Responses item of an entry, None where it holds none."""
    if not isinstance(value, dict):
        return None
    if value.get("type") == "response_item":
        payload = value.get("payload")
        return payload if isinstance(payload, dict) else None
    if "payload" in value or value.get("type") in _ENVELOPES:
        return None
    return value if value.get("type") in _ITEMS else None


class _Planner:
    """One pass over the entries: which of them make up which message."""

    def __init__(self, values: Sequence[Any]) -> None:
        head: Mapping[str, Any] = next((value for value in values if isinstance(value, dict)), {})
        meta = head.get("payload") if head.get("type") == "session_meta" else head
        if not isinstance(meta, dict) or "payload" in meta or _item(meta) is not None:  # the header is broken
            meta = {}
        self._meta: Mapping[str, Any] = meta
        self.plan = ReadPlan(
            session_id=str(self._meta.get("id") or ""),
            version=str(self._meta.get("cli_version") or ("" if "payload" in head else "legacy")),
            cwd=self._meta.get("cwd") if isinstance(self._meta.get("cwd"), str) else None,
        )
        self._model: str | None = None
        self._provider = str(self._meta.get("model_provider") or "openai")
        self._answer: list[int] = []
        self._answer_model: str | None = None  # as the settings before its first item name it
        self._last: int | None = None  # the group of the newest answer
        self._total: Any = None
        self._turns: list[int] = []  # the group each user turn begins with
        for at, value in enumerate(values):
            if isinstance(value, dict):
                self._take(at, value)
        self._close()

    def _take(self, at: int, value: Mapping[str, Any]) -> None:
        item = _item(value)
        if item is not None:
            self._take_item(at, item)
            return
        kind, payload = value.get("type"), value.get("payload")
        if kind == "compacted":
            self._close()
            self._add(at, f"compacted{at}")
            self.plan.context = [len(self.plan.groups) - 1]
        elif not isinstance(payload, dict):
            return
        elif kind == "event_msg":
            self._take_event(at, str(payload.get("type")), payload)
        elif kind == "turn_context":
            self._model = payload.get("model") or self._model
        elif kind == "session_meta" and not self.plan.groups and _instructions(payload):
            self._add(at, f"prompt{at}")

    def _take_item(self, at: int, item: Mapping[str, Any]) -> None:
        kind = item.get("type", "message" if "role" in item else None)
        if kind in _BY_MODEL or (kind == "message" and item.get("role") == "assistant"):
            if not self._answer:
                self._answer_model = self._model
            self._answer.append(at)
        elif kind in _OUTPUTS or kind == "message":
            self._close()
            if item.get("role") == "user":
                self._turns.append(len(self.plan.groups))
            self._add(at, str(at))
        elif kind != "ghost_snapshot":
            self.plan.notes.append(Note(at, f"an item of an unknown kind {kind!r}; kept unchanged"))

    def _take_event(self, at: int, kind: str, payload: Mapping[str, Any]) -> None:
        if kind == "token_count" and isinstance(payload.get("info"), dict):
            self._close()
            total = payload["info"].get("total_token_usage")
            if self._last is not None:  # a count may repeat; it is dropped with its answer
                group = self.plan.groups[self._last]
                said = (
                    {}
                    if total is not None and total == self._total
                    else {"usage": payload["info"].get("last_token_usage")}
                )
                self.plan.groups[self._last] = MessageGroup(
                    group.key, (*group.entries, at), {**(group.facts or {}), **said}
                )
            self._total = total
        elif kind == "turn_aborted" and self._answer:
            self._close()
            if self._last is not None:
                group = self.plan.groups[self._last]
                self.plan.groups[self._last] = MessageGroup(
                    group.key, group.entries, {**(group.facts or {}), "aborted": True}
                )
        elif kind == "thread_rolled_back":
            self._roll_back(int(payload.get("num_turns") or 0))
        elif kind == "thread_name_updated" and isinstance(payload.get("thread_name"), str):
            self.plan.title = payload["thread_name"]

    def _roll_back(self, turns: int) -> None:
        self._close()
        if turns <= 0:
            return
        first = self._turns[-turns] if turns <= len(self._turns) else 0
        for group in self.plan.groups[first:]:
            self.plan.branches.update(dict.fromkeys(group.entries, "rolled back"))
        del self.plan.groups[first:]
        del self._turns[-turns:]
        self._last = None

    def _close(self) -> None:
        """End the answer that is open."""
        if not self._answer:
            return
        facts = {"model": self._answer_model, "provider": self._provider}
        entries, self._answer = tuple(self._answer), []
        self._last = len(self.plan.groups)
        self._add(entries[0], str(entries[0]), entries, facts)

    def _add(self, at: int, key: str, entries: tuple[int, ...] = (), facts: Any = None) -> None:
        if self.plan.context is not None:
            self.plan.context.append(len(self.plan.groups))
        self.plan.groups.append(MessageGroup(key, entries or (at,), facts))


def _instructions(meta: Mapping[str, Any]) -> str | None:
    found = meta.get("base_instructions")
    text = found.get("text") if isinstance(found, dict) else meta.get("instructions")
    return text if isinstance(text, str) and text else None


# -- reading ----------------------------------------------------------------------------------------------------------
def _of_settings(value: Mapping[str, Any]) -> tuple[Role, list[ContentBlock]]:
    """Return what the entries say that are no items: the instructions, and the summary of a compaction."""
    payload = value.get("payload") or {}
    if value.get("type") == "session_meta":
        return Role.SYSTEM, [TextBlock(text=_instructions(payload) or "")]
    if text := payload.get("message"):
        return Role.USER, [TextBlock(text=f"{_SUMMARY}{text}")]
    items = [item for item in payload.get("replacement_history") or () if isinstance(item, dict)]
    summaries = [item for item in items if item.get("type") in _OPAQUE]  # encrypted: no text says what was left out
    return _ASSISTANT, [OpaqueBlock(provider="openai", kind=item["type"], data=item) for item in summaries]


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
    if kind in _CALLS:
        return [_call(item, ids)]
    if kind in _OPAQUE:
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
    elif isinstance(block, OpaqueBlock) and block.provider == "openai" and block.kind in _OPAQUE:
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
