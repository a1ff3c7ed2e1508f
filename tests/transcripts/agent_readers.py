"""A second reader for each format of `agent_samples`, from its fact sheet alone; it shares no code with the product."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from interlingua.types import Message, ThinkingBlock
from tests.transcripts.agent_samples import Facts
from tests.transcripts.second_readers import Item, call, chat


def _values(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.decode().split("\n") if line.strip()]


def _blocks(role: str, content: Any) -> list[Item]:
    """Take blocks of the Messages API, with Amp's own results."""
    found = []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        kind = part["type"]
        if kind in ("text", "thinking"):
            found.append(Item(role, kind, part[kind]))
        elif kind == "tool_use":
            found.append(call(part["name"], part["input"]))
        elif kind == "tool_result":
            inner = part["run"]["result"] if "run" in part else part["content"]
            text = inner if isinstance(inner, str) else "\n".join([one["text"] for one in inner])
            found.append(Item("tool", "result", text))
    return found


def _turns(turns: list[Any]) -> list[Item]:
    return [item for turn in turns for item in _blocks(turn["role"], turn["content"])]


def _roo(turns: list[Any]) -> list[Item]:
    found = []
    for turn in turns:
        if turn.get("reasoning_content"):
            found.append(Item("assistant", "thinking", turn["reasoning_content"]))
        found += _blocks(turn["role"], turn["content"])
    return found


def qwen(data: bytes) -> list[Item]:
    """Follow `parentUuid` from the last line; parts have Gemini's form."""
    lines = _values(data)
    by_id = {line["uuid"]: line for line in lines}
    path: list[Any] = []
    step = lines[-1]
    while step is not None:
        path.insert(0, step)
        step = by_id.get(step["parentUuid"])
    found = []
    for line in path:
        role = {"model": "assistant"}.get(line["message"]["role"], "user")
        for part in line["message"]["parts"]:
            if "functionCall" in part:
                found.append(call(part["functionCall"]["name"], part["functionCall"]["args"]))
            elif "functionResponse" in part:
                found.append(Item("tool", "result", part["functionResponse"]["response"]["output"]))
            else:
                found.append(Item(role, "thinking" if part.get("thought") else "text", part["text"]))
    return found


def goose(messages: list[Any]) -> list[Item]:
    """Take the content of each message."""
    found = []
    for message in messages:
        for part in message["content"]:
            kind = part["type"]
            if kind in ("text", "thinking"):
                found.append(Item(message["role"], kind, part[kind]))
            elif kind == "toolRequest":
                made = part["toolCall"]["value"]
                found.append(call(made["name"], made["arguments"]))
            elif kind == "toolResponse":
                texts = [one["text"] for one in part["toolResult"]["value"]["content"]]
                found.append(Item("tool", "result", "\n".join(texts)))
    return found


def copilot(data: bytes) -> list[Item]:
    """Take the events of the main agent."""
    found = []
    for event in _values(data):
        about = event["data"]
        if "parentToolCallId" in about or "agentId" in event:
            continue
        if event["type"] == "user.message":
            found.append(Item("user", "text", about["content"]))
        elif event["type"] == "assistant.message":
            found.append(Item("assistant", "thinking", about.get("reasoningText", "")))
            found.append(Item("assistant", "text", about["content"]))
            found += [call(one["name"], one["arguments"]) for one in about["toolRequests"]]
        elif event["type"] == "tool.execution_complete":
            found.append(Item("tool", "result", about["result"]["content"]))
    return found


def kimi(data: bytes) -> list[Item]:
    """Take the prompt, and messages of the Chat Completions form whose thinking is a part."""
    found = []
    for line in _values(data):
        if line["role"] == "_system_prompt":
            found.append(Item("system", "text", line["content"]))
        elif not line["role"].startswith("_"):
            parts = line["content"] if isinstance(line["content"], list) else []
            found += [Item("assistant", "thinking", part["think"]) for part in parts if part["type"] == "think"]
            found += chat([line])
    return found


def continue_dev(data: bytes) -> list[Item]:
    """Take context, message, calls and their outputs; the messages of tools repeat the outputs."""
    found = []
    for item in json.loads(data)["history"]:
        message = item["message"]
        role = message["role"]
        found += [Item("user", "text", one["content"]) for one in item["contextItems"]]
        if role == "thinking":
            found.append(Item("assistant", "thinking", message["content"]))
        elif role != "tool":
            found.append(Item(role, "text", message["content"]))
        found += [call(one["function"]["name"], one["function"]["arguments"]) for one in message.get("toolCalls", [])]
        for state in item.get("toolCallStates", []):
            found.append(Item("tool", "result", "\n".join([one["content"] for one in state["output"]])))
    return found


