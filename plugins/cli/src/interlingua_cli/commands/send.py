"""`send`: one question, one answer.

Never keeps anything. The command group comes in.
Text goes to stdout and the bill to stderr, so an answer can be piped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.codec.stored import encode_message
from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.types.blocks import ContentBlock, TextBlock
from interlingua.types.factories import system, user
from interlingua.types.messages import Message
from interlingua_cli.answer import print_bill, print_calls, print_stream
from interlingua_cli.attach import attached
from interlingua_cli.show import json_option, print_json
from interlingua_cli.state import State, plugin_option
from interlingua_cli.stdio import piped_text, shown, words
from interlingua_cli.typed import option_option

if TYPE_CHECKING:
    from interlingua.http.client import Client


@click.command("send")
@click.argument("model")
@click.argument("text", nargs=-1, type=words)
@click.option("-s", "--system", "instructions", type=words, metavar="TEXT", help="System prompt.")
@click.option("-f", "--file", "files", type=click.Path(exists=True, dir_okay=False, path_type=Path), multiple=True,
              help="Attach an image, audio, a PDF or a text file; may be repeated.")  # fmt: skip
@click.option("--url", metavar="BASE", help="Another base URL for the provider, such as a local server's.")
@option_option
@click.option("--no-stream", is_flag=True, help="Wait for the whole answer.")
@json_option
@plugin_option
@click.pass_obj
def command(state: State, model: str, text: tuple[str, ...], instructions: str | None, files: tuple[Path, ...],
            url: str | None, options: Mapping[str, Any], no_stream: bool, as_json: bool) -> None:  # fmt: skip
    """Send TEXT to a model and print its answer.

    Without TEXT, or where TEXT is -, standard input is read. With --json the answer is printed as a canonical message.
    An answer that is stopped by Ctrl-C, or breaks off, is printed as far as it came.
    """
    messages = _question(text, instructions, files)
    with state.client(model, url) as client:
        answer = None if no_stream else _streamed(client, messages, options, as_json=as_json)
        if answer is None:
            answer = client.send(messages, **options)
            if not as_json:
                click.echo(shown(answer.text_content(), sys.stdout))
    if as_json:
        print_json(encode_message(answer))
        return
    print_calls(answer)
    print_bill(answer)


def _streamed(
    client: Client, messages: Sequence[Message], options: Mapping[str, Any], *, as_json: bool
) -> Message | None:
    """Return an answer, its text printed as it comes unless it is JSON; None from a model that cannot stream."""
    try:
        stream = client.stream(messages, **options)
        try:
            with stream:
                if not as_json:
                    print_stream(stream)
                return stream.message
        except (InterlinguaError, KeyboardInterrupt):
            if as_json and stream.partial.content:
                print_json(encode_message(stream.partial))
            raise
    except CapabilityError as error:
        if error.path != "streaming":
            raise
        return None


def _question(text: tuple[str, ...], instructions: str | None, files: tuple[Path, ...]) -> list[Message]:
    if "-" in text or not (text or files or sys.stdin.isatty()):
        piped = piped_text()
        text = tuple(piped if word == "-" else word for word in text) or (piped,)
    said = " ".join(text)
    blocks: list[ContentBlock] = [attached(file) for file in files]
    if said:
        blocks.append(TextBlock(text=said))
    if not blocks:
        raise click.UsageError("nothing to send: give TEXT, a --file, or pipe text in")
    return [*([system(instructions)] if instructions else []), user(blocks)]
