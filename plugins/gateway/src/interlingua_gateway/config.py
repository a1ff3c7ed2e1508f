"""The gateway's configuration: a TOML file, or the same as values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import attrs
from cattrs import ClassValidationError, Converter, transform_error
from cattrs.gen import make_dict_structure_fn

from interlingua.errors import CallerError, DecodeError

MEGABYTE = 1 << 20
WAYS = ("none", "keys")


@attrs.frozen(kw_only=True)
class ModelRoute:
    """The models that answer for a name that callers use.

    Attributes:
        match: the model name, or a pattern with `*` and `?`, such as `fast-*`.
        to: models as `provider:name`, tried in order until one has started to answer. `{model}` is replaced by the
            requested name.
        retries: how often each model is tried again.
        first_byte: most seconds until an answer starts.
        between_chunks: most seconds between two chunks of an answer.
        total: most seconds for a whole answer; None means no limit.
        max_tokens: most output tokens that a caller may request; a larger number is reduced to it, with a row in the
            ledger.
        allow_loss: True to send a note instead of a block that the caller has just added and the model cannot take.
            Off by default: callers see an error, but not the ledger, and would take the answer for one about their
            file.
    """

    match: str
    to: tuple[str, ...]
    retries: int = 2
    first_byte: float = 600.0
    between_chunks: float = 120.0
    total: float | None = None
    max_tokens: int | None = None
    allow_loss: bool = False

    def targets(self, asked: str) -> tuple[str, ...]:
        """Return the models for a requested name."""
        return tuple([model.replace("{model}", asked) for model in self.to])


@attrs.frozen(kw_only=True)
class GatewayConfig:
    """All settings.

    Attributes:
        routes: the first route that matches a requested name is used. Without a match, `provider:name` is used
            unchanged, and any other name is a model of the provider whose API the caller uses.
        apis: provider keys: if two plugins serve the same path, the first of these has it. If neither is named,
            the gateway does not start.
        auth: `keys` (each request needs a key of this gateway), or `none`, which is allowed on a loopback address only.
        store: the database of keys, budgets and stored state: `sqlite:///file` or `postgresql://…`; empty is a file in
            the user's data folder.
        seal_keys_env: the environment variable with the keys that seal state, 32 bytes as base64 each, separated by
            blanks: the first one seals, all open. Without it a key is made and kept in the store.
        record: the store in which conversations are recorded as sessions: a file, or `postgresql://…` (extra
            `record`); empty records no conversations.
        body_limit: most bytes of a request.
        drain: seconds that open answers have to finish when the gateway stops.
        fetch_urls: True to fetch images from URLs of public addresses in requests, if a model accepts no URLs.
    """

    routes: tuple[ModelRoute, ...] = ()
    apis: tuple[str, ...] = ()
    auth: str = attrs.field(default="none", validator=attrs.validators.in_(WAYS))
    store: str = ""
    seal_keys_env: str = "INTERLINGUA_GATEWAY_SEAL_KEYS"
    record: str = ""
    body_limit: int = 32 * MEGABYTE
    drain: float = 30.0
    fetch_urls: bool = False

    def route(self, asked: str, provider: str) -> ModelRoute:
        """Return the route of a requested name.

        Args:
            asked: the name in the request.
            provider: the key of the provider whose API the caller uses.
        """
        for route in self.routes:
            if fnmatchcase(asked, route.match):
                return route
        return ModelRoute(match=asked, to=(asked if ":" in asked else f"{provider}:{asked}",))


def read_config(path: Path) -> GatewayConfig:
    """Read a configuration file.

    Raises:
        DecodeError: the file cannot be read; the message says where the problem is.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DecodeError(f"cannot read {path}: {error}") from error
    return config_of(data, str(path))


def config_of(data: Mapping[str, Any], name: str = "the configuration") -> GatewayConfig:
    """Make a configuration from plain values, as a file has them.

    Raises:
        DecodeError: a value is invalid; the message says where.
    """
    converter = Converter(forbid_extra_keys=True, prefer_attrib_converters=True)
    for kind in (ModelRoute, GatewayConfig):
        converter.register_structure_hook(kind, make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True))
    try:
        return converter.structure(dict(data), GatewayConfig)
    except ClassValidationError as error:
        raise DecodeError(f"{name}: {'; '.join(transform_error(error))}") from error
    except (ValueError, TypeError, CallerError) as error:
        raise DecodeError(f"{name}: {error}") from error
