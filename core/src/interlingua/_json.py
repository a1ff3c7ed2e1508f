"""JSON read and written: bytes, frozen values, lone surrogates, and where a line is broken."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Self, TypeVar

import orjson

_T = TypeVar("_T")

# orjson turns integers past 64 bits into floats; a run of this many digits sends the text to the exact, slower reader.
_RUN = b"0" * 19
# That run has three digits among every sixth character: a sixth of the work shows that most strings have no such run.
_TRACE = b"0" * 3
_LARGE = 1 << 20  # bytes or characters from which on other threads run while the text is read
_DIGITS = bytes(ord("0") if code in b"0123456789" else 0 for code in range(256))


def loads(data: bytes | str) -> Any:
    """Parse JSON text; integers of any size and lone surrogate escapes survive.

    Raises:
        ValueError: the text is not JSON (`json.JSONDecodeError` or its orjson subclass).
    """
    if len(data) > _LARGE or (_TRACE in _digits(data[::6]) and _RUN in _digits(data)):
        return _loads_slow(data)
    return loads_lossy(data)


def _digits(data: bytes | str) -> bytes:
    return (data if isinstance(data, bytes) else data.encode("ascii", "replace")).translate(_DIGITS)


def describe_json_error(error: ValueError) -> str:
    """Describe the fault of one line of JSON, with the number of its character, from 1; the line's end has none."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    return f"{error.msg} (character {min(error.pos, len(error.doc.rstrip())) + 1})"


