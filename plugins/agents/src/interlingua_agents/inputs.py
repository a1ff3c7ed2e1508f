"""The check of a call's input against its tool's schema (JSON Schema draft 2020-12)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import attrs

from interlingua.plugins import dumps, loads
from interlingua.types import ToolDefinition, ToolUseBlock, json_pointer

_MAX_MESSAGE = 300  # a message quotes the input, which may be a whole file


@attrs.frozen(kw_only=True)
class InputViolation:
    """One way in which an input breaks its schema.

    Attributes:
        path: JSON pointer into the input; "" is the input itself.
        message: what is wrong there, at most 300 characters; it may quote the input.
        rule: the schema's keyword that is broken; `JSON` for arguments that are not JSON, `depth` for an input that is
            nested too deeply to be checked, `tools` for a tool that does not exist, `parameters` for an input that the
            function's types reject.
    """

    path: str = ""
    message: str
    rule: str


def validate_input(definition: ToolDefinition, input: Any) -> tuple[InputViolation, ...]:  # noqa: A002
    """Return every violation in the order of the schema; empty means valid. `format` is an annotation, not a check.

    Args:
        definition: the tool that was called.
        input: the parsed arguments.
    """
    validator = _validator(dumps(definition.input_schema))
    try:
        return tuple(_violation(error) for error in validator.iter_errors(input))
    except RecursionError:  # the validator quotes what it rejects, and quoting recurses
        return (InputViolation(message="the input is nested too deeply to be checked", rule="depth"),)


def check_call(definition: ToolDefinition, call: ToolUseBlock) -> tuple[InputViolation, ...]:
    """Return every violation of a call's input; arguments that are not JSON are one violation."""
    if call.parse_error is not None:
        return (InputViolation(message=call.parse_error, rule="JSON"),)
    return validate_input(definition, call.input)


# Keyed by the schema's JSON: equal values would share a key although the schemas differ, since 1 == True in Python.
@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  slow to import, and not every run has tools

    return Draft202012Validator(loads(schema))


def _violation(error: Any) -> InputViolation:
    message = error.message
    short = message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
    return InputViolation(path=json_pointer("", *error.absolute_path), message=short, rule=error.validator or "")
