"""Output of commands: JSON for programs; tables, answers and errors for the user."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import zip_longest
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urlsplit, urlunsplit

import attrs
import click

from interlingua._json import repair_surrogates
from interlingua.errors import (
    APIConnectionError,
    AuthenticationError,
    ContentRefusedError,
    ContextWindowExceededError,
    InterlinguaError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
    UnknownProviderError,
)
from interlingua.types import MessageStatus
from interlingua_cli.context import CommandContext
from interlingua_cli.streams import escape_controls, supports_unicode

if TYPE_CHECKING:
    from interlingua.plugins import Loss
    from interlingua.types import Message, StreamEvent

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
_WIDE = 120  # columns without a terminal
_GAP = 2  # columns between a table's cells
_SHORT_NAME = 24  # columns for names, at least, where longer ones are printed above their row
_PIPED = 80  # columns of a table in a pipe, as long as there are spare columns
_LEDGER = ("path", "block", "verdict", "reason")


def print_json(value: Any) -> None:
    """Print a value as indented JSON; exact money stays exact, as a string."""
    text = json.dumps(value, ensure_ascii=not supports_unicode(sys.stdout), indent=2, default=_to_json)
    click.echo(repair_surrogates(text))


def print_json_lines(values: Iterable[Any]) -> None:
    """Print each value as one line of JSON."""
    for value in values:
        text = json.dumps(value, ensure_ascii=not supports_unicode(sys.stdout), default=_to_json)
        click.echo(repair_surrogates(text))


def _to_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if attrs.has(type(value)):
        return attrs.asdict(value, recurse=False)
    raise TypeError(f"{type(value).__name__} is not JSON")


def print_facts(facts: Mapping[str, Any], *, err: bool = False, columns: int | None = None) -> None:
    """Print names and values, one per line; omit missing values.

    Args:
        facts: the values by name.
        err: print on stderr.
        columns: values of more columns are broken at spaces; None breaks none.
    """
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            text = f"{value:f}" if isinstance(value, Decimal) else str(value)
            first, *more = [text] if columns is None else _break_lines(text, columns - width - 2)
            for line in (f"{name:<{width}}  {first}", *(" " * (width + 2) + one for one in more)):
                click.echo(line, err=err)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, err: bool = False, spare: Sequence[str] = ()
) -> None:
    """Print a table; a missing value is an empty cell.

    Spare columns that do not fit are omitted, the last first. On a terminal that is still too narrow, a long name in
    the first column is printed above the rest of its row, or each row becomes a block of lines; in a pipe the columns
    are as wide as their cells. No cell is cut and no word broken.

    Args:
        columns: the headings.
        rows: one cell per column.
        err: print on stderr.
        spare: headings of columns that may be omitted on a narrow terminal.
    """
    out = make_console(err=err)
    lines = [["" if cell is None else _cell_text(cell, out.file) for cell in row] for row in rows]
    kept = list(range(len(columns)))
    left_out = [columns.index(name) for name in spare]
    if not out.is_terminal:
        while True:
            texts = list(_plain_rows([[line[at] for at in kept] for line in (columns, *lines)]))
            if not left_out or max(map(cell_len, texts)) <= _PIPED:
                break
            kept.remove(left_out.pop())
        for text in texts:
            click.echo(text, err=err)
        return
    while not (fits := _narrowest(columns, lines, kept) <= out.width) and left_out:
        kept.remove(left_out.pop())
    if fits:
        wrapped = list(_wrapped_rows([[line[at] for at in kept] for line in (columns, *lines)], out.width))
        heads, *texts = _plain_rows(wrapped)
        rule = ("─" if supports_unicode(out.file) else "-") * max(map(cell_len, (heads, *texts)))
        for text in (heads, rule, *texts):
            click.echo(text, err=err)
        return
    rows = [[line[at] for at in kept] for line in (columns, *lines)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    widths[0] = out.width - sum(width + _GAP for width in widths[1:])
    if widths[0] >= _SHORT_NAME and not any("\n" in cell for row in rows for cell in row):
        for name, *cells in rows:
            above = cell_len(name) > widths[0]
            if above:
                click.echo(name, err=err)
            row = ("" if above else name, *cells)
            click.echo((" " * _GAP).join(map(_pad, row, widths)).rstrip(), err=err)
        return
    for line in lines:
        facts = dict(zip(columns, line, strict=True))
        print_facts({name: cell or None for name, cell in facts.items()}, err=err, columns=out.width)
        click.echo(err=err)


def _plain_rows(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines; a cell of several lines continues below its first."""
    cells = [[cell.splitlines() for cell in row] for row in rows]
    widths = [
        max((cell_len(line) for cell in column for line in cell), default=0) for column in zip(*cells, strict=True)
    ]
    for row in cells:
        for parts in zip_longest(*row, fillvalue=""):
            yield (" " * _GAP).join(map(_pad, parts, widths)).rstrip()


def _narrowest(columns: Sequence[str], lines: Sequence[Sequence[str]], kept: Sequence[int]) -> int:
    """Return the least width of a table whose cells break at spaces only."""
    return sum(_longest_word([line[at] for line in (columns, *lines)]) + _GAP for at in kept)


