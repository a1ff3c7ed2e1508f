"""opencode's exported sessions and OpenHands' events: one JSON document; read only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from interlingua.types import (
    ContentBlock,
    Message,
    OpaqueBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts.formats.chat_shaped import read_chat_message
from interlingua_transcripts.imported import ImportedIds, count_of, time_of, usd_of
from interlingua_transcripts.system import DocumentFormat
from interlingua_transcripts.transcript import MessageGroup, ReadPlan

_USER, _ASSISTANT, _TOOL = Role.USER, Role.ASSISTANT, Role.TOOL
_STOPS = {"stop": StopReason.END_TURN, "tool-calls": StopReason.TOOL_USE, "length": StopReason.MAX_TOKENS}
_UNSAID = {"step-start", "step-finish", "snapshot", "patch"}
_DONE = {"completed", "error"}


class OpenCode(DocumentFormat):
    """The output of `opencode export`: a call and its result are one part."""

    name = "opencode"
    title = "opencode"
    items = "messages"
    writable = False

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the version of the program that `info` names."""
        document = head[0]
        if not isinstance(document, dict) or not isinstance(document.get("info"), dict):
            return None
        own = isinstance(document.get("messages"), list) and str(document["info"].get("id", "")).startswith("ses_")
        return str(document["info"].get("version", "")) if own else None

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role, or `session`."""
        inside = isinstance(value, dict) and "parts" in value
        return f"message/{value['info'].get('role')}" if inside else "session"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the messages in order."""
        info = (values[0] or {}).get("info") or {}
        places = [at for at, value in enumerate(values) if at and isinstance(value, dict) and "parts" in value]
        return ReadPlan(
            session_id=str(info.get("id", "")),
            version=str(info.get("version", "")),
            groups=[MessageGroup(str(values[at]["info"].get("id", at)), (at,)) for at in places],
            title=info.get("title"),
            cwd=info.get("directory"),
        )

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return a message for each step of an answer, and one for each result."""
        raw = values[0]
        info = raw["info"]
        at = time_of((info.get("time") or {}).get("created"))
        by_model = info.get("role") == "assistant"
        facts = _answer_facts(info) if by_model else {}
        made: list[Message] = []
        blocks: list[ContentBlock] = []
        results: list[ToolResultBlock] = []
        for part in raw["parts"]:
            kind = part.get("type")
            if kind == "step-start" and results:
                made.append(ids.make_message(_ASSISTANT, blocks, at, facts))
                made += _answers(results, at, ids)
                blocks, results = [], []
            if kind not in _UNSAID:
                blocks.append(_block(part, ids))
            if kind == "tool" and part["state"].get("status") in _DONE:
                results.append(_result(part, ids))
        if blocks:
            made.append(ids.make_message(_ASSISTANT if by_model else _USER, blocks, at, facts))
        return [*made, *_answers(results, at, ids)]


def _answers(results: Sequence[ToolResultBlock], at: datetime, ids: ImportedIds) -> list[Message]:
    return [ids.make_message(_TOOL, [one], at, {"parent_tool_use_id": one.tool_use_id}) for one in results]


def _block(part: Mapping[str, Any], ids: ImportedIds) -> ContentBlock:
    kind = part.get("type")
    if kind == "text":
        return TextBlock(text=part.get("text") or "")
    if kind == "reasoning":
        held = next((one for one in (part.get("metadata") or {}).values() if isinstance(one, dict)), {})
        signature = held.get("signature") or held.get("reasoningEncryptedContent")
        return ThinkingBlock(text=part.get("text") or "", signature=signature)
    if kind == "tool":
        issued, given = str(part["callID"]), part["state"].get("input")
        value = given if isinstance(given, dict) else {}
        return ToolUseBlock(id=ids.call(issued), provider_id=issued, name=str(part["tool"]), input=value)
    return OpaqueBlock(provider="opencode", kind=str(kind), data=part)


def _result(part: Mapping[str, Any], ids: ImportedIds) -> ToolResultBlock:
    state = part["state"]
    failed = state.get("status") == "error"
    text = state.get("error") if failed else state.get("output")
    return ToolResultBlock(
        tool_use_id=ids.call(str(part["callID"])),
        content=(TextBlock(text=str(text or "")),),
        is_error=failed,
        tool_name=part.get("tool"),
        details=state.get("metadata"),
    )


def _answer_facts(info: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if info.get("modelID"):
        provider = str(info.get("providerID") or "unknown")
        facts |= {"provider": provider, "model": f"{provider}:{info['modelID']}"}
    if isinstance(info.get("finish"), str):
        facts |= {"stop_reason": _STOPS.get(info["finish"], StopReason.OTHER), "stop_reason_raw": info["finish"]}
    tokens = info.get("tokens")
    if isinstance(tokens, dict):
        cache = tokens.get("cache") or {}
        plain, read, written = (count_of(one) for one in (tokens.get("input"), cache.get("read"), cache.get("write")))
        output, reasoning = count_of(tokens.get("output")), count_of(tokens.get("reasoning"))
        cost = usd_of(info.get("cost"))
        facts["usage"] = Usage(
            input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
            output_tokens=None if output is None else output + (reasoning or 0),
            cached_input_tokens=read,
            cache_creation_input_tokens=written,
            reasoning_tokens=reasoning,
            cost_usd=cost,
            pricing_version=None if cost is None else "source",
        )
    return facts


class OpenHands(DocumentFormat):
    """OpenHands' trajectories: a list of events; an observation answers the action it names as its cause."""

    name = "openhands"
    title = "OpenHands"
    items = ""
    writable = False

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise a list of actions and observations."""
        document = head[0]
        if not isinstance(document, list) or not document:
            return None
        return "" if all(isinstance(one, dict) and {"action", "observation"} & set(one) for one in document) else None

    def kind_of(self, value: Any) -> str:
        """Return the action or the observation."""
        if not isinstance(value, dict):
            return "list"
        return f"action/{value['action']}" if "action" in value else f"observation/{value.get('observation')}"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take what users and agents said, the calls, and what answers them."""
        plan = ReadPlan(session_id="")
        seen: set[str] = set()
        for at, value in enumerate(values):
            if not isinstance(value, dict):
                continue
            answer = _response(value)
            said = value.get("action") in ("message", "system") and value.get("source") in ("user", "agent")
            if "observation" in value and answer is not None:
                plan.groups.append(MessageGroup(str(value.get("id", at)), (at,)))
            elif answer is not None and str(answer.get("id")) not in seen:
                seen.add(str(answer.get("id")))
                plan.groups.append(MessageGroup(str(value.get("id", at)), (at,)))
            elif answer is None and said:
                plan.groups.append(MessageGroup(str(value.get("id", at)), (at,)))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message: the answer as the service sent it, a result, or text."""
        event = values[0]
        at = time_of(event.get("timestamp"))
        answer = _response(event)
        if answer is not None and "action" in event:
            choice = answer["choices"][0]
            raw = {**choice["message"], "finish_reason": choice.get("finish_reason"), "usage": answer.get("usage")}
            return read_chat_message(raw, ids, model=str(answer.get("model") or ""), at=at)
        if answer is not None:
            about = event["tool_call_metadata"]
            raw = {"role": "tool", "tool_call_id": about["tool_call_id"], "content": str(event.get("content") or "")}
            return read_chat_message({**raw, "name": about.get("function_name")}, ids, at=at)
        role = "user" if event.get("source") == "user" else "assistant"
        role = "system" if event.get("action") == "system" else role
        text = (event.get("args") or {}).get("content") or event.get("message") or ""
        return read_chat_message({"role": role, "content": text}, ids, at=at)


def _response(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    about = event.get("tool_call_metadata")
    answer = about.get("model_response") if isinstance(about, dict) else None
    return answer if isinstance(answer, dict) and answer.get("choices") else None


opencode = OpenCode()
openhands = OpenHands()
