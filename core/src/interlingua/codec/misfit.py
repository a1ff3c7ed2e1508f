"""Why a piece of data is not the value it should be, with the path built up on the way out; and the strict scalars.

Never coerces: "3" is not 3 and 1 is not True, in either direction. The other codec modules may come in.
Outside the codec, a Misfit is only ever seen as a DecodeError.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from interlingua.errors import DecodeError
from interlingua.json import freeze

_NAMES = {dict: "object", list: "array", type(None): "null"}


class Misfit(Exception):
    """Data that does not fit; containers add their step to `steps`, the innermost first."""

    def __init__(self, message: str, *steps: str) -> None:
        super().__init__(message)
        self.message = message
        self.steps = list(steps)

    def decode_error(self, prefix: str = "", line: int | None = None) -> DecodeError:
        """Return the public error; `prefix` is where the data stood, `line` its line in a file, from 1."""
        path = (prefix + "".join(reversed(self.steps))).removeprefix(".")
        message = self.message if line is None else f"line {line}: {self.message}"
        return DecodeError(message, path=path)


def misfit(expected: str, value: Any) -> NoReturn:
    """Refuse a value: `expected str, got int`."""
    kind = type(value)
    raise Misfit(f"expected {expected}, got {_NAMES.get(kind, kind.__name__)}")


def as_str(value: Any, _type: Any = None) -> str:
    """Take a string."""
    if type(value) is not str:
        misfit("str", value)
    return value


def as_int(value: Any, _type: Any = None) -> int:
    """Take an integer of any size; a boolean is none."""
    if type(value) is not int:
        misfit("int", value)
    return value


def as_float(value: Any, _type: Any = None) -> float:
    """Take a number; JSON writes a whole one without a point, and it is kept as it was."""
    if type(value) is not float and type(value) is not int:
        misfit("number", value)
    return value


def as_bool(value: Any, _type: Any = None) -> bool:
    """Take a boolean; an integer is none."""
    if type(value) is not bool:
        misfit("bool", value)
    return value


def as_object(value: Any, _type: Any = None) -> Any:
    """Take a JSON object, frozen."""
    if not isinstance(value, dict):
        misfit("object", value)
    return freeze(value)


def as_decimal(value: Any, _type: Any = None) -> Decimal:
    """Take a decimal number written as a string, so that no digit is lost on the way."""
    try:
        number = Decimal(as_str(value))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise Misfit(f"expected a decimal number, got {value[:40]!r}")
    return number


def as_time(value: Any, _type: Any = None) -> datetime:
    """Take an ISO-8601 time with an offset, or a datetime with one; it becomes UTC."""
    try:
        time = value if type(value) is datetime else datetime.fromisoformat(as_str(value))
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Misfit(f"expected an ISO-8601 time with an offset, got {str(value)[:40]!r}")
