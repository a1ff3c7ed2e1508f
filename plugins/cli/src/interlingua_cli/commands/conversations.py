"""`send` and `chat`: talk with a model."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.codec import encode_message
from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.types import ContentBlock, Message, TextBlock, system, user
from interlingua_cli.chat import ModelChat, run_chat
from interlingua_cli.input import attach_file, check_text, option_option, read_conversation, read_text, url_option
from interlingua_cli.output import json_option, print_calls, print_json, print_stream, print_usage
from interlingua_cli.state import MODEL, State, plugin_option
from interlingua_cli.streams import escape_controls

if TYPE_CHECKING:
    from interlingua.http.client import Client


@click.command("send")
@click.argument("model", type=MODEL)
@click.argument("text", nargs=-1, type=check_text)
@click.option("-s", "--system", "instructions", type=check_text, metavar="TEXT", help="System prompt.")
@click.option("-f", "--file", "files", type=click.Path(exists=True, dir_okay=False, path_type=Path), multiple=True,
              help="Attach an image, audio, a PDF or a text file; may be repeated.")  # fmt: skip
@url_option
@option_option
@click.option("--no-stream", is_flag=True, help="Wait for the whole answer.")
@json_option
@plugin_option
@click.pass_obj
def send(state: State, model: str, text: tuple[str, ...], instructions: str | None, files: tuple[Path, ...],
         url: str | None, options: Mapping[str, Any], no_stream: bool, as_json: bool) -> None:  # fmt: skip
    """Send TEXT to a model and print its answer.

    Text piped in stands before TEXT, or in place of a - in it. With --json the answer is a canonical message. One that
    is stopped by Ctrl-C, or breaks off, is printed as far as it came.
    """
    messages = _make_messages(text, instructions, files)
    with state.client(model, url) as client:
        answer = None if no_stream else _stream(client, messages, options, as_json=as_json)
        if answer is None:
            answer = client.send(messages, **options)
            if not as_json:
                click.echo(escape_controls(answer.text_content(), sys.stdout))
    if as_json:
        print_json(encode_message(answer))
        return
    print_calls(answer)
    print_usage(answer)


def _stream(
    client: Client, messages: Sequence[Message], options: Mapping[str, Any], *, as_json: bool
) -> Message | None:
    """Return the answer, printing its text as it arrives unless JSON is wanted; None if the model cannot stream."""
    try:
        stream = client.stream(messages, **options)
        try:
            with stream:
                if not as_json:
                    print_stream(stream)
                found: Message = stream.message
                return found
        except (InterlinguaError, KeyboardInterrupt):
            if as_json and stream.partial.content:
                print_json(encode_message(stream.partial))
            raise
    except CapabilityError as error:
        if error.path != "streaming":
            raise
        return None


def _make_messages(text: tuple[str, ...], instructions: str | None, files: tuple[Path, ...]) -> list[Message]:
    said = read_text(text)
    blocks: list[ContentBlock] = [attach_file(file) for file in files]
    if said.strip():
        blocks.append(TextBlock(text=said))
    if not blocks:
        raise click.UsageError("nothing to send: give TEXT, a --file, or pipe text in")
    return [*([system(instructions)] if instructions else []), user(blocks)]


@click.command("chat")
@click.argument("model", type=MODEL)
@url_option
@click.option("-s", "--system", "instructions", type=check_text, metavar="TEXT",
              help="System prompt of a new conversation.")  # fmt: skip
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the conversation to this JSON Lines file after each turn.")  # fmt: skip
@click.option("--resume", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Go on with this conversation; it is saved there too, unless --save says where.")  # fmt: skip
@option_option
@plugin_option
@click.pass_obj
def chat(state: State, model: str, url: str | None, instructions: str | None, save: Path | None,
         resume: Path | None, options: Mapping[str, Any]) -> None:  # fmt: skip
    """Talk with a model; answers stream.

    Enter sends a line; three double quotes open and close a message of several lines. /model MODEL goes on with
    another model and shows what the conversation loses there; /help lists the rest. Ctrl-C stops an answer and keeps
    what came; Ctrl-D ends.
    """
    if save is not None and save != resume and save.exists() and save.stat().st_size:
        raise click.UsageError(f"{save} holds something already: --resume it, or save elsewhere")
    if save is not None and not save.parent.is_dir():
        raise click.UsageError(f"there is no folder {save.parent} to save in")
    state.ledger_shown = True
    messages: list[Message] = read_conversation(str(resume)) if resume else []
    if instructions and not messages:
        messages.append(system(instructions))
    with state.client(model, url) as client:
        session = ModelChat(state, client, str(state.registry.resolve(model)), messages, save or resume, options)
        run_chat(session)
