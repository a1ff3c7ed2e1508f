"""`Output`: the type of a typed answer and how to ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

import attrs

from interlingua.output import OutputFormat
from interlingua.plugins import explain_arguments
from interlingua.types import ModelCapabilities, RequestOptions, ToolDefinition

if TYPE_CHECKING:
    from typing_extensions import TypeForm
    from typing_extensions import TypeVar as DefaultTypeVar

    from interlingua_output.plan import SchemaPlan

    _S = DefaultTypeVar("_S", default=Any)

_T = TypeVar("_T")
_Mode: TypeAlias = Literal["auto", "native", "tool", "prompt"]


def _places() -> dict[str, str]:
    return dict.fromkeys(("retries", "output_retries"), "pass it to the call: output_retries=…")


@attrs.frozen(init=False)
class Output(OutputFormat[_T]):
    """The type of an answer, and how the model is asked for it.

    Attributes:
        type: attrs class, dataclass, TypedDict, NamedTuple, msgspec Struct, pydantic model, enum, Literal, plain type,
            a collection or union of these, or a JSON Schema, whose answers are plain JSON.
        mode: `native` (the service enforces a schema), `tool` (the model calls a tool that takes the answer), `prompt`
            (instructions in the system prompt), or `auto`, the first of these that the model supports.
        name: name of the schema or tool; by default made from the type's name.
        description: describes the answer to the model.
    """

    type: TypeForm[_T]
    mode: _Mode
    name: str
    description: str

    @overload
    def __init__(
        self: Output[_S], type: TypeForm[_S], *, mode: _Mode = "auto", name: str = "", description: str = ""
    ) -> None: ...
    @overload
    def __init__(
        self: Output[Any], type: Any, *, mode: _Mode = "auto", name: str = "", description: str = ""
    ) -> None: ...
    @explain_arguments("pass it to the call, beside output=", _places)
    def __init__(
        self, type: Any, *, mode: _Mode = "auto", name: str = "", description: str = ""  # noqa: A002  the field's name
    ) -> None:  # fmt: skip
        self.__attrs_init__(type, mode, name, description)

    def plan(self, tools: Sequence[ToolDefinition], options: RequestOptions, can: ModelCapabilities) -> SchemaPlan[_T]:
        """Decide how one request asks for the answer."""
        from interlingua_output.plan import SchemaPlan  # noqa: PLC0415  not needed to import this package

        return SchemaPlan(self.type, tools, options, can, mode=self.mode, name=self.name, description=self.description)
