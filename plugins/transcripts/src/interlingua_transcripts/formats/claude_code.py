"""Claude Code: JSON Lines of a closed program; one API message takes several lines (WIRE.md, Claude Code)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from interlingua.types import (
    ContentBlock,
    DocumentBlock,
    ErrorInfo,
    ImageBlock,
    Message,
    MessageMetadata,
    MessageStatus,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts.formats.messages_shaped import listed_blocks, read_block, read_turn
from interlingua_transcripts.formats.qwen_code import is_qwen
from interlingua_transcripts.imported import ImportedIds, count_of, time_of, to_iso, uuid_of
from interlingua_transcripts.system import SessionFormat, list_files, pick
from interlingua_transcripts.transcript import Conversation, MessageGroup, Note, ReadPlan, SessionPlace, Written
from interlingua_transcripts.values import Form, sum_form

_USER, _ASSISTANT, _TOOL = Role.USER, Role.ASSISTANT, Role.TOOL
_KINDS = {
    "user", "assistant", "system", "attachment", "progress", "summary", "file-history-snapshot", "queue-operation",
    "last-prompt", "custom-title", "ai-title", "agent-name", "mode", "permission-mode", "pr-link", "worktree-state",
}  # fmt: skip
_OWN = ("uuid", "sessionId", "leafUuid", "messageId", "parentUuid")  # camelCase: what the program prints has snake_case
_TITLES = {"custom-title": "customTitle", "agent-name": "agentName", "ai-title": "aiTitle", "summary": "summary"}
_PLANNED = {
    "type", "uuid", "parentUuid", "logicalParentUuid", "leafUuid", "isSidechain", "sessionId", "session_id", "version",
    "cwd", "subtype", *_TITLES.values(),
}  # fmt: skip  # the fields of an entry that a plan needs, in addition to its message's ids
_STOPS = {
    "end_turn": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "tool_use": StopReason.TOOL_USE,
    "pause_turn": StopReason.PAUSE_TURN,
    "refusal": StopReason.REFUSAL,
}
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_WRITTEN = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_PAIR = 2  # lines, of which one would name the other
_SYNTHETIC = "<synthetic>"  # made by the program; no model was asked
_RESULTS = "tool_result"
_LINKED = ("tool_use", _RESULTS)  # blocks of one id belong together
_VERSION = "2.1.0"  # of the program, as new files say it


class ClaudeCode(SessionFormat):
    """Claude Code's session files."""

    name = "claude-code"
    title = "Claude Code"
    lacks: ClassVar[Set[str]] = frozenset({
        "system prompt", "mark of a stopped answer", "error message", "cost",
    })  # fmt: skip
    beside: ClassVar[Sequence[str]] = (
        "toolUseResult",
        "planContent",
        "isMeta",
        "isSidechain",
        "isCompactSummary",
        "isVisibleInTranscriptOnly",
    )
    links = ("uuid", "parentUuid")
    forms: ClassVar[Mapping[str, Form]] = {
        "usage.input_tokens": sum_form("a message counts cached tokens as input, too", *_INPUT),
        "cache_creation.ephemeral_5m_input_tokens": sum_form("the written tokens without those of an hour", *_WRITTEN),
    }

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the program's version, or `stream-json` for what it prints."""
        lines = [line for line in head if isinstance(line, dict) and line.get("type") in _KINDS]
        if not any(name in line for line in lines for name in _OWN) or any(map(is_qwen, lines)):
            return None
        if any("session_id" in line for line in lines) and not any("sessionId" in line for line in lines):
            return "stream-json"  # what the program prints on request
        talk = ("user", "assistant")
        own = [line for line in lines if line["type"] not in talk or isinstance(line.get("message"), dict)]
        own = [line for line in own if line["type"] != "system" or "uuid" in line]  # Factory's printed lines have none
        return next((str(line["version"]) for line in own if "version" in line), "") if own else None

    def kind_of(self, value: Any) -> str:
        """Return the type, with the subtype if there is one."""
        if not isinstance(value, dict):
            return "not an object"
        inner = value.get("attachment") or value.get("data")
        sub = value.get("subtype") or (inner.get("type") if isinstance(inner, dict) else None)
        return f"{value.get('type')}/{sub}" if isinstance(sub, str) else str(value.get("type"))

    def outline(self, value: Any) -> Any:
        """Return an entry's links, and the ids of its message and blocks."""
        if not isinstance(value, dict):
            return value
        small = {name: item for name, item in value.items() if name in _PLANNED}
        if isinstance(message := value.get("message"), dict):
            blocks = [raw for raw in listed_blocks(message.get("content")) if raw.get("type") in _LINKED]
            small["message"] = {
                "id": message.get("id"),
                "content": [pick(raw, "type", "id", "tool_use_id") for raw in blocks],
            }
        if _queued(value):
            small["attachment"] = value["attachment"]
        return small

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Find the conversation's lines and put each API message's lines together."""
        entries = {at: value for at, value in enumerate(values) if isinstance(value, dict)}
        chain = _Chain(entries)
        names = (entry.get("sessionId") or entry.get("session_id") for entry in reversed(entries.values()))
        session = next((name for name in names if isinstance(name, str)), "")
        plan = ReadPlan(
            session_id=session,
            version=next((str(entry["version"]) for entry in entries.values() if entry.get("version")), ""),
            title=_title(entries.values()),
            cwd=next((entry["cwd"] for entry in entries.values() if isinstance(entry.get("cwd"), str)), None),
        )
        active = chain.conversation(plan.notes)
        plan.branches = {at: "off the active branch" for at in chain.lines if at not in active}
        _group(sorted(active), entries, plan)
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return one message of all lines of an answer; of a user's line, its results and its other content."""
        first = values[0]
        at = time_of(first.get("timestamp"))
        if first.get("type") == "assistant":
            blocks, facts = _answer(values, ids)
            return [ids.make_message(_ASSISTANT, blocks, at, facts)]
        return list(read_turn(Role.USER, _content(first), ids, at))

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield the lines: one for each block of an answer, one for its calls' results, one for a user's message."""
        last = _last_line(conversation.branch)
        linked = _is_linked(conversation.branch)
        parent = last.get("uuid") if linked else None
        for value in conversation.branch:  # the program's own lines below it
            if parent is None or not isinstance(value, dict):
                continue
            if value.get("parentUuid") == parent and not _is_talk(value):
                parent = value.get("uuid", parent)
        beside = {name: last[name] for name in ("isSidechain", "agentId") if name in last}
        results: list[Message] = []
        for message in conversation.messages:
            if message.role is Role.TOOL and conversation.spread.get(message.id) is None:
                results.append(message)
                continue
            if results:
                line = _line(results[0], parent, conversation, _results_content(results, conversation)) | beside
                yield Written(line, tuple(one.id for one in results))
                parent, results = (line["uuid"] if linked else None), []
            for number, body in enumerate(_bodies(message, conversation)):
                line = _line(message, parent, conversation, body, number) | beside
                yield Written(line, (message.id,))
                parent = line["uuid"] if linked else None
        if results:
            line = _line(results[0], parent, conversation, _results_content(results, conversation)) | beside
            yield Written(line, tuple(one.id for one in results))
            parent = line["uuid"] if linked else None
        lines = (value for value in reversed(conversation.before) if isinstance(value, dict))
        prompt = next((value for value in lines if value.get("type") == "last-prompt" and "leafUuid" in value), None)
        if prompt is not None and linked:  # the program continues from the line that the last of these refers to
            yield Written({**prompt, "leafUuid": parent})

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace:
        """Return the path in the project's folder, whose name is its path with `-` for each other letter."""
        base = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        folder = re.sub(r"[^A-Za-z0-9]", "-", cwd)
        return SessionPlace(base / "projects" / folder / f"{session_id}.jsonl", ("claude", "--resume", session_id))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the sessions of every project, those of subagents left out."""
        base = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        return list_files(base / "projects", "*/*.jsonl", "agent-*")


# -- the chain --------------------------------------------------------------------------------------------------------
class _Chain:
    """Which lines make up the conversation: parents alone do not reach all of it (WIRE.md, Claude Code)."""

    def __init__(self, entries: dict[int, Any]) -> None:
        self._entries = entries
        talk = [at for at, entry in entries.items() if _is_talk(entry)]
        main = [at for at in talk if not entries[at].get("isSidechain")]
        self.lines = main or talk  # a subagent's file is all sidechain
        self._at: dict[str, int] = {}
        for at, entry in entries.items():
            if isinstance(own := entry.get("uuid"), str):
                self._at.setdefault(own, at)

    def conversation(self, notes: list[Note]) -> set[int]:
        """Return the indexes of the conversation's lines."""
        if not self.lines:
            return set()
        wanted = set(self.lines)
        if not any(_parent(self._entries[at]) for at in self.lines):  # no line is linked to another
            return wanted
        found = self._path(notes) & wanted
        return found | self._relatives(found, wanted - found)

    def _leaf(self) -> int:
        """Return the line that the program continues from: the last, or a later named line that is not above it."""
        last = self.lines[-1]
        prompts = (entry for entry in reversed(self._entries.values()) if entry.get("type") == "last-prompt")
        prompt: Mapping[str, Any] = next(prompts, {})
        leaf = self._at.get(str(prompt.get("leafUuid")))
        if leaf is None:
            return last
        seen: set[int] = set()
        step: int | None = last
        while step is not None and step not in seen:
            if step == leaf:
                return last
            seen.add(step)
            step = self._above(step)
        return leaf

    def _path(self, notes: list[Note]) -> set[int]:
        """Return the way from the leaf to the root, over lines of every kind."""
        seen: set[int] = set()
        step: int | None = self._leaf()
        while step is not None and step not in seen:
            seen.add(step)
            parent = _parent(self._entries[step])
            if parent and str(parent) not in self._at:
                notes.append(Note(step, f"its parent {parent} is not in the file; the line before it is taken"))
            step = self._above(step)
        return seen

    def _above(self, at: int) -> int | None:
        """Return the line above: the parent; if it is lost or, in old files, not named, the line before in the file."""
        entry = self._entries[at]
        parent = _parent(entry)
        above = self._at.get(str(parent)) if parent else None
        if above is None and (parent or (parent is None and "parentUuid" not in entry)):
            before = bisect_left(self.lines, at)
            above = self.lines[before - 1] if before else None
        return above

    def _relatives(self, found: set[int], left: set[int]) -> set[int]:
        """Return which lines are of the messages found, or hold the results of their calls, until there are no more."""
        by_id: dict[str, list[int]] = {}
        for at in left:
            for name in _ids_of(self._entries[at]):
                by_id.setdefault(name, []).append(at)
        reached: set[int] = set()
        open_ = list(found)
        while by_id and open_:
            for name in _ids_of(self._entries[open_.pop()]):
                near = set(by_id.pop(name, ())) - reached
                reached |= near
                open_ += near
        return reached


