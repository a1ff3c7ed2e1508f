"""Tools: a typed function with its definition, the toolbox that holds them, and the policy that permits them."""

from __future__ import annotations

import inspect
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, TypeAlias, get_args, get_type_hints, overload

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.types import SideEffects, ToolDefinition, ToolKind, ToolUseBlock
from interlingua_agents.inputs import InputViolation


class ToolContext:
    """What a tool gets in a parameter annotated with this class: the call, progress, cancellation. For any thread.

    Attributes:
        call: the call that is being answered.
        workspace: the folder the conversation works in; empty where it has none.
    """

    def __init__(self, call: ToolUseBlock, update: Callable[[Any], None], workspace: str = "") -> None:
        self.call = call
        self.workspace = workspace
        self._update = update
        self._stopped = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the result any more: return soon."""
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep in a blocking tool, but not past a cancellation; return True when cancelled."""
        return self._stopped.wait(seconds)

    def update(self, partial: Any) -> None:
        """Show listeners what there is so far; may be called from the tool's thread."""
        if not self.cancelled:
            self._update(partial)

    def stop(self) -> None:
        """Tell the tool that nobody waits."""
        self._stopped.set()


class Phase(StrEnum):
    """How far a call got; CANCELLED is one that was given up or not permitted."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ToolError(InterlinguaError):
    """Raised by a tool: the model reads its message. Of any other exception it reads the class and the message."""


@attrs.frozen(kw_only=True)
class ToolOutput:
    """What a tool returns when content alone does not say it all.

    Attributes:
        content: what the model reads: text, blocks, or anything that can be written as JSON.
        details: typed payload for the application; never sent to a model.
        metadata: internal tracking; never sent to a model.
        is_error: the tool failed, and the content says how.
        terminate: stop the loop after this result.
    """

    content: Any = ""
    details: Any = None
    metadata: Any = attrs.field(factory=dict)
    is_error: bool = False
    terminate: bool = False


class Permission(StrEnum):
    """What a policy decides about a tool."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@attrs.frozen(kw_only=True)
class Confirmation:
    """The question put to a person before a tool runs."""

    tool: ToolDefinition
    call: ToolUseBlock

    @property
    def text(self) -> str:
        """The question in one line."""
        return f"Run {self.tool.name} ({_DOES[self.tool.side_effects]}) with {self.call.input_json}?"


_DOES = {
    SideEffects.NONE: "changes nothing",
    SideEffects.READ: "reads files or the network",
    SideEffects.WRITE: "writes files",
    SideEffects.EXECUTE: "runs code",
    SideEffects.NETWORK: "changes something over the network",
}


@attrs.frozen(kw_only=True)
class Tool:
    """A tool and how to run it; calling it calls the function.

    One made of a method in its class becomes a tool where it is read from an object.

    Attributes:
        definition: what the model is offered, and its side effects.
        function: takes the input's properties as keyword arguments; may be `async`.
        read: turns a valid input into arguments.
        context: name of the parameter that takes a ToolContext, or None.
        timeout: seconds one call may take; None leaves it to the loop.
        side_by_side: whether it may run beside other calls of an answer; None: when it only reads.
        result_limit: characters of a result that the model is sent; None leaves it to the loop.
        is_method: whether the function is a method without its object.
    """

    definition: ToolDefinition
    function: Callable[..., Any]
    read: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    context: str | None = None
    timeout: float | None = None
    side_by_side: bool | None = None
    result_limit: int | None = None
    is_method: bool = False

    def __get__(self, owner: object, _kind: type | None = None) -> Tool:
        """Return the tool of this object's method."""
        if owner is None or not self.is_method:
            return self
        return attrs.evolve(self, function=self.function.__get__(owner), is_method=False)

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        """Call the function."""
        return self.function(*args, **arguments)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name

    @property
    def is_external(self) -> bool:
        """True when there is no function: its calls are the application's to answer."""
        return self.function is _external

    @property
    def is_async(self) -> bool:
        """True when the function is `async` and runs in an event loop, not in a thread."""
        call = getattr(self.function, "__call__", None)  # noqa: B004  an object with an async __call__ is one too
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    @property
    def is_exclusive(self) -> bool:
        """True when no other call of the same answer may run beside it."""
        looks = self.definition.side_effects in (SideEffects.NONE, SideEffects.READ)
        return not (looks if self.side_by_side is None else self.side_by_side)


