"""Messages of Anthropic's form in other programs' files; Cline's and Roo Code's lists of them, read only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import attrs

from interlingua.plugins import dumps
from interlingua.types import (
    ContentBlock,
    DocumentBlock,
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
    Usage,
)
from interlingua_transcripts.imported import ImportedIds, count_of, time_of, usd_of
from interlingua_transcripts.system import DocumentFormat, list_files
from interlingua_transcripts.transcript import MessageGroup, ReadPlan

_RESULT = "tool_result"
_OWN_KINDS = {"tool_use", _RESULT, "redacted_thinking"}
_ROLES = ("user", "assistant")


def listed_blocks(content: Any) -> list[Mapping[str, Any]]:
    """Return the blocks of a message's content, which may be a string."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [raw for raw in content if isinstance(raw, dict)] if isinstance(content, list) else []


def is_messages_block(raw: Any) -> bool:
    """Tell whether a block is of the Messages API and of no other: a call, a result, a picture with its source."""
    if not isinstance(raw, dict):
        return False
    kind = raw.get("type")
    return kind in _OWN_KINDS or (kind in ("image", "document") and isinstance(raw.get("source"), dict))


def read_turn(
    role: Role, content: Any, ids: ImportedIds, at: datetime, facts: Mapping[str, Any] | None = None
) -> Iterator[Message]:
    """Yield the results in a message's content, each a message, then its other blocks as one.

    Args:
        role: role of the message.
        content: a string or blocks.
        ids: source of canonical ids.
        at: when it was said.
        facts: fields of an answer's metadata.
    """
    rest: list[ContentBlock] = []
    for raw in listed_blocks(content):
        if raw.get("type") == _RESULT:
            result = read_result(raw, ids)
            yield ids.make_message(Role.TOOL, [result], at, {"parent_tool_use_id": result.tool_use_id})
        else:
            rest.append(read_block(raw, ids))
    if rest:
        yield ids.make_message(role, rest, at, facts)


def read_block(raw: Mapping[str, Any], ids: ImportedIds) -> ContentBlock:
    """Return a block other than a result; one of an unknown kind is kept unchanged."""
    kind = raw.get("type")
    if kind == "text":
        return TextBlock(text=raw["text"])
    if kind == "thinking":
        return ThinkingBlock(text=raw["thinking"], signature=raw.get("signature") or None)
    if kind == "redacted_thinking":
        return RedactedThinkingBlock(data=raw["data"])
    if kind == "tool_use":
        given = raw.get("input")
        value = given if isinstance(given, dict) else {}
        issued = None if raw.get("id") is None else str(raw["id"])
        own = ids.call(f"{raw['name']} {dumps(value).decode()}" if issued is None else issued)
        return ToolUseBlock(id=own, provider_id=issued, name=str(raw["name"]), input=value)
    if kind in ("image", "document") and isinstance(raw.get("source"), dict):
        source = raw["source"]
        made = DocumentBlock if kind == "document" else ImageBlock
        if source.get("type") == "base64":
            held = MediaSource(kind="base64", data=source["data"])
            return made(source=held, media_type=source.get("media_type") or "")
        if source.get("type") == "url":
            return made(source=MediaSource(kind="url", data=source["url"]), media_type="")
    return OpaqueBlock(provider="anthropic", kind=str(kind), data=raw)


def read_result(raw: Mapping[str, Any], ids: ImportedIds) -> ToolResultBlock:
    """Return a result of the call `tool_use_id`."""
    blocks = [read_block(part, ids) for part in listed_blocks(raw.get("content"))]
    return ToolResultBlock(
        tool_use_id=ids.call(str(raw["tool_use_id"])), content=tuple(blocks), is_error=raw.get("is_error") is True
    )


# -- Cline, Roo Code ---------------------------------------------------------------------------------------------------
_CLINE_MARKS = {"modelInfo", "metrics"}
_ROO_MARKS = {"condenseId", "condenseParent", "truncationId", "truncationParent", "isTruncationMarker", "isSummary"}
_STORES = (
    ".config/Code/User/globalStorage",
    ".vscode-server/data/User/globalStorage",
    "Library/Application Support/Code/User/globalStorage",
)
_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline")
_HISTORY = "tasks/*/api_conversation_history.json"


