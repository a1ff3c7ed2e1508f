"""Session files as they get after a crash, a bad merge, a scrubber, another program: cut, spliced, retyped, recoded."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import orjson

_VALUES: Sequence[Any] = (
    None, True, False, 0, -1, 3.5, 1e300, 2**63, "", "x", "\x00", "\U0001f600", "2026-13-45T99:99:99Z", [], {}, [None],
    [[]], {"type": "text"}, {"type": "tool_use"}, [{"type": "tool_result", "content": 5}],
    {"role": "assistant"}, "9" * 400, 2**70, -(10**30), "cut \ud83d emoji", "\udc00",
)  # fmt: skip


def mutate(data: bytes, other: bytes, random: Random) -> bytes:
    """Return the file changed in one to three ways.

    Args:
        data: the file.
        other: another file, of which pieces are spliced in.
        random: makes the choice.
    """
    for _ in range(random.randint(1, 3)):
        data = random.choice(_WAYS)(data, other, random)
    return data


def _cut_end(data: bytes, _other: bytes, random: Random) -> bytes:
    return data[: random.randint(0, len(data))]


def _cut_middle(data: bytes, _other: bytes, random: Random) -> bytes:
    start = random.randint(0, len(data))
    return data[:start] + data[start + random.randint(0, 200) :]


def _splice(data: bytes, other: bytes, random: Random) -> bytes:
    at, start = random.randint(0, len(data)), random.randint(0, len(other))
    return data[:at] + other[start : start + random.randint(1, 400)] + data[at:]


def _splice_line(data: bytes, other: bytes, random: Random) -> bytes:
    lines, others = data.split(b"\n"), other.split(b"\n")
    lines.insert(random.randint(0, len(lines)), random.choice(others))
    return b"\n".join(lines)


def _move_lines(data: bytes, _other: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    how = random.randrange(3)
    if how == 0:
        lines[first], lines[second] = lines[second], lines[first]
    elif how == 1:
        lines.insert(second, lines[first])
    else:
        del lines[first]
    return b"\n".join(lines)


def _flip(data: bytes, _other: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _recode(data: bytes, _other: bytes, random: Random) -> bytes:
    text = data.decode("utf-8", "replace")
    coding = random.choice(("utf-16", "latin-1", "utf-8-sig", "cp1252", "utf-32"))
    return text.replace("\n", "\r\n").encode() if random.randrange(4) == 0 else text.encode(coding, "replace")


def _retype(data: bytes, _other: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    whole = len(lines) < 3 or lines[0].strip() in (b"{", b"[")
    at = 0 if whole else random.randrange(len(lines))
    try:
        value = orjson.loads(data if whole else lines[at])
    except ValueError:
        return data
    changed = _retyped(value, random)
    text = json.dumps(changed).encode()
    if whole:
        return text + b"\n"
    lines[at] = text
    return b"\n".join(lines)


def _retyped(value: Any, random: Random) -> Any:
    """Return the value with something in it of another type, gone, or twice."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        name = random.choice(list(value))
        how = random.random()
        if how < 0.12:
            return {key: item for key, item in value.items() if key != name}
        if how < 0.2:
            return {
                **value,
                random.choice(("type", "id", "content", "message", "role", "payload")): random.choice(_VALUES),
            }
        return {**value, name: _retyped(value[name], random)}
    if isinstance(value, list) and value and random.random() < 0.9:
        at = random.randrange(len(value))
        return [*value[:at], _retyped(value[at], random), *value[at + random.randint(0, 1) :]]
    return random.choice(_VALUES)


_WAYS: Sequence[Callable[[bytes, bytes, Random], bytes]] = (
    _cut_end, _cut_middle, _splice, _splice_line, _move_lines, _flip, _recode, *[_retype] * 7
)  # fmt: skip