def _parent(entry: Mapping[str, Any]) -> Any:
    return entry.get("parentUuid") or entry.get("logicalParentUuid")


def _ids_of(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids that lines of one message, and of its calls and their results, have in common."""
    message = entry.get("message") or {}
    if entry.get("type") == "assistant" and (own := str(message.get("id") or "")):
        yield f"message {own}"
    for raw in listed_blocks(_content(entry)):
        if raw.get("type") in _LINKED:
            yield f"call {raw.get('id') or raw.get('tool_use_id')}"


def _is_talk(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("type")
    if kind in ("user", "assistant"):
        return isinstance(entry.get("message"), dict)
    return kind == "attachment" and _queued(entry) is not None


def _queued(entry: Mapping[str, Any]) -> Any:
    """Return a prompt typed while the agent worked, which may be recorded nowhere else."""
    attachment = entry.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return attachment.get("prompt") or None
    return None


def _title(entries: Iterable[Mapping[str, Any]]) -> str | None:
    found: dict[str, str] = {}
    for entry in entries:
        kind = entry.get("type")
        if isinstance(kind, str) and isinstance(title := entry.get(_TITLES.get(kind, "")), str):
            found[kind] = title
    return next((found[kind] for kind in _TITLES if kind in found), None)


def _group(lines: Sequence[int], entries: Mapping[int, Mapping[str, Any]], plan: ReadPlan) -> None:
    """Put the lines of one answer into one group, at the place of the first; the context begins at the last summary."""
    members: dict[str, list[int]] = {}
    for at in lines:
        entry = entries[at]
        own = entry["message"].get("id") if entry.get("type") == "assistant" else None
        key = str(own or entry.get("uuid") or at)
        if key in members and own is None:
            key = f"{key}#{at}"  # a line that occurs twice in the file
        members.setdefault(key, []).append(at)
    boundary = max((at for at, entry in entries.items() if entry.get("subtype") == "compact_boundary"), default=None)
    plan.groups = [MessageGroup(key, tuple(ats)) for key, ats in members.items()]
    if boundary is not None:
        plan.context = [number for number, group in enumerate(plan.groups) if group.entries[0] > boundary]


# -- reading ----------------------------------------------------------------------------------------------------------
def _content(entry: Mapping[str, Any]) -> Any:
    queued = _queued(entry)
    return (entry.get("message") or {}).get("content") if queued is None else queued


def _answer(lines: Sequence[Mapping[str, Any]], ids: ImportedIds) -> tuple[list[ContentBlock], dict[str, Any]]:
    blocks = [read_block(raw, ids) for line in lines for raw in listed_blocks(_content(line))]
    last = lines[-1]
    message = last["message"]
    model = message.get("model")
    facts: dict[str, Any] = {}
    if last.get("isApiErrorMessage"):
        facts["status"] = MessageStatus.ERROR
        facts["error"] = ErrorInfo(type="ProviderError", message=str(last.get("error") or "the service refused"))
    elif isinstance(message.get("stop_reason"), str):
        facts["stop_reason_raw"] = message["stop_reason"]
        facts["stop_reason"] = _STOPS.get(message["stop_reason"], StopReason.OTHER)
    if isinstance(model, str) and model != _SYNTHETIC:
        facts |= {"provider": "anthropic", "api": "messages", "model": f"anthropic:{model}"}
        if isinstance(message.get("usage"), dict):
            facts["usage"] = _usage(message["usage"])
    return blocks, facts


def _usage(raw: Mapping[str, Any]) -> Usage:
    plain, read, written = (
        count_of(raw.get(name)) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    split = raw.get("cache_creation")
    details = raw.get("output_tokens_details")
    tier = raw.get("service_tier")
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=count_of(raw.get("output_tokens")),
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
        cache_creation_1h_input_tokens=(
            count_of(split.get("ephemeral_1h_input_tokens")) if isinstance(split, dict) else None
        ),
        reasoning_tokens=count_of(details.get("thinking_tokens")) if isinstance(details, dict) else None,
        service_tier=tier if isinstance(tier, str) else None,
    )


# -- writing ----------------------------------------------------------------------------------------------------------
def _last_line(branch: Sequence[Any]) -> Mapping[str, Any]:
    """Return the last line that says something; a sidechain's where all are, as in a subagent's file."""
    last: Mapping[str, Any] = {}
    for value in reversed(branch):
        if isinstance(value, dict) and _is_talk(value):
            if not value.get("isSidechain"):
                return value
            last = last or value
    return last


def _is_linked(branch: Sequence[Any]) -> bool:
    """Tell whether lines name their parents; in some programs' files they do not, and the order counts."""
    count = 0
    for value in branch:
        if isinstance(value, dict) and _is_talk(value):
            count += 1
            if _parent(value):
                return True
    return count < _PAIR


def _line(
    message: Message, parent: Any, conversation: Conversation, body: Mapping[str, Any], number: int = 0
) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": conversation.cwd or "/",
        "sessionId": conversation.session_id,
        "version": _VERSION,
        "type": body["role"],
        "message": body,
        "uuid": uuid_of(f"{message.id}\0{number}"),
        "timestamp": to_iso(message.created_at),
    }


