"""How values are shown: a short `repr`, Markdown and tables for notebooks, and streams that are written as they grow.

Loaded when a value is shown first, and below the values in the layers of core: it knows them by their fields. Nothing
here fetches an address, and no `repr` holds the bytes of media.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from html import escape
from typing import Any
from uuid import uuid4

import attrs

_LONGEST = 200  # characters of a string that a `repr` shows
_MOST_ITEMS = 20
_LARGEST_IMAGE = 4_000_000  # characters of base64 that an image in a notebook's output may have
_PAUSE = 0.1  # seconds between two updates of a notebook's output
_CELL = "text-align: left; vertical-align: top; overflow-wrap: anywhere; min-width: 5em"
_USUAL_ENDS = (None, "end_turn", "tool_use")
# outside code, HTML tags are escaped and images become links: a notebook would hide the tags and fetch the images
_TAGS = re.compile(r"(?sm)((`{3,}|~~~).*?(?:\2|\Z)|(`{1,2})(?!`)[^\n]*?\3|^(?: {4}|\t)[^\n]*)|<|!(?=\[)")
_escape_tags = partial(_TAGS.sub, lambda found: found[1] or ("&lt;" if found[0] == "<" else "\\!"))


def short_repr(value: Any) -> str:
    """Return the `repr` of a value: fields that differ from their defaults, long ones cut."""
    kind = type(value)
    if attrs.has(kind):
        return _repr_by_class.get(kind.__name__, _repr_of_fields)(value)
    if isinstance(value, tuple | list) and any(attrs.has(type(one)) for one in value):
        more = [f"… {len(value) - _MOST_ITEMS} more"] if len(value) > _MOST_ITEMS else []
        items = ", ".join([*map(short_repr, value[:_MOST_ITEMS]), *more])
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' if len(value) == 1 else ''})"
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>" if len(value) > _LONGEST else repr(value)
    return _cut(repr(value[: 2 * _LONGEST]), len(value)) if isinstance(value, str) else _cut(repr(value))


def _repr_of_fields(value: Any) -> str:
    kind, shown = type(value), []
    for field in attrs.fields(kind):
        item, default = getattr(value, field.name), field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = attrs.NOTHING
        if field.repr and (default is attrs.NOTHING or item != default):
            shown.append(f"{field.name}={short_repr(item)}")
    return f"{kind.__qualname__.rsplit('>.', 1)[-1]}({', '.join(shown)})"


def _repr_of_message(message: Any) -> str:
    said = " ".join(filter(None, map(_short_block, message.content[:_MOST_ITEMS])))
    return f"<Message {message.role}: {' · '.join(filter(None, [_cut(said), *_facts(message)]))}>"


def _repr_of_source(source: Any) -> str:
    return f"MediaSource(kind={source.kind!r}, data={_short_source(source)})"


_repr_by_class = {"Message": _repr_of_message, "MediaSource": _repr_of_source}  # they are defined above this module


def _cut(text: str, length: int = 0) -> str:
    return text if len(text) <= _LONGEST + 40 else f"{text[:_LONGEST]}… ({max(length, len(text)):,} characters)"


def _short_source(source: Any) -> str:
    size = len(source.data) * 3 // 4 - source.data[-2:].count("=")
    return f"<{size:,} bytes>" if source.kind == "base64" else _cut(repr(source.data))


def _short_block(block: Any) -> str:
    if block.type == "text":
        return short_repr(block.text)
    if block.type == "tool_use":
        return f"call {block.name}({_cut(block.input_json)})"
    if block.type == "tool_result":
        said = " ".join(filter(None, map(_short_block, block.content)))
        return f"{'error' if block.is_error else 'result'} of {block.tool_name or block.tool_use_id}: {said}"
    source = getattr(block, "source", None)
    kind = getattr(block, "media_type", None) or "of unknown type"
    return f"{block.type} {kind} {_short_source(source)}" if source else str(block.type)


def _facts(message: Any) -> list[str]:
    """Return what is known of a generated message, in few words."""
    known, usage = message.metadata, message.usage
    counted = usage.input_tokens is not None or usage.output_tokens is not None
    counts = (usage.input_tokens, usage.output_tokens)
    lost = sum(loss.severity == "content" for loss in known.losses)
    return [
        fact
        for fact in (
            known.model,
            "{} + {} tokens".format(*("?" if count is None else f"{count:,}" for count in counts)) if counted else None,
            None if usage.cost_usd is None else f"${usage.cost_usd:f}",
            f"${usage.cache_saving_usd:f} saved by the cache" if usage.cache_saving_usd else None,
            None if known.status == "complete" else str(known.status),
            None if known.stop_reason in _USUAL_ENDS else f"stopped by {known.stop_reason}",
            f"{lost} not sent" if lost else None,
        )
        if fact
    ]


def messages_markdown(messages: Iterable[Any]) -> str:
    """Return messages as Markdown: role, text, calls, results and images of each, and what was not sent."""
    return "\n\n---\n\n".join(map(_message_markdown, messages))


def _message_markdown(message: Any) -> str:
    parts = [" · ".join([f"**{message.role}**", *_facts(message)])]
    parts += [text for block in message.content if (text := _block_markdown(block))]
    rows = [loss for loss in message.metadata.losses if loss.severity == "content"]
    parts += [f"- not sent: {loss.block_type} at `{loss.path}`: {loss.reason}" for loss in rows]
    return "\n\n".join(parts)


def _block_markdown(block: Any) -> str:
    if block.type == "text":
        return _escape_tags(block.text)
    if block.type == "thinking":
        return "\n".join(f"> {line}" for line in _escape_tags(_cut(block.text)).splitlines())
    if block.type == "tool_use":
        return _fenced(f"{block.name}({block.input_json})")
    if block.type == "tool_result":
        head = f"{'error' if block.is_error else 'result'} of `{block.tool_name or block.tool_use_id}`:"
        shown = [_fenced(one.text) if one.type == "text" else _block_markdown(one) for one in block.content]
        return "\n\n".join([head, *shown])
    source = getattr(block, "source", None)
    is_picture = re.fullmatch(r"image/[\w.+-]+", getattr(block, "media_type", "")) is not None
    if source and is_picture and source.kind == "base64" and len(source.data) <= _LARGEST_IMAGE:
        return f"![{block.media_type}](data:{block.media_type};base64,{source.data})"
    return f"*{_short_block(block)}*" if source else f"*{block.type}*"


def _fenced(text: str) -> str:
    fence = "`" * (1 + max(2, *map(len, re.findall("`+", text)), 0))
    return f"{fence}\n{text}\n{fence}"


def usage_html(usage: Any) -> str:
    """Return the reported counts, the cost and the time as an HTML table."""
    rows: list[tuple[str, Any]] = []
    for name, value in attrs.asdict(usage, recurse=False).items():
        if attrs.has(type(value)):  # the parts of the cost
            rows += ((f"{name}.{part}", amount) for part, amount in attrs.asdict(value).items() if amount)
        elif isinstance(value, Mapping):
            rows += value.items()
        elif value is not None:
            rows.append((name, value))
    return _table(rows)


def losses_html(losses: Iterable[Any], head: str = "") -> str:
    """Return the rows of a ledger as an HTML table."""
    rows = ((loss.path, f"{loss.block_type} {loss.verdict} ({loss.severity})", loss.reason) for loss in losses)
    return _table(rows, ("path", "what", "reason"), head)


def _table(rows: Iterable[Iterable[Any]], names: Iterable[str] = (), head: str = "") -> str:
    lines = ["".join(f"<th>{name}</th>" for name in names)] if names else []
    for row in rows:
        cells = (f"{one:,}" if type(one) is int else f"{one:f}" if hasattr(one, "as_tuple") else one for one in row)
        lines.append("".join(f"<td style='{_CELL}'>{escape(str(cell))}</td>" for cell in cells))
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"{escape(head)}<table>{table}</table>" if table else escape(head)


class LiveOutput:
    """One output that is written as a stream arrives: updated in place in a notebook, appended to in a terminal."""

    def __init__(self) -> None:
        shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        self._publish = shell.display_pub.publish if hasattr(shell, "kernel") else None
        self._id, self._shown, self._text, self._at = uuid4().hex, False, "", 0.0

    def add(self, text: str) -> None:
        """Show more text."""
        self._text += text
        if self._publish is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        elif time.monotonic() - self._at >= _PAUSE:
            self._update(_escape_tags(self._text))

    def end(self, messages: Iterable[Any]) -> None:
        """Show the messages in full; in a terminal, which has their text already, end the line."""
        if self._publish is not None:
            self._update(messages_markdown(messages))
        elif not self._text.endswith("\n"):
            sys.stdout.write("\n")

    def _update(self, text: str) -> None:
        publish: Callable[..., Any] = self._publish  # type: ignore[assignment]
        data = {"text/markdown": text, "text/plain": text}
        publish(data, {}, transient={"display_id": self._id}, update=self._shown)
        self._shown, self._at = True, time.monotonic()
