"""Arguments of a conversation's questions: tools, options, a schema, a URL; -c restores them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import attrs
import click

from interlingua_cli.input import option_pairs, read_options
from interlingua_cli.output import mask_credentials
from interlingua_cli.schema import describe_schema

_MAY_BE_SECRET = ("headers",)  # options that are not stored


@attrs.frozen(kw_only=True)
class Arguments:
    """Arguments of `send` and `chat` that are stored with a conversation; each may be missing.

    Attributes:
        tools: values of `--tool`.
        options: options of the request.
        schema: JSON Schema of the answers.
        url: base URL of the model's provider.
        provider: key of the provider that `url` belongs to.
    """

    tools: tuple[str, ...] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)
    schema: Mapping[str, Any] | None = None
    url: str | None = None
    provider: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Arguments:
        """Read the output of `to_json`.

        Raises:
            click.BadParameter: this version has no such option.
        """
        return cls(
            tools=tuple(data.get("tools", ())),
            options=read_options(click.get_current_context(), click.Option(["--option"]), data.get("options", ())),
            schema=data.get("schema"),
            url=data.get("url"),
            provider=data.get("provider"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that are set, without those that may hold a key."""
        url = self.url if self.url and mask_credentials(self.url) == self.url else None
        options = {name: value for name, value in self.options.items() if name not in _MAY_BE_SECRET}
        found = {"tools": list(self.tools), "options": option_pairs(options), "schema": self.schema, "url": url}
        return {name: value for name, value in {**found, "provider": url and self.provider}.items() if value}

    def describe(self) -> str:
        """Return the arguments as the words of a command line."""
        schema = (describe_schema(self.schema),) if self.schema else ()
        parts = (("-T", self.tools), ("-o", option_pairs(self.options)), ("--schema", schema),
                 ("--url", (self.url,) if self.url else ()))  # fmt: skip
        return " ".join(f"{option} {shlex.quote(value)}" for option, values in parts for value in values)
