"""The check on tool and answer schemas: the subset of JSON Schema that a service takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from interlingua_cli.lint.checks import hit_verb, read_texts, shorten
from interlingua_cli.lint.rules import Fault, Hit, join_path

_DEFINITIONS = ("$defs", "definitions")
_MAPS = ("properties", *_DEFINITIONS, "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_ONES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


@attrs.frozen(kw_only=True)
class Subset:
    """What schemas must be like."""

    root: str | None = None  # type that the root must have
    # the only ones allowed, where named
    keywords: frozenset[str] | None = attrs.field(default=None, converter=attrs.converters.optional(frozenset))
    never: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)  # keywords that are refused
    # the only values of `format` allowed, where named
    formats: frozenset[str] | None = attrs.field(default=None, converter=attrs.converters.optional(frozenset))
    closed: bool = False  # every object has `additionalProperties: false`
    all_required: bool = False  # every property is in `required`
    acyclic: bool = False  # no definition leads back to itself
    resolved: bool = False  # every reference leads to a part of the schema itself
    booleans: bool = True  # `true` and `false` may stand for a schema


def _read_subset(given: Any) -> Subset:
    names = {field.name for field in attrs.fields(Subset)}
    if not isinstance(given, dict) or not given or given.keys() - names:
        raise ValueError(f"expected a table with some of {', '.join(sorted(names))}")
    for name in given.keys() & {"keywords", "never", "formats"}:
        read_texts(given[name])
    return Subset(**given)


@hit_verb("schema", _read_subset)
def schema(subset: Subset, hit: Hit) -> Iterator[Fault]:
    """The schema keeps to this subset."""
    yield from _check_root(hit, subset)
    for place, node in _walk(hit.path, hit.value):
        yield from _check_node(place, node, subset)


def _check_root(hit: Hit, subset: Subset) -> Iterator[Fault]:
    if not isinstance(hit.value, dict):
        if subset.root or not subset.booleans:
            yield Fault(hit.path, f"it is {shorten(hit.value)}")
        return
    if subset.root and hit.value.get("type") != subset.root:
        yield Fault(join_path(hit.path, "type"), f"the root's type is {shorten(hit.value.get('type'))}")
    if subset.acyclic and (cycle := _find_cycle(hit.value)):
        yield Fault(hit.path, f"{cycle} leads back to itself")
    if subset.resolved:
        for reference in sorted(_find_references(hit.value)):
            if not _resolves(reference, hit.value):
                yield Fault(hit.path, f"{reference} leads nowhere in it")


def _walk(path: str, node: Any) -> Iterator[tuple[str, Any]]:
    yield path, node
    if not isinstance(node, dict):
        return
    for keyword in _MAPS:
        if isinstance(node.get(keyword), dict):
            for name, child in node[keyword].items():
                yield from _walk(join_path(join_path(path, keyword), name), child)
    for keyword in _LISTS:
        if isinstance(node.get(keyword), list):
            for at, child in enumerate(node[keyword]):
                yield from _walk(join_path(join_path(path, keyword), at), child)
    for keyword in _ONES:
        if isinstance(node.get(keyword), dict):
            yield from _walk(join_path(path, keyword), node[keyword])


def _check_node(path: str, node: Any, subset: Subset) -> Iterator[Fault]:
    if not isinstance(node, dict):
        if not subset.booleans:
            yield Fault(path, f"it is {shorten(node)}")
        return
    for keyword in node:
        if keyword in subset.never or (subset.keywords is not None and keyword not in subset.keywords):
            yield Fault(join_path(path, keyword), f"there is {keyword}")
    if subset.formats is not None and node.get("format") not in {None, *subset.formats}:
        yield Fault(join_path(path, "format"), f"it is {shorten(node['format'])}")
    if not _is_object(node):
        return
    if subset.closed and node.get("additionalProperties") is not False:
        yield Fault(join_path(path, "additionalProperties"), f"it is {shorten(node.get('additionalProperties'))}")
    if subset.all_required:
        required, properties = node.get("required"), node.get("properties")
        named = required if isinstance(required, list) else ()
        for name in properties if isinstance(properties, dict) else ():
            if name not in named:
                yield Fault(join_path(path, "required"), f"{name!r} is not in it")


def _is_object(node: Mapping[str, Any]) -> bool:
    kind = node.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in node


def _find_cycle(root: Mapping[str, Any]) -> str | None:
    """Return a reference that is reached again from what it names, if there is one."""
    leads = {"#": _find_references({name: child for name, child in root.items() if name not in _DEFINITIONS})}
    for keyword in _DEFINITIONS:
        if isinstance(root.get(keyword), dict):
            leads |= {f"#/{keyword}/{name}": _find_references(child) for name, child in root[keyword].items()}
    return next((name for name in leads if name in _reachable(name, leads)), None)


def _find_references(node: Any) -> set[str]:
    return {
        child["$ref"] for _, child in _walk("", node) if isinstance(child, dict) and isinstance(child.get("$ref"), str)
    }


def _reachable(start: str, leads: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    todo = list(leads[start])
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo.extend(leads.get(name, ()))
    return reached


def _resolves(reference: str, root: Any) -> bool:
    """Follow a JSON pointer from the root; `#` is the root itself."""
    start, *names = reference.split("/")
    for name in names:
        root = root.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(root, dict) else None
    return start == "#" and root is not None
