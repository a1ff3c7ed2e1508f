"""Tools: made of functions and definitions, held by a toolbox, permitted by a policy."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, get_args, get_type_hints, overload

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.plugins import explain_arguments
from interlingua.types import SideEffects, ToolDefinition, ToolKind, ToolUseBlock
from interlingua_agents.inputs import read_arguments

P = ParamSpec("P")
ResultT = TypeVar("ResultT", covariant=True)  # noqa: PLC0105  readers expect this name
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class ToolContext:
    """The call, progress and cancellation, passed to a parameter annotated with this class. Safe in any thread.

    Attributes:
        call: the call that the tool answers.
        workspace: the folder of the conversation; empty if it has none.
    """

    def __init__(self, call: ToolUseBlock, update: Callable[[Any], None], workspace: str = "") -> None:
        self.call = call
        self.workspace = workspace
        self._update = update
        self._stopped = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True once the result is no longer needed: return soon."""
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep in a blocking tool until the time is over or the call is cancelled; return True if cancelled."""
        return self._stopped.wait(seconds)

    def update(self, partial: Any) -> None:
        """Report a partial result to listeners. Any thread may call it."""
        if not self.cancelled:
            self._update(partial)

    def stop(self) -> None:
        """Mark the call as cancelled."""
        self._stopped.set()


class CallPhase(StrEnum):
    """The state of a call; CANCELLED includes calls that were not permitted."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ToolError(InterlinguaError):
    """An error raised by a tool. The model reads its message; of other exceptions it reads class and message."""


@attrs.frozen(kw_only=True)
class ToolOutput:
    """A tool's return value with more than content.

    Attributes:
        content: the result for the model: a string, blocks, or a value that can be written as JSON.
        details: typed payload for the application; never sent to a model.
        metadata: internal tracking; never sent to a model.
        is_error: True if the tool failed; the content explains how.
        terminate: True to stop the run after this result.
    """

    content: Any = ""
    details: Any = None
    metadata: Any = attrs.field(factory=dict)
    is_error: bool = False
    terminate: bool = False


class Permission(StrEnum):
    """A policy's decision about a tool."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@attrs.frozen(kw_only=True)
class Confirmation:
    """The question that a person is asked before a tool runs."""

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
    """A tool definition with its function; calling the tool calls the function.

    A tool made of a method is bound when it is read from an object.

    Attributes:
        definition: name, description, schema and side effects.
        function: called with the input's properties as keyword arguments; may be `async`.
        read: converts a valid input into arguments.
        context: name of the parameter that takes a ToolContext, or None.
        timeout: seconds that one call may take; None: the loop's limit.
        side_by_side: whether the tool may run beside other calls of an answer; None: only if it only reads.
        result_limit: characters of a result that the model is sent; None: the loop's limit.
        is_method: True if the function is a method without its object.
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
        """Bind a method's tool to its object."""
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
        """True if the tool has no function: the application answers its calls."""
        return self.function is external_function

    @property
    def is_async(self) -> bool:
        """True if the function is `async` and so runs in an event loop, not in a thread."""
        call = getattr(self.function, "__call__", None)  # noqa: B004  an object with an async __call__ is one too
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    @property
    def may_change(self) -> bool:
        """True if a call may change something: it is then not repeated unasked."""
        return self.definition.side_effects not in (SideEffects.NONE, SideEffects.READ)

    @property
    def is_exclusive(self) -> bool:
        """True if no other call of the same answer may run beside this tool."""
        return self.may_change if self.side_by_side is None else not self.side_by_side


