"""Quick values are what attrs makes of the same class: frozen, converted, and evolved alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from interlingua.frozen import READY, fast_frozen, maker, replace


@attrs.frozen(kw_only=True)
class Slow:
    """As attrs makes it."""

    name: str
    parts: tuple[str, ...] = attrs.field(default=(), converter=tuple, metadata={READY: tuple})
    notes: dict[str, Any] = attrs.field(factory=dict, eq=False)
    seen: list[int] = attrs.field(init=False, factory=list, eq=False)
    mark: str | None = attrs.field(init=False, default=None, eq=False)


@fast_frozen
@attrs.frozen(kw_only=True)
class Quick:
    """The same, quick."""

    name: str
    parts: tuple[str, ...] = attrs.field(default=(), converter=tuple, metadata={READY: tuple})
    notes: dict[str, Any] = attrs.field(factory=dict, eq=False)
    seen: list[int] = attrs.field(init=False, factory=list, eq=False)
    mark: str | None = attrs.field(init=False, default=None, eq=False)


GIVEN = [{"name": "a"}, {"name": "a", "parts": ["x", "y"]}, {"name": "b", "parts": ("x",), "notes": {"k": 1}}]
CHANGES = [{}, {"name": "c"}, {"parts": ["z"], "notes": {}}]


def shown(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in attrs.fields(type(value))]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("changes", CHANGES)
def test_made_and_evolved_as_attrs_does(given: dict[str, Any], changes: dict[str, Any]) -> None:
    slow, fast = Slow(**given), Quick(**given)
    assert shown(fast) == shown(slow)
    made = replace(fast, **changes)
    assert shown(made) == shown(attrs.evolve(slow, **changes)) == shown(attrs.evolve(fast, **changes))
    assert type(made) is Quick
    assert hash(fast) == hash(Quick(**given))
    assert repr(fast) == repr(slow).replace("Slow", "Quick")


def test_a_copy_inherits_nothing_that_is_not_given() -> None:
    value = Quick(name="a")
    value.seen.append(1)
    changed = replace(value, name="b")

    assert (value.seen, changed.seen, changed.notes is value.notes) == ([1], [], True)


@pytest.mark.parametrize("value", [Quick(name="a"), replace(Quick(name="a")), maker(Quick)("a", (), {})])
def test_none_can_be_changed(value: Quick) -> None:
    assert value == Quick(name="a")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.name = "b"  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del value.name


def test_what_is_missing_or_unknown_is_refused() -> None:
    with pytest.raises(TypeError):
        Quick()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Quick(name="a", seen=[])  # type: ignore[call-arg]
    with pytest.raises(KeyError):
        replace(Quick(name="a"), seen=[])


def fresh() -> type[Any]:
    @fast_frozen
    @attrs.frozen(kw_only=True)
    class Fresh:
        name: str
        parts: tuple[str, ...] = attrs.field(default=(), converter=tuple, metadata={READY: tuple})

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
        lambda cls: maker(cls)("a", ("x",)),
        lambda cls: replace(blank(cls), parts=["x"]),
        lambda cls: type("Below", (cls,), {})(name="a", parts=["x"]),
    ],
    ids=["init", "maker", "evolve", "subclass"],
)
def test_the_first_value_of_a_class_is_as_any_other(make: Callable[[type[Any]], Any]) -> None:
    cls = fresh()
    first, later = make(cls), make(cls)
    assert shown(first) == shown(later) == ["a", ("x",)]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        first.name = "b"


def test_a_class_tells_its_signature_before_and_after_its_first_value() -> None:
    cls = fresh()
    before = inspect.signature(cls)
    cls(name="a")
    assert [*before.parameters] == [*inspect.signature(cls).parameters] == ["name", "parts"]
