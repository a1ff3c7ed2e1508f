"""The gateway's configuration: a TOML file, or the same as values."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import attrs
from attrs import validators
from cattrs import ClassValidationError, Converter, transform_error
from cattrs.gen import make_dict_structure_fn

from interlingua.errors import CallerError, DecodeError

MEGABYTE = 1 << 20
WAYS = ("none", "keys")
BALANCES = ("order", "weights", "least-busy")
_WILD = re.compile(r"[*?\[]")
_ADDRESS = re.compile(
    r"(https://[A-Za-z0-9.-]+|http://(localhost|127\.0\.0\.1|\[::1\]))(:\d{1,5})?(?P<path>/[^?#\s]*)?", re.ASCII
)


def _filled(_instance: Any, field: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    if not value or not all(value):
        raise ValueError(f"'{field.name}' must name at least one model, and none may be empty")


def _named_once(_instance: Any, field: attrs.Attribute[Any], value: tuple[Deployment, ...]) -> None:
    for at, one in enumerate(value):
        if one.name in [other.name for other in value[:at]]:
            raise ValueError(f"'{field.name}[{at}].name' is used twice: {one.name}")


def _not_empty(_instance: Any, field: attrs.Attribute[Any], value: str) -> None:
    if not value:
        raise ValueError(f"'{field.name}' must not be empty")


def _optional_positive() -> Any:
    return validators.optional(validators.gt(0))


def _address(_instance: Any, field: attrs.Attribute[Any], value: str) -> None:
    if not _ADDRESS.fullmatch(value):
        raise ValueError(f"'{field.name}' must be an https address, or an http address of this machine, not {value!a}")


def _origin(_instance: Any, field: attrs.Attribute[Any], value: str) -> None:
    found = _ADDRESS.fullmatch(value)
    if not found or found["path"] or value != value.lower():
        raise ValueError(f"'{field.name}' must be an address without a path, such as https://gateway.example.org")


def _web_origins(_instance: Any, field: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    for at, one in enumerate(value):
        if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[a-z0-9.\[\]:_-]+", one):
            raise ValueError(f"'{field.name}[{at}]' must be an origin, such as http://localhost:3000, not {one!a}")


def _host_names(_instance: Any, field: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    for at, one in enumerate(value):
        if not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]*:[0-9a-f:.]*", one):
            raise ValueError(f"'{field.name}[{at}]' must be a name in lower case, without a port, not {one!a}")


def _someone(instance: AdminLogin, field: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    if not all([*value, *instance.groups]) or not (value or instance.groups):
        raise ValueError(f"'{field.name}' must list an address, or groups a group, and none may be empty")


def _openid(_instance: Any, field: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    if "openid" not in value:
        raise ValueError(f"'{field.name}' must have openid")


def _with_keys(instance: GatewayConfig, field: attrs.Attribute[Any], value: AdminLogin | None) -> None:
    if value is not None and instance.auth != "keys":
        raise ValueError(f"'{field.name}' needs auth = \"keys\"")


@attrs.frozen(kw_only=True)
class Deployment:
    """A place where a model answers, with its limits in each gateway.

    Attributes:
        name: its name in `to` of routes: letters, digits, `.`, `_` and `-`.
        model: the model, as `provider:name`.
        base_url: the address of its service; empty takes the provider's.
        api_key_env: the environment variable with its key; empty takes the provider's.
        weight: its share of the conversations beside those of the other models of a route, which have 1.
        parallel: most requests in progress.
        requests_per_minute: most requests in a minute of the clock.
        tokens_per_minute: the tokens, input and output, after which it gets no more requests in a minute of the clock.
    """

    name: str = attrs.field(validator=validators.matches_re(r"[A-Za-z0-9._-]+"))
    model: str = attrs.field(validator=validators.matches_re(r"[^:]+:.+"))
    base_url: str = attrs.field(default="", validator=validators.matches_re(r"(https?://.+)?"))
    api_key_env: str = ""
    weight: float = attrs.field(default=1.0, validator=validators.gt(0))
    parallel: int | None = attrs.field(default=None, validator=_optional_positive())
    requests_per_minute: int | None = attrs.field(default=None, validator=_optional_positive())
    tokens_per_minute: int | None = attrs.field(default=None, validator=_optional_positive())


@attrs.frozen(kw_only=True)
class ModelRoute:
    """The models that answer for a name that callers use.

    Attributes:
        match: the model name, or a pattern with `*` and `?`, such as `fast-*`.
        to: models as `provider:name`, or names of deployments, asked one after another until one has started to answer.
            `{model}` is replaced by the requested name.
        balance: `order` asks them in the order of `to`. `weights` divides the conversations among them by weight, and
            `least-busy` prefers the one with the fewest requests in progress for its weight.
        retries: how often each model is tried again.
        first_byte: most seconds until an answer starts.
        between_chunks: most seconds between two chunks of an answer.
        total: most seconds for a whole answer, after which no model is tried again; None means no limit.
        max_tokens: most output tokens that a caller may request; a larger number is reduced to it, with a row in the
            ledger.
        allow_loss: True to send a note instead of a block that the caller has just added and the model cannot take.
            Off by default: callers see an error, but not the ledger, and would take the answer for one about their
            file.
        unpriced_usd: the most that a request may cost in addition to its tokens, in USD, for tools that the service
            runs, plugins and the like. It is reserved and noted for each request with them. None, the default, refuses
            them for keys with a budget.
        cache_seconds: how long an answer is kept for exactly the same request of the same key; 0 keeps none.
    """

    match: str = attrs.field(validator=_not_empty)
    to: tuple[str, ...] = attrs.field(validator=_filled)
    balance: str = attrs.field(default="order", validator=validators.in_(BALANCES))
    retries: int = attrs.field(default=2, validator=validators.ge(0))
    first_byte: float = attrs.field(default=600.0, validator=validators.gt(0))
    between_chunks: float = attrs.field(default=120.0, validator=validators.gt(0))
    total: float | None = attrs.field(default=None, validator=_optional_positive())
    max_tokens: int | None = attrs.field(default=None, validator=_optional_positive())
    allow_loss: bool = False
    unpriced_usd: float | None = attrs.field(default=None, validator=validators.optional(validators.ge(0)))
    cache_seconds: float = attrs.field(default=0.0, validator=validators.ge(0))

    @property
    def is_pattern(self) -> bool:
        """True if names other than `match` itself use this route."""
        return _WILD.search(self.match) is not None

    def targets(self, asked: str) -> tuple[str, ...]:
        """Return the models for a requested name."""
        return tuple([model.replace("{model}", asked) for model in self.to])


@attrs.frozen(kw_only=True)
class AdminLogin:
    """Logins to `/admin` with OpenID Connect (extra `oidc`).

    Attributes:
        issuer: the issuer in the metadata of the provider: an `https` address, or an `http` address of this machine.
        client_id: the id with which the gateway is registered there.
        client_secret_env: the environment variable with the client's secret; empty for a public client.
        url: the gateway's address in browsers, such as `https://gateway.example.org`; the provider must allow
            `/admin/login/done` below it as a redirect.
        emails: the addresses of administrators; only those count that the provider has verified.
        groups: the groups of administrators.
        groups_claim: the claim of the ID token that lists groups.
        scopes: the scopes that are requested.
        hours: the hours after which a session ends.
    """

    issuer: str = attrs.field(validator=_address)
    client_id: str = attrs.field(validator=_not_empty)
    client_secret_env: str = ""
    url: str = attrs.field(validator=_origin)
    emails: tuple[str, ...] = attrs.field(default=(), validator=_someone)
    groups: tuple[str, ...] = ()
    groups_claim: str = "groups"
    scopes: tuple[str, ...] = attrs.field(default=("openid", "email", "profile"), validator=_openid)
    hours: float = attrs.field(default=8.0, validator=validators.gt(0))


@attrs.frozen(kw_only=True)
class GatewayConfig:
    """All settings.

    Attributes:
        routes: the first route that matches a requested name is used. Without a match, `provider:name` is used
            unchanged, and any other name is a model of the provider whose API the caller uses.
        deployments: places of models, for `to` of the routes.
        rest_after: failures of a model, one after another, after which it rests: routes ask their other models.
        rest: seconds of that rest. Then one request tries the model; if it fails, the model rests again.
        routes_only: True to serve only names that a route matches.
        apis: provider keys: if two plugins serve the same path, the first of these has it. If neither is named,
            the gateway does not start.
        auth: `keys` (each request needs a key of this gateway), or `none`, which is allowed on a loopback address only.
        admin_login: logins to `/admin` with OpenID Connect, in addition to keys of admins; None allows keys only.
        hosts: without keys, the names of this machine that requests may have in `Host`, in addition to `localhost` and
            loopback addresses.
        origins: without keys, the origins of web pages that may send requests, such as `http://localhost:3000`.
        store: the database of keys, budgets and stored state: `sqlite:///file` or `postgresql://…`; empty is a file in
            the user's data folder.
        seal_keys_env: the environment variable with the keys that seal state, 32 bytes as base64 each, separated by
            blanks: the first one seals, all open. Without it a key is made and kept in `seal_key_file`.
        seal_key_file: the file of that key; empty is a file in the user's configuration folder, not beside the store.
        record: the store in which conversations are recorded as sessions: a file, or `postgresql://…` (extra
            `record`); empty records no conversations.
        guards: checks of requests and answers, as `module:name` of subclasses of `Guard`, in the order of their use.
        body_limit: most bytes of a request.
        message_limit: most messages of a request.
        value_limit: most values of a request: members of all its objects and items of all its arrays.
        tool_limit: most tools of a request.
        drain: seconds that open answers have to finish when the gateway stops.
        fetch_urls: True to fetch images from URLs of public addresses in requests, if a model accepts no URLs.
    """

    routes: tuple[ModelRoute, ...] = ()
    deployments: tuple[Deployment, ...] = attrs.field(default=(), validator=_named_once)
    rest_after: int = attrs.field(default=3, validator=validators.gt(0))
    rest: float = attrs.field(default=30.0, validator=validators.gt(0))
    routes_only: bool = False
    apis: tuple[str, ...] = ()
    auth: str = attrs.field(default="none", validator=validators.in_(WAYS))
    admin_login: AdminLogin | None = attrs.field(default=None, validator=_with_keys)
    hosts: tuple[str, ...] = attrs.field(default=(), validator=_host_names)
    origins: tuple[str, ...] = attrs.field(default=(), validator=_web_origins)
    store: str = ""
    seal_keys_env: str = "INTERLINGUA_GATEWAY_SEAL_KEYS"
    seal_key_file: str = ""
    record: str = ""
    guards: tuple[str, ...] = ()
    body_limit: int = attrs.field(default=32 * MEGABYTE, validator=validators.gt(0))
    message_limit: int = attrs.field(default=10_000, validator=validators.gt(0))
    value_limit: int = attrs.field(default=100_000, validator=validators.gt(0))
    tool_limit: int = attrs.field(default=1_000, validator=validators.gt(0))
    drain: float = attrs.field(default=30.0, validator=validators.ge(0))
    fetch_urls: bool = False

    def find_deployment(self, name: str) -> Deployment | None:
        """Return the deployment with a name, or None."""
        return next((one for one in self.deployments if one.name == name), None)

    def find_route(self, asked: str) -> ModelRoute | None:
        """Return the first route that matches a requested name, or None."""
        return next((route for route in self.routes if fnmatchcase(asked, route.match)), None)


def read_config(path: Path) -> GatewayConfig:
    """Read a configuration file.

    Raises:
        DecodeError: the file cannot be read; the message names each wrong field and its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise DecodeError(f"cannot read {path}: {error}") from error
    return config_of(data, str(path), text)


