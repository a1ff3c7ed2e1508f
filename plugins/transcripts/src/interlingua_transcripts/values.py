"""Search of JSON values in what was written, without knowledge of how it was written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import orjson

EMPTY = "empty or false: left out if a message has nothing"
TIME = "a time in another notation"
NUMBER = "a number in another notation"
PART = "a part of a longer string"
INSIDE = "inside a string that holds JSON"
JSON_TEXT = "a string that holds JSON: its values"
DATA_URL = "a data URL: its media type and its data"
ONCE = "said once for a call and its result"
WORD = "the other format's word for the same"
TAG = "the kind of an object whose values are there"

_WORDS: Sequence[frozenset[str]] = (
    frozenset({"tool", "toolResult", "tool_result", "function_call_output", "custom_tool_call_output"}),
    frozenset({"toolCall", "tool_use", "tool_call", "function_call", "custom_tool_call"}),
    frozenset({"tool_use", "toolUse", "tool_calls", "tool-calls"}),
    frozenset({"end_turn", "stop"}),
    frozenset({"max_tokens", "length"}),
    frozenset({"refusal", "content_filter"}),
    frozenset({"assistant", "agent", "model", "gemini"}),
    frozenset({"system", "developer"}),
    frozenset({"cancelled", "aborted", "abort", "partial"}),
    frozenset({"messages", "anthropic-messages"}),
    frozenset({"responses", "openai-responses"}),
    frozenset({"chat", "openai-completions"}),
)
_SAME: Mapping[str, frozenset[str]] = {
    word: frozenset().union(*[words for words in _WORDS if word in words]) for words in _WORDS for word in words
}
_JOINTS = frozenset("\n:|/`\"'")  # around a word that is a part of a longer string
_SHORTEST = 4  # letters of a part with white space in it
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_DECIMAL = re.compile(r"\d{1,20}(\.\d{1,20})?([eE]-?\d{1,2})?")
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


class Form(NamedTuple):
    """A named rule that turns a value of a file into the values that say the same.

    Attributes:
        reason: the rule, in a few words.
        turn: takes the value and the object it is in; returns the values to be found, none if others say it
            already; None if the rule does not apply.
    """

    reason: str
    turn: Callable[[Any, Mapping[str, Any]], Sequence[Any] | None]


def sum_form(reason: str, *names: str) -> Form:
    """Return the rule of a count that is held as a sum: its own object's members of these names, added up."""

    def turn(_value: Any, parent: Mapping[str, Any]) -> Sequence[Any] | None:
        counts = [parent.get(name) for name in names]
        return [sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool))]

    return Form(reason, turn)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of every leaf of a JSON value; an entry that is not JSON (None) is one leaf."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            yield from leaves(item, f"{path}[{at}]")
    else:
        yield path, value


class Haystack:
    """The values of what was written; each is found as often as it is there.

    Args:
        values: JSON values.

    Attributes:
        names: names of the members that hold a value other than an empty one or false.
    """

    def __init__(self, *values: Any) -> None:
        self._counts: Counter[Any] = Counter()
        self._texts: list[str] = []
        self._inside: Counter[Any] = Counter()
        self._taken: set[Any] = set()
        self.names: set[str] = set()
        self._times: set[int] | None = None
        for value in values:
            self.add(value)

    def add(self, value: Any) -> None:
        """Add every leaf of a JSON value."""
        for path, leaf in leaves(value):
            if leaf not in ("", None, [], {}) and leaf is not False:
                self.names.add(path.rpartition(".")[2])
            self._counts[_key(leaf)] += 1
            if isinstance(leaf, str) and leaf:
                self._texts.append(leaf)
                self._inside.update(_key(inner) for _, inner in leaves(_parsed(leaf)))
        self._times = None

    def has(self, leaf: Any) -> bool:
        """Tell whether a value is there, also as a part of a string or in another notation; it stays there."""
        key = _key(leaf)
        if self._counts[key] > 0 or self._inside[key] > 0 or self.has_time(leaf) or self._same_number(leaf) is not None:
            return True
        return isinstance(leaf, str) and any(_part_at(leaf, text) is not None for text in self._texts)

    def take(self, leaf: Any) -> bool:
        """Take a value out; False if it is not there."""
        key = _key(leaf)
        if self._counts[key] <= 0:
            return False
        self._counts[key] -= 1
        self._taken.add(key)
        if isinstance(leaf, str) and leaf in self._texts:
            self._texts.remove(leaf)
        return True

    def was(self, leaf: Any) -> bool:
        """Tell whether a value was taken before."""
        return _key(leaf) in self._taken

    def take_part(self, leaf: str) -> bool:
        """Take a string out of a longer one; False if it is a part of none."""
        for number, text in enumerate(self._texts):
            at = _part_at(leaf, text)
            if at is not None:
                self._texts[number] = f"{text[:at]}\n{text[at + len(leaf) :]}"
                return True
        return False

    def take_inside(self, leaf: Any) -> bool:
        """Take a value out of a string that holds JSON; False if it is in none."""
        if self._inside[_key(leaf)] <= 0:
            return False
        self._inside[_key(leaf)] -= 1
        return True

    def take_word(self, leaf: str) -> bool:
        """Take another format's word for the same out; False without one."""
        return any(self.take(word) for word in _SAME.get(leaf, ()) if word != leaf)

    def has_time(self, leaf: Any) -> bool:
        """Tell whether the value is a time that is there in any notation."""
        at = _instant(leaf)
        if at is None:
            return False
        if self._times is None:
            self._times = {found for key in self._counts if (found := _instant(key[1])) is not None}
        return at in self._times

    def take_number(self, leaf: Any) -> bool:
        """Take a number out that is there in another notation, such as "0.5" for 0.5."""
        key = self._same_number(leaf)
        if key is not None:
            self._counts[key] -= 1
        return key is not None

    def _same_number(self, leaf: Any) -> Any:
        number = _number(leaf)
        if number is None:
            return None
        for key, count in self._counts.items():
            if count > 0 and isinstance(key[1], str) is not isinstance(leaf, str) and _number(key[1]) == number:
                return key
        return None


