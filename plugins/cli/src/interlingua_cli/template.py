"""Templates: prompts with their settings, as TOML files in `templates` beside the configuration file."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from interlingua.errors import CallerError
from interlingua.types import ToolChoice
from interlingua_cli.completion import complete_files
from interlingua_cli.config import config_path
from interlingua_cli.context import CommandContext
from interlingua_cli.input import option_pairs, write_file

_PLACE = re.compile(r"\$(\$|[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


@attrs.frozen(kw_only=True)
class Template:
    """The settings of a template; each may be missing.

    Attributes:
        name: name of the template.
        prompt: text of the question; `$input` is the text of the command line, which is appended if the prompt does not
            have it; `$name` is a parameter, `$$` a dollar.
        system: the system prompt, with the same parameters.
        model: the model that answers if the command line has none.
        options: options of the request: strings as for `-o`, or values of TOML.
        schema: value of `--schema`, or a table.
        schema_multi: value of `--schema-multi`.
        tools: values of `--tool`.
        fragments: text before the prompt, as for `--fragment`.
        defaults: default values of parameters.
    """

    name: str = ""
    prompt: str | None = None
    system: str | None = None
    model: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
    schema: str | Mapping[str, Any] | None = None
    schema_multi: str | None = None
    tools: Sequence[str] = ()
    fragments: Sequence[str] = ()
    defaults: Mapping[str, str] = attrs.field(factory=dict)

    def fill_prompt(self, said: str, given: Mapping[str, str]) -> str:
        """Return the question.

        Raises:
            click.UsageError: a parameter has no value.
        """
        if self.prompt is None:
            return said
        values = {**self.defaults, **given, "input": said}
        filled = self._fill(self.prompt, values)
        uses_input = any(match[1].strip("{}") == "input" for match in _PLACE.finditer(f"{self.prompt}\n{self.system}"))
        return filled if uses_input or not said else f"{filled}\n{said}"

    def fill_system(self, said: str, given: Mapping[str, str]) -> str | None:
        """Return the system prompt; raises as `fill_prompt`."""
        return None if self.system is None else self._fill(self.system, {**self.defaults, **given, "input": said})

    def option_pairs(self) -> list[str]:
        """Return the options in the form of `-o`."""
        return option_pairs(self.options)

    def _fill(self, text: str, values: Mapping[str, str]) -> str:
        missing: list[str] = []

        def value(match: re.Match[str]) -> str:
            name = match[1].strip("{}")
            if name == "$":
                return "$"
            if name not in values:
                missing.append(name)
            return values.get(name, "")

        filled = _PLACE.sub(value, text)
        if missing:
            pairs = " ".join(f"-p {name} VALUE" for name in dict.fromkeys(missing))
            raise click.UsageError(f"template {self.name!r} needs {pairs}")
        return filled


_TEXTS = ("prompt", "system", "model", "schema_multi")
_LISTS = ("tools", "fragments")


def template_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of templates, beside the configuration file."""
    return config_path(environ).parent / "templates"


def template_path(name: str, environ: Mapping[str, str]) -> Path:
    """Return the file of a template; a name with a slash or the ending .toml is a path itself."""
    if "/" in name or name.endswith(".toml"):
        return Path(name).expanduser()
    if not _NAME.match(name):
        raise CallerError(f"{name!r} is not a name for a template: use letters, digits, '_', '-' and '.'")
    return template_folder(environ) / f"{name}.toml"


def read_template(name: str, environ: Mapping[str, str]) -> Template:
    """Read a template.

    Raises:
        CallerError: there is no template of this name, or a setting is wrong.
    """
    path = template_path(name, environ)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CallerError(f"there is no template {name!r} ({path}); `interlingua templates` lists them") from error
    except ValueError as error:
        raise CallerError(f"cannot read {path}: {error}") from error
    known = {field for field in attrs.fields_dict(Template) if field != "name"}
    for part, value in data.items():
        if part not in known:
            raise CallerError(f"{path}: unknown setting {part!r}; known are {', '.join(sorted(known))}")
        if not _fits(part, value):
            raise CallerError(f"{path}: {part} has the wrong type")
    return Template(name=name, **data)


def _fits(part: str, value: Any) -> bool:
    if part in _TEXTS:
        return isinstance(value, str)
    if part in _LISTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if part == "defaults":
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, dict) or (part == "schema" and isinstance(value, str))


def write_template(template: Template, environ: Mapping[str, str]) -> Path:
    """Write a template under its name, replacing a template of that name; return its file."""
    path = template_path(template.name, environ)
    values = attrs.asdict(template, recurse=False)
    lines = [f"{name} = {_toml(values[name])}" for name in values if name != "name" and values[name]]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "".join(f"{line}\n" for line in lines))
    return path


def _toml(value: Any) -> str:
    """Return a value as TOML; strings, numbers and booleans have the same form as in JSON."""
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(name)} = {_toml(item)}" for name, item in value.items() if item is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_toml, value))}]"
    value = value.name if isinstance(value, ToolChoice) else value
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def list_templates(environ: Mapping[str, str]) -> list[Template]:
    """Return the stored templates, by name.

    Raises:
        CallerError: a template cannot be read.
    """
    return [read_template(path.stem, environ) for path in sorted(template_folder(environ).glob("*.toml"))]


def read_parameters(_ctx: click.Context, _parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    """Read `name=value` pairs; a click callback."""
    for pair in pairs:
        if "=" not in pair:
            raise click.BadParameter(f"{pair!r} is not NAME VALUE")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def complete_templates(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the names of templates with this beginning; the shell completes a path."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415  only while completing

    if "/" in incomplete:
        return complete_files(ctx, param, incomplete)
    names = sorted(path.stem for path in template_folder(ctx.ensure_object(CommandContext).environ).glob("*.toml"))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


template_option = click.option(
    "-t", "--template", metavar="NAME", shell_complete=complete_templates,
    help="Use this template: a name, or a TOML file.",
)  # fmt: skip
param_option = click.option(
    "-p", "--param", "parameters", metavar="NAME VALUE", multiple=True, callback=read_parameters,
    help="Set the template's parameter $NAME; may be repeated.",
)  # fmt: skip
