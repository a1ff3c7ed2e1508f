"""Facts about a wire that no code can know: where options go, what counts mean, what the words of an end or error mean.

Each is read from a plugin as it behaves (`observe_facts`) and kept in `facts.toml` beside the cassettes; its author
checks it against the service's documentation. The rules then compare the plugin with that file.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, get_args
from urllib.parse import quote

import attrs

from interlingua._response.framing import framer
from interlingua.errors import CallerError, CapabilityError, InterlinguaError
from interlingua.plugins import WireRequest
from interlingua.types import Effort, Message, ToolChoice, Usage, user
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.block_facts import block_fact, block_scenes
from interlingua_contract.error_facts import observe_error_words
from interlingua_contract.json_paths import Path, leaves, with_value
from interlingua_contract.recordings import Frames, ReadResult, framing_of, read_stream, read_whole
from interlingua_contract.scenes import offered_tools
from interlingua_contract.subject import Aim, Subject

FACTS_FILE = "facts.toml"
UNUSED = "unused"
_HEADER = (
    "# How the plugin behaves on this wire; check each row against the service's documentation"
    " (`interlingua check KEY --facts`)."
)
_OTHER = "other"  # a word that the service does not use
Facts = dict[str, dict[str, dict[str, str]]]
"""Table (`options`, `blocks`, `usage`, `stops`, `errors`) -> API -> row -> fact.

