"""opencode's exported sessions, read and written, and OpenHands' events, read only: one JSON document each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from interlingua.types import (
    ContentBlock,
    ErrorInfo,
    ImageBlock,
    MediaSource,
    Message,
    MessageStatus,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts.formats.chat_shaped import read_chat_message
from interlingua_transcripts.imported import ImportedIds, count_of, short_id, time_of, to_milliseconds, usd_of
from interlingua_transcripts.system import DocumentFormat
from interlingua_transcripts.transcript import Conversation, MessageGroup, ReadPlan, SessionPlace, Written
from interlingua_transcripts.values import Form, sum_form

_USER, _ASSISTANT, _TOOL = Role.USER, Role.ASSISTANT, Role.TOOL
_STOPS = {"stop": StopReason.END_TURN, "tool-calls": StopReason.TOOL_USE, "length": StopReason.MAX_TOKENS}
_UNSAID = {"step-start", "step-finish", "snapshot", "patch"}
_DONE = {"completed", "error"}
_WORDS = {reason: word for word, reason in _STOPS.items()}
_VERSION = "1.18.33"  # of the program, as new files say it
_ABORTED = "MessageAbortedError"
_IDS = (1 << 48) - 1  # an id begins with 48 bits of time, in hexadecimal


def _state(value: Any, state: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return nothing more for the status of a call that has its result."""
    return [] if value in _DONE and {"output", "error"} & set(state) else None


class OpenCode(DocumentFormat):
    """The output of `opencode export`, which `opencode import` reads: a call and its result are one part."""

    name = "opencode"
    title = "opencode"
    items = "messages"
    results_in_calls = True
    lacks: ClassVar[Set[str]] = frozenset({"system prompt", "session id"})
    beside: ClassVar[Sequence[str]] = ("info.error.data.message",)  # of an answer that the user stopped
    forms: ClassVar[Mapping[str, Form]] = {
        "tokens.input": sum_form("a message counts cached tokens as input, too", "input"),
        "state.status": Form("a call with a result", _state),
    }

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
        if isinstance(info.get("error"), dict):
            facts |= _failure(info["error"])
        made: list[Message] = []
        blocks: list[ContentBlock] = []
        results: list[ToolResultBlock] = []
        calls = iter(ids.calls(str(part["callID"]) for part in raw["parts"] if part.get("type") == "tool"))
        for part in raw["parts"]:
            kind = part.get("type")
            if kind == "step-start" and results:
                made.append(ids.make_message(_ASSISTANT, blocks, at, facts))
                made += _answers(results, at, ids)
                blocks, results = [], []
            if kind == "tool":
                call = next(calls)
                blocks.append(_call(part, call))
                if part["state"].get("status") in _DONE:
                    results.append(_result(part, call))
            elif kind not in _UNSAID:
                blocks.append(_block(part))
        if blocks:
            made.append(ids.make_message(_ASSISTANT if by_model else _USER, blocks, at, facts))
        return [*made, *_answers(results, at, ids)]

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield the session, then its messages; results go into the parts of their calls."""
        own = _session_id(conversation.session_id)
        cwd = conversation.cwd or "/"
        if not conversation.before:
            at = to_milliseconds(conversation.created_at)
            info = {
                "id": own, "slug": own[-8:], "projectID": "global", "directory": cwd, "version": _VERSION,
                "title": conversation.title or "Imported session", "time": {"created": at, "updated": at},
            }  # fmt: skip
            yield Written({"info": info, "messages": []})
        results: dict[str, list[tuple[Message, ToolResultBlock]]] = {}
        for message in conversation.messages:
            for block in message.tool_results:
                results.setdefault(block.tool_use_id, []).append((message, block))
        stamp, asked = _last_stamp(conversation.before), None
        for message in conversation.messages:
            if message.role is Role.TOOL:
                continue
            stamp = max(stamp + 1, to_milliseconds(message.created_at) << 12) & _IDS
            draft = _Draft(message, own, f"msg_{stamp:012x}{short_id(f'{own} {message.id}', letters=14)}")
            if message.role is not Role.ASSISTANT:
                asked = draft.own
            yield draft.written(results, asked or draft.own, cwd)

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace | None:
        """Return a file beside opencode's database, and the commands that import and continue it."""
        own = _session_id(session_id)
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        path = data / "opencode" / "imported" / f"{own}.json"
        return SessionPlace(path, ("opencode", "--session", own), ("opencode", "import", str(path)))


