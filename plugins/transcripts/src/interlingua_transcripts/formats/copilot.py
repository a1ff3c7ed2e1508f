"""Copilot CLI's events, a line each; read only (WIRE.md, Copilot CLI)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    read_tool_input,
)
from interlingua_transcripts.imported import ImportedIds, count_of, time_of
from interlingua_transcripts.system import SessionFormat, list_files
from interlingua_transcripts.transcript import MessageGroup, ReadPlan

_TALK = {"system.message", "user.message", "assistant.message", "tool.execution_complete"}
_COMPACTED = "session.compaction_complete"
_SUMMARY = "The conversation before this was compacted. Its summary:\n\n"


class CopilotCli(SessionFormat):
    """`events.jsonl` of GitHub Copilot's command line."""

    name = "copilot"
    title = "Copilot CLI"
    writable = False
    beside: ClassVar[Sequence[str]] = (
        "data.transformedContent",  # the prompt again, with what the program adds for the model
        "data.attachments",
        "data.toolRequests.intentionSummary",
        "data.toolRequests.toolTitle",
        "data.result.detailedContent",
        "data.result.contents",
        "data.result.structuredContent",
        "data.toolTelemetry",
        "data.toolDescription",
        "data.isAutopilotContinuation",
        "data.encryptedContent",
        "data.customInstructions",
        "data.success",
        "data.sandboxed",
        "data.isUserRequested",
        "data.rte",
    )

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the program's version, if the first event starts a session of Copilot."""
        first = next((line for line in head if isinstance(line, dict)), {})
        data = first.get("data")
        if first.get("type") != "session.start" or not isinstance(data, dict) or "sessionId" not in data:
            return None
        return str(data.get("copilotVersion", ""))

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in file order; events of a subagent are a branch, and a compaction begins the context."""
        plan = ReadPlan(session_id="")
        model: str | None = None
        begins: int | None = None
        for at, value in enumerate(values):
            data = value.get("data") if isinstance(value, dict) else None
            if not isinstance(data, dict):
                continue
            kind = value.get("type")
            if kind in ("session.start", "session.resume"):
                plan.session_id = plan.session_id or str(data.get("sessionId", ""))
                plan.version = plan.version or str(data.get("copilotVersion", ""))
                about = data.get("context")
                plan.cwd = plan.cwd or (about.get("cwd") if isinstance(about, dict) else None)
            elif kind == "session.title_changed" and isinstance(data.get("title"), str):
                plan.title = data["title"]
            model = next(
                (data[name] for name in ("newModel", "selectedModel") if isinstance(data.get(name), str)), model
            )
            agent = value.get("agentId") or data.get("parentToolCallId")
            if agent is not None:
                plan.branches[at] = f"agent {agent}"
            elif kind in _TALK or (kind == _COMPACTED and data.get("summaryContent")):
                if kind == _COMPACTED:
                    begins = len(plan.groups)
                plan.groups.append(MessageGroup(str(value.get("id", at)), (at,), model))
            elif kind == "session.context_cleared":
                begins = len(plan.groups)
        _name_apart(plan)
        if begins is not None:
            plan.context = list(range(begins, len(plan.groups)))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the event's message; none if it is empty."""
        value = values[0]
        kind, data, at = value["type"], value["data"], time_of(value.get("timestamp"))
        if kind == "tool.execution_complete":
            result = _result(data, ids)
            return [ids.make_message(Role.TOOL, [result], at, {"parent_tool_use_id": result.tool_use_id})]
        blocks: list[ContentBlock] = []
        facts: dict[str, Any] = {}
        role = Role.USER
        if kind == _COMPACTED:
            blocks.append(TextBlock(text=_SUMMARY + data["summaryContent"]))
        elif kind == "assistant.message":
            role, facts = Role.ASSISTANT, _answer_facts(data, group.facts)
            if data.get("reasoningText"):
                blocks.append(ThinkingBlock(text=data["reasoningText"]))
            blocks += [TextBlock(text=data["content"])] if data.get("content") else []
            blocks += [_call(one, ids) for one in data.get("toolRequests") or ()]
        else:
            role = Role.SYSTEM if kind == "system.message" else Role.USER
            blocks += [TextBlock(text=data["content"])] if data.get("content") else []
            blocks += _images(data.get("attachments"))
        return [ids.make_message(role, blocks, at, facts)] if blocks else []

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the sessions of this machine."""
        state = Path(environ.get("COPILOT_HOME") or home / ".copilot") / "session-state"
        yield from list_files(state, "*/events.jsonl")
        yield from list_files(state, "*.jsonl")


def _name_apart(plan: ReadPlan) -> None:
    """Make the keys of groups different, if events of a broken file share an id."""
    seen: set[str] = set()
    for number, group in enumerate(plan.groups):
        if group.key in seen:
            plan.groups[number] = group._replace(key=f"{group.key}#{number}")
        seen.add(plan.groups[number].key)


def _call(raw: Mapping[str, Any], ids: ImportedIds) -> ToolUseBlock:
    issued, given = str(raw["toolCallId"]), raw.get("arguments")
    text = given if isinstance(given, str) else None
    value, error = (given, None) if isinstance(given, dict) else read_tool_input(text or "{}")
    return ToolUseBlock(
        id=ids.call(issued), provider_id=issued, name=str(raw["name"]), input=value, raw_input=text, parse_error=error
    )


def _result(data: Mapping[str, Any], ids: ImportedIds) -> ToolResultBlock:
    result, error = data.get("result"), data.get("error")
    text = result.get("content") if isinstance(result, dict) else result
    if text is None and isinstance(error, dict):
        text = error.get("message")
    blocks: list[ContentBlock] = [TextBlock(text=text if isinstance(text, str) else "")]
    if isinstance(result, dict):
        blocks += _images(result.get("binaryResultsForLlm"))
    return ToolResultBlock(
        tool_use_id=ids.call(str(data["toolCallId"])), content=tuple(blocks), is_error=data.get("success") is False
    )


def _images(listed: Any) -> Iterator[ImageBlock]:
    """Yield the pictures among attachments or binary results; the text that the model got lists the others."""
    for one in listed if isinstance(listed, list) else ():
        kind = one.get("mimeType") if isinstance(one, dict) else None
        if isinstance(kind, str) and kind.startswith("image/") and isinstance(one.get("data"), str):
            yield ImageBlock(source=MediaSource(kind="base64", data=one["data"]), media_type=kind)


def _answer_facts(data: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    named = data["model"] if isinstance(data.get("model"), str) else model
    facts: dict[str, Any] = {} if named is None else {"provider": "copilot", "model": f"copilot:{named}"}
    written = count_of(data.get("outputTokens"))
    return facts if written is None else {**facts, "usage": Usage(output_tokens=written)}


copilot = CopilotCli()
