"""Find installed plugins by their entry points, check them, and load providers when first used."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from threading import RLock
from typing import Any

import attrs
import pluggy

from interlingua._catalogue import ModelInfo, load_prices
from interlingua._ids import ModelId, parse_model_id
from interlingua._json import EMPTY
from interlingua._plugins.contract import adapt, check_contract
from interlingua._plugins.hookspecs import (
    PLUGIN_HOOKS,
    PROJECT,
    PROVIDER_HOOKS,
    InstrumentScope,
    PluginHooks,
    ProviderHooks,
)
from interlingua._plugins.provider import Distribution, Provider
from interlingua.errors import CallerError, PluginError, UnknownProviderError

PROVIDERS = f"{PROJECT}.providers"
PRESETS = f"{PROJECT}.presets"
FORMATS = f"{PROJECT}.formats"
PLUGINS = f"{PROJECT}.plugins"
OUTPUTS = f"{PROJECT}.outputs"

REQUIRED = ("capabilities", "to_wire", "from_wire_response", "stream_response", "connection", "models")
"""Hooks that every provider must implement."""

_log = logging.getLogger(PROJECT)
_PRESET_FORMAT = "chat-completions"
_OF_THE_SERVICE = re.compile(r"\d|latest").search  # names that services take themselves, and that are sent as given
_HELP = "install its distribution (pip install interlingua-<provider>), or configure a preset of that name"
EntryPoints = Iterable[importlib.metadata.EntryPoint]


@attrs.frozen(kw_only=True, slots=False)  # a cached property needs `__dict__`
class ProviderEntry:
    """A provider that can be loaded."""

    key: str
    kind: str  # `preset` (shipped), `provider` (its own distribution), `user preset` or `given`; the last one wins
    origin: Callable[[], Distribution]  # called once, when needed: metadata is slow to read
    load: Callable[[], Any]  # imports and returns the plugin

    @cached_property
    def distribution(self) -> Distribution:
        """The distribution that ships the provider."""
        return self.origin()


def format_provider(name: str, key: str, table: Mapping[str, Any] = EMPTY, entries: EntryPoints | None = None) -> Any:
    """Return a plugin for a service, by its key and settings, that speaks a format which another distribution ships.

    The name is the format's entry point, such as `chat-completions`, or the key of the provider that has it.

    Raises:
        PluginError: no installed distribution has that format.
    """
    for entry in importlib.metadata.entry_points(group=FORMATS) if entries is None else entries:
        if entry.name == name:
            return entry.load()(key, table)
    why = f"{key!r} needs the format {name!r}, which is not installed: pip install interlingua-{name}"
    raise PluginError(why, provider=key)


def distribution_of(entry: importlib.metadata.EntryPoint) -> Distribution:
    """Return the distribution an entry point came from."""
    if entry.dist is None:
        return Distribution()
    metadata = entry.dist.metadata  # parsed on each access
    return Distribution(name=metadata["Name"], version=metadata["Version"])


def _entries_by_key(entries: EntryPoints, kind: str) -> dict[str, ProviderEntry]:
    """Return the providers of these entry points by key; raise a PluginError if two distributions ship one key."""
    found: dict[str, ProviderEntry] = {}
    for entry in entries:
        made = ProviderEntry(key=entry.name, kind=kind, origin=partial(distribution_of, entry), load=entry.load)
        first = found.setdefault(entry.name, made)
        if first is not made and first.distribution != made.distribution:
            both = " and ".join(f"{one.distribution.name} {one.distribution.version}" for one in (first, made))
            text = f"two distributions ship the provider {entry.name!r}: {both}; uninstall one"
            raise PluginError(text, provider=entry.name)
    return found


def new_manager(plugins: Iterable[Any] = ()) -> pluggy.PluginManager:
    """Create a plugin manager with the hook specs and these general plugins."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ProviderHooks)
    manager.add_hookspecs(PluginHooks)
    for plugin in plugins:
        register(manager, plugin, getattr(plugin, "__name__", repr(plugin)))
    return manager


