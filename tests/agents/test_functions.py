"""Typed functions as tools, and the registry: what a model is told, how an input becomes arguments.

Expected schemas are written by hand from the JSON Schema specification and format.md, Tools.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
import functools
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import attrs
import pydantic
import pytest

import interlingua as il
from interlingua_agents.event_json import EventWriter
from interlingua_agents.outcomes import outcome_of_output
from interlingua_agents.tools import (
    Permission,
    Tool,
    Toolbox,
    ToolContext,
    ToolOutput,
    by_side_effects,
    tool,
    tool_of,
)


class Unit(enum.Enum):
    METRE = "m"
    FOOT = "ft"


@attrs.define
class Point:
    x: float
    y: float = 0.0


class Options(TypedDict):
    deep: bool


@tool(side_effects=il.SideEffects.READ, kind=il.types.ToolKind.SEARCH)
async def searchFiles(  # noqa: N802  a name to be made canonical
    pattern: str,
    where: Annotated[str, "folder to begin in"] = ".",
    *,
    limit: int = 10,
    mode: Literal["text", "name"] = "text",
    unit: Unit = Unit.METRE,
    near: Point | None = None,
    points: list[Point] = [],  # noqa: B006
    options: Options | None = None,
    context: ToolContext,
) -> list[str]:
    """Search files.

    Looks into every file.

    Args:
        pattern: a regular expression
            over two lines
        limit: how many
    """
    return [pattern, where, str(limit), mode, unit.name, repr(near), repr(points), repr(options), context.call.id]


def test_a_signature_becomes_a_definition() -> None:
    definition = searchFiles.definition
    schema = definition.input_schema

    assert definition.name == "search_files"
    assert definition.description == "Search files.\n\nLooks into every file."
    assert (definition.side_effects, definition.kind) == (il.SideEffects.READ, il.types.ToolKind.SEARCH)
    assert schema["required"] == ["pattern"]
    assert schema["additionalProperties"] is False
    assert "context" not in schema["properties"]
    assert schema["properties"]["pattern"] == {
        "type": "string",
        "description": "a regular expression over two lines",
    }
    assert schema["properties"]["where"] == {"type": "string", "description": 'folder to begin in (default: ".")'}
    assert schema["properties"]["limit"] == {"type": "integer", "description": "how many (default: 10)"}
    assert set(schema["properties"]["mode"]["enum"]) == {"text", "name"}
    assert set(schema["properties"]["unit"]["enum"]) == {"m", "ft"}
    assert schema["properties"]["near"]["properties"]["x"] == {"type": "number"}
    assert schema["properties"]["near"]["required"] == ["x"]
    assert schema["properties"]["points"]["items"]["required"] == ["x"]
    assert schema["properties"]["options"]["properties"] == {"deep": {"type": "boolean"}}


def test_an_input_becomes_arguments_of_the_declared_types() -> None:
    given = {"pattern": "a", "unit": "ft", "near": {"x": 1}, "points": [{"x": 2, "y": 3}], "options": {"deep": True}}
    read = searchFiles.read(given)

    assert read == {
        "pattern": "a", "unit": Unit.FOOT, "near": Point(1.0), "points": [Point(2.0, 3.0)], "options": {"deep": True},
    }  # fmt: skip
    assert "limit" not in read  # what the model leaves out stays the function's own default


def test_defaults_that_are_objects_are_not_shared_with_the_schema() -> None:
    assert "default" not in str(searchFiles.definition.input_schema["properties"]["points"].get("description", ""))
    assert searchFiles.read({"pattern": "a"}) == {"pattern": "a"}


class Pet(pydantic.BaseModel):
    name: str
    legs: int = pydantic.Field(default=4, ge=0)


class Person(pydantic.BaseModel):
    """Who is meant."""

    name: str = pydantic.Field(description="as in the passport")
    born: dt.date | None = None
    pets: list[Pet] = []


class Endless(pydantic.BaseModel):
    inner: list[Endless] = []


@attrs.define
class Visit:
    who: Person
    guests: Annotated[int, pydantic.Field(description="how many")] = 1


@tool(side_effects="none")
def greet(
    person: Person,
    others: list[Person],
    visit: Visit | None = None,
    style: Annotated[str, pydantic.Field(description="formal or not")] = "formal",
) -> list[Person]:
    """Greet people.

    Args:
        person: the first one
    """
    return [person, *others]


def test_pydantic_models_are_parameters_at_every_depth() -> None:
    properties = greet.definition.input_schema["properties"]
    person = {
        "type": "object",
        "description": "Who is meant.",
        "properties": {
            "name": {"type": "string", "description": "as in the passport"},
            "born": {"type": "string", "format": "date"},
            "pets": {
                "type": "array",
                "description": "default: []",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "legs": {"type": "integer", "description": "default: 4; minimum: 0"},
                    },
                    "required": ["name"],
                },
            },
        },
        "required": ["name"],
    }

    assert properties["person"] == {**person, "description": "the first one"}
    assert properties["others"]["items"] == person
    assert properties["visit"]["properties"]["who"] == person
    assert properties["style"]["description"].startswith("formal or not")

    ann = {"name": "Ann", "born": "1980-05-01", "pets": [{"name": "Rex"}]}
    read = greet.read({"person": ann, "others": [{"name": "Bo"}], "visit": {"who": ann}})
    who = Person(name="Ann", born=dt.date(1980, 5, 1), pets=[Pet(name="Rex")])
    assert read == {"person": who, "others": [Person(name="Bo")], "visit": Visit(who)}
    with pytest.raises(ValueError, match="legs"):
        greet.read({"person": {"name": "A", "pets": [{"name": "Rex", "legs": -1}]}, "others": []})


def test_a_pydantic_model_is_returned_as_its_fields() -> None:
    called = il.ToolUseBlock(id="tu_1", name="greet")
    person = Person(name="Ann", born=dt.date(1980, 5, 1))
    answer = outcome_of_output(called, [person], limit=1_000, at=dt.datetime.now(dt.UTC))

    text = answer.result.content[0]
    assert isinstance(text, il.TextBlock)
    assert text.text == '[{"name":"Ann","born":"1980-05-01","pets":[]}]'


def _untyped(value) -> str:  # type: ignore[no-untyped-def]
    return str(value)


def _many(*values: str) -> str:
    return "".join(values)


def _anything(value: object) -> str:
    return str(value)


class Opaque:
    pass


def _opaque(value: Opaque) -> str:
    return str(value)


def _either(value: int | str) -> str:
    return str(value)


def _model_or_number(value: Person | int) -> str:
    return str(value)


@pydantic.dataclasses.dataclass
class Checked:
    n: int = pydantic.Field(default=1, gt=0)


def _checked(value: Checked) -> str:
    return str(value)


def _endless(value: Endless) -> str:
    return str(value)


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        (_untyped, il.CallerError, "annotate its parameter 'value' with a type"),
        (_many, il.CallerError, r"a model cannot fill in \*values"),
        (
            _opaque,
            il.CallerError,
            "its parameter 'value': Opaque cannot be read from JSON; use plain types, .* pydantic models",
        ),
        (_model_or_number, il.CallerError, "its parameter 'value': .*other than `None`"),
        (_endless, il.errors.UnsupportedSchemaError, "its parameter 'value': .*(recursive|itself)"),
        (_checked, il.CallerError, "its parameter 'value': .*; use .*pydantic models"),
        (_either, il.errors.UnsupportedSchemaError, "anyOf|type"),
        (functools.partial(_opaque), il.CallerError, "pass a function or method"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_the_reason(
    function: Callable[..., Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        tool(side_effects="none", name="x")(function)


def test_a_bare_decorator_makes_a_tool_that_counts_as_the_most_careful_class() -> None:
    @tool
    def moons(planet: str) -> int:
        """Count moons."""
        return len(planet)

    assert (moons.name, moons.definition.side_effects) == ("moons", il.SideEffects.EXECUTE)
    assert moons.is_exclusive
    assert by_side_effects()(moons.definition) is Permission.ASK
    assert tool()(moons.function).definition == moons.definition
    with pytest.raises(il.CallerError, match=r"@tool\(side_effects='read'\)"):
        tool("read")  # type: ignore[call-overload]


@dataclasses.dataclass
class Place:
    """Where."""

    town: str
    floor: int = 0


class Seat(TypedDict):
    row: int


@attrs.frozen
class Guest:
    name: str


@pytest.mark.parametrize("asynchronous", [False, True])
def test_classes_of_every_kind_are_read_for_functions_of_both_kinds(asynchronous: bool) -> None:
    def book(place: Place, seat: Seat, guest: Guest, pet: Pet) -> str:
        """Book.

        Args:
            place: where it is.
            seat: which one.
            guest: who comes.
            pet: who comes along.
        """
        assert (type(place), type(seat), type(guest), type(pet)) == (Place, dict, Guest, Pet)
        return f"{place.town} {seat['row']} {guest.name}"

    async def book_later(place: Place, seat: Seat, guest: Guest, pet: Pet) -> str:
        return book(place, seat, guest, pet)

    book_later.__doc__ = book.__doc__
    made = tool(book_later if asynchronous else book)
    given = {"place": {"town": "Rome"}, "seat": {"row": 3}, "guest": {"name": "Ada"}, "pet": {"name": "Rex"}}
    assert made.definition.input_schema["properties"]["guest"]["description"] == "who comes."
    assert made.definition.input_schema["properties"]["place"]["properties"]["town"]["type"] == "string"
    assert made.is_async is asynchronous
    returned = made(**made.read(given))
    assert (asyncio.run(returned) if asynchronous else returned) == "Rome 3 Ada"


def test_side_effects_must_be_known() -> None:
    with pytest.raises(il.CallerError, match="must be one of none, read, write, execute, network; got 'harmless'"):
        tool(side_effects="harmless")


def test_a_tool_is_still_its_function() -> None:
    @tool(side_effects="none")
    def double(n: int) -> int:
        """Double."""
        return 2 * n

    assert double(21) == 42
    assert double.is_async is False
    assert searchFiles.is_async


def test_a_bound_method_is_a_tool_without_its_self() -> None:
    class Shelf:
        def take(self, book: str) -> str:
            """Take a book."""
            return f"{book} of {type(self).__name__}"

    made = tool(side_effects="write")(Shelf().take)

    assert made.name == "take"
    assert list(made.definition.input_schema["properties"]) == ["book"]
    assert made("a") == "a of Shelf"


def test_a_method_that_is_decorated_in_its_class_is_a_tool_of_each_object() -> None:
    class Shelf:
        def __init__(self, name: str) -> None:
            self.name = name

        @tool(side_effects="read")
        def take(self, book: str) -> str:
            """Take a book."""
            return f"{book} of {self.name}"

        @tool
        async def burn(self, book: str, context: ToolContext) -> str:
            """Burn a book."""
            return f"{book} of {self.name} in {context.workspace}"

    first, second = Shelf("one"), Shelf("two")

    assert list(first.take.definition.input_schema["properties"]) == ["book"]
    assert (first.take("a"), second.take("a")) == ("a of one", "a of two")
    assert (first.burn.is_async, first.burn.context, first.take.is_async) == (True, "context", False)
    assert [one.name for one in Toolbox([first.take, first.burn])] == ["take", "burn"]
    with pytest.raises(il.CallerError, match=r"take is a method.*pass the tool of an object"):
        Toolbox([Shelf.take])


def test_the_registry_keeps_order_and_names_once() -> None:
    definition = il.ToolDefinition(
        name="shell", description="", input_schema={"type": "object"}, side_effects=il.SideEffects.EXECUTE
    )

    def shell(command: str, context: ToolContext | None = None) -> str:
        return command

    box = Toolbox([searchFiles])
    added = box.register(definition, shell, timeout=3.0)

    assert [one.name for one in box.definitions] == ["search_files", "shell"]
    assert box.get("shell") is added
    assert (added.context, added.timeout, added.is_exclusive) == ("context", 3.0, True)
    assert "shell" in box
    assert box.get("bash") is None
    with pytest.raises(il.CallerError, match="two tools have the name"):
        box.register(definition, shell)
    with pytest.raises(il.CallerError, match="decorate it"):
        box.add(shell)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("side_effects", "asked", "alone"),
    [
        ("none", None, False),
        ("read", None, False),
        ("write", None, True),
        ("network", False, True),
        ("write", True, False),
    ],
)
def test_side_effects_say_what_runs_alone_unless_the_tool_does(
    side_effects: str, asked: bool | None, alone: bool
) -> None:
    definition = il.ToolDefinition(
        name="x", description="", input_schema={"type": "object"}, side_effects=il.SideEffects(side_effects)
    )

    assert tool_of(definition, lambda: "", side_by_side=asked).is_exclusive is alone


def test_an_object_with_an_async_call_runs_in_the_loop() -> None:
    class Remote:
        async def __call__(self, q: str) -> str:
            return q

    definition = il.ToolDefinition(
        name="x", description="", input_schema={"type": "object"}, side_effects=il.SideEffects.NONE
    )

    assert Tool(definition=definition, function=Remote()).is_async


@pytest.mark.parametrize("details", [[1, {"a": None}], "text", 3, {"n": 1}, None])
def test_details_of_an_output_are_any_json(details: Any) -> None:
    called = il.ToolUseBlock(id="tu_1", name="greet")
    answer = outcome_of_output(called, ToolOutput(content="x", details=details), limit=10, at=dt.datetime.now(dt.UTC))
    message = il.Message(role=il.Role.TOOL, content=(answer.result,))

    assert answer.result.details == details
    assert il.codec.loads_message(il.codec.dumps_message(message)).tool_results[0].details == details
    (written,) = EventWriter().to_wire_messages([message])
    assert written.get("details") == details
    json.dumps(written)