def _failure(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of an answer that failed or was stopped."""
    if error.get("name") == _ABORTED:
        return {"status": MessageStatus.CANCELLED}
    data = error.get("data")
    text = data.get("message") if isinstance(data, dict) else None
    made = ErrorInfo(type="ProviderError", message=str(text or error.get("name")))
    return {"status": MessageStatus.ERROR, "error": made}


def _answers(results: Sequence[ToolResultBlock], at: datetime, ids: ImportedIds) -> list[Message]:
    return [ids.make_message(_TOOL, [one], at, {"parent_tool_use_id": one.tool_use_id}) for one in results]


def _block(part: Mapping[str, Any]) -> ContentBlock:
    kind = part.get("type")
    if kind == "text":
        return TextBlock(text=part.get("text") or "")
    if kind == "reasoning":
        held = next((one for one in (part.get("metadata") or {}).values() if isinstance(one, dict)), {})
        if not part.get("text") and held.get("redactedData"):
            return RedactedThinkingBlock(data=held["redactedData"])
        signature = held.get("signature") or held.get("reasoningEncryptedContent")
        return ThinkingBlock(text=part.get("text") or "", signature=signature)
    if kind == "file" and (image := _picture(part)) is not None:
        return image
    return OpaqueBlock(provider="opencode", kind=str(kind), data=part)


def _call(part: Mapping[str, Any], own: str) -> ToolUseBlock:
    given = part["state"].get("input")
    value = given if isinstance(given, dict) else {}
    return ToolUseBlock(id=own, provider_id=str(part["callID"]), name=str(part["tool"]), input=value)


def _picture(part: Mapping[str, Any]) -> ImageBlock | None:
    """Return the picture in a part of a file; None for any other file, and for a link."""
    kind, url = part.get("mime"), part.get("url")
    if not isinstance(kind, str) or not kind.startswith("image/") or not isinstance(url, str):
        return None
    head, _, data = url.partition(";base64,")
    if not data or not head.startswith("data:"):
        return None
    return ImageBlock(source=MediaSource(kind="base64", data=data), media_type=kind)


def _result(part: Mapping[str, Any], call: str) -> ToolResultBlock:
    state = part["state"]
    failed = state.get("status") == "error"
    text = state.get("error") if failed else state.get("output")
    held = state.get("attachments")
    images = [_picture(one) for one in held if isinstance(one, dict)] if isinstance(held, list) else []
    return ToolResultBlock(
        tool_use_id=call,
        content=(TextBlock(text=str(text or "")), *[image for image in images if image is not None]),
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


# -- writing ----------------------------------------------------------------------------------------------------------
def _session_id(text: str) -> str:
    """Return opencode's id of a session: its own, or an id made of another program's."""
    return text if text.startswith("ses_") else f"ses_{short_id(text, letters=26)}"


def _last_stamp(before: Sequence[Any]) -> int:
    """Return the time in the id of the last message; ids must rise."""
    for value in reversed(before):
        info = value.get("info") if isinstance(value, dict) else None
        letters = str(info.get("id", ""))[4:16] if isinstance(info, dict) and "parts" in value else ""
        try:
            return int(letters, 16)
        except ValueError:
            continue
    return 0


class _Draft:
    """One message as opencode keeps it.

    Args:
        message: the message to write.
        session: opencode's id of the session.
        own: opencode's id of the message.
    """

    def __init__(self, message: Message, session: str, own: str) -> None:
        self._message, self._session, self.own = message, session, own
        self._at = to_milliseconds(message.created_at)
        self._parts: list[dict[str, Any]] = []

    def written(
        self, results: Mapping[str, Sequence[tuple[Message, ToolResultBlock]]], asked: str, cwd: str
    ) -> Written:
        """Return the entry; `asked` is the id of the question."""
        message, said = self._message, [self._message.id]
        metadata = message.metadata
        origin = metadata.origin
        provider, model = ("unknown", "unknown") if origin is None else (origin.provider, origin.model)
        by_model = message.role is Role.ASSISTANT
        if by_model:
            self._add({"type": "step-start"})
        for block in message.content:
            self._add(self._part(block, provider, results, said))
        info: dict[str, Any] = {"id": self.own, "sessionID": self._session, "role": "assistant" if by_model else "user"}
        if not by_model:
            info |= {
                "time": {"created": self._at}, "agent": "build",
                "model": {"providerID": "unknown", "modelID": "unknown"},
            }  # fmt: skip
            return Written({"info": info, "parts": self._parts}, tuple(said))
        spent = _spent(metadata.usage)
        word = metadata.stop_reason and _WORDS.get(metadata.stop_reason, "other")
        self._add({"type": "step-finish", "reason": word or "unknown", **spent})
        info |= {
            "time": {"created": self._at, "completed": self._at}, "parentID": asked, "modelID": model,
            "providerID": provider, "mode": "build", "agent": "build", "path": {"cwd": cwd, "root": cwd}, **spent,
        }  # fmt: skip
        if word:
            info["finish"] = word
        if metadata.status is MessageStatus.CANCELLED:
            info["error"] = {"name": _ABORTED, "data": {"message": "The answer was stopped."}}
        elif metadata.error is not None:
            info["error"] = {"name": "UnknownError", "data": {"message": metadata.error.message}}
        return Written({"info": info, "parts": self._parts}, tuple(said))

    def _add(self, part: dict[str, Any] | None) -> None:
        if part is not None:
            number = len(self._parts)
            own = f"prt_{self.own[4:16]}{number:04x}{short_id(f'{self.own} {number}', letters=10)}"
            self._parts.append({"id": own, "sessionID": self._session, "messageID": self.own, **part})

    def _part(
        self,
        block: ContentBlock,
        provider: str,
        results: Mapping[str, Sequence[tuple[Message, ToolResultBlock]]],
        said: list[str],
    ) -> dict[str, Any] | None:
        time = {"start": self._at, "end": self._at}
        if isinstance(block, TextBlock):
            return {"type": "text", "text": block.text}
        if isinstance(block, ThinkingBlock):
            held = {} if block.signature is None else {"metadata": {provider: {"signature": block.signature}}}
            return {"type": "reasoning", "text": block.text, "time": time, **held}
        if isinstance(block, RedactedThinkingBlock):
            return {"type": "reasoning", "text": "", "time": time, "metadata": {provider: {"redactedData": block.data}}}
        if isinstance(block, ImageBlock):
            return _file_part(block)
        if isinstance(block, ToolUseBlock):
            answers = results.get(block.id, ())
            said += [answer.id for answer, _ in answers]
            issued = block.provider_id or block.id
            return {"type": "tool", "callID": issued, "tool": block.name, "state": self._call_state(block, answers)}
        return dict(block.data) if isinstance(block, OpaqueBlock) and block.provider == "opencode" else None

    def _call_state(self, block: ToolUseBlock, answers: Sequence[tuple[Message, ToolResultBlock]]) -> dict[str, Any]:
        if not answers:
            return {"status": "pending", "input": block.input, "raw": ""}
        message, result = answers[-1]
        texts = [one.text for _, each in answers for one in each.content if isinstance(one, TextBlock)]
        made: dict[str, Any] = {
            "status": "error" if result.is_error else "completed",
            "input": block.input,
            "error" if result.is_error else "output": "\n".join(texts),
            "metadata": result.details if isinstance(result.details, Mapping) else {},
            "time": {"start": self._at, "end": to_milliseconds(message.created_at)},
        }
        images = [_file_part(one) for one in result.content if isinstance(one, ImageBlock)]
        if not result.is_error:
            made["title"] = ""
            if images:
                ids = {"sessionID": self._session, "messageID": self.own}
                made["attachments"] = [
                    {"id": f"prt_{short_id(f'{self.own} {block.id} {number}', letters=26)}", **ids, **image}
                    for number, image in enumerate(images)
                ]
        return made


def _file_part(block: ImageBlock) -> dict[str, Any]:
    if block.source.kind == "base64":
        url = f"data:{block.media_type};base64,{block.source.data}"
        return {"type": "file", "mime": block.media_type, "url": url}
    return {"type": "file", "mime": block.media_type or "image/*", "url": block.source.data}


def _spent(usage: Usage | None) -> dict[str, Any]:
    """Return tokens and cost; opencode counts cached tokens beside the input, and reasoning beside the output."""
    read = (usage and usage.cached_input_tokens) or 0
    made = (usage and usage.cache_creation_input_tokens) or 0
    thought = (usage and usage.reasoning_tokens) or 0
    tokens = {
        "input": max(((usage and usage.input_tokens) or 0) - read - made, 0),
        "output": max(((usage and usage.output_tokens) or 0) - thought, 0),
        "reasoning": thought,
        "cache": {"read": read, "write": made},
    }
    return {"cost": float((usage and usage.cost_usd) or 0), "tokens": tokens}


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
