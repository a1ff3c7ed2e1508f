"""pi (pi-coding-agent) and OpenClaw: an append-only tree of entries, JSON Lines with a header (WIRE.md, pi)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import orjson

from interlingua.types import (
    ContentBlock,
    ErrorInfo,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    MessageStatus,
    RedactedThinkingBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts.imported import (
    EPOCH,
    ImportedIds,
    cost_parts,
    count_of,
    short_id,
    time_of,
    to_iso,
    to_milliseconds,
    usd_of,
    uuid_of,
)
from interlingua_transcripts.system import SessionFormat, list_files, pick
from interlingua_transcripts.transcript import Conversation, MessageGroup, Note, ReadPlan, SessionPlace, Written
from interlingua_transcripts.values import Form, sum_form

_USER, _ASSISTANT, _SYSTEM, _TOOL = Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL
# The API's name in pi -> ours; another word is kept unchanged.
APIS = {
    "anthropic-messages": "messages",
    "openai-completions": "chat",
    "openai-responses": "responses",
    "google-generative-ai": "generate",
    "bedrock-converse-stream": "converse",
    "ollama": "chat-native",
}
API_WORDS = {ours: theirs for theirs, ours in APIS.items()}
_ITEMS = ("openai-responses", "azure-openai-responses", "openai-codex-responses")  # their signature is a whole item
_FIELD_NAME = re.compile(r"[A-Za-z_]{1,32}")  # or the name of the wire's field that the thinking came in: no signature
_STOPS = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "toolUse": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}
_STOP_WORDS = {reason: word for word, reason in _STOPS.items()}
_REDACTED = "[Reasoning redacted]"
_COMPACTION = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
_BRANCH = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
_END = "\n</summary>"
_IN_CONTEXT = {"message", "custom_message", "branch_summary", "compaction"}
_SUMMARIES = {"compactionSummary": "compaction", "branchSummary": "branch_summary"}  # role -> the type of an entry
ROLES = {"user", "assistant", "toolResult", "bashExecution", "system", *_SUMMARIES}  # others no model sees
_TREE = {*ROLES, "custom", ""}  # pi sends its custom messages; an outline may have no role
_LONG = {"content", "data", "details", "message", "summary", "timestamp", "usage"}  # what a plan needs nothing of
_MAKERS = {"openclaw"}  # answers that the gateway put in and no model made


def _total(value: Any, usage: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return nothing to be found if the value is a sum of the other counts: the programs differ in which."""
    counts = [usage.get(name) or 0 for name in ("input", "output", "cacheRead", "cacheWrite")]
    return [] if value in (sum(counts), sum(counts[:2])) else None


def _item_content(value: Any, _block: Mapping[str, Any]) -> Sequence[Any] | None:
    signature = _signature(value) if isinstance(value, str) else None
    return None if signature is None else [signature]


