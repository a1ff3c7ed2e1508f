"""The verb on tool and answer schemas: the subset of JSON Schema that a service takes.

Never validates a value against the schema; only looks at what the schema says.
The table of verbs comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from interlingua_cli.lint.paths import Hit, below
from interlingua_cli.lint.rule import Check, Fault, Seen
from interlingua_cli.lint.verbs.table import shown, texts, verb

_DEFINITIONS = ("$defs", "definitions")


_MAPS = ("properties", *_DEFINITIONS, "patternProperties", "dependentSchemas")


_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")


_ONES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


@attrs.frozen(kw_only=True)
class Subset:
    """What schemas must be like.

    Attributes:
        root: type that the root must have.
        keywords: the only ones allowed, where named.
        never: keywords that are refused.
        formats: the only values of `format` allowed, where named.
        closed: every object has `additionalProperties: false`.
        all_required: every property is in `required`.
        acyclic: no definition leads back to itself.
        resolved: every reference leads to a part of the schema itself.
        booleans: `true` and `false` may stand for a schema.
    """

    root: str | None = None
    keywords: frozenset[str] | None = attrs.field(default=None, converter=attrs.converters.optional(frozenset))
    never: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)
    formats: frozenset[str] | None = attrs.field(default=None, converter=attrs.converters.optional(frozenset))
    closed: bool = False
    all_required: bool = False
    acyclic: bool = False
    resolved: bool = False
    booleans: bool = True


@verb("schema")
def schema(given: Any) -> Check:
    """The schema keeps to this subset."""
    names = {field.name for field in attrs.fields(Subset)}
    if not isinstance(given, dict) or not given or given.keys() - names:
        raise ValueError(f"expected a table with some of {', '.join(sorted(names))}")
    for name in given.keys() & {"keywords", "never", "formats"}:
        texts(given[name])
    subset = Subset(**given)

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        for hit in hits:
            yield from _root(hit, subset)
            for place, node in _nodes(hit.path, hit.value):
                yield from _node(place, node, subset)

    return check


def _root(hit: Hit, subset: Subset) -> Iterator[Fault]:
    if not isinstance(hit.value, dict):
        if subset.root or not subset.booleans:
            yield Fault(hit.path, f"it is {shown(hit.value)}")
        return
    if subset.root and hit.value.get("type") != subset.root:
        yield Fault(below(hit.path, "type"), f"the root's type is {shown(hit.value.get('type'))}")
    if subset.acyclic and (cycle := _cycle(hit.value)):
        yield Fault(hit.path, f"{cycle} leads back to itself")
    if subset.resolved:
        for reference in sorted(_references(hit.value)):
            if not _leads_somewhere(reference, hit.value):
                yield Fault(hit.path, f"{reference} leads nowhere in it")


def _nodes(path: str, node: Any) -> Iterator[tuple[str, Any]]:
    yield path, node
    if not isinstance(node, dict):
        return
    for keyword in _MAPS:
        if isinstance(node.get(keyword), dict):
            for name, child in node[keyword].items():
                yield from _nodes(below(below(path, keyword), name), child)
    for keyword in _LISTS:
        if isinstance(node.get(keyword), list):
            for at, child in enumerate(node[keyword]):
                yield from _nodes(below(below(path, keyword), at), child)
    for keyword in _ONES:
        if isinstance(node.get(keyword), dict):
            yield from _nodes(below(path, keyword), node[keyword])


def _node(path: str, node: Any, subset: Subset) -> Iterator[Fault]:
    if not isinstance(node, dict):
        if not subset.booleans:
            yield Fault(path, f"it is {shown(node)}")
        return
    for keyword in node:
        if keyword in subset.never or (subset.keywords is not None and keyword not in subset.keywords):
            yield Fault(below(path, keyword), f"there is {keyword}")
    if subset.formats is not None and node.get("format") not in {None, *subset.formats}:
        yield Fault(below(path, "format"), f"it is {shown(node['format'])}")
    if not _is_object(node):
        return
    if subset.closed and node.get("additionalProperties") is not False:
        yield Fault(below(path, "additionalProperties"), f"it is {shown(node.get('additionalProperties'))}")
    if subset.all_required:
        for name in _missing(node):
            yield Fault(below(path, "required"), f"{name!r} is not in it")


def _is_object(node: Mapping[str, Any]) -> bool:
    kind = node.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in node


def _missing(node: Mapping[str, Any]) -> list[str]:
    required = node.get("required")
    named = required if isinstance(required, list) else ()
    properties = node.get("properties")
    return [name for name in properties if name not in named] if isinstance(properties, dict) else []


def _cycle(root: Mapping[str, Any]) -> str | None:
    """Return a reference that is reached again from what it names, if there is one."""
    leads = {"#": _references({name: child for name, child in root.items() if name not in _DEFINITIONS})}
    for keyword in _DEFINITIONS:
        if isinstance(root.get(keyword), dict):
            leads |= {f"#/{keyword}/{name}": _references(child) for name, child in root[keyword].items()}
    return next((name for name in leads if name in _reached(name, leads)), None)


def _references(node: Any) -> set[str]:
    return {
        child["$ref"] for _, child in _nodes("", node) if isinstance(child, dict) and isinstance(child.get("$ref"), str)
    }


def _reached(start: str, leads: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    todo = list(leads[start])
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo.extend(leads.get(name, ()))
    return reached


def _leads_somewhere(reference: str, root: Any) -> bool:
    """Follow a JSON pointer from the root; `#` is the root itself."""
    start, *names = reference.split("/")
    for name in names:
        root = root.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(root, dict) else None
    return start == "#" and root is not None
