"""Pydantic models whose schemas have what services refuse: bounds, patterns, references, unions, tuples, maps."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Union

from pydantic import AnyUrl, BaseModel, Field, RootModel, create_model


class Bounds(BaseModel):
    """Bounds of all kinds, with defaults."""

    name: str = Field(min_length=1, max_length=20, pattern=r"^[A-Z]\w*$")
    size: int = Field(default=3, ge=1, le=9)
    share: float = Field(gt=0, lt=1)
    tags: set[str] = Field(default_factory=set, max_length=3)
    few: list[int] = Field(min_length=2, max_length=4)


class Formats(BaseModel):
    """Texts in formats that few services know."""

    site: AnyUrl
    price: Decimal
    data: bytes
    took: timedelta
    mail: Annotated[str, Field(json_schema_extra={"format": "idn-email"})]


class Inner(BaseModel):
    """A part."""

    value: int = 0


class Described(BaseModel):
    """References with words beside them."""

    first: Inner = Field(description="the first part")
    second: Inner = Field(default=Inner(), description="the second part")
    third: Inner | None = Field(default=None, description="perhaps a third")


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(BaseModel):
    """A union told apart by a property."""

    pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]  # noqa: UP007  pydantic reads both


class Pair(BaseModel):
    """A tuple, and a list of them."""

    at: tuple[int, str]
    all: list[tuple[float, float]]


class Open(BaseModel):
    """Objects of any names."""

    prices: dict[str, float]
    coded: dict[Annotated[str, Field(pattern="^[a-z]{2}$")], int]


class Loose(BaseModel):
    """Values of any kind."""

    extra: dict[str, Any]
    what: Any = None


class Leaf(BaseModel):
    """A tree, with words beside the reference into itself."""

    label: str
    children: list[Leaf] = Field(default_factory=list, description="smaller ones")
    parent: Leaf | None = Field(default=None, description="the larger one")


class Numbers(RootModel[list[int]]):
    """A root that is no object."""


def _deep(levels: int) -> type[BaseModel]:
    made: Any = Inner
    for level in range(levels):
        made = create_model(f"Level{level}", inner=(made, ...))
    return made  # type: ignore[no-any-return]


Deep = _deep(12)
Broad = create_model("Broad", **{f"field_{at}": (str, "") for at in range(120)})  # type: ignore[call-overload]

CHECKED: dict[Any, Any] = {  # type -> JSON of a value as pydantic writes it
    Bounds: {"name": "Ann", "size": 4, "share": 0.5, "tags": ["a"], "few": [1, 2]},
    Formats: {"site": "https://example.org/", "price": "1.50", "data": "abc", "took": "PT1S", "mail": "a@example.org"},
    Described: {"first": {"value": 1}, "second": {"value": 2}, "third": None},
    Owner: {"pet": {"kind": "dog", "name": "Rex"}},
    Pair: {"at": [1, "a"], "all": [[0.5, 1.5]]},
    Open: {"prices": {"a": 1.5}, "coded": {"de": 1}},
    Loose: {"extra": {"a": [1, None]}, "what": {"b": True}},
    Leaf: {"label": "a", "children": [{"label": "b", "children": [], "parent": None}], "parent": None},
    Cat | Dog: {"kind": "cat", "lives": 7},
    Numbers: [1, 2],
    Deep: None,
    Broad: {f"field_{at}": str(at) for at in range(120)},
}
