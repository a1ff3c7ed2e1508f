"""Files that hold Chat Completions messages: fine-tuning lines, SWE-agent, mini-swe-agent, Inspect AI; read only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from interlingua.types import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    read_tool_input,
)
from interlingua_transcripts.formats.messages_shaped import cline, is_messages_block, read_turn
from interlingua_transcripts.imported import EPOCH, ImportedIds, count_of, time_of
from interlingua_transcripts.system import DocumentFormat, SessionFormat
from interlingua_transcripts.transcript import MessageGroup, Note, ReadPlan

_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
_USER, _ASSISTANT, _TOOL = Role.USER, Role.ASSISTANT, Role.TOOL
_LINE_ROLES = (*_ROLES, "tool", "function")
_TEXTS = ("text", "input_text", "output_text")
# Members of other systems' messages that have a role and content as well.
_OTHERS = {"type", "uuid", "api", "stopReason", "parts", "contents", "toolCalls", "toolResults", "toolCallId"}
_STOPS = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "max_tokens": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "content_filter": StopReason.REFUSAL,
}


class ChatFineTuning(SessionFormat):
    """Lines `{"messages": [...]}`, each a separate conversation."""

    name = "chat-ft"
    title = "OpenAI chat fine-tuning"
    writable = False
    several = True

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise lines whose messages have roles and content."""
        lines = [line for line in head if line is not None]
        return "" if lines and all(_is_conversation(line) for line in lines) else None

    def kind_of(self, value: Any) -> str:
        """Return `conversation`."""
        return "conversation"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the conversations one after the other."""
        found = [at for at, value in enumerate(values) if _is_conversation(value)]
        plan = ReadPlan(session_id="", groups=[MessageGroup(str(at), (at,)) for at in found])
        if len(found) > 1:
            plan.notes.append(Note(None, f"{len(found)} conversations are in this file, one per line"))
            plan.context = [len(found) - 1]
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the messages of a line."""
        return [one for raw in values[0]["messages"] for one in read_chat_message(raw, ids)]


class _MessageList(DocumentFormat):
    """A document with a list of Chat Completions messages."""

    writable = False
    marks: Sequence[str]

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise the document by its members."""
        document = head[0]
        known = isinstance(document, dict) and all(name in document for name in self.marks)
        return "" if known and isinstance(document.get(self.items), list) else None

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role, or `document`."""
        return f"message/{value['role']}" if isinstance(value, dict) and "role" in value else "document"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in order."""
        found = [at for at, value in enumerate(values) if at and isinstance(value, dict) and "role" in value]
        return ReadPlan(session_id="", groups=[MessageGroup(str(at), (at,)) for at in found])

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message, and one for each result."""
        return read_chat_message(values[0], ids)


class SweAgent(_MessageList):
    """SWE-agent's trajectories: their `history` is the conversation."""

    name = "swe-agent"
    title = "SWE-agent"
    items = "history"
    marks = ("history", "trajectory")


class MiniSweAgent(_MessageList):
    """mini-swe-agent's trajectories."""

    name = "mini-swe-agent"
    title = "mini-swe-agent"
    items = "messages"
    marks = ("messages", "trajectory_format")


class ChatList(DocumentFormat):
    """A list of `{"role", "content"}` in the form of Chat Completions or of Messages, as many small programs write."""

    name = "chat-list"
    title = "a list of chat messages"
    items = ""
    writable = False

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise a list of messages."""
        document = head[0]
        if not isinstance(document, list) or not document or cline.detect(head) is not None:
            return None
        return "" if all(isinstance(one, dict) and one.get("role") and "content" in one for one in document) else None

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role."""
        return f"message/{value['role']}" if isinstance(value, dict) and "role" in value else "document"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in order."""
        return ReadPlan(session_id="", groups=[MessageGroup(str(at), (at,)) for at in range(1, len(values))])

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message, and one for each result."""
        return read_chat_message(values[0], ids)


