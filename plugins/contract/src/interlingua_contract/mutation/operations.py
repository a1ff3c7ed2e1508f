"""The operations: each takes the values at one place of one result, and returns what is there instead."""

from __future__ import annotations

import enum
import json
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import attrs

from interlingua import errors
from interlingua_contract.json_paths import Path, leaves, with_value
from interlingua_contract.mutation.tree import DROP, USER_JSON, Impossible, Node, Place, Several, default_of

Changes = dict[Path, Any]

_LONGEST_WORD = 40
_ERRORS = (
    errors.BadRequestError, errors.AuthenticationError, errors.PermissionDeniedError, errors.RateLimitError,
    errors.QuotaExceededError, errors.OverloadedError, errors.ContextWindowExceededError, errors.ContentRefusedError,
    errors.ModelNotFoundError, errors.ServerError,
)  # fmt: skip


@attrs.frozen
class Known:
    """Facts about a place beside the values of this result.

    Attributes:
        words: short words seen there.
        earlier: values of an earlier request.
    """

    words: Collection[str] = ()
    earlier: Sequence[Any] = ()


@attrs.frozen
class Operation:
    """One way to change what is at a place.

    Attributes:
        name: one word.
        kind: the group it is counted in.
        apply: returns path -> new value; empty if it does not apply.
    """

    name: str
    kind: str
    apply: Callable[[Sequence[Node], Known], Changes]


def _each(change: Callable[[Any, Known], Any]) -> Callable[[Sequence[Node], Known], Changes]:
    """Make an operation of a function of one value, which returns the value itself if it does not apply."""

    def apply(found: Sequence[Node], known: Known) -> Changes:
        return {node.path: change(node.value, known) for node in found}

    return apply


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not hasattr(value, "_fields")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _off_by_one(value: Any, _known: Known) -> Any:
    if _is_whole(value):
        return value + 1
    if isinstance(value, float):
        return value / 2 if value else 0.5
    if isinstance(value, Decimal):
        return value * 2 if value else Decimal(1)
    if isinstance(value, (datetime, date)):
        return value + timedelta(days=1)
    return value


def _inverted(value: Any, _known: Known) -> Any:
    return not value if isinstance(value, bool) else value


def _other_case(value: Any, _known: Known) -> Any:
    return value.swapcase() if _is_text(value) else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, enum.Enum)


