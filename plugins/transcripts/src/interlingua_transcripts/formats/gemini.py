"""Gemini CLI chats: one JSON document, or a log whose lines may replace and rewind (WIRE.md, Gemini CLI)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import attrs
import orjson

from interlingua.plugins import dumps
from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts.imported import ImportedIds, count_of, time_of, to_iso
from interlingua_transcripts.loading import load_entry
from interlingua_transcripts.system import DocumentFormat, list_files
from interlingua_transcripts.transcript import Conversation, MessageGroup, Note, ReadPlan, SessionPlace, Written

_SHOWN_ONLY = {"info", "error", "warning", "choice"}
_BY_MODEL = {"gemini", "model"}


class GeminiCli(DocumentFormat):
    """Gemini CLI's chats, the old documents and the new logs."""

    name = "gemini"
    title = "Gemini CLI"
    suffix = ".jsonl"
    items = "messages"
    exact = False
    results_in_calls = True
    lacks: ClassVar[Set[str]] = frozenset({
        "system prompt", "cost", "mark of a stopped answer", "error message", "stop reason",
    })  # fmt: skip

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise the record of a conversation by its ids and times."""
        first = head[0]
        if isinstance(first, dict) and {"sessionId", "startTime"} <= set(first):
            return "json" if "messages" in first else "jsonl"
        return None

    def parse(self, data: bytes, document: Any = None) -> tuple[list[bytes], list[Any]]:
        """Return the lines of a log, or the pieces of a document."""
        try:
            return super().parse(data, document)
        except (TypeError, ValueError):
            entries = [line for line in data.split(b"\n") if line.strip()]
            return entries, [load_entry(entry) for entry in entries]

    def join(self, entries: Sequence[bytes]) -> bytes:  # type: ignore[override]
        """Return a log, or a document whose first entry is a document without its messages."""
        entries = list(entries)
        if self.suffix_of(entries) == ".json":
            return super().join(entries)
        return b"".join([entry + b"\n" for entry in entries])

    def suffix_of(self, entries: Sequence[bytes]) -> str:
        """Return `.json` for a document: Gemini CLI deletes one with the suffix of a log."""
        return ".json" if entries and b'"messages":null' in entries[0].replace(b" ", b"") else ".jsonl"

    def kind_of(self, value: Any) -> str:
        """Return the message's type, `$set`, `$rewindTo` or `record`."""
        if not isinstance(value, dict):
            return "not an object"
        return str(value.get("type") or next((name for name in value if name.startswith("$")), "record"))

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Replay the log: a message with a known id replaces, `$rewindTo` drops, `$set` of messages starts again."""
        root = values[0] if isinstance(values[0], dict) else {}
        plan = ReadPlan(
            session_id=str(root.get("sessionId", "")),
            version="json" if "messages" in root else "jsonl",
            title=root.get("summary"),
        )
        order: dict[str, int] = {}
        for at, value in enumerate(values):
            if not at or not isinstance(value, dict):
                continue
            if "$rewindTo" in value:
                names = list(order)
                start = names.index(value["$rewindTo"]) if value["$rewindTo"] in order else 0
                for name in names[start:]:
                    plan.branches[order.pop(name)] = "rewound"
            elif isinstance(value.get("$set"), dict) and "messages" in value["$set"]:
                plan.branches.update(dict.fromkeys(order.values(), "replaced"))
                plan.notes.append(Note(at, "a checkpoint replaces all messages; those before it are kept beside"))
                order = {f"set{at}": at}
            elif value.get("type") and value["type"] not in _SHOWN_ONLY:
                order[str(value.get("id", at))] = at
        answered: dict[str, bool] = {}
        for name, at in order.items():
            repeats = [_repeated_answers(raw, answered) for raw in _listed(values[at])]
            plan.groups.append(MessageGroup(name, (at,), repeats))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return a message, and one for each result of its calls."""
        listed = zip(_listed(values[0]), group.facts, strict=True)
        return [
            one for raw, repeats in listed if raw.get("type") not in _SHOWN_ONLY for one in _messages(raw, ids, repeats)
        ]

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield the record, then its messages; results go into the answers that called."""
        if not conversation.before:
            record = {
                "sessionId": conversation.session_id,
                "projectHash": sha256((conversation.cwd or "/").encode()).hexdigest(),
                "startTime": to_iso(conversation.created_at),
                "kind": "main",
            }  # without `lastUpdated`: Gemini CLI deletes sessions that were last updated a month ago
            yield Written({**record, **({"summary": conversation.title} if conversation.title else {})})
        results: dict[str, list[tuple[str, ToolResultBlock]]] = {}
        for message in conversation.messages:
            for block in message.tool_results:
                results.setdefault(block.tool_use_id, []).append((message.id, block))
        for message in conversation.messages:
            if message.role is not Role.TOOL:
                yield written_chat(message, results)

    def change_repeats(
        self, entries: Sequence[bytes], groups: Sequence[MessageGroup], changes: Mapping[int, bytes | None]
    ) -> dict[int, bytes | None]:
        """Leave out earlier versions of messages that are left out, and what users' messages repeat of such results."""
        old = [load_entry(entry) for entry in entries]
        names = {old[at].get("id") for at, changed in changes.items() if changed is None} - {None}
        found: dict[int, bytes | None] = {
            at: None for at, one in enumerate(old) if at and isinstance(one, dict) and one.get("id") in names
        }
        left_out = {**changes, **found}
        texts = [left_out.get(at, entry) for at, entry in enumerate(entries)]
        new = [None if text is None else load_entry(text) for text in texts]
        before = {group.entries[0]: group.facts for group in groups}
        for group in self.plan(new).groups:
            at = group.entries[0]
            one, gone = new[at] or {}, set().union(*before.get(at, ())) - set().union(*group.facts)
            if not gone or not isinstance(content := one.get("content"), list):
                continue
            kept = [part for part in content if not (is_answer(part) and _answered_call(part) in gone)]
            found[at] = dumps({**one, "content": kept}) if kept else None
        return found

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace:
        """Return a chat in the project; an unknown project takes over the chats of its hash.

        A name is the minute and the beginning of the id, which is a time in UUIDs of version 7: if another session has
        the name, more of the id is added.
        """
        base = Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini"
        try:
            project = load_entry((base / "projects.json").read_bytes())["projects"][cwd]
        except (OSError, KeyError, TypeError):
            project = sha256(cwd.encode()).hexdigest()
        name = f"session-{created_at:%Y-%m-%dT%H-%M}-{session_id[:8]}"
        path = base / "tmp" / str(project) / "chats" / f"{name}.jsonl"
        if path.is_file() and session_id.encode() not in path.read_bytes():
            path = path.with_name(f"{name}{session_id[8:].replace('-', '')}.jsonl")
        return SessionPlace(path, ("gemini", "--resume", session_id))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the chats of every project."""
        for pattern in ("*/chats/session-*.json", "*/chats/session-*.jsonl"):
            yield from list_files(home / ".gemini" / "tmp", pattern)


def _listed(value: Mapping[str, Any]) -> Sequence[Any]:
    """Return the messages of an entry: one, or all of a checkpoint."""
    listed: Sequence[Any] = value["$set"]["messages"] if "$set" in value else [value]
    return listed


def _repeated_answers(raw: Any, answered: dict[str, bool]) -> frozenset[str]:
    """Return the calls whose results a message of the user repeats: the last call of each id has its own beside it.

    Args:
        raw: the message.
        answered: id of a call before it -> whether its result is beside it; gets the calls of this message.
    """
    if not isinstance(raw, dict):
        return frozenset()
    content, calls = raw.get("content"), raw.get("toolCalls")
    parts = content if isinstance(content, list) else []
    found = {_answered_call(part) for part in parts if is_answer(part)}
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            answered[str(call.get("id"))] = call.get("result") is not None
    return frozenset(call for call in found if answered.get(call))


def _messages(raw: Mapping[str, Any], ids: ImportedIds, repeats: frozenset[str]) -> Iterator[Message]:
    at = time_of(raw.get("timestamp"))
    calls = [call for call in raw.get("toolCalls") or () if isinstance(call, dict)]
    by_model = raw.get("type") in _BY_MODEL
    content = raw.get("content")
    parts = content if isinstance(content, list) else []
    answers = [part for part in parts if is_answer(part)]
    blocks = _thoughts(raw) + read_parts([part for part in parts if not is_answer(part)] if answers else content, ids)
    if not any(isinstance(block, ToolUseBlock) for block in blocks):
        blocks += [_call(call, ids) for call in calls]
    named = iter(ids.calls(str(block.provider_id) for block in blocks if isinstance(block, ToolUseBlock)))
    blocks = [attrs.evolve(block, id=next(named)) if isinstance(block, ToolUseBlock) else block for block in blocks]
    facts: dict[str, Any] = {}
    if by_model:
        if isinstance(name := raw.get("model"), str) and name:
            facts = _origin(name)
        if isinstance(raw.get("tokens"), dict):
            facts["usage"] = _usage(raw["tokens"])

    def message(role: Role, content: Sequence[ContentBlock], **known: Any) -> Message:
        return ids.make_message(role, content, at, known)

    for answer in answers:
        if _answered_call(answer) not in repeats:
            block = read_result(answer, ids)
            yield message(Role.TOOL, [block], parent_tool_use_id=block.tool_use_id)
    if blocks:
        yield message(Role.ASSISTANT if by_model else Role.USER, blocks, **facts)
    for call, own in zip(calls, ids.calls(str(call.get("id")) for call in calls), strict=True):
        if call.get("result") is None:
            continue
        result = ToolResultBlock(
            tool_use_id=own,
            content=tuple(_result_parts(call["result"])),
            is_error=call.get("status") in ("error", "cancelled"),
            tool_name=call.get("name"),
            details=call.get("resultDisplay"),
        )
        yield message(Role.TOOL, [result], parent_tool_use_id=own)


def _origin(model: str) -> dict[str, Any]:
    """Return provider, API and model; a session that was converted has other providers' models, which name none."""
    if model.startswith(("gemini", "gemma")):
        return {"provider": "google", "api": "generate", "model": f"google:{model}"}
    return {"provider": "unknown", "model": f"unknown:{model}"}


