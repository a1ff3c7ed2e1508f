"""Any value of a supported type survives schema, JSON and back, in every form a target wants; partials never raise."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua.types import ModelCapabilities, RequestOptions, TextDelta, check_schema
from interlingua_output.plan import SchemaPlan
from interlingua_output.schema import OutputType, project_schema

TEXT = st.text(max_size=8)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: float = 0.5


@dataclass
class Shipped:
    carrier: str


@dataclass
class Refused:
    reason: str
    kind: str = "none"


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


@attrs.frozen
class Everything:
    number: int | float
    text: str
    when: datetime
    day: date
    price: Decimal
    id: UUID
    colour: Colour
    point: Point
    tree: Tree
    outcome: Shipped | Refused
    many: list[Shipped | Refused]
    prices: dict[str, int]
    pair: tuple[int, str]
    tags: frozenset[str]
    note: str | None = None
    count: int = 3


UNIONS = st.builds(Shipped, TEXT) | st.builds(Refused, TEXT, TEXT)
TREES = st.recursive(
    st.builds(Tree, TEXT), lambda inner: st.builds(Tree, TEXT, st.lists(inner, max_size=2)), max_leaves=4
)
VALUES = st.builds(
    Everything,
    number=st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    text=TEXT,
    when=st.datetimes(timezones=st.just(UTC)),
    day=st.dates(),
    price=st.decimals(allow_nan=False, allow_infinity=False, places=2),
    id=st.uuids(),
    colour=st.sampled_from(Colour),
    point=st.builds(Point, st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    tree=TREES,
    outcome=UNIONS,
    many=st.lists(UNIONS, max_size=3),
    prices=st.dictionaries(TEXT, st.integers(), max_size=3),
    pair=st.tuples(st.integers(), TEXT),
    tags=st.frozensets(TEXT, max_size=3),
    note=st.none() | TEXT,
    count=st.integers(),
)
TYPE = OutputType(Everything)


def to_json(value: Any, *, pairs: bool = False, tagged: bool = False) -> Any:
    """Write a value by hand, the way a model would: maps as pairs where they are asked for so."""
    if isinstance(value, Point):
        return {"x": value.x, "y": value.y}
    if isinstance(value, Shipped | Refused):
        return {"kind_": type(value).__name__, **vars(value)}
    if isinstance(value, Tree):
        return {"name": value.name, "children": [to_json(one) for one in value.children]}
    if isinstance(value, Everything):
        return {one.name: to_json(getattr(value, one.name), pairs=pairs) for one in attrs.fields(Everything)}
    if isinstance(value, dict):
        return [{"key": key, "value": item} for key, item in value.items()] if pairs else value
    if isinstance(value, list | tuple | frozenset):
        return [to_json(one) for one in value]
    if isinstance(value, Enum):
        return value.value
    return value.isoformat() if isinstance(value, date) else str(value) if isinstance(value, Decimal | UUID) else value


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(VALUES)
def test_a_value_survives_in_every_form_of_its_schema(value: Everything) -> None:
    for can in (ModelCapabilities(schema_open_maps=True), ModelCapabilities(schema_all_required=True)):
        schema, _ = project_schema(TYPE.schema, can)
        data = json.loads(json.dumps(to_json(value, pairs=not can.schema_open_maps)))
        jsonschema.Draft202012Validator(schema).validate(data)
        assert TYPE.read(data) == (value, ())


def test_a_tools_form_is_inside_the_subset_of_tools() -> None:
    schema, losses = project_schema(TYPE.schema, ModelCapabilities(), tool=True)
    check_schema(schema)
    assert losses


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(VALUES, st.integers(1, 7), st.sampled_from(["", "```json\n", "Here: "]))
def test_partials_grow_at_every_cut_and_end_whole(value: Everything, size: int, before: str) -> None:
    can = ModelCapabilities(supports_structured_output=True, schema_recursive=True)
    reader = SchemaPlan(Everything, (), RequestOptions(model="m"), can).partials()
    data = to_json(value, pairs=True)
    text = before + json.dumps(data)
    parts = [reader.feed(TextDelta(index=0, text=text[at : at + size])) for at in range(0, len(text), size)]
    found = [part for part in parts if part is not None]
    assert found[-1].value == TYPE.restore(json.loads(json.dumps(data)))
    assert "" in found[-1].closed
    assert all(a.closed <= b.closed for a, b in pairwise(found)), "what is whole stays whole"


@given(st.text(alphabet='{}[]",:\\u1234ntrue e-.', max_size=60), st.integers(1, 5))
def test_partials_never_raise(text: str, size: int) -> None:
    can = ModelCapabilities(supports_structured_output=True, schema_recursive=True)
    reader = SchemaPlan(Everything, (), RequestOptions(model="m"), can).partials()
    for at in range(0, len(text), size):
        reader.feed(TextDelta(index=0, text=text[at : at + size]))
