"""ATIF, the Agent Trajectory Interchange Format: one JSON document, a step is an answer and what it observed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar

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
from interlingua_transcripts.imported import ImportedIds, count_of, time_of, to_iso, usd_of
from interlingua_transcripts.loading import load_entry
from interlingua_transcripts.system import DocumentFormat
from interlingua_transcripts.transcript import Conversation, MessageGroup, Note, ReadPlan, Written
from interlingua_transcripts.values import Form

_VERSION = re.compile(r"ATIF-v(\d+\.\d+)")
_LATEST = "ATIF-v1.7"
_KNOWN = {f"1.{minor}" for minor in range(9)}
_ROLES = {"system": Role.SYSTEM, "user": Role.USER}
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL


class Atif(DocumentFormat):
    """ATIF trajectories, version 1.0 to 1.8; 1.7 is written."""

    name = "atif"
    title = "ATIF"
    lacks: ClassVar[Set[str]] = frozenset({
        "signature of thinking", "mark of a failed result", "image", "mark of a stopped answer", "error message",
        "stop reason",
    })  # fmt: skip
    items = "steps"
    results_in_calls = True
    forms: ClassVar[Mapping[str, Form]] = {
        "model_name": Form("a service and its model", lambda value, _step: [value.replace("/", ":", 1)]),
        "step_id": Form("the step's place in the list", lambda _value, _step: []),
    }

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the version that `schema_version` names."""
        document = head[0]
        if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
            return None
        match = _VERSION.match(str(document.get("schema_version", "")))
        return None if match is None else match[1]

    def kind_of(self, value: Any) -> str:
        """Return the step's source, or `document`."""
        return f"step/{value['source']}" if isinstance(value, dict) and "source" in value else "document"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the steps in order."""
        root = values[0] if isinstance(values[0], dict) else {}
        match = _VERSION.match(str(root.get("schema_version", "")))
        plan = ReadPlan(
            session_id=str(root.get("session_id") or root.get("trajectory_id") or ""), version=match[1] if match else ""
        )
        if plan.version not in _KNOWN:
            plan.notes.append(Note(0, f"an unknown version {root.get('schema_version')!r}; read as {_LATEST}"))
        agent = root.get("agent") if isinstance(root.get("agent"), dict) else {}
        facts = {"model": (agent or {}).get("model_name") or (agent or {}).get("model")}
        plan.groups = [
            MessageGroup(str(step.get("step_id", at)), (at,), facts)
            for at, step in enumerate(values)
            if at and isinstance(step, dict) and "source" in step
        ]
        guessed = sum(len(_unnamed(values[group.entries[0]])) for group in plan.groups)
        if guessed:
            text = f"{guessed} results name no call; each answers the call at its place in the step"
            plan.notes.append(Note(None, text))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return a step's message, and one for each result of its calls."""
        step = values[0]
        at = time_of(step.get("timestamp"))
        source = str(step.get("source"))
        calls = [call for call in step.get("tool_calls") or () if isinstance(call, dict)]
        blocks = _parts(step.get("message"))
        facts: dict[str, Any] = {}
        if source not in _ROLES:
            thought = step.get("reasoning_content")
            thoughts = [ThinkingBlock(text=thought)] if thought else []
            blocks = [*thoughts, *blocks, *[_call(call, ids) for call in calls]]
            facts = _answer_facts(step, step.get("model_name") or (group.facts or {}).get("model"))

        made = []
        if blocks:
            made.append(ids.make_message(_ROLES.get(source, _ASSISTANT), blocks, at, facts))
        names = {str(call.get("tool_call_id")): call.get("function_name") for call in calls}
        for own, result in _results(step, calls):
            answer = ids.call(own)
            block = ToolResultBlock(
                tool_use_id=answer, content=tuple(_parts(result.get("content"))), tool_name=names.get(own)
            )
            made.append(ids.make_message(_TOOL, [block], at, {"parent_tool_use_id": answer}))
        return made

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield the document without its steps, then a step for each message with the results of its calls."""
        steps = list(_steps(conversation))
        number = max((value.get("step_id", 0) for value in conversation.before if isinstance(value, dict)), default=0)
        if not conversation.before:
            models = [step["model_name"] for step, _ in steps if step.get("model_name")]
            agent: dict[str, Any] = {"name": "interlingua", "version": "0.1.0"}
            if models:
                agent["model_name"] = models[0]
            root = {"schema_version": _LATEST, "session_id": conversation.session_id, "agent": agent, "steps": []}
            yield Written(root)
        for step, said in steps:
            number += 1
            yield Written({"step_id": number, **step}, said)

    def change_repeats(
        self, entries: Sequence[bytes], groups: Sequence[MessageGroup], changes: Mapping[int, bytes | None]
    ) -> dict[int, bytes | None]:
        """Give the steps new numbers if some are left out; their numbers must have been their places."""
        places = [group.entries[0] for group in groups]
        steps = {at: load_entry(entries[at]) for at in places}
        numbered = [step.get("step_id") for step in steps.values()] == list(range(1, len(places) + 1))
        if not numbered or None not in changes.values():
            return {}
        kept = [at for at in places if changes.get(at, b"") is not None]
        found: dict[int, bytes | None] = {}
        for number, at in enumerate(kept, 1):
            step = load_entry(changes.get(at) or entries[at])
            if step["step_id"] != number:
                found[at] = dumps({**step, "step_id": number})
        return found


# -- reading ----------------------------------------------------------------------------------------------------------
def _parts(content: Any) -> list[ContentBlock]:
    if isinstance(content, str):
        return [TextBlock(text=content)] if content else []
    return [_part(part) for part in content or () if isinstance(part, dict)]


def _part(part: Mapping[str, Any]) -> ContentBlock:
    source = part.get("source")
    if part.get("type") == "text":
        return TextBlock(text=part["text"])
    if part.get("type") == "image" and isinstance(source, dict):
        path = str(source["path"])
        given = MediaSource(kind="url" if "://" in path else "file_ref", data=path)
        return ImageBlock(source=given, media_type=source.get("media_type") or "")
    return OpaqueBlock(provider="atif", kind=str(part.get("type")), data=part)


def _call(call: Mapping[str, Any], ids: ImportedIds) -> ToolUseBlock:
    issued = str(call["tool_call_id"])
    given = call.get("arguments")
    value = given if isinstance(given, dict) else {}
    return ToolUseBlock(id=ids.call(issued), provider_id=issued, name=str(call["function_name"]), input=value)


def _unnamed(step: Mapping[str, Any]) -> list[Any]:
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    return [result for result in results or () if isinstance(result, dict) and not result.get("source_call_id")]


def _results(step: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each result with the id of its call; one that names none answers the call at its own place."""
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    for place, result in enumerate(results or ()):
        if not isinstance(result, dict):
            continue
        own = result.get("source_call_id")
        if not own and place < len(calls):
            own = calls[place].get("tool_call_id")
        yield str(own or f"step {step.get('step_id')} result {place}"), result


