"""Goose's sessions: exported as one JSON document, or lines of older versions; read only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import orjson

from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_transcripts.imported import ImportedIds, time_of
from interlingua_transcripts.system import DocumentFormat, SessionFormat, list_files
from interlingua_transcripts.transcript import MessageGroup, ReadPlan

_ROLES = ("user", "assistant")
_CALLS = ("toolRequest", "frontendToolRequest")
_SHOWN_ONLY = {  # asked of the user, or told them
    "toolConfirmationRequest", "actionRequired", "systemNotification", "contextLengthExceeded",
    "summarizationRequested", "conversationCompacted",
}  # fmt: skip


class _Goose:
    """Both forms: the messages are the same."""

    writable: ClassVar[bool] = False
    beside: ClassVar[Sequence[str]] = (
        "metadata",
        *[
            f"content.{name}"
            for name in ("msg", "data", "prompt", "annotations", "_meta", "toolResult.value.structuredContent")
        ],
    )

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role, or `session`."""
        return f"message/{value['role']}" if _is_message(value) else "session"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in order; the context leaves out those that the agent no longer sees."""
        root = values[0] if isinstance(values[0], dict) and not _is_message(values[0]) else {}
        plan = ReadPlan(session_id=str(root.get("id", "")))
        plan.title = next((str(root[name]) for name in ("name", "description") if root.get(name)), None)
        plan.cwd = root["working_dir"] if isinstance(root.get("working_dir"), str) else None
        facts = _answer_facts(root)
        found = [at for at, value in enumerate(values) if _is_message(value)]
        plan.groups = [MessageGroup(f"{values[at].get('id') or ''}#{at}", (at,), facts) for at in found]
        seen = [number for number, at in enumerate(found) if _is_seen(values[at])]
        plan.context = [*seen] if len(seen) < len(found) else None
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the results of a message, each as one, then its other content."""
        raw = values[0]
        at = time_of(raw.get("created"))
        made: list[Message] = []
        rest: list[ContentBlock] = []
        for part in raw["content"]:
            if part.get("type") == "toolResponse":
                result = _result(part, ids)
                made.append(ids.make_message(Role.TOOL, [result], at, {"parent_tool_use_id": result.tool_use_id}))
            elif part.get("type") not in _SHOWN_ONLY:
                rest.append(_block(part, ids))
        if rest:
            role = Role(raw["role"])
            made.append(ids.make_message(role, rest, at, group.facts if role is Role.ASSISTANT else None))
        return made


class GooseSession(_Goose, DocumentFormat):
    """The output of `goose session export --format json`."""

    name = "goose"
    title = "Goose"
    items = "conversation"

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise a session by its folder and conversation."""
        document = head[0]
        own = isinstance(document, dict) and "working_dir" in document and "extension_data" in document
        return "" if own and isinstance(document.get("conversation"), list) else None


class GooseLines(_Goose, SessionFormat):
    """Session files from before Goose kept a database: a line about the session, then a message each."""

    name = "goose-lines"
    title = "Goose (files of older versions)"

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise the first line by its folder and count, or messages by content that only Goose has."""
        first = head[0]
        if isinstance(first, dict) and "working_dir" in first and "message_count" in first:
            return ""
        lines = [line for line in head if _is_message(line)]
        own = any(part.get("type") in (*_CALLS, "toolResponse") for line in lines for part in line["content"])
        return "" if own and all(isinstance(line.get("created"), int) for line in lines) else None

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the sessions of this machine."""
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        yield from list_files(data / "goose" / "sessions", "*.jsonl")


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("role") not in _ROLES or not isinstance(value.get("content"), list):
        return False
    return all(isinstance(part, dict) for part in value["content"])


def _is_seen(value: Mapping[str, Any]) -> bool:
    about = value.get("metadata")
    return not isinstance(about, dict) or about.get("agentVisible") is not False


def _answer_facts(root: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the model that the session is set to; a message does not name its own."""
    provider, settings = root.get("provider_name"), root.get("model_config")
    model = settings.get("model_name") if isinstance(settings, dict) else None
    if not isinstance(provider, str) or not isinstance(model, str):
        return None
    return {"provider": provider, "model": f"{provider}:{model}"}


def _block(part: Mapping[str, Any], ids: ImportedIds) -> ContentBlock:
    kind = part.get("type")
    if kind == "text":
        return TextBlock(text=part["text"])
    if kind == "image":
        return ImageBlock(source=MediaSource(kind="base64", data=part["data"]), media_type=part["mimeType"])
    if kind == "thinking":
        return ThinkingBlock(text=part["thinking"], signature=part.get("signature") or None)
    if kind == "redactedThinking":
        return RedactedThinkingBlock(data=part["data"])
    if kind in _CALLS:
        issued, made = str(part["id"]), part["toolCall"]
        value = made.get("value") if isinstance(made.get("value"), dict) else {}
        given = value.get("arguments")
        return ToolUseBlock(
            id=ids.call(issued),
            provider_id=issued,
            name=str(value.get("name") or "unknown"),
            input=given if isinstance(given, dict) else {},
            signature=part.get("thoughtSignature"),
            parse_error=None if made.get("error") is None else str(made["error"]),
        )
    return OpaqueBlock(provider="goose", kind=str(kind), data=part)


def _result(part: Mapping[str, Any], ids: ImportedIds) -> ToolResultBlock:
    outcome = part["toolResult"]
    value = outcome.get("value")
    content = value.get("content") if isinstance(value, dict) else value
    failed = outcome.get("status") == "error"
    blocks = [TextBlock(text=str(outcome.get("error") or ""))] if failed else [_content(one) for one in content or ()]
    marked = isinstance(value, dict) and value.get("isError") is True
    return ToolResultBlock(tool_use_id=ids.call(str(part["id"])), content=tuple(blocks), is_error=failed or marked)


def _content(part: Mapping[str, Any]) -> ContentBlock:
    """Return a part of a result, which has the form of the Model Context Protocol."""
    if part.get("type") == "text":
        return TextBlock(text=part["text"])
    if part.get("type") == "image":
        return ImageBlock(source=MediaSource(kind="base64", data=part["data"]), media_type=part["mimeType"])
    inside = part.get("resource")
    text = inside.get("text") if isinstance(inside, dict) else None
    return TextBlock(text=text if isinstance(text, str) else orjson.dumps(part).decode())


goose = GooseSession()
goose_lines = GooseLines()
