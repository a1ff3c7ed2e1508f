"""`new-plugin`: a distribution for a provider of one's own, to be filled in.

Never changes a file that is there. The command group comes in.
What was written goes to stdout, what to do next to stderr.
"""

from __future__ import annotations

from pathlib import Path

import click

from interlingua_cli.state import State

_NEXT = """
Next, in {folder}:
  pip install -e '.[test]'
  pytest tests/test_contract.py   # each rule that fails says what to do; README.md says in which order"""


@click.command("new-plugin")
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder that will hold interlingua-NAME; by default the current one.",
)
@click.pass_obj
def command(state: State, name: str, into: Path) -> None:
    """Write the distribution of a new provider plugin, ready to be filled in.

    NAME is the key of the provider, such as acme: its distribution is interlingua-acme, its models are acme:NAME.
    """
    try:
        from interlingua_contract.commands.scaffold import (  # noqa: PLC0415  no other command needs jinja2
            checked_name,
            render,
        )
    except ModuleNotFoundError as error:
        raise click.ClickException(f"new plugins need {error.name}: pip install 'interlingua[cli]'") from error
    known = state.registry.found().get(checked_name(name))
    if known is not None:
        shipped = f"{known.distribution.name} {known.distribution.version}".strip()
        click.echo(f"warning: {name} is a provider already, from {shipped}; both cannot be installed at once", err=True)
    folder = render(name, into)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            click.echo(path)
    click.echo(_NEXT.format(folder=folder), err=True)
