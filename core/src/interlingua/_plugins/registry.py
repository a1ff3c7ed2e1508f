"""Find installed providers by their entry points and make each one's hook caller."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from threading import RLock
from typing import Any

import attrs
import pluggy

from interlingua._ids import ModelId, parse_model_id
from interlingua._json import EMPTY
from interlingua._plugins.hookspecs import (
    CONTRACT_VERSION,
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
"""Hooks that every provider answers."""

_log = logging.getLogger(PROJECT)
_GROUPS = (PROVIDERS, PRESETS, FORMATS, PLUGINS, OUTPUTS)
_PRESET_FORMAT = "chat-completions"
_HELP = "install its distribution (pip install interlingua-<provider>), or configure a preset of that name"
EntryPoints = Iterable[importlib.metadata.EntryPoint]


@attrs.frozen(kw_only=True, slots=False)  # a cached property needs a place
class ProviderEntry:
    """A provider that can be loaded.

    Attributes:
        key: provider key.
        kind: `preset` (shipped), `provider` (its own distribution), `user preset` or `given`; the last one wins.
        origin: tells the distribution; called once, when it is asked for, because metadata is slow to read.
        load: imports and returns the plugin object.
    """

    key: str
    kind: str
    origin: Callable[[], Distribution]
    load: Callable[[], Any]

    @cached_property
    def distribution(self) -> Distribution:
        """The distribution it came from."""
        return self.origin()


def format_provider(name: str, key: str, table: Mapping[str, Any] = EMPTY, entries: EntryPoints | None = None) -> Any:
    """Return a provider object for the format that another distribution ships, for a host that serves it.

    Args:
        name: the format's entry point, such as `chat-completions`, or the key of the provider that has it.
        key: provider key of the host, which the answers are credited to.
        table: settings of the format, where it has some.
        entries: entry points of formats; None takes the installed ones.

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
    metadata = entry.dist.metadata  # parsed each time it is asked for
    return Distribution(name=metadata["Name"], version=metadata["Version"])


