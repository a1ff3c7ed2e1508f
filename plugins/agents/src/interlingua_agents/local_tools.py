"""Tools that act on this machine: a shell and patches of files; an agent asks for consent before it runs them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs

from interlingua.plugins import explain_arguments
from interlingua.types import SideEffects, ToolDefinition, ToolKind
from interlingua_agents.tools import Tool, ToolError, tool, tool_of

_SECONDS = 120.0
_CHARACTERS = 100_000
_HUNK = re.compile(r"@@ ?(.*)")


def _places() -> dict[str, str]:
    return {"confirm": "pass it to the agent: Agent(…, confirm=…)"}


@explain_arguments(places=_places)
def shell_tool(
    folder: str | os.PathLike[str] = ".", *, definition: ToolDefinition | None = None, seconds: float = _SECONDS
) -> Tool:
    """Make a tool that runs shell commands; it needs consent: it may do anything that this process may.

    Args:
        folder: folder in which the commands run.
        definition: the definition that the model is offered, such as the one of a service's own shell tool, which
            takes `commands`; None: a plain function.
        seconds: that one command may take at most.
    """
    place = Path(folder).resolve()

    def shell(
        commands: Annotated[list[str], "the commands, run in order"],
        timeout_ms: Annotated[int | None, "milliseconds that one command may take"] = None,
        max_output_length: Annotated[int | None, "characters of output to return of each stream"] = None,
    ) -> dict[str, Any]:
        """Run shell commands and return what each wrote, with its exit code."""
        limit = seconds if not timeout_ms else min(seconds, timeout_ms / 1000)
        most = min(max_output_length or _CHARACTERS, _CHARACTERS)
        return {"output": [_run_command(command, place, limit, most) for command in commands]}

    return _tool(shell, definition, SideEffects.EXECUTE, ToolKind.EXECUTE)


def _tool(function: Any, definition: ToolDefinition | None, effects: SideEffects, kind: ToolKind) -> Tool:
    """Make the tool; arguments of a service's own definition that the function does not know are left out."""
    made = tool(side_effects=effects, kind=kind)(function)
    if definition is None:
        return made
    known = made.definition.input_schema["properties"]
    return attrs.evolve(
        tool_of(definition, function),
        read=lambda given: {name: value for name, value in given.items() if name in known},
    )


def _run_command(command: str, folder: Path, seconds: float, most: int) -> dict[str, Any]:
    process = subprocess.Popen(  # noqa: S602  the tool's purpose
        command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=sys.platform != "win32",
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=seconds)
        outcome: dict[str, Any] = {"type": "exit", "exit_code": process.returncode}
    except subprocess.TimeoutExpired:
        _kill(process)
        out, err = process.communicate()
        outcome = {"type": "timeout"}
    return {"stdout": out[:most], "stderr": err[:most], "outcome": outcome}


def _kill(process: subprocess.Popen[str]) -> None:
    """End a command with what it started."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


# ---- patches


@explain_arguments(places=_places)
def patch_tool(folder: str | os.PathLike[str] = ".", *, definition: ToolDefinition | None = None) -> Tool:
    """Make a tool that creates, updates and deletes files below a folder; it needs consent.

    Args:
        folder: no file outside is touched, also not by a link.
        definition: the definition that the model is offered, such as the one of a service's own patch tool, which
            takes `type`, `path` and `diff`; None: a plain function.
    """
    place = Path(folder).resolve()

    def apply_patch(
        type: Literal["create_file", "update_file", "delete_file"],  # noqa: A002  the services' name
        path: Annotated[str, "the file, relative to the folder"],
        diff: Annotated[str, "lines that begin with '+', '-' or a space; '@@' between parts"] = "",
    ) -> str:
        """Create, update or delete one file; a new file's diff has '+' lines only."""
        file = (place / path).resolve()
        if not file.is_relative_to(place) or file == place:
            raise ToolError(f"{path} is outside the folder")
        if type == "create_file":
            if file.exists():
                raise ToolError(f"{path} exists already: update it")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(apply_diff("", diff), encoding="utf-8", newline="")
            return f"Created {path}"
        if not file.is_file():
            raise ToolError(f"{path} is not a file")
        if type == "delete_file":
            file.unlink()
            return f"Deleted {path}"
        with file.open(encoding="utf-8", newline="") as opened:
            text = opened.read()
        file.write_text(apply_diff(text, diff), encoding="utf-8", newline="")
        return f"Updated {path}"

    return _tool(apply_patch, definition, SideEffects.WRITE, ToolKind.EDIT)


def apply_diff(text: str, diff: str) -> str:
    """Apply a diff: its parts in order, each at the first place that has its old lines.

    Args:
        text: the text; "" for a new file.
        diff: lines that begin with `+` (added), `-` (removed) or a space (kept). A line `@@` begins a part; words
            behind it are a line somewhere before the part.

    Raises:
        ToolError: a line begins with something else, or old lines are not in the text.
    """
    lines, made, at = text.splitlines(keepends=True), [], 0
    for anchor, part in _parts(diff):
        if anchor:
            found = next((place for place in range(at, len(lines)) if lines[place].strip() == anchor), None)
            if found is None:
                raise ToolError(f"the line {anchor!r} is not in the file behind the parts before")
            made += lines[at : found + 1]
            at = found + 1
        old = [line[1:] for line in part if line[0] in " -"]
        place = next((one for one in range(at, len(lines) - len(old) + 1) if _stands(lines, one, old)), None)
        if place is None:
            raise ToolError("these lines are not in the file: " + "\n".join(old))
        made += lines[at:place]
        at = place
        for line in part:
            if line[0] == "+":
                made.append(line[1:] + "\n")
            else:
                made += [lines[at]] if line[0] == " " else []
                at += 1
    return "".join([*made, *lines[at:]])


def _stands(lines: Sequence[str], at: int, old: Sequence[str]) -> bool:
    return all(line.rstrip("\r\n") == wanted for line, wanted in zip(lines[at:], old, strict=False))


def _parts(diff: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of a diff: the line before it, or "", and its lines; an empty line counts as a kept one."""
    anchor: str = ""
    part: list[str] = []
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        if (match := _HUNK.fullmatch(line)) is not None:
            if part:
                yield anchor, part
            anchor, part = match[1].strip(), []
        elif not line or line[0] in "+- ":
            part.append(line or " ")
        else:
            raise ToolError(f"a line of a diff begins with '+', '-' or a space: {line!r:.80}")
    if part:
        yield anchor, part