def _external(**_arguments: Any) -> Any:
    raise CallerError("this tool has no function here: its calls are answered by the application")


def tool_of(
    definition: ToolDefinition,
    function: Callable[..., Any],
    *,
    timeout: float | None = None,
    side_by_side: bool | None = None,
    result_limit: int | None = None,
) -> Tool:
    """Make a tool of a definition and its callable, which takes the input's properties as keyword arguments."""
    return Tool(
        definition=definition,
        function=function,
        context=_context_parameter(function),
        timeout=timeout,
        side_by_side=side_by_side,
        result_limit=result_limit,
    )


def _context_parameter(function: Callable[..., Any]) -> str | None:
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):  # a callable that says nothing of its types takes no context
        return None
    return next((name for name, hint in hints.items() if hint is ToolContext or ToolContext in get_args(hint)), None)


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    side_effects: SideEffects | str = ...,
    name: str | None = ...,
    description: str | None = ...,
    kind: ToolKind | None = ...,
    requires_workspace: bool = ...,
    timeout: float | None = ...,
    side_by_side: bool | None = ...,
    result_limit: int | None = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    side_effects: SideEffects | str = SideEffects.EXECUTE,
    name: str | None = None,
    description: str | None = None,
    kind: ToolKind | None = None,
    requires_workspace: bool = False,
    timeout: float | None = None,
    side_by_side: bool | None = None,
    result_limit: int | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function: a decorator, `@tool` or `@tool(side_effects="read")`.

    The schema comes from the parameters' types (plain types, enums, literals, dataclasses, attrs classes, typed
    dictionaries, pydantic models, `Annotated` bounds), descriptions from the docstring's sections or from strings in
    `Annotated`. A parameter annotated `ToolContext` is filled in by the loop.

    Args:
        function: what is decorated, without arguments to the decorator.
        side_effects: what running it may change; a function that does not say counts as `execute`, which may change
            anything, so that it runs alone and with consent.
        name: instead of the function's name in snake_case.
        description: instead of the docstring's text.
        kind: hint for user interfaces.
        requires_workspace: True when it needs a workspace to run in: without one its calls are refused. A function says
            so itself, it runs in the application's own process; of a definition from elsewhere it is assumed.
        timeout: seconds one call may take; None leaves it to the loop.
        side_by_side: whether it may run beside other calls of an answer; None: when it only reads.
        result_limit: characters of a result that the model is sent; None leaves it to the loop.

    Raises:
        CallerError: the function cannot be a tool, or the name or side effects are not canonical.
        UnsupportedSchemaError: its types need more than a tool schema may say (format.md, Tools).
    """
    try:
        effects = SideEffects(side_effects)
    except ValueError as error:
        raise CallerError(f"side_effects {side_effects!r} is none of {', '.join(SideEffects)}") from error

    def make(function: Callable[..., Any]) -> Tool:
        from interlingua_agents.signature import read_signature  # noqa: PLC0415  it loads msgspec

        found = read_signature(function)
        definition = ToolDefinition(
            name=name or _HUMP.sub("_", function.__name__).strip("_").lower(),
            description=found.description if description is None else description,
            input_schema=found.schema,
            side_effects=effects,
            requires_workspace=requires_workspace,
            kind=kind,
        )
        return Tool(
            definition=definition,
            function=function,
            read=partial(_read_arguments, found.struct),
            context=found.context,
            timeout=timeout,
            side_by_side=side_by_side,
            result_limit=result_limit,
            is_method=found.is_method,
        )

    if function is None:
        return make
    if not callable(function):
        raise CallerError(f"@tool takes its settings by name: @tool(side_effects={function!r})")
    return make(function)


Policy: TypeAlias = Callable[[ToolDefinition], Permission]
"""Decides whether a tool may run, may not, or somebody is to be asked."""


def _read_arguments(struct: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read an input that fits the schema into arguments of the parameters' types.

    Raises:
        ValueError: a bound that the schema could only describe is broken; the message names the place.
    """
    import msgspec  # noqa: PLC0415  programs without tools do without it

    # what msgspec does not know is a pydantic model: `read_signature` refuses all else
    read = msgspec.convert(given, struct, dec_hook=lambda kind, value: kind.model_validate(value))
    return {name: getattr(read, name) for name in given}


