"""A tool call's input checked against the tool's schema, for `tool_input_invalid` events.

Never raises for a bad input and never repairs one: it says what is wrong, the caller decides.
The client and tool loops come in, through the room's front door.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import attrs

from interlingua.jsontext import dumps, loads
from interlingua.tools.definition import ToolDefinition
from interlingua.tools.schema import pointer

_MAX_MESSAGE = 300  # a message quotes the input, which may be a whole file


@attrs.frozen(kw_only=True)
class InputViolation:
    """One way in which an input breaks its schema.

    Attributes:
        path: JSON pointer into the input; "" is the input itself.
        message: what is wrong there, at most 300 characters.
    """

    path: str
    message: str


def validate_input(definition: ToolDefinition, input: Any) -> tuple[InputViolation, ...]:  # noqa: A002
    """Return every violation, in the order of the schema; empty means valid. `format` is an annotation, not a check.

    Args:
        definition: the tool that was called.
        input: the parsed arguments (JSON Schema draft 2020-12 decides).
    """
    validator = _validator(dumps(definition.input_schema))
    try:
        return tuple(_violation(error) for error in validator.iter_errors(input))
    except RecursionError:  # the validator quotes what it refuses, and quoting recurses
        return (InputViolation(path="", message="the input is nested too deeply to be checked"),)


# Keyed by text: equal values would be one key for schemas that differ, since 1 == True in Python.
@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  costs more to import than all of core

    return Draft202012Validator(loads(schema))


def _violation(error: Any) -> InputViolation:
    message = error.message
    short = message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
    return InputViolation(path=pointer("", *error.absolute_path), message=short)