def is_answer(part: Any) -> bool:
    """Tell whether a part is the result of a call."""
    return isinstance(part, dict) and isinstance(part.get("functionResponse"), dict)


def _answered_call(part: Mapping[str, Any]) -> str:
    """Return the id of the call that a result answers; a call without an id has its name for one."""
    answer = part["functionResponse"]
    return str(answer.get("id") or answer.get("name"))


def read_result(part: Mapping[str, Any], ids: ImportedIds, *, failed: bool = False) -> ToolResultBlock:
    """Return the result that a part holds."""
    answer = part["functionResponse"]
    return ToolResultBlock(
        tool_use_id=ids.call(_answered_call(part)),
        content=tuple(_result_parts(part)),
        is_error=failed,
        tool_name=answer.get("name"),
    )


def _thoughts(raw: Mapping[str, Any]) -> list[ContentBlock]:
    found: list[ContentBlock] = []
    for thought in raw.get("thoughts") or ():
        if isinstance(thought, dict):
            words = [str(thought[name]) for name in ("subject", "description") if thought.get(name)]
            found.append(ThinkingBlock(text="\n".join(words)))
    return found


def read_parts(content: Any, ids: ImportedIds) -> list[ContentBlock]:
    """Return the blocks of a message's parts, which may be a string."""
    listed = content if isinstance(content, list) else [content] if content else []
    return [_part(part, ids) for part in listed if part]