def register(manager: pluggy.PluginManager, plugin: Any, name: str) -> None:
    """Register a plugin; raise a PluginError unless its hooks are callable and match the specs."""
    for hook in PROVIDER_HOOKS | PLUGIN_HOOKS:
        if hasattr(plugin, hook) and not callable(getattr(plugin, hook)):
            raise PluginError(f"plugin {name!r}: {hook} is not callable; name an object, MODULE:OBJECT")
    try:
        manager.register(plugin, name=name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        raise PluginError(f"plugin {name!r} does not match the hook specs: {error}") from error


def _answering(manager: pluggy.PluginManager, hook: str, *, wrapping: bool = True) -> list[Any]:
    """Return the plugins that implement a hook, in the order of registration."""
    found = getattr(manager.hook, hook).get_hookimpls()
    return [one.plugin for one in found if wrapping or not (one.wrapper or one.hookwrapper)]


class InstrumentedWork:
    """The scopes that plugins wrap around a piece of work; `with` makes them current for one stretch of it."""

    def __init__(self, scopes: Sequence[InstrumentScope]) -> None:
        self._scopes = scopes

    def __enter__(self) -> InstrumentedWork:
        self._call("__enter__")
        return self

    def __exit__(self, *error: object) -> None:
        self._call("__exit__", *error)

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        """Report the end of the work; arguments as for `InstrumentScope.end`."""
        self._call("end", result, error, facts)

    def _call(self, method: str, *arguments: object) -> None:
        for scope in reversed(self._scopes) if method == "__exit__" else self._scopes:
            _isolate("the scope of a plugin failed", scope, method, *arguments)


def _isolate(failure: str, thing: Any, method: str, *arguments: object, **named: object) -> Any:
    try:
        return getattr(thing, method)(*arguments, **named)
    except Exception:
        _log.warning("%s", failure, exc_info=True)


class Registry:
    """The plugins of one process or one test.

    Precedence of a provider key: `providers`, then `presets`, then an installed distribution, then a shipped preset.

    Args:
        plugins: general plugins (wrappers, observers, commands), in addition to the installed ones.
        presets: presets of the user, key -> table; its `format` is the entry point of the format that reads it.
        providers: provider plugins, key -> object.
        entry_points: replaces the entry points of the installed distributions, for tests.
        aliases: user aliases, name -> canonical model id.
        prices: file of the user's prices, which replace those of the catalogues; None for the file that the
            environment variable INTERLINGUA_PRICES is set to.
    """

    def __init__(
        self,
        plugins: Iterable[Any] = (),
        *,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        providers: Mapping[str, Any] | None = None,
        entry_points: EntryPoints | None = None,
        aliases: Mapping[str, str] | None = None,
        prices: str | os.PathLike[str] | None = None,
    ) -> None:
        self._lock = RLock()
        self._installed = None if entry_points is None else list(entry_points)
        self._presets = dict(presets or {})
        self._given = dict(providers or {})
        self._aliases = dict(aliases or {})
        self._found: dict[str, ProviderEntry] | None = None
        self._loaded: dict[str, Provider] = {}
        self._prices = prices or os.environ.get("INTERLINGUA_PRICES")
        self.broken: dict[str, PluginError] = {}
        self.plugins: list[Any] = []
        self.observes = False  # whether a plugin implements `observe`
        for plugin in plugins:
            self.add_plugin(plugin, repr(plugin))
        for entry in self.entry_points(PLUGINS):
            try:
                self.add_plugin(entry.load(), entry.name)
            except Exception as error:
                found = distribution_of(entry)
                why = f"from {found.name} {found.version} is left out: {type(error).__name__}: {error}"
                self.broken[entry.name] = PluginError(f"plugin {entry.name!r} {why}")
                _log.warning("%s", self.broken[entry.name])
        for name in filter(None, os.environ.get("INTERLINGUA_PLUGINS", "").split(",")):
            self.load_plugin(name.strip())

    def found(self) -> dict[str, ProviderEntry]:
        """Return every provider that can be loaded, in the order of keys, without importing any."""
        with self._lock:
            if self._found is None:
                found = _entries_by_key(self.entry_points(PRESETS), "preset")
                found |= _entries_by_key(self.entry_points(PROVIDERS), "provider")
                mine = partial(Distribution, name="your configuration", version="")
                for key, preset in self._presets.items():
                    table = {field: value for field, value in preset.items() if field != "format"}
                    name = preset.get("format", _PRESET_FORMAT)
                    load = partial(format_provider, name, key, table, self.entry_points(FORMATS))
                    found[key] = ProviderEntry(key=key, kind="user preset", origin=mine, load=load)
                for key in self._given:
                    found[key] = self._by_hand(key)
                self._found = dict(sorted(found.items()))
            return self._found

    def entry(self, key: str) -> ProviderEntry:
        """Return the entry of a provider, without importing it.

        Raises:
            UnknownProviderError: no such key; the message lists the installed ones.
        """
        found = self._by_hand(key) if key in self._given else self.found().get(key)
        if found is None:
            import difflib  # noqa: PLC0415  nothing else is as slow to load for one message

            have = ", ".join(self.found()) or "no providers"
            meant = "".join(f"; did you mean {near!r}?" for near in difflib.get_close_matches(key, self.found(), n=1))
            text = f"no provider {key!r} is installed{meant} (installed: {have}); {_HELP}"
            raise UnknownProviderError(text, provider=key)
        return found

    def provider(self, key: str) -> Provider:
        """Return a provider; its plugin is imported the first time.

        Raises:
            UnknownProviderError: no such key; the message lists the installed ones.
            PluginError: the plugin is broken; the message contains its distribution.
        """
        with self._lock:
            provider = self._loaded.get(key)
            if provider is None:
                try:
                    provider = self._loaded[key] = self._load(key)
                except PluginError as error:
                    self.broken[key] = error
                    raise
            return provider

    def providers(self) -> list[Provider]:
        """Load and return every provider; a broken one is logged once and left out."""
        loaded = []
        for key in self.found():
            reported = key in self.broken
            try:
                loaded.append(self.provider(key))
            except PluginError as error:
                if not reported:
                    _log.warning("%s", error)
        return loaded

    def resolve(self, model: str | ModelId) -> ModelId:
        """Return the canonical id of a model id or alias.

        An alias of the user wins; an exact catalogue id and a full `<provider>:<name>` are returned unchanged. A bare
        name that several providers list means its maker's own provider.

        Raises:
            CallerError: the string is neither an id nor a known alias, or several providers list it, but not its
                maker's.
        """
        if isinstance(model, ModelId):
            return model
        if not isinstance(model, str):
            raise CallerError(f"model must be a string '<provider>:<model>', not {type(model).__name__}")
        for _ in self._aliases:
            model = self._aliases.get(model, model)
        if ":" in model:
            given = parse_model_id(model)
            known = None if _OF_THE_SERVICE(given.name) else self.provider(given.provider).model(given.name)
            return ModelId(given.provider, known.id) if known and given.name in known.aliases else given
        listed: dict[str, ModelInfo] = {}
        for provider in self.providers():
            known = provider.model(model)
            if known is not None and (model == known.id or model in known.aliases):
                listed[provider.key] = known
        found = [key for key, info in listed.items() if info.maker in (None, key)] or [*listed]
        if len(found) > 1:
            names = ", ".join(f"{key}:{listed[key].id}" for key in found)
            raise CallerError(f"several installed providers have a model {model!r}: write one of {names}")
        return ModelId(found[0], listed[found[0]].id) if found else parse_model_id(model)

    @cached_property
    def prices(self) -> Mapping[str, tuple[ModelInfo, ...]]:
        """The user's prices by provider key; raises a CallerError if there is no such file, or as `load_prices`."""
        if not self._prices:
            return {}
        try:
            return load_prices(Path(self._prices).read_bytes())
        except OSError as error:
            raise CallerError(f"cannot read the prices in {self._prices}: {error.strerror}") from error

    def load_plugin(self, name: str) -> None:
        """Load an extra plugin module (or `module:object`), before any provider is loaded.

        `key=module:object` adds a provider under that key.

        Raises:
            PluginError: the plugin cannot be imported or does not match the hook specs.
        """
        key, _, place = name.rpartition("=")
        module, _, attribute = place.partition(":")
        try:
            plugin = importlib.import_module(module)
            if attribute:
                plugin = getattr(plugin, attribute)
        except Exception as error:
            raise PluginError(f"plugin {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
        if key:
            self._given[key], self._found = plugin, None
        else:
            self.add_plugin(plugin, name)

    def add_plugin(self, plugin: Any, name: str) -> None:
        """Add a general plugin; it wraps every provider that is loaded afterwards.

        Raises:
            PluginError: the plugin does not match the hook specs, or implements a hook of providers.
        """
        alone = new_manager()
        register(alone, plugin, name)
        for hook in sorted(PROVIDER_HOOKS):
            if _answering(alone, hook, wrapping=False):
                raise PluginError(
                    f"plugin {name!r} implements {hook}, which only a provider may; use "
                    "hookimpl(wrapper=True), or load the plugin as a provider: KEY=MODULE:OBJECT"
                )
        if not alone.get_hookcallers(plugin):
            _log.warning("plugin %r implements no hook; to load an object of a module, use MODULE:OBJECT", name)
        self._hook = new_manager([*self.plugins, plugin]).hook
        self.observes = bool(self._hook.observe.get_hookimpls())
        self.plugins.append(plugin)

    def observe(self, event: Mapping[str, Any]) -> None:
        """Send an event to every plugin; a failing observer is logged and otherwise ignored."""
        if self.observes:
            _isolate(f"an observer failed on {event.get('type')}", self._hook, "observe", event=event)

    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentedWork | None:
        """Begin a piece of work; return the scopes of the plugins, if any. Arguments as for the hook."""
        if not self.plugins:
            return None
        scopes = _isolate(f"a plugin failed in instrument {kind}", self._hook, "instrument", kind=kind, facts=facts)
        return InstrumentedWork(scopes) if scopes else None

    def register_commands(self, cli: Any) -> None:
        """Add the commands of every plugin to a click group."""
        if self.plugins:
            self._hook.register_commands(cli=cli)

    def output_format(self, kind: Any) -> Any:
        """Return the `OutputFormat` of a type.

        Raises:
            CallerError: no installed distribution reads types.
        """
        for entry in self.entry_points(OUTPUTS):
            return entry.load()(kind)
        raise CallerError("output= needs a package that reads types: pip install 'interlingua[output]'")

    def entry_points(self, group: str) -> list[importlib.metadata.EntryPoint]:
        """Return the entry points of a group of interlingua: the installed ones, or those passed to the registry."""
        if self._installed is None:  # all groups at once: each distribution has one file
            every = importlib.metadata.entry_points()
            ours = [name for name in every.groups if name.startswith(f"{PROJECT}.")]
            self._installed = [entry for name in ours for entry in every.select(group=name)]
        return [entry for entry in self._installed if entry.group == group]

    def _by_hand(self, key: str) -> ProviderEntry:
        origin = partial(Distribution, name="passed explicitly", version="")
        return ProviderEntry(key=key, kind="given", origin=origin, load=partial(self._given.__getitem__, key))

    def _load(self, key: str) -> Provider:
        found = self.entry(key)
        where = f"{found.distribution.name} {found.distribution.version}".strip()
        try:
            plugin = found.load()
        except PluginError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise PluginError(f"provider {key!r} from {where} cannot be loaded: {why}") from error
        plugin = adapt(plugin, check_contract(key, where, plugin))
        manager = new_manager(self.plugins)
        register(manager, plugin, f"{key} ({where})")
        answers = {name: _answering(manager, name) for name in (*REQUIRED, "prepare_request")}
        if missing := [name for name in REQUIRED if plugin not in answers[name]]:
            raise PluginError(f"provider {key!r} from {where} lacks the hook(s) {', '.join(missing)}")
        # one caller for each plugin that changes requests, in pluggy's order, so that it sees the result so far
        others = [manager.get_plugins() - {one} for one in reversed(answers["prepare_request"])]
        prepare = [manager.subset_hook_caller("prepare_request", without) for without in others]
        provider = Provider(key, manager.hook, found.distribution, prepare=prepare)
        provider.prices = self.prices.get(key, ())
        return provider