def _bodies(message: Message, conversation: Conversation) -> Iterator[dict[str, Any]]:
    """Yield the program's messages of one canonical message; an answer's blocks have a line each, or share one."""
    if message.role is Role.TOOL:
        yield _results_content([message], conversation)
        return
    kept = [block for block in message.content if not _is_refused(block, message.metadata)]
    if message.content and not kept:
        return
    blocks = [made for block in kept if (made := _written_block(block)) is not None]
    if message.role is not Role.ASSISTANT:
        plain = len(blocks) == 1 and blocks[0].get("type") == "text"
        yield {"role": "user", "content": blocks[0]["text"] if plain else blocks}
        return
    metadata = message.metadata
    usage = _usage_body(metadata.usage) if metadata.usage is not None else None
    parts = [blocks] if conversation.spread.get(message.id) == 1 or not blocks else [[block] for block in blocks]
    for number, part in enumerate(parts, 1):
        body: dict[str, Any] = {
            "id": f"msg_{message.id}",
            "type": "message",
            "role": "assistant",
            "model": (metadata.model or _SYNTHETIC).removeprefix("anthropic:"),
            "content": part,
            "stop_reason": _stop_word(metadata) if number == len(parts) else None,
            "stop_sequence": None,
        }
        if usage is not None:
            body["usage"] = usage
        yield body


