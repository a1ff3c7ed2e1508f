"""Display of an answer: as it arrives or whole, as text, Markdown or JSON, or only its code."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

import attrs
import click

from interlingua.codec import encode_message
from interlingua.errors import CallerError, CapabilityError, InterlinguaError
from interlingua.types import Message, Role, StopReason, ToolResultBlock, Usage
from interlingua_cli.output import (
    end_lines,
    make_console,
    print_calls,
    print_delta,
    print_json,
    print_stream,
    print_usage,
)
from interlingua_cli.streams import escape_controls

_FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})[^\n]*\n(?P<code>.*?)^(?P=fence)[ \t]*$", re.DOTALL | re.MULTILINE)


def find_code(text: str, *, last: bool = False) -> str | None:
    """Return the first fenced code block of Markdown, or the last; None without one."""
    blocks = [match["code"] for match in _FENCE.finditer(text)]
    return blocks[-1 if last else 0].rstrip("\n") if blocks else None


@attrs.define(kw_only=True)
class Show:
    """The display settings of one command; notes for the user go to stderr.

    Attributes:
        form: text, markdown (laid out on a terminal) or json, the canonical message.
        extract: print only the first code block, or the last.
        thinking: show reasoning on a terminal while it arrives.
        stream: print text as it arrives, if `form` is text.
        tools: show tool calls and results.
    """

    form: Literal["text", "markdown", "json"] = "text"
    extract: Literal["first", "last"] | None = None
    thinking: bool = True
    stream: bool = True
    tools: bool = False
    _printed: bool = attrs.field(default=False, init=False)

    @property
    def _prints_deltas(self) -> bool:
        return self.form == "text" and self.extract is None and self.stream

    def take(self, open_stream: Callable[[], Any], send: Callable[[], Message]) -> Message:
        """Print an answer as it arrives and return it; after Ctrl-C, return its beginning.

        Args:
            open_stream: returns the stream of the answer.
            send: returns the whole answer, if `stream` is off or the model cannot stream.

        Raises:
            InterlinguaError: as the client.
            KeyboardInterrupt: Ctrl-C before the answer began.
        """
        self._printed = False
        if self.stream:
            with suppress(_CannotStreamError):
                return self._take_stream(open_stream)
        return send()

    def _take_stream(self, open_stream: Callable[[], Any]) -> Message:
        stream = None
        try:
            stream = open_stream()
            with stream:
                if self._prints_deltas:
                    self._printed = True
                    print_stream(stream, thinking=self.thinking)
                message: Message = stream.message
                return message
        except KeyboardInterrupt:
            with suppress(CallerError):  # the stream was not open yet
                if stream is not None and stream.partial.content:
                    partial: Message = stream.partial
                    return partial
            raise
        except CapabilityError as error:
            if error.path != "streaming":
                raise
            self._printed = False
            raise _CannotStreamError from error

    def listen(self, event: Any) -> None:
        """Print an event of a run; a listener."""
        if event.type == "text_delta" and self._prints_deltas:
            self._printed = True
            print_delta(event.delta)
        elif event.type == "thinking_delta" and self._prints_deltas and self.thinking:
            print_delta(event.delta, thinking=True)
        elif event.type == "message_end" and event.message.role is Role.ASSISTANT:
            end_lines()
            if event.message.tool_calls and self._prints_deltas:
                self._end_text(event.message)
                self._printed = False
        elif event.type == "tool_start":
            self.print_call(event.call.name, event.call.input)
        elif event.type == "tool_end":
            self.print_result(event.result)

    def print_call(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Print a tool call, if `tools` is on."""
        if self.tools:
            _print_dim(f"[runs {name}({dict(arguments)})]")

    def print_result(self, result: ToolResultBlock) -> None:
        """Print a tool's result, if `tools` is on."""
        if self.tools:
            text = "".join(getattr(block, "text", f"[{block.type}]") for block in result.content)
            _print_dim(f"[{'failed' if result.is_error else 'result'}: {text}]")

    def _end_text(self, message: Message) -> None:
        """Print the text of a message if no event has printed it."""
        text = message.text
        if not self._printed and text:
            click.echo(escape_controls(text, sys.stdout))

    def finish(self, message: Message) -> None:
        """Print the rest of the last answer, then its calls, tokens and cost on stderr."""
        if self.form == "json":
            print_json(encode_message(message))
            return
        text = message.text
        if self.extract is not None:
            code = find_code(text, last=self.extract == "last")
            if code is None:
                click.echo("(no code block; this is the whole answer)", err=True)
            click.echo(escape_controls(text if code is None else code, sys.stdout))
        elif self.form == "markdown" and sys.stdout.isatty():
            from rich.markdown import Markdown  # noqa: PLC0415  slow to import

            make_console().print(Markdown(escape_controls(text, sys.stdout)))
        elif not self._printed:
            click.echo(escape_controls(text, sys.stdout))
        self._printed = False
        if message.tool_calls:
            print_calls(message)
        print_usage(message)

    def finish_value(self, value: Any, message: Message, usage: Usage) -> None:
        """Print the JSON of a typed answer, then the usage of all attempts on stderr."""
        if self.form == "json":
            print_json(encode_message(message))
            return
        print_json(value)
        metadata = attrs.evolve(message.metadata, usage=usage, stop_reason=StopReason.END_TURN)
        print_usage(attrs.evolve(message, metadata=metadata))

    def fail(self, error: BaseException) -> None:
        """Print the partial answer of an error, if the output is JSON."""
        partial = error.partial if isinstance(error, InterlinguaError) else None
        if self.form == "json" and isinstance(partial, Message) and partial.content:
            print_json(encode_message(partial))


class _CannotStreamError(Exception):
    """The model cannot stream."""


def _print_dim(text: str) -> None:
    click.secho(escape_controls(text, sys.stderr), err=True, dim=True)