def loads_lossy(data: bytes | str) -> Any:
    """As `loads`, for text that carries no model-made integers (one delta of a stream)."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loads_slow(data)


def _loads_slow(data: bytes | str) -> Any:
    text = (data.decode("utf-8", "replace") if isinstance(data, bytes) else data).removeprefix("\ufeff")  # RFC 8259
    try:
        # before Python calls a function, such as the hook, other threads may run
        return json.loads(text, object_hook=lambda same: same, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    except ValueError as error:
        if "int_max_str_digits" in str(error):  # as Python calls its limit
            raise ValueError("a number of more than 4,300 digits") from None
        raise


def _no_constant(name: str) -> NoReturn:
    """JSON has no NaN or Infinity; written again they, and numbers too large, would be null: the text is kept."""
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_constant(text[:20])


def dumps(value: Any) -> bytes:
    """Write compact UTF-8 JSON in insertion order; lone surrogates become U+FFFD."""
    try:
        return orjson.dumps(value)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return repair_surrogates(text).encode()


def dumps_trimmed(value: Any) -> bytes:
    """Write JSON as `dumps` does, in bytes without spare memory: for what is kept.

    orjson leaves up to eight times the size of its result allocated (measured: 5.3 MB for 400 messages of 450 KB), and
    paging that memory in takes three times as long as writing the JSON.
    """
    return dumps([value])[1:-1]


def repair_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD; well-formed text comes back as the same object."""
    if text.isascii():
        return text
    try:
        text.encode("utf-32")  # rejects lone surrogates as UTF-8 does, at half the cost
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _refuse(*_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError("this JSON value belongs to an immutable message; thaw() returns a mutable copy")


class _Frozen:
    """A JSON object or array that cannot be changed: its own copy."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = _refuse
    _plain: Any

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._plain(self),)


class FrozenDict(_Frozen, dict[str, Any]):
    """A JSON object that cannot be changed; equal to the plain dict it was made from, and hashable."""

    __slots__ = ()
    _plain = dict
    __ior__ = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class FrozenList(_Frozen, list[Any]):
    """A JSON array that cannot be changed; equal to the plain list it was made from, and hashable."""

    __slots__ = ()
    _plain = list
    __iadd__ = __imul__ = append = extend = insert = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


class FieldError(ValueError):
    """A value that is not what its field takes; `path`, such as `.content[0].text`, is completed on the way out."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


_JSON_NAMES = {dict: "object", FrozenDict: "object", list: "array", FrozenList: "array", type(None): "null"}


def raise_field_error(expected: str, value: Any, path: str = "") -> NoReturn:
    """Raise a FieldError: `expected str, got int`."""
    kind = type(value)
    raise FieldError(f"expected {expected}, got {_JSON_NAMES.get(kind, kind.__name__)}", path)


def strip_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD and return a plain `str`."""
    return repair_surrogates(text if type(text) is str else str.__str__(text))


MAX_INT: int = 10**4300
MIN_INT = -MAX_INT
"""Numbers are between these two: Python reads no number of more digits (sys.set_int_max_str_digits)."""

MAX_DEPTH = 200
"""Levels of JSON inside a value. The fast writer takes 254 in all."""

_UNCHANGED = frozenset({bool, type(None), FrozenDict, FrozenList})


def freeze(value: Any, levels: int = MAX_DEPTH) -> Any:
    """Return a deeply immutable copy of a JSON value; an already frozen one comes back as the same object.

    Tuples and sets become arrays, half a surrogate pair becomes U+FFFD.

    Raises:
        FieldError: it is not JSON: NaN, infinities, keys that are not strings and other classes are refused, and so
            are numbers of more than 4,300 digits and more than 200 levels.
    """
    kind = type(value)
    if kind in _UNCHANGED or ((kind is int or kind is float) and MIN_INT < value < MAX_INT):
        return value
    if kind is str:
        return value if value.isascii() else strip_surrogates(value)
    if levels and (kind is dict or (kind is not list and isinstance(value, Mapping))):
        frozen = FrozenDict(value)  # copied at once; then the values that change are replaced
        for key, item in value.items():
            if type(key) is not str or not key.isascii():
                return FrozenDict({_freeze_key(key): freeze(item, levels - 1) for key, item in value.items()})
            if not ((type(item) is str and item.isascii()) or type(item) in _UNCHANGED):
                dict.__setitem__(frozen, key, freeze(item, levels - 1))
        return frozen
    if levels and isinstance(value, (list, tuple, set, frozenset)):
        return FrozenList([freeze(item, levels - 1) for item in value])
    if isinstance(value, str):
        return strip_surrogates(value)
    if isinstance(value, (int, float)):
        if not MIN_INT < value < MAX_INT:
            got = value if isinstance(value, float) else "a number of over 4,300 digits"
            raise FieldError(f"expected JSON, got {got}")
        return int(value) if isinstance(value, int) else float(value)  # of numpy
    if not levels and isinstance(value, Iterable):
        raise FieldError(f"nested too deeply: at most {MAX_DEPTH} levels")
    return raise_field_error("JSON", value)


def _freeze_key(key: Any) -> str:
    return strip_surrogates(key) if isinstance(key, str) else raise_field_error("str as a key", key)


def thaw(value: Any) -> Any:
    """Return a plain, changeable copy of a JSON value."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    return [thaw(item) for item in value] if isinstance(value, (list, tuple)) else value


def freeze_object(value: Mapping[str, Any] | None) -> FrozenDict:
    """Freeze an object; None becomes the empty object (an attrs converter)."""
    return EMPTY if value is None or value == EMPTY else freeze(value)


def freeze_optional(value: Mapping[str, Any] | None) -> FrozenDict | None:
    """Freeze an object that may be absent (an attrs converter)."""
    return None if value is None else freeze(value)


def as_tuple(value: Iterable[_T]) -> tuple[_T, ...]:
    """Return an array as a tuple; strings and objects are not arrays (an attrs converter)."""
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        return tuple(value)
    return raise_field_error("array", value)


# type checkers cannot see through a generic converter
def as_names(value: Iterable[str]) -> tuple[str, ...]:
    """Return an array of strings as a tuple (an attrs converter)."""
    return as_tuple(value)


def freeze_objects(value: Iterable[Mapping[str, Any]]) -> tuple[FrozenDict, ...]:
    """Freeze a sequence of objects into a tuple (an attrs converter)."""
    return tuple(map(freeze, as_tuple(value))) if value != () else ()


EMPTY = FrozenDict()
