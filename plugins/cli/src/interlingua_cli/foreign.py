"""Other programs' session files, recognised by their content, so that no command repairs a file that is not broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from itertools import islice
from typing import Any
from zlib import MAX_WBITS, decompressobj
from zlib import error as ZlibError  # noqa: N812  a class of errors

import attrs

from interlingua._json import loads
from interlingua.errors import DecodeError

_Object = Mapping[str, Any]
_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 16 << 20  # of a compressed file
_LOOKED_AT = 50  # non-empty lines; a format shows itself much earlier
_CANONICAL = {"id", "session_id", "role", "content", "metadata", "created_at"}

_IMPORT = "`interlingua transcript import {}` imports it as a conversation"
_MAKE_MESSAGES = (
    "this command reads interlingua's own messages only: create them in Python with user(), assistant() and"
    " tool_result(), and write each on a line with dumps_message()"
)


@attrs.frozen
class Format:
    """A kind of file: its name, and a test of a line or of the whole file.

    Attributes:
        name: follows "this looks like" in a sentence.
        matches: tells whether a JSON object belongs to this kind of file.
        remedy: how to turn the file into interlingua messages; None if it can be imported.
    """

    name: str
    matches: Callable[[_Object], bool]
    remedy: str | None = None


def _types(*words: str) -> Callable[[_Object], bool]:
    return lambda data: data.get("type") in words


def _is_session_export(data: _Object) -> bool:
    return _types("session")(data) and "routing_policy" in data


def _is_pi(data: _Object) -> bool:
    kind, message = data.get("type"), data.get("message")
    if kind == "session":
        return isinstance(data.get("timestamp"), str) and "id" in data
    if kind == "message":
        return isinstance(message, Mapping) and "role" in message and "uuid" not in data
    return "parentId" in data or _is_pi_message(data)


def _is_pi_message(data: _Object) -> bool:
    content = data.get("content")
    calls = isinstance(content, list) and any(isinstance(one, Mapping) and _types("toolCall")(one) for one in content)
    return calls or "stopReason" in data or data.get("role") in ("toolResult", "bashExecution")


def _is_codex(data: _Object) -> bool:
    items = ("message", "reasoning", "function_call", "function_call_output", "local_shell_call")
    bare = _types(*items)(data) and data.keys() & {"role", "call_id", "summary"}
    return isinstance(data.get("payload"), Mapping) or "record_type" in data or bool(bare)


def _is_attocode(data: _Object) -> bool:
    kinds = _types("message", "tool_call", "tool_result", "compaction", "checkpoint", "metadata")
    return kinds(data) and isinstance(data.get("data"), Mapping)


def _is_gemini(data: _Object) -> bool:
    return "projectHash" in data or (_types("user", "gemini", "info")(data) and {"id", "content"} <= data.keys())


def _is_claude_code(data: _Object) -> bool:
    if _types("file-history-snapshot", "queue-operation", "last-prompt")(data):
        return True
    return "type" in data and bool(data.keys() & {"sessionId", "uuid", "leafUuid", "parentUuid"})


def _first(data: _Object, name: str) -> _Object:
    """Return the first object of a list under this name, or an empty one."""
    value = data.get(name)
    return value[0] if isinstance(value, list) and value and isinstance(value[0], Mapping) else {}


def _is_wolo_message(data: _Object) -> bool:
    return "role" in data and bool(_first(data, "parts").keys() & {"text", "tool"})


def _is_chat_message(data: _Object) -> bool:
    text = "role" in data and "content" in data and (data["content"] is None or isinstance(data["content"], str))
    return text or ("role" in data and bool(data.keys() & {"tool_calls", "tool_call_id"}))


SESSION_EXPORT = Format(
    "an export of a stored session", _is_session_export,
    "`interlingua session import FILE` stores it, and `interlingua session export SESSION FILE --context` writes a"
    " conversation",
)  # fmt: skip

FORMATS: Sequence[Format] = (  # the first that matches is named: the more telling ones come first
    SESSION_EXPORT,
    Format("the output of `pi --mode json`", _types("agent_start", "turn_start", "message_start", "message_update"),
           _MAKE_MESSAGES),
    Format("the output of `codex exec --json`", _types("thread.started", "turn.started", "item.completed"),
           _MAKE_MESSAGES),
    Format("the output of `claude --output-format stream-json`",
           lambda data: "session_id" in data and _types("system", "assistant", "user", "result", "stream_event")(data)),
    Format("a DSH log", lambda data: _types("session")(data) and "createdAt" in data, _MAKE_MESSAGES),
    Format("a Tau session", lambda data: "contents" in data or "parent_id" in data),
    Format("a Claude Code session", _is_claude_code),
    Format("a pi or OpenClaw session", _is_pi),
    Format("a Codex session", _is_codex),
    Format("a Gemini CLI session", _is_gemini),
    Format("an Attocode session", _is_attocode),
    Format("a Wolo session", lambda data: any(map(_is_wolo_message, (data, _first(data, "messages"))))),
    Format("an opencode export", lambda data: "info" in _first(data, "messages")),
    Format("an ATIF trajectory", lambda data: str(data.get("schema_version")).startswith("ATIF")),
    Format("a mini-SWE-agent trajectory", lambda data: "trajectory_format" in data),
    Format("a SWE-agent trajectory", lambda data: "trajectory" in data and "history" in data),
    Format("an Inspect log", lambda data: "eval" in data and bool(data.keys() & {"plan", "samples", "results"})),
    Format("an OpenHands trajectory", lambda data: "source" in data and bool(data.keys() & {"action", "observation"})),
    Format("ShareGPT data", lambda data: "from" in _first(data, "conversations"), _MAKE_MESSAGES),
    Format("OpenAI fine-tuning data", lambda data: "role" in _first(data, "messages")),
    Format("OpenAI chat messages ({role, content})", _is_chat_message),
    Format("OpenAI chat messages inside another object ({role, message})",
           lambda data: "role" in data and "message" in data, _MAKE_MESSAGES),
)  # fmt: skip


def recognise_format(values: Iterable[Any]) -> Format | None:
    """Return the format that JSON values of a file are in; None for interlingua messages, and for what is unknown."""
    objects = [value for value in values if isinstance(value, Mapping) and not value.keys() >= _CANONICAL]
    return next((form for form in FORMATS if any(form.matches(each) for each in objects)), None)


def refuse_foreign(lines: Sequence[bytes | str], file: str = "the file", *, allowed: Format | None = None) -> None:
    """Reject another program's session file.

    Args:
        lines: lines of the file.
        file: name of the file.
        allowed: a format that is accepted.

    Raises:
        DecodeError: the file is another program's, or compressed; the message says what to do.
    """
    packed = _joined(lines[:1]).startswith(_GZIP)
    if packed:
        lines = _unpacked(lines)
    values = list(_read_values(lines))
    found = recognise_format(values) or _installed_format(lines, values)
    if found is not None and found is not allowed:
        can_import = entry_points(group="interlingua.commands", name="transcript")
        how = found.remedy or (_IMPORT.format(file) if can_import else _MAKE_MESSAGES)
        raise DecodeError(f"{file} looks like {found.name}, not like interlingua messages; {how}")
    if packed:
        raise DecodeError(f"{file} is compressed with gzip: unpack it first (`gzip -d`)")


def _unpacked(lines: Sequence[bytes | str]) -> list[bytes]:
    """Return the first lines inside a gzip file; empty if it is damaged."""
    try:
        return decompressobj(wbits=MAX_WBITS | 16).decompress(_joined(lines), _HEAD_BYTES).splitlines(keepends=True)
    except ZlibError:
        return []


def _installed_format(lines: Sequence[bytes | str], values: Sequence[Any]) -> Format | None:
    """Return the format of session files that another installed distribution reads."""
    ours = {point.dist.name for point in entry_points(group="interlingua.commands", name="transcript") if point.dist}
    points = [
        point
        for point in entry_points(group="interlingua.session_formats")
        if point.dist and point.dist.name not in ours
    ]
    if not points or any(isinstance(value, Mapping) and value.keys() >= _CANONICAL for value in values):
        return None
    document = _read_value(_joined(lines))
    heads = [head for head in (values, [] if document is None else [document]) if head]
    for point in points:
        try:
            system = point.load()
            if any(system.detect(head) is not None for head in heads):
                return Format(f"a session file of {system.title}", lambda _: True)
        except Exception:  # noqa: S112  the installed reader is faulty, not the file
            continue
    return None


def _joined(lines: Sequence[bytes | str]) -> bytes:
    return b"".join(line if isinstance(line, bytes) else line.encode() for line in lines)


def _read_values(lines: Sequence[bytes | str]) -> Iterator[Any]:
    """Yield the values of the first lines; of a file that is one JSON value, this value or, of a list, its items."""
    filled = [line for line in lines if line.strip()]
    values = list(filter(None, map(_read_value, islice(filled, _LOOKED_AT))))
    if filled and not isinstance(next(iter(values), None), dict):
        whole = _read_value(_joined(lines))
        values = whole[:_LOOKED_AT] if isinstance(whole, list) else [whole]
    yield from values


def _read_value(text: bytes | str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return None
