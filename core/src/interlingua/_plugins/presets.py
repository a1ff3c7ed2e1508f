"""Presets: tables that describe services which speak an installed format, each under its own provider key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Self, TypeVar

import attrs

from interlingua._catalogue import ModelInfo, find_model, load_catalogue
from interlingua._json import EMPTY, dumps
from interlingua._plugins.connection import Auth, Connection, ConnectionSettings, bearer_auth
from interlingua._plugins.losses import option_loss
from interlingua.errors import DecodeError, PluginError
from interlingua.types.messages import Loss
from interlingua.types.options import ModelCapabilities, RequestOptions

_T = TypeVar("_T")
_CAPABILITIES = {field.name for field in attrs.fields(ModelCapabilities)} - {"api", "assumed"}


class PresetTable:
    """A table of a preset, or one inside it; its errors contain the preset and the field."""

    def __init__(self, key: str, fields: Mapping[str, Any], path: str = "") -> None:
        self.key, self.fields, self._path = key, fields, path

    def error(self, name: str, why: str) -> PluginError:
        """Return the error of a field, with the preset and the field in its message."""
        return PluginError(f"preset {self.key!r}: {self._path}{name} {why}", provider=self.key)

    def check_names(self, names: Collection[str]) -> None:
        """Raise a PluginError if the table has a field of another name."""
        if unknown := sorted(set(self.fields) - set(names)):
            raise self.error(unknown[0], f"is not a field of a preset; the fields are {', '.join(sorted(names))}")

    def read(self, name: str, kind: type[_T], default: _T) -> _T:
        """Return a field whose type is exactly `kind` (so that True is not an int)."""
        value = self.fields.get(name, default)
        if type(value) is not kind:
            raise self.error(name, f"must be a {kind.__name__}; got {value!r}")
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; a single string counts as a list of one."""
        value = self.fields.get(name, ())
        items = (value,) if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise self.error(name, f"must be a list of strings; got {value!r}")
        return tuple(items)

    def table(self, name: str) -> PresetTable:
        """Return an inner table, empty if it is missing."""
        value = self.fields.get(name) or EMPTY
        if not isinstance(value, Mapping):
            raise self.error(name, f"must be a table; got {value!r}")
        return PresetTable(self.key, value, f"{self._path}{name}.")

    def capabilities(self) -> Mapping[str, Any]:
        """Return the capabilities that the table declares."""
        found = self.table("capabilities")
        found.check_names(_CAPABILITIES)
        return dict(found.fields)


@attrs.frozen(kw_only=True, eq=False)
class Preset:
    """The description of one service: the fields that every format reads.

    Attributes:
        key: provider key.
        base_url: the address, without the path that the format adds.
        base_url_env: environment variable that overrides `base_url`, for servers without a fixed address.
        key_env: environment variables that may hold the key, in order of precedence.
        key_required: False if the service works without a key.
        self_hosted: True if users run the server on their own machines, so that its models cost 0.
        hosts: host names, with a port if only the port identifies the service, that identify its recorded traffic.
        models: the catalogue.
        capabilities: capability fields that differ from the format's defaults.
        facts: facts about every model, as the format's own catalogue has them; those of a model win.
        drops: options of a request that the service ignores or refuses: they are left out, with a row.
    """

    key: str
    base_url: str
    base_url_env: str = ""
    key_env: tuple[str, ...] = ()
    key_required: bool = True
    self_hosted: bool = False
    hosts: tuple[str, ...] = ()
    models: tuple[ModelInfo, ...] = ()
    capabilities: Mapping[str, Any] = EMPTY
    facts: Mapping[str, Any] = EMPTY
    drops: tuple[str, ...] = ()
    _known: dict[str, ModelCapabilities] = attrs.field(factory=dict, init=False)

    @classmethod
    def read(cls, table: PresetTable, models: str | None = None, also: Collection[str] = (), **more: Any) -> Self:
        """Build a preset from a table, whose field `models` is a list of catalogue entries, or the name of a file.

        `models` is the content of that file. The format itself reads the fields in `also`; `more` are their values.

        Raises:
            PluginError: a field is unknown, missing or of the wrong type.
        """
        table.check_names({field.name for field in attrs.fields(Preset) if field.init} - {"key"} | {*also})
        base_url = table.fields.get("base_url")
        if not isinstance(base_url, str):
            raise table.error("base_url", "is missing" if base_url is None else f"must be a str; got {base_url!r}")
        if not base_url.startswith(("http://", "https://")):
            raise table.error("base_url", f"must start with http:// or https://; got {base_url!r}")
        given = {
            "key": table.key,
            "base_url": base_url,
            "base_url_env": table.read("base_url_env", str, ""),
            "key_env": table.strings("key_env"),
            "self_hosted": table.read("self_hosted", bool, False),
            "key_required": table.read("key_required", bool, bool(table.fields.get("key_env"))),
            "hosts": table.strings("hosts"),
            "models": _read_models(table, models),
            "capabilities": table.capabilities(),
            "facts": dict(table.table("facts").fields),
            "drops": table.strings("drops"),
        }
        return cls(**{**given, **more})

    def connection(
        self, settings: ConnectionSettings, auth: Callable[[str | None], Auth] = bearer_auth, **more: Any
    ) -> Connection:
        """Return the connection; `auth` returns the function that sends a key, `more` are the format's fields."""
        environ = settings.environ
        key = settings.api_key or next((environ[name] for name in self.key_env if environ.get(name)), None)
        base_url = settings.base_url or environ.get(self.base_url_env) or self.base_url
        return Connection(
            base_url=base_url.rstrip("/"),
            auth=auth(key),
            env_vars=self.key_env,
            has_key=bool(key) or not self.key_required,
            self_hosted=".*" if self.self_hosted else "",
            hosts=self.hosts,
            **more,
        )

    def capabilities_of(self, model: str, defaults: ModelCapabilities) -> ModelCapabilities:
        """Return the capabilities of a model over the format's defaults. The same model gets the same object."""
        found = self._known.get(model)
        if found is None:
            info = find_model(self.models, model)
            changes = {**self.capabilities, **(info.capabilities if info else EMPTY)}
            if info is not None:
                for name in ("max_context_tokens", "max_output_tokens"):
                    changes.setdefault(name, getattr(info, name) or getattr(defaults, name))
            found = self._known[model] = attrs.evolve(defaults, assumed=info is None, **changes)
        return found

    def facts_of(self, model: str) -> Mapping[str, Any]:
        """Return the facts about a model; an absent fact is unknown."""
        info = find_model(self.models, model)
        return {**self.facts, **info.facts} if info else self.facts

    def drop_options(self, options: RequestOptions) -> tuple[RequestOptions, list[Loss]]:
        """Return the options that the service takes, and a row for each other one."""
        given = [name for name in self.drops if getattr(options, name) not in (None, ())]
        rows = [option_loss(name, "dropped", "this service does not take it") for name in given]
        empty: dict[str, Any] = {name: () if name == "stop" else None for name in given}
        return (attrs.evolve(options, **empty) if given else options), rows


def _read_models(table: PresetTable, text: str | None) -> tuple[ModelInfo, ...]:
    given = table.fields.get("models")
    if given is None:
        return ()
    if text is None and not isinstance(given, list):
        raise table.error("models", "must be a list of models")
    try:
        return load_catalogue(text if text is not None else dumps({"models": given}))
    except DecodeError as error:
        raise table.error("models", str(error)) from error
