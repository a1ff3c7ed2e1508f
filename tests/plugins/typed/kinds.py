"""Types of answers for tests: one of each form that a service may treat in its own way."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, NamedTuple, TypedDict

import attrs
import msgspec
import pydantic


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class City:
    """A city.

    Attributes:
        name: in English.
    """

    name: str
    people: int = 0


@dataclass
class Tree:
    """A tree of names."""

    name: str
    children: list[Tree] = field(default_factory=list)


@dataclass
class Shipped:
    carrier: str


@dataclass
class Refused:
    reason: str


class Row(TypedDict, total=False):
    day: date
    total: Decimal


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Model(pydantic.BaseModel):
    size: int = pydantic.Field(ge=1, le=9, description="from 1 to 9")
    label: Annotated[str, pydantic.Field(min_length=1, max_length=5)] = "none"


class Struct(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=0)]
    names: list[str] = []


@attrs.frozen
class Sheet:
    """Maps, tuples and null."""

    prices: dict[str, Decimal]
    pair: tuple[int, str]
    colour: Colour | None = None
    outcome: Shipped | Refused | None = None


@attrs.frozen
class Wide:
    """More optional fields than some services take."""

    a01: str = ""
    a02: str = ""
    a03: str = ""
    a04: str = ""
    a05: str = ""
    a06: str = ""
    a07: str = ""
    a08: str = ""
    a09: str = ""
    a10: str = ""
    a11: str = ""
    a12: str = ""
    a13: str = ""
    a14: str = ""
    a15: str = ""
    a16: str = ""
    a17: str = ""
    a18: str = ""
    a19: str = ""
    a20: str = ""
    a21: str = ""
    a22: str = ""
    a23: str = ""
    a24: str = ""
    a25: str = ""


KINDS = (City, Tree, Shipped | Refused, Row, Point, Model, Struct, Sheet, Wide, list[City], dict[str, int], Colour, str)
