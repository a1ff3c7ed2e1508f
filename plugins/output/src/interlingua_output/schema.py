"""A Python type as JSON: its schema, the schema projected for a target, and values read from an answer."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

import attrs

from interlingua.errors import CallerError
from interlingua.output import OutputProblem
from interlingua.plugins import Loss, dumps
from interlingua.types import ModelCapabilities

Node: TypeAlias = dict[str, Any]
_NULL = {"type": "null"}
_ANYTHING: Node = {}
_PLAIN: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_TEXTS: Mapping[type, tuple[str, Callable[[str], Any]]] = {
    datetime: ("date-time", datetime.fromisoformat), date: ("date", date.fromisoformat),
    time: ("time", time.fromisoformat), UUID: ("uuid", UUID), Decimal: ("decimal", Decimal),
}  # fmt: skip
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}
_LISTS: tuple[Any, ...] = (list, tuple, set, frozenset, Sequence, Set)
_UNUSED = ("title", "default", "discriminator", "$defs")
_SUBSET = {"type", "enum", "required", "properties", "items", "description", "format", "additionalProperties"}


class _Field(NamedTuple):
    name: str
    kind: Any
    required: bool


def _fields(kind: Any) -> list[_Field] | None:
    """Return the fields of a class with their names in JSON, or None if its fields are unknown here."""
    try:
        hints = get_type_hints(kind, include_extras=True) if isinstance(kind, type) else {}
    except NameError as error:
        raise CallerError(
            f"cannot resolve the annotations of {kind.__name__}: {error}; define those names in its module"
        ) from error
    if attrs.has(kind):
        own = (one for one in attrs.fields(kind) if one.init)
        return [_Field(one.alias or one.name, hints[one.name], one.default is attrs.NOTHING) for one in own]
    if dataclasses.is_dataclass(kind):
        unset = dataclasses.MISSING
        return [_Field(one.name, hints[one.name], one.default is unset and one.default_factory is unset)
                for one in dataclasses.fields(kind) if one.init]  # fmt: skip
    if is_typeddict(kind):
        return [_Field(name, hint, name in kind.__required_keys__) for name, hint in hints.items()]
    if _is_named_tuple(kind):
        return [_Field(name, hints.get(name, Any), name not in kind._field_defaults) for name in kind._fields]
    return None


def _is_named_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _library(kind: Any) -> str:
    """Return the library that provides the schema and the checks of a class; it is imported already."""
    marks = {"pydantic": "__pydantic_validator__", "msgspec": "__struct_fields__"}
    return next((name for name, mark in marks.items() if isinstance(kind, type) and hasattr(kind, mark)), "")


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


def _tag(members: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Return the property that distinguishes the classes of a union, and the classes by its values, if it is needed."""
    classes = [one for one in members if _library(one) or _fields(one) is not None]
    if len(classes) < 2:
        return "", {}
    named = {one.__name__: one for one in classes}
    if len(named) < len(classes):
        raise CallerError(f"the classes of a union need different names: {', '.join(one.__name__ for one in classes)}")
    taken: set[str] = set()
    for one in classes:
        taken |= {*getattr(one, "model_fields", ()), *getattr(one, "__struct_fields__", ())}
        taken |= {field.name for field in _fields(one) or ()}
    name = "kind"
    while name in taken:
        name += "_"
    return name, named