def _part(part: Any, ids: ImportedIds) -> ContentBlock:
    if isinstance(part, str):
        return TextBlock(text=part)
    if isinstance(part.get("text"), str):
        signature = part.get("thoughtSignature")
        if part.get("thought"):
            return ThinkingBlock(text=part["text"], signature=signature)
        return TextBlock(text=part["text"], signature=signature)
    if isinstance(part.get("functionCall"), dict):
        return _call(part["functionCall"], ids, part.get("thoughtSignature"))
    if (image := _picture(part)) is not None:
        return image
    return OpaqueBlock(provider="google", kind=next(iter(part), "part"), data=part)


def _call(call: Mapping[str, Any], ids: ImportedIds, signature: str | None = None) -> ToolUseBlock:
    issued = str(call.get("id") or call["name"])
    value = call.get("args") if isinstance(call.get("args"), dict) else {}
    own = ids.call(issued)
    return ToolUseBlock(id=own, provider_id=issued, name=str(call["name"]), input=value or {}, signature=signature)


def _result_parts(result: Any) -> Iterator[ContentBlock]:
    for part in result if isinstance(result, list) else [result]:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(answer, dict):
            response = answer.get("response")
            output = response.get("output", response.get("error")) if isinstance(response, dict) else response
            yield TextBlock(text=output if isinstance(output, str) else orjson.dumps(response).decode())
            yield from _pictures(answer.get("parts"))
        elif isinstance(part, str):
            yield TextBlock(text=part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield TextBlock(text=part["text"])
        elif (image := _picture(part)) is not None:
            yield image


def _pictures(parts: Any) -> Iterator[ImageBlock]:
    for part in parts if isinstance(parts, list) else ():
        if (image := _picture(part)) is not None:
            yield image


def _picture(part: Any) -> ImageBlock | None:
    data = part.get("inlineData") if isinstance(part, dict) else None
    if isinstance(data, dict) and str(data.get("mimeType", "")).startswith("image/"):
        return ImageBlock(source=MediaSource(kind="base64", data=data["data"]), media_type=data["mimeType"])
    return None


def _usage(raw: Mapping[str, Any]) -> Usage:
    output, thoughts = count_of(raw.get("output")), count_of(raw.get("thoughts"))
    return Usage(
        input_tokens=count_of(raw.get("input")),
        output_tokens=None if output is None else output + (thoughts or 0),
        cached_input_tokens=count_of(raw.get("cached")),
        reasoning_tokens=thoughts,
    )


# -- writing ----------------------------------------------------------------------------------------------------------
def written_chat(message: Message, results: Mapping[str, Sequence[tuple[str, ToolResultBlock]]]) -> Written:
    """Return the line of a message.

    Args:
        message: message of a user or a model; a system prompt is written as a user's.
        results: id of a call -> its results, and the ids of their messages.
    """
    by_model = message.role is Role.ASSISTANT
    own = message.metadata.provider == "google"
    at = to_iso(message.created_at)
    parts = [part for block in message.content if (part := _written_part(block, own=own)) is not None]
    made: dict[str, Any] = {
        "id": message.id,
        "timestamp": at,
        "type": "gemini" if by_model else "user",
        "content": parts,
    }
    if not by_model:
        return Written(made, (message.id,))
    if message.metadata.model is not None:
        made["model"] = message.metadata.model.partition(":")[2]
    if message.metadata.usage is not None:
        made["tokens"] = _written_usage(message.metadata.usage)
    said = [message.id]
    calls = []
    for call in message.tool_calls:
        answers = results.get(call.id, ())
        said += [answer for answer, _ in answers]
        calls.append(_written_call(call, [block for _, block in answers], at))
    return Written({**made, "toolCalls": calls} if calls else made, tuple(dict.fromkeys(said)))


def _written_part(block: ContentBlock, *, own: bool) -> dict[str, Any] | None:
    """Return a block as a part.

    Texts and calls get only Google's signatures, which its service takes; thoughts are not sent, and keep any.
    """
    signed: dict[str, Any] = {}
    if isinstance(block, TextBlock | ThinkingBlock | ToolUseBlock) and block.signature is not None:
        signed = {"thoughtSignature": block.signature} if own or isinstance(block, ThinkingBlock) else {}
    if isinstance(block, TextBlock):
        return {"text": block.text, **signed}
    if isinstance(block, ThinkingBlock):
        return {"text": block.text, "thought": True, **signed}
    if isinstance(block, ToolUseBlock):
        called = {"id": block.provider_id or block.id, "name": block.name, "args": block.input}
        return {"functionCall": called, **signed}
    if isinstance(block, ImageBlock) and block.source.kind == "base64":
        return {"inlineData": {"mimeType": block.media_type, "data": block.source.data}}
    return dict(block.data) if isinstance(block, OpaqueBlock) and block.provider == "google" else None


def _written_call(call: ToolUseBlock, answers: Sequence[ToolResultBlock], at: str) -> dict[str, Any]:
    issued = call.provider_id or call.id
    made = {"id": issued, "name": call.name, "args": call.input, "timestamp": at}
    if not answers:
        return {**made, "status": "scheduled"}
    failed = any(answer.is_error for answer in answers)
    texts = [block.text for answer in answers for block in answer.content if isinstance(block, TextBlock)]
    images = [part for answer in answers for block in answer.content if (part := _written_image(block)) is not None]
    response = {"error" if failed else "output": "\n".join(texts)}
    result = [{"functionResponse": {"id": issued, "name": call.name, "response": response}}, *images]
    return {**made, "status": "error" if failed else "success", "result": result}


def _written_image(block: ContentBlock) -> dict[str, Any] | None:
    return _written_part(block, own=False) if isinstance(block, ImageBlock) else None


def _written_usage(usage: Usage) -> dict[str, int]:
    """Return the counts; Gemini CLI counts thoughts beside the output."""
    thoughts, output = usage.reasoning_tokens or 0, usage.output_tokens or 0
    counts = {
        "input": usage.input_tokens or 0,
        "output": max(output - thoughts, 0),
        "cached": usage.cached_input_tokens or 0,
        "thoughts": thoughts,
        "tool": 0,
    }
    return {**counts, "total": counts["input"] + output}


gemini = GeminiCli()