class ChatLines(SessionFormat):
    """Lines `{"role", "content"}`, as many small programs write."""

    name = "chat-lines"
    title = "lines of chat messages"
    writable = False

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise lines that are Chat Completions messages and nothing else."""
        lines = [line for line in head if line is not None]
        return "" if head and head[0] is not None and all(_is_chat_line(line) for line in lines) else None

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role."""
        return f"message/{value['role']}" if isinstance(value, dict) and "role" in value else "not a message"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in order."""
        return ReadPlan(
            session_id="", groups=[MessageGroup(str(at), (at,)) for at, one in enumerate(values) if _is_chat_line(one)]
        )

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message, and one for each result."""
        return read_chat_message(values[0], ids)


class InspectAi(DocumentFormat):
    """Inspect AI's logs in JSON: each sample is a separate conversation."""

    name = "inspect"
    title = "Inspect AI"
    items = "samples"
    writable = False
    several = True

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise a log by its version, status and eval."""
        document = head[0]
        if not isinstance(document, dict) or not {"version", "status", "eval"} <= set(document):
            return None
        return str(document["version"])

    def kind_of(self, value: Any) -> str:
        """Return `sample` or `log`."""
        return "sample" if isinstance(value, dict) and "messages" in value else "log"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the samples one after the other."""
        root = values[0] if isinstance(values[0], dict) else {}
        about = root.get("eval") if isinstance(root.get("eval"), dict) else {}
        found = [at for at, value in enumerate(values) if at and isinstance(value, dict) and value.get("messages")]
        plan = ReadPlan(
            session_id=str((about or {}).get("run_id") or ""),
            version=str(root.get("version", "")),
            groups=[MessageGroup(str(at), (at,), {"model": (about or {}).get("model")}) for at in found],
            title=(about or {}).get("task"),
        )
        if len(found) > 1:
            plan.notes.append(Note(None, f"{len(found)} samples are in this log, each a separate conversation"))
            plan.context = [len(found) - 1]
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the messages of a sample; the answers' model is the log's."""
        provider, _, model = str((group.facts or {}).get("model") or "").partition("/")
        return [
            one for raw in values[0]["messages"] for one in read_chat_message(raw, ids, provider=provider, model=model)
        ]


# -- one message ------------------------------------------------------------------------------------------------------
def _is_chat_line(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("role") not in _LINE_ROLES or not _OTHERS.isdisjoint(value):
        return False
    return isinstance(value.get("content"), str) or bool(value.get("tool_calls"))


def _is_conversation(value: Any) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list) or not messages:
        return False
    return all(
        isinstance(one, dict) and "role" in one and ("content" in one or "tool_calls" in one) for one in messages
    )


def read_chat_message(
    raw: Mapping[str, Any], ids: ImportedIds, *, provider: str = "", model: str = "", at: datetime = EPOCH
) -> list[Message]:
    """Return the canonical message of one in the Chat Completions form, whatever extra members it has; none if empty.

    Content in blocks of the Messages API makes a message for each result, and one for the rest.

    Args:
        raw: the message.
        ids: source of canonical ids.
        provider: provider of an answer, "" if unknown.
        model: model of an answer; a message's own `model` wins.
        at: time of the message, unless it has its own.
    """
    role = str(raw.get("role"))
    facts: dict[str, Any] = {}
    kind = _ROLES.get(role, _USER)
    if role in ("tool", "function"):
        issued = raw.get("tool_call_id") or next(iter(raw.get("tool_call_ids") or ()), None) or raw.get("name")
        call = ids.call(str(issued))
        error = raw.get("error")
        name = raw.get("function") or raw.get("name")
        blocks: list[ContentBlock] = [
            ToolResultBlock(
                tool_use_id=call,
                content=tuple(_parts(raw.get("content"))),
                is_error=bool(error),
                tool_name=name if isinstance(name, str) else None,
            )
        ]
        kind, facts = _TOOL, {"parent_tool_use_id": call}
    else:
        facts = _answer_facts(raw, provider, model) if kind is _ASSISTANT else {}
        content = raw.get("content")
        if isinstance(content, list) and any(map(is_messages_block, content)):
            return list(read_turn(kind, content, ids, time_of(raw.get("timestamp"), at), facts))
        calls = [_call(one, ids) for one in raw.get("tool_calls") or ()]
        blocks = [*_thinking(raw), *_parts(content), *calls]
    return [ids.make_message(kind, blocks, time_of(raw.get("timestamp"), at), facts)] if blocks else []


def _thinking(raw: Mapping[str, Any]) -> list[ContentBlock]:
    text = raw.get("reasoning_content") or raw.get("reasoning") or raw.get("thinking")
    if text and isinstance(text, str):
        return [ThinkingBlock(text=text)]
    blocks = raw.get("thinking_blocks")
    return [_part(block) for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def _parts(content: Any) -> list[ContentBlock]:
    if isinstance(content, str):
        return [TextBlock(text=content)] if content else []
    return [_part(part) for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _part(part: Mapping[str, Any]) -> ContentBlock:
    kind = part.get("type")
    if kind in _TEXTS:
        return TextBlock(text=part.get("text") or "")
    if kind == "thinking":
        return ThinkingBlock(text=part.get("thinking") or "", signature=part.get("signature"))
    if kind == "think":
        return ThinkingBlock(text=part.get("think") or "", signature=part.get("encrypted"))
    if kind == "reasoning":
        if part.get("redacted"):
            return RedactedThinkingBlock(data=str(part.get("reasoning") or ""))
        return ThinkingBlock(text=str(part.get("reasoning") or ""), signature=part.get("signature"))
    url = part.get("image_url") or part.get("image")
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(url, str):
        source, media_type = _source(url)
        return ImageBlock(source=source, media_type=media_type)
    audio = part.get("input_audio")
    if isinstance(audio, dict) and isinstance(audio.get("data"), str):
        held = MediaSource(kind="base64", data=audio["data"])
        return AudioBlock(source=held, media_type=f"audio/{audio.get('format')}")
    return OpaqueBlock(provider="chat", kind=str(kind), data=part)


def _source(url: str) -> tuple[MediaSource, str]:
    if url.startswith("data:") and ";base64," in url:
        media_type, _, data = url[5:].partition(";base64,")
        return MediaSource(kind="base64", data=data), media_type
    return MediaSource(kind="url" if "://" in url else "file_ref", data=url), ""


def _call(raw: Mapping[str, Any], ids: ImportedIds) -> ToolUseBlock:
    function = raw.get("function")
    held = function if isinstance(function, dict) else raw  # some programs leave out the object `function`
    name = function if isinstance(function, str) else str(held["name"])
    given = held.get("arguments")
    issued = str(raw.get("id") or name)
    text = given if isinstance(given, str) else None
    value, error = (given, None) if isinstance(given, dict) else read_tool_input(text or "{}")
    return ToolUseBlock(
        id=ids.call(issued),
        provider_id=issued,
        name=name,
        input=value,
        raw_input=text,
        parse_error=raw.get("parse_error") or error,
    )


def _answer_facts(raw: Mapping[str, Any], provider: str, model: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    own = raw.get("model") if isinstance(raw.get("model"), str) else model
    if own:
        provider = provider or "unknown"
        facts |= {"provider": provider, "api": "chat", "model": f"{provider}:{own}"}
    word = raw.get("finish_reason") or raw.get("stop_reason")
    if isinstance(word, str):
        facts |= {"stop_reason": _STOPS.get(word, StopReason.OTHER), "stop_reason_raw": word}
    usage = raw.get("usage")
    if isinstance(usage, dict):
        facts["usage"] = Usage(
            input_tokens=count_of(usage.get("prompt_tokens")), output_tokens=count_of(usage.get("completion_tokens"))
        )
    return facts


chat_ft = ChatFineTuning()
swe_agent = SweAgent()
mini_swe_agent = MiniSweAgent()
chat_lines = ChatLines()
chat_list = ChatList()
inspect_ai = InspectAi()