def _answer_facts(step: Mapping[str, Any], name: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if isinstance(name, str) and name:
        provider, slash, model = name.partition("/")
        provider, model = (provider, model) if slash else ("unknown", name)
        facts |= {"provider": provider, "model": f"{provider}:{model}"}
    metrics = step.get("metrics")
    if isinstance(metrics, dict):
        cost = usd_of(metrics.get("cost_usd"))
        facts["usage"] = Usage(
            input_tokens=count_of(metrics.get("prompt_tokens")),
            output_tokens=count_of(metrics.get("completion_tokens")),
            cached_input_tokens=count_of(metrics.get("cached_tokens")),
            cost_usd=cost,
            pricing_version=None if cost is None else "source",
        )
    return facts


# -- writing ----------------------------------------------------------------------------------------------------------
def _steps(conversation: Conversation) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Yield steps without their numbers; results join the step of their calls, those of no call the step before."""
    owners = {call.id: message.id for message in conversation.messages for call in message.tool_calls}
    results: dict[str, list[tuple[str, ToolResultBlock]]] = {}
    last = None
    for message in conversation.messages:
        if message.role is not Role.TOOL:
            last = message.id if message.role is Role.ASSISTANT else None
        for block in message.tool_results:
            owner = owners.get(block.tool_use_id)
            if owner is None:
                owner = last = last or message.id
            results.setdefault(owner, []).append((message.id, block))
    for message in conversation.messages:
        answers = results.get(message.id, [])
        if message.role is Role.TOOL and not answers:
            continue
        step = _step(message, conversation)
        if answers:
            step["observation"] = {"results": _step_results([block for _, block in answers], message, conversation)}
        yield step, tuple(dict.fromkeys([message.id, *[own for own, _ in answers]]))


def _step(message: Message, conversation: Conversation) -> dict[str, Any]:
    source = {Role.ASSISTANT: "agent", Role.SYSTEM: "system", Role.USER: "user", Role.TOOL: "agent"}[message.role]
    step: dict[str, Any] = {"timestamp": to_iso(message.created_at), "source": source}
    metadata = message.metadata
    if source == "agent" and metadata.model is not None:
        provider, _, name = metadata.model.partition(":")
        step["model_name"] = name if provider == "unknown" else f"{provider}/{name}"
    step["message"] = _message_text(message.content)
    if source != "agent":
        return step
    thoughts = [block.text for block in message.content if isinstance(block, ThinkingBlock)]
    if thoughts:
        step["reasoning_content"] = "\n\n".join(thoughts)
    calls = [block for block in message.content if isinstance(block, ToolUseBlock)]
    if calls:
        step["tool_calls"] = [
            {"tool_call_id": block.provider_id or block.id, "function_name": block.name, "arguments": block.input}
            for block in calls
        ]
    if metadata.usage is not None:
        step["metrics"] = _metrics(metadata.usage)
    return step


def _message_text(blocks: Sequence[ContentBlock]) -> Any:
    """Return text alone as a string, text with images as parts; embedded media have no place."""
    parts = [part for block in blocks if (part := _written_part(block)) is not None]
    if all(part.get("type") == "text" for part in parts):
        return "\n".join([part["text"] for part in parts])
    return parts


def _written_part(block: ContentBlock) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ImageBlock) and block.source.kind in ("url", "file_ref"):
        return {"type": "image", "source": {"media_type": block.media_type, "path": block.source.data}}
    return dict(block.data) if isinstance(block, OpaqueBlock) and block.provider == "atif" else None


def _step_results(blocks: Sequence[ToolResultBlock], message: Message, conversation: Conversation) -> list[Any]:
    """Return the results of a step; a result of another call has no name, unless its place would name a call."""
    calls = [call.id for call in message.tool_calls]
    made = []
    for place, block in enumerate(blocks):
        named = block.tool_use_id in calls or place < len(calls)
        own = {"source_call_id": conversation.issued_id(block.tool_use_id)} if named else {}
        made.append({**own, "content": _message_text(block.content)})
    return made


def _metrics(usage: Usage) -> dict[str, Any]:
    counts = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_input_tokens,
        "cost_usd": None if usage.cost_usd is None else float(usage.cost_usd),
    }
    return {name: value for name, value in counts.items() if value is not None}


atif = Atif()