def _entries_by_key(entries: EntryPoints, kind: str) -> dict[str, ProviderEntry]:
    """Return what these entry points load.

    Raises:
        PluginError: two distributions ship one key.
    """
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
    """Make a manager that knows the specs and holds these general plugins."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ProviderHooks)
    manager.add_hookspecs(PluginHooks)
    for plugin in plugins:
        register(manager, plugin, getattr(plugin, "__name__", repr(plugin)))
    return manager


def register(manager: pluggy.PluginManager, plugin: Any, name: str) -> None:
    """Register a plugin: its hooks must be callable, known, and take only arguments that exist.

    Raises:
        PluginError: they are not; the message names plugin, hook and argument.
    """
    for hook in PROVIDER_HOOKS | PLUGIN_HOOKS:
        if hasattr(plugin, hook) and not callable(getattr(plugin, hook)):
            raise PluginError(f"plugin {name!r}: {hook} is not callable; a plugin is an object: MODULE:OBJECT")
    try:
        manager.register(plugin, name=name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        raise PluginError(f"plugin {name!r} breaks the hook specs: {error}") from error


def _answering(manager: pluggy.PluginManager, hook: str, *, wrapping: bool = True) -> list[Any]:
    """Return the plugins that answer a hook, in the order of registering."""
    found = getattr(manager.hook, hook).get_hookimpls()
    return [one.plugin for one in found if wrapping or not (one.wrapper or one.hookwrapper)]


class InstrumentedWork:
    """A piece of work and what plugins put around it: `with` makes that current, for one stretch of the work."""

    def __init__(self, scopes: Sequence[InstrumentScope]) -> None:
        self._scopes = scopes

    def __enter__(self) -> InstrumentedWork:
        for scope in self._scopes:
            _isolate(_SCOPE_FAILED, scope, "__enter__")
        return self

    def __exit__(self, *error: object) -> None:
        for scope in reversed(self._scopes):
            _isolate(_SCOPE_FAILED, scope, "__exit__", *error)

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        """Tell what came of the work; arguments as for `InstrumentScope.end`."""
        for scope in self._scopes:
            _isolate(_SCOPE_FAILED, scope, "end", result, error, facts)


_SCOPE_FAILED = "a plugin failed in what it put around a piece of work"


def _isolate(failure: str, thing: Any, method: str, *arguments: object, **named: object) -> Any:
    try:
        return getattr(thing, method)(*arguments, **named)
    except Exception:
        _log.warning("%s", failure, exc_info=True)


class Registry:
    """The plugins of one process or one test; make as many as you like.

    Precedence for a key: `providers`, then `presets`, then an installed distribution, then a shipped preset.

    Args:
        plugins: general plugins (wrappers, observers, commands) given by hand, besides the installed ones.
        presets: user presets, key -> table; its `format` is the entry point of the format that reads it.
        providers: provider objects given by hand, key -> object.
        entry_points: a replacement for the installed distributions' entry points, for tests.
        aliases: user aliases, name -> canonical model id.
    """

    def __init__(
        self,
        plugins: Iterable[Any] = (),
        *,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        providers: Mapping[str, Any] | None = None,
        entry_points: EntryPoints | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._lock = RLock()
        self._installed = None if entry_points is None else list(entry_points)
        self._presets = dict(presets or {})
        self._given = dict(providers or {})
        self._aliases = dict(aliases or {})
        self._found: dict[str, ProviderEntry] | None = None
        self._loaded: dict[str, Provider] = {}
        self.broken: dict[str, PluginError] = {}
        self.plugins: list[Any] = []
        self.observes = False  # whether a plugin looks at events
        for plugin in plugins:
            self.add_plugin(plugin, repr(plugin))
        for entry in self._entries(PLUGINS):
            self._add_isolated(entry)
        for name in filter(None, os.environ.get("INTERLINGUA_PLUGINS", "").split(",")):
            self.load_plugin(name.strip())

    # -- providers ----------------------------------------------------------------------------------------------

    def found(self) -> dict[str, ProviderEntry]:
        """Return every provider key that can be loaded, in key order, without importing any."""
        with self._lock:
            if self._found is None:
                found = _entries_by_key(self._entries(PRESETS), "preset")
                found |= _entries_by_key(self._entries(PROVIDERS), "provider")
                mine = partial(Distribution, name="your configuration", version="")
                for key, preset in self._presets.items():
                    table = {field: value for field, value in preset.items() if field != "format"}
                    name = preset.get("format", _PRESET_FORMAT)
                    load = partial(format_provider, name, key, table, self._entries(FORMATS))
                    found[key] = ProviderEntry(key=key, kind="user preset", origin=mine, load=load)
                for key in self._given:
                    found[key] = self._by_hand(key)
                self._found = dict(sorted(found.items()))
            return self._found

    def entry(self, key: str) -> ProviderEntry:
        """Return where the provider of this key comes from, without importing it.

        Raises:
            UnknownProviderError: no such key; the message lists what there is.
        """
        found = self._by_hand(key) if key in self._given else self.found().get(key)
        if found is None:
            import difflib  # noqa: PLC0415  nothing else is as slow to load for one message

            have = ", ".join(self.found()) or "none"
            meant = "".join(f"; did you mean {near!r}?" for near in difflib.get_close_matches(key, self.found(), n=1))
            raise UnknownProviderError(
                f"no provider {key!r} is installed{meant} (there are: {have}); {_HELP}", provider=key
            )
        return found

    def provider(self, key: str) -> Provider:
        """Return the provider of this key, loading it the first time.

        Raises:
            UnknownProviderError: no such key; the message lists what there is.
            PluginError: it is there but broken; the message names the distribution.
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
        """Load every provider there is; a broken one is logged once and left out."""
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
        """Turn a model id or alias into a canonical model id.

        A user's alias wins; an exact catalogue id or a full `<provider>:<name>` stays as it is.

        Raises:
            CallerError: neither an id nor a known alias.
        """
        if isinstance(model, ModelId):
            return model
        if not isinstance(model, str):
            raise CallerError(f"a model is named by a text, <provider>:<model>, not by {type(model).__name__}")
        for _ in self._aliases:
            model = self._aliases.get(model, model)
        if ":" in model:
            given = parse_model_id(model)
            known = None if any(map(str.isdigit, given.name)) else self.provider(given.provider).model(given.name)
            return ModelId(given.provider, known.id) if known and given.name in known.aliases else given
        for provider in self.providers():
            known = provider.model(model)
            if known is not None and (model == known.id or model in known.aliases):
                return ModelId(provider.key, known.id)
        return parse_model_id(model)

    # -- plugins ------------------------------------------------------------------------------------------------

    def load_plugin(self, name: str) -> None:
        """Load an extra plugin module (or `module:object`), before any provider is loaded.

        `key=module:object` gives a provider that is not installed under that key.

        Raises:
            PluginError: it cannot be imported or breaks the rules for plugins.
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
        """Add a general plugin; providers loaded from now on are wrapped by it.

        Raises:
            PluginError: it breaks the rules for plugins.
        """
        alone = new_manager()
        register(alone, plugin, name)
        for hook in sorted(PROVIDER_HOOKS):
            if _answering(alone, hook, wrapping=False):
                raise PluginError(
                    f"plugin {name!r} answers {hook}; only a provider may, a plugin wraps it (wrapper=True). "
                    "Install a provider's distribution, or name it with its key: KEY=MODULE:OBJECT"
                )
        if not alone.get_hookcallers(plugin):
            _log.warning("plugin %r answers and wraps no hook; one that is an object is named MODULE:OBJECT", name)
        self._hook = new_manager([*self.plugins, plugin]).hook
        self.observes = bool(self._hook.observe.get_hookimpls())
        self.plugins.append(plugin)

    def observe(self, event: Mapping[str, Any]) -> None:
        """Send an event to every plugin; an observer that fails is logged and stops nothing."""
        if self.observes:
            _isolate(f"an observer failed on {event.get('type')}", self._hook, "observe", event=event)

    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentedWork | None:
        """Begin a piece of work; return what plugins put around it, if any does. Arguments as for the hook."""
        if not self.plugins:
            return None
        scopes = _isolate(f"a plugin failed in instrument {kind}", self._hook, "instrument", kind=kind, facts=facts)
        return InstrumentedWork(scopes) if scopes else None

    def register_commands(self, cli: Any) -> None:
        """Let every plugin add its commands to a click group."""
        if self.plugins:
            self._hook.register_commands(cli=cli)

    def output_format(self, kind: Any) -> Any:
        """Return the `OutputFormat` of a type.

        Raises:
            CallerError: no installed distribution does.
        """
        for entry in self._entries(OUTPUTS):
            return entry.load()(kind)
        raise CallerError("output= needs a distribution that reads types: pip install 'interlingua[output]'")

    # -- inside -------------------------------------------------------------------------------------------------

    def _entries(self, group: str) -> list[importlib.metadata.EntryPoint]:
        """Return the installed entry points of one of our groups, read once: each distribution has a file of them."""
        if self._installed is None:
            every = importlib.metadata.entry_points()
            self._installed = [entry for ours in _GROUPS for entry in every.select(group=ours)]
        return [entry for entry in self._installed if entry.group == group]

    def _by_hand(self, key: str) -> ProviderEntry:
        origin = partial(Distribution, name="given by hand", version="")
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
        wanted = getattr(plugin, "contract_version", CONTRACT_VERSION)
        if wanted != CONTRACT_VERSION:
            written = f"is written for contract version {wanted}; this core has {CONTRACT_VERSION}"
            raise PluginError(f"provider {key!r} from {where} {written}")
        manager = new_manager(self.plugins)
        register(manager, plugin, f"{key} ({where})")
        answers = {name: _answering(manager, name) for name in (*REQUIRED, "prepare_request")}
        if missing := [name for name in REQUIRED if plugin not in answers[name]]:
            raise PluginError(f"provider {key!r} from {where} lacks the hook(s) {', '.join(missing)}")
        # one caller for each plugin that changes requests, in pluggy's order, so that it sees the result so far
        others = [manager.get_plugins() - {one} for one in reversed(answers["prepare_request"])]
        prepare = [manager.subset_hook_caller("prepare_request", without) for without in others]
        return Provider(key, manager.hook, found.distribution, prepare=prepare)

    def _add_isolated(self, entry: importlib.metadata.EntryPoint) -> None:
        """Add an installed plugin; a broken one is left out with one warning."""
        try:
            self.add_plugin(entry.load(), entry.name)
        except Exception as error:
            found = distribution_of(entry)
            where = f"{found.name} {found.version}"
            why = f"plugin {entry.name!r} from {where} is left out: {type(error).__name__}: {error}"
            self.broken[entry.name] = PluginError(why)
            _log.warning("%s", why)
