"""`send` and `chat`: talk with a model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from interlingua.errors import CallerError, InterlinguaError
from interlingua.types import ContentBlock, Message, MessageStatus, TextBlock
from interlingua_cli.arguments import Arguments
from interlingua_cli.attachments import Attachments, attach_option, attach_type_option, fragment_option
from interlingua_cli.chat import TerminalChat, describe_place, run_chat
from interlingua_cli.completion import complete_first_model
from interlingua_cli.context import MODEL, CommandContext, long_plugin_option
from interlingua_cli.conversation import (
    MemoryConversation,
    OpenConversation,
    cid_option,
    continue_option,
    conversation_id,
    conversation_log,
    no_log_option,
    open_conversation,
    plain_option,
)
from interlingua_cli.input import (
    PairCommand,
    check_text,
    option_option,
    read_conversation,
    read_options,
    read_text,
    url_option,
)
from interlingua_cli.output import json_option
from interlingua_cli.schema import given_schema, schema_multi_option, schema_option, store_schema
from interlingua_cli.show import Show
from interlingua_cli.template import Template, param_option, read_template, template_option, write_template
from interlingua_cli.tools import (
    Tools,
    chain_limit_option,
    confirm_kept_tools,
    confirm_template_tools,
    make_tools,
    tool_option,
    tools_approve_option,
    tools_debug_option,
)

F = TypeVar("F", bound=Callable[..., Any])
_SYSTEM_OPTION = click.option(
    "-s", "--system", "instructions", type=check_text, metavar="TEXT", help="System prompt of a new conversation."
)


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds options in their order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_conversation_options = _all(
    _SYSTEM_OPTION, continue_option, cid_option, plain_option, template_option, param_option, fragment_option,
    tool_option, tools_debug_option, tools_approve_option, chain_limit_option, option_option, url_option,
)  # fmt: skip


@attrs.define(kw_only=True)
class _Given:
    """The options that `send` and `chat` share."""

    instructions: str | None
    go_on: bool
    cid: str | None
    plain: bool
    template: str | None
    parameters: Mapping[str, str]
    fragments: tuple[str, ...]
    tools: tuple[str, ...]
    tools_debug: bool
    tools_approve: bool
    chain_limit: int
    options: Mapping[str, Any]
    url: str | None

    def read_template(self, context: CommandContext, *, is_saved: bool = False) -> Template:
        """Return the template, or an empty one; with `is_saved`, new parameters are allowed."""
        if self.template is None:
            if self.parameters and not is_saved:
                raise click.UsageError("-p sets a template's parameters: choose a template with -t")
            return Template()
        return read_template(self.template, context.environ)

    def all_options(self, template: Template) -> dict[str, Any]:
        """Return the request's options: the command line's override the template's."""
        context = click.get_current_context()
        parameter = click.Option(["--option"])
        return {**read_options(context, parameter, template.option_pairs()), **self.options}

    def kept_arguments(self, context: CommandContext, conversation: str | None) -> Arguments:
        """Return the arguments of the continued conversation."""
        if self.plain and conversation is None:
            raise click.UsageError("--plain continues a conversation without its arguments: add -c or --cid")
        log = conversation_log(context)
        if conversation is None or self.plain or log is None:
            return Arguments()
        return log.arguments(conversation)

    def all_arguments(self, context: CommandContext, template: Template, kept: Arguments, model: str) -> Arguments:
        """Return the arguments without a schema: the command line's, else the template's, else the stored ones."""
        named = [*(name for name in template.tools if name not in self.tools), *self.tools]
        provider = context.registry.resolve(model).provider if self.url or kept.url else None
        return Arguments(
            tools=tuple(named) or kept.tools,
            options={**kept.options, **self.all_options(template)},
            url=self.url or (kept.url if provider == kept.provider else None),
            provider=provider,
        )

    def make_tools(self, template: Template, kept: Arguments, show: Show) -> Tools | None:
        """Return the tools that the model may call, after asking about those of a template or the conversation."""
        brought = [name for name in template.tools if name not in self.tools]
        if self.template is not None:
            confirm_template_tools(self.template, brought)
        names = [*brought, *self.tools] or confirm_kept_tools(kept.tools)
        return make_tools(names, show, approve=self.tools_approve, limit=self.chain_limit)

    def all_fragments(self, template: Template) -> tuple[str, ...]:
        """Return the fragments, the template's first."""
        return (*template.fragments, *self.fragments)


def _choose_model(
    context: CommandContext, named: str | None, template: Template, conversation: str | None
) -> tuple[str, bool]:
    """Return the model that answers, and whether the user chose it for this run."""
    chosen = named or template.model
    log = conversation_log(context)
    if chosen is None and conversation is not None and log is not None:
        try:
            return context.model_or_default(log.model_of(conversation)), False
        except CallerError as error:  # no such conversation: the default model answers in a new one
            if context.config.default_model is None:
                text = f"{error}; to start it, pass a model. {context.describe_models()}."
                raise click.UsageError(text) from error
            return context.config.default_model, False
    return context.model_or_default(chosen), chosen is not None