def config_of(data: Mapping[str, Any], name: str = "the configuration", text: str = "") -> GatewayConfig:
    """Make a configuration from plain values, as a file has them.

    Args:
        data: the values.
        name: their source, for messages.
        text: the TOML text, if there is one: messages then name lines.

    Raises:
        DecodeError: a value is invalid; the message says where.
    """
    for field in ("routes", "deployments"):
        tables = data.get(field, [])
        if not isinstance(tables, list | tuple) or not all(isinstance(table, Mapping) for table in tables):
            raise DecodeError(f"{name}: {_located(f'must be tables, [[{field}]] @ $.{field}', text)}")
    try:
        return strict_converter(Deployment, ModelRoute, AdminLogin, GatewayConfig).structure(dict(data), GatewayConfig)
    except ClassValidationError as error:
        reasons = [_located(reason, text) for reason in transform_error(error, format_exception=reason_of)]
        raise DecodeError(f"{name}: {'; '.join(reasons)}") from error
    except (ValueError, TypeError, CallerError) as error:
        raise DecodeError(f"{name}: {error}") from error


def strict_converter(*classes: type) -> Converter:
    """Return a converter that makes values of these classes from plain values, and refuses unknown fields."""
    converter = Converter(forbid_extra_keys=True, prefer_attrib_converters=True)
    for plain in (str, bool, int, float):
        converter.register_structure_hook(plain, _read_plain)
    converter.register_structure_hook_func(lambda kind: kind == tuple[str, ...], _read_names)
    for kind in classes:
        converter.register_structure_hook(kind, make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True))
    return converter


