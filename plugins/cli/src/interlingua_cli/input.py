"""Input of commands: conversations, tools, piped text, and options written as NAME=VALUE."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import click

from interlingua._json import FrozenDict, loads
from interlingua.codec import decode_tool, dumps_message, read_jsonl
from interlingua.errors import DecodeError, InterlinguaError
from interlingua.types import (
    Effort,
    Message,
    RequestOptions,
    SideEffects,
    ToolChoice,
    ToolChoiceOption,
    ToolDefinition,
    from_wire_tool,
)
from interlingua_cli.foreign import refuse_foreign

STANDARD = "-"  # stands for standard input wherever a file is expected
_WAIT_S = 2.0  # seconds without input before a note that the command waits


def file_name(path: str) -> str:
    """Return the name of a file in error messages."""
    return "standard input" if path == "-" else path


def read_conversation(path: str) -> list[Message]:
    """Read a conversation; `-` is standard input.

    Raises:
        DecodeError: a line is not a message, or the file is another program's; the message says what to do.
    """
    with click.open_file(path, "rb") as file:
        lines = list(file)
    refuse_foreign(lines, file_name(path))
    try:
        messages = list(read_jsonl(lines))
    except DecodeError as error:
        raise DecodeError(f"{path}: {error} (`interlingua doctor` shows every fault)") from error
    if not messages:
        raise DecodeError(f"{file_name(path)} has no message")
    return messages


def read_tools(path: str) -> list[ToolDefinition]:
    """Read tool definitions: a JSON array, or one definition."""
    with click.open_file(path, "rb") as file:
        try:
            data = loads(file.read())
        except ValueError as error:
            raise DecodeError(f"{path} is not JSON: {error}") from error
    tools = []
    for number, tool in enumerate(data if isinstance(data, list) else [data]):
        canonical = not isinstance(tool, dict) or "side_effects" in tool
        try:  # a provider's format does not tell what the tool may change: assume the most
            tools.append(decode_tool(tool) if canonical else from_wire_tool(tool, side_effects=SideEffects.EXECUTE))
        except InterlinguaError as error:
            raise DecodeError(f"{path}: {error}", path=f"[{number}]") from error
    return tools


def write_conversation(path: Path, messages: Sequence[Message]) -> None:
    """Write a conversation as JSON Lines; a crash leaves the old file or the new one."""
    write_file(path, "".join(f"{dumps_message(message)}\n" for message in messages))


def write_file(path: Path, content: str | bytes | Iterable[bytes], *, private: bool = False) -> None:
    """Write a file atomically: a crash, an interruption or an error leaves the old file.

    Args:
        path: the file; an existing file keeps its mode.
        content: content of the file; pieces are written as they are produced.
        private: make a new file readable by its owner only.
    """
    beside = path.with_name(f".{os.urandom(8).hex()}")

    def create(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600 if private else 0o666)

    try:
        with open(beside, "xb", opener=create) as file:
            if path.exists():
                beside.chmod(stat.S_IMODE(path.stat().st_mode))
            if isinstance(content, str | bytes):
                content = [content.encode() if isinstance(content, str) else content]
            file.writelines(content)
        os.replace(beside, path)  # noqa: PTH105  Path.replace says the same and hides that it is atomic
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


_ARGUMENTS = {"model", "stream"}  # set by the command itself
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _read_bool(text: str) -> bool:
    if text.lower() not in _BOOLS:
        raise ValueError("expected true or false")
    return _BOOLS[text.lower()]


def _read_object(text: str) -> Any:
    value = loads(text)
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def _read_word(words: Any, text: str) -> str:
    if text not in get_args(words):
        raise ValueError(f"expected one of {', '.join(get_args(words))}")
    return text


def _read_choice(text: str) -> Any:
    return text if text in ("auto", "none", "required") else ToolChoice(text)


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"expected a number, got {text!r}") from None


def _read_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"expected a whole number, got {text!r}") from None


_READERS: dict[Any, Callable[[str], Any]] = {
    int: _read_integer, float: _read_number, bool: _read_bool, str: str, FrozenDict: _read_object,
    ToolChoiceOption: _read_choice, tuple[str, ...]: lambda text: (text,),
    **{words: partial(_read_word, words) for words in (Effort, Literal["auto"])},
}  # fmt: skip


@cache
def _option_readers() -> dict[str, Callable[[str], Any]]:
    hints = get_type_hints(RequestOptions)
    readers = {kind: reader for base, reader in _READERS.items() for kind in (base, base | None)}
    return {name: readers[kind] for name, kind in hints.items() if name not in _ARGUMENTS and kind in readers}


def read_options(_ctx: click.Context, _parameter: click.Parameter, pairs: Iterable[str]) -> dict[str, Any]:
    """Read `name=value` pairs, each value by the type of its field in RequestOptions; a click callback."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        reader = _option_readers().get(name)
        if not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        if reader is None:
            raise click.BadParameter(f"no option {name!r}; there are {', '.join(sorted(_option_readers()))}")
        try:
            value = reader(text)
        except ValueError as error:
            raise click.BadParameter(f"{name}: {error}") from error
        options[name] = (*options.get(name, ()), *value) if isinstance(value, tuple) else value
    return options


