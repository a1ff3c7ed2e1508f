"""`templates`, `schemas`, `fragments` and `completion`: what a user sets up once and uses often."""

from __future__ import annotations

from typing import Any

import attrs
import click
from click.shell_completion import get_completion_class

from interlingua_cli import COMPLETION
from interlingua_cli.attachments import read_fragment_text
from interlingua_cli.completion import complete_files, complete_fragments, register
from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.fragments import fragment_names, remove_fragment, require_fragment, store_fragment
from interlingua_cli.output import json_option, print_json, print_table
from interlingua_cli.schema import describe_schema, many, parse_short_form, stored_schema, stored_schemas
from interlingua_cli.template import (
    Template,
    complete_templates,
    list_templates,
    read_template,
    template_folder,
    template_path,
)


@click.group("templates", invoke_without_command=True)
@json_option
@plugin_option
@click.pass_context
def templates(ctx: click.Context, as_json: bool) -> None:
    """List the templates of `send -t` and `chat -t`."""
    if ctx.invoked_subcommand is not None:
        return
    found = list_templates(ctx.obj.environ)
    if as_json:
        print_json([_template_json(template) for template in found])
    elif not found:
        click.echo("there is no template yet: `interlingua send … --save NAME` creates one", err=True)
    else:
        rows = [(one.name, one.model, one.prompt or one.system, " ".join(one.tools)) for one in found]
        print_table(("template", "model", "prompt", "tools"), rows, spare=("tools",))


def _template_json(template: Template) -> dict[str, Any]:
    values = attrs.asdict(template, recurse=False)
    return {name: value for name, value in values.items() if value not in (None, (), {})}


@templates.command("show")
@click.argument("name", shell_complete=complete_templates)
@click.pass_obj
def show_template(context: CommandContext, name: str) -> None:
    """Print a template's file."""
    read_template(name, context.environ)  # raises if the template is faulty
    click.echo(template_path(name, context.environ).read_text(encoding="utf-8"), nl=False)


@templates.command("path")
@click.pass_obj
def templates_path(context: CommandContext) -> None:
    """Print the folder of templates."""
    click.echo(template_folder(context.environ))


@click.group("schemas", invoke_without_command=True)
@json_option
@plugin_option
@click.pass_context
def schemas(ctx: click.Context, as_json: bool) -> None:
    """List the schemas of earlier answers; `send --schema ID` uses one again."""
    if ctx.invoked_subcommand is not None:
        return
    found = stored_schemas(ctx.obj.environ)
    if as_json:
        print_json([{"id": name, "schema": schema} for name, schema in found.items()])
    elif not found:
        click.echo("no schema is stored yet: `interlingua send --schema …` stores its schema", err=True)
    else:
        print_table(("id", "fields"), [(name, describe_schema(schema)) for name, schema in found.items()])


@schemas.command("dsl")
@click.argument("text")
@click.option("--multi", is_flag=True, help="For a list of these objects under `items`.")
def dsl(text: str, multi: bool) -> None:
    """Print the JSON Schema of a short form, such as `name, age int, tags: a hint`."""
    schema = parse_short_form(text)
    print_json(many(schema) if multi else schema)


@schemas.command("show")
@click.argument("name", metavar="ID")
@click.pass_obj
def show_schema(context: CommandContext, name: str) -> None:
    """Print a stored schema."""
    print_json(stored_schema(name, context.environ))


@click.group("fragments", invoke_without_command=True)
@json_option
@plugin_option
@click.pass_context
def fragments(ctx: click.Context, as_json: bool) -> None:
    """List the stored fragments, for `-f NAME`."""
    if ctx.invoked_subcommand is not None:
        return
    environ = ctx.obj.environ
    found = {name: require_fragment(name, environ) for name in fragment_names(environ)}
    if as_json:
        print_json([{"name": name, "text": text} for name, text in found.items()])
    elif not found:
        click.echo("no fragment is stored yet: `interlingua fragments set NAME PLACE` stores one", err=True)
    else:
        rows = [(name, len(text), next(iter(text.strip().splitlines()), "")) for name, text in found.items()]
        print_table(("fragment", "characters", "begins"), rows)


@fragments.command("set")
@click.argument("name")
@click.argument("place", shell_complete=complete_files)
@click.pass_obj
def set_fragment(context: CommandContext, name: str, place: str) -> None:
    """Store the text of a file, an http(s) URL or - for standard input under NAME.

    The stored text does not change with the file; a fragment of this name is replaced.
    """
    click.echo(f"stored as {store_fragment(name, read_fragment_text(place), context.environ)}", err=True)


@fragments.command("show")
@click.argument("name", shell_complete=complete_fragments)
@click.pass_obj
def show_fragment(context: CommandContext, name: str) -> None:
    """Print a stored fragment."""
    click.echo(require_fragment(name, context.environ), nl=False)


@fragments.command("remove")
@click.argument("name", shell_complete=complete_fragments)
@click.pass_obj
def remove_fragment_command(context: CommandContext, name: str) -> None:
    """Remove a stored fragment; conversations that contain its text keep it."""
    remove_fragment(name, context.environ)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@plugin_option
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and models in your shell.

    bash: `eval "$(interlingua completion bash)"` in ~/.bashrc; zsh: the same in ~/.zshrc; fish: `interlingua
    completion fish > ~/.config/fish/completions/interlingua.fish`.
    """
    register()
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101  click has these three
    click.echo(found(ctx.find_root().command, {}, "interlingua", COMPLETION).source())