class _Writer:
    """Writes the schema of a type; classes become entries of `defs`."""

    def __init__(self) -> None:
        self.defs: dict[str, Node] = {}
        self._names: dict[Any, str] = {}

    def write(self, kind: Any) -> Node:  # noqa: C901  one branch for each form of type
        origin, args = get_origin(kind), get_args(kind)
        if (inner := getattr(kind, "__supertype__", None) or getattr(kind, "__value__", None)) is not None and not args:
            return self.write(inner)  # NewType, `type X = …`
        if hasattr(kind, "__metadata__"):  # Annotated
            notes = (getattr(one, "description", one) for one in kind.__metadata__)
            described = next((one for one in notes if isinstance(one, str)), None)
            return {**self.write(kind.__origin__), **({"description": described} if described else {})}
        if getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly"):
            return self.write(args[0])
        kind = NoneType if kind is None else kind
        if kind is Any or kind is object:
            return {}
        if kind in _PLAIN:
            return {"type": _PLAIN[kind]}
        if kind in _TEXTS:
            name = _TEXTS[kind][0]
            words = {"description": "a decimal number"} if name == "decimal" else {"format": name}
            return {"type": "string", **words}
        if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
            return _one_of([getattr(one, "value", one) for one in (args or kind)])
        if _is_union(kind):
            tag, named = _tag(args)
            return {"anyOf": [self._class(one, tag) if one in named.values() else self.write(one) for one in args]}
        shape = origin or kind
        if shape in (dict, Mapping):
            if args and self.write(args[0]).get("type") != "string":
                raise CallerError(f"the keys of a JSON object must be strings; {kind} has other keys")
            return {"type": "object", "additionalProperties": self.write(args[1]) if args else {}}
        if shape in _LISTS:
            if shape is tuple and args and args[-1] is not ...:
                return {"type": "array", "prefixItems": [self.write(one) for one in args]}
            return {"type": "array", "items": self.write(args[0]) if args else {}}
        return self._class(kind)

    def _class(self, kind: Any, tag: str = "") -> Node:
        name = self._names.get((kind, tag))
        if name is None:
            name = base = getattr(kind, "__name__", "value")
            while name in self.defs:
                name += "_"
            self._names[kind, tag] = name
            self.defs[name] = {}
            self.defs[name] = self._object(kind, base)
            if tag:
                made = self.defs[name]
                made["properties"] = {tag: _one_of([base]), **made.get("properties", {})}
                made["required"] = [tag, *made.get("required", ())]
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, kind: Any, name: str) -> Node:
        if library := sys.modules.get(_library(kind)):
            if library.__name__ == "pydantic":
                schema = library.TypeAdapter(kind).json_schema(ref_template=f"#/$defs/{name}.{{model}}")
            else:
                schema = library.json.schema(kind, ref_template=f"#/$defs/{name}.{{name}}")
            self.defs |= {f"{name}.{key}": value for key, value in schema.pop("$defs", {}).items()}
            at = schema.get("$ref", "").removeprefix("#/$defs/")
            return dict(self.defs[at]) if at else schema
        fields = _fields(kind)
        if fields is None:
            raise CallerError(
                f"{getattr(kind, '__name__', kind)!s} cannot be the type of an answer: no JSON can be read into it"
            )
        text = kind.__doc__ or ""
        text = "" if text.startswith((f"{name}(", "dict(")) else text
        words = dict(re.findall(r"^[ \t]+(\w+): +(\S.*)$", text, re.M))
        properties = {}
        for one in fields:
            made = self.write(one.kind)
            properties[one.name] = {"description": words[one.name], **made} if one.name in words else made
        summary = {"description": text.split("\n\n")[0].strip()} if text else {}
        required = [one.name for one in fields if one.required]
        return {**_object(properties, required), **summary}


def _object(properties: Node, required: Sequence[str]) -> Node:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _one_of(values: Sequence[Any]) -> Node:
    kinds = {_PLAIN.get(type(one)) or next((_PLAIN[base] for base in (str, int) if isinstance(one, base)), None)
             for one in values}  # fmt: skip
    if None in kinds:
        raise CallerError(f"a Literal or enum may hold strings, numbers, booleans and null; got {values!r}")
    return {"type": kinds.pop(), "enum": [*values]} if len(kinds) == 1 else {"enum": [*values]}