def find_form(leaf: Any, stacks: Sequence[Haystack]) -> str | None:
    """Return the name of the general rule by which a value is in what was written; None if no rule finds it."""
    if leaf in ("", None, [], {}) or leaf is False:
        return EMPTY
    if any(stack.has_time(leaf) for stack in stacks):
        return TIME
    if any(stack.take_number(leaf) for stack in stacks):
        return NUMBER
    if isinstance(leaf, str):
        if any(stack.take_word(leaf) for stack in stacks):
            return WORD
        if any(stack.take_part(leaf) for stack in stacks):
            return PART
        found = _DATA_URL.fullmatch(leaf)
        if found is not None and all(any(stack.has(part) for stack in stacks) for part in found.groups() if part):
            return DATA_URL
    if any(stack.take_inside(leaf) for stack in stacks):
        return INSIDE
    inner = [one for _, one in leaves(_parsed(leaf))] if isinstance(leaf, str) else []
    if inner != [None] and inner and all(_is_there(one, stacks) for one in inner):
        return JSON_TEXT
    return None


def _is_there(leaf: Any, stacks: Sequence[Haystack]) -> bool:
    return leaf in ("", None, [], {}) or leaf is False or any(stack.has(leaf) for stack in stacks)


def _key(leaf: Any) -> Any:
    """Return what tells values apart: true is not 1, an empty list no empty object."""
    return (type(leaf).__name__, str(leaf)) if isinstance(leaf, bool | list | dict) else ("", leaf)


def _parsed(text: str) -> Any:
    """Return the object or list that a string holds as JSON; None without."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _part_at(part: str, text: str) -> int | None:
    """Return where a longer string has a part that ends at no middle of a word."""
    if len(part) >= len(text):
        return None
    word = not any(letter.isspace() for letter in part)
    if not word and len(part) < _SHORTEST:
        return None
    at = text.find(part)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(part) : at + len(part) + 1]
        if word and len(part) < 80:
            fits = (not before or before in _JOINTS) and (not after or after in _JOINTS)
        else:
            fits = not (before.isalnum() and part[0].isalnum()) and not (after.isalnum() and part[-1].isalnum())
        if fits:
            return at
        at = text.find(part, at + 1)
    return None


def _instant(value: Any) -> int | None:
    """Return a time's milliseconds since 1970; None for a value that is not a time of this century or the last."""
    if isinstance(value, str):
        if not 16 <= len(value) <= 40 or _ISO.match(value) is None:
            return None
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return None
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return int(at.timestamp() * 1000 + 0.5)
    if isinstance(value, int | float) and not isinstance(value, bool) and 1e8 < value < 1e14:
        return int((value if value > 1e11 else value * 1000) + 0.5)
    return None


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and (len(value) > 40 or _DECIMAL.fullmatch(value) is None):
        return None
    found = Decimal(str(value))
    return found if found.is_finite() else None
