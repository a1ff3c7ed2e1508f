"""What an application names to have a typed answer, and what it gets."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

import attrs

from interlingua.output import OutputFormat
from interlingua.types import ModelCapabilities, RequestOptions, ToolDefinition

if TYPE_CHECKING:
    from interlingua_output.plan import SchemaPlan

_T = TypeVar("_T")
_Mode: TypeAlias = Literal["auto", "native", "tool", "prompt"]


@attrs.frozen(init=False)
class Output(OutputFormat[_T]):
    """The type of an answer, with more to say about it than the type says.

    Attributes:
        type: attrs class, dataclass, TypedDict, NamedTuple, msgspec Struct, pydantic model, enum, Literal, plain type,
            collection or union of such, or a JSON Schema, for plain JSON.
        mode: how to ask for it; "auto" takes the first that the model can: the service's own schema (`native`), a call
            of a tool that takes the answer (`tool`), words (`prompt`).
        name: name of the schema or tool; the type's own by default.
        description: what the answer is, for the model.
    """

    type: builtins.type[_T]
    mode: _Mode
    name: str
    description: str

    @overload
    def __init__(
        self, type: builtins.type[_T], *, mode: _Mode = "auto", name: str = "", description: str = ""
    ) -> None: ...
    @overload
    def __init__(
        self: Output[Any], type: Any, *, mode: _Mode = "auto", name: str = "", description: str = ""
    ) -> None: ...
    def __init__(
        self, type: Any, *, mode: _Mode = "auto", name: str = "", description: str = ""  # noqa: A002  the field's name
    ) -> None:  # fmt: skip
        self.__attrs_init__(type, mode, name, description)

    def plan(self, tools: Sequence[ToolDefinition], options: RequestOptions, can: ModelCapabilities) -> SchemaPlan[_T]:
        """Decide how one request asks for the answer."""
        from interlingua_output.plan import SchemaPlan  # noqa: PLC0415  it loads the converter

        return SchemaPlan(self, tools, options, can)
