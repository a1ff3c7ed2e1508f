"""Completion in the user's shell: what arguments may be, and bash's way with colons, which model names have."""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from interlingua_cli.context import MODEL, CommandContext

# As click's own, but with the line as it is typed: bash parts words at colons, and replaces what is behind the last.
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value
    local word="${COMP_LINE:0:COMP_POINT}" colon=""
    word="${word##* }"
    [[ $COMP_WORDBREAKS == *:* ]] && colon="${word%%"${word##*:}"}"
    response=$(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete "$1")
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$colon"}")
        fi
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class BashWithColons(BashComplete):
    """Completion for bash, of words with colons as well."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the completed word, without the program's name, and the completed word."""
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)[1:]
        return (words, "") if not words or line[-1].isspace() else (words[:-1], words[-1])


def register() -> None:
    """Let click use this bash completion."""
    add_completion_class(BashWithColons)


def complete_files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """Let the shell complete a file."""
    return [CompletionItem(incomplete, type="file")]


def complete_providers(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the provider keys that begin like this."""
    return [key for key in ctx.ensure_object(CommandContext).registry.found() if key.startswith(incomplete)]


def complete_models_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the words that may follow `models`: a provider, or `default` and a model."""
    words = ctx.params.get("words") or ()
    if words:
        models = MODEL.shell_complete(ctx, param, incomplete) if tuple(words) == ("default",) else []
        return [item.value for item in models]
    return [*(["default"] if "default".startswith(incomplete) else []), *complete_providers(ctx, param, incomplete)]


def complete_first_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """Return models for the first word, which may name one."""
    if ctx.params.get("words") or ctx.params.get("model"):
        return []
    return MODEL.shell_complete(ctx, param, incomplete)


def complete_fragments(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """Return the stored fragments that begin like this, else let the shell complete a file."""
    from interlingua_cli.fragments import fragment_names  # noqa: PLC0415  only while completing

    names = [name for name in fragment_names(ctx.ensure_object(CommandContext).environ) if name.startswith(incomplete)]
    return [*map(CompletionItem, names)] or complete_files(ctx, param, incomplete)
