"""A validated class behaves as attrs made it: frozen, converted and evolved alike; its code can be read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from interlingua._values import CONVERT_ALWAYS, replace, validated
from interlingua.errors import CallerError
from interlingua.types import MessageMetadata, user


@attrs.frozen(kw_only=True)
class Slow:
    """As attrs makes it."""

    name: str
    parts: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    notes: dict[str, Any] = attrs.field(factory=dict, eq=False)
    seen: list[int] = attrs.field(init=False, factory=list, eq=False)
    mark: str | None = attrs.field(init=False, default=None, eq=False)


@validated
@attrs.frozen(kw_only=True)
class Fast:
    """The same, fast."""

    name: str
    parts: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    notes: dict[str, Any] = attrs.field(factory=dict, eq=False)
    seen: list[int] = attrs.field(init=False, factory=list, eq=False)
    mark: str | None = attrs.field(init=False, default=None, eq=False)


GIVEN = [{"name": "a"}, {"name": "a", "parts": ["x", "y"]}, {"name": "b", "parts": ("x",), "notes": {"k": 1}}]
CHANGES = [{}, {"name": "c"}, {"parts": ["z"], "notes": {}}]


def fields_of(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in attrs.fields(type(value))]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("changes", CHANGES)
def test_made_and_evolved_as_attrs_does(given: dict[str, Any], changes: dict[str, Any]) -> None:
    slow, fast = Slow(**given), Fast(**given)
    assert fields_of(fast) == fields_of(slow)
    made = replace(fast, **changes)
    assert fields_of(made) == fields_of(attrs.evolve(slow, **changes)) == fields_of(attrs.evolve(fast, **changes))
    assert type(made) is Fast
    assert hash(fast) == hash(Fast(**given))
    assert fields_of(eval(repr(fast).replace(", seen=[]", ""))) == fields_of(fast)  # noqa: S307


def test_a_copy_inherits_nothing_that_is_not_given() -> None:
    value = Fast(name="a")
    value.seen.append(1)
    changed = replace(value, name="b")

    assert (value.seen, changed.seen, changed.notes is value.notes) == ([1], [], True)


@pytest.mark.parametrize("value", [Fast(name="a"), replace(Fast(name="a"))])
def test_none_can_be_changed(value: Fast) -> None:
    assert value == Fast(name="a")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.name = "b"  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del value.name


def test_what_is_missing_or_unknown_is_refused() -> None:
    with pytest.raises(TypeError):
        Fast()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Fast(name="a", seen=[])  # type: ignore[call-arg]
    for name in ("seen", "nmae"):
        with pytest.raises(TypeError, match=f"Fast has no field '{name}'"):
            replace(Fast(name="a"), **{name: []})


def fresh() -> type[Any]:
    @validated
    @attrs.frozen(kw_only=True)
    class Fresh:
        name: str
        parts: tuple[str, ...] = attrs.field(default=(), converter=tuple)

    return Fresh


def blank(cls: type[Any]) -> Any:
    """Make a value as pickle does: its fields, without `__init__`."""
    value = cls.__new__(cls)
    value.__setstate__({"name": "a", "parts": ("x",)})
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda cls: cls(name="a", parts=["x"]),
        lambda cls: replace(blank(cls), parts=["x"]),
        lambda cls: type("Below", (cls,), {})(name="a", parts=["x"]),
    ],
    ids=["init", "evolve", "subclass"],
)
def test_every_way_to_make_a_value_gives_the_same(make: Callable[[type[Any]], Any]) -> None:
    cls = fresh()
    first, later = make(cls), make(cls)
    assert fields_of(first) == fields_of(later) == ["a", ("x",)]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        first.name = "b"


def test_a_class_keeps_its_signature() -> None:
    cls = fresh()
    assert [*inspect.signature(cls).parameters] == ["name", "parts"]
    cls(name="a")
    assert [*inspect.signature(cls).parameters] == ["name", "parts"]


def test_the_generated_code_can_be_read_and_is_quoted_in_tracebacks() -> None:
    source = inspect.getsource(Fast(name="a").__init__)  # type: ignore[misc]
    assert source.startswith("def __init__(self, *, name, parts=_default_parts, notes=_default_notes):\n")
    with pytest.raises(CallerError) as caught:
        Fast(name=1)  # type: ignore[arg-type]
    assert any("_store_name(self," in str(entry.statement) for entry in caught.traceback)


def test_a_repr_shows_what_differs_from_the_defaults() -> None:
    message = attrs.evolve(user("hi"), id="m1", created_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert repr(message) == "<Message user: 'hi'>"
    assert repr(message.content) == "(TextBlock(text='hi'),)"
    assert repr(MessageMetadata(provider_raw={"replay": {}}, user_id="u")) == "MessageMetadata(user_id='u')"


def test_a_converter_sees_what_is_not_of_the_type_or_every_value_where_the_field_says_so() -> None:
    seen: list[Any] = []

    def note(value: Any) -> Any:
        seen.append(value)
        return value

    @validated
    @attrs.frozen(kw_only=True)
    class Noted:
        usual: int = attrs.field(converter=note)
        always: int = attrs.field(converter=note, metadata=CONVERT_ALWAYS)

    made = replace(Noted(usual=1, always=2), usual=3, always=4)
    assert (made.usual, made.always, seen) == (3, 4, [2, 4])
    with pytest.raises(CallerError, match=r"Noted\.usual: expected int, got str"):
        replace(made, usual="5")
    assert seen == [2, 4, "5"]