@click.command("send", cls=PairCommand)
@click.argument("words", nargs=-1, type=check_text, metavar="[MODEL] [TEXT]...", shell_complete=complete_first_model)
@click.option("-m", "--model", type=MODEL, metavar="MODEL", help="The model, instead of the first word.")
@_conversation_options
@attach_option
@attach_type_option
@schema_option
@schema_multi_option
@no_log_option
@click.option("--no-stream", is_flag=True, help="Wait for the whole answer.")
@click.option("-x", "--extract", is_flag=True, help="Print only the first code block of the answer.")
@click.option("--xl", "--extract-last", "extract_last", is_flag=True, help="Print only the last code block.")
@click.option("-R", "--hide-reasoning", is_flag=True, help="Do not show reasoning while it arrives.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True,
              help="Text as it arrives; Markdown formatted on a terminal; the canonical message as JSON.")  # fmt: skip
@click.option("--save", "save_as", metavar="NAME", help="Make a template of this command line and send nothing.")
@json_option
@long_plugin_option
@click.pass_obj
def send(context: CommandContext, /, words: tuple[str, ...], model: str | None, media: tuple[str, ...],
         typed: tuple[tuple[str, str], ...], schema: str | None, schema_multi: str | None, no_log: bool,
         no_stream: bool, extract: bool, extract_last: bool, hide_reasoning: bool, form: Any, save_as: str | None,
         as_json: bool, **given: Any) -> None:  # fmt: skip
    """Send TEXT to a model and print its answer.

    MODEL is the first word if that is a model; else -m, the template, the continued conversation, or the default
    (`interlingua models default`) sets it. Piped text goes before TEXT on separate lines, or replaces a - in it; at a
    terminal without TEXT you type it. The question and the answer are stored for `interlingua logs` and -c. An answer
    that Ctrl-C stops, or that breaks off, is printed and stored as far as it arrived.
    """
    common = _Given(**given)
    template = common.read_template(context, is_saved=save_as is not None)
    conversation = conversation_id(context, common.cid, last=common.go_on)
    if save_as is not None:
        if media or typed:
            raise click.UsageError("a template cannot have attachments: omit -a and --at, or use -f for text")
        _save_template(context, save_as, common, template, model=model, words=words, schema=schema, multi=schema_multi)
        return
    if model is None:
        model, words = _split_model(context, words, needed=template.model is None and conversation is None)
    show = Show(form="json" if as_json else form, extract="last" if extract_last else "first" if extract else None,
                thinking=not hide_reasoning, stream=not no_stream, tools=common.tools_debug)  # fmt: skip
    kept = common.kept_arguments(context, conversation)
    wanted = _read_schema(context, template, schema, schema_multi) or kept.schema
    attached = Attachments(fragments=common.all_fragments(template), media=media, typed=typed)
    content, instructions = _content(words, attached, template, common)
    name, is_named = _choose_model(context, model, template, conversation)
    arguments = attrs.evolve(common.all_arguments(context, template, kept, name), schema=wanted)
    _announce(kept, arguments)
    tools = common.make_tools(template, kept, show)
    with open_conversation(context, conversation, model=name, is_named=is_named, instructions=instructions,
                           arguments=arguments, keep=not no_log) as talk:  # fmt: skip
        if wanted is not None and talk.place is not None:
            store_schema(wanted, context.environ)
        answer = _ask(talk, content, wanted, show, tools)
        if talk.place is not None and sys.stderr.isatty():
            click.secho(f"[kept as {talk.place}]", err=True, dim=True)
    if answer.metadata.status is MessageStatus.CANCELLED:
        raise KeyboardInterrupt


def _announce(kept: Arguments, used: Arguments) -> None:
    """Print the arguments that this run takes over from the continued conversation; tools are confirmed instead."""
    options = {name: value for name, value in kept.options.items() if used.options[name] == value}
    schema = kept.schema if used.schema == kept.schema else None
    taken = Arguments(options=options, schema=schema, url=kept.url if used.url == kept.url else None).describe()
    if taken:
        click.echo(f"(as before: {taken}; --plain omits these)", err=True)


def _ask(
    talk: OpenConversation,
    content: list[ContentBlock],
    schema: Mapping[str, Any] | None,
    show: Show,
    tools: Tools | None,
) -> Message:
    """Ask, print the answer and return it; without an answer, print what happened to the question."""
    try:
        if schema is not None:
            value, message, usage = talk.ask_for(content, schema, tools)
            show.finish_value(value, message, usage)
            return message
        answer = talk.ask(content, show, tools)
    except (InterlinguaError, KeyboardInterrupt) as error:
        show.fail(error)
        kept = isinstance(error, InterlinguaError) and schema is None and error.partial and error.partial.content
        if talk.place is not None and not kept:
            click.echo(talk.without_answer, err=True)
        raise
    show.finish(answer)
    return answer