def _is_refused(block: ContentBlock, metadata: MessageMetadata) -> bool:
    """Return whether a block is thinking without Claude's signature, which the service refuses in a request."""
    if not isinstance(block, ThinkingBlock | RedactedThinkingBlock):
        return False
    by_claude = metadata.provider == "anthropic" or "claude" in (metadata.model or "")
    return not by_claude or (isinstance(block, ThinkingBlock) and not block.signature)


def _stop_word(metadata: MessageMetadata) -> str | None:
    if metadata.stop_reason is None:
        return None
    words = {reason: word for word, reason in _STOPS.items()}
    return words.get(metadata.stop_reason, metadata.stop_reason_raw or "end_turn")


def _results_content(messages: Sequence[Message], conversation: Conversation) -> dict[str, Any]:
    results = [block for message in messages for block in message.content if isinstance(block, ToolResultBlock)]
    return {"role": "user", "content": [_written_result(block, conversation) for block in results]}


def _written_result(block: ToolResultBlock, conversation: Conversation) -> dict[str, Any]:
    parts = [found for part in block.content if (found := _written_block(part)) is not None]
    plain = len(parts) == 1 and parts[0].get("type") == "text"
    made: dict[str, Any] = {
        "tool_use_id": conversation.issued_id(block.tool_use_id),
        "type": _RESULTS,
        "content": parts[0]["text"] if plain else parts,
    }
    if block.is_error:
        made["is_error"] = True
    return made


