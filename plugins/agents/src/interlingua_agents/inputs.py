"""The input of a call: checked against its tool's schema (JSON Schema draft 2020-12), repaired, read as arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import attrs

from interlingua.plugins import dumps, loads
from interlingua.types import ToolDefinition, ToolUseBlock, json_pointer

_CONTAINERS: Mapping[str, type] = {"object": dict, "array": list}
_MAX_MESSAGE = 300  # a message quotes the input, which may be a whole file


@attrs.frozen(kw_only=True)
class InputViolation:
    """One way in which an input breaks its schema.

    Attributes:
        path: JSON pointer into the input; "" is the input itself.
        message: the problem, at most 300 characters; it may quote the input.
        rule: the broken keyword of the schema; `JSON` for arguments that are not JSON, `depth` for an input that is
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


def describe_violations(definition: ToolDefinition, call: ToolUseBlock, found: Iterable[InputViolation]) -> str:
    """Describe the violations of an input for the model, so that it can correct the call."""
    if call.parse_error is not None:
        return f"invalid input: {call.parse_error}"
    text = "invalid input: " + "; ".join(f"{one.path or '/'}: {one.message}" for one in found)
    if _parse(definition.input_schema, call.input) != call.input:
        text += "; write objects and arrays directly, not as strings that contain JSON"
    return text


def parse_json_strings(definition: ToolDefinition, call: ToolUseBlock) -> ToolUseBlock:
    """Parse strings that hold JSON if the schema expects an object or an array; return the same call if it has none."""
    if call.parse_error is not None:
        return call
    parsed = _parse(definition.input_schema, call.input)
    return call if parsed == call.input else attrs.evolve(call, input=parsed, raw_input=None)


def read_arguments(struct: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an input that fits the schema into arguments of the parameters' types.

    Raises:
        ValueError: the input breaks a bound that the schema only describes; the message contains the place.
    """
    import msgspec  # noqa: PLC0415  not every run has tools

    # msgspec calls dec_hook only for pydantic models: `read_signature` rejects other unknown types
    read = msgspec.convert(arguments, struct, dec_hook=lambda kind, value: kind.model_validate(value))
    return {name: getattr(read, name) for name in arguments}


def _parse(schema: Any, value: Any) -> Any:
    """Follow the schema through the value; parts that it does not describe are kept."""
    if not isinstance(schema, Mapping):
        return value
    wanted = _CONTAINERS.get(str(schema.get("type")))
    if wanted is not None and isinstance(value, str):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if not isinstance(found, wanted):
            return value
        value = found
    if isinstance(value, Mapping):
        fields = schema.get("properties", {})
        return {name: _parse(fields.get(name, schema.get("additionalProperties")), one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_parse(schema.get("items"), one) for one in value]
    return value


# Keyed by the schema's JSON: equal values would share a key although the schemas differ, since 1 == True in Python.
@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  slow to import, and not every run has tools

    return Draft202012Validator(loads(schema))


def _violation(error: Any) -> InputViolation:
    message = error.message
    short = message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
    return InputViolation(path=json_pointer("", *error.absolute_path), message=short, rule=error.validator or "")
