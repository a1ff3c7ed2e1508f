"""Continue's sessions: one JSON document, whose items hold a message, its context and its calls' results; read only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from interlingua.types import (
    ContentBlock,
    Message,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from interlingua_transcripts.formats.chat_shaped import read_chat_message
from interlingua_transcripts.imported import EPOCH, ImportedIds
from interlingua_transcripts.system import DocumentFormat, list_files
from interlingua_transcripts.transcript import MessageGroup, ReadPlan

_ENDED = {"done", "errored", "canceled"}


class ContinueDev(DocumentFormat):
    """The sessions of Continue's editor extensions and command line."""

    name = "continue"
    title = "Continue"
    items = "history"
    writable = False
    beside: ClassVar[Sequence[str]] = (
        "editorState", "promptLogs", "modifiers", "appliedRules", "conversationSummary", "isGatheringContext",
        "message.metadata", "message.id", "contextItems.name", "contextItems.description", "contextItems.id",
        "contextItems.uri", "contextItems.icon", "contextItems.status", "contextItems.editable", "contextItems.editing",
        "contextItems.hidden", "toolCallStates.tool", "toolCallStates.parsedArgs", "toolCallStates.processedArgs",
        "toolCallStates.toolCall", "toolCallStates.mcpUiState", "toolCallStates.output.name",
        "toolCallStates.output.description", "toolCallStates.output.icon", "toolCallStates.output.uri",
        "toolCallStates.output.status", "toolCallStates.output.hidden", "reasoning.active",
    )  # fmt: skip

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise a session by its folder and history."""
        document = head[0]
        if not isinstance(document, dict) or not {"sessionId", "workspaceDirectory"} <= set(document):
            return None
        return "" if isinstance(document.get("history"), list) else None

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role, or `session`."""
        return f"message/{value['message'].get('role')}" if _is_item(value) else "session"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the items in order."""
        root = values[0] if isinstance(values[0], dict) else {}
        found = [at for at, value in enumerate(values) if at and _is_item(value)]
        answered = frozenset([call for at in found for call in _answered(values[at])])
        return ReadPlan(
            session_id=str(root.get("sessionId", "")),
            groups=[MessageGroup(str(at), (at,), answered) for at in found],
            title=root.get("title"),
            cwd=str(root.get("workspaceDirectory") or "").removeprefix("file://") or None,
        )

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message, with what was prepended to a prompt, and one for each result of its calls."""
        item = values[0]
        raw = item["message"]
        if raw.get("role") == "tool":
            issued = str(raw.get("toolCallId"))
            if issued in group.facts:  # the state of its call holds it
                return []
            return read_chat_message({"role": "tool", "tool_call_id": issued, "content": raw.get("content")}, ids)
        if raw.get("role") == "thinking":
            return _thinking(raw, ids)
        before = list(_context(item)) if raw.get("role") == "user" else []
        content = raw.get("content")
        content = [{"type": "text", "text": content}] if isinstance(content, str) and content and before else content
        about = item.get("reasoning")
        made = read_chat_message(
            {
                "role": raw.get("role"),
                "content": [*before, *content] if before and isinstance(content, list) else content,
                "tool_calls": raw.get("toolCalls"),
                "reasoning": about.get("text") if isinstance(about, dict) else None,
                "usage": _usage_of(raw.get("usage")),
            },
            ids,
        )
        return [*made, *_results(item, ids)]

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the sessions of this machine."""
        sessions = Path(environ.get("CONTINUE_GLOBAL_DIR") or home / ".continue") / "sessions"
        return list_files(sessions, "*.json", "sessions.json")


def _is_item(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("message"), dict)


def _answered(item: Mapping[str, Any]) -> Iterator[str]:
    for state in _states(item):
        yield str(state["toolCallId"])


def _states(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the states of calls that have ended."""
    states = item.get("toolCallStates")
    for state in states if isinstance(states, list) else ():
        if isinstance(state, dict) and "toolCallId" in state and state.get("status") in _ENDED:
            yield state


def _context(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the files and other items that the program prepends to a prompt."""
    listed = item.get("contextItems")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("content"), str) and one["content"].strip():
            yield {"type": "text", "text": one["content"]}


def _results(item: Mapping[str, Any], ids: ImportedIds) -> Iterator[Message]:
    for state in _states(item):
        own = ids.call(str(state["toolCallId"]))
        output = state.get("output")
        texts = [one.get("content") for one in output if isinstance(one, dict)] if isinstance(output, list) else []
        about = state.get("toolCall")
        function = about.get("function") if isinstance(about, dict) else None
        block = ToolResultBlock(
            tool_use_id=own,
            content=tuple([TextBlock(text=text) for text in texts if isinstance(text, str)]),
            is_error=state["status"] != "done",
            tool_name=function.get("name") if isinstance(function, dict) else None,
        )
        yield ids.make_message(Role.TOOL, [block], EPOCH, {"parent_tool_use_id": own})


def _thinking(raw: Mapping[str, Any], ids: ImportedIds) -> list[Message]:
    blocks: list[ContentBlock] = []
    content = raw.get("content")
    texts = [content] if isinstance(content, str) else [part.get("text") for part in content or ()]
    text = "".join([part for part in texts if isinstance(part, str)])
    if text:
        blocks.append(ThinkingBlock(text=text, signature=raw.get("signature")))
    if raw.get("redactedThinking"):
        blocks.append(RedactedThinkingBlock(data=raw["redactedThinking"]))
    return [ids.make_message(Role.ASSISTANT, blocks, EPOCH)] if blocks else []


def _usage_of(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        return None
    return {"prompt_tokens": raw.get("promptTokens"), "completion_tokens": raw.get("completionTokens")}


continue_dev = ContinueDev()
