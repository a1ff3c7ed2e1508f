"""The registry: providers and plugins of one process or one test, loaded lazily and one by one, a broken one isolated.

Never a module global and never imports a provider before it is asked for; core knows none by name.
The client, the command line and the contract suite come in.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
from collections.abc import Iterable, Mapping
from functools import partial
from threading import RLock
from typing import Any

from interlingua.errors import CallerError, PluginError, UnknownProvider
from interlingua.hookspecs import PROJECT
from interlingua.ids import ModelId, split_model_id
from interlingua.provider import Provider, Shipped
from interlingua.registry.discovery import PLUGINS, EntryPoints, Found, Installed, shipped_by
from interlingua.registry.managers import check_general, folded, new_manager, provider_manager

_log = logging.getLogger(PROJECT)
_HELP = "install the distribution that ships it (pip install interlingua-<provider>), or configure a row of that name"


class Registry:
    """The plugins of one process or one test; make as many as you like.

    Precedence for a key: given by hand, then a user's row, then an installed distribution, then a shipped row.

    Args:
        plugins: general plugins (wrappers, observers, commands) given by hand, besides the installed ones.
        rows: user rows, key -> table; `format` in a row names the format distribution that reads it.
        providers: provider objects given by hand, key -> object.
        entry_points: a replacement for the installed distributions' entry points, for tests.
        aliases: user aliases, name -> canonical model id.
    """

    def __init__(
        self,
        plugins: Iterable[Any] = (),
        *,
        rows: Mapping[str, Mapping[str, Any]] | None = None,
        providers: Mapping[str, Any] | None = None,
        entry_points: EntryPoints | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._lock = RLock()
        self._installed = Installed(entry_points)
        self._rows = dict(rows or {})
        self._given = dict(providers or {})
        self._aliases = dict(aliases or {})
        self._found: dict[str, Found] | None = None
        self._loaded: dict[str, Provider] = {}
        self.broken: dict[str, PluginError] = {}
        self.plugins: list[Any] = []
        for plugin in plugins:
            self.add_plugin(plugin, repr(plugin))
        for entry in self._installed.entries(PLUGINS):
            self._add_isolated(entry)
        for name in filter(None, os.environ.get("INTERLINGUA_PLUGINS", "").split(",")):
            self.load_plugin(name.strip())

    # -- providers ----------------------------------------------------------------------------------------------

    def found(self) -> dict[str, Found]:
        """Return every provider key that can be loaded, in key order, without importing any."""
        with self._lock:
            if self._found is None:
                found = self._installed.providers()
                mine = partial(Shipped, distribution="your configuration", version="")
                for key, row in self._rows.items():
                    load = partial(self._installed.from_row, key, row)
                    found[key] = Found(key=key, kind="user row", origin=mine, load=load)
                for key in self._given:
                    found[key] = self._by_hand(key)
                self._found = dict(sorted(found.items()))
            return self._found

    def provider(self, key: str) -> Provider:
        """Return the provider of this key, loading it the first time.

        Raises:
            UnknownProvider: no such key; the message lists what there is.
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
            known = key in self.broken
            try:
                loaded.append(self.provider(key))
            except PluginError as error:
                if not known:
                    _log.warning("%s", error)
        return loaded

    def resolve(self, model: str | ModelId) -> ModelId:
        """Turn a model id or alias into a canonical model id.

        A user's alias wins; an exact catalogue id or a full `<provider>:<name>` stays as it was asked for.

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
            asked = split_model_id(model)
            known = None if any(map(str.isdigit, asked.name)) else self.provider(asked.provider).model(asked.name)
            return ModelId(asked.provider, known.id) if known and asked.name in known.aliases else asked
        for provider in self.providers():
            known = provider.model(model)
            if known is not None and (model == known.id or model in known.aliases):
                return ModelId(provider.key, known.id)
        return split_model_id(model)

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
        if not check_general(plugin, name):
            _log.warning("plugin %r answers and wraps no hook; one that is an object is named MODULE:OBJECT", name)
        self.plugins.append(plugin)

    def observe(self, event: Mapping[str, Any]) -> None:
        """Tell every plugin of an event; an observer that fails is logged, never in the way."""
        if not self.plugins:
            return
        try:
            new_manager(self.plugins).hook.observe(event=event)
        except Exception:
            _log.warning("an observer failed on %s", event.get("type"), exc_info=True)

    def register_commands(self, cli: Any) -> None:
        """Let every plugin add its commands to a click group."""
        new_manager(self.plugins).hook.register_commands(cli=cli)

    # -- inside -------------------------------------------------------------------------------------------------

    def _by_hand(self, key: str) -> Found:
        origin = partial(Shipped, distribution="given by hand", version="")
        return Found(key=key, kind="given", origin=origin, load=partial(self._given.__getitem__, key))

    def _load(self, key: str) -> Provider:
        found = self._by_hand(key) if key in self._given else self.found().get(key)
        if found is None:
            import difflib  # noqa: PLC0415  nothing else is as slow to load for one message

            have = ", ".join(self.found()) or "none"
            meant = "".join(f"; did you mean {near!r}?" for near in difflib.get_close_matches(key, self.found(), n=1))
            raise UnknownProvider(f"no provider {key!r} is installed{meant} (there are: {have}); {_HELP}", provider=key)
        where = f"{found.shipped.distribution} {found.shipped.version}".strip()
        try:
            plugin = found.load()
        except PluginError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise PluginError(f"provider {key!r} from {where} cannot be loaded: {why}") from error
        manager = provider_manager(plugin, key, where, self.plugins)
        return Provider(key, manager.hook, found.shipped, prepare=folded(manager, "prepare_request"))

    def _add_isolated(self, entry: importlib.metadata.EntryPoint) -> None:
        """Add an installed plugin; a broken one costs one WARN and nothing else (REGRESSIONS case 27)."""
        try:
            self.add_plugin(entry.load(), entry.name)
        except Exception as error:
            shipped = shipped_by(entry)
            where = f"{shipped.distribution} {shipped.version}"
            why = f"plugin {entry.name!r} from {where} is left out: {type(error).__name__}: {error}"
            self.broken[entry.name] = PluginError(why)
            _log.warning("%s", why)