Alternatives of models are joined by ` | `.
"""

SCHEMA = {
    "type": "object",
    "properties": {"mkq1q": {"type": "string"}},
    "required": ["mkq1q"],
    "additionalProperties": False,
}

_OPTIONS: dict[str, Mapping[str, Any]] = {
    "max_tokens": {"max_tokens": 4321},
    "temperature": {"temperature": 0.7},
    "temperature of 0": {"temperature": 0.0},
    "top_p": {"top_p": 0.5},
    "top_k": {"top_k": 7},
    "seed": {"seed": 11},
    "seed of 0": {"seed": 0},
    "stop": {"stop": ("mkstop", "mkother, and many words behind it")},
    "user_id": {"user_id": "mkuser-01KDVBKF0000000000000000AA"},
    "stream": {"stream": True},
    "response_schema": {"response_schema": SCHEMA, "response_name": "mkname"},
    **{f"parallel_tool_calls {word}": {"parallel_tool_calls": word == "true"} for word in ("true", "false")},
    **{f"tool_choice {word}": {"tool_choice": word} for word in ("auto", "none", "required")},
    "tool_choice named": {"tool_choice": ToolChoice("read_file")},
    **{f"effort {word}": {"effort": word} for word in get_args(Effort)},
    **{f"thinking {word}": {"thinking": word == "true"} for word in ("true", "false")},
    "thinking_budget": {"thinking_budget": 2345, "max_tokens": 4321},
}

_WORDS = (
    *("stop", "length", "tool_calls", "function_call", "content_filter", "end_turn", "max_tokens", "stop_sequence"),
    *("tool_use", "refusal", "pause_turn", "model_context_window_exceeded", "guardrail_intervened", "content_filtered"),
    *("STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
    *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "IMAGE_SAFETY", "COMPLETE", "STOP_SEQUENCE", "TOOL_CALL"),
    *("ERROR", "TIMEOUT", "model_length", "error", "max_output_tokens", "max_tool_calls", "sensitive", "network_error"),
    *("malformed_model_output", "malformed_tool_use", "insufficient_system_resource", "eos", "load", "unload"),
)


def read_facts(subject: Subject) -> Facts | None:
    """Return the facts in `facts.toml` beside the cassettes; None without that file.

    Raises:
        CallerError: it is not TOML.
    """
    path = subject.folder / FACTS_FILE if subject.folder is not None else None
    if path is None or not path.is_file():
        return None
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CallerError(f"{path} holds no facts: {error}") from error


def observe_facts(subject: Subject) -> Facts:
    """Return the facts as the plugin behaves, to be checked by hand and saved."""
    found: Facts = {"options": {}, "blocks": {}, "usage": {}, "stops": {}}
    for aim in subject.aims:
        for name in _OPTIONS:
            _add(found["options"].setdefault(aim.api, {}), name, option_fact(subject, aim, name))
        for name, history in block_scenes(subject, aim).items():
            _add(found["blocks"].setdefault(aim.api, {}), name, block_fact(subject, aim, name, history))
    for exchange in usage_exchanges(subject):
        rows = found["usage"].setdefault(str(subject.api_of(exchange)), {})
        for name, fields in usage_facts(subject, exchange).items():
            rows[name] = join_fields(rows.get(name, ""), fields)
    for exchange in word_exchanges(subject):
        rows = found["stops"].setdefault(str(subject.api_of(exchange)), {})
        for word in _WORDS:
            _add(rows, word, stop_fact(subject, exchange, word))  # one, if whole and streamed agree
    for rows in found["stops"].values():
        for word in [word for word, fact in rows.items() if fact == _OTHER]:
            del rows[word]
    found["errors"] = observe_error_words(subject, (read_facts(subject) or {}).get("errors", {}))
    return {table: {api: rows for api, rows in apis.items() if rows} for table, apis in found.items()}


def _add(rows: dict[str, str], name: str, fact: str) -> None:
    """Add an alternative to a row; the empty string says nothing."""
    if fact and fact not in rows.get(name, "").split(" | "):
        rows[name] = " | ".join(filter(None, (rows.get(name), fact)))


def write_facts(facts: Facts) -> str:
    """Write facts as TOML."""
    lines = [_HEADER]
    for table, apis in facts.items():
        for api, rows in apis.items():
            lines += ["", f"[{table}.{api}]"]
            lines += [f"{json.dumps(name)} = {_quote(fact)}" for name, fact in rows.items()]
    return "\n".join(lines) + "\n"


def _quote(fact: str) -> str:
    """Write a string of TOML; JSON is easier to read without escapes."""
    return f"'{fact}'" if '"' in fact and "'" not in fact else json.dumps(fact, ensure_ascii=False)


def option_fact(subject: Subject, aim: Aim, name: str) -> str:
    """Return where an option changes a request, as pointers with values; empty if it cannot be asked.

    A value that is the option's own is left out; `refused` and `dropped` stand for an error and for a loss.
    """
    offered = offered_tools(aim)
    asked = _OPTIONS[name]
    if "tool" in name and not offered:
        return ""
    plain = subject.write(aim, [user("q")], offered)
    try:
        request = subject.write(aim, [user("q")], offered, **asked)
    except CapabilityError:
        return "refused"
    value = next(iter(asked.values()))
    own = value.name if isinstance(value, ToolChoice) else list(value) if isinstance(value, tuple) else value
    changes = [change.replace(quote(aim.model, safe=""), "MODEL") for change in _changes(plain, request, own)]
    lost = any(loss.block_type == "option" for loss in request.losses)
    return " ".join([*changes, *(["dropped"] if lost else [])]) or "nothing"


def _changes(plain: WireRequest, request: WireRequest, own: Any) -> Iterator[str]:
    if request.path != plain.path:
        yield f"path={request.path}"
    for name in sorted({*plain.headers, *request.headers}):
        if plain.headers.get(name) != request.headers.get(name):
            yield f"header {name}={request.headers.get(name)}"
    yield from _differences(json.loads(plain.body), json.loads(request.body), own, "")


def _differences(before: Any, now: Any, own: Any, pointer: str) -> Iterator[str]:
    if before == now and type(before) is type(now):
        return
    if now == own and type(now) is type(own):
        yield pointer
    elif isinstance(now, dict) and now and (isinstance(before, dict) or before is None):
        was: Any = before or {}
        for key in was:
            if key not in now:
                yield f"{pointer}/{key} removed"
        for key, item in now.items():
            yield from _differences(was.get(key), item, own, f"{pointer}/{key}")
    else:
        yield f"{pointer}={json.dumps(now, ensure_ascii=False)}"


def usage_exchanges(subject: Subject) -> Iterator[RecordedExchange]:
    """Yield the good answers: whole ones, and streams."""
    return (exchange for exchange in subject.exchanges if exchange.good and not exchange.continued)


def join_fields(one: str, other: str) -> str:
    """Return the fields of two observations of one count."""
    fields = dict.fromkeys((*one.split(), *other.split()))
    return " ".join(field for field in fields if field != UNUSED) or UNUSED


def usage_facts(subject: Subject, exchange: RecordedExchange) -> dict[str, str]:
    """Return each reported count and tier, by its dotted name, with the fields of `Usage` that it adds to.

    Each is changed by one, up and down; a count of a stream has its own name.
    """
    plain = _read_changed(subject, exchange, lambda _path, leaf: leaf)
    if plain.message is None or plain.error is not None or plain.message.metadata.usage is None:
        return {}
    names = _count_names(subject, exchange)
    found = {}
    for name in names:
        fields: dict[str, None] = {}
        for step in (1, -1):
            read = _read_changed(subject, exchange, lambda path, leaf, n=name, s=step: _moved(path, leaf, n, s))
            if read.message is not None and read.message.metadata.usage is not None:
                fields |= dict.fromkeys(_moved_fields(plain.message, read.message, step))
        found[f"stream {name}" if exchange.streamed else name] = " ".join(fields) or UNUSED
    return found


def _count_names(subject: Subject, exchange: RecordedExchange) -> list[str]:
    names: dict[str, None] = {}

    def look(path: Path, leaf: Any) -> Any:
        if (type(leaf) is int or _is_tier(path)) and _is_of_usage(path):
            names[dotted(path)] = None
        return leaf

    _read_changed(subject, exchange, look)
    return list(names)


_MOST_TIMES = 3
_MOST_PLACES = 64


def dotted(path: Path) -> str:
    """Return the names of a path, without the indexes of lists."""
    return ".".join(str(key) for key in path if not isinstance(key, int))


def _is_tier(path: Path) -> bool:
    return "tier" in str(path[-1]).lower().replace("_", "") if path else False


def _is_of_usage(path: Path) -> bool:
    words = [str(key).lower() for key in path]
    return _is_tier(path) or any("usage" in word for word in words) or words[-1].endswith(("tokens", "_count"))


def _moved(path: Path, leaf: Any, name: str, step: int) -> Any:
    if dotted(path) != name:
        return leaf
    if isinstance(leaf, str):
        return f"{leaf}_contract"
    return max(leaf + step, 0) if type(leaf) is int else leaf


def _moved_fields(before: Message, after: Message, step: int) -> Iterator[str]:
    was, now = before.metadata.usage, after.metadata.usage
    assert was is not None  # noqa: S101  callers looked
    assert now is not None  # noqa: S101  callers looked
    for field in attrs.fields(Usage):
        one, other = getattr(was, field.name), getattr(now, field.name)
        if field.name in ("latency_ms", "cost", "cost_note", "cost_usd", "pricing_version") or one == other:
            continue
        if field.name == "extra_units":
            yield from (f"extra_units.{unit}" for unit in {**(one or {}), **(other or {})} if _moves(one, other, unit))
        else:
            moved = (other or 0) - (one or 0) if isinstance(one, int) and isinstance(other, int) else step
            if abs(moved) <= _MOST_TIMES:  # else another way to count was chosen, because the parts no longer fit
                yield field.name if moved == step else f"{field.name}*{moved * step}"


def _moves(one: Any, other: Any, unit: str) -> bool:
    return (one or {}).get(unit) != (other or {}).get(unit)


def _read_changed(subject: Subject, exchange: RecordedExchange, change: Any) -> ReadResult:
    """Read an answer with each leaf of its JSON passed through `change(path, leaf)`."""

    def changed(data: Any) -> Any:
        for path, leaf in list(leaves(data)):
            new = change(path, leaf)
            if new is not leaf:
                data = with_value(data, path, new)
        return data

    if exchange.streamed:
        return read_stream(subject, exchange, Frames(subject, exchange).changed(changed))
    return read_whole(subject, exchange, json.dumps(changed(json.loads(exchange.body))).encode())


def read_with_odd_strings(subject: Subject, exchange: RecordedExchange) -> Iterator[ReadResult]:
    """Read an answer with spaces, a line end and a combining letter beside the string at each place in turn."""
    places: dict[str, None] = {}

    def look(path: Path, leaf: Any) -> Any:
        if isinstance(leaf, str):
            places[dotted(path)] = None
        return leaf

    _read_changed(subject, exchange, look)
    for place in list(places)[:_MOST_PLACES]:
        yield _read_changed(subject, exchange, lambda path, leaf, p=place: _odd(path, leaf, p))


def _odd(path: Path, leaf: Any, place: str) -> Any:
    return f" {leaf}\r\ne\u0301\t " if isinstance(leaf, str) and dotted(path) == place else leaf


def word_exchanges(subject: Subject) -> Iterator[RecordedExchange]:
    """Yield, of each API, a whole answer and a stream without calls whose stop reason is a word of the service."""
    seen: set[tuple[str | None, bool]] = set()
    for exchange in subject.exchanges:
        key = (subject.api_of(exchange), exchange.streamed)
        if exchange.good and key not in seen and _word_of(subject, exchange):
            seen.add(key)
            yield exchange


def _word_of(subject: Subject, exchange: RecordedExchange) -> str:
    found = _read_changed(subject, exchange, lambda _path, leaf: leaf)
    if found.message is None or found.error is not None or found.message.tool_calls:
        return ""
    word = found.message.metadata.stop_reason_raw or ""
    return word if replaced_word(subject, exchange, word, word) is not None else ""


def stop_fact(subject: Subject, exchange: RecordedExchange, word: str) -> str:
    """Return the stop reason, or the class of the error, that an answer has with another word."""
    found = replaced_word(subject, exchange, _word_of(subject, exchange), word)
    if found is None:
        return ""
    if found.error is not None or found.message is None:
        return type(found.error or found.escaped).__name__
    return str(found.message.metadata.stop_reason)


def read_with_other_words(subject: Subject, exchange: RecordedExchange) -> Iterator[ReadResult | None]:
    """Read an answer of `word_exchanges` with each known word for its end in turn."""
    word = _word_of(subject, exchange)
    return (replaced_word(subject, exchange, word, new) for new in _WORDS)


def replaced_word(subject: Subject, exchange: RecordedExchange, word: str, new: str) -> ReadResult | None:
    """Read an answer with its stop reason replaced; None if the word is not in it."""
    changes = 0

    def change(path: Path, leaf: Any) -> Any:
        nonlocal changes
        key = next((str(key).lower() for key in reversed(path) if isinstance(key, str)), "")
        if leaf == word and ("reason" in key or "status" in key):
            changes += 1
            return new
        return leaf

    found = _read_changed(subject, exchange, change)
    return found if changes else None


def event_names(subject: Subject, exchange: RecordedExchange) -> set[str]:
    """Return the names of a stream's events: the name of the last one may be its only stop reason."""
    if not exchange.streamed:
        return set()
    try:
        return {chunk.event for chunk in framer(framing_of(subject, exchange)).feed(exchange.body)}
    except InterlinguaError:
        return set()