class Pi(SessionFormat):
    """pi's own files."""

    name = "pi"
    title = "pi"
    links: ClassVar[tuple[str, str] | None] = ("id", "parentId")
    flat: ClassVar[bool] = False  # True if a new file's lines are messages themselves
    forms: ClassVar[Mapping[str, Form]] = {
        "usage.input": sum_form("a message counts cached tokens as input, too", "input", "cacheRead", "cacheWrite"),
        "usage.totalTokens": Form("the sum of the other counts", _total),
        "thinkingSignature": Form("the encrypted content of a reasoning item", _item_content),
    }

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the header's version; similar files of OpenClaw and others are not pi's."""
        version = read_version(head)
        return None if version is None or is_openclaw(head) else version

    def kind_of(self, value: Any) -> str:
        """Return type and role, or type and custom type."""
        if not isinstance(value, dict):
            return "not an object"
        kind = str(value.get("type") or "")
        message = value.get("message") if kind == "message" else value if not kind else None
        if isinstance(message, dict):
            return f"message/{message.get('role')}"
        return f"{kind}/{value['customType']}" if "customType" in value else kind

    def change_folder(self, value: Any, cwd: str) -> Any:
        """Return the header with another folder: pi refuses a session whose folder does not exist."""
        return {**value, "cwd": cwd} if isinstance(value, dict) and value.get("type") == "session" else None

    def outline(self, value: Any) -> Any:
        """Return the links of an entry, and whether it has content."""
        if not isinstance(value, dict) or value.get("type") == "session":
            return value
        small = {name: item for name, item in value.items() if name not in _LONG}
        if isinstance(message := value.get("message"), dict):
            small["message"] = pick(message, "excludeFromContext", "role")
        return {**small, "content": bool(value.get("summary") or value.get("content"))}

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Walk from the leaf to the root; a v1 file has no tree and is read in file order."""
        header = next((value for value in values if isinstance(value, dict)), {})
        flat = header.get("type") != "session"
        plan = ReadPlan(
            session_id="" if flat else str(header.get("id", "")),
            version="flat" if flat else str(header.get("version", 1)),
            cwd=header.get("cwd") if isinstance(header.get("cwd"), str) else None,
        )
        entries = {
            at: value for at, value in enumerate(values) if isinstance(value, dict) and (flat or value is not header)
        }
        tree = {at: entry for at, entry in entries.items() if _in_tree(entry)}
        path = _path(tree, entries, plan, None if flat else header.get("id"))
        plan.branches = dict.fromkeys(sorted(tree.keys() - path), "off the active branch")
        for entry in entries.values():
            if entry.get("type") == "session_info" and isinstance(entry.get("name"), str):
                plan.title = entry["name"]
        _group(path, entries, plan)
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message of an entry."""
        entry = values[0]
        kind = entry.get("type")
        body = entry["message"] if kind == "message" else entry
        at = time_of(body.get("timestamp"))
        if at is EPOCH:  # it has no time
            at = time_of(entry.get("timestamp"))
        role, content, facts = read_message_parts(kind, body, ids)
        return [ids.make_message(role, content, at, facts)]

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield header and entries of version 3, each the child of the previous one; in an older file, in its order."""
        head: Mapping[str, Any] | None = None
        tree, taken = False, set()
        for value in conversation.before:
            if isinstance(value, dict):
                head = value if head is None else head
                tree = tree or "parentId" in value
                if isinstance(value.get("id"), str):
                    taken.add(value["id"])
        flat = self.flat if head is None else head.get("type") != "session"
        tree = tree or head is None
        branch = (value for value in reversed(conversation.branch) if isinstance(value, dict) and _in_tree(value))
        parent = next((value["id"] for value in branch if "id" in value), None)
        if head is None and not flat:
            yield Written(
                {
                    "type": "session",
                    "version": 3,
                    "id": conversation.session_id or uuid_of("session"),
                    "timestamp": to_iso(conversation.created_at),
                    "cwd": conversation.cwd or "/",
                }
            )
        for message in conversation.messages:
            for body in _bodies(message, conversation, flat=flat):
                own = short_id(f"{message.id}\0{len(taken)}", taken)
                taken.add(own)
                links = {"id": own, "parentId": parent} if tree else {}
                entry = {"type": "message", **links, "timestamp": to_iso(message.created_at), "message": body}
                yield Written(body if flat else entry, (message.id,))
                parent = own

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace | None:
        """Return the path in the folder of the working folder's sessions."""
        folder = _sessions_of(home, environ)
        if not environ.get("PI_CODING_AGENT_SESSION_DIR"):
            name = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", cwd))
            folder /= f"--{name}--"
        name = f"{to_iso(created_at).replace(':', '-').replace('.', '-')}_{session_id}.jsonl"
        return SessionPlace(folder / name, ("pi", "--session", session_id))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the files below pi's session folder."""
        return list_files(_sessions_of(home, environ), "**/*.jsonl")


def _sessions_of(home: Path, environ: Mapping[str, str]) -> Path:
    folder = environ.get("PI_CODING_AGENT_SESSION_DIR")
    return Path(folder) if folder else Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent") / "sessions"


# -- recognition ------------------------------------------------------------------------------------------------------
def read_version(head: Sequence[Any]) -> str | None:
    """Return the version of a file with pi's header; None for other files."""
    header = head[0]
    if not isinstance(header, dict) or header.get("type") != "session" or not isinstance(header.get("id"), str):
        return None
    if "createdAt" in header or "timestamp" not in header:
        return None  # another agent's log
    kinds = {value.get("type") for value in head[1:] if isinstance(value, dict)}
    if kinds & {"agent_start", "message_update", "turn_start"}:
        return None  # what `pi --mode json` prints
    return str(header.get("version", 1))


def is_openclaw(head: Sequence[Any]) -> bool:
    """Return True if only OpenClaw writes such entries."""
    for value in head:
        if not isinstance(value, dict):
            continue
        word = str(value.get("customType", ""))
        if word == "model-snapshot" or word.startswith("openclaw"):
            return True
        message = value.get("message")
        if isinstance(message, dict) and message.get("provider") in _MAKERS:
            return True
    return False