def _split_model(
    context: CommandContext, words: tuple[str, ...], *, needed: bool
) -> tuple[str | None, tuple[str, ...]]:
    """Return the model in the first word, and the other words; if a model is required, the first word must be one."""
    if words and context.is_model(words[0]):
        return words[0], words[1:]
    if not needed or context.config.default_model is not None:
        return None, words
    if not words:
        return context.model_or_default(None), words
    return MODEL.convert(words[0], None, click.get_current_context()), words[1:]


def _read_schema(
    context: CommandContext, template: Template, schema: str | None, schema_multi: str | None
) -> dict[str, Any] | None:
    if schema is None and schema_multi is None:
        if isinstance(template.schema, Mapping):
            return dict(template.schema)
        schema, schema_multi = template.schema, template.schema_multi
    return given_schema(context.environ, schema, schema_multi)


def _content(
    words: tuple[str, ...], attached: Attachments, template: Template, common: _Given
) -> tuple[list[ContentBlock], str | None]:
    """Return the question, and the system prompt."""
    is_complete = bool(attached) or template.prompt is not None
    said = " ".join(words) if attached.takes_standard_input else read_text(words, wait=not is_complete)
    instructions = common.instructions or template.fill_system(said, common.parameters)
    blocks = attached.blocks()
    prompt = template.fill_prompt(said, common.parameters)
    if prompt.strip():
        blocks.append(TextBlock(text=prompt))
    if not blocks:
        raise click.UsageError("nothing to send: pass TEXT, --attach a file, or pipe text in")
    return blocks, instructions


def _save_template(context: CommandContext, name: str, common: _Given, template: Template, *, model: str | None,
                   words: tuple[str, ...], schema: str | None, multi: str | None) -> None:  # fmt: skip
    """Write the command line as a template, including the settings of the template it uses."""
    if model is None and words and context.is_model(words[0]):
        model, words = words[0], words[1:]
    saved = attrs.evolve(
        template,
        name=name,
        prompt=" ".join(words) or template.prompt,
        system=common.instructions or template.system,
        model=model or template.model,
        options={**template.options, **common.options},
        schema=schema or (template.schema if multi is None else None),
        schema_multi=multi or (template.schema_multi if schema is None else None),
        tools=tuple(dict.fromkeys((*template.tools, *common.tools))),
        fragments=common.all_fragments(template),
        defaults={**template.defaults, **common.parameters},
    )
    click.echo(f"saved as {write_template(saved, context.environ)}", err=True)


@click.command("chat", cls=PairCommand)
@click.argument("model", type=MODEL, required=False)
@_conversation_options
@no_log_option
@click.option("-R", "--hide-reasoning", is_flag=True, help="Do not show reasoning while it arrives.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Keep the conversation in this JSON Lines file instead of the store.")  # fmt: skip
@click.option("--resume", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Continue the conversation in this file, and save it there unless --save is set.")  # fmt: skip
@long_plugin_option
@click.pass_obj
def chat(context: CommandContext, /, model: str | None, no_log: bool, hide_reasoning: bool, save: Path | None,
         resume: Path | None, **given: Any) -> None:  # fmt: skip
    """Talk with a model; answers stream.

    Enter sends a line; three double quotes open and close a message of several lines, and so do !multi and !end; pasted
    lines are one message; !edit opens your editor. /model MODEL continues with another model and shows what the
    conversation loses there; /help lists the other commands. Ctrl-C stops an answer and keeps its start; Ctrl-D ends.
    """
    if save is not None and save != resume and save.exists() and save.stat().st_size:
        raise click.UsageError(f"{save} is not empty: continue it with --resume, or choose another file")
    if save is not None and not save.parent.is_dir():
        raise click.UsageError(f"the folder {save.parent} does not exist")
    context.ledger_shown = True
    common = _Given(**given)
    file = save or resume
    conversation = conversation_id(context, common.cid, last=common.go_on)
    if conversation is not None and resume is not None:
        raise click.UsageError("--resume continues a file, -c and --cid a stored conversation: pass only one of them")
    template = common.read_template(context)
    show = Show(thinking=not hide_reasoning, tools=common.tools_debug)
    fragments = Attachments(fragments=common.all_fragments(template)).blocks()
    name, is_named = _choose_model(context, model, template, conversation)
    kept = attrs.evolve(common.kept_arguments(context, conversation), schema=None)  # a chat answers in text
    arguments = common.all_arguments(context, template, kept, name)
    _announce(kept, arguments)
    tools = common.make_tools(template, kept, show)
    instructions = common.instructions or template.fill_system("", common.parameters)

    def fill(text: str) -> str:
        return template.fill_prompt(text, common.parameters)

    with open_conversation(context, conversation, model=name, is_named=is_named, instructions=instructions,
                           arguments=arguments, keep=file is None and not no_log) as talk:  # fmt: skip
        if isinstance(talk, MemoryConversation):
            talk.file = file
            if resume is not None:
                talk.messages = read_conversation(str(resume))
        if sys.stdin.isatty():
            click.secho(f"{talk.model}, {describe_place(talk)}", err=True, dim=True)
        run_chat(TerminalChat(context, talk, show, tools, fragments, fill))
