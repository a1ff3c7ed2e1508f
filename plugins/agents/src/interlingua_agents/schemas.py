"""Convert tools written for other systems: schemas into the canonical subset, with a report, and names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count
from typing import Any, Literal

import attrs

from interlingua.errors import UnsupportedSchemaError
from interlingua.plugins import FrozenDict, freeze_object
from interlingua.types import (
    SCHEMA_MAX_DEPTH,
    TOOL_NAME_MAX_LENGTH,
    TOOL_NAME_PATTERN,
    check_keyword,
    check_schema,
    follow_pointer,
    json_pointer,
)

_DESCRIBED = frozenset({
    "default", "examples", "example", "deprecated",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType",
    "minItems", "maxItems", "uniqueItems",
    "minProperties", "maxProperties", "propertyNames", "dependentRequired",
})  # fmt: skip
"""Keywords outside the subset that are added to the description in words."""

_REFUSED = frozenset({
    "not", "if", "then", "else", "patternProperties", "dependentSchemas", "dependencies",
    "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "contentSchema",
    "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef",
})  # fmt: skip
"""Keywords that change which inputs are valid and cannot be expressed in the subset or in a few words."""

_NULL_KEYS = ({"type"}, {"enum"}, {"type", "enum"})
SchemaAction = Literal["inlined", "folded", "described", "dropped", "added"]
_COMPOSING = ("const", "$ref", "allOf", "anyOf", "oneOf")
_MAX_NODES = 10_000  # references that fan out grow exponentially; a real tool has tens of nodes


@attrs.frozen(kw_only=True)
class SchemaChange:
    """One change that `normalise_schema` made.

    Attributes:
        path: JSON pointer of the keyword, in the schema that came in.
        keyword: its name; "" when a whole schema was `true`.
        action: the kind of change; `described`: the description now contains the constraint in words.
        note: the change in words.
    """

    path: str
    keyword: str
    action: SchemaAction
    note: str


@attrs.frozen(kw_only=True)
class NormalisedSchema:
    """A schema inside the subset, and the changes that were necessary (in order, each once).

    Attributes:
        schema: the schema in the subset.
        changes: the changes, in order.
    """

    schema: FrozenDict = attrs.field(converter=freeze_object)
    changes: tuple[SchemaChange, ...] = ()


def normalise_schema(schema: Mapping[str, Any]) -> NormalisedSchema:
    """Convert a schema to the subset of format.md, Tools; a schema inside the subset is returned unchanged.

    `$ref` is inlined, and `allOf` if its parts agree; null is removed from a union; `const` becomes `enum`; limits,
    patterns, defaults and examples become words in the description; other annotations are dropped.

    Raises:
        UnsupportedSchemaError: recursive or outward references, real unions, `not`, conditions, or a malformed schema;
            `path` is the JSON pointer of the keyword in the schema that came in.
    """
    walk = _Walk(schema)
    result = walk.node(schema, "", 0)
    if "type" not in result:
        result = {"type": "object", **result}
        walk.report("", "type", "added", "a tool's input is an object")
    check_schema(result)
    return NormalisedSchema(schema=result, changes=tuple(walk.changes))


class _Walk:
    """The state of one conversion: the root that references point into, the references being expanded, the report."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.changes: dict[SchemaChange, None] = {}
        self._expanding: set[str] = set()
        self._nodes = 0

    def report(self, path: str, keyword: str, action: SchemaAction, note: str) -> None:
        """Record a change; a definition that is inlined twice is recorded once."""
        place = json_pointer(path, keyword) if keyword else path
        change = SchemaChange(path=place, keyword=keyword, action=action, note=note)
        self.changes[change] = None

    def node(self, node: Any, path: str, depth: int) -> dict[str, Any]:
        """Return the normalised copy of one schema."""
        self._nodes += 1
        if depth > SCHEMA_MAX_DEPTH or self._nodes > _MAX_NODES:
            raise UnsupportedSchemaError(
                "the schema is too deep or too large after its references were inlined", path=path
            )
        if node is True:
            self.report(path, "", "folded", "true is the schema {}")
            return {}
        if not isinstance(node, Mapping):
            raise UnsupportedSchemaError(f"a schema must be a JSON object, not {node!r}", path=path)
        own: dict[str, Any] = {}
        words: list[str] = []
        for keyword, value in node.items():
            self._keyword(own, words, keyword, value, path, depth)
        self._fold_type(own, path, nullable=node.get("nullable") is True)
        if text := _with_words(own.get("description", ""), words):
            own["description"] = text
        for keyword in _COMPOSING:
            if keyword in node:
                place = json_pointer(path, keyword)
                _merge(own, self._inlined(keyword, node[keyword], path, depth + 1), place, path)
        return own

    def _keyword(self, own: dict[str, Any], words: list[str], keyword: Any, value: Any, path: str, depth: int) -> None:
        place = json_pointer(path, keyword)
        if keyword in _COMPOSING or keyword == "nullable":
            return
        if keyword == "type":
            own["type"] = value
        elif keyword == "description" and value == "":
            self.report(path, keyword, "dropped", "an empty description has no content")
        elif keyword in {"enum", "required", "description", "format"}:
            check_keyword(keyword, value, path)
            own[keyword] = value
        elif keyword == "properties":
            check_keyword(keyword, value, path)
            own[keyword] = {name: self.node(sub, json_pointer(place, name), depth + 1) for name, sub in value.items()}
        elif keyword == "items":
            own[keyword] = self.node(value, place, depth + 1)
        elif keyword == "additionalProperties":
            own[keyword] = self._additional(words, value, path, depth)
        else:
            self._leave_out(words, keyword, value, path)

    def _leave_out(self, words: list[str], keyword: Any, value: Any, path: str) -> None:
        place = json_pointer(path, keyword)
        if keyword in _REFUSED or not isinstance(keyword, str):
            raise UnsupportedSchemaError(
                f"{keyword!r} is not supported in tool schemas: redesign the schema", path=place
            )
        if keyword in _DESCRIBED and not (keyword == "default" and value is None):
            words.append(_as_words(keyword, value, place))
            self.report(path, keyword, "described", words[-1])
        else:
            self.report(path, keyword, "dropped", "does not change which inputs are valid")

    def _additional(self, words: list[str], value: Any, path: str, depth: int) -> bool:
        if isinstance(value, bool):
            return value
        place = json_pointer(path, "additionalProperties")
        inner = self.node(value, place, depth + 1)
        if inner:
            words.append(_as_words("additionalProperties", inner, place))
        self.report(path, "additionalProperties", "described" if inner else "folded", "widened to true")
        return True

    def _fold_type(self, own: dict[str, Any], path: str, *, nullable: bool) -> None:
        folded = _without_null(own.get("type"))
        if nullable:
            self.report(path, "nullable", "folded", "null is no longer accepted")
        if isinstance(own.get("type"), list):
            self.report(path, "type", "folded", f"the only type is now {folded}")
        if folded is not None:
            check_keyword("type", folded, path)
            lost_null = nullable or folded != own["type"]
            own["type"] = folded
            if lost_null and folded != "null" and None in own.get("enum", ()):
                own["enum"] = [value for value in own["enum"] if value is not None]
                check_keyword("enum", own["enum"], path)

    def _inlined(self, keyword: str, value: Any, path: str, depth: int) -> dict[str, Any]:
        place = json_pointer(path, keyword)
        if keyword == "$ref":
            return self._inline(value, path, depth)
        if keyword == "const":
            self.report(path, keyword, "folded", _as_words("an enum of one value", value, place))
            return {"enum": [value]}
        if not isinstance(value, list) or not value:
            raise UnsupportedSchemaError(f"{keyword} must be a non-empty array of schemas", path=place)
        branches = [self.node(branch, json_pointer(place, index), depth) for index, branch in enumerate(value)]
        if keyword == "allOf":
            folded: dict[str, Any] | None = _conjunction(branches, place)
        else:
            branches = [branch for branch in branches if not _is_null(branch)] or branches[:1]
            folded = branches[0] if len(branches) == 1 else _joined_enum(branches)
        if folded is None:
            problem = f"the {len(branches)} branches of {keyword} cannot be merged: keep one branch, or split the tool"
            raise UnsupportedSchemaError(problem, path=place)
        action: SchemaAction = "folded" if len(value) > 1 else "inlined"
        self.report(path, keyword, action, f"{len(value)} branch(es) became one schema")
        return folded

    def _inline(self, ref: Any, path: str, depth: int) -> dict[str, Any]:
        place = json_pointer(path, "$ref")
        target = _target_pointer(ref, place)
        if target in self._expanding:
            raise UnsupportedSchemaError(f"$ref {ref!r} is recursive: tool schemas must be finite trees", path=place)
        found = follow_pointer(self.root, target)
        if found is None:
            raise UnsupportedSchemaError(f"$ref {ref!r} points to nothing in the schema", path=place)
        self._expanding.add(target)
        result = self.node(found, target, depth)
        self._expanding.discard(target)
        self.report(path, "$ref", "inlined", f"{ref} inlined")
        return result


