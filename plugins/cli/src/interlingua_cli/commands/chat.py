"""`chat`: a conversation at the terminal that may change models on the way.

Never loses what was received: an interrupted or failed answer is kept with its status. The command group comes in.
What a line of input means is decided in `cli.prompt`, and what a turn does in `cli.session`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from interlingua.types.factories import system
from interlingua.types.messages import Message
from interlingua_cli.conversation import read_conversation
from interlingua_cli.prompt import talk
from interlingua_cli.session import Session
from interlingua_cli.state import State, plugin_option
from interlingua_cli.stdio import words
from interlingua_cli.typed import option_option


@click.command("chat")
@click.argument("model")
@click.option("--url", metavar="BASE", help="Another base URL for the provider, such as a local server's.")
@click.option("-s", "--system", "instructions", type=words, metavar="TEXT", help="System prompt of a new conversation.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the conversation to this JSON Lines file after each turn.")  # fmt: skip
@click.option("--resume", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Go on with this conversation; it is saved there too, unless --save says where.")  # fmt: skip
@option_option
@plugin_option
@click.pass_obj
def command(state: State, model: str, url: str | None, instructions: str | None, save: Path | None,
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
        session = Session(state, client, str(state.registry.resolve(model)), messages, save or resume, options)
        talk(session)
