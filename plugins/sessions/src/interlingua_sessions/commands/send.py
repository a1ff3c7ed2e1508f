"""`session send`: one question in a stored session, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from interlingua import InterlinguaError
from interlingua.codec import encode_message
from interlingua.types import ContentBlock, Role, TextBlock
from interlingua_cli.attachments import Attachments, attach_option, attach_type_option, fragment_option
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.input import PairCommand, check_text, option_option, read_text, url_option
from interlingua_cli.output import json_option, print_calls, print_json, print_stream, print_usage
from interlingua_sessions.commands.shared import (
    complete_sessions,
    keep_url,
    session_client,
    session_in,
    store_at,
    store_option,
)
from interlingua_sessions.routing.policy import NoRouteError, SwapRefusedError
from interlingua_sessions.session import Session


@click.command("send", cls=PairCommand)
@click.argument("session", shell_complete=complete_sessions)
@click.argument("text", nargs=-1, type=check_text)
@click.option("-m", "--model", type=MODEL, metavar="MODEL", help="Ask this model, only about this message.")
@click.option(
    "-s", "--system", "instructions", type=check_text, metavar="TEXT", help="System prompt of a new conversation."
)
@fragment_option
@attach_option
@attach_type_option
@url_option
@click.option("--again", is_flag=True, help="Send no new message: answer the conversation so far.")
@option_option
@store_option
@json_option
@plugin_option
@click.pass_obj
def send_command(context: CommandContext, session: str, text: tuple[str, ...], model: str | None,
                 instructions: str | None, fragments: tuple[str, ...], media: tuple[str, ...],
                 typed: tuple[tuple[str, str], ...], url: str | None, again: bool, options: Mapping[str, Any],
                 place: str | None, as_json: bool) -> None:  # fmt: skip
    """Ask a question in a session and print the answer.

    Text from a pipe precedes TEXT, or replaces a - in it. Ctrl-C stops the answer and keeps the received part. A
    session that does not exist is created; without --model, the session's first model answers, or the model to which
    it was switched. --json prints the stored answer, even if it was stopped or interrupted.
    """
    attached = Attachments(fragments=fragments, media=media, typed=typed)
    content = None if again else _content(text, attached)
    with store_at(place) as store, session_client(context, store, session, model, url) as client:
        opened = session_in(context, store, session, client, system=instructions)
        if url is not None and client.model is not None:
            keep_url(context, store, session, client.model, url)
        known = {message.id for message in opened.messages[-1:]}
        try:
            with opened.stream(content, model=model, **options) as stream:
                if not as_json:
                    print_stream(stream)
                answer = stream.message
        except (InterlinguaError, KeyboardInterrupt) as error:
            last = opened.messages[-1:]
            if as_json and last and last[0].role is Role.ASSISTANT and last[0].id not in known:
                print_json(encode_message(last[0]))
            if _may_be_asked_again(opened, error):
                click.echo(
                    "(the question is stored: the same command with --again instead of TEXT asks again)", err=True
                )
            raise
    if as_json:
        print_json(encode_message(answer))
        return
    print_calls(answer)
    print_usage(answer)


def _may_be_asked_again(session: Session, error: BaseException) -> bool:
    """Tell whether the last question has no answer, so that another attempt may help."""
    refused = isinstance(error, (SwapRefusedError, NoRouteError))  # before anything was stored
    return not refused and bool(session.messages) and session.messages[-1].role in (Role.USER, Role.TOOL)


def _content(text: tuple[str, ...], attached: Attachments) -> list[ContentBlock]:
    said = " ".join(text) if attached.takes_standard_input else read_text(text, wait=not attached)
    blocks = attached.blocks()
    if said.strip():
        blocks.append(TextBlock(text=said))
    if not blocks:
        raise click.UsageError("nothing to send: pass TEXT or --attach, pipe text in, or use --again")
    return blocks