_CONTAINERS: Mapping[str, type] = {"object": dict, "array": list}


def describe_violations(tool: Tool, call: ToolUseBlock, found: Iterable[InputViolation]) -> str:
    """Describe the violations of an input for the model, so that it can correct the call."""
    if call.parse_error is not None:
        return f"invalid input: {call.parse_error}"
    text = "invalid input: " + "; ".join(f"{one.path or '/'}: {one.message}" for one in found)
    if _decode(tool.definition.input_schema, call.input) != call.input:
        text += "; give objects and arrays as such, not as text that holds their JSON"
    return text


def decode_json_strings(tool: Tool, call: ToolUseBlock) -> ToolUseBlock:
    """Return the call with JSON text read wherever the schema wants an object or an array; itself where it fits."""
    if call.parse_error is not None:
        return call
    decoded = _decode(tool.definition.input_schema, call.input)
    return call if decoded == call.input else attrs.evolve(call, input=decoded, raw_input=None)


def _decode(schema: Any, value: Any) -> Any:
    """Follow the schema through the value; what it does not describe stays."""
    if not isinstance(schema, Mapping):
        return value
    wanted = _CONTAINERS.get(str(schema.get("type")))
    if wanted is not None and isinstance(value, str):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if not isinstance(found, wanted):
            return value
        value = found
    if isinstance(value, Mapping):
        fields = schema.get("properties", {})
        return {name: _decode(fields.get(name, schema.get("additionalProperties")), one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_decode(schema.get("items"), one) for one in value]
    return value


DEFAULT_PERMISSIONS: Mapping[SideEffects, Permission] = {
    SideEffects.NONE: Permission.ALLOW,
    SideEffects.READ: Permission.ALLOW,
    SideEffects.WRITE: Permission.ASK,
    SideEffects.EXECUTE: Permission.ASK,
    SideEffects.NETWORK: Permission.ASK,
}
"""Tools that only read may run; the others need consent, and do not run where nobody can give it."""


def by_side_effects(
    permissions: Mapping[SideEffects, Permission] | None = None, *, tools: Mapping[str, Permission] | None = None
) -> Policy:
    """Make a policy.

    Args:
        permissions: for some classes of side effects, instead of the default.
        tools: for single tools by name; these go first.
    """
    classes = {**DEFAULT_PERMISSIONS, **(permissions or {})}
    named = dict(tools or {})

    def decide(tool: ToolDefinition) -> Permission:
        return named.get(tool.name, classes[tool.side_effects])

    return decide


class Toolbox:
    """Tools by name, in the order they were added, which is the order a model is offered them in.

    Args:
        tools: to begin with. A `ToolDefinition` alone is offered, and its calls are left to the application.

    Raises:
        CallerError: two share a name, or something is no tool.
    """

    def __init__(self, tools: Iterable[Tool | ToolDefinition] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        if isinstance(tools, Tool | ToolDefinition):
            raise CallerError(f"tools is a list: [{tools.name}], not one tool")
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool | ToolDefinition) -> Tool:
        """Add a tool and return it.

        Raises:
            CallerError: its name is taken, or it is no tool.
        """
        if isinstance(tool, ToolDefinition):
            tool = Tool(definition=tool, function=_external)
        if not isinstance(tool, Tool):
            raise CallerError(
                f"{getattr(tool, '__name__', repr(tool))} is no tool: decorate it with @tool, or register() it"
            )
        if tool.is_method:
            where = tool.function.__qualname__.rpartition(".")[0]
            raise CallerError(f"{tool.name} is a method of {where}: give the tool of an object, {where}(…).{tool.name}")
        if tool.name in self._tools:
            raise CallerError(f"there is a tool {tool.name!r} already; names are unique")
        self._tools[tool.name] = tool
        return tool

    def register(self, definition: ToolDefinition, function: Callable[..., Any], **limits: Any) -> Tool:
        """Add a tool by its definition and callable; `limits` as for `tool_of`."""
        return self.add(tool_of(definition, function, **limits))

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is offered."""
        return tuple([tool.definition for tool in self._tools.values()])

    def get(self, name: str) -> Tool | None:
        """Return the tool of a name, or None."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
