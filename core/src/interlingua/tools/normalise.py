"""`normalise_schema`: a schema from outside brought into the tool-schema subset, every change reported.

Never mutates its input and never changes silently; what the subset cannot say is refused with its path.
Importers of foreign tools come in, through the room's front door (DESIGN 3; REGRESSIONS case 23).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from interlingua.errors import SchemaNotSupported
from interlingua.jsontext import FrozenDict, freeze
from interlingua.tools import folding, refs
from interlingua.tools.schema import MAX_DEPTH, check_keyword, check_schema, pointer

SchemaAction = Literal["inlined", "folded", "described", "dropped", "added"]
_COMPOSING = ("const", "$ref", "allOf", "anyOf", "oneOf")
_MAX_NODES = 10_000  # references that fan out grow exponentially; a real tool has tens of nodes


@attrs.frozen(kw_only=True)
class SchemaChange:
    """One change that `normalise_schema` made.

    Attributes:
        path: JSON pointer of the keyword, in the schema that came in.
        keyword: its name; "" when a whole schema was `true`.
        action: what became of it; `described` means its constraint is now words in the description.
        note: the change in words.
    """

    path: str
    keyword: str
    action: SchemaAction
    note: str


@attrs.frozen(kw_only=True)
class NormalisedSchema:
    """A schema inside the subset, and what was changed to get it there (in the order met, each once)."""

    schema: FrozenDict = attrs.field(converter=freeze)
    changes: tuple[SchemaChange, ...] = ()


def normalise_schema(schema: Mapping[str, Any]) -> NormalisedSchema:
    """Return the schema within the subset of seed 003 §5.4; one that is inside already comes back unchanged.

    `$ref` is inlined, and `allOf` where its parts agree; null leaves a union; `const` becomes `enum`; limits, patterns,
    defaults and examples become words in the description; other annotations are dropped.

    Raises:
        SchemaNotSupported: recursive or outward references, real unions, `not`, conditions, or a malformed schema;
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
    """One walk over one document: its root for references, the references being expanded, and the report."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.changes: dict[SchemaChange, None] = {}
        self._expanding: set[str] = set()
        self._nodes = 0

    def report(self, path: str, keyword: str, action: SchemaAction, note: str) -> None:
        """Note a change; a definition inlined twice reports once."""
        place = pointer(path, keyword) if keyword else path
        change = SchemaChange(path=place, keyword=keyword, action=action, note=note)
        self.changes[change] = None

    def node(self, node: Any, path: str, depth: int) -> dict[str, Any]:
        """Return the normalised copy of one schema."""
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > _MAX_NODES:
            raise SchemaNotSupported("the schema is too deep or too large once its references are inlined", path=path)
        if node is True:
            self.report(path, "", "folded", "true is the schema {}")
            return {}
        if not isinstance(node, Mapping):
            raise SchemaNotSupported(f"a schema must be a JSON object, not {node!r}", path=path)
        own: dict[str, Any] = {}
        words: list[str] = []
        for keyword, value in node.items():
            self._keyword(own, words, keyword, value, path, depth)
        self._fold_type(own, path, nullable=node.get("nullable") is True)
        if text := folding.with_words(own.get("description", ""), words):
            own["description"] = text
        for keyword in _COMPOSING:
            if keyword in node:
                place = pointer(path, keyword)
                folding.merge(own, self._brought_in(keyword, node[keyword], path, depth + 1), place, path)
        return own

    def _keyword(self, own: dict[str, Any], words: list[str], keyword: Any, value: Any, path: str, depth: int) -> None:
        place = pointer(path, keyword)
        if keyword in _COMPOSING or keyword == "nullable":
            return
        if keyword == "type":
            own["type"] = value
        elif keyword == "description" and value == "":
            self.report(path, keyword, "dropped", "an empty description says nothing")
        elif keyword in {"enum", "required", "description", "format"}:
            check_keyword(keyword, value, path)
            own[keyword] = value
        elif keyword == "properties":
            check_keyword(keyword, value, path)
            own[keyword] = {name: self.node(sub, pointer(place, name), depth + 1) for name, sub in value.items()}
        elif keyword == "items":
            own[keyword] = self.node(value, place, depth + 1)
        elif keyword == "additionalProperties":
            own[keyword] = self._additional(words, value, path, depth)
        else:
            self._leave_out(words, keyword, value, path)

    def _leave_out(self, words: list[str], keyword: Any, value: Any, path: str) -> None:
        place = pointer(path, keyword)
        if keyword in folding.REFUSED or not isinstance(keyword, str):
            raise SchemaNotSupported(f"{keyword!r} cannot be said in the tool-schema subset; redesign it", path=place)
        if keyword in folding.DESCRIBED and not (keyword == "default" and value is None):
            words.append(folding.as_words(keyword, value, place))
            self.report(path, keyword, "described", words[-1])
        else:
            self.report(path, keyword, "dropped", "does not change which inputs are valid")

    def _additional(self, words: list[str], value: Any, path: str, depth: int) -> bool:
        if isinstance(value, bool):
            return value
        place = pointer(path, "additionalProperties")
        inner = self.node(value, place, depth + 1)
        if inner:
            words.append(folding.as_words("additionalProperties", inner, place))
        self.report(path, "additionalProperties", "described" if inner else "folded", "widened to true")
        return True

    def _fold_type(self, own: dict[str, Any], path: str, *, nullable: bool) -> None:
        folded = folding.without_null(own.get("type"))
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

    def _brought_in(self, keyword: str, value: Any, path: str, depth: int) -> dict[str, Any]:
        place = pointer(path, keyword)
        if keyword == "$ref":
            return self._inline(value, path, depth)
        if keyword == "const":
            self.report(path, keyword, "folded", folding.as_words("an enum of one value", value, place))
            return {"enum": [value]}
        if not isinstance(value, list) or not value:
            raise SchemaNotSupported(f"{keyword} must be a non-empty array of schemas", path=place)
        branches = [self.node(branch, pointer(place, index), depth) for index, branch in enumerate(value)]
        if keyword == "allOf":
            folded: dict[str, Any] | None = folding.conjunction(branches, place)
        else:
            branches = [branch for branch in branches if not folding.is_null(branch)] or branches[:1]
            folded = branches[0] if len(branches) == 1 else folding.joined_enum(branches)
        if folded is None:
            said = f"the {len(branches)} branches of {keyword} do not fold into one schema; keep one, or split the tool"
            raise SchemaNotSupported(said, path=place)
        action: SchemaAction = "folded" if len(value) > 1 else "inlined"
        self.report(path, keyword, action, f"{len(value)} branch(es) became one schema")
        return folded

    def _inline(self, ref: Any, path: str, depth: int) -> dict[str, Any]:
        place = pointer(path, "$ref")
        target = refs.target_pointer(ref, place)
        if target in self._expanding:
            raise SchemaNotSupported(f"$ref {ref!r} is recursive; tool schemas are finite trees", path=place)
        self._expanding.add(target)
        result = self.node(refs.follow(self.root, target, place), target, depth)
        self._expanding.discard(target)
        self.report(path, "$ref", "inlined", f"{ref} inlined")
        return result