# -- the tree ---------------------------------------------------------------------------------------------------------
def _in_tree(entry: Mapping[str, Any]) -> bool:
    return entry.get("type") not in ("session", "leaf") and entry.get("appendMode") != "side"


def _path(tree: Mapping[int, Any], entries: dict[int, Any], plan: ReadPlan, root: Any) -> list[int]:
    """Return the indexes from the root to the leaf; `root` is the header's id, which some programs use as a parent."""
    leaf = next((at for at in reversed(tree) if "parentId" in tree[at]), None)
    if leaf is None:
        return list(tree)
    places = {str(own): at for at, entry in tree.items() if (own := entry.get("id")) is not None}
    for entry in reversed(entries.values()):  # the last that names a place
        if entry.get("type") == "leaf":
            leaf = places.get(str(entry.get("targetId")))
            break
        if "parentId" in entry and _in_tree(entry) and str(entry.get("id")) in places:
            leaf = places[str(entry.get("id"))]
            break
    found: dict[int, None] = {}
    while leaf is not None and leaf not in found:
        found[leaf] = None
        parent = tree[leaf].get("parentId")
        parent = None if parent == root else parent
        above = None if parent is None else places.get(str(parent))
        if parent is not None and above is None:
            above = max((at for at in tree if at < leaf), default=None)
            plan.notes.append(Note(leaf, f"its parent {parent} is not in the file; the entry before it is taken"))
        leaf = above
    return list(found)[::-1]


def _group(path: Sequence[int], entries: Mapping[int, Mapping[str, Any]], plan: ReadPlan) -> None:
    """Make a group of each entry that is a message, and find what the model would see after the last compaction."""
    by_id: dict[str, int] = {}
    boundary: tuple[int, str | None] | None = None
    groups = plan.groups
    for at in path:
        entry = entries[at]
        if entry.get("type") in ("compaction", "reset") or entry.get("role") == "compactionSummary":
            boundary = (len(groups), entry.get("firstKeptEntryId"))
        own = str(entry.get("id", at))
        if "id" in entry:
            by_id[own] = len(groups)
        if _is_message(entry):
            groups.append(MessageGroup(own, (at,)))
    if boundary is not None:
        last, first = boundary
        kept = by_id.get(str(first), last) if first is not None else last
        plan.context = [last, *range(kept, last), *range(last + 1, len(groups))][: len(groups)]