def aider(data: bytes) -> list[Item]:
    """Take lines by their marks, as the program's own splitter does, but keep an answer's headings."""
    found: list[Item] = []
    last = ""
    for line in data.decode().split("\n"):
        if line.startswith(("> ", "# aider chat started at ")):
            last = ""
            continue
        role, text = ("user", line[5:].rstrip()) if line.startswith("#### ") else ("assistant", line)
        if role == last:
            found[-1] = Item(role, "text", f"{found[-1].value}\n{text}")
        else:
            found.append(Item(role, "text", text))
        last = role
    return [Item(role, "text", value.strip()) for role, _, value in found]


def sharegpt(conversations: list[Any]) -> list[Item]:
    """Take the turns; a call is JSON, alone or in a tag."""
    found = []
    for one in conversations:
        found += [Item("system", "text", one["system"])] if "system" in one else []
        for turn in one["conversations"]:
            role = {"human": "user", "gpt": "assistant", "function_call": "assistant"}.get(turn["from"], turn["from"])
            text = turn["value"]
            tags = re.findall(r"<tool_call>(.*?)</tool_call>", text, re.DOTALL)
            if turn["from"] == "function_call":
                tags, text = [text], ""
            if role in ("observation", "tool"):
                text = re.sub(r"</?tool_response>", "", text).strip()
                found.append(Item("tool", "result", text))
                continue
            found.append(Item(role, "text", re.sub(r"<tool_call>.*?</tool_call>", "", text, flags=re.DOTALL).strip()))
            found += [call(made["name"], made["arguments"]) for made in map(json.loads, tags)]
    return found


def zed(rows: list[Any]) -> list[Item]:
    """Take the members of each message, whose names are the kinds; before, a role and lists beside each other."""
    found = []
    for raw in [message for row in rows for message in row["data"]["messages"]]:
        if raw == "Resume":
            found.append(Item("user", "text", "Continue where you left off"))
        elif "role" in raw:
            found += [Item(raw["role"], "text", raw["context"])] if raw.get("context") else []
            found += [Item(raw["role"], part["type"], part["text"]) for part in raw["segments"]]
            found += [call(one["name"], one["input"]) for one in raw.get("tool_uses", [])]
            found += [Item("tool", "result", one["content"]) for one in raw.get("tool_results", [])]
        elif "User" in raw:
            for part in raw["User"]["content"]:
                mention = part.get("Mention")
                found.append(
                    Item("user", "within", mention["content"]) if mention else Item("user", "text", part["Text"])
                )
        else:
            for part in raw["Agent"]["content"]:
                for kind, value in part.items():
                    if kind == "ToolUse":
                        found.append(call(value["name"], value["input"]["value"]))
                    else:
                        text = value if kind == "Text" else value["text"]
                        found.append(Item("assistant", kind.lower(), text))
            for result in raw["Agent"]["tool_results"].values():
                found.append(Item("tool", "result", "\n".join([one["Text"] for one in result["content"]])))
    return found


READERS: Mapping[str, Callable[[bytes], list[Item]]] = {
    "aider": aider,
    "amp": lambda data: _turns(json.loads(data)["messages"]),
    "chat-ft": lambda data: _turns(_values(data)[0]["messages"]),
    "chat-list": lambda data: _turns(json.loads(data)),
    "cline": lambda data: _roo(json.loads(data)),
    "continue": continue_dev,
    "copilot": copilot,
    "cursor": lambda data: _turns([{**one["message"], **one} for one in _values(data) if "role" in one]),
    "factory-droid": lambda data: _turns([one["message"] for one in _values(data) if one["type"] == "message"]),
    "goose": lambda data: goose(json.loads(data)["conversation"]),
    "goose-lines": lambda data: goose(_values(data)[1:]),
    "kimi": kimi,
    "qwen-code": qwen,
    "sharegpt": lambda data: sharegpt(_values(data)),
    "sharegpt-list": lambda data: sharegpt(json.loads(data)),
    "zed": lambda data: zed(_values(data)),
}


def facts_of(messages: Iterable[Message]) -> Facts:
    """Return the facts of canonical messages."""
    every = list(messages)
    thoughts = [block for message in every for block in message.content if isinstance(block, ThinkingBlock)]
    counted = [message.metadata.usage for message in every if message.metadata.usage is not None]
    return Facts(
        signed=sum(thought.signature == "c2ln" for thought in thoughts),
        model=next((message.metadata.model for message in every if message.metadata.model), None),
        tokens=(counted[0].input_tokens, counted[0].output_tokens, counted[0].cached_input_tokens) if counted else None,
        failed=sum(result.is_error for message in every for result in message.tool_results),
    )
