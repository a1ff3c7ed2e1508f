"""Every verb accepts what keeps its statement and finds what breaks it, at the place where it is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import DecodeError
from interlingua.plugins import WireRequest
from interlingua_cli.lint import load_rules
from interlingua_cli.lint.checks import VERBS

OPEN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED = OPEN | {"additionalProperties": False}
CYCLE = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"items": {"$ref": "#/$defs/N"}}}}
TREE = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "string"}}}
NEXT = 'answered = {calls = "[role=assistant].calls[*]", results = "[role=tool].of", within = "[role=tool]"}'
MERGED = NEXT.replace("}", ", merges = true}")
ANYWHERE = 'answered = {calls = "[type=call].id", results = "[type=result].id"}'
U, S = {"role": "user"}, {"role": "system"}


def A(*calls: Any) -> dict[str, Any]:  # noqa: N802 - reads as the roles beside it
    return {"role": "assistant", "calls": list(calls)}


def T(of: str) -> dict[str, Any]:  # noqa: N802
    return {"role": "tool", "of": of}


# verb line(s), accepted bodies, refused bodies with the places that are named
CASES: list[tuple[str, list[Any], list[tuple[Any, list[str]]]]] = [
    (
        "requires = ['model', 'max']",
        [{"model": "m", "max": 0}],
        [({"model": "m"}, ["max"]), ({"model": None, "max": 1}, ["model"])],
    ),
    ("at = 'm[*]'\nforbids = 'cache'", [{"m": [{"cache": None}]}], [({"m": [{}, {"cache": 1}]}, ["m[1].cache"])]),
    ("allows = ['model']", [{"model": "m", "n": None}], [({"model": "m", "seed": 1}, ["seed"])]),
    (
        "at = 'f'\nexactly_one_of = ['a', 'b']",
        [{"f": {"a": 1}}, {}],
        [({"f": {}}, ["f"]), ({"f": {"a": 1, "b": 1}}, ["f"])],
    ),
    ("at_most_one_of = ['a', 'b']", [{}, {"a": 1}], [({"a": 1, "b": 2}, [""])]),
    ("at = 'n'\nis = ['integer', 'null']", [{"n": 3}, {"n": None}, {}], [({"n": True}, ["n"]), ({"n": 1.5}, ["n"])]),
    ("at = 'n'\nis = 'number'", [{"n": 3.5}, {"n": 3}], [({"n": "hot"}, ["n"]), ({"n": False}, ["n"])]),
    ("at = 'r[*]'\none_of = ['user', 'tool']", [{"r": ["user", None]}], [({"r": ["tool", "robot"]}, ["r[1]"])]),
    ("at = 't'\nbetween = [0, 1]", [{"t": 0}, {"t": 1.0}, {"t": "x"}], [({"t": -0.1}, ["t"]), ({"t": 1.1}, ["t"])]),
    ("at = 't'\nstrictly_between = [0, 1]", [{"t": 0.5}], [({"t": 0}, ["t"]), ({"t": 1}, ["t"])]),
    ("at = 'm'\nlength = [1, 2]", [{"m": [1]}, {"m": "ab"}, {"m": 7}], [({"m": []}, ["m"]), ({"m": "abc"}, ["m"])]),
    (
        "at = 'id'\nmatches = '[A-Za-z0-9]{9}'",
        [{"id": "gSIMJiOkT"}],
        [({"id": "call_1234"}, ["id"]), ({"id": "gSIMJiOkT1"}, ["id"])],
    ),
    ("at = 'u'\nlacks_match = '^data:audio/'", [{"u": "data:image/png"}], [({"u": "data:audio/wav"}, ["u"])]),
    (
        "at = 'choice'\namong = 'tools[*].name'",
        [{"choice": "b", "tools": [{"name": "b"}]}, {}],
        [({"choice": "c", "tools": [{"name": "b"}]}, ["choice"])],
    ),
    (
        "at = 'budget'\nless_than = 'max'",
        [{"budget": 1, "max": 2}, {"budget": 9}],
        [({"budget": 2, "max": 2}, ["budget"])],
    ),
    (
        "at = 'm[*].cache'\ncount = [0, 1]",
        [{"m": [{"cache": 1}, {"cache": None}]}],
        [({"m": [{"cache": 1}, {"cache": 2}]}, ["m[1].cache"])],
    ),
    ("at = 'm[role=user]'\ncount = [1, inf]", [{"m": [U]}], [({"m": [S]}, [""])]),
    (
        "at = 'm[*]'\nunique = 'c[*].id'",
        [{"m": [{"c": [{"id": 1}, {"id": 2}]}, {"c": [{"id": 1}]}]}],
        [({"m": [{"c": [{"id": 1}, {"id": 1}]}]}, ["m[0].c[1].id"])],
    ),
    ("body_bytes = [0, 12]", [{"a": 1}], [({"a": "0123456789"}, [""])]),
    ("at = 'm'\nfirst = '[role=user]'", [{"m": [U, S]}, {"m": []}], [({"m": [S, U]}, ["m[0]"])]),
    ("at = 'm'\nlast = '[role!=system]'", [{"m": [S, U]}], [({"m": [U, S]}, ["m[1]"])]),
    ("at = 'm'\nleading = '[role=system]'", [{"m": [S, S, U]}, {"m": [U]}], [({"m": [S, U, S]}, ["m[2]"])]),
    (
        "at = 'm'\nfollowed_by = {each = '[role=tool]', by = ['[role=tool]', '[role=assistant]']}",
        [{"m": [T("1"), T("2"), A()]}, {"m": [T("1")]}],
        [({"m": [T("1"), U]}, ["m[1]"])],
    ),
    (
        f"at = 'm'\n{NEXT}",
        [{"m": [U, A("1", "2"), T("2"), T("1"), U]}],
        [
            ({"m": [A("1"), U, T("1")]}, ["m[0].calls[0]", "m[2].of"]),
            ({"m": [A("1")]}, ["m[0].calls[0]"]),
            ({"m": [U, T("1")]}, ["m[1].of"]),
            ({"m": [A("1"), T("1"), T("1")]}, ["m[2].of"]),
            ({"m": [A("1"), A("2"), T("1"), T("2")]}, ["m[0].calls[0]", "m[2].of"]),
        ],
    ),
    (
        f"at = 'm'\n{MERGED}",
        [{"m": [A("1"), A("2"), T("1"), T("2")]}],
        [({"m": [A("1"), T("1"), A("2")]}, ["m[2].calls[0]"])],
    ),
    (
        f"at = 'm'\n{ANYWHERE}",
        [{"m": [{"type": "call", "id": 1}, U, {"type": "result", "id": 1}]}, {"m": [{"type": "call", "id": None}]}],
        [({"m": [{"type": "result", "id": 1}, {"type": "call", "id": 1}]}, ["m[0].id", "m[1].id"])],
    ),
    ("at = 's'\nschema = {root = 'object'}", [{"s": OPEN}], [({"s": {"anyOf": []}}, ["s.type"]), ({"s": True}, ["s"])]),
    (
        "at = 's'\nschema = {closed = true}",
        [{"s": CLOSED}],
        [({"s": CLOSED | {"items": OPEN}}, ["s.items.additionalProperties"])],
    ),
    (
        "at = 's'\nschema = {complete = true}",
        [{"s": OPEN}, {"s": {"type": "array", "items": {}}}],
        [
            ({"s": {"type": "object"}}, ["s.properties"]),
            ({"s": {"properties": {"a": {"type": ["array", "null"]}}}}, ["s.properties.a.items"]),
        ],
    ),
    ("at = 's'\nschema = {all_required = true}", [{"s": OPEN}], [({"s": OPEN | {"required": []}}, ["s.required"])]),
    (
        "at = 's'\nschema = {never = ['const']}",
        [{"s": {"properties": {"const": {}}}}],
        [({"s": {"properties": {"a": {"const": 1}}}}, ["s.properties.a.const"])],
    ),
    (
        "at = 's'\nschema = {keywords = ['type', 'anyOf']}",
        [{"s": {"anyOf": [{"type": "null"}]}}],
        [({"s": {"anyOf": [{"format": "x"}]}}, ["s.anyOf[0].format"])],
    ),
    (
        "at = 's'\nschema = {acyclic = true}",
        [{"s": TREE}],
        [({"s": CYCLE}, ["s"]), ({"s": {"items": {"$ref": "#"}}}, ["s"])],
    ),
    (
        "at = 's'\nschema = {formats = ['date']}",
        [{"s": {"format": "date"}}],
        [({"s": {"format": "phone"}}, ["s.format"])],
    ),
    (
        "at = 's'\nschema = {resolved = true}",
        [{"s": TREE}, {"s": {"items": {"$ref": "#"}}}],
        [({"s": {"$ref": "#/$defs/N"}}, ["s"]), ({"s": {"$ref": "https://example.com/x.json"}}, ["s"])],
    ),
    (
        "at = 's'\nschema = {booleans = false}",
        [{"s": CLOSED}],
        [({"s": {"properties": {"a": True}}}, ["s.properties.a"])],
    ),
]


def _places(verb: str, body: Any) -> list[str]:
    rules = load_rules(
        f"title = 'x'\nendpoint = 'x'\n[[rule]]\nid = 'a'\nsays = 'So.'\ncitation = 'x'\n{verb}\n",
    )
    request = WireRequest(path="/x", body=json.dumps(body).encode(), api="x")
    return [finding.path for finding in rules.lint(request)]


@pytest.mark.parametrize(("verb", "accepted", "refused"), CASES, ids=[case[0].split("\n")[-1] for case in CASES])
def test_a_verb_accepts_and_refuses(verb: str, accepted: list[Any], refused: list[tuple[Any, list[str]]]) -> None:
    assert [_places(verb, body) for body in accepted] == [[] for _ in accepted]
    assert [_places(verb, body) for body, _ in refused] == [places for _, places in refused]


def test_every_verb_has_a_case() -> None:
    shown = "\n".join(case[0] for case in CASES)

    assert [name for name in VERBS if f"{name} =" not in shown] == []


@pytest.mark.parametrize(
    "verb",
    [
        "requires = 1", "requires = []", "is = []", "one_of = 'user'", "between = [2, 1]", "between = ['a', 'b']",
        "strictly_between = 1", "length = [1]", "count = [true, false]", "matches = '('", "matches = 1", "among = 1",
        "less_than = '['", "unique = true", "first = 3", "leading = '[a'", "followed_by = {each = '[role=a]'}",
        "answered = {calls = 'a'}", "answered = {calls = 'a', results = 'b', other = 'c'}", "schema = {}",
        "schema = {shape = 1}", "schema = {never = 1}", "body_bytes = 5",
    ],
)  # fmt: skip
def test_a_parameter_that_a_verb_cannot_use_is_refused_by_its_name(verb: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _places(verb, {})

    assert caught.value.path == f"/rule/0/{verb.partition(' ')[0]}"