def _longest_word(cells: Iterable[str]) -> int:
    return max((cell_len(word) for cell in cells for word in cell.split()), default=0)


def _wrapped_rows(rows: Sequence[Sequence[str]], width: int) -> Iterator[list[str]]:
    """Yield the rows with their cells broken at spaces; the widest columns become narrower until all fit."""
    columns = list(zip(*rows, strict=True))
    widths = [max(cell_len(line) for cell in column for line in cell.splitlines() or [""]) for column in columns]
    least = [_longest_word(column) for column in columns]
    while sum(widths) + _GAP * (len(widths) - 1) > width:
        at = max((at for at in range(len(widths)) if widths[at] > least[at]), key=widths.__getitem__, default=None)
        if at is None:
            break
        widths[at] -= 1
    for row in rows:
        yield ["\n".join(_break_lines(cell, most)) for cell, most in zip(row, widths, strict=True)]


def _break_lines(text: str, width: int) -> list[str]:
    """Return the lines of a string, broken at spaces; a word that is too long stays whole."""
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        if cell_len(line) <= width:
            lines.append(line)
            continue
        shown = ""
        for word in line.split():
            if shown and cell_len(shown) + 1 + cell_len(word) > width:
                lines.append(shown)
                shown = word
            else:
                shown = f"{shown} {word}" if shown else word
        lines.append(shown)
    return lines


def _pad(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _cell_text(cell: Any, stream: TextIO) -> str:
    return f"{cell:,}" if type(cell) is int else escape_controls(str(cell), stream)


def make_console(*, err: bool = False) -> Any:
    """Return a rich console on stdout or stderr; without a terminal it is wide."""
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stderr if err else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else _WIDE, soft_wrap=False)


def mask_credentials(url: str) -> str:
    """Return a URL with its user information masked, which may hold a password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid URL"
    host = parts.netloc.rpartition("@")[2]
    return url if host == parts.netloc else urlunsplit(parts._replace(netloc=f"***@{host}"))


def losses_to_json(losses: Iterable[Loss]) -> list[dict[str, Any]]:
    """Return ledger rows as JSON objects."""
    return [attrs.asdict(loss) for loss in losses]


def print_ledger(losses: Sequence[Loss], *, err: bool = False) -> None:
    """Print the loss ledger as a table, or that it is empty."""
    if not losses:
        click.echo("nothing is lost", err=err)
        return
    print_table(_LEDGER, [(loss.path, loss.block_type, loss.verdict, loss.reason) for loss in losses], err=err)


class WordWrap:
    """Breaks the lines of text that arrives in pieces between words; indented and fenced code stays unchanged.

    Args:
        width: returns the number of columns.
    """

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self.restart()

    def restart(self) -> None:
        """Begin another text."""
        self._fenced = False
        self._line = self._row = self._word = ""  # the line; its last row on the screen; the unfinished word there

    def feed(self, text: str) -> str:
        """Return the text to print; a word that grows beyond the last column is moved to the next row."""
        return "".join(self._place(part) for part in re.split(r"(\s)", text) if part)

    def _place(self, part: str) -> str:
        if part == "\n":
            self._fenced ^= self._line.lstrip().startswith(("```", "~~~"))
            self._line = self._row = self._word = ""
            return part
        self._line += part
        is_code = self._fenced or self._line.startswith(("    ", "\t"))
        is_over = not is_code and cell_len(self._row) + cell_len(part) >= self._width()
        if part.isspace():
            self._row, self._word = "" if is_over else self._row + part, ""
            return "\n" if is_over else part
        before, self._word = self._word, self._word + part
        if is_over and self._row != before:
            erased = cell_len(before)
            self._row = self._word
            return "\b" * erased + " " * erased + f"\n{self._word}"
        self._row += part
        return part


def cell_len(text: str) -> int:
    """Return the number of columns that text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as measured  # noqa: PLC0415  not free to import

    return measured(text)


_wrap = WordWrap(lambda: get_terminal_size().columns)
_MS_PER_SECOND = 1000
_open_lines: list[TextIO] = []  # the stream whose last line has no end yet


def end_line() -> None:
    """End the line of an unfinished answer on a terminal; piped text is left unchanged."""
    if _open_lines and _open_lines[0].isatty():
        end_lines()


def end_lines() -> None:
    """End the line of an unfinished answer."""
    while _open_lines:
        click.echo(file=_open_lines.pop())
    _wrap.restart()


def print_stream(stream: Iterable[StreamEvent], *, thinking: bool = True) -> None:
    """Print a stream's text as it arrives, then a line end; reasoning only on a terminal."""
    from interlingua.types import TextDelta, ThinkingDelta  # noqa: PLC0415  few commands print a stream

    try:
        for event in stream:
            if type(event) is TextDelta:
                print_delta(event.text)
            elif type(event) is ThinkingDelta and thinking:
                print_delta(event.text, thinking=True)
    finally:
        end_lines()


