"""ShareGPT's conversations, as lines or as a list: `{"conversations": [{"from", "value"}]}`; read only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import orjson

from interlingua.types import ContentBlock, Message, Role, TextBlock, ToolResultBlock, ToolUseBlock, read_tool_input
from interlingua_transcripts.imported import EPOCH, ImportedIds
from interlingua_transcripts.system import DocumentFormat, SessionFormat
from interlingua_transcripts.transcript import MessageGroup, Note, ReadPlan
from interlingua_transcripts.values import Form

_ROLES = {
    "system": Role.SYSTEM,
    "human": Role.USER,
    "user": Role.USER,
    "gpt": Role.ASSISTANT,
    "chatgpt": Role.ASSISTANT,
    "assistant": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "bing": Role.ASSISTANT,
    "bard": Role.ASSISTANT,
    "function_call": Role.ASSISTANT,
    "observation": Role.TOOL,
    "tool": Role.TOOL,
}
_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
_JSON = re.compile(r"[{\[].*[}\]]", re.DOTALL)


def _turn_parts(value: Any, _turn: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return the strings, and the values of calls and results, in tags or as JSON in a turn."""
    if not isinstance(value, str):
        return None
    tagged = [found for pattern in (_CALL, _RESPONSE) for found in pattern.findall(value)]
    rest = _RESPONSE.sub("", _CALL.sub("", value)).strip()
    plain = [_parsed(rest)] if not tagged and _parsed(rest) is not None else [rest] if rest else []
    found: list[Any] = []
    for part in [*map(_parsed_or_text, tagged), *plain]:
        for call in part if isinstance(part, list) else [part]:
            if isinstance(call, dict) and "name" in call:
                found += [call["name"], *_flat(call.get("arguments", call.get("parameters")))]
            else:
                found.append(call if isinstance(call, str) else value)
    return found


def _flat(arguments: Any) -> Iterator[Any]:
    arguments = _parsed(arguments) if isinstance(arguments, str) else arguments
    for value in arguments.values() if isinstance(arguments, dict) else ():
        if isinstance(value, str | int | float):
            yield value


def _parsed(text: str) -> Any:
    if _JSON.fullmatch(text.strip()) is None:
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _parsed_or_text(text: str) -> Any:
    value = _parsed(text)
    return text if value is None else value


_FORMS = {"conversations.value": Form("a call's name and arguments, taken out of the turn's text", _turn_parts)}


class _ShareGpt:
    """Both forms: one conversation after the other, each in its own entry."""

    writable: ClassVar[bool] = False
    several: ClassVar[bool] = True
    forms: ClassVar[Mapping[str, Form]] = _FORMS

    def kind_of(self, value: Any) -> str:
        """Return `conversation`."""
        return "conversation" if _is_conversation(value) else "document"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the conversations one after the other."""
        found = [at for at, value in enumerate(values) if _is_conversation(value)]
        plan = ReadPlan(session_id="", groups=[MessageGroup(str(at), (at,)) for at in found])
        if len(found) > 1:
            plan.notes.append(Note(None, f"{len(found)} conversations are in this file, each a separate one"))
            plan.context = [len(found) - 1]
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the messages of a conversation; a result answers the open calls in order."""
        return list(_messages(values[0], ids, group.key))


class ShareGptLines(_ShareGpt, SessionFormat):
    """Lines `{"conversations": [...]}`."""

    name = "sharegpt"
    title = "ShareGPT (lines)"

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise lines of turns with `from` and `value`."""
        lines = [line for line in head if line is not None]
        return "" if lines and all(map(_is_conversation, lines)) else None


class ShareGptList(_ShareGpt, DocumentFormat):
    """A list of `{"conversations": [...]}`."""

    name = "sharegpt-list"
    title = "ShareGPT (a list)"
    items = ""

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise a list of conversations of turns with `from` and `value`."""
        document = head[0]
        return "" if isinstance(document, list) and document and all(map(_is_conversation, document)) else None


def _is_conversation(value: Any) -> bool:
    turns = value.get("conversations") if isinstance(value, dict) else None
    if not isinstance(turns, list) or not turns:
        return False
    return all(
        isinstance(one, dict) and one.get("from") in _ROLES and isinstance(one.get("value"), str) for one in turns
    )


def _messages(raw: Mapping[str, Any], ids: ImportedIds, key: str) -> Iterator[Message]:
    if isinstance(raw.get("system"), str) and raw["system"]:
        yield ids.make_message(Role.SYSTEM, [TextBlock(text=raw["system"])], EPOCH)
    open_: list[ToolUseBlock] = []
    made = 0
    for turn in raw["conversations"]:
        role, text = _ROLES[turn["from"]], turn["value"]
        if role is Role.TOOL:
            for said in _RESPONSE.findall(text) or [text]:
                call = open_.pop(0).id if open_ else ids.call(f"{key} unnamed {made}")
                result = ToolResultBlock(tool_use_id=call, content=(TextBlock(text=said),))
                yield ids.make_message(Role.TOOL, [result], EPOCH, {"parent_tool_use_id": call})
            continue
        calls: list[ToolUseBlock] = []
        if role is Role.ASSISTANT:
            listed = [text] if turn["from"] == "function_call" else _CALL.findall(text)
            for name, arguments in _calls(listed):
                made += 1
                calls.append(_call(name, arguments, ids, f"{key} call {made}"))
            text = "" if calls and turn["from"] == "function_call" else _CALL.sub("", text).strip() if calls else text
        blocks: list[ContentBlock] = [*([TextBlock(text=text)] if text else []), *calls]
        open_ = [] if role is Role.USER else [*open_, *calls]
        if blocks:
            yield ids.make_message(role, blocks, EPOCH)


def _calls(texts: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield name and arguments of the calls in JSON strings; any other string has none."""
    for text in texts:
        value = _parsed(text)
        for call in value if isinstance(value, list) else [value]:
            if isinstance(call, dict) and isinstance(call.get("name"), str):
                yield call["name"], call.get("arguments", call.get("parameters"))


def _call(name: str, given: Any, ids: ImportedIds, seed: str) -> ToolUseBlock:
    """Return a call; these files have no ids, so that it has no issued one."""
    text = given if isinstance(given, str) else None
    value, error = (given, None) if isinstance(given, dict) else read_tool_input(text or "{}")
    return ToolUseBlock(id=ids.call(seed), name=name, input=value, raw_input=text, parse_error=error)


sharegpt = ShareGptLines()
sharegpt_list = ShareGptList()