def reason_of(error: BaseException, kind: type | None) -> str:
    """Return the reason why a field is refused, for `transform_error` of cattrs."""
    if isinstance(error, KeyError):
        return "is missing"
    known = getattr(error, "extra_fields", None)  # of cattrs' ForbiddenExtraKeysError
    return f"has no setting {', '.join(sorted(known))}" if known else str(error.args[0] if error.args else error)


def _read_plain(value: Any, kind: Any) -> Any:
    """Return a value of the right type; `1` is a float too, but `true` and `"1"` are not numbers."""
    if type(value) is kind or (kind is float and type(value) is int):
        if kind is float and not math.isfinite(value):
            raise ValueError("must be a finite number")
        return float(value) if kind is float else value
    words = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}
    raise TypeError(f"must be {words[kind]}, not {value!r}")


def _read_names(value: Any, _kind: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise TypeError(
            f"must be a list of strings, such as [{value!r}]" if isinstance(value, str) else "must be a list of strings"
        )
    return tuple(value)


def with_line(message: str, text: str) -> str:
    """Return a message that begins with a field, such as `routes[0].to: …`, with the field's line in TOML text."""
    line = _line_of(text, message.partition(": ")[0])
    return f"line {line}, {message}" if line else message


def _located(reason: str, text: str) -> str:
    """Return a reason of cattrs, `what @ $.routes[0].to`, with the place first and its line in the file."""
    what, _, place = reason.rpartition(" @ $")
    place = place.strip(".")
    named = re.match(r"'([\w.\[\]]+)' ", what)  # attrs' validators name the field themselves
    if named:
        what, place = what[named.end() :], f"{place}.{named[1]}".strip(".")
    unknown = re.match(r"has no setting (\w+)", what)
    line = _line_of(text, unknown[1] if unknown and not place else place)
    where = f"line {line}, " if line else ""
    return where + f"{place} {what}".strip()


def _line_of(text: str, place: str) -> int | None:
    """Return the line of a field in TOML text; None if it is not written as `key = value` in its table."""
    found = re.fullmatch(r"(?:(\w+)(?:\[(\d+)\]|(?=\.)))?\.?(\w*)", place)
    if not text or not found:
        return None
    wanted, key = (found[1], int(found[2] or 0)) if found[1] else None, found[3]
    counts: Counter[str] = Counter()
    table = head = None
    for number, line in enumerate(text.splitlines(), 1):
        if begun := re.match(r"\s*\[?\[(\w+)\]", line):
            table = (begun[1], counts[begun[1]])
            counts[begun[1]] += 1
            head = number if table == wanted or (wanted is None and key == begun[1]) else head
        if key and table == wanted and re.match(rf"\s*{key}\s*=", line):
            return number
        if wanted and table is None and re.match(rf"\s*{wanted[0]}\s*=", line):  # an item of a list
            return number
    return head