def _map(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a schema with each direct subschema changed."""
    made = dict(node)
    for name, value in node.items():
        if name in ("properties", "$defs"):
            made[name] = {key: change(child) for key, child in value.items()}
        elif name in ("anyOf", "prefixItems"):
            made[name] = [change(child) for child in value]
        elif name in ("items", "additionalProperties") and isinstance(value, dict):
            made[name] = change(value)
    return made


def child_schemas(node: Node) -> list[Node]:
    """Return the direct subschemas of a schema."""
    found: list[Node] = []
    _map(node, lambda child: found.append(child) or child)  # type: ignore[func-returns-value]
    return found


def _inline(node: Node, defs: Mapping[str, Node], kept: dict[str, Node], within: tuple[str, ...] = ()) -> Node:
    """Return a schema in few keywords, with its references resolved except those that are recursive."""
    if "$ref" in node:
        name = node["$ref"].removeprefix("#/$defs/")
        if name not in defs:
            raise CallerError(f"a schema refers to {node['$ref']}, which is not defined")
        if name in within:
            kept.setdefault(name, {})
            return {"$ref": node["$ref"]}
        made = _inline(defs[name], defs, kept, (*within, name))
        if name not in kept:
            return {**made, **{key: value for key, value in node.items() if key not in ("$ref", *_UNUSED)}}
        kept[name] = made
        return {"$ref": node["$ref"]}
    made = {key: value for key, value in node.items() if key not in _UNUSED}
    if "oneOf" in made:
        made["anyOf"] = made.pop("oneOf")
    if len(made.get("allOf", ())) == 1:
        made = {**made.pop("allOf")[0], **made}
    if "properties" not in made and ("patternProperties" in made or made.get("additionalProperties") is True):
        patterns = made.pop("patternProperties", {})  # a map whose keys are checked when it is read
        made["additionalProperties"] = {"anyOf": [*patterns.values()]} if len(patterns) > 1 else {}
        if len(patterns) == 1:
            ((pattern, made["additionalProperties"]),) = patterns.items()
            made["description"] = f"{made.get('description', '')} (keys: {pattern})".lstrip()
    if "const" in made:
        made |= _one_of([made.pop("const")])
    if isinstance(kinds := made.get("type"), list):
        rest = {key: made[key] for key in made if key not in ("type", "description")}
        made = {"anyOf": [{**rest, "type": one} if one != "null" else _NULL for one in kinds],
                **({"description": made["description"]} if "description" in made else {})}  # fmt: skip
    return _map(made, lambda child: _inline(child, defs, kept, within) if isinstance(child, dict) else {})


class OutputType:
    """A type of answers, with its schema and reader.

    Attributes:
        name: name of the type.
        wrapped: the type is not an object; its value is the property `value` of one.
        schema: JSON Schema of that object; it has references only if the type is recursive.

    Raises:
        CallerError: no JSON can be read into the type.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._given = isinstance(kind, Mapping)
        self.name: str = getattr(kind, "__name__", "answer") if isinstance(kind, type) else "answer"
        writer = _Writer()
        root = dict(kind) if isinstance(kind, Mapping) else writer.write(kind)
        defs: Node = root.get("$defs", writer.defs)
        kept: dict[str, Node] = {}
        made = _inline(root, defs, kept)
        if "$ref" in made:
            made = {**kept[made["$ref"].removeprefix("#/$defs/")]}
        self.wrapped = made.get("type") != "object" or isinstance(made.get("additionalProperties"), dict)
        if self.wrapped:
            made = _object({"value": made}, ["value"])
        self.schema: Node = {**made, "$defs": kept} if kept else made

    def read(self, value: Any) -> tuple[Any, tuple[OutputProblem, ...]]:
        """Return the value of an answer's JSON and its problems; the value is valid only if there are no problems."""
        problems: list[OutputProblem] = []
        plain = self.restore(value, problems)
        problems = problems or (_check_given(self.schema, plain) if self._given else [])
        if problems:
            return None, tuple(problems)
        plain = plain["value"] if self.wrapped else plain
        if self._given:
            return plain, ()
        try:
            return _converter().structure(plain, self._kind), ()
        except Exception as error:  # validators raise what they like
            return None, tuple(_describe(error))

    def read_problems(self, value: Any) -> list[OutputProblem]:
        """Return the problems with the form of a value, without the wrapper `value`."""
        problems: list[OutputProblem] = []
        self.restore({"value": value} if self.wrapped else value, problems)
        return problems

    def restore(self, value: Any, problems: list[OutputProblem] | None = None) -> Any:
        """Return the JSON in the type's own form: without nulls for defaults, with maps as objects."""
        return self._restore(value, self.schema, "", [] if problems is None else problems)

    def _restore(self, value: Any, node: Node, path: str, problems: list[OutputProblem]) -> Any:
        node = self._resolve(node)
        if "anyOf" in node:
            return self._restore_union(value, [self._resolve(one) for one in node["anyOf"]], path, problems)
        kind, extra = node.get("type", ""), node.get("additionalProperties")
        if kind == "object" and isinstance(extra, dict) and _is_pairs(value):
            whole = [one for one in value if len(one) == 2]
            problems += [OutputProblem(path, "has a pair without key or value")] if len(whole) < len(value) else []
            value = {one["key"]: one["value"] for one in whole}
        if kind in _CHECKS and not _CHECKS[kind](value):
            problems.append(OutputProblem(path, f"has to be of type {kind}, not {_type_name(value)}"))
        elif "enum" in node and not any(type(one) is type(value) and one == value for one in node["enum"]):
            problems.append(OutputProblem(path, f"has to be one of {dumps(node['enum']).decode()}"))
        elif isinstance(value, list):
            first = node.get("prefixItems") or ()
            if first and len(first) != len(value):
                problems.append(OutputProblem(path, f"has to have {len(first)} items"))
            nodes = [*first, *[node.get("items", {})] * (len(value) - len(first))]
            pairs = enumerate(zip(value, nodes, strict=False))
            return [self._restore(item, one, join_path(path, at), problems) for at, (item, one) in pairs]
        elif isinstance(value, dict):
            known, required = node.get("properties") or {}, node.get("required") or ()
            missing = [name for name in required if name not in value]
            value = {**value, **{name: None for name in missing if self._takes_null(known.get(name, _ANYTHING))}}
            problems += [OutputProblem(join_path(path, name), "is missing") for name in missing if name not in value]
            if extra is False and (unknown := value.keys() - known.keys()):
                problems.append(OutputProblem(path, f"has properties that are not known: {', '.join(sorted(unknown))}"))
            extra = extra if isinstance(extra, dict) else {}
            return {
                name: self._restore(item, known.get(name, extra), join_path(path, name), problems)
                for name, item in value.items()
                if item is not None or name in required or name not in known or self._takes_null(known[name])
            }
        return value

    def _restore_union(self, value: Any, members: Sequence[Node], path: str, problems: list[OutputProblem]) -> Any:
        for one in members:
            found: list[OutputProblem] = []
            made = self._restore(value, one, path, found)
            if not found:
                return made
        alike = [one for one in members if one.get("type") != "null" and _tagged(value, one)]
        if len(alike) == 1:
            return self._restore(value, alike[0], path, problems)
        problems.append(OutputProblem(path, "does not fit any of the allowed forms"))
        return value

    def _resolve(self, node: Node) -> Node:
        found: Node = self.schema["$defs"][node["$ref"].removeprefix("#/$defs/")] if "$ref" in node else node
        return found

    def _takes_null(self, node: Node) -> bool:
        node = self._resolve(node)
        members = [self._resolve(one) for one in node.get("anyOf", (node,))]
        return any(("type" not in one and "enum" not in one) or one.get("type") == "null" for one in members)


def _tagged(value: Any, node: Node) -> bool:
    """Return whether a value may belong to a member of a union: by its type, and by its tag if both have one."""
    if not isinstance(value, dict) or node.get("type") != "object":
        return _CHECKS.get(node.get("type", ""), lambda _: True)(value)
    tags = {name: one["enum"] for name, one in node.get("properties", {}).items() if len(one.get("enum", ())) == 1}
    return all(name in value and value[name] in only for name, only in tags.items())


def _is_pairs(value: Any) -> bool:
    """Return whether a value is a map sent as a list of pairs; in a stream the last pair may be incomplete."""
    return isinstance(value, list) and all(
        isinstance(one, dict) and one.keys() <= {"key", "value"} and isinstance(one.get("key", ""), str)
        for one in value
    )


def _type_name(value: Any) -> str:
    return next((name for name, check in _CHECKS.items() if check(value)), type(value).__name__)


def join_path(path: str, token: Any) -> str:
    """Return the path of a property or an item."""
    token = str(token).replace("~", "~0").replace("/", "~1")
    return f"{path}/{token}" if path else token


def _check_given(schema: Node, value: Any) -> list[OutputProblem]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  only for a schema without a class, and heavy

    return [
        OutputProblem("/".join(map(str, one.absolute_path)), f"breaks the rule {one.validator!r}")
        for one in Draft202012Validator(schema).iter_errors(value)
    ]


def _describe(error: Exception) -> Iterator[OutputProblem]:
    """Yield the problems, one for each place."""
    from cattrs import transform_error  # noqa: PLC0415  loaded by then

    if callable(listed := getattr(error, "errors", None)):  # pydantic's
        yield from (OutputProblem("/".join(map(str, one["loc"])), one["msg"]) for one in listed())
        return
    for line in transform_error(error, "", _say):
        text, _, path = line.rpartition(" @ ")
        path = re.sub(r"\.([^.\[]+)|\['?([^\]']+)'?\]", r"/\1\2", path).lstrip("/")
        yield OutputProblem(path, text)


def _say(error: BaseException, _kind: Any = None) -> str:
    if callable(listed := getattr(error, "errors", None)):  # pydantic's
        return "; ".join(f"{'/'.join(map(str, one['loc']))}: {one['msg']}" for one in listed())
    return str(error) or type(error).__name__


@cache
def _converter() -> Any:
    from cattrs import Converter  # noqa: PLC0415  with the first answer that is read
    from cattrs.cols import namedtuple_dict_structure_factory  # noqa: PLC0415

    made = Converter(forbid_extra_keys=True, use_alias=True)

    def exact(kind: Any) -> Callable[[Any, Any], Any]:
        def read(value: Any, _: Any) -> Any:
            if not _CHECKS[_PLAIN[kind]](value):
                raise TypeError(f"has to be of type {_PLAIN[kind]}")
            return kind(value)

        return read

    for plain in (str, int, float, bool):
        made.register_structure_hook(plain, exact(plain))
    made.register_structure_hook(NoneType, lambda _value, _kind: None)
    for kind, (_, parse) in _TEXTS.items():
        made.register_structure_hook(kind, partial(_parse, parse))
    made.register_structure_hook_factory(_is_named_tuple, namedtuple_dict_structure_factory)
    made.register_structure_hook_func(lambda kind: bool(_library(kind)), _structure_by_library)
    made.register_structure_hook_func(_is_union, lambda value, kind: _structure_union(value, get_args(kind)))
    return made


def _parse(parse: Callable[[str], Any], value: Any, kind: Any) -> Any:
    try:
        return parse(value)
    except (ValueError, ArithmeticError):
        raise ValueError(f"has to be a {kind.__name__} as text") from None


def _structure_by_library(value: Any, kind: Any) -> Any:
    if _library(kind) == "pydantic":
        return kind.__pydantic_validator__.validate_json(dumps(value), strict=True)
    return sys.modules["msgspec"].json.decode(dumps(value), type=kind)


def _structure_union(value: Any, members: Sequence[Any]) -> Any:
    tag, named = _tag(members)
    if tag and isinstance(value, dict) and value.get(tag) in named:
        return _converter().structure({key: item for key, item in value.items() if key != tag}, named[value[tag]])
    for one in members:
        if not _shape(one).read_problems(value):
            return _converter().structure(value, one)
    raise TypeError("does not fit any of the allowed forms")


@cache
def _shape(kind: Any) -> OutputType:
    return OutputType(kind)


def project_schema(schema: Node, can: ModelCapabilities, *, tool: bool = False) -> tuple[Node, list[Loss]]:
    """Project a schema for a target, as a response schema or a tool's input, with a ledger row for each change."""
    projection = (_ToolProjection if tool else _Projection)(schema, can)
    made = projection.project({key: value for key, value in schema.items() if key != "$defs"}, "")
    if "$defs" in schema and not tool:
        made["$defs"] = {name: projection.project(one, name) for name, one in schema["$defs"].items()}
    return made, projection.losses


class _Projection:
    """Projects a schema into the form of the target's response schemas."""

    def __init__(self, schema: Node, can: ModelCapabilities) -> None:
        self.losses: list[Loss] = []
        self._defs = schema.get("$defs", {})
        self._all_required, self._open_maps = can.schema_all_required, can.schema_open_maps

    def project(self, node: Node, path: str) -> Node:
        made = dict(node)
        extra = made.get("additionalProperties")
        if "prefixItems" in made:
            members = [self.project(one, join_path(path, at)) for at, one in enumerate(made.pop("prefixItems"))]
            distinct = [one for at, one in enumerate(members) if one not in members[:at]]
            made["items"] = distinct[0] if len(distinct) == 1 else self.union({"anyOf": distinct}, path)
            made["description"] = f"exactly {len(members)} items; {made.get('description', '')}".rstrip("; ")
            self._lose(path, "the number and order of its items are said in words")
        elif "items" in made:
            made["items"] = self.project(made["items"], join_path(path, "*"))
        elif "anyOf" in made:
            return self.union({**made, "anyOf": [self.project(one, path) for one in made["anyOf"]]}, path)
        elif "properties" in made:
            made["properties"] = {
                name: self.project(one, join_path(path, name)) for name, one in made["properties"].items()
            }
            made |= self.require(node, made["properties"], path)
        elif isinstance(extra, dict) and self._open_maps:
            made["additionalProperties"] = self.project(extra, join_path(path, "*"))
        elif isinstance(extra, dict):
            self._lose(path, "objects are closed here: the map is a list of keys and values")
            pair = {"key": {"type": "string"}, "value": self.project(extra, join_path(path, "*"))}
            del made["additionalProperties"]
            made |= {"type": "array", "items": _object(pair, [*pair])}
        return made

    def union(self, node: Node, path: str) -> Node:
        return node

    def require(self, node: Node, properties: Node, path: str) -> Node:
        optional = [name for name in properties if name not in node.get("required", ())]
        if not (optional and self._all_required):
            return {}
        self._lose(path, f"all properties are required here: null means the default of {', '.join(optional)}")
        nullable = {name: _nullable(properties[name]) for name in optional}
        return {"properties": {**properties, **nullable}, "required": [*properties]}

    def _lose(self, path: str, reason: str) -> None:
        place = f"output.{path}" if path else "output"
        self.losses.append(Loss(path=place, block_type="option", verdict="rewritten", reason=reason))


class _ToolProjection(_Projection):
    """Projects a schema into the subset for tools (format.md, Tools)."""

    def __init__(self, schema: Node, can: ModelCapabilities) -> None:
        super().__init__(schema, can)
        self._all_required = self._open_maps = False
        self._within: list[str] = []

    def project(self, node: Node, path: str) -> Node:
        if "$ref" in node:
            name = node["$ref"].removeprefix("#/$defs/")
            if name in self._within:
                self._lose(path, "a tool's schema cannot refer to itself: the form is described in words")
                return {"type": "object", "description": f"{name}: the form of the object around it, to any depth"}
            self._within.append(name)
            made = self.project(self._defs[name], path)
            self._within.remove(name)
            return made
        made = super().project(node, path)
        if words := [f"{name}: {dumps(made.pop(name)).decode()}" for name in [*made] if name not in _SUBSET]:
            made["description"] = "; ".join(filter(None, [made.get("description"), *words]))
            self._lose(path, f"a tool's schema says in words: {', '.join(words)}")
        return made

    def union(self, node: Node, path: str) -> Node:
        described = {"description": node["description"]} if "description" in node else {}
        members = [one for one in node["anyOf"] if one != _NULL]
        if len(members) == 1:
            return {**members[0], **described}
        self._lose(path, "a tool's schema has no unions: the forms are said in words")
        words = f"{node.get('description', '')} One of: {dumps(members).decode()}".strip()
        if not all("properties" in one for one in members):
            return {"description": words}
        properties: Node = {}
        for one in members:
            for name, value in one["properties"].items():
                before = properties.get(name, value)
                if "enum" in value and "enum" in before:
                    properties[name] = {**value, "enum": [*dict.fromkeys([*before["enum"], *value["enum"]])]}
                else:
                    properties[name] = value if before == value else {}
        shared = [name for name in properties if all(name in one.get("required", ()) for one in members)]
        return {"type": "object", "properties": properties, "required": shared, "description": words}

    def require(self, node: Node, properties: Node, path: str) -> Node:
        return {"required": [name for name in node.get("required", ()) if not _has_null(node["properties"][name])]}


def _nullable(node: Node) -> Node:
    if _has_null(node):
        return node
    described = {"description": node["description"]} if "description" in node else {}
    rest = {key: value for key, value in node.items() if key != "description"}
    return {"anyOf": [*(rest["anyOf"] if rest.keys() == {"anyOf"} else [rest]), _NULL], **described}


def _has_null(node: Node) -> bool:
    return any(one.get("type") == "null" for one in node.get("anyOf", (node,)))
