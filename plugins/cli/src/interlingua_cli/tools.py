"""Tools for a model from the command line: functions of `--tool MODULE:FUNCTION`, and the user's consent to calls."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

import attrs
import click

from interlingua.errors import CallerError
from interlingua_cli.show import Show
from interlingua_cli.streams import escape_controls

if TYPE_CHECKING:
    from interlingua_agents import RunResult, Tool
    from interlingua_agents.loop import AgentLoop
    from interlingua_agents.tools import Confirmation

_NO_AGENTS = "tools need interlingua-agents: pip install interlingua-agents"
_UNLIMITED = sys.maxsize


def load_tools(names: Sequence[str]) -> list[Tool]:
    """Import tools, from the current folder too.

    Args:
        names: `MODULE:FUNCTION`, or `MODULE` for all of its functions that are decorated with `@tool`.

    Raises:
        CallerError: there is no such function, or interlingua-agents is not installed.
    """
    return [tool for name in names for tool in _load(name)]


def _load(name: str) -> list[Tool]:
    try:
        from interlingua_agents import Tool, tool  # noqa: PLC0415  an optional distribution
    except ModuleNotFoundError as error:
        raise CallerError(_NO_AGENTS) from error

    place, _, attribute = name.partition(":")
    folder = os.getcwd()  # noqa: PTH109  a string, as sys.path holds them
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(place)
    except Exception as error:
        raise CallerError(f"--tool {name}: cannot import {place}: {type(error).__name__}: {error}") from error
    if not attribute:
        found = [value for value in vars(module).values() if isinstance(value, Tool)]
        if not found:
            raise CallerError(
                f"--tool {name}: {place} has no function decorated with @tool; pass a function as {place}:FUNCTION"
            )
        return found
    value = getattr(module, attribute, None)
    if isinstance(value, Tool):
        return [value]
    if not callable(value):
        raise CallerError(f"--tool {name}: {place} has no function {attribute!r}")
    return [tool(value)]


@attrs.frozen(kw_only=True)
class Tools:
    """Functions that a model may call, and the limits of their use; needs interlingua-agents.

    Attributes:
        functions: the tools.
        show: prints calls and results.
        settings: arguments of `AgentLoop` and `Agent`: consent, and the limit of answers per question.
    """

    functions: Sequence[Tool]
    show: Show
    settings: Mapping[str, Any]

    def loop(self) -> AgentLoop:
        """Return the loop that runs the calls of a turn."""
        from interlingua_agents.loop import AgentLoop  # noqa: PLC0415  an optional distribution

        listen = self.show.listen if self.show.stream else None
        return AgentLoop(self.functions, listen=listen, on_stop=_report_stop, **self.settings)

    def ask_for(
        self, output: Any, content: Any, *, model: str | None, options: Mapping[str, Any], **where: Any
    ) -> RunResult[Any]:
        """Ask for an answer of a type, and run the calls before it.

        Args:
            output: type of the answer.
            content: the question.
            model: the model that answers.
            options: options of every request.
            **where: `history` and `client`, or `session`, as for `Agent.run_sync`.

        Raises:
            CallerError: the limit of answers was reached first.
            InterlinguaError: as the client; also if no answer matches the type.
        """
        from interlingua_agents import Agent  # noqa: PLC0415  as above

        agent: Agent[Any] = Agent(model, tools=self.functions, output=output, options=options, **self.settings)
        with agent.stream_sync(content, **where) as stream:
            for event in stream:
                if event.type == "tool_start":
                    self.show.print_call(event.call.name, event.call.input)
                elif event.type == "tool_end":
                    self.show.print_result(event.result)
            _report_stop(stream.result.stop)
            return stream.result


def make_tools(names: Sequence[str], show: Show, *, approve: bool, limit: int) -> Tools | None:
    """Return the tools that a model may call; None if `names` is empty.

    A call that changes something needs the user's consent on a terminal and is refused without one; the model reads the
    refusal.

    Args:
        names: as for `load_tools`.
        show: prints calls and results.
        approve: ask before every call, also of tools that only read.
        limit: most answers per question; 0 for no limit.

    Raises:
        CallerError: as `load_tools`.
    """
    if not names:
        return None
    functions = load_tools(names)
    from interlingua_agents import Permission  # noqa: PLC0415  as above

    policy: Callable[[Any], Permission] | None = (lambda _tool: Permission.ASK) if approve else None
    settings = {
        "max_turns": limit or _UNLIMITED,
        "policy": policy,
        "confirm": _confirm if sys.stdin.isatty() else _refuse,
    }
    return Tools(functions=functions, show=show, settings=settings)


def _report_stop(stopped: Any) -> None:
    if stopped.cause in ("turn_limit", "budget"):
        click.echo(f"(stopped after {stopped.turns} answers: --chain-limit allows more)", err=True)


def _confirm(question: Confirmation) -> bool:
    return click.confirm(escape_controls(question.text, sys.stderr), err=True)


def _refuse(question: Confirmation) -> bool:
    text = escape_controls(f"refused, because there is no terminal to ask on: {question.text}", sys.stderr)
    click.echo(text, err=True)
    return False


def confirm_template_tools(template: str, names: Sequence[str]) -> None:
    """Ask before a template's tools are imported: a model's call runs their code.

    Raises:
        click.UsageError: the user declined, or there is no terminal to ask on.
    """
    if not names:
        return
    listed = ", ".join(names)
    if not sys.stdin.isatty():
        options = _as_options(names)
        raise click.UsageError(f"template {template!r} has tools, which run code here: allow them with {options}")
    if not click.confirm(f"Template {template!r} has tools, which run code here: {listed}. Use them?", err=True):
        raise click.UsageError(f"template {template!r} needs its tools")


def confirm_kept_tools(names: Sequence[str]) -> Sequence[str]:
    """Ask before a continued conversation's tools are imported: their code may have changed.

    Returns:
        The names; empty if the user declined, or if there is no terminal to ask on, with a note.
    """
    if not names:
        return ()
    if not sys.stdin.isatty():
        text = "the conversation had tools, which run code here:"
        click.echo(f"({text} {_as_options(names)} allows them, --plain drops them)", err=True)
        return ()
    places = ", ".join(f"{name} ({_source_of(name)})" for name in names)
    question = f"The conversation had tools, which run code here: {places}. Use them again?"
    return names if click.confirm(escape_controls(question, sys.stderr), err=True) else ()


def _as_options(names: Sequence[str]) -> str:
    return " ".join(f"-T {shlex.quote(name)}" for name in names)


def _source_of(name: str) -> str:
    """Return the file that a tool's module would be imported from, without importing it or its packages."""
    parts = name.partition(":")[0].split(".")
    places: Sequence[str] | None = [os.getcwd(), *sys.path]  # noqa: PTH109  as `_load` looks for it
    for at in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: at + 1]), places)
        if spec is None:
            return "not found"
        places = spec.submodule_search_locations
    return (spec.origin if spec else None) or "not a file"


tool_option = click.option(
    "-T", "--tool", "tools", metavar="MODULE:FUNCTION", multiple=True,
    help="Let the model call this function; may be repeated. A call that changes something needs consent on a"
    " terminal, and is refused without one.",
)  # fmt: skip
tools_debug_option = click.option("--td", "--tools-debug", "tools_debug", is_flag=True,
                                  help="Show tool calls and their results.")  # fmt: skip
tools_approve_option = click.option("--ta", "--tools-approve", "tools_approve", is_flag=True,
                                    help="Ask before each tool call.")  # fmt: skip
chain_limit_option = click.option(
    "--cl", "--chain-limit", "chain_limit", type=click.IntRange(0), default=32, show_default=True, metavar="N",
    help="Most answers for one question; 0 for no limit.",
)  # fmt: skip
