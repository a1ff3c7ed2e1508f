"""Qwen Code's chats: lines with parents, whose messages have Gemini's form; read only (WIRE.md, Qwen Code)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from interlingua.types import ContentBlock, Message, Role, Usage
from interlingua_transcripts.formats.gemini import is_answer, read_parts, read_result
from interlingua_transcripts.imported import ImportedIds, count_of, time_of
from interlingua_transcripts.system import SessionFormat, list_files
from interlingua_transcripts.transcript import MessageGroup, Note, ReadPlan

_TALK = {"user", "assistant", "tool_result"}
_KINDS = {*_TALK, "system"}
_UNSAID = {"realtime_message", "code_mode_tool_result"}  # of which its own model never gets the message


class QwenCode(SessionFormat):
    """Qwen Code's session files."""

    name = "qwen-code"
    title = "Qwen Code"
    writable = False
    links = ("uuid", "parentUuid")
    beside: ClassVar[Sequence[str]] = (
        "systemPayload", "toolCallResult", "isSidechain", "deliveredTurn", "message.parts.thought",
    )  # fmt: skip

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the program's version if messages have parts: Claude Code's lines have the same links."""
        lines = [line for line in head if isinstance(line, dict) and line.get("type") in _KINDS]
        own = [line for line in lines if "uuid" in line and "sessionId" in line]
        if not own or not any(is_qwen(line) for line in own):
            return None
        return next((str(line["version"]) for line in own if "version" in line), "")

    def kind_of(self, value: Any) -> str:
        """Return the type, with the subtype if there is one."""
        if not isinstance(value, dict):
            return type(value).__name__
        return f"{value.get('type')}/{value['subtype']}" if value.get("subtype") else str(value.get("type", ""))

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Walk from the last line to the first by parents; a compression's history replaces what was before it."""
        entries = {at: value for at, value in enumerate(values) if isinstance(value, dict) and "uuid" in value}
        first = next(iter(entries.values()), {})
        plan = ReadPlan(session_id=str(first.get("sessionId", "")), version=str(first.get("version", "")))
        plan.cwd = first["cwd"] if isinstance(first.get("cwd"), str) else None
        path = _path(entries)
        begins = 0
        for at in sorted(entries):
            value = entries[at]
            payload = value.get("systemPayload")
            if at not in path:
                plan.branches[at] = "another branch"
            elif value.get("subtype") == "custom_title" and isinstance(payload, dict):
                plan.title = str(payload.get("customTitle") or "") or plan.title
            elif value.get("subtype") == "chat_compression" and isinstance(payload, dict):
                begins = len(plan.groups)
                plan.groups.append(MessageGroup(f"{value['uuid']}#{at}", (at,)))
            elif is_qwen(value) and value.get("type") in _TALK and value.get("subtype") not in _UNSAID:
                plan.groups.append(MessageGroup(f"{value['uuid']}#{at}", (at,)))
        if begins:
            plan.notes.append(Note(None, "a compressed history repeats the messages that it kept"))
            plan.context = list(range(begins, len(plan.groups)))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the results in a line, each a message, then its other parts; of a compression, its whole history."""
        value = values[0]
        at = time_of(value.get("timestamp"))
        if value.get("subtype") == "chat_compression":
            history = value["systemPayload"].get("compressedHistory")
            return [one for content in history or () for one in _messages(content, {}, at, ids)]
        return list(_messages(value["message"], value, at, ids))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the chats of every project."""
        own = Path(environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME") or home / ".qwen")
        yield from list_files(own / "projects", "*/chats/*.jsonl")


def is_qwen(value: Mapping[str, Any]) -> bool:
    """Tell whether a line holds a message of Gemini's form."""
    message = value.get("message")
    return isinstance(message, dict) and isinstance(message.get("parts"), list)


def _path(entries: Mapping[int, Mapping[str, Any]]) -> set[int]:
    """Return the lines from the newest to the root; a lost parent ends at the line before."""
    by_id = {str(value["uuid"]): at for at, value in entries.items()}
    places = sorted(entries)
    found: set[int] = set()
    step: int | None = places[-1] if places else None
    while step is not None and step not in found:
        found.add(step)
        parent = entries[step].get("parentUuid")
        above = by_id.get(str(parent)) if parent else None
        if parent and above is None:
            earlier = [at for at in places if at < step]
            above = earlier[-1] if earlier else None
        step = above
    return found


def _messages(content: Mapping[str, Any], line: Mapping[str, Any], at: datetime, ids: ImportedIds) -> Iterator[Message]:
    parts = [part for part in content.get("parts") or () if isinstance(part, dict)]
    outcome = line.get("toolCallResult")
    failed = isinstance(outcome, dict) and outcome.get("status") in ("error", "cancelled")
    for part in parts:
        if is_answer(part):
            result = read_result(part, ids, failed=failed)
            yield ids.make_message(Role.TOOL, [result], at, {"parent_tool_use_id": result.tool_use_id})
    blocks: list[ContentBlock] = read_parts([part for part in parts if part and not is_answer(part)], ids)
    if not blocks:
        return
    by_model = content.get("role") == "model"
    facts = _answer_facts(line) if by_model else {}
    yield ids.make_message(Role.ASSISTANT if by_model else Role.USER, blocks, at, facts)


def _answer_facts(line: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if isinstance(line.get("model"), str):
        facts |= {"provider": "unknown", "model": f"unknown:{line['model']}"}
    usage = line.get("usageMetadata")
    if isinstance(usage, dict):
        written, thoughts = count_of(usage.get("candidatesTokenCount")), count_of(usage.get("thoughtsTokenCount"))
        facts["usage"] = Usage(
            input_tokens=count_of(usage.get("promptTokenCount")),
            output_tokens=written,
            cached_input_tokens=count_of(usage.get("cachedContentTokenCount")),
            reasoning_tokens=thoughts,
        )
    return facts


qwen_code = QwenCode()
