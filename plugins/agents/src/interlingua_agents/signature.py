"""The signature of a typed Python function as a tool's schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs
import msgspec
from docstring_parser import parse

from interlingua import CallerError
from interlingua.errors import UnsupportedSchemaError
from interlingua_agents.schemas import normalise_schema

_READABLE = "plain types, enums, literals, dataclasses, attrs classes, typed dictionaries and pydantic models"


@attrs.frozen(kw_only=True)
class FunctionSignature:
    """The signature and docstring of a function, read as a tool.

    Attributes:
        description: the docstring without its sections.
        schema: JSON Schema of the parameters that a model fills in, within the subset for tool schemas.
        struct: the msgspec class that reads an input.
        context: name of the parameter that takes the call's context, or None.
        is_method: True for a method inside its class, whose first parameter is the object.
    """

    description: str
    schema: Mapping[str, Any]
    struct: Any
    context: str | None
    is_method: bool


def read_signature(function: Callable[..., Any], *, context: type) -> FunctionSignature:
    """Read the signature and docstring of a function.

    Args:
        function: the function.
        context: the class of the parameter that takes the call's context; models do not fill it in.

    Raises:
        CallerError: a parameter has no type, or a type that cannot be read from JSON.
        UnsupportedSchemaError: the types need more than the subset for tool schemas.
    """
    name = getattr(function, "__name__", repr(function))
    documented = parse(inspect.getdoc(function) or "")
    words = {one.arg_name: one.description for one in documented.params if one.description}
    parameters, takes_context = _parameters(function, name, context)
    fields = [_field(one, words.get(one.name)) for one in parameters]
    for parameter, kind, _ in fields:
        why = f"{name}() cannot be a tool, because of its parameter {parameter!r}"
        try:
            msgspec.json.schema(kind, schema_hook=_model_schema)
        except (TypeError, ValueError) as error:
            raise CallerError(f"{why}: {error}; use {_READABLE}") from error
        except UnsupportedSchemaError as error:
            text = error.message.removesuffix(f" (at {error.path})")
            raise UnsupportedSchemaError(f"{why}: {text}", path=error.path) from error
    try:
        struct = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
        schema = msgspec.json.schema(struct, schema_hook=_model_schema)
    except (TypeError, ValueError) as error:
        raise CallerError(f"{name}() cannot be a tool: {error}") from error
    text = "\n\n".join(filter(None, [documented.short_description, documented.long_description]))
    made = normalise_schema(schema).schema
    return FunctionSignature(
        description=text,
        schema=made,
        struct=struct,
        context=takes_context,
        is_method=_self_parameter(function) is not None,
    )


def _self_parameter(function: Callable[..., Any]) -> str | None:
    """Return the name of the parameter that takes the object, if this is a method in the body of its class."""
    place = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(function) or not place or place.endswith("<locals>"):
        return None
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first.name if first is not None and first.name == "self" and first.annotation is first.empty else None


def _model_schema(kind: Any) -> dict[str, Any]:
    """Return the schema of a pydantic model, which msgspec does not know, within the subset for tool schemas."""
    if not hasattr(kind, "model_json_schema"):
        raise TypeError(f"{getattr(kind, '__name__', kind)} cannot be read from JSON")
    return normalise_schema(kind.model_json_schema()).schema


def _parameters(function: Callable[..., Any], name: str, context: type) -> tuple[list[inspect.Parameter], str | None]:
    """Return the parameters that a model fills in, with types resolved, and the name of the context parameter."""
    try:
        if not hasattr(function, "__name__"):
            raise TypeError("it has no __name__")
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        why = f"cannot read the types of {name}(): {error}; pass a function or method whose types its module defines"
        raise CallerError(why) from error
    filled: list[inspect.Parameter] = []
    takes_context = None
    itself = _self_parameter(function)
    for one in inspect.signature(function).parameters.values():
        hint = hints.get(one.name)
        if one.name == itself:
            continue
        if hint is context or context in get_args(hint):
            takes_context = one.name
        elif one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise CallerError(f"{name}() cannot be a tool: a model cannot fill in {one}")
        elif hint is None:
            raise CallerError(f"{name}() cannot be a tool: annotate its parameter {one.name!r} with a type")
        else:
            filled.append(one.replace(annotation=hint))
    return filled, takes_context


def _description(annotation: object) -> str | None:
    """Return the description in an annotation: a string itself, or the description of a pydantic `Field`."""
    found = annotation if isinstance(annotation, str) else getattr(annotation, "description", None)
    return found if isinstance(found, str) else None


def _field(parameter: inspect.Parameter, words: str | None) -> tuple[str, Any, Any]:
    kind = parameter.annotation
    if get_origin(kind) is Annotated:  # a plain string there describes the parameter
        words = next(filter(None, map(_description, get_args(kind)[1:])), words)
    is_described = any(isinstance(one, msgspec.Meta) and one.description for one in get_args(kind)[1:])
    if words and not is_described:
        kind = Annotated[kind, msgspec.Meta(description=" ".join(words.split()))]
    default = parameter.default
    if default is parameter.empty:
        return parameter.name, kind, msgspec.NODEFAULT
    if default is None or isinstance(default, str | int | float):
        return parameter.name, kind, default
    return parameter.name, kind, msgspec.field(default_factory=lambda: default)