class Cline(DocumentFormat):
    """`api_conversation_history.json` of Cline and of Roo Code, which came from it."""

    name = "cline"
    title = "Cline, Roo Code"
    items = ""
    writable = False
    beside: ClassVar[Sequence[str]] = ("isSummary", "isTruncationMarker", "type", "modelInfo", "metrics")

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise the list by members of its messages, or by the tags around a task and its surroundings."""
        document = head[0]
        if not isinstance(document, list) or not document or not all(map(_is_stored, document)):
            return None
        members = {name for one in document for name in one}
        if members & _ROO_MARKS or any(one.get("type") == "reasoning" for one in document):
            return "roo"
        if members & _CLINE_MARKS:
            return "cline"
        asked = " ".join([str(raw.get("text")) for raw in listed_blocks(document[0].get("content"))])
        return "" if asked.startswith("<task>") or "<environment_details>" in asked else None

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role, or `reasoning`."""
        if not isinstance(value, dict):
            return "list"
        return "reasoning" if value.get("type") == "reasoning" else f"message/{value.get('role')}"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in order; the context leaves out what a summary or a truncation hides."""
        found = [at for at, value in enumerate(values) if at and _is_stored(value)]
        plan = ReadPlan(session_id="", groups=[MessageGroup(str(at), (at,)) for at in found])
        there = {values[at].get(name) for at in found for name in ("condenseId", "truncationId")} - {None}
        shown = [
            number
            for number, at in enumerate(found)
            if not there & {values[at].get("condenseParent"), values[at].get("truncationParent")}
        ]
        plan.context = [*shown] if len(shown) < len(found) else None
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message, and one for each result."""
        raw = values[0]
        at = time_of(raw.get("ts"))
        thought = _reasoning(raw)
        if raw.get("type") == "reasoning":
            return [ids.make_message(Role.ASSISTANT, [thought], at)] if thought else []
        role = Role(raw["role"])
        facts = _answer_facts(raw) if role is Role.ASSISTANT else None
        made = list(read_turn(role, raw.get("content"), ids, at, facts))
        if thought is not None and made and made[-1].role is Role.ASSISTANT:
            made[-1] = attrs.evolve(made[-1], content=(thought, *made[-1].content))
        return made

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the histories of Visual Studio Code's extensions, and of Cline's own folder."""
        for extension in _EXTENSIONS:
            for store in _STORES:
                yield from list_files(home / store / extension, _HISTORY)
        yield from list_files(home / ".cline" / "data", _HISTORY)


def _is_stored(one: Any) -> bool:
    if not isinstance(one, dict) or (one.get("role") not in _ROLES and one.get("type") != "reasoning"):
        return False
    return isinstance(one.get("content"), str | list) or one.get("type") == "reasoning"


def _reasoning(raw: Mapping[str, Any]) -> ThinkingBlock | None:
    """Return the thinking that Roo Code keeps beside the content."""
    summary = raw.get("summary")
    texts = [str(part["text"]) for part in summary if part.get("text")] if isinstance(summary, list) else []
    texts += [text for name in ("reasoning_content", "text") if isinstance(text := raw.get(name), str) and text]
    sealed = raw.get("encrypted_content")
    if not texts and not sealed:
        return None
    return ThinkingBlock(text="\n\n".join(texts), signature=sealed if isinstance(sealed, str) else None)


def _answer_facts(raw: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    about = raw.get("modelInfo")
    if isinstance(about, dict) and about.get("modelId"):
        provider = str(about.get("providerId") or "unknown")
        facts |= {"provider": provider, "model": f"{provider}:{about['modelId']}"}
    metrics = raw.get("metrics")
    if isinstance(metrics, dict):
        tokens = given if isinstance(given := metrics.get("tokens"), dict) else {}
        cost = usd_of(metrics.get("cost"))
        facts["usage"] = Usage(
            input_tokens=count_of(tokens.get("prompt")),
            output_tokens=count_of(tokens.get("completion")),
            cached_input_tokens=count_of(tokens.get("cached")),
            cost_usd=cost,
            pricing_version=None if cost is None else "source",
        )
    return facts


cline = Cline()
