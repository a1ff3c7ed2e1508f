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
    """Which models answer for a name that callers ask for.

    Attributes:
        match: the name, or a pattern with `*` and `?`, such as `fast-*`.
        to: models as `provider:name`, tried in order: the next one answers where one fails before its answer began.
            `{model}` stands for the name that was asked for.
        retries: how often each is tried again by itself.
        first_byte: seconds until a model has to begin to answer.
        between_chunks: seconds from one piece of an answer to the next.
        total: seconds for all of it; none by default.
        max_tokens: most tokens that a caller may ask for; more is cut to it, with a row in the ledger.
    """

    match: str
    to: tuple[str, ...]
    retries: int = 2
    first_byte: float = 600.0
    between_chunks: float = 120.0
    total: float | None = None
    max_tokens: int | None = None

    def targets(self, asked: str) -> tuple[str, ...]:
        """Return the models for the name that was asked for."""
        return tuple([model.replace("{model}", asked) for model in self.to])


@attrs.frozen(kw_only=True)
class GatewayConfig:
    """All settings.

    Attributes:
        routes: looked at in order; the first that matches counts. A name that none matches goes as it is when it is
            `provider:name`, else to the provider whose API is spoken.
        apis: provider keys: if two plugins serve the same path, the first of these has it, then the first by key.
        auth: `keys` (each request needs a key of the gateway's) or `none`, which only a loopback address may have.
        store: where keys, budgets and kept state are: `sqlite:///file` or `postgresql://…`; empty is a file in the
            user's data folder.
        seal_keys_env: environment variable with the keys that seal state, 32 bytes as base64 each, separated by blanks:
            the first one seals, all open. Without it a key is made and kept in the store.
        record: where conversations are recorded as sessions: a file, or `postgresql://…` (extra `record`); empty
            records none.
        body_limit: most bytes of a request.
        drain: seconds that open answers get when the gateway stops.
        fetch_urls: True to fetch images that a caller names by address, where a model takes no addresses. Off: a caller
            could make the gateway read addresses of its own network.
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
        """Return the route of a name.

        Args:
            asked: the name in the request.
            provider: whose API is spoken.
        """
        for route in self.routes:
            if fnmatchcase(asked, route.match):
                return route
        return ModelRoute(match=asked, to=(asked if ":" in asked else f"{provider}:{asked}",))


def read_config(path: Path) -> GatewayConfig:
    """Read a configuration file.

    Raises:
        DecodeError: it cannot be read; the message names the place.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DecodeError(f"{path} cannot be read: {error}") from error
    return config_of(data, str(path))


def config_of(data: Mapping[str, Any], name: str = "the configuration") -> GatewayConfig:
    """Make a configuration of plain values, as the file has them.

    Raises:
        DecodeError: one of them is not as it should be; the message names the place.
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
