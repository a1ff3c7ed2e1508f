"""Agents whose lines or threads hold messages of Anthropic's form: Factory Droid, Cursor, Amp; read only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import orjson

from interlingua.types import Message, Role, StopReason, Usage
from interlingua_transcripts.formats.messages_shaped import listed_blocks, read_turn
from interlingua_transcripts.imported import ImportedIds, count_of, time_of
from interlingua_transcripts.system import DocumentFormat, SessionFormat, list_files
from interlingua_transcripts.transcript import MessageGroup, ReadPlan

_ROLES = ("user", "assistant")


def _turn(value: Any) -> Mapping[str, Any] | None:
    """Return the message of a line; None without one."""
    body = value.get("message") if isinstance(value, dict) else None
    return body if isinstance(body, dict) and isinstance(body.get("content"), str | list) else None


class FactoryDroid(SessionFormat):
    """Factory's Droid: a `session_start` line, then messages; other lines are kept beside."""

    name = "factory-droid"
    title = "Factory Droid"
    writable = False

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise the first line."""
        first = head[0]
        if not isinstance(first, dict) or first.get("type") != "session_start" or "id" not in first:
            return None
        return str(first.get("version", ""))

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in file order."""
        start = values[0] if isinstance(values[0], dict) else {}
        plan = ReadPlan(session_id=str(start.get("id", "")), version=str(start.get("version", "")))
        plan.title, plan.cwd = _word(start, "sessionTitle", "title"), _word(start, "cwd")
        for at, value in enumerate(values):
            body = _turn(value)
            if body is not None and value.get("type") == "message" and body.get("role") in _ROLES:
                plan.groups.append(MessageGroup(f"{value.get('id', '')}#{at}", (at,)))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message, and one for each result."""
        body = values[0]["message"]
        facts = None
        if body["role"] == "assistant" and isinstance(body.get("model"), str):
            facts = {"provider": "unknown", "model": f"unknown:{body['model']}"}
        return list(read_turn(Role(body["role"]), body["content"], ids, time_of(values[0].get("timestamp")), facts))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the sessions of every folder."""
        yield from list_files(home / ".factory" / "sessions", "*/*.jsonl")


def _word(value: Mapping[str, Any], *names: str) -> str | None:
    return next((found for name in names if isinstance(found := value.get(name), str) and found), None)


class CursorCli(SessionFormat):
    """Cursor's transcripts of its agents: lines `{"role", "message"}`, without ids or times."""

    name = "cursor"
    title = "Cursor (agent transcripts)"
    writable = False

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise lines with a role beside the message and nothing that names a session."""
        lines = [line for line in head if isinstance(line, dict)]
        talk = [line for line in lines if _is_cursor(line)]
        return "" if talk and all(_is_cursor(line) or line.get("type") == "turn_ended" for line in lines) else None

    def kind_of(self, value: Any) -> str:
        """Return the role, or the type of a line without one."""
        return str(value.get("role") or value.get("type", "")) if isinstance(value, dict) else type(value).__name__

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in file order."""
        found = [at for at, value in enumerate(values) if isinstance(value, dict) and _is_cursor(value)]
        return ReadPlan(session_id="", groups=[MessageGroup(str(at), (at,)) for at in found])

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message, and one for each result."""
        value = values[0]
        return list(read_turn(Role(value["role"]), value["message"]["content"], ids, time_of(None)))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the transcripts of every project."""
        for pattern in ("*/agent-transcripts/*.jsonl", "*/agent-transcripts/*/*.jsonl"):
            yield from list_files(home / ".cursor" / "projects", pattern)


def _is_cursor(line: Mapping[str, Any]) -> bool:
    return line.get("role") in _ROLES and _turn(line) is not None and not {"type", "uuid", "sessionId"} & set(line)


class Amp(DocumentFormat):
    """Amp's threads: one JSON document each."""

    name = "amp"
    title = "Amp"
    items = "messages"
    writable = False
    beside: ClassVar[Sequence[str]] = ("content.run", "userState", "meta", "state", "usage", "content.complete")

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise a thread by its id."""
        document = head[0]
        if not isinstance(document, dict) or not str(document.get("id", "")).startswith("T-"):
            return None
        return str(document.get("v", "")) if isinstance(document.get("messages"), list) else None

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role, or `thread`."""
        return f"message/{value['role']}" if isinstance(value, dict) and "role" in value else "thread"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages of users and of the model in order."""
        root = values[0] if isinstance(values[0], dict) else {}
        plan = ReadPlan(session_id=str(root.get("id", "")), version=str(root.get("v", "")), title=_word(root, "title"))
        place = ((root.get("env") or {}).get("initial") or {}).get("trees") or [{}]
        plan.cwd = (_word(place[0], "uri") or "").removeprefix("file://") or None
        started = root.get("created")
        for at, value in enumerate(values):
            if at and isinstance(value, dict) and value.get("role") in _ROLES:
                plan.groups.append(MessageGroup(f"{value.get('messageId', '')}#{at}", (at,), started))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message, and one for each result."""
        raw = values[0]
        at = time_of((raw.get("meta") or {}).get("sentAt", group.facts), time_of(group.facts))
        facts = _amp_facts(raw) if raw["role"] == "assistant" else None
        content = [_amp_block(block) for block in listed_blocks(raw.get("content"))]
        return list(read_turn(Role(raw["role"]), content, ids, at, facts))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the threads of this machine."""
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        yield from list_files(data / "amp" / "threads", "T-*.json")


def _amp_block(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a block as the Messages API has it: a result has `toolUseID` and its outcome in `run`."""
    if raw.get("type") != "tool_result" or not isinstance(raw.get("run"), dict):
        return raw
    run = raw["run"]
    output = run.get("result", run.get("error", run.get("progress")))
    inner = output.get("output", output) if isinstance(output, dict) else output
    text = inner if isinstance(inner, str) else "" if inner is None else orjson.dumps(inner).decode()
    failed = run.get("status") in ("error", "cancelled", "rejected-by-user")
    return {"type": "tool_result", "tool_use_id": raw["toolUseID"], "content": text, "is_error": failed}


def _amp_facts(raw: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    usage = raw.get("usage")
    if isinstance(usage, dict):
        if isinstance(usage.get("model"), str):
            facts |= {"provider": "unknown", "model": f"unknown:{usage['model']}"}
        facts["usage"] = Usage(
            input_tokens=count_of(usage.get("inputTokens")), output_tokens=count_of(usage.get("outputTokens"))
        )
    state = raw.get("state")
    if isinstance(state, dict) and isinstance(state.get("stopReason"), str):
        word = state["stopReason"]
        known = {"tool_use": StopReason.TOOL_USE, "end_turn": StopReason.END_TURN}
        facts |= {"stop_reason": known.get(word, StopReason.OTHER), "stop_reason_raw": word}
    return facts


factory_droid = FactoryDroid()
cursor = CursorCli()
amp = Amp()