def _written_block(block: ContentBlock) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ThinkingBlock):
        return {"type": "thinking", "thinking": block.text, "signature": block.signature or ""}
    if isinstance(block, RedactedThinkingBlock):
        return {"type": "redacted_thinking", "data": block.data}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_use", "id": block.provider_id or block.id, "name": block.name, "input": block.input}
    if isinstance(block, ImageBlock | DocumentBlock):
        kind = "image" if isinstance(block, ImageBlock) else "document"
        if block.source.kind == "base64":
            source = {"type": "base64", "media_type": block.media_type, "data": block.source.data}
            return {"type": kind, "source": source}
        if block.source.kind == "url":
            return {"type": kind, "source": {"type": "url", "url": block.source.data}}
    return dict(block.data) if isinstance(block, OpaqueBlock) and block.provider == "anthropic" else None


def _usage_body(usage: Usage) -> dict[str, Any]:
    read, written = usage.cached_input_tokens, usage.cache_creation_input_tokens
    long = usage.cache_creation_1h_input_tokens
    body: dict[str, Any] = {"input_tokens": (usage.input_tokens or 0) - (read or 0) - (written or 0)}
    if written is not None:
        body["cache_creation_input_tokens"] = written
    if read is not None:
        body["cache_read_input_tokens"] = read
    if long is not None:
        split = {"ephemeral_5m_input_tokens": (written or 0) - long, "ephemeral_1h_input_tokens": long}
        body["cache_creation"] = split
    body["output_tokens"] = usage.output_tokens or 0
    if usage.service_tier is not None:
        body["service_tier"] = usage.service_tier
    if usage.reasoning_tokens is not None:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return body


claude_code = ClaudeCode()