def print_delta(text: str, *, thinking: bool = False) -> None:
    """Print a piece of an answer, and reasoning only on a terminal; `end_lines` ends the line."""
    if not thinking:
        _continue_on(sys.stdout)
        shown = escape_controls(text, sys.stdout)
        click.echo(_wrap.feed(shown) if sys.stdout.isatty() else shown, nl=False)
    elif sys.stderr.isatty():
        _continue_on(sys.stderr)
        click.secho(escape_controls(text, sys.stderr), dim=True, nl=False, err=True)


def _continue_on(file: TextIO) -> None:
    """Continue on this stream; reasoning and text do not share a line."""
    if _open_lines != [file]:
        if _open_lines == [sys.stderr]:
            end_lines()
        _open_lines[:] = [file]


def print_calls(message: Message) -> None:
    """Print the model's tool calls, which are not run."""
    for call in message.tool_calls:
        click.secho(escape_controls(f"[calls {call.name}({call.input_json})]", sys.stderr), err=True, dim=True)


def print_usage(message: Message) -> None:
    """Print model, tokens, cost and time on one line."""
    metadata, usage = message.metadata, message.metadata.usage
    facts = [metadata.model or "?"]
    if metadata.status is not MessageStatus.COMPLETE:
        facts.append(str(metadata.status))
    elif metadata.stop_reason is not None and metadata.stop_reason != "end_turn":
        facts.append(f"stopped: {metadata.stop_reason}")
    if usage is not None:
        counts = ((usage.input_tokens, "in"), (usage.output_tokens, "out"))
        facts += [f"{count:,} {word}" for count, word in counts if count is not None]
        if usage.cost_usd is not None:
            facts.append(f"${usage.cost_usd:f}")
        if usage.latency_ms is not None:
            facts.append(f"{usage.latency_ms / _MS_PER_SECOND:.1f} s")
    click.secho(f"[{' · '.join(facts)}]", err=True, dim=True)


_BUSY = "the service has a problem: try again later"
_NOT_AN_API = "the response is not an answer: check that the URL is an API's"

_ADVICE: dict[type[InterlinguaError], str] = {
    PermissionDeniedError: "the key lacks the permission; `interlingua models {} --live` lists the models it may use",
    ModelNotFoundError: "`interlingua models {} --live` lists the service's models",
    ContextWindowExceededError: "`interlingua models {}` shows each model's context window",
    ContentRefusedError: "a content filter rejected this: rephrase it, or use another model",
    QuotaExceededError: "the account's credit or plan is used up; waiting does not help",
    OverloadedError: _BUSY,
    ServerError: _BUSY,
    MalformedResponseError: _NOT_AN_API,
}


def print_error(context: CommandContext, error: Exception) -> None:
    """Print an error on one line of stderr, with advice if there is any."""
    where = isinstance(error, OSError) and error.filename and error.strerror
    text = f"{error.filename}: {error.strerror}" if where else str(error)  # type: ignore[attr-defined]
    if isinstance(error, AuthenticationError) and error.status is None:
        text = text.replace(" or pass api_key=", " or set api_key_env to its variable in the configuration")
    advice = advise(context, error) if isinstance(error, InterlinguaError) else None
    click.echo(f"error: {' '.join((f'{text}; {advice}' if advice else text).split())}", err=True)


def advise(context: CommandContext, error: InterlinguaError) -> str | None:
    """Return advice about a service's error; None if the error has it, or nothing helps."""
    if type(error) is APIConnectionError:
        return "is the service running there? --url sets another address"
    if isinstance(error, UnknownProviderError):
        from interlingua_cli.directory import find_listed, is_installed  # noqa: PLC0415  for one message

        row = find_listed(error.provider or "")
        found = row is not None and error.provider in row.keys and not is_installed(row.distribution)
        return f"`interlingua install {error.provider}` installs {row.distribution}" if row and found else None
    if error.provider is None:
        return None
    if isinstance(error, StreamInterruptedError):
        started = error.partial is not None and error.partial.content
        return "the answer is incomplete: try again" if started else _NOT_AN_API
    if error.status is None:
        return None
    if isinstance(error, AuthenticationError):
        variable = _key_variable(context, error.provider)
        return f"check that the key in {variable} is right and belongs to this service" if variable else None
    if isinstance(error, RateLimitError):
        wait = f"in {error.retry_after:g} s" if error.retry_after else "in a while"
        return f"too many requests in a short time: try again {wait}"
    return next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "").format(error.provider) or None


def _key_variable(context: CommandContext, provider: str) -> str | None:
    """Return the environment variable of the provider's key."""
    from interlingua.plugins import ConnectionSettings  # noqa: PLC0415  for one message

    configured: str | None = context.config.providers.get(provider, {}).get("api_key_env")
    if configured:
        return configured
    try:
        variables = context.registry.provider(provider).connection(ConnectionSettings(environ=context.environ)).env_vars
    except InterlinguaError:
        return None
    keys = [name for name in variables if "KEY" in name or "TOKEN" in name]
    return next((name for name in keys if context.environ.get(name)), keys[0] if keys else None)