def option_pairs(options: Mapping[str, Any]) -> list[str]:
    """Return options as `NAME=VALUE` pairs, from which `read_options` reads the same options."""
    values = ((name, one) for name, value in options.items()
              for one in (value if isinstance(value, (list, tuple)) else (value,)))  # fmt: skip
    return [f"{name}={_write_option(value)}" for name, value in values]


def _write_option(value: Any) -> str:
    if isinstance(value, ToolChoice):
        return value.name
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


option_option = click.option(
    "-o",
    "--option",
    "options",
    metavar="NAME=VALUE",
    multiple=True,
    callback=read_options,
    help="An option of the request, such as temperature=0 or provider_options='{...}'; may be repeated.",
)


class PairCommand(click.Command):
    """A command whose options of pairs (`-o`, a template's `-p`) take NAME=VALUE, or NAME and VALUE as two words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join the two words."""
        pairs = {name for one in self.params if one.name in ("options", "parameters") for name in one.opts}
        joined: list[str] = []
        words = list(args)
        while words:
            joined.append(words.pop(0))
            if joined[-1] == "--":
                break
            if joined[-1] in pairs and words:
                joined.append(words.pop(0))
                if "=" not in joined[-1] and words:
                    joined[-1] += f"={words.pop(0)}"
        return super().parse_args(ctx, [*joined, *words])


def _check_url(_ctx: click.Context, _parameter: click.Parameter, url: str | None) -> str | None:
    if url is not None and not re.match(r"https?://[^/]", url):
        raise click.BadParameter(
            f"an address begins with http:// or https://, such as http://127.0.0.1:8080, not {url!r}"
        )
    return url


url_option = click.option(
    "--url",
    metavar="BASE",
    callback=_check_url,
    help="Another base URL for the model's provider, such as a local server's.",
)


def read_text(words: Sequence[str], *, wait: bool = False) -> str:
    """Return the text to send: piped text replaces `-`, else it precedes the words on separate lines.

    Args:
        words: the arguments.
        wait: without words, also read a terminal to its end.

    Raises:
        click.UsageError: standard input is not UTF-8.
    """
    if STANDARD in words:
        piped = _read_piped_text()
        return " ".join(piped if word == STANDARD else word for word in words)
    at_terminal = sys.stdin.isatty()
    piped = _read_piped_text() if not at_terminal or (wait and not words) else ""
    return "\n".join(filter(None, (piped, " ".join(words))))


def _read_piped_text() -> str:
    """Return the text on standard input, without white space around it."""
    _announce_wait()
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"standard input is not UTF-8 text (byte {error.start}); `-a -` attaches an image, audio or a document"
        ) from error


def _announce_wait() -> None:
    """Tell the user that the command waits: at a terminal, or for a pipe that was left open by mistake."""
    if sys.stdin.isatty():
        click.echo("(type the prompt; Ctrl-D ends it)", err=True)
        return
    with contextlib.suppress(OSError, ValueError):  # a stream that cannot be polled
        if not select.select([sys.stdin], (), (), _WAIT_S)[0]:
            click.echo("(reading standard input to its end; without input, add `< /dev/null`)", err=True)


def check_text(text: str) -> str:
    """Return an argument that is sent to a model; a click type.

    Raises:
        click.BadParameter: the argument has bytes of another encoding, which would reach the model as U+FFFD.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise click.BadParameter("the argument has bytes that are not text in this terminal's encoding") from error
    return text
