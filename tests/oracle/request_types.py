"""Hold JSON against the parameter types of an official SDK: what is wrong, and where; unknown keys are wrong too.

The SDKs' own functions check nothing of a TypedDict when they run, and pydantic reads an `Iterable` lazily.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import ReadOnly, TypeAliasType, get_type_hints, is_typeddict

_MARKS = (Required, NotRequired, ReadOnly, Annotated)
_LEAVES: dict[Any, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}


def type_errors(value: Any, wanted: Any, path: str = "") -> list[str]:
    """Return what of a JSON value is not of a type: a TypedDict, model, union, list or plain type; empty where all is.

    Args:
        value: as read from JSON.
        wanted: the type.
        path: where the value is, for the messages.
    """
    wanted = _bare(wanted)
    if wanted is Any or wanted is object:
        return []
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        return _union_errors(value, get_args(wanted), path)
    if origin is Literal:
        return [] if value in get_args(wanted) else [f"{path}: {value!r:.60} is none of {_words(get_args(wanted))}"]
    if wanted is None or wanted is type(None):
        return [] if value is None else [f"{path}: {value!r:.60} is not null"]
    if is_typeddict(wanted):
        return _object_errors(value, wanted, _fields(wanted), path)
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        return _object_errors(value, wanted, _model_fields(wanted), path)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return [f"{path}: {value!r:.60} is no object"]
        inner = get_args(wanted)[1]
        return [error for name, one in value.items() for error in type_errors(one, inner, f"{path}.{name}")]
    if isinstance(origin, type) and issubclass(origin, Iterable):
        if not isinstance(value, list):
            return [f"{path}: {value!r:.60} is no list"]
        inner = get_args(wanted)[0]
        return [error for at, one in enumerate(value) for error in type_errors(one, inner, f"{path}[{at}]")]
    return _leaf_errors(value, wanted, path)


def _bare(wanted: Any) -> Any:
    """Return a type without Required, NotRequired and Annotated around it, and what an alias stands for."""
    while True:
        origin = get_origin(wanted)
        if origin in _MARKS:
            wanted = get_args(wanted)[0]
        elif isinstance(wanted, TypeAliasType):
            wanted = wanted.__value__
        elif isinstance(origin, TypeAliasType):
            wanted = origin.__value__[get_args(wanted)]
        elif hasattr(wanted, "__supertype__"):
            wanted = wanted.__supertype__
        else:
            return wanted


def _leaf_errors(value: Any, wanted: Any, path: str) -> list[str]:
    kinds = _LEAVES.get(wanted)
    if kinds is not None:
        right = isinstance(value, kinds) and (wanted is bool or not isinstance(value, bool))
        return [] if right else [f"{path}: {value!r:.60} is no {wanted.__name__}"]
    if wanted in (dict, list):
        return [] if isinstance(value, wanted) else [f"{path}: {value!r:.60} is no {wanted.__name__}"]
    try:
        _adapter(wanted).validate_python(value)
    except ValidationError as error:
        return [f"{path}: {error.errors()[0]['msg']}"]
    return []


@lru_cache(maxsize=1024)
def _adapter(wanted: Any) -> TypeAdapter[Any]:
    return TypeAdapter(wanted)


@lru_cache(maxsize=4096)
def _fields(wanted: Any) -> tuple[dict[str, Any], frozenset[str]]:
    hints = get_type_hints(wanted, include_extras=True)
    total = wanted.__required_keys__  # wrong where annotations are texts: the marks in them were not read
    return hints, frozenset(
        name
        for name, hint in hints.items()
        if get_origin(hint) is Required or (name in total and get_origin(hint) is not NotRequired)
    )


def _object_errors(value: Any, wanted: Any, fields: tuple[dict[str, Any], frozenset[str]], path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path}: {value!r:.60} is no {wanted.__name__}"]
    hints, required = fields
    found = [f"{path}.{name}: unknown to {wanted.__name__}" for name in value if name not in hints]
    found += [f"{path}.{name}: required by {wanted.__name__}" for name in required if name not in value]
    for name, inner in value.items():
        if name in hints:
            found += type_errors(inner, hints[name], f"{path}.{name}")
    return found


@lru_cache(maxsize=4096)
def _model_fields(wanted: type[BaseModel]) -> tuple[dict[str, Any], frozenset[str]]:
    wanted.model_rebuild()
    make = wanted.model_config.get("alias_generator")
    named = {
        field.alias or (make(name) if callable(make) else name): (field.annotation, field.is_required())
        for name, field in wanted.model_fields.items()
    }
    hints = {name: hint for name, (hint, _) in named.items()}
    return hints, frozenset(name for name, (_, required) in named.items() if required)


def _union_errors(value: Any, members: tuple[Any, ...], path: str) -> list[str]:
    """Return the errors of the member that is meant: the one of this `type` or `role`, else the nearest."""
    tried: list[tuple[bool, bool, int, list[str]]] = []
    for place, member in enumerate(members):
        errors = type_errors(value, member, path)
        if not errors:
            return []
        other_kind = any(error.startswith(f"{path}: ") for error in errors)
        other_tag = any(error.startswith((f"{path}.type: ", f"{path}.role: ")) for error in errors)
        tried.append((other_kind, other_tag, len(errors) * 100 + place, errors))
    return min(tried)[-1]


def _words(values: tuple[Any, ...]) -> str:
    return ", ".join(str(value) for value in values[:12])
