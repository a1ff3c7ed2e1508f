"""Tools: the values that tools work with, and the policy that permits them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.types import SideEffects, ToolDefinition, ToolUseBlock


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
    def is_exclusive(self) -> bool:
        """True if no other call of the same answer may run beside this tool."""
        looks = self.definition.side_effects in (SideEffects.NONE, SideEffects.READ)
        return not (looks if self.side_by_side is None else self.side_by_side)


def external_function(**_arguments: Any) -> Any:
    """Raise: this is the function of tools whose calls the application answers."""
    raise CallerError("this tool has no function: the application must answer its calls")


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