def _as_words(keyword: str, value: Any, place: str) -> str:
    """Write a keyword as words for a description, for example `minimum: 1`.

    Raises:
        UnsupportedSchemaError: the value is not JSON.
    """
    try:
        return f"{keyword}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsupportedSchemaError(f"{keyword} is not a JSON value", path=place) from error


def _with_words(description: str, words: Sequence[str]) -> str:
    """Add keyword words to a description, in brackets."""
    text = "; ".join(words)
    if not words or not description:
        return description or text
    return f"{description} ({text})"


def _without_null(types: Any) -> Any:
    """Reduce a list of one type and null to that type; return any other value unchanged."""
    if not isinstance(types, list):
        return types
    rest = [name for name in types if name != "null"] or types
    return rest[0] if len(rest) == 1 else types


def _is_null(schema: Mapping[str, Any]) -> bool:
    """Tell whether a folded schema accepts null only."""
    only_null = (schema.get("type", "null"), schema.get("enum", [None])) == ("null", [None])
    return only_null and schema.keys() - {"description"} in _NULL_KEYS


def _joined_enum(branches: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Join alternatives that are all enumerations of one type into one enumeration; None if they are not.

    The descriptions of the alternatives become part of the common description.
    """
    types = {branch.get("type") for branch in branches}
    if len(types) != 1 or not all(
        "enum" in item and item.keys() <= {"type", "enum", "description"} for item in branches
    ):
        return None
    values = {json.dumps(value): value for branch in branches for value in branch["enum"]}  # 1 and true stay apart
    lines = [f"{json.dumps(item['enum'])[1:-1]}: {item['description']}" for item in branches if "description" in item]
    kind = types.pop()
    joined = {} if kind is None else {"type": kind}
    return joined | {"enum": list(values.values())} | ({"description": "\n".join(lines)} if lines else {})


def _conjunction(branches: Sequence[Mapping[str, Any]], place: str) -> dict[str, Any]:
    """Merge all branches of an `allOf`.

    Raises:
        UnsupportedSchemaError: two branches have different values of one keyword.
    """
    joined: dict[str, Any] = {}
    for branch in branches:
        _merge(joined, branch, place, place)
    return joined


def _merge(own: dict[str, Any], other: Mapping[str, Any], place: str, path: str) -> None:
    """Add an inlined schema to `own`; both descriptions are kept.

    Args:
        own: changed in place.
        other: the inlined schema.
        place: pointer of the keyword that was inlined.
        path: pointer of the node that holds the keyword.

    Raises:
        UnsupportedSchemaError: the schemas have different values of one keyword.
    """
    for keyword, value in other.items():
        if keyword not in own:
            own[keyword] = value
        elif json.dumps(own[keyword]) != json.dumps(value):  # in Python 1 == True, in JSON not
            if keyword != "description":
                also = json_pointer(path, keyword)
                raise UnsupportedSchemaError(f"the inlined schema has a different {keyword!r} than {also}", path=place)
            own[keyword] = f"{own[keyword]}\n{value}"


def _target_pointer(ref: Any, place: str) -> str:
    """Return the JSON pointer inside the document that a `$ref` names.

    Raises:
        UnsupportedSchemaError: the reference is not `#` or `#/…`; `place` is the pointer of the `$ref`.
    """
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        raise UnsupportedSchemaError(f"$ref {ref!r} points outside the schema: only '#/…' can be inlined", path=place)
    if "%" not in ref:
        return ref[1:]
    from urllib.parse import unquote  # noqa: PLC0415  escaped references are rare, the import is not free

    return unquote(ref[1:])


_canonical = re.compile(TOOL_NAME_PATTERN).fullmatch
_foreign = re.compile("[^a-z0-9_]")
_DIGEST_LENGTH = 8


def canonical_names(names: Iterable[str]) -> dict[str, str]:
    """Map each name to a different canonical name, and canonical names to themselves.

    Args:
        names: names in order of first appearance. If two would become equal, the first keeps the plain name, and a
            digest of the original name is appended to the others.

    Returns:
        Canonical names by name, in the order of the argument; a pure function of it.
    """
    wanted = list(dict.fromkeys(names))
    made = {name: name for name in wanted if _canonical(name) and len(name) <= TOOL_NAME_MAX_LENGTH}
    taken = set(made)
    for name in wanted:
        if name not in made:
            made[name] = next(form for form in _forms(name) if form not in taken)
            taken.add(made[name])
    return {name: made[name] for name in wanted}


def _forms(name: str) -> Iterator[str]:
    plain = _foreign.sub("_", name.lower())
    if not plain[:1].isalpha():
        plain = f"t{plain}"
    if len(plain) <= TOOL_NAME_MAX_LENGTH:
        yield plain
    for attempt in count():
        yield f"{plain[: TOOL_NAME_MAX_LENGTH - _DIGEST_LENGTH - 1]}_{_digest(f'{attempt}:{name}')}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
