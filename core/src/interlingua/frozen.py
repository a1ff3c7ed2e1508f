"""Fast construction of frozen attrs classes. Used by messages, blocks and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

import attrs

T = TypeVar("T")


READY: Final = "ready"


"""Key of a field's metadata: the type whose values its converter leaves as they are, and need not be asked about."""


_quick: dict[type, Callable[..., None]] = {}


"""Quick class -> the `__init__` that attrs gave it."""


_maker_of: dict[type, Callable[..., Any]] = {}


_copier_of: dict[type, tuple[Callable[[Any], Any], dict[str, Any]]] = {}


def maker(cls: type[T]) -> Callable[..., T]:
    """Return a function that makes a quick value of its initial fields, in order, all checked and converted.

    The last ones may be left out where they have defaults that are no factories.

    For readers that have done all that already: it costs half of `__init__`.

    Raises:
        KeyError: the class is not quick.
    """
    if cls not in _maker_of:
        _write(cls)
    return _maker_of[cls]


def replace(value: T, **changes: Any) -> T:
    """Do what `attrs.evolve` does, for a quick value, at a fifth of the cost.

    Raises:
        KeyError: the class is not quick, or has no such initial field.
    """
    cls = value.__class__
    try:
        copied, converters = _copier_of[cls]
    except KeyError:  # it came out of a pickle
        _write(cls)
        copied, converters = _copier_of[cls]
    made: T = copied(value)
    for name, new in changes.items():
        convert = converters[name]
        setattr(made, name, new if convert is None else convert(new))
    made.__class__ = cls
    return made


def fast_frozen(cls: type[T]) -> type[T]:
    """Let a frozen, keyword-only attrs class store its fields as a changeable one does, then be what it is.

    attrs stores each field of a frozen class by a call of `object.__setattr__`, which for wide values costs more than
    everything else about them. Here a new value is an instance of a changeable twin while its fields are stored;
    nobody can hold it then. A subclass keeps the `__init__` that attrs gave it.

    What is quick is written when the first value is made: most programs use few of the classes they load.
    """
    for field in attrs.fields(cls):  # type: ignore[arg-type]
        if field.validator is not None or not field.kw_only or (field.init and field.alias not in (field.name, None)):
            raise TypeError(f"{field.name}: quick values have no validators, positional fields or aliases")
    slow = _quick[cls] = cls.__init__

    @wraps(slow)
    def first(self: T, **given: Any) -> None:
        _write(cls)
        cls.__init__(self, **given)

    cls.__init__ = first  # type: ignore[method-assign, assignment]
    return cls


def _write(cls: type) -> None:
    """Write a quick class's `__init__`, maker and copier; again where two threads come at once, which does no harm."""
    plain = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}  # both, or Python calls neither fast
    slow = _quick[cls]
    names: dict[str, Any] = {
        "_cls": cls,
        "_twin": type(cls.__name__, (cls,), {"__slots__": (), **plain}),
        "_new": object.__new__,
        "_become": object.__dict__["__class__"].__set__,
        "_attrs_init": slow,
    }
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)
    written = [(field, *_stored(field, names)) for field in fields]
    taken = [parameter for field, parameter, _ in written if field.init]
    initial = tuple(field.name for field in fields if field.init)
    given = ", ".join(f"{name}={name}" for name in initial)
    source = "\n    ".join(
        (
            f"def __init__(self, *, {', '.join(taken)}):",
            f"if self.__class__ is not _cls: return _attrs_init(self, {given})",
            "_become(self, _twin)",
            *[statement for *_, statement in written],
            "self.__class__ = _cls",
        )
    )
    plainly = [f"self.{field.name} = {field.name}" if field.init else at for field, _, at in written]
    parameters = ", ".join(_maybe_given(fields))
    made_at_once = (f"def make({parameters}):", "self = _new(_twin)", *plainly, "self.__class__ = _cls")
    source += "\n" + "\n    ".join((*made_at_once, "return self"))
    kept = [f"self.{field.name} = old.{field.name}" if field.init else at for field, _, at in written]
    source += "\n" + "\n    ".join(("def copied(old):", "self = _new(_twin)", *kept, "return self"))
    made: dict[str, Any] = {}
    exec(compile(source, f"<quick {cls.__qualname__}>", "exec"), names, made)  # noqa: S102  as attrs does itself
    made["__init__"].__annotations__ = slow.__annotations__
    made["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    _copier_of[cls] = (made["copied"], {field.name: field.converter for field in fields if field.init})
    _maker_of[cls] = made["make"]
    cls.__init__ = made["__init__"]  # type: ignore[misc]


def _maybe_given(fields: Sequence[attrs.Attribute[Any]]) -> list[str]:
    """Write a maker's parameters: what stands behind the last field without a constant default has its default."""
    written: list[str] = []
    given = True
    for field in reversed([field for field in fields if field.init]):
        given = given and field.default is not attrs.NOTHING and not isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
        written.insert(0, f"{field.name}=_default_{field.name}" if given else field.name)
    return written


def _stored(field: attrs.Attribute[Any], names: dict[str, Any]) -> tuple[str, str]:
    """Write one field: its parameter, and the statement that stores it."""
    name, default = field.name, field.default
    value = name
    if field.converter is not None:
        names[f"_convert_{name}"] = field.converter
        value = f"_convert_{name}({name})"
        if READY in field.metadata:
            names[f"_ready_{name}"] = field.metadata[READY]
            value = f"({name} if type({name}) is _ready_{name} else {value})"
    if default is attrs.NOTHING:
        return name, f"self.{name} = {value}"
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        names[f"_make_{name}"] = default.factory  # type: ignore[union-attr]
        names["_NOTHING"] = attrs.NOTHING
        made = f"_convert_{name}(_make_{name}())" if field.converter is not None else f"_make_{name}()"
        if not field.init:
            return "", f"self.{name} = {made}"
        return f"{name}=_NOTHING", f"self.{name} = {made} if {name} is _NOTHING else {value}"
    names[f"_default_{name}"] = default
    if not field.init:
        return "", f"self.{name} = _default_{name}"
    if field.converter is not None:  # a default is what its converter leaves alone
        value = f"{name} if {name} is _default_{name} else {value}"
    return f"{name}=_default_{name}", f"self.{name} = {value}"