def _is_message(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("type")
    if kind is None:
        return entry.get("role") in ROLES and not entry.get("excludeFromContext")
    if kind == "message":
        message = entry.get("message")
        return isinstance(message, dict) and not message.get("excludeFromContext") and message.get("role", "") in _TREE
    return kind in _IN_CONTEXT and bool(entry.get("summary") or entry.get("content"))


# -- reading ----------------------------------------------------------------------------------------------------------
def read_message_parts(
    kind: Any, body: Mapping[str, Any], ids: ImportedIds
) -> tuple[Role, Sequence[ContentBlock], dict[str, Any]]:
    """Return role, blocks and metadata of a message, or of an entry that stands for one.

    Args:
        kind: the entry's type.
        body: the message, or the entry.
        ids: source of canonical ids for calls.
    """
    role = body.get("role")
    kind = _SUMMARIES.get(str(role), kind)
    if kind == "compaction":
        return _USER, [TextBlock(text=f"{_COMPACTION}{body['summary']}{_END}")], {}
    if kind == "branch_summary":
        return _USER, [TextBlock(text=f"{_BRANCH}{body['summary']}{_END}")], {}
    if role == "assistant":
        return _ASSISTANT, read_blocks(body, ids), _assistant_facts(body)
    if role == "toolResult":
        return _read_result(body, ids)
    if role == "bashExecution":
        return _USER, [TextBlock(text=_bash_text(body))], {}
    if role == "system":
        return _SYSTEM, read_blocks(body, ids), {}
    return _USER, read_blocks(body, ids), {}


def read_blocks(body: Mapping[str, Any], ids: ImportedIds) -> list[ContentBlock]:
    """Return the blocks of a message's `content`, which may be a string."""
    content = body.get("content")
    if isinstance(content, str):
        return [TextBlock(text=content)]
    return [_block(raw, ids) for raw in content or ()]


def _block(raw: Mapping[str, Any], ids: ImportedIds) -> ContentBlock:
    kind = raw.get("type")
    if kind == "text":
        return TextBlock(text=raw["text"], signature=raw.get("textSignature"))
    if kind == "thinking":
        signature = raw.get("thinkingSignature") or None
        if raw.get("redacted") and signature:
            return RedactedThinkingBlock(data=_signature(signature) or signature)
        return ThinkingBlock(text=raw["thinking"], signature=_signature(signature))
    if kind == "toolCall":
        arguments = raw.get("arguments")
        issued = str(raw["id"])
        return ToolUseBlock(
            id=ids.call(issued),
            provider_id=issued,
            name=str(raw["name"]),
            input=arguments if isinstance(arguments, dict) else {},
            signature=raw.get("thoughtSignature"),
        )
    if kind == "image":
        return ImageBlock(source=MediaSource(kind="base64", data=raw["data"]), media_type=raw.get("mimeType") or "")
    raise ValueError(f"an unknown block {kind!r}")


def _signature(signature: str | None) -> str | None:
    """Return what a block can hold of a thinking signature: of a reasoning item, what it holds encrypted."""
    if signature is None or _FIELD_NAME.fullmatch(signature):
        return None
    if not signature.startswith("{"):
        return signature
    try:
        found = orjson.loads(signature)
    except ValueError:
        return None
    content = found.get("encrypted_content") if isinstance(found, dict) else None
    return content if isinstance(content, str) else None


def _assistant_facts(body: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    provider, model, api = body.get("provider"), body.get("model"), body.get("api")
    if isinstance(model, str) and model:
        facts["provider"] = str(provider or "unknown")
        facts["model"] = f"{facts['provider']}:{model}"
        facts["api"] = APIS.get(str(api), api if isinstance(api, str) else None)
    stop = body.get("stopReason")
    if stop == "aborted":
        facts["status"] = MessageStatus.CANCELLED
    elif stop == "error":
        facts["status"] = MessageStatus.ERROR
        facts["error"] = ErrorInfo(type="ProviderError", message=str(body.get("errorMessage") or ""))
    elif isinstance(stop, str):
        facts["stop_reason"] = _STOPS.get(stop, StopReason.OTHER)
        facts["stop_reason_raw"] = stop
    if isinstance(body.get("usage"), dict):
        facts["usage"] = _usage(body["usage"])
    return facts


def _usage(raw: Mapping[str, Any]) -> Usage:
    plain, read, written = count_of(raw.get("input")), count_of(raw.get("cacheRead")), count_of(raw.get("cacheWrite"))
    given = raw.get("cost")
    cost: dict[str, Any] = given if isinstance(given, dict) else {}
    total = usd_of(cost.get("total")) if cost else None
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=count_of(raw.get("output")),
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
        cache_creation_1h_input_tokens=count_of(raw.get("cacheWrite1h")),
        cost_usd=total,
        cost=cost_parts(cost, read="cacheRead", write="cacheWrite") if total is not None else None,
        pricing_version=None if total is None else "source",
    )


def _read_result(body: Mapping[str, Any], ids: ImportedIds) -> tuple[Role, Sequence[ContentBlock], dict[str, Any]]:
    call = ids.call(str(body["toolCallId"]))
    block = ToolResultBlock(
        tool_use_id=call,
        content=tuple(read_blocks(body, ids)),
        is_error=bool(body.get("isError")),
        tool_name=body.get("toolName"),
        details=body.get("details"),
    )
    return _TOOL, [block], {"parent_tool_use_id": call}


def _bash_text(body: Mapping[str, Any]) -> str:
    text = f"Ran `{body.get('command')}`\n```\n{body.get('output') or ''}\n```"
    if body.get("cancelled"):
        return f"{text}\n(command cancelled)"
    return f"{text}\nCommand exited with code {body['exitCode']}" if body.get("exitCode") else text


# -- writing ----------------------------------------------------------------------------------------------------------
def _bodies(message: Message, conversation: Conversation, *, flat: bool) -> Iterator[dict[str, Any]]:
    """Yield pi's messages of one canonical message: a tool message becomes one per result."""
    at = to_milliseconds(message.created_at)
    if message.role is Role.TOOL:
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                yield _result_body(block, conversation, at)
    elif message.role is Role.ASSISTANT:
        yield _assistant_body(message, at, flat=flat)
    else:
        yield {"role": message.role.value, "content": _content(message.content), "timestamp": at}


def _result_body(block: ToolResultBlock, conversation: Conversation, at: int) -> dict[str, Any]:
    call = conversation.calls.get(block.tool_use_id)
    body: dict[str, Any] = {
        "role": "toolResult",
        "toolCallId": conversation.issued_id(block.tool_use_id),
        "toolName": block.tool_name or ("" if call is None else call.name),
        "content": _content(block.content),
        "isError": block.is_error,
        "timestamp": at,
    }
    if block.details is not None:
        body["details"] = block.details
    return body


def _assistant_body(message: Message, at: int, *, flat: bool) -> dict[str, Any]:
    metadata = message.metadata
    provider = metadata.provider or "unknown"
    api = API_WORDS.get(metadata.api or "", metadata.api or "unknown")
    content = _content(message.content)
    if api in _ITEMS:
        for block in content:
            if "thinkingSignature" in block:
                block["thinkingSignature"] = _reasoning_item(block)
    body: dict[str, Any] = {
        "role": "assistant",
        "content": content,
        "api": api,
        "provider": provider,
        "model": (metadata.model or "unknown").removeprefix(f"{provider}:"),
        "usage": _usage_body(metadata.usage or Usage(), flat=flat),
        "stopReason": _stop_word(metadata),
        "timestamp": at,
    }
    if metadata.error is not None:
        body["errorMessage"] = metadata.error.message
    return body


def _reasoning_item(block: Mapping[str, Any]) -> str:
    """Return the item of the Responses API that holds the thinking, as JSON text."""
    summary = [] if block.get("redacted") else [{"type": "summary_text", "text": block["thinking"]}]
    item = {"type": "reasoning", "summary": summary, "encrypted_content": block["thinkingSignature"]}
    return orjson.dumps(item).decode()


def _stop_word(metadata: MessageMetadata) -> str:
    if metadata.status is MessageStatus.ERROR:
        return "error"
    if metadata.status is not MessageStatus.COMPLETE:
        return "aborted"
    reason = metadata.stop_reason
    return _STOP_WORDS.get(reason, "stop") if reason is not None else "stop"


def _usage_body(usage: Usage, *, flat: bool) -> dict[str, Any]:
    total, output = usage.input_tokens or 0, usage.output_tokens or 0
    read, written = usage.cached_input_tokens or 0, usage.cache_creation_input_tokens or 0
    cost = usage.cost
    parts = [Decimal(0)] * 4 if cost is None else [cost.input, cost.output, cost.cached_read, cost.cache_write]
    names = ("input", "output", "cacheRead", "cacheWrite")
    body = {
        "input": total - read - written,
        "output": output,
        "cacheRead": read,
        "cacheWrite": written,
        # OpenClaw's documentation, which defines the flat form, counts no cached tokens; the programs count all
        "totalTokens": total + output - (read + written if flat else 0),
        "cost": {**dict(zip(names, map(_number, parts), strict=True)), "total": _number(usage.cost_usd or Decimal(0))},
    }
    if usage.cache_creation_1h_input_tokens is not None:
        body["cacheWrite1h"] = usage.cache_creation_1h_input_tokens
    return body


def _number(amount: Decimal) -> int | float:
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def _content(blocks: Sequence[ContentBlock]) -> list[dict[str, Any]]:
    made = [_written_block(block) for block in blocks]
    return [block for block in made if block is not None]


def _written_block(block: ContentBlock) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return _with({"type": "text", "text": block.text}, "textSignature", block.signature)
    if isinstance(block, ThinkingBlock):
        return _with({"type": "thinking", "thinking": block.text}, "thinkingSignature", block.signature)
    if isinstance(block, RedactedThinkingBlock):
        return {"type": "thinking", "thinking": _REDACTED, "thinkingSignature": block.data, "redacted": True}
    if isinstance(block, ToolUseBlock):
        made = {"type": "toolCall", "id": block.provider_id or block.id, "name": block.name, "arguments": block.input}
        return _with(made, "thoughtSignature", block.signature)
    if isinstance(block, ImageBlock) and block.source.kind == "base64":
        return {"type": "image", "data": block.source.data, "mimeType": block.media_type}
    return None


def _with(made: dict[str, Any], name: str, value: str | None) -> dict[str, Any]:
    return made if value is None else {**made, name: value}


pi = Pi()
