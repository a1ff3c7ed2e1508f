"""The commands `interlingua uploads …`: what a memory of uploads knows, and deleting it at the services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click

from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.output import json_option, print_json, print_table
from interlingua_uploads.uploads import UploadedFile, Uploads

memory_argument = click.argument("memory", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group
def uploads() -> None:
    """Manage uploaded media: list, delete."""


@uploads.command("list")
@memory_argument
@json_option
@plugin_option
def list_command(memory: Path, as_json: bool) -> None:
    """List the files that a memory knows at services.

    MEMORY is the file of `Uploads(MEMORY)`. Nothing is sent.
    """
    files = Uploads(memory).files
    if as_json:
        print_json([_as_json(file) for file in files])
        return
    if not files:
        click.echo(f"{memory} knows no uploaded file", err=True)
        return
    rows = [
        (file.id, file.provider, file.media_type, file.size, _time(file.uploaded_at), _time(file.expires_at))
        for file in files
    ]
    print_table(("file", "provider", "type", "bytes", "uploaded (UTC)", "expires (UTC)"), rows)


@uploads.command("delete")
@memory_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="Delete each file of the accounts whose keys are set.")
@json_option
@plugin_option
@click.pass_obj
def delete_command(context: CommandContext, memory: Path, ids: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Delete files at their services, and forget them.

    ID is one that `uploads list` shows. Keys come from the environment or the configuration. A file that is gone
    already is forgotten. If a service refuses, the files before it are deleted, and the others are kept.
    """
    if bool(ids) == every:
        raise click.UsageError("name the IDs of files, or --all")
    known = Uploads(memory)
    found = {file.id: file for file in known.files}
    if unknown := [name for name in ids if name not in found]:
        raise click.UsageError(f"{memory} knows no file {', '.join(unknown)}; `interlingua uploads list {memory}`")
    with context.client() as client:
        files = known.own_files(client) if every else [found[name] for name in dict.fromkeys(ids)]
        for file in files:
            known.delete(client, file)
            if not as_json:
                click.echo(f"deleted {file.id} ({file.provider})", err=True)
    if as_json:
        print_json([_as_json(file) for file in files])
    elif every and known.files:
        click.echo(f"{len(known.files):,} files of other accounts are kept", err=True)


def _as_json(file: UploadedFile) -> dict[str, Any]:
    expires = file.expires_at and file.expires_at.isoformat()
    return {**attrs.asdict(file), "uploaded_at": file.uploaded_at.isoformat(), "expires_at": expires}


def _time(value: Any) -> str | None:
    return None if value is None else f"{value:%Y-%m-%d %H:%M}"
