"""A second reader for each format, from its fact sheet alone; it shares no code with the product.

Each returns the items of the conversation in order: role, kind and value. It follows no rule of repair; entries that
only a repair reaches are listed as differences, and judged in `test_second_readers`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Item(NamedTuple):
    """One text, call or result.

    Attributes:
        role: user, assistant, system or tool.
        kind: text, thinking, call or result; `within` for a string that a reader puts into a longer one.
        value: the text; of a call its name and the JSON of its arguments.
    """

    role: str
    kind: str
    value: str


def call(name: Any, arguments: Any) -> Item:
    """Return the item of a call; a string of JSON is parsed."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            arguments = {}
    value = arguments if isinstance(arguments, dict) else {}
    return Item("assistant", "call", f"{name} {json.dumps(value, sort_keys=True)}")


def _lines(data: bytes) -> Iterator[Any]:
    for line in data.split(b"\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _listed(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [part for part in content or [] if isinstance(part, dict)] if isinstance(content, list) else []


def _texts(content: Any) -> str:
    return "\n".join([part["text"] for part in _listed(content) if isinstance(part.get("text"), str)])


# -- pi, OpenClaw ------------------------------------------------------------------------------------------------------
def pi(data: bytes) -> list[Item]:
    """Walk from the leaf to the root by `parentId`; a version 1 file, and flat lines, in file order."""
    entries = [value for value in _lines(data) if value.get("type") != "session"]
    flat = all("type" not in value for value in entries)
    tree = [
        value for value in entries if value.get("type") not in ("session", "leaf") and value.get("appendMode") != "side"
    ]
    path = tree
    if not flat and any("parentId" in value for value in tree):
        by_id = {value["id"]: value for value in tree if "id" in value}
        leaf: Any = None
        for value in entries:
            if value.get("type") == "leaf":
                leaf = by_id.get(value.get("targetId"))
            elif value.get("id") in by_id and value.get("appendMode") != "side":
                leaf = by_id[value["id"]]
        path = []
        while leaf is not None and leaf not in path:
            path.insert(0, leaf)
            leaf = by_id.get(leaf.get("parentId"))
    return [item for value in path for item in _pi_items(value)]


def _pi_items(entry: Mapping[str, Any]) -> Iterator[Item]:
    kind = entry.get("type")
    body = entry.get("message") or {} if kind == "message" else entry
    role = body.get("role")
    if kind in ("compaction", "branch_summary") or role in ("compactionSummary", "branchSummary"):
        if body.get("summary"):
            yield Item("user", "within", body["summary"])
    elif body.get("excludeFromContext") or kind not in (None, "message", "custom_message"):
        return
    elif role == "bashExecution":
        yield Item("user", "within", str(body.get("command")))
    elif role == "toolResult":
        yield Item("tool", "result", _texts(body.get("content")))
    elif role in ("user", "assistant", "system", "custom") or kind == "custom_message":
        if kind is None and role == "custom":
            return
        said = role if role in ("assistant", "system") else "user"
        for part in _listed(body.get("content")):
            if part.get("type") == "text":
                yield Item(said, "text", part["text"])
            elif part.get("type") == "thinking" and not part.get("redacted"):
                yield Item(said, "thinking", part["thinking"])
            elif part.get("type") == "toolCall":
                yield call(part["name"], part.get("arguments"))


# -- Claude Code -------------------------------------------------------------------------------------------------------
def claude_code(data: bytes) -> list[Item]:
    """Take every user and assistant line in file order, blocks of one message id at its first line's place."""
    values = list(_lines(data))
    talk = [
        value
        for value in values
        if value.get("type") in ("user", "assistant") and isinstance(value.get("message"), dict)
    ]
    queued = [value for value in values if (value.get("attachment") or {}).get("type") == "queued_command"]
    main = [value for value in values if any(value is one for one in (*talk, *queued))]
    if any(not value.get("isSidechain") for value in main):
        main = [value for value in main if not value.get("isSidechain")]
    places: dict[str, list[Item]] = {}
    ordered: list[list[Item]] = []
    for value in main:
        attachment = value.get("attachment") or {}
        message = value.get("message") or {"content": attachment.get("prompt")}
        own = message.get("id") if value["type"] == "assistant" else None
        if own in places:
            items = places[own]
        else:
            items = []
            ordered.append(items)
            if own:
                places[own] = items
        items += _claude_items(message.get("content"), "assistant" if value["type"] == "assistant" else "user")
    return [item for items in ordered for item in items]


def _claude_items(content: Any, role: str) -> Iterator[Item]:
    for part in _listed(content):
        kind = part.get("type")
        if kind == "text":
            yield Item(role, "text", part["text"])
        elif kind == "thinking":
            yield Item(role, "thinking", part["thinking"])
        elif kind == "tool_use":
            yield call(part["name"], part.get("input"))
        elif kind == "tool_result":
            yield Item("tool", "result", _texts(part.get("content")))


# -- Codex -------------------------------------------------------------------------------------------------------------
def codex(data: bytes) -> list[Item]:
    """Take response items in file order; events are mirrors; rolled back turns are dropped."""
    found: list[Item] = []
    turns: list[int] = []
    for value in _lines(data):
        payload = value.get("payload")
        kind = value.get("type")
        if kind == "session_meta" and not found:
            given = payload.get("base_instructions")
            text = given.get("text") if isinstance(given, dict) else payload.get("instructions")
            found += [Item("system", "text", text)] if text else []
        elif kind == "compacted":
            found += _codex_compaction(payload, found)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            back = payload.get("num_turns") or 0
            if back > 0:
                del found[turns[-back] if back <= len(turns) else 0 :]
                del turns[-back:]
        item = payload if kind == "response_item" else value if payload is None else None
        if isinstance(item, dict):
            if item.get("type") == "message" and item.get("role") == "user":
                turns.append(len(found))
            found += _codex_items(item)
    return found


def _codex_compaction(payload: Mapping[str, Any], found: Sequence[Item]) -> Iterator[Item]:
    """Yield what a compaction says that was not there before it; the summary where no list replaces the history."""
    replaced = payload.get("replacement_history")
    if replaced:
        made = [one for item in replaced for one in _codex_items(item)]
        yield from [one for one in made if one.role == "assistant" or one not in found]
    elif payload.get("message"):
        yield Item("user", "text", payload["message"])


def _codex_items(item: Mapping[str, Any]) -> Iterator[Item]:
    kind = item.get("type", "message" if "role" in item else None)
    if kind in ("message", "agent_message"):
        role = {"developer": "system"}.get(item.get("role", "user"), item.get("role", "user"))
        for part in _listed(item.get("content")):
            if isinstance(part.get("text"), str):
                yield Item(role, "text", part["text"])
    elif kind == "reasoning":
        texts = [
            part["text"] for name in ("summary", "content") for part in _listed(item.get(name)) if part.get("text")
        ]
        if texts:
            yield Item("assistant", "thinking", "\n\n".join(texts))
    elif kind == "function_call":
        yield call(item["name"], item.get("arguments"))
    elif kind == "custom_tool_call":
        yield call(item["name"], {"input": item.get("input") or ""})
    elif kind == "local_shell_call":
        yield call("local_shell", item.get("action"))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = item.get("output")
        output = output.get("content") if isinstance(output, dict) and "content" in output else output
        output = _compact(output) if isinstance(output, dict) else output
        yield Item("tool", "result", output if isinstance(output, str) else _texts(output))


# -- documents ---------------------------------------------------------------------------------------------------------
def atif(data: bytes) -> list[Item]:
    """Take the steps in order: reasoning, message, calls, observation."""
    found = []
    for step in json.loads(data)["steps"]:
        role = {"agent": "assistant"}.get(step.get("source"), step.get("source"))
        role = role if role in ("user", "system", "assistant") else "assistant"
        if role == "assistant" and step.get("reasoning_content"):
            found.append(Item(role, "thinking", step["reasoning_content"]))
        found += [
            Item(role, "text", part["text"]) for part in _listed(step.get("message")) if part.get("type") == "text"
        ]
        if role == "assistant":
            found += [call(one["function_name"], one.get("arguments")) for one in step.get("tool_calls") or []]
        results = (step.get("observation") or {}).get("results") or []
        found += [Item("tool", "result", _texts(one.get("content"))) for one in results]
    return found


def opencode(data: bytes) -> list[Item]:
    """Take the parts in order; the results of a model step follow at its end."""
    found: list[Item] = []
    for message in json.loads(data)["messages"]:
        role = message["info"]["role"]
        results: list[Item] = []
        for part in message["parts"]:
            kind = part.get("type")
            if kind == "step-start":
                found += results
                results = []
            elif kind == "text":
                found.append(Item(role, "text", part.get("text") or ""))
            elif kind == "reasoning":
                found.append(Item(role, "thinking", part.get("text") or ""))
            elif kind == "tool":
                state = part["state"]
                found.append(call(part["tool"], state.get("input")))
                if state.get("status") in ("completed", "error"):
                    text = state.get("error") if state["status"] == "error" else state.get("output")
                    results.append(Item("tool", "result", text or ""))
        found += results
    return found


def chat(messages: list[dict[str, Any]]) -> list[Item]:
    """Take messages of the Chat Completions form."""
    found = []
    for message in messages:
        role = {"developer": "system", "function": "tool"}.get(message.get("role", ""), message.get("role", ""))
        if role == "tool":
            found.append(Item("tool", "result", _texts(message.get("content"))))
            continue
        thought = message.get("reasoning_content") or message.get("reasoning")
        found += [Item(role, "thinking", thought)] if isinstance(thought, str) and thought else []
        for part in _listed(message.get("content")):
            if isinstance(part.get("text"), str):
                found.append(Item(role, "text", part["text"]))
        for one in message.get("tool_calls") or []:
            made = (
                one.get("function") if isinstance(one.get("function"), dict) else {"name": one.get("function"), **one}
            )
            found.append(call(made["name"], made.get("arguments")))
    return found


def role_lines(data: bytes) -> list[Item]:
    """Take lines of chat messages; Cursor's hold a message of the Messages form inside."""
    found: list[Item] = []
    for value in _lines(data):
        inside = value.get("message")
        found += _claude_items(inside.get("content"), value["role"]) if isinstance(inside, dict) else chat([value])
    return found


def wolo(data: bytes) -> list[Item]:
    """Sort messages by time; a part of a tool is a call and, once it ended, its result."""
    document = json.loads(data)
    messages = document if isinstance(document, list) else document["messages"]
    found: list[Item] = []
    for message in sorted(messages, key=lambda one: one.get("timestamp", 0)):
        role = message["role"]
        results = []
        if message.get("reasoning_content"):
            found.append(Item(role, "thinking", message["reasoning_content"]))
        for part in message["parts"]:
            if part["type"] == "text":
                found.append(Item(role, "text", part.get("text") or ""))
            elif part["type"] == "tool":
                found.append(call(part["tool"], part.get("input")))
                if part.get("status") not in ("pending", "running", None):
                    results.append(Item("tool", "result", part.get("output") or ""))
        found += results
    return found


def attocode(data: bytes) -> list[Item]:
    """Take messages in file order; a compaction is a system message."""
    found: list[Item] = []
    for value in _lines(data):
        body = value if "role" in value else value.get("data") or {}
        if value.get("type") == "compaction":
            found.append(Item("system", "within", body.get("summary") or ""))
        role = body.get("role")
        text = [Item(role or "", "text", part["text"]) for part in _listed(body.get("content")) if part.get("text")]
        if role == "tool":
            if body.get("toolCallId") is not None:
                found.append(Item("tool", "result", _texts(body.get("content"))))
        elif role is not None:
            found += text + [call(one["name"], one.get("arguments")) for one in body.get("toolCalls") or []]
        for one in body.get("toolResults") or []:
            given, error = one.get("result"), one.get("error")
            said = [] if given is None and error is not None else [given if isinstance(given, str) else _compact(given)]
            found.append(Item("tool", "result", "\n".join([*said, *([error] if error is not None else [])])))
    return found


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def operator_use(data: bytes) -> list[Item]:
    """Take messages in the order of the tree, which these files keep; no model sees those of extensions."""
    found: list[Item] = []
    for value in _lines(data):
        kind = value.get("type", "message")
        if kind in ("compaction", "branch_summary"):
            found.append(Item("user", "within", value.get("summary") or ""))
        body = value.get("message", value) if kind == "message" else {}
        role = body.get("role")
        if role is None or role in ("custom", "skill_invocation", "template_invocation"):
            continue
        said = role if role in ("assistant", "system") else "user"
        for part in body.get("contents") or []:
            if part["type"] in ("text", "thinking"):
                found.append(Item(said, part["type"], part.get("content") or ""))
            elif part["type"] == "tool_call":
                found.append(call(part["name"], part.get("args")))
            elif part["type"] == "tool_result":
                found.append(Item("tool", "result", part.get("content") or ""))
    return found


def gemini(data: bytes) -> list[Item]:
    """Replay the log: an id again replaces, `$rewindTo` drops, `$set` of messages starts anew."""
    try:
        listed = list(json.loads(data)["messages"])
    except (ValueError, KeyError):
        order: dict[str, Any] = {}
        for value in _lines(data):
            if "$rewindTo" in value:
                names = list(order)
                gone = names[names.index(value["$rewindTo"]) :] if value["$rewindTo"] in order else names
                order = {name: one for name, one in order.items() if name not in gone}
            elif "messages" in (value.get("$set") or {}):
                order = {one["id"]: one for one in value["$set"]["messages"]}
            elif "type" in value:
                order[value["id"]] = value
        listed = list(order.values())
    answered = [one.get("id") for message in listed for one in message.get("toolCalls") or [] if one.get("result")]
    return [item for message in listed for item in _gemini_items(message, answered)]


def _gemini_items(message: Mapping[str, Any], answered: Sequence[Any]) -> Iterator[Item]:
    kind, content = message["type"], message.get("content")
    if kind in ("info", "error", "warning"):
        return
    role = "user" if kind == "user" else "assistant"
    parts = content if isinstance(content, list) else [content] if content else []
    parts = [{"text": part} if isinstance(part, str) else part for part in parts]
    for thought in message.get("thoughts") or []:
        yield Item(
            role, "thinking", "\n".join([thought[name] for name in ("subject", "description") if thought.get(name)])
        )
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    for part in parts:
        if "functionResponse" in part:
            if part["functionResponse"].get("id") not in answered:
                yield Item("tool", "result", _gemini_result([part]))
        elif "functionCall" in part:
            yield call(part["functionCall"]["name"], part["functionCall"].get("args"))
        elif part.get("text"):
            yield Item(role, "thinking" if part.get("thought") else "text", part["text"])
    if not calls:
        yield from [call(one["name"], one.get("args")) for one in message.get("toolCalls") or []]
    for one in message.get("toolCalls") or []:
        if one.get("result") is not None:
            yield Item("tool", "result", _gemini_result(one["result"]))


def _gemini_result(result: Any) -> str:
    texts = []
    for part in result if isinstance(result, list) else [result]:
        response = part.get("functionResponse", {}).get("response") if isinstance(part, dict) else None
        if isinstance(response, dict):
            output = response.get("output", response.get("error"))
            texts.append(output if isinstance(output, str) else _compact(response))
        elif isinstance(part, str) or part.get("text"):
            texts.append(part if isinstance(part, str) else part["text"])
    return "\n".join(texts)


READERS: Mapping[str, Callable[[bytes], list[Item]]] = {
    "atif": atif,
    "attocode": attocode,
    "chat-ft": lambda data: [item for line in _lines(data) for item in chat(line["messages"])],
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "mini-swe-agent": lambda data: chat(json.loads(data)["messages"]),
    "openclaw": pi,
    "openclaw-lines": pi,
    "opencode": opencode,
    "operator-use": operator_use,
    "pi": pi,
    "role-jsonl": role_lines,
    "role-list": lambda data: chat(json.loads(data)),
    "sweagent": lambda data: chat(json.loads(data)["history"]),
    "wolo": wolo,
}