@attrs.frozen(kw_only=True)
class FunctionTool(Tool, Generic[P, ResultT]):
    """A tool made by `@tool`. Type checkers know the parameters and the result of its function."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **arguments: P.kwargs) -> ResultT:
            """Call the function."""


def external_function(**_arguments: Any) -> Any:
    """Raise: this is the function of tools whose calls the application answers."""
    raise CallerError("this tool has no function: the application must answer its calls")


def _places() -> dict[str, str]:
    schemas = dict.fromkeys(
        ("input_schema", "parameters"), "annotate the parameters, or use tool_of(definition, function)"
    )
    return schemas | {"confirm": "pass it to the agent: Agent(…, confirm=…)"}


@overload
def tool(function: Callable[P, ResultT], /) -> FunctionTool[P, ResultT]: ...


@overload
def tool(
    *,
    side_effects: SideEffects | str = ...,
    name: str | None = ...,
    description: str | None = ...,
    kind: ToolKind | None = ...,
    requires_workspace: bool = ...,
    deferred: bool = ...,
    timeout: float | None = ...,
    side_by_side: bool | None = ...,
    result_limit: int | None = ...,
) -> Callable[[Callable[P, ResultT]], FunctionTool[P, ResultT]]: ...


@explain_arguments(places=_places)
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    side_effects: SideEffects | str = SideEffects.EXECUTE,
    name: str | None = None,
    description: str | None = None,
    kind: ToolKind | None = None,
    requires_workspace: bool = False,
    deferred: bool = False,
    timeout: float | None = None,
    side_by_side: bool | None = None,
    result_limit: int | None = None,
) -> Any:
    """Make a tool of a typed function: a decorator, `@tool` or `@tool(side_effects="read")`.

    The schema is derived from the parameters' types (plain types, enums, literals, dataclasses, attrs classes, typed
    dictionaries, pydantic models, `Annotated` bounds), descriptions from the docstring's sections or from strings in
    `Annotated`. The agent loop fills in a parameter annotated `ToolContext`.

    Args:
        function: the decorated function, when the decorator is used without arguments.
        side_effects: what a call may change. The default, `execute`, may change anything, so the tool runs alone, with
            consent.
        name: the tool's name; default: the function's name in snake_case.
        description: default: the docstring without its sections.
        kind: hint for user interfaces.
        requires_workspace: True to reject calls in conversations without a workspace.
        deferred: True if the model gets the tool only when the search of the service has found it.
        timeout: seconds that one call may take; None: the loop's limit.
        side_by_side: whether the tool may run beside other calls of an answer; None: only if it only reads.
        result_limit: characters of a result that the model is sent; None: the loop's limit.

    Raises:
        CallerError: the function cannot be a tool, or the name or side effects are not canonical.
        UnsupportedSchemaError: the types need more than a tool schema may express (format.md, Tools).
    """
    try:
        effects = SideEffects(side_effects)
    except ValueError as error:
        raise CallerError(f"side_effects must be one of {', '.join(SideEffects)}; got {side_effects!r}") from error

    def make(function: Callable[..., Any]) -> Tool:
        from interlingua_agents.signature import read_signature  # noqa: PLC0415  it loads msgspec

        found = read_signature(function, context=ToolContext)
        definition = ToolDefinition(
            name=name or _HUMP.sub("_", function.__name__).strip("_").lower(),
            description=found.description if description is None else description,
            input_schema=found.schema,
            side_effects=effects,
            requires_workspace=requires_workspace,
            kind=kind,
            deferred=deferred,
        )
        return FunctionTool(
            definition=definition,
            function=function,
            read=partial(read_arguments, found.struct),
            context=found.context,
            timeout=timeout,
            side_by_side=side_by_side,
            result_limit=result_limit,
            is_method=found.is_method,
        )

    if function is None:
        return make
    if not callable(function):
        raise CallerError(f"pass settings of @tool by name, as in @tool(side_effects={function!r})")
    return make(function)


@explain_arguments()
def tool_of(
    definition: ToolDefinition,
    function: Callable[..., Any],
    *,
    timeout: float | None = None,
    side_by_side: bool | None = None,
    result_limit: int | None = None,
) -> Tool:
    """Make a tool of a definition and a callable, which takes the input's properties as keyword arguments."""
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
    except (NameError, TypeError):  # a callable without readable types takes no context
        return None
    return next((name for name, hint in hints.items() if hint is ToolContext or ToolContext in get_args(hint)), None)


class Toolbox:
    """Tools by name, offered to the model in the order in which they were added.

    Args:
        tools: the first tools. A `ToolDefinition` is offered without a function: the application answers its calls.

    Raises:
        CallerError: two tools share a name, or an item is not a tool.
    """

    def __init__(self, tools: Iterable[Tool | ToolDefinition] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        if isinstance(tools, Tool | ToolDefinition):
            raise CallerError(f"tools must be a list: pass [{tools.name}]")
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool | ToolDefinition) -> Tool:
        """Add a tool and return it.

        Raises:
            CallerError: the name is taken, or the argument is not a tool.
        """
        if isinstance(tool, ToolDefinition):
            tool = Tool(definition=tool, function=external_function)
        if not isinstance(tool, Tool):
            raise CallerError(
                f"{getattr(tool, '__name__', repr(tool))} is not a tool: decorate it with @tool, or register() it"
            )
        if tool.is_method:
            where = tool.function.__qualname__.rpartition(".")[0]
            raise CallerError(f"{tool.name} is a method of {where}: pass the tool of an object, {where}(…).{tool.name}")
        if tool.name in self._tools:
            raise CallerError(f"two tools have the name {tool.name!r}: rename one of them")
        self._tools[tool.name] = tool
        return tool

    def register(self, definition: ToolDefinition, function: Callable[..., Any], **limits: Any) -> Tool:
        """Add a tool made of a definition and a callable; `limits` as for `tool_of`."""
        return self.add(tool_of(definition, function, **limits))

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions that the model is offered."""
        return tuple([tool.definition for tool in self._tools.values()])

    def get(self, name: str) -> Tool | None:
        """Return the tool with this name, or None."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


Policy: TypeAlias = Callable[[ToolDefinition], Permission]
"""A function that decides whether a tool may run, may not run, or needs a person's consent."""


DEFAULT_PERMISSIONS: Mapping[SideEffects, Permission] = {
    SideEffects.NONE: Permission.ALLOW,
    SideEffects.READ: Permission.ALLOW,
    SideEffects.WRITE: Permission.ASK,
    SideEffects.EXECUTE: Permission.ASK,
    SideEffects.NETWORK: Permission.ASK,
}
"""Tools that only read may run; other tools need consent, and are rejected if no person can be asked."""


@explain_arguments(places=lambda: dict.fromkeys(SideEffects, "pass a dictionary: by_side_effects({{'{}': …}})"))
def by_side_effects(
    permissions: Mapping[SideEffects, Permission] | None = None, *, tools: Mapping[str, Permission] | None = None
) -> Policy:
    """Make a policy from tables.

    Args:
        permissions: permissions by side effects, overriding `DEFAULT_PERMISSIONS`.
        tools: permissions by tool name; these take precedence.
    """
    classes = {**DEFAULT_PERMISSIONS, **(permissions or {})}
    named = dict(tools or {})

    def decide(tool: ToolDefinition) -> Permission:
        return named.get(tool.name, classes[tool.side_effects])

    return decide