def is_word(value: Any) -> bool:
    """True for a short string without spaces, such as the words of an enumeration."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_WORD and not any(map(str.isspace, value))


def _other_word(value: Any, known: Known) -> Any:
    if isinstance(value, enum.Enum):
        return _next(list(type(value)), value)
    if isinstance(value, type):
        return _next(_ERRORS, value) if value in _ERRORS else value
    words = sorted(known.words)
    return _next(words, value) if is_word(value) and value in words else value


def _next(items: Sequence[Any], value: Any) -> Any:
    return items[(items.index(value) + 1) % len(items)]


def _other_digits(value: Any, _known: Known) -> Any:
    if not _is_text(value):
        return value
    at = next((at for at in reversed(range(len(value))) if value[at] in "0123456789"), None)
    return value if at is None else f"{value[:at]}{(int(value[at]) + 1) % 10}{value[at + 1 :]}"


def _other_letter(value: Any, _known: Known) -> Any:
    if not _is_text(value):
        return value
    at = next((at for at in reversed(range(len(value))) if value[at].isalpha()), None)
    return value if at is None else f"{value[:at]}{'q' if value[at] != 'q' else 'k'}{value[at + 1 :]}"


def _doubled(value: Any, _known: Known) -> Any:
    return value * 2 if _is_text(value) or _is_whole(value) else value


def _twice(found: Sequence[Node], known: Known) -> Changes:
    """Double a string or a number; repeat an element of a list."""
    changes = _each(_doubled)(found, known)
    return changes | {node.path: Several([node.value] * 2) for node in found if isinstance(node.holder, (list, tuple))}


def _cut(value: Any, _known: Known) -> Any:
    if _is_text(value) and len(value) > 1:
        return value[: len(value) // 2]
    return value[:-1] if _is_list(value) and len(value) > 1 else value


def _reversed(value: Any, _known: Known) -> Any:
    return value[::-1] if _is_list(value) else value


def _last_first(value: Any, _known: Known) -> Any:
    return value[-1:] + value[:-1] if _is_list(value) and len(value) > 2 else value


def _neighbours(value: Any, _known: Known) -> Any:
    return value[:-2] + value[:-3:-1] if _is_list(value) and len(value) > 1 else value


def _spaces(value: Any, _known: Known) -> Any:
    return value.strip() if _is_text(value) else value


def _composed(value: Any, _known: Known) -> Any:
    return unicodedata.normalize("NFC", value) if _is_text(value) else value


def _line_ends(value: Any, _known: Known) -> Any:
    return value.replace("\r\n", "\n") if _is_text(value) else value


def _drop(found: Sequence[Node], _known: Known) -> Changes:
    return {node.path: DROP for node in found if not _is_default(node)}


def _drop_later(found: Sequence[Node], _known: Known) -> Changes:
    return {node.path: DROP for node in found[1:] if not _is_default(node)}


def _is_default(node: Node) -> bool:
    """True for a field that has its default: without it, the value is equal."""
    if isinstance(node.holder, (Mapping, list, bytes, type(None))) or type(node.holder) is tuple:
        return False
    with suppress(Impossible):
        return bool(default_of(node.holder, str(node.path[-1])) == node.value)
    return False


def _swap(found: Sequence[Node], _known: Known) -> Changes:
    """Exchange the values of the first two occurrences that differ."""
    for one, other in pairwise(found):
        if one.value != other.value and not _inside(one.path, other.path):
            return {one.path: other.value, other.path: one.value}
    return {}


def _inside(one: Path, other: Path) -> bool:
    return one == other[: len(one)] or other == one[: len(other)]


def _first_everywhere(found: Sequence[Node], _known: Known) -> Changes:
    return {node.path: found[0].value for node in found[1:] if not _inside(found[0].path, node.path)}


def _swap_members(found: Sequence[Node], _known: Known) -> Changes:
    """Exchange the value with the next member of the same object that has a value of the same type."""
    changes: Changes = {}
    for node in found:
        if not node.path or isinstance(node.value, (dict, list, tuple)):
            continue
        members = list(node.holder.items()) if isinstance(node.holder, Mapping) else _fields(node.holder)
        names = [name for name, _ in members]
        at = names.index(node.path[-1]) if node.path[-1] in names else len(names)
        for name, value in members[at + 1 :]:
            if type(value) is type(node.value) and value != node.value and not isinstance(value, (dict, list, tuple)):
                changes[node.path], changes[(*node.path[:-1], name)] = value, node.value
                break
    return changes


def _fields(holder: Any) -> list[tuple[Any, Any]]:
    if not attrs.has(type(holder)):
        return []
    return [(field.name, getattr(holder, field.name)) for field in attrs.fields(type(holder)) if field.init]


def _move(found: Sequence[Node], _known: Known) -> Changes:
    """Move the member to the element before its own, else to the one after it; elements that have one keep it."""
    have = {node.path for node in found}
    for node in found:
        at = next((at for at in reversed(range(len(node.path) - 1)) if isinstance(node.path[at], int)), None)
        if at is None or not isinstance(node.holder, Mapping) or at != len(node.path) - 2:
            continue
        for other in (int(node.path[at]) - 1, int(node.path[at]) + 1):
            target = (*node.path[:at], other, node.path[-1])
            if other >= 0 and target not in have:
                return {node.path: DROP, target: node.value}
    return {}


def _stale(found: Sequence[Node], known: Known) -> Changes:
    return {node.path: value for node, value in zip(found, known.earlier, strict=False)}


def _json_alter(value: Any, _known: Known) -> Any:
    for path, leaf in leaves(json.loads(json.dumps(value))):
        if not path:
            continue
        for change in (_off_by_one, _inverted, _other_letter):
            if (new := change(leaf, _known)) != leaf or type(new) is not type(leaf):
                return with_value(json.loads(json.dumps(value)), path, new)
    return value


def _json_drop(value: Any, _known: Known) -> Any:
    return dict(list(value.items())[:-1]) if value else value


def _json_whole(value: Any, _known: Known) -> Any:
    """Write numbers such as 1.0 as whole ones."""

    def whole(item: Any) -> Any:
        if isinstance(item, float) and item.is_integer():
            return int(item)
        if isinstance(item, dict):
            return {name: whole(inner) for name, inner in item.items()}
        return [whole(inner) for inner in item] if isinstance(item, list) else item

    return whole(json.loads(json.dumps(value)))


def _json_empty(value: Any, _known: Known) -> Any:
    """Leave out members that are null or empty."""
    return {name: item for name, item in value.items() if item not in (None, "", [], {})}


ALTER, DROPPED, SWAPPED, MOVED, NORMALISED, OTHERS = "alter", "drop", "swap", "move", "normalise", "take from another"

OPERATIONS: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("drop", DROPPED, _drop),
        Operation("drop-later", DROPPED, _drop_later),
        Operation("off-by-one", ALTER, _each(_off_by_one)),
        Operation("invert", ALTER, _each(_inverted)),
        Operation("other-case", ALTER, _each(_other_case)),
        Operation("other-word", ALTER, _each(_other_word)),
        Operation("other-digits", ALTER, _each(_other_digits)),
        Operation("other-letter", ALTER, _each(_other_letter)),
        Operation("swap", SWAPPED, _swap),
        Operation("swap-members", SWAPPED, _swap_members),
        Operation("swap-elements", SWAPPED, _each(_neighbours)),
        Operation("double", "double", _twice),
        Operation("move", MOVED, _move),
        Operation("last-first", MOVED, _each(_last_first)),
        Operation("reorder", "reorder", _each(_reversed)),
        Operation("cut", "cut", _each(_cut)),
        Operation("strip", NORMALISED, _each(_spaces)),
        Operation("compose", NORMALISED, _each(_composed)),
        Operation("line-ends", NORMALISED, _each(_line_ends)),
        Operation("first-everywhere", OTHERS, _first_everywhere),
        Operation("stale", OTHERS, _stale),
    )
}

OF_USER_JSON: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("drop", DROPPED, _drop),
        Operation("json-drop", DROPPED, _each(_json_drop)),
        Operation("json-alter", ALTER, _each(_json_alter)),
        Operation("json-numbers", NORMALISED, _each(_json_whole)),
        Operation("json-empty", NORMALISED, _each(_json_empty)),
        Operation("swap", SWAPPED, _swap),
        Operation("stale", OTHERS, _stale),
    )
}


def operations_at(place: Place) -> Mapping[str, Operation]:
    """Return the operations for a place: JSON of the user has its own."""
    return OF_USER_JSON if place[-1:] == (USER_JSON,) else OPERATIONS


def changes_of(operation: Operation, found: Sequence[Node], known: Known) -> Changes:
    """Return what an operation changes, without what stays equal."""
    values = {node.path: node.value for node in found}
    changed = operation.apply(found, known)
    return {path: new for path, new in changed.items() if not _same(values.get(path, DROP), new)}


def _same(one: Any, other: Any) -> bool:
    """True for equal values; the order of an object's members is free, and 1 is not 1.0."""
    if one is other:
        return True
    if isinstance(one, (Mapping, list)):
        return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return one == other and isinstance(one, type(other))
